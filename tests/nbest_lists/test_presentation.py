import html
import json
import math

import polars as pl
import pytest

from demur.core.show.html import notebook
from demur.core.show.page import presentation_page
from demur.core.show.presentation import plain_mark
from demur.core.show.results import plain
from demur.lab.nbest_experiments import LengthSweep, of_lengths
from demur.nbest_lists.evaluate import compare_lists, evaluate_nbest
from demur.nbest_lists.presentation import AS_PERCENT, NAMES, nbest_sentences, of_nbest, of_nbest_comparison
from demur.nbest_lists.recalibrate import fit_items, recalibrated_items
from demur.nbest_lists.reward import of_smooths, oracle_curves
from demur.nbest_lists.table import NBestReading, nbest


def row(name, reference, *hypotheses, system="guide", **others):
    listed = [{"items": list(items), "confidence": confidence} for items, confidence in hypotheses]
    return {"id": name, "system": system, "reference": list(reference), "hypotheses": listed, **others}


def lists(rows, by=None, **options):
    reading = NBestReading(keep=(by,) if by else ())
    return evaluate_nbest(nbest(rows, reading=reading), by=by, replicates=50, **options)


def half_right(confidence, n=40, system="guide"):
    """Every second utterance is understood, all with the same confidence."""
    return [row(str(k), "a", ("a" if k % 2 else "b", confidence), system=system) for k in range(n)]


def test_sentences_say_what_the_numbers_say():
    """Half the items are missing at 6.908 each; b at .5 and a at .5 cost log 2 each."""
    told = nbest_sentences(lists(half_right(0.5))[0])
    ice = (0.5 * 6.907755 + math.log(2)) / 1
    assert told[0].startswith(f"guide: ICE {ice:.4g} (")
    assert told[0].endswith("on 40 utterances with 40 items meant; 50 % of these are at the floor of 0.001.")
    share = 100 * 0.5 * 6.907755 / ice
    assert told[1] == f"{share:.1f} % of it are items that no hypothesis holds; only better or longer lists help."
    assert told[2].startswith("Confidences are about right: recalibrating could win back 0 (")
    assert told[3] == (
        "The top hypothesis makes 50 errors per 100 items meant, the best of each list 50: no other choice within the "
        "lists would help."
    )
    assert told[4] == "On average 50 % of the mass belongs to no hypothesis."


def test_a_negative_gain_is_never_printed():
    """The map takes confidences of 1 to the share that is right, and the right ones pay more than the floor asks."""
    rows = [row(str(k), "a", ("a" if k > 1 else "b", 1.0)) for k in range(10)]
    found = {floor: nbest_sentences(lists(rows, floor=floor)[0])[2] for floor in (0.2, 0.1, 0.01)}
    assert found[0.2] == (
        "At the floor of 0.2 the split does not say whether confidences are off: "
        "the map that it compares with ignores the floor."
    )
    assert found[0.1] == "Confidences are about right: recalibrating could win nothing back."
    assert "could win back 0.42" in found[0.01]


def test_confidences_that_are_off_are_called_so_only_where_that_is_shown():
    off = nbest_sentences(lists([row(str(k), "a", ("a" if k % 2 else "ab", 0.9)) for k in range(60)])[0])
    assert any(sentence.startswith("Confidences are off: recalibrating could win back 0.") for sentence in off)
    two = [row("1", "a", ("a", 0.9)), row("2", "a", ("a", 0.2))]
    unsure = nbest_sentences(lists(two)[0])
    assert any(sentence.startswith("Confidences look off, but that is not shown:") for sentence in unsure)
    one = nbest_sentences(lists(two[:1])[0])
    assert "Confidences look off, but that is not shown: recalibrating could win back 0.1054 (no interval)." in one


def test_one_is_told_as_one_and_perfect_lists_without_blame():
    told = nbest_sentences(lists([row("1", "a", ("a", 1.0))])[0])
    assert told == [
        "guide: ICE 0 (no interval) on 1 utterance with 1 item meant; 0 % of these are at the floor of 0.001.",
        "The top hypothesis makes 0 errors per 100 items meant, the best of each list 0.",
    ]


def test_lists_that_hold_all_that_was_meant_are_not_told_to_grow():
    shown = nbest_sentences(lists([row("1", "a", ("a", 0.7), ("b", 0.3)), row("2", "a", ("b", 0.6), ("a", 0.4))])[0])
    assert shown[1].startswith("Confidences look off")
    assert not any("only better or longer lists help" in sentence for sentence in shown)


def test_errors_may_outnumber_items():
    told = nbest_sentences(lists([row("1", "a", ("bcd", 0.6), ("ab", 0.4)), row("2", "", ("b", 1.0))])[0])
    assert (
        "The top hypothesis makes 400 errors per 100 items meant, the best of each list 200: choosing better within "
        "the lists could correct 50 % of them."
    ) in told


def test_an_undefined_ice_is_said_with_its_reason_in_sentence_table_and_page():
    shown = of_nbest(lists([row("1", "", ("a", 0.5)), row("2", "")]))
    assert shown.sentences == ("guide: the ICE of 2 utterances is undefined (no reference holds any item).",)
    cells = dict(row for row in shown.tables[0].rows)
    assert cells["ICE"] == "undefined (no reference holds any item)"
    assert cells[NAMES["precision"]].startswith("0.0 %")
    assert "undefined (no reference holds any item)" in presentation_page(shown)
    assert of_nbest(lists([row("1", "")])).figures == ()


def test_every_measure_has_a_row_and_rates_are_in_percent():
    shown = of_nbest(lists([*half_right(0.6), row("x", "ab", ("ab", 0.5), ("a", 0.3))]))
    (names, cells) = zip(*shown.tables[0].rows, strict=True)
    assert names == tuple(NAMES.values())
    for key, cell in zip(NAMES, cells, strict=True):
        assert ("%" in cell) == (key in AS_PERCENT), key
    assert set(shown.document["measures"]) | {"ice_floored_share"} == set(NAMES)


def test_the_parts_of_the_ice_are_tabled_and_sum_up():
    table = of_nbest(lists(half_right(0.8))).tables[1]
    ice, missing, miscalibration, discrimination, uncertainty = (float(cell.split()[0]) for cell in table.rows[0][1:])
    assert table.columns[1:] == ("ICE", "= missing", "+ miscalibration", "- discrimination", "+ uncertainty")
    assert ice == pytest.approx(missing + miscalibration - discrimination + uncertainty, abs=2e-4)


def test_slices_are_tabled_beside_the_whole_but_only_the_whole_is_told():
    rows = [one | {"noise": "low" if k % 3 else "high"} for k, one in enumerate(half_right(0.6))]
    shown = of_nbest(lists(rows, by="noise"))
    assert shown.tables[0].columns == ("measure", "guide", "guide [noise=high]", "guide [noise=low]")
    assert sum(sentence.startswith("guide") for sentence in shown.sentences) == 1


def two_systems(n=400):
    """One keeps a short list and is overconfident, the other hedges: WSER and ICE disagree about them."""
    bold = [row(str(k), "a", ("a" if k % 4 else "b", 1.0), system="bold") for k in range(n)]
    careful = [
        row(str(k), "a", ("a" if k % 4 else "b", 0.6), ("b" if k % 4 else "a", 0.4), system="careful") for k in range(n)
    ]
    return nbest([*bold, *careful])


def test_a_comparison_names_the_better_system_and_the_measures_that_object():
    """WSER .25 of bold and .45 of careful; ICE of bold 1/4 x 2 x 6.9, of careful 3/4 x 2 x .51 + 1/4 x 2 x .92."""
    shown = of_nbest_comparison(compare_lists(two_systems(), replicates=50))
    value = 0.5 * 6.907755 - (1.5 * math.log(1 / 0.6) + 0.5 * math.log(1 / 0.4))
    assert shown.sentences[0].startswith(
        f"careful is better than bold. ICE of bold less that of careful: +{value:.4g} ("
    )
    assert shown.sentences[0].endswith("p < 0.001.")
    assert shown.sentences[1] == "WSER says the opposite."
    table = {cells[0]: cells for cells in shown.tables[0].rows}
    assert table["WSER (points)"][1] == "-20.0"
    assert table["WSER (points)"][4] == "bold"
    assert table["ICE"][4] == "careful"
    assert shown.tables[0].title == "bold less careful"


def test_equal_systems_show_no_difference():
    rows = [*half_right(0.6, system="a"), *half_right(0.6, system="b")]
    shown = of_nbest_comparison(compare_lists(nbest(rows), replicates=50))
    assert shown.sentences == ("a and b: no significant difference. ICE of a less that of b: +0 (0 to 0), p = 1.",)


def test_a_difference_that_cannot_be_tested_is_called_so():
    rows = [row("1", "a", ("a", 0.5), system="a"), row("1", "a", ("a", 0.9), system="b")]
    shown = of_nbest_comparison(compare_lists(nbest(rows), replicates=50))
    assert shown.sentences == ("a and b: no significant difference. ICE of a less that of b: +0.5878, not tested.",)
    assert "nan" not in shown.markdown()


def test_what_recalibrating_did_is_told_and_tabled_in_points():
    given = nbest(half_right(0.9))
    change = recalibrated_items(given, fit_items(nbest(half_right(0.9, n=20))))
    found = evaluate_nbest(given, replicates=50)
    found.recalibrated = (change,)
    shown = of_nbest(found)
    assert (
        "guide: recalibrated on 20 items of another file, the ICE goes from 4.658 to 4.147; change -0.5108"
        in (shown.sentences[-1])
    )
    table = next(table for table in shown.tables if table.title == "guide recalibrated")
    rows = {cells[0]: cells[1:] for cells in table.rows}
    assert rows["weighted recall"][:2] == ("45.0 %", "25.0 %")
    assert rows["weighted recall"][2].startswith("-20.0 (")
    assert rows["weighted recall"][2].endswith(" points")
    assert rows["ICE"][2].startswith("-0.5108 (")


def test_recalibrating_lists_without_meaning_says_so_without_numbers():
    given = nbest([row("1", "", ("a", 0.5)), row("2", "", ("a", 0.5))])
    change = recalibrated_items(given, fit_items(nbest(half_right(0.9))))
    found = evaluate_nbest(given, replicates=50)
    found.recalibrated = (change,)
    shown = of_nbest(found)
    assert shown.sentences[-1] == "guide: recalibrated on 40 items of another file; the ICE is undefined."
    assert "nan" not in shown.markdown()
    json.dumps(plain(shown.document), allow_nan=False)


NASTY = '<script>alert("1")</script> & | co'


def test_markup_in_names_is_escaped_wherever_they_are_shown():
    rows = [*half_right(0.6, system=NASTY), *half_right(0.7, system="plain")]
    evaluations = lists(rows)
    comparison = compare_lists(nbest(rows), replicates=50)
    pages = [
        evaluations._repr_html_(),
        evaluations[0]._repr_html_(),
        comparison._repr_html_(),
        comparison.pairs[0]._repr_html_(),
        oracle_curves(evaluations)._repr_html_(),
        presentation_page(of_nbest(evaluations)),
        presentation_page(of_nbest_comparison(comparison)),
    ]
    for page in pages:
        assert "<script>alert" not in page
        assert html.escape(NASTY) in page or html.escape(NASTY, quote=False) in page
    assert plain_mark(NASTY) in of_nbest(evaluations).markdown()


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_figures_say_the_level_of_their_intervals(level):
    evaluations = lists([*half_right(0.6, system="a"), *half_right(0.7, system="b")], level=level)
    comparison = compare_lists(two_systems(), replicates=50, level=level)
    for chart in (evaluations.chart(), evaluations[0].chart(), comparison.chart(), comparison.pairs[0].chart()):
        subtitle = " ".join(chart.to_dict()["title"]["subtitle"]).replace("\N{NO-BREAK SPACE}", " ")
        assert f"{100 * level:g} % interval" in subtitle
    assert f"{100 * level:g} % intervals" in of_nbest(evaluations).tables[0].title


def test_every_figure_draws():
    rows = [one | {"noise": "low" if k % 3 else "high"} for k, one in enumerate(half_right(0.6))]
    for shown in (
        of_nbest(lists(rows, by="noise")),
        of_nbest_comparison(compare_lists(two_systems(), replicates=50)),
        of_smooths(oracle_curves(lists(rows))),
    ):
        assert shown.figures
        for draw in shown.figures:
            assert draw().to_dict()
        assert notebook(shown)
    assert all(draw().to_dict() for draw in of_nbest(lists([row("1", "a"), row("2", "a")])).figures)


def test_curves_are_tabled_at_the_same_places():
    rows = [row(f"{s}{k}", "a", ("a", k / 10), system=s, dialogue=f"{s}{k}") for s in "xy" for k in range(2, 9)]
    rows.append(row("z", "a", system="y", dialogue="z"))
    (table,) = of_smooths(oracle_curves(lists(rows))).tables
    assert table.columns == ("oracle error", "x", "y")
    assert [one[0] for one in table.rows] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [one[1] == "–" for one in table.rows] == [False, True, True, True, True, True]
    assert all(" ± " in one[2] for one in table.rows)


def sweep(values):
    """A sweep over conditions of which each measure takes these values at 1 and at 5 sentences."""
    rows = [
        {"condition": condition, "kept": kept, "measure": measure, "value": value, "low": None, "high": None}
        for measure, conditions in values.items()
        for condition, ends in conditions.items()
        for kept, value in zip((1, 5), ends, strict=True)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64})
    return LengthSweep(frame, "infev", "snr_level", 0.95, 0.001)


def test_a_sweep_is_told_by_its_ends_in_all_conditions():
    shown = of_lengths(
        sweep(
            {
                "ice": {"low": (2.0, 1.0), "high": (3.0, 2.5)},
                "wser": {"low": (0.1, 0.2), "high": (0.3, 0.4)},
                "oracle": {"low": (0.1, 0.1), "high": (0.2, 0.2)},
                "nce": {"low": (0.1, 0.3), "high": (0.3, 0.1)},
            }
        )
    )
    assert shown.sentences == (
        "From 1 to 5 sentences ICE gets better.",
        "From 1 to 5 sentences WSER gets worse.",
        "From 1 to 5 sentences oracle error (ORA) stays as it is.",
        "From 1 to 5 sentences NCE gets better in 1 of 2 conditions, worse in 1.",
    )
    assert shown.tables[0].columns == ("snr level", "1", "5")
    assert shown.tables[1].rows == (("low", "10 %", "20 %"), ("high", "30 %", "40 %"))
    assert all(draw().to_dict() for draw in shown.figures)


def test_a_sweep_that_is_undefined_somewhere_is_not_called_worse():
    ends = {name: {"x": (math.nan, 1.0)} for name in ("ice", "wser", "oracle", "nce")}
    assert of_lengths(sweep(ends)).sentences[0] == (
        "From 1 to 5 sentences ICE cannot be followed: somewhere it is undefined."
    )
