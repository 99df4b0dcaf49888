import json
import math
import re
from functools import cache
from xml.etree import ElementTree

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.show import pictures
from demur.core.show.charts import chart_table, drawn_in
from demur.core.stats.intervals import Figure
from demur.errors import UsageError
from demur.outcome.charts import coefficient_chart, observed_chart, predicted_chart, price_chart, sets_chart

pytestmark = pytest.mark.usefixtures("unchecked")
FEW = settings(max_examples=settings.default.max_examples // 2)
LABELS = ["correct", "pc_incomplete", "contradictory", "irrelevant", "non_content"]
LONG = "a system with a name that is much too long for any axis, of the second trial"
NAIVE = Figure(0.61, 0.55, 0.67)
R2 = {"leave-one-out": 0.42, "nested": 0.18}

OBSERVED = {"dialogue": pl.String, "observed": pl.Float64, "predicted": pl.Float64, "validation": pl.String}
COEFFICIENTS = {
    "term": pl.String,
    "coefficient": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "selected": pl.Float64,
    "chosen": pl.Boolean,
}
PRICES = {"predicted": pl.String, "actual": pl.String, "count": pl.Int64, "change": pl.Float64}
SETS = {"features": pl.String, "validation": pl.String, "r2": pl.Float64}
PREDICTED = {
    "system": pl.String,
    "predicted": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "refused": pl.String,
}


def frame(rows, schema):
    return pl.DataFrame(rows, schema=schema, orient="row")


def observed_rows(n=35, far=()):
    rows = []
    for place in range(n):
        seen = 0.1 + 0.8 * place / max(n - 1, 1)
        guess = 0.3 + seen / 2 + 0.01 * (place % 7)
        rows.append((f"d{place:02}", seen, guess, "leave-one-out"))
        rows.append((f"d{place:02}", seen, dict(far).get(place, guess - 0.02 * (place % 5)), "nested"))
    return frame(rows, OBSERVED)


def coefficient_rows(n=24, chosen=3):
    rows = [
        (f"predicted-{name}", (-0.4 if place % 2 else 0.5) * (place < chosen), -0.6, 0.7, 0.95 - 0.9 * place / n)
        for place, name in enumerate(f"label_{place:02}-actual-contradictory" for place in range(n))
    ]
    return frame([(*row, place < chosen) for place, row in enumerate(rows)], COEFFICIENTS)


def price_rows(labels=LABELS, step=0.001):
    rows = [
        (predicted, actual, 10 * up + across + 1, step * (3 * across - 2 * up))
        for up, predicted in enumerate(labels)
        for across, actual in enumerate(labels)
        if predicted != actual
    ]
    return frame(rows, PRICES)


def sets_rows(**values):
    kinds = ("in-sample", "leave-one-out", "nested")
    rows = [(name, kind, r2) for name, three in values.items() for kind, r2 in zip(kinds, three, strict=True)]
    return frame(rows, SETS)


def predicted_rows(n=24):
    rows = [
        (f"candidate {place:02}", 0.5 + 0.005 * place, 0.45 + 0.005 * place, 0.6 + 0.005 * place, None)
        for place in range(n)
    ]
    return frame(rows, PREDICTED)


REFUSED = frame(
    [
        ("baseline", None, None, None, "recall.correct is 0.21, in training it was 0.35 to 0.98; " * 3),
        (LONG, None, None, None, "recall.correct is 0.21"),
    ],
    PREDICTED,
)
FULL = {"scores.fm": (0.24, 0.18, 0.1), "conf": (0.38, 0.31, 0.22), "full": (0.62, 0.44, -2.9)}

CHARTS = {
    "observed": lambda: observed_chart(observed_rows(), outcome="gain", r2=R2),
    "observed, one dialogue": lambda: observed_chart(observed_rows(1), outcome="gain"),
    "observed, far off": lambda: observed_chart(observed_rows(far={3: -14.0, 7: 20.0, 9: None}), outcome="gain", r2=R2),
    "observed, many": lambda: observed_chart(observed_rows(600), outcome="gain", r2=R2),
    "observed, all alike": lambda: observed_chart(
        observed_rows(9).with_columns(observed=pl.lit(0.0), predicted=pl.lit(0.0)), outcome="gain"
    ),
    "coefficients": lambda: coefficient_chart(coefficient_rows(), outcome="gain"),
    "coefficients, one": lambda: coefficient_chart(coefficient_rows(1), outcome="gain"),
    "coefficients, many": lambda: coefficient_chart(coefficient_rows(60), outcome="gain"),
    "coefficients, no bootstrap": lambda: coefficient_chart(
        coefficient_rows(5).with_columns(low=None, high=None, selected=None), outcome="gain"
    ),
    "prices": lambda: price_chart(price_rows(), outcome="gain", labels=LABELS),
    "prices, one": lambda: price_chart(price_rows()[:1], outcome="gain"),
    "prices, undefined": lambda: price_chart(price_rows().with_columns(change=None), outcome="gain"),
    "prices, twelve": lambda: price_chart(price_rows([f"{LONG} {place}" for place in range(12)]), outcome="gain"),
    "prices, many": lambda: price_chart(price_rows([f"intent {place}" for place in range(40)]), outcome="gain"),
    "sets": lambda: sets_chart(sets_rows(**FULL)),
    "sets, one": lambda: sets_chart(sets_rows(**{LONG: (0.5, None, -0.2)})),
    "predicted": lambda: predicted_chart(pl.concat([predicted_rows(), REFUSED]), outcome="gain", naive=NAIVE),
    "predicted, one": lambda: predicted_chart(predicted_rows(1), outcome="gain", naive=Figure(0.6)),
    "predicted, refused": lambda: predicted_chart(REFUSED, outcome="gain", naive=Figure(math.nan)),
    "predicted, no intervals": lambda: predicted_chart(
        predicted_rows(3).with_columns(low=None, high=None), outcome="gain", naive=NAIVE
    ),
}


@cache
def drawn(name):
    """A figure that several tests read, drawn once."""
    return CHARTS[name]()


@cache
def spec_of(name):
    return pictures.spec_of(drawn(name))


@cache
def picture_of(name):
    return picture(spec_of(name))


def picture(spec):
    return ElementTree.fromstring(pictures.svg_of(spec))


def title(chart):
    return " ".join(chart.title.text).replace("\N{NO-BREAK SPACE}", " ")


def valid(chart):
    """The figure, whose spec JSON can hold."""
    json.dumps(pictures.spec_of(chart), allow_nan=False)
    return chart


def subtitle(chart):
    return " · ".join(chart.title.subtitle).replace("\N{NO-BREAK SPACE}", " ")


def written(picture):
    """All text in the picture."""
    return [node.text or "" for node in picture.iter() if node.tag.endswith("text")]


def spots(node, across=0.0, up=0.0):
    """Where in the picture marks and words begin."""
    moved = re.match(r"translate\(([-\d.e]+),([-\d.e]+)\)", node.get("transform", ""))
    if moved:
        across, up = across + float(moved[1]), up + float(moved[2])
    if node.tag.endswith("text") or (node.tag.endswith("path") and moved):
        yield across, up
    for part in node:
        yield from spots(part, across, up)


def domains(spec, channel):
    """The domains of a channel, wherever in a spec they are."""
    if isinstance(spec, dict):
        if channel in spec and "domain" in (spec[channel].get("scale") or {}):
            yield spec[channel]["scale"]["domain"]
        for part in spec.values():
            yield from domains(part, channel)
    elif isinstance(spec, list):
        for part in spec:
            yield from domains(part, channel)


@pytest.mark.parametrize("name", CHARTS)
def test_every_figure_is_a_spec_with_title_words_and_table(name):
    chart = drawn(name)
    spec = spec_of(name)
    json.dumps(spec, allow_nan=False)
    assert spec["title"]["text"]
    assert spec["title"]["subtitle"]
    assert len(spec["description"]) > 30
    assert chart_table(chart).height > 0


@pytest.mark.parametrize("name", ["observed", "coefficients", "prices", "sets", "predicted"])
def test_a_figure_is_as_the_schema_wants_it_and_the_same_each_time(name):
    assert pictures.spec_of(CHARTS[name]()) == spec_of(name)
    drawn(name).to_dict(validate=True)


@pytest.mark.parametrize("name", CHARTS)
def test_every_mark_and_word_of_a_figure_lies_in_the_picture(name):
    whole = picture_of(name)
    width, height = float(whole.get("width")), float(whole.get("height"))
    found = list(spots(whole))
    assert len(found) > 5
    assert all(0 <= across <= width and 0 <= up <= height for across, up in found)


@pytest.mark.parametrize(
    ("rows", "draw"),
    [
        (observed_rows(), lambda rows: observed_chart(rows, outcome="gain")),
        (coefficient_rows(30), lambda rows: coefficient_chart(rows, outcome="gain")),
        (price_rows([f"intent {place}" for place in range(33)]), lambda rows: price_chart(rows, outcome="gain")),
        (sets_rows(**FULL), sets_chart),
        (
            pl.concat([predicted_rows(), REFUSED]),
            lambda rows: predicted_chart(rows, outcome="gain", naive=NAIVE),
        ),
    ],
)
def test_the_table_of_a_figure_holds_all_that_it_was_given(rows, draw):
    table = chart_table(draw(rows)).select(rows.columns).cast(dict(rows.schema))
    keys = [name for name, kind in rows.schema.items() if kind == pl.String and rows[name].null_count() == 0]
    numbers = pl.selectors.float().round(7)
    assert table.sort(keys).equals(rows.with_columns(numbers).sort(keys))


@pytest.mark.parametrize(
    ("rows", "draw", "column"),
    [
        (observed_rows(), lambda rows: observed_chart(rows, outcome="gain"), "validation"),
        (coefficient_rows(), lambda rows: coefficient_chart(rows, outcome="gain"), "selected"),
        (price_rows(), lambda rows: price_chart(rows, outcome="gain"), "change"),
        (sets_rows(**FULL), sets_chart, "features"),
        (predicted_rows(), lambda rows: predicted_chart(rows, outcome="gain", naive=NAIVE), "refused"),
    ],
)
def test_tables_that_lack_a_column_or_rows_or_say_a_thing_twice_are_refused(rows, draw, column):
    with pytest.raises(UsageError, match=f'needs a column "{column}"'):
        draw(rows.drop(column))
    with pytest.raises(UsageError, match="at least one row"):
        draw(rows[:0])
    with pytest.raises(UsageError, match="is there twice"):
        draw(pl.concat([rows, rows]))


def test_an_unknown_kind_of_validation_is_refused():
    strange = sets_rows(**FULL).with_columns(validation=pl.col("validation").replace("nested", "guess"))
    with pytest.raises(UsageError, match=r'validation is one of .*"nested"; got "guess"'):
        sets_chart(strange)
    with pytest.raises(UsageError, match='got "guess"'):
        observed_chart(observed_rows().with_columns(validation=pl.lit("guess")).unique("dialogue"), outcome="gain")


def test_observed_says_the_nested_r2_first():
    assert title(drawn("observed")) == (
        "Nested predictions of gain have an R² of 0.18, against 0.42 of leave-one-out ones"
    )
    worse = observed_chart(observed_rows(), outcome="gain", r2=R2 | {"nested": -0.05})
    assert title(worse) == "Nested predictions of gain are no better than its mean: R² −0.05"
    alone = observed_rows().filter(pl.col("validation") == "leave-one-out")
    assert title(observed_chart(alone, outcome="gain", r2=R2)) == (
        "Leave-one-out predictions of gain have an R² of 0.42"
    )
    assert title(valid(observed_chart(alone[:1], outcome="gain"))) == "Observed against predicted gain of 1 dialogue"


def test_the_legend_of_observed_gives_each_r2():
    assert {"leave-one-out, R² 0.42", "nested, R² 0.18"} <= set(written(picture_of("observed")))


def test_the_band_around_the_diagonal_holds_the_share_of_nested_errors_that_it_says():
    errors = [0.01 * place for place in range(1, 21)]
    rows = frame([(str(place), 0.5, 0.5 + error, "nested") for place, error in enumerate(errors)], OBSERVED)
    assert "95 % of nested predictions lie within ±0.19" in subtitle(observed_chart(rows, outcome="gain"))
    assert "50 % of nested predictions lie within ±0.1" in subtitle(observed_chart(rows, outcome="gain", level=0.5))


def test_there_is_no_band_where_it_would_be_as_wide_as_the_greatest_error():
    assert "lie within" not in subtitle(observed_chart(observed_rows(19), outcome="gain"))
    assert "lie within" in subtitle(observed_chart(observed_rows(20), outcome="gain"))


def test_predictions_far_off_stand_on_the_edge_with_their_value_and_undefined_ones_are_counted():
    chart = drawn("observed, far off")
    assert "arrows: 2 predictions far beyond the plot" in subtitle(chart)
    assert "1 prediction undefined" in subtitle(chart)
    assert {"−14", "20"} <= set(written(picture_of("observed, far off")))
    table = chart_table(chart)
    assert table["at"].min() == pytest.approx(0.1 - 0.4)
    assert table["at"].max() == pytest.approx(0.9 + 0.4)


numbers = st.floats(-1e6, 1e6, allow_nan=False)


@FEW
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_both_axes_of_observed_are_the_same_and_hold_every_mark(pairs):
    rows = frame([(str(place), *pair, "nested") for place, pair in enumerate(pairs)], OBSERVED)
    chart = observed_chart(rows, outcome="gain")
    spec = pictures.spec_of(chart)
    (low, high), *others = [*domains(spec["layer"], "x"), *domains(spec["layer"], "y")]
    assert others == [[low, high]]
    assert low < high
    held = chart_table(chart).select("at", "observed").to_numpy()
    assert (held >= low - 1e-6).all()
    assert (held <= high + 1e-6).all()


def test_terms_stand_in_the_order_of_how_often_they_are_chosen_and_at_most_twenty_are_shown():
    rows = coefficient_rows(30).sample(fraction=1.0, shuffle=True, seed=1)
    chart = coefficient_chart(rows, outcome="gain")
    shown = chart_table(chart).filter("shown")
    assert shown["selected"].to_list() == pytest.approx(sorted(rows["selected"], reverse=True)[:20])
    assert "20 of 30 terms shown" in subtitle(chart)
    assert sum(text.startswith("predicted-label") for text in written(picture(pictures.spec_of(chart)))) == 20


def test_a_term_of_the_model_is_shown_however_rarely_it_is_chosen_again():
    rows = coefficient_rows(30, chosen=0).with_columns(chosen=pl.col("selected") == pl.col("selected").min())
    shown = chart_table(coefficient_chart(rows, outcome="gain")).filter("shown")
    assert shown["chosen"].to_list() == [False] * 19 + [True]


def test_coefficients_say_how_many_terms_are_chosen_again():
    assert title(drawn("coefficients")) == (
        "The model of gain holds 3 of 24 terms; all of them are chosen in over half of the replicates"
    )
    rare = coefficient_rows().with_columns(selected=pl.col("selected") - 0.4)
    assert title(coefficient_chart(rare, outcome="gain")).endswith(
        "2 of them are chosen in over half of the replicates"
    )
    never = coefficient_rows().with_columns(selected=pl.lit(0.1))
    assert title(coefficient_chart(never, outcome="gain")).endswith(
        "none of them are chosen in over half of the replicates"
    )
    assert title(coefficient_chart(coefficient_rows(chosen=1), outcome="gain")) == (
        "The model of gain holds predicted-label_00-actual-contradictory alone, chosen in 95 % of replicates"
    )
    assert title(valid(coefficient_chart(coefficient_rows(chosen=0), outcome="gain"))) == (
        "No term is chosen to explain gain"
    )


def test_without_a_bootstrap_there_are_neither_intervals_nor_shares():
    chart = drawn("coefficients, no bootstrap")
    assert title(chart) == "The model of gain holds 3 of 5 terms"
    assert "no intervals" in subtitle(chart)
    assert len(spec_of("coefficients, no bootstrap")["hconcat"]) == 1
    assert len(spec_of("coefficients")["hconcat"]) == 2


def test_the_axis_of_coefficients_holds_0_and_every_interval():
    rows = coefficient_rows(3).with_columns(coefficient=2.0, low=1.5, high=2.5)
    low, high = next(domains(pictures.spec_of(coefficient_chart(rows, outcome="gain")), "x"))
    assert low < 0
    assert high > 2.5


def test_the_dearest_confusion_is_in_the_title():
    dear = frame([("a", "b", 5, 0.031), ("b", "a", 90, -0.01)], PRICES)
    assert title(price_chart(dear, outcome="gain")) == (
        "Putting right half of the b taken for a would raise the predicted gain most, by 0.031"
    )
    assert title(price_chart(dear[1:], outcome="gain")) == (
        "Putting right half of the a taken for b would lower the predicted gain by 0.010"
    )
    tied = dear.with_columns(change=pl.lit(0.02))
    assert title(price_chart(tied, outcome="gain")) == (
        "Putting right half of the a taken for b would raise the predicted gain as much as any, by 0.020"
    )
    nothing = dear.with_columns(change=pl.lit(0.0))
    assert title(valid(price_chart(nothing, outcome="gain"))) == "No confusion changes the predicted gain"
    assert title(price_chart(dear.with_columns(change=None), outcome="gain")) == "No confusion has a price in gain"


def test_cells_say_the_change_with_its_sign_and_the_count():
    dear = frame([("a", "b", 5, 0.031), ("b", "a", 1090, -0.0101), ("a", "a", 77, 0.5)], PRICES)
    words = written(picture(pictures.spec_of(price_chart(dear, outcome="gain"))))
    assert {"+0.031", "5", "−0.010", "1,090"} <= set(words)
    assert "77" not in words


def test_right_answers_are_hatched_and_have_no_price():
    rows = frame([("a", "a", 77, 0.5), ("a", "b", 5, 0.031)], PRICES)
    table = chart_table(price_chart(rows, outcome="gain"))
    assert table["shown"].to_list() == [False, True]
    assert "n = 5 confusions" in subtitle(price_chart(rows, outcome="gain"))


def test_labels_keep_the_order_asked_for_and_must_all_be_there():
    spec = spec_of("prices")
    assert next(domains(spec, "x")) == next(domains(spec, "y")) == LABELS
    assert next(domains(pictures.spec_of(price_chart(price_rows(), outcome="gain")), "x")) == sorted(LABELS)
    with pytest.raises(UsageError, match='"pc_incomplete" is not among them'):
        price_chart(price_rows(), outcome="gain", labels=["correct", "contradictory", "irrelevant", "non_content"])
    with pytest.raises(UsageError, match="leave rejections out"):
        price_chart(price_rows().with_columns(predicted=None), outcome="gain")


def test_of_many_labels_those_of_the_dearest_confusions_are_shown_with_triangles():
    rows = price_rows([f"intent {place:02}" for place in range(40)])
    chart = price_chart(rows, outcome="gain")
    labels = next(domains(pictures.spec_of(chart), "x"))
    assert len(labels) == 30
    dearest = rows.sort(pl.col("change").abs(), descending=True).row(0, named=True)
    assert {dearest["predicted"], dearest["actual"]} <= set(labels)
    assert "30 of 40 labels" in subtitle(chart)
    assert "triangles: up" in subtitle(chart)


def test_sets_name_the_highest_nested_r2():
    assert title(drawn("sets")) == "conf has the highest nested R², 0.22"
    poor = sets_rows(conf=(0.3, 0.1, -0.1), full=(0.6, 0.2, -3.0))
    assert title(sets_chart(poor)) == ("No feature set is better than the mean outcome; highest nested R²: conf, −0.10")
    assert title(sets_chart(sets_rows(a=(1, 1, 0.5), b=(1, 1, 0.5)))).endswith("0.50, which others share")
    assert title(sets_chart(sets_rows(a=(0.4, 0.3, 0.2)))) == "a: nested R² 0.20"
    assert title(valid(sets_chart(sets_rows(a=(0.4, 0.3, None))))) == "Nested R² is undefined for every feature set"


def test_bars_far_below_0_are_cut_off_with_an_arrow_and_the_number():
    chart = drawn("sets")
    assert chart_table(chart)["stop"].min() == -0.5
    assert chart_table(chart)["r2"].min() == -2.9
    assert "arrow: bar cut off at −0.5" in subtitle(chart)
    assert "−2.90" in written(picture_of("sets"))
    low, high = next(domains(spec_of("sets"), "x"))
    assert low < -0.5
    assert high > 0.62
    assert "cut off" not in subtitle(sets_chart(sets_rows(a=(0.4, 0.3, -0.4))))


def test_sets_stand_in_the_order_given_and_an_undefined_r2_says_so():
    chart = sets_chart(sets_rows(zebra=(0.1, None, -0.1), ape=(0.2, 0.1, 0.0)))
    spec = pictures.spec_of(chart)
    assert next(domains(spec, "y")) == ["zebra", "ape"]
    assert "undefined" in written(picture(spec))


def test_candidates_stand_from_the_highest_prediction_to_the_refused():
    chart = predicted_chart(pl.concat([REFUSED, predicted_rows(3)]), outcome="gain", naive=NAIVE)
    spec = pictures.spec_of(chart)
    assert next(domains(spec, "y")) == ["candidate 02", "candidate 01", "candidate 00", "baseline", LONG]
    assert title(chart) == "candidate 02 has the highest predicted gain, 0.51; the naive guess is 0.61"
    assert "2 refused as unlike the training data" in subtitle(chart)
    assert {"0.510 (0.460 to 0.610)", "refused: recall.correct is 0.21"} <= set(written(picture(spec)))


def test_a_long_reason_is_cut_in_the_plot_and_whole_in_the_description():
    chart = drawn("predicted, refused")
    reason = REFUSED["refused"][0]
    assert reason in spec_of("predicted, refused")["description"]
    assert not any(reason in text for text in written(picture_of("predicted, refused")))
    assert title(chart) == "Too unlike the training data to predict gain: all 2 systems"


def test_titles_of_one_candidate_of_twins_and_of_none():
    one = predicted_chart(predicted_rows(1), outcome="gain", naive=Figure(math.nan))
    assert title(one) == "candidate 00 has a predicted gain of 0.5"
    twins = predicted_rows(2).with_columns(predicted=pl.lit(0.6))
    assert title(predicted_chart(twins, outcome="gain", naive=NAIVE)).startswith(
        "candidate 00 has no lower predicted gain than any other, 0.6"
    )
    lost = predicted_rows(2).with_columns(predicted=None)
    assert title(valid(predicted_chart(lost, outcome="gain", naive=NAIVE))) == "There is no prediction of gain"


def test_what_is_predicted_beyond_the_training_data_is_hollow():
    rows = predicted_rows(2).with_columns(refused=pl.Series([None, "recall.correct is 0.1"]))
    chart = predicted_chart(rows, outcome="gain", naive=NAIVE)
    assert chart_table(chart)["hollow"].to_list() == [True, False]
    assert "hollow: beyond the training data" in subtitle(valid(chart))


@FEW
@given(st.lists(numbers, min_size=1, max_size=6), numbers)
def test_the_axis_of_predictions_holds_all_intervals_and_the_naive_guess(values, guess):
    rows = frame([(str(place), one, one - 1, one + 2, None) for place, one in enumerate(values)], PREDICTED)
    chart = predicted_chart(rows, outcome="gain", naive=Figure(guess, guess - 3, guess + 3))
    low, high = next(domains(pictures.spec_of(chart), "x"))
    assert low <= min(min(values) - 1, guess - 3)
    assert high >= max(max(values) + 2, guess + 3)


@pytest.mark.parametrize(("plot", "written"), [(276, False), (460, True)])
def test_a_narrow_figure_of_prices_has_triangles_where_numbers_would_overlap(plot, written):
    with drawn_in(plot):
        spec = pictures.spec_of(price_chart(price_rows(), outcome="gain", labels=LABELS))
    assert any(one["mark"]["type"] == "text" for one in spec["layer"]) is written
    assert spec["width"]["step"] * len(LABELS) < plot
