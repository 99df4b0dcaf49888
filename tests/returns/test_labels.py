import json

import numpy as np
import polars as pl
import pytest

from demur.errors import DataError
from demur.returns.classes import OUT_OF_SCOPE, Confusion, class_report, class_reports, labelled, report_of_cells
from demur.returns.table import responses


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


def cells_of(judged, *buckets):
    """What an engine would count of the labels, with a bucket for each row if any is given."""
    weight = pl.col("weight")
    table = labelled(judged.frame).with_columns(*(pl.Series("bucket", one) for one in buckets))
    keys = ["actual", "predicted", *("bucket" for _ in buckets)]
    sums = table.group_by(keys).agg(weight.sum(), weight.pow(2).sum().alias("squares"), pl.len().alias("rows"))
    return sums.sample(fraction=1.0, shuffle=True, seed=0)


def test_labels_counted_elsewhere_give_the_very_report_of_the_rows():
    judged = log(PAIRS)
    (memory,) = class_reports(judged, replicates=100)
    elsewhere = report_of_cells(cells_of(judged), system=memory.system, replicates=100)
    assert elsewhere.to_dict() == memory.to_dict()


def test_labels_in_buckets_that_all_count_alike_give_the_very_report_of_the_rows():
    judged = log(PAIRS)
    (memory,) = class_reports(judged, replicates=100)
    cells = cells_of(judged, [place % 9 for place in range(40)])
    assert report_of_cells(cells, system=memory.system, replicates=100).to_dict() == memory.to_dict()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_bucket_for_each_dialogue_gives_the_report_of_dialogues(weighted):
    place = np.arange(40) // 4
    columns = {"dialogue": [f"d{one}" for one in place]} | ({"weight": [1.0, 2.0] * 20} if weighted else {})
    judged = log(PAIRS, **columns)
    (memory,) = class_reports(judged, replicates=100)
    cells = cells_of(judged, place)
    elsewhere = report_of_cells(cells, system=memory.system, clustered=True, replicates=100)
    assert elsewhere.to_dict() == memory.to_dict()


def test_weighted_labels_in_buckets_are_as_uncertain_as_the_rows():
    rng = np.random.default_rng(0)
    pairs = [PAIRS[place] for place in rng.integers(0, 5, 4000)]
    judged = log(pairs, weight=(rng.random(4000) + 0.5).tolist())
    (memory,) = class_reports(judged)
    elsewhere = report_of_cells(cells_of(judged, rng.integers(0, 1024, 4000)))
    for name in ("accuracy", "macro_f1", "kappa"):
        one, two = memory.figures[name], elsewhere.figures[name]
        assert two.value == pytest.approx(one.value)
        assert two.high - two.low == pytest.approx(one.high - one.low, rel=0.12), name


def test_without_squares_the_rows_of_a_cell_weigh_alike():
    cells = pl.DataFrame(
        {
            "actual": ["a", "a", "b"],
            "predicted": ["a", None, "b"],
            "bucket": [0, 1, 2],
            "weight": [4.0, 1.0, 3.0],
            "rows": [2, 1, 3],
        }
    )
    squared = cells.with_columns(squares=pl.Series([8.0, 1.0, 3.0]))
    one, two = (report_of_cells(table, replicates=50).to_dict() for table in (cells, squared))
    assert one == two
    assert one["accuracy"] == 7 / 8
