import numpy as np
import pytest

import demur
from demur.core.show.charts import chart_table
from demur.core.show.html import frame_table
from demur.core.show.results import threshold_text
from demur.core.show.terminal import column_widths, fit_table
from demur.core.stats.resampling import Rows
from demur.returns import words
from demur.returns.comparison import verdicts
from demur.returns.evaluate import evaluate, returns_measures
from demur.returns.examples import ValidatedTable
from demur.returns.explorer import explorer_document, explorer_html
from demur.returns.presentation import (
    count_table,
    measure_table,
    of_choice,
    of_comparison,
    of_scores,
    of_validation,
    one_threshold_table,
    path_table,
)
from demur.returns.table import Reading, responses
from demur.returns.tally import ConfidenceGrid
from demur.returns.threshold import short_thresholds, threshold_by_nonreturn
from reference.answers import answers, table
from reference.tallies import tally_of


def title(chart):
    return " ".join(chart.to_dict()["title"]["text"]).replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def sliced(simulated):
    rows = simulated("one", n=200)
    parts = ["hard" if row["prediction"] == "no" else row["part"] for row in rows]
    parts[:5] = ["tiny"] * 5
    rows = [{**row, "part": part} for row, part in zip(rows, parts, strict=True)]
    return evaluate(responses(rows, reading=Reading(keep=("part",))), by="part", replicates=20)


def test_the_main_figure_of_a_comparison_is_titled_by_its_verdict(comparison):
    assert title(of_comparison(comparison).figures[0]()) == verdicts.comparison_title(comparison)


def test_the_main_figure_of_one_sliced_system_draws_its_slices(sliced):
    drawn = chart_table(of_scores(sliced).figures[0]())["system"].unique(maintain_order=True).to_list()
    assert drawn == ["one", "one [part=even]", "one [part=hard]", "one [part=odd]", "one [part=tiny]"]


def test_several_sliced_systems_are_drawn_together_then_each_with_its_slices(simulated):
    rows = [*simulated("a", n=60), *simulated("b", n=60, seed=1)]
    several = evaluate(responses(rows, reading=Reading(keep=("part",))), by="part", replicates=20)
    drawn = [set(chart_table(figure())["system"]) for figure in of_scores(several).figures[:3]]
    slices = [{name, f"{name} [part=even]", f"{name} [part=odd]"} for name in "ab"]
    assert drawn == [{"a", "b"}, *slices]


def test_the_worst_and_the_best_slice_with_enough_inputs_are_named(sliced):
    said = of_scores(sliced).sentences[-1]
    assert said.startswith("Of 4 slices of one, part=hard (80.3 %; ")
    assert "has the most errors at 20 % non-return, part=even (0 %; " in said
    assert said.endswith("the fewest of those with at least 30 inputs and a defined rate.")
    assert "tiny" not in said


def test_slices_that_do_alike_are_not_ranked(simulated):
    rows = simulated("flat", n=80, accuracy=1.0)
    alike = evaluate(responses(rows, reading=Reading(keep=("part",))), by="part", replicates=20)
    assert not [sentence for sentence in of_scores(alike).sentences if "slices" in sentence]


def test_in_brief_a_table_has_a_row_per_system_with_the_measures_asked_for_most(evaluations):
    whole = measure_table(evaluations)
    brief = whole.brief
    assert brief.columns == (
        "system",
        "inputs",
        "error, all returned",
        "error at 20 % non-return",
        "non-return for 5 % error",
        "AUGRC",
        "ranking skill",
    )
    assert [row[0] for row in brief.rows] == ["base", "better", "shy"]
    assert brief.rows[0][2] == f"{100 * evaluations[0].figures['forced_error'].value:.1f} %"
    assert not whole.crowded


def test_rows_of_one_system_s_slices_are_named_by_the_values(sliced):
    for shown in (measure_table(sliced).brief, count_table(sliced)):
        assert shown.columns[0] == "part"
        assert [row[0] for row in shown.rows] == ["all inputs", "even", "hard", "odd", "tiny"]
    assert measure_table(sliced).crowded


def test_a_range_is_named_as_a_mean_in_tables(tables):
    one = evaluate(responses(tables["base"]), measures=returns_measures(at=(0.1, 0.3)), replicates=20)
    assert "mean error over 10 % to 30 % non-return" in [row[0] for row in measure_table(one).rows]


def test_curves_that_join_confidences_say_how_exact_they_are():
    tally = tally_of(Rows.of([0.125, 0.25, 0.375, 0.5], [True, False, False, True]))
    part = tally_of(Rows.of([0.125, 0.25], [True, False]), part="noise=some")
    joined = evaluate([tally.joined(ConfidenceGrid((2.0,))), part.joined(ConfidenceGrid((2.0,)))], replicates=20)
    assert of_scores(joined).notes == (
        "guide: confidences up to 0.25 apart were joined; at its 2 cutoffs the curve is exact, between them it is off "
        "by at most 75 % in non-return and 50 % in error",
        "the curves of slices are off by at most 100 % in non-return and 50 % in error",
    )
    assert of_scores(evaluate([tally], replicates=20)).notes == ()


def test_a_threshold_is_the_same_text_wherever_it_is_printed():
    """A grid of three decimals, on which the exact digits of a float lie below the confidence for 0.606."""
    rows = [
        {
            "id": k,
            "target": "yes",
            "prediction": "yes" if k % 3 != 1 else "no",
            "confidence": (606 - 80 + k) / 1000,
            "part": k % 2,
        }
        for k in range(400)
    ]
    whole, *parts = evaluate(responses(rows, reading=Reading(keep=("part",))), by="part", replicates=20)
    choice = threshold_by_nonreturn(whole.sample, 0.2, name=whole.name)
    assert (choice.threshold, choice.printed_threshold) == (0.606, "0.606")
    shown = of_choice(choice, whole)
    assert "at least 0.606 " in shown.sentences[0]
    assert {row[3] for row in one_threshold_table([whole, *parts])[0].rows} == {"0.606"}
    assert "<td>0.606</td>" in explorer_html(explorer_document([whole]), picture=False)
    printed = {threshold_text(one) for one in short_thresholds(whole.curve, whole.curve.threshold[:-1])}
    assert "0.606" in printed
    for figure in (*of_scores([whole]).figures[:3], *shown.figures):
        chart = figure()
        cells = frame_table(chart_table(chart), "data")
        place = cells.columns.index("threshold")
        assert {row[place] for row in cells.rows} <= {*printed, "–"}
        said = {row.get("returned if") or row.get("cutoff") for row in inner_rows(chart.to_dict(validate=False))} - {
            None
        }
        assert said <= {*(f"confidence ≥ {one}" for one in printed), "nothing returned"}


def inner_rows(part):
    """All rows of data in a spec, wherever they stand."""
    if isinstance(part, dict):
        return [row for value in part.values() for row in inner_rows(value)] + [part]
    return [row for one in part for row in inner_rows(one)] if isinstance(part, list) else []


def sentences_of(confidence, right):
    (one,) = evaluate(responses(answers("guide", confidence, right)), replicates=200)
    return " ".join(words.score_sentences(one))


def test_a_confidence_is_called_a_distance_only_where_it_ranks_significantly_the_wrong_way():
    """Of 40 answers the surer half is wrong more often: clearly, and by a difference that chance often makes."""
    confidence = np.arange(40) / 40
    hint = "is its confidence a distance or an uncertainty?"
    assert hint in sentences_of(confidence, confidence < 0.5)
    slightly = [place % 2 == 0 if place < 20 else place % 3 == 0 for place in range(40)]
    assert hint not in sentences_of(confidence, slightly)
    assert "not significantly better than chance" in sentences_of(confidence, slightly)
    assert hint not in sentences_of([0.1, 0.2, 0.3, 0.9], [True, True, True, False])


def test_a_certainty_that_failed_refutes_calibration_in_words_and_not_by_an_infinite_z():
    found = evaluate(table(answers("guide", [0.0, 0.5, 1.0] * 20, [False, True, False] * 20)), replicates=50)
    row = next(row for row in measure_table(found).rows if row[0].startswith("calibration test"))
    assert row[1] == "refuted: an answer of confidence 0 is right, or one of confidence 1 wrong"


def test_intervals_of_rates_near_the_end_do_not_read_as_certain():
    found = evaluate(table(answers("guide", np.linspace(0, 1, 9000), [True] * 9000)), replicates=50)
    row = next(row for row in measure_table(found).rows if row[0] == "error, all returned")
    assert row[1] == "0.0 % (0.00 to 0.04)"


def test_validate_keeps_words_and_numbers_whole_in_80_columns(simulated):
    rows = [{**row, "trial": 1} for k in range(7) for row in simulated(f"org/a-model-of-a-long-name-{k}", n=30, seed=k)]
    (table,) = of_validation(ValidatedTable(responses(rows))).tables
    fitting = fit_table(table, 80)
    assert None not in column_widths(fitting, 80)
    assert fitting.columns == table.columns


def test_validate_says_only_of_a_few_systems_how_many_confidences_each_has(simulated):
    few, many = (
        of_validation(ValidatedTable(responses([row for k in range(n) for row in simulated(f"s{k}", n=200, seed=k)])))
        for n in (5, 6)
    )
    assert (len(few.sentences), len(many.sentences)) == (6, 1)


def test_validate_gives_no_range_of_confidences_that_a_log_does_not_have():
    rows = [{"target": "a", "prediction": "a"}, {"target": "a", "prediction": "b"}]
    shown = of_validation(ValidatedTable(responses(rows)))
    assert (len(shown.sentences), shown.tables[0].rows[0][-1]) == (1, "–")


def test_of_many_systems_score_says_two_sentences_and_leaves_the_rest_to_the_table(simulated):
    systems = [f"s{k}" for k in range(6)]
    several = evaluate(responses([row for k, name in enumerate(systems) for row in simulated(name, n=60, seed=k)]))
    shown = of_scores(several)
    areas = sorted((one.figures["augrc"].value, one.system) for one in several)
    assert len(shown.sentences) == 2
    assert all(f"{value:.4f} ({name})" in shown.sentences[0] for value, name in (areas[0], areas[-1]))
    assert [row[0] for row in shown.tables[0].brief.rows] == systems
    assert len(of_scores(several[:5]).sentences) == 15


def test_of_many_silent_systems_score_says_that_there_is_no_area():
    rows = [{"system": f"s{k}", "target": "a", "prediction": None} for k in range(6)]
    assert len(of_scores(evaluate(responses(rows))).sentences) == 2


def test_score_shows_names_without_what_all_share_and_keeps_them_whole_in_its_document(simulated):
    names = ["runs/mmlu_llama-3-70b_cot", "runs/mmlu_gemma-2_cot"]
    rows = [row for k, name in enumerate(names) for row in simulated(name, n=60, seed=k)]
    shown = of_scores(evaluate(responses(rows, reading=Reading(keep=("part",))), by="part", replicates=20))
    assert shown.notes[0] == 'names share the prefix "runs/mmlu_" and the suffix "_cot"'
    assert shown.sentences[0].startswith("llama-3-70b: ")
    assert [row[0] for row in shown.tables[-1].rows][::3] == ["llama-3-70b", "gemma-2"]
    assert set(chart_table(shown.figures[0]())["system"]) == {"llama-3-70b", "gemma-2"}
    assert {one["system"] for one in shown.document["systems"]} == set(names)


def test_score_of_one_system_shows_its_name_whole(simulated):
    shown = of_scores(evaluate(responses(simulated("long" * 20, n=60)), replicates=20))
    assert shown.sentences[0].startswith(f"{'long' * 20}: ")


def test_the_row_of_a_cost_ratio_of_1_is_what_is_recommended():
    given = [(0.1, False), (0.2, True), (0.9, True)]
    rows = [{"id": confidence, "confidence": confidence, "correct": correct} for confidence, correct in given]
    tabled = path_table(demur.threshold(rows, cost_ratio=1)).rows
    assert [row[:3] for row in tabled] == [("1", "0", "0.0 %"), ("0 to below 1", "0.2", "33.3 %")]
    assert [row[0] for row in path_table(demur.threshold(rows, cost_ratio=0.5)).rows] == ["0 to 1"]


def test_inputs_and_alternatives_are_no_slices():
    rows = [{"id": 1, "input": "q", "target": "a", "prediction": "a", "nbest": [{"label": "a", "p": 1}], "domain": "d"}]
    assert demur.validate(rows).slices == ["domain"]
