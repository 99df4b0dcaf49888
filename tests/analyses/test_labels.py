import json

import numpy as np
import pytest

from demur.analyses.labels import OUT_OF_SCOPE, class_report, class_reports
from demur.data.responses import responses
from demur.errors import DataError
from demur.measures.classes import Confusion


def log(pairs, **columns):
    return responses(
        [
            {
                "target": target,
                "prediction": prediction,
                "confidence": 0.5,
                **{name: values[place] for name, values in columns.items()},
            }
            for place, (target, prediction) in enumerate(pairs)
        ]
    )


PAIRS = [("yes", "yes"), ("yes", "no"), ("no", "no"), ("no", None), ("maybe", "yes")] * 8


def test_the_report_counts_predicted_then_actual_and_the_rejected_apart():
    (report,) = class_reports(log(PAIRS), replicates=50)
    shown = report.to_dict()
    assert shown["confusion"] == {"maybe": {}, "no": {"no": 8, "yes": 8}, "yes": {"maybe": 8, "yes": 8}}
    assert (shown["n"], shown["rejected"], shown["rejected_by_class"]) == (40, 8, {"no": 8})
    assert shown["accuracy"] == pytest.approx(0.4)
    assert shown["per_class"]["no"] == {
        "precision": pytest.approx(0.5),
        "recall": pytest.approx(0.5),
        "f1": pytest.approx(0.5),
        "support": 16,
    }
    assert shown["per_class"]["maybe"]["precision"] is None
    assert shown["macro"]["recall"] == pytest.approx(1 / 3)
    assert shown["micro"]["precision"] == pytest.approx(0.5)


def test_the_report_is_strict_json_with_the_keys_scripts_rely_on():
    shown = json.loads(json.dumps(class_reports(log(PAIRS), replicates=50)[0].to_dict(), allow_nan=False))
    wanted = {"n", "rejected", "accuracy", "kappa", "per_class", "macro", "weighted", "micro", "confusion"}
    assert wanted <= shown.keys()


def test_row_order_does_not_change_a_report():
    one, two = (class_reports(log(part), replicates=100)[0].to_dict() for part in (PAIRS, PAIRS[::-1]))
    assert one == two


def test_row_order_does_not_change_a_report_of_weighted_rows():
    weight = (np.random.default_rng(0).random(40) + 0.5).tolist()
    one = class_reports(log(PAIRS, weight=weight), replicates=100)[0].to_dict()
    two = class_reports(log(PAIRS[::-1], weight=weight[::-1]), replicates=100)[0].to_dict()
    assert one == two


def test_every_interval_holds_its_value():
    (report,) = class_reports(log(PAIRS), replicates=300)
    for name, figure in report.figures.items():
        assert figure.low <= figure.value <= figure.high, name


def test_turns_that_go_together_widen_the_intervals():
    pairs = [pair for pair in PAIRS for _ in range(6)]
    dialogue = [f"d{place // 6}" for place in range(len(pairs))]
    (naive,) = class_reports(log(pairs), replicates=300)
    (clustered,) = class_reports(log(pairs, dialogue=dialogue), replicates=300)
    for name in ("accuracy", "macro_f1", "kappa"):
        wide, narrow = clustered.figures[name], naive.figures[name]
        assert wide.high - wide.low > 1.6 * (narrow.high - narrow.low), name


def test_uneven_weights_widen_the_interval_of_the_accuracy():
    pairs = [("yes", "yes"), ("no", "yes")] * 50
    weight = [100.0 if place < 10 else 0.1 for place in range(100)]
    (even,), (uneven,) = (class_reports(log(pairs, **options), replicates=50) for options in ({}, {"weight": weight}))
    wide, narrow = uneven.figures["accuracy"], even.figures["accuracy"]
    assert wide.high - wide.low > 1.6 * (narrow.high - narrow.low)


def test_where_several_labels_are_acceptable_the_predicted_one_counts():
    confusion = class_reports(log([(["a", "b"], "b"), (["a", "b"], "c"), (["c"], "c")]), replicates=50)[0].confusion
    assert sorted(confusion.cells()) == [("a", "c", 1.0), ("b", "b", 1.0), ("c", "c", 1.0)]


def test_out_of_scope_is_an_actual_label_of_its_own():
    confusion = class_reports(log([("a", "a"), ("oos", "a"), (None, None)]), replicates=50)[0].confusion
    assert (OUT_OF_SCOPE, "a", 1.0) in confusion.cells()
    assert (OUT_OF_SCOPE, None, 1.0) in confusion.cells()


def test_rows_judged_only_by_correct_have_no_classes():
    rows = [{"prediction": "a", "correct": True, "confidence": 0.5}]
    with pytest.raises(DataError, match="every row needs a target and every answer a prediction"):
        class_reports(responses(rows))


def test_one_row_is_reported():
    (report,) = class_reports(log([("a", "a")]), replicates=20)
    assert report.figures["accuracy"].value == 1
    assert report.figures["kappa"].why
    json.dumps(report.to_dict(), allow_nan=False)


def test_rejecting_everything_is_reported():
    (report,) = class_reports(log([("a", None), ("b", None)]), replicates=20)
    shown = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert shown["micro"]["precision"] is None
    assert shown["intervals"]["micro_precision"]["why"] == "every row was rejected"
    assert shown["accuracy"] == 0


def test_a_published_table_gives_a_report_with_its_baseline():
    report = class_report(Confusion.from_cells([("a", "a", 30.0), ("a", "b", 10.0), ("b", "b", 10.0)]), replicates=50)
    shown = report.to_dict()
    assert shown["majority_baseline"] == {
        "label": "a",
        "accuracy": pytest.approx(0.8),
        "macro_f1": pytest.approx((2 * 0.8 / 1.8) / 2),
    }
    assert report.frame().height == 3


def test_replicates_keep_the_number_of_rows_and_the_proportions():
    """Accuracy .75 of 200: the bootstrap of the pooled recall has the spread of a binomial share."""
    cells = [("a", "a", 90.0), ("b", "b", 60.0), ("a", "b", 30.0), ("b", None, 20.0)]
    figure = class_report(Confusion.from_cells(cells), replicates=3000).figures["micro_recall"]
    assert (figure.high - figure.low) / 2 == pytest.approx(1.97 * np.sqrt(0.75 * 0.25 / 200), rel=0.1)
