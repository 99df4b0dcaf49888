import inspect
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import demur
from commands import log
from demur.lab import tutor
from demur.outcome.table import dialogues, read_dialogues
from nbest_lists.nbest_logs import log as lists


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [log(tmp_path / "good.jsonl", n=300, skill=3, level=2), log(tmp_path / "poor.jsonl", n=300, skill=0.5)]


def test_files_frames_and_rows_give_the_same_scores(paths: list[Path]) -> None:
    frame = pl.read_ndjson(paths[0])
    scores = [
        demur.score(one)[0].figures for one in (paths[0], frame, frame.to_pandas(), frame.to_arrow(), frame.to_dicts())
    ]
    assert all(figures == scores[0] for figures in scores)


def test_a_dict_names_the_systems(paths: list[Path]) -> None:
    frames = [pl.read_ndjson(path) for path in paths]
    comparison = demur.compare({"new": paths[0], "old": frames[1]})
    assert (comparison.pairs[0].a, comparison.pairs[0].b) == ("new", "old")
    assert comparison.pairs[0].verdict == "a dominates"
    assert demur.compare(*frames).pairs[0].a == "system 1"


def test_an_option_with_a_slip_names_the_nearest(paths: list[Path]) -> None:
    with pytest.raises(demur.UsageError, match=r'no option "levle" here\. Did you mean "level"'):
        demur.score(paths[0], levle=0.9)
    with pytest.raises(demur.UsageError, match="nothing to read"):
        demur.read()
    with pytest.raises(demur.UsageError, match="not both"):
        demur.read(paths[0], reading=demur.Reading(), keep=("x",))


def test_scores_show_themselves_together_and_as_a_table(paths: list[Path]) -> None:
    scores = demur.score(*paths)
    assert len(scores) == 2
    table = scores.frame()
    assert table.filter(system="good", measure="augrc")["value"].item() == scores[0].figures["augrc"].value
    assert "good" in scores._repr_html_()
    assert json.loads(json.dumps(scores.to_dict(), allow_nan=False))["systems"][1]["system"] == "poor"
    assert scores.chart().to_dict()["description"]


def test_classes_show_themselves_together_and_as_a_table(paths: list[Path]) -> None:
    reports = demur.classes(*paths)
    assert set(reports.frame()["class"]) == {"no", "yes"}
    assert "poor" in reports._repr_html_()


def test_a_threshold_is_chosen_by_exactly_one_rule(paths: list[Path]) -> None:
    assert demur.threshold(paths[0], max_nonreturn=0.2).nonreturn <= 0.2
    with pytest.raises(demur.UsageError, match="exactly one"):
        demur.threshold(paths[0], max_nonreturn=0.2, cost_ratio=0.1)
    with pytest.raises(demur.UsageError, match="`delta` goes with a limit"):
        demur.threshold(paths[0], cost_ratio=0.2, delta=0.1)
    with pytest.raises(demur.UsageError, match="belongs to one system"):
        demur.threshold(*paths, max_nonreturn=0.2)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        demur.scores  # noqa: B018
    assert set(dir(demur)) >= {"score", "compare", "threshold", "classes", "read"}


PROMISED = [
    "read",
    "score",
    "merge",
    "watch",
    "compare",
    "threshold",
    "drift",
    "classes",
    "fit_recalibration",
    "apply_recalibration",
    "validate",
    "predictions",
    "augrc_score",
    "aurc_score",
    "e_aurc_score",
    "ranking_skill_score",
    "error_at_nonreturn_score",
    "nonreturn_at_error_score",
    "ErrorReturnDisplay",
    "read_nbest",
    "nbest",
    "compare_nbest",
    "import_dstc",
    "import_slf",
    "fit_outcome",
    "regress",
    "predict_outcome",
    "compare_outcomes",
    "majority_baseline",
    "read_trials",
    "gold",
    "plan_gold",
    "agreement",
    "report",
    "add_runs",
    "runs",
    "remove_runs",
    "new_study",
    "study_status",
    "check_study",
    "export_study",
    "erase_person",
    "demo_study",
    "verify_engine",
    "cite",
    "train",
    "tune",
    "respond",
    "question_pairs",
    "train_grader",
    "grade",
    "save_model",
    "load_model",
    "RelevanceClassifier",
    "Reading",
    "Responses",
    "NBest",
    "NBestReading",
    "Measure",
    "Score",
    "Sweep",
    "DataError",
    "DemurError",
    "UsageError",
    "__version__",
]


def test_every_name_that_was_promised_is_still_public() -> None:
    assert set(PROMISED) <= set(demur.__all__), "a name that goes is deprecated first: docs/compatibility.md"
    assert set(demur.__all__) <= set(PROMISED), "promise a new name here"


@pytest.mark.parametrize("name", demur.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(demur, name)
    assert name in dir(demur)
    assert name == "__version__" or inspect.getdoc(found)


def test_tables_and_lists_of_runs_show_themselves_in_a_few_lines(paths: list[Path], tmp_path: Path) -> None:
    trials = {"performer": ["w", "w", "s", "s"], "role": ["gold", "gold", "system", "system"]}
    trials |= {"x": [0.1, 0.9, 0.1, 0.9], "y": [1, 0, 1, 0]}
    said = pl.DataFrame([{"item": str(k), "judge": judge, "label": "yes"} for k in range(4) for judge in "ab"])
    said.write_csv(tmp_path / "said.csv")
    shown = (
        demur.read(*paths),
        demur.validate(*paths),
        demur.read_nbest(lists(40, seed=0)),
        demur.read_trials(trials, x="x", y="y")[0],
        demur.agreement(tmp_path / "said.csv"),
        demur.runs(store=tmp_path / "store"),
    )
    assert repr(shown[0]) == "<Responses: 600 rows of good, poor>"
    for one in shown:
        assert repr(one).startswith(f"<{type(one).__name__}")
        assert repr(one).endswith(">")
        assert len(repr(one)) < 800, repr(one)


@pytest.fixture
def heard(tmp_path: Path) -> list[Path]:
    """Two tables of lists, with what a recogniser heard."""
    asr = [{"text": "thai food", "logprob": -0.1}, {"text": "bye", "logprob": -2.0}]
    paths = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    references = [row["reference"] for row in lists(60, seed=0)]
    for seed, path in enumerate(paths):
        rows = [
            {**row, "reference": meant, "asr": asr} for row, meant in zip(lists(60, seed=seed), references, strict=True)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths


def _plain(result: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    return plain


def test_lists_come_from_files_frames_rows_and_named_systems(heard: list[Path]) -> None:
    frame = pl.read_ndjson(heard[0])
    figures = [
        demur.nbest(one, replicates=50)[0].figures
        for one in (heard[0], str(heard[0]), frame, frame.to_pandas(), frame.to_arrow(), frame.to_dicts())
    ]
    assert all(one == figures[0] for one in figures)
    pair = demur.compare_nbest({"new": heard[0], "old": frame}, replicates=50).pairs[0]
    assert (pair.a, pair.b, pair.verdict) == ("new", "old", "no significant difference")
    assert [one.system for one in demur.nbest(frame, frame, replicates=50)] == ["system 1", "system 2"]
    table = demur.read_nbest(*heard)
    assert [one.system for one in demur.nbest(table, replicates=50)] == ["one", "two"]


def test_a_callable_parses_what_was_heard(heard: list[Path]) -> None:
    table = demur.read_nbest(
        heard[0], scorer="const", parser=lambda text: "inform(food=f1)" if "thai" in text else "bye()"
    )
    assert sorted({table.sets.items_of(act) for act in table.act}) == [("bye",), ("food=f1", "inform")]
    assert set(table.confidence) == {0.5}


def test_an_option_for_lists_with_a_slip_names_the_nearest(heard: list[Path]) -> None:
    with pytest.raises(demur.UsageError, match=r'no option "normalize" here\. Did you mean "normalise"'):
        demur.nbest(heard[0], normalize=True)
    with pytest.raises(demur.UsageError, match="nothing to read"):
        demur.read_nbest()
    with pytest.raises(demur.UsageError, match="a table that is read already takes no where: give it to read_nbest"):
        demur.nbest(demur.read_nbest(heard[0]), where=(("noise", "loud"),))
    with pytest.raises(demur.UsageError, match='there is no scorer "x"'):
        demur.read_nbest(heard[0], scorer="x")
    with pytest.raises(demur.DataError, match='no column "nosie"'):
        demur.nbest(heard[0], by="nosie")
    with pytest.raises(demur.UsageError, match=r"`floor` takes a number above 0 and below 0\.5, or paper; got 0"):
        demur.nbest(heard[0], floor=0)
    with pytest.raises(demur.UsageError, match="evaluate with compare=True"):
        demur.nbest(heard[0], replicates=50).comparison  # noqa: B018


def test_lists_show_themselves_together_and_as_a_table(heard: list[Path]) -> None:
    evaluations = demur.nbest(*heard, replicates=50)
    table = evaluations.frame()
    assert table.filter(system="one", measure="ice")["value"].item() == evaluations[0].figures["ice"].value
    assert "two" in evaluations._repr_html_()
    assert evaluations.chart().to_dict()["description"]
    dialogues = evaluations[0].per_dialogue()
    assert dialogues.height == 15
    assert {"dialogue", "ice", "wser", "utterances"} <= set(dialogues.columns)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a simulated study of a tutor, and what other interpreters make of its turns."""
    made = tmp_path_factory.mktemp("study")
    turns, held = tutor.study(dialogues=24)
    pl.DataFrame(turns).write_ndjson(made / "tutor.jsonl")
    pl.DataFrame(held).write_csv(made / "gains.csv")
    for name in ("cautious", "majority"):
        pl.DataFrame(tutor.answers(turns, name)).write_ndjson(made / f"{name}.jsonl")
    return made


def test_a_system_unlike_the_training_data_is_refused_in_python_with_the_reason(study: Path) -> None:
    fit = demur.fit_outcome(study / "tutor.jsonl", outcomes=study / "gains.csv", features="conf", replicates=0)
    refused = demur.predict_outcome(fit.model, study / "majority.jsonl")
    assert refused.refused
    assert "too rare in training" in " ".join(refused.outside)
    assert not demur.predict_outcome(fit, study / "majority.jsonl", extrapolate=True).refused


def test_outcomes_come_from_files_frames_rows_and_named_systems(study: Path) -> None:
    gains, turns = pl.read_csv(study / "gains.csv"), pl.read_ndjson(study / "tutor.jsonl")
    fits = [
        demur.fit_outcome(rows, outcomes=table, features="conf", replicates=0).model.coefficients
        for rows, table in (
            (study / "tutor.jsonl", study / "gains.csv"),
            (turns, gains),
            (turns.to_dicts(), gains.to_dicts()),
        )
    ]
    assert fits[0] == fits[1] == fits[2]
    mapped = demur.fit_outcome(
        turns, outcomes=gains.rename({"student": "who"}), map_outcomes={"group": "who"}, features="conf", replicates=0
    )
    assert mapped.regression.groups is not None
    fit = demur.fit_outcome(turns, outcomes=dialogues(gains), features="conf", replicates=0)
    compared = demur.compare_outcomes(fit, {"old": turns, "new": study / "cautious.jsonl"})
    assert [(pair.a, pair.b) for pair in compared.pairs] == [("old", "new")]
    tables = [demur.regress(one, outcome="post", candidates=["pre"], replicates=0) for one in (gains, gains.to_dicts())]
    assert tables[0].chosen.coefficients == tables[1].chosen.coefficients


def test_outcomes_show_themselves(study: Path) -> None:
    fit = demur.fit_outcome(study / "tutor.jsonl", outcomes=study / "gains.csv", features="conf", replicates=50)
    prediction = demur.predict_outcome(fit, study / "cautious.jsonl")
    compared = demur.compare_outcomes(fit, study / "tutor.jsonl", study / "cautious.jsonl")
    for result in (fit, fit.regression, prediction, compared):
        assert result.chart().to_dict()["description"]
        assert "<div" in result._repr_html_()
    assert "cautious" in prediction._repr_html_()
    assert "predicted-pc_incomplete-actual-contradictory" in fit._repr_html_()


def test_rows_of_no_group_are_groups_of_their_own_and_yes_and_no_are_numbers(study: Path) -> None:
    table = pl.read_csv(study / "gains.csv").with_columns(
        happy=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("yes")).otherwise(pl.lit("no")),
        caller=pl.lit(None, pl.String),
    )
    ask = {"outcome": "post", "candidates": ["pre", "happy"], "replicates": 0}
    alone, grouped = demur.regress(table, **ask), demur.regress(table, group="caller", **ask)
    assert grouped.nested.r2 == pytest.approx(alone.nested.r2)


def test_slips_in_jobs_on_outcomes_are_said(study: Path) -> None:
    gains, turns = study / "gains.csv", study / "tutor.jsonl"
    with pytest.raises(demur.UsageError, match=r'no option "feature" here'):
        demur.fit_outcome(turns, outcomes=gains, feature="conf")
    with pytest.raises(demur.UsageError, match='no column "psot"; did you mean "post"'):
        demur.regress(gains, outcome="psot")
    with pytest.raises(demur.UsageError, match="post is the outcome itself"):
        demur.regress(gains, outcome="post", candidates=["post"])
    with pytest.raises(demur.DataError, match=r"row 1: student must be a number in every row; got \"s01\""):
        demur.regress(gains, outcome="post", candidates=["student"])
    with pytest.raises(demur.DataError, match="post is the same in every row"):
        demur.regress([{"post": 1, "pre": 0.1}, {"post": 1, "pre": 0.2}], outcome="post")
    with pytest.raises(demur.DataError, match="nothing to explain the outcome by"):
        demur.regress([{"post": 1, "who": "a"}, {"post": 2, "who": "b"}], outcome="post")
    with pytest.raises(demur.UsageError, match="read already, so it takes no outcome"):
        demur.fit_outcome(turns, outcomes=read_dialogues(gains), outcome="post")
    fit = demur.fit_outcome(turns, outcomes=gains, features="conf", replicates=0)
    with pytest.raises(demur.UsageError, match="compare_outcomes, takes several"):
        demur.predict_outcome(fit, turns, study / "cautious.jsonl")
    with pytest.raises(demur.UsageError, match="predict_outcome, takes one"):
        demur.compare_outcomes(fit, turns)
