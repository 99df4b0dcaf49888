"""A job is declared once: the same options, ranges, help and results in Python, by the command and in a form."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import polars as pl
import pytest
import typer

import demur
from commands import Demur, log
from demur.apps.cli import commands
from demur.apps.cli.app import app_of, run_report
from demur.apps.cli.commands import TYPES, add_jobs, command_of, flags_of, help_of, run_job
from demur.apps.cli.output import FigureOptions, OutputOptions, as_json, failures, parameters_of
from demur.core.jobs import REQUIRED, Argument, Job, Option, Output, fields_of, parameters, values_of
from demur.errors import UsageError
from demur.gold_standard.jobs import JOBS as GOLD_JOBS
from demur.importers import JOBS as DSTC_JOBS
from demur.importers import REGISTRY, import_dstc
from demur.judges.jobs import JOBS as JUDGE_JOBS
from demur.lab import jobs as lab_jobs
from demur.lab import wizards
from demur.nbest_lists.jobs import IMPORT_JOBS as SLF_JOBS
from demur.nbest_lists.jobs import JOBS as NBEST_JOBS
from demur.outcome.jobs import JOBS as OUTCOME_JOBS
from demur.reports import verify
from demur.reports.jobs import CHECK_JOBS
from demur.reports.jobs import JOBS as REPORT_JOBS
from demur.returns.jobs import JOBS as RETURN_JOBS
from demur.store.jobs import JOBS as STORE_JOBS
from demur.store.jobs import add_runs
from demur.study.jobs import JOBS as STUDY_JOBS
from demur.understanding.grading import write_grader
from demur.understanding.jobs import JOBS as UNDERSTANDING_JOBS
from importers.dstc_folders import corpus
from nbest_lists.nbest_logs import log as lists
from pages import ROOT
from reference.outcome import study

QUESTIONS = (
    *(RETURN_JOBS, NBEST_JOBS, OUTCOME_JOBS, GOLD_JOBS, JUDGE_JOBS),
    *(REPORT_JOBS, CHECK_JOBS, STORE_JOBS, UNDERSTANDING_JOBS, STUDY_JOBS),
)
JOBS = tuple(job for jobs in (*QUESTIONS, lab_jobs.JOBS) for job in jobs)

IMPORTS = (*DSTC_JOBS, *SLF_JOBS)
each_job = pytest.mark.parametrize("job", [*JOBS, *IMPORTS], ids=lambda job: job.name)
GENERAL = {one.name for group in (OutputOptions, FigureOptions) for one in parameters_of(group)}
QUICK = {"replicates": 50, "seed": 1}


@cache
def every_command() -> Any:
    return typer.main.get_command(app_of())


def command_named(name: str) -> Any:
    found = every_command()
    for word in name.split():
        found = found.commands[word]
    return found


@each_job
def test_the_command_has_the_options_of_the_function(job: Job) -> None:
    declared = {one.name: one for one in command_named(job.name).params if one.name not in GENERAL | {"help"}}
    built = inspect.signature(command_of(job, run_job)).parameters
    own = {one.name: one for one in job.parameters}
    assert list(declared) == [*own, *(one.name for one in job.outputs)]
    signature = inspect.signature(job.function).parameters
    python = {"step", "confirm", "classes"}  # `classes` names the columns of arrays, which only Python has
    assert set(signature) - set(own) <= python, "what Python takes, the command takes too"
    for name, one in own.items():
        assert one.default == signature[name].default
        flag: Any = declared[name]
        if isinstance(one.option, Argument):
            assert (flag.help, flag.metavar) == (one.option.help, one.flag)
            continue
        assert one.flag.partition("/")[0] in flag.opts
        assert flag.help == help_of(one.option, flags_of(job))
        assert flag.required == (one.default is REQUIRED)
        assert not one.choices or get_args(built[name].annotation)[0] in (one.type, one.type | None)
        if not one.option.repeat:
            typed = one.choices or (one.type in TYPES and one.option.parse is None)
            assert flag.default == (one.default if typed else one.text)


@each_job
def test_a_form_has_the_options_of_the_function(job: Job) -> None:
    fields = {one.name: one for one in fields_of(job.function)}
    options = {one.name: one for one in job.parameters if isinstance(one.option, Option)}
    assert list(fields) == list(options)
    for name, field in fields.items():
        one, option = options[name], options[name].option
        assert isinstance(option, Option)
        assert (field.help, field.choices) == (option.help, one.choices)
        assert [field.minimum, field.maximum, field.above, field.below] == [
            *(option.minimum, option.maximum, option.above, option.below),
        ]
        if isinstance(field.default, str) and field.default:
            assert values_of(job.function, {name: [field.default]}) == {name: one.default}


@each_job
def test_the_public_name_is_the_function_of_the_job(job: Job) -> None:
    home = lab_jobs if job in lab_jobs.JOBS else demur
    if job.name.removeprefix("import ") not in REGISTRY:  # in Python every function reads those logs by itself
        assert getattr(home, job.function.__name__) is job.function
    assert command_named(job.name).help == job.help
    assert job.example.startswith(f"demur {job.name}")


def out_of_range(option: Option) -> float | None:
    if option.minimum is not None:
        return option.minimum - 1
    return option.above if option.above is not None else None


REPLICATED = [pytest.param(job, id=job.name) for job in JOBS if any(one.name == "replicates" for one in job.parameters)]


@pytest.mark.parametrize("job", REPLICATED)
def test_no_command_takes_more_replicates_than_fit_into_memory(demur: Demur, job: Job) -> None:
    done = demur(*job.name.split(), *nothing_for(job), "--replicates", "100001")
    assert done.returncode == 2
    assert re.search(r"error: --replicates (must be|takes) .*at most 100000; got", done.stderr)


RANGED = [
    pytest.param(job, one, id=f"{job.name} {one.name}")
    for job in (*JOBS, *IMPORTS)
    for one in job.parameters
    if isinstance(one.option, Option) and out_of_range(one.option) is not None
]


def nothing_for(job: Job) -> list[str]:
    """A file that is not there for each argument that must be given, and a text for each option."""
    arguments = [one for one in job.parameters if isinstance(one.option, Argument) and not one.option.optional]
    options = [one for one in job.parameters if isinstance(one.option, Option) and one.default is REQUIRED]
    return [*("nothing.jsonl" for _ in arguments), *(part for one in options for part in (one.flag, "nothing"))]


@pytest.mark.parametrize(("job", "one"), RANGED)
def test_ranges_hold_in_python_and_by_command_in_the_same_words(demur: Demur, job: Job, one: Any) -> None:
    value = out_of_range(one.option)
    with pytest.raises(UsageError, match=f"`{one.name}` must be {one.option.range}") as refused:
        job.function(*nothing_for(job), **{one.name: one.type(value)})
    done = demur(*job.name.split(), *nothing_for(job), one.flag, f"{value:g}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {str(refused.value).replace(f'`{one.name}`', one.flag)}\n"


@pytest.fixture
def files(tmp_path: Path, originals: Path) -> Path:
    return Path(shutil.copytree(originals, tmp_path, dirs_exist_ok=True))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the cases read, each of which gets a copy."""
    made = tmp_path_factory.mktemp("originals")
    odd = pl.col("subject").str.tail(1).cast(pl.Int64) % 2
    trials = wizards.simulate(1, wizards=4, callers=4, trials=12).with_columns(who="performer", odd=odd)
    trials.write_csv(made / TRIALS)
    trials.write_csv(made / "more.csv")
    kinds = [("desk", "phone")[k % 3 == 0] for k in range(200)]
    log(made / "a.jsonl", domain=kinds, dialogue=[k // 4 for k in range(200)])
    log(made / "b.jsonl", seed=1, skill=1.0, level=0.5, domain=kinds, dialogue=[k // 4 for k in range(200)])
    foods = [("thai", "indian", "thai"), ("indian", "thai", "chinese")]
    turns = [
        {
            "id": k,
            "dialogue": f"d{k // 3}",
            "noise": ("low", "high")[k // 3 % 2],
            "success": k // 3 % 3 > 0,
            "turns": 3 + k // 3 % 4,
            "reference": f"inform(food={foods[k % 2][k % 3]})",
            "hypotheses": [{"act": "inform(food=thai)", "confidence": 0.1 + k / 50}],
            "asr": [{"text": f"{food} food", "logprob": -1.0 - n} for n, food in enumerate(foods[k * k % 2])],
        }
        for k in range(36)
    ]
    pl.DataFrame(turns).write_ndjson(made / HEARD)
    write_study(made)
    rows = pl.read_ndjson(made / "a.jsonl")
    asked = {"hours": "when do you open on {}", "price": "is {} dear", "oos": "who is {}"}
    pairs = [(text.format(day), label) for label, text in asked.items() for day in DAYS]
    (made / "rye.txt").write_text("Rye is a grass. Rye bread is dark. Farmers sow rye in autumn.")
    (made / "pairs.jsonl").write_text("".join(f'{{"input": "{text}", "target": "{to}"}}\n' for text, to in pairs))
    demur.save_model(demur.train(made / "pairs.jsonl"), made / "guide")
    said = {"right": "it is shut", "part": "shut", "none": "help"}
    marked = [
        {"question": "Why?", "expected": "it is shut", "answer": f"{text} {k}", "target": label}
        for k in range(4)
        for label, text in said.items()
    ]
    pl.DataFrame(marked).write_ndjson(made / "marked.jsonl")
    write_grader(demur.train_grader(marked, folds=2, replicates=50), made / "grader.json")
    (made / "lake").mkdir()
    for place, part in enumerate(rows.iter_slices(80)):
        part.write_parquet(made / "lake" / f"{place}.parquet")
    write_lists(made)
    said = [
        f"{k},{judge},{'right' if (k * place) % 5 else 'wrong'}" for k in range(12) for place, judge in enumerate("ab")
    ]
    (made / "judgements.csv").write_text("\n".join(["item,judge,label", *said]))
    fitted = demur.fit_recalibration(made / "a.jsonl", replicates=50)
    (made / "map.json").write_text(json.dumps(fitted.to_dict()))
    return made


def write_study(folder: Path) -> None:
    """Turns and outcomes of a study, and a system that was never tried."""
    turns, outcomes = study(12, turns=30)
    pl.DataFrame(turns).write_ndjson(folder / TURNS)
    (folder / "turns").mkdir()
    pl.DataFrame(turns).write_parquet(folder / "turns" / "all.parquet")
    right = [{**row, "prediction": row["target"]} if row["id"].endswith("1") else row for row in turns]
    pl.DataFrame(right).write_ndjson(folder / "better.jsonl")
    pl.DataFrame(outcomes).with_columns(who=pl.col("age") // 10).write_csv(folder / GAINS)


def write_lists(folder: Path) -> None:
    """N-best lists of two systems for the same utterances, with what a recogniser heard."""
    asr = [{"text": "thai food", "logprob": -0.1}, {"text": "bye", "logprob": -2.0}]
    for seed, name in enumerate((ONE, TWO)):
        rows = [
            {**row, "reference": meant["reference"], "asr": asr}
            for row, meant in zip(lists(40, seed=seed), lists(40, seed=0), strict=True)
        ]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "lists").mkdir()
    pl.read_ndjson(folder / ONE).write_parquet(folder / "lists" / "one.parquet")


ONE, TWO = "one.jsonl", "two.jsonl"
A, B, LAKE, TRIALS = "a.jsonl", "b.jsonl", "lake", "trials.csv"
TURNS, GAINS, MODEL = "turns.jsonl", "gains.csv", "model.json"
STUDY: dict[str, Any] = {"x": "wer", "y": "completed", "checks": False}
SMALL: dict[str, Any] = {"x": "wer", "y": "completed", "subjects": (4,), "trials_each": (5,), "studies": 20}
HEARD, PAIRS, DAYS = "heard.jsonl", "pairs.jsonl", ("monday", "tuesday", "wednesday", "friday")
CASES: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "score": ("score", [A], {}),
    "score slices": ("score", [A, B], {"by": "domain", "region": (0.1, 0.4), "curve": True, "aurc": "trapezoid"}),
    "score some rows": ("score", [A], {"where": (("domain", "desk"),), "at_nonreturn": (0.1, 0.3), "name": "desk"}),
    "score other columns": ("score", [A], {"columns": {"target": "prediction"}, "out_of_scope": ("no",)}),
    "score no labels apart": ("score", [A], {"withheld": (), "out_of_scope": (), "missing_confidence": "lowest"}),
    "score in an engine": ("score", [LAKE], {"engine": "polars", "by": "domain", "exact_up_to": 40, "check_ids": True}),
    "score in another": ("score", [LAKE], {"engine": "duckdb", "at_error": 0.1, "level": 0.8}),
    "merge": ("merge", ["part.sweep", "other.sweep"], {"allow_repeats": True, "apart": True, "curve": True}),
    "watch": ("watch", ["dated"], {"since": "2026-03-01", "name": "guide"}),
    "compare": ("compare", [A, B], {}),
    "compare some": ("compare", [A, B], {"systems": ("b", "a"), "matched": True, "region": (0.0, 0.5)}),
    "compare unpaired": ("compare", [A, B], {"unpaired": True, "at_nonreturn": (0.1, 0.3)}),
    "threshold": ("threshold", [A], {"max_error": 0.2, "delta": 0.1}),
    "threshold of one": ("threshold", [A, B], {"cost_ratio": 0.3, "system": "b"}),
    "threshold in an engine": ("threshold", [LAKE], {"max_error": 0.3, "delta": 0.2, "name": "guide"}),
    "drift": ("drift", [A, B], {}),
    "drift of one": ("drift", [A], {"by": "domain", "split": "phone", "threshold": 0.4, "max_nonreturn": 0.3}),
    "drift in an engine": ("drift", [LAKE, "lake/*.parquet"], {"engine": "duckdb", "threshold": 0.5}),
    "drift of a promise": ("drift", [A, B], {"max_error": 0.2, "delta": 0.2, "where": (("domain", "desk"),)}),
    "classes": ("classes", [A, B], {}),
    "classes of one": ("classes", [A], {"name": "mine", "out_of_scope": ("no",)}),
    "classes in an engine": ("classes", [LAKE], {"engine": "polars"}),
    "recalibrate fit": ("recalibrate fit", [A], {}),
    "recalibrate fit one way": ("recalibrate fit", [A, B], {"method": "platt", "folds": 3, "system": "b"}),
    "recalibrate apply": ("recalibrate apply", ["map.json", B], {"level": 0.8}),
    "nbest": ("nbest", [ONE], {}),
    "nbest slices": ("nbest", [ONE, TWO], {"by": "noise", "floor": 0.01, "clip": 0.01, "level": 0.8}),
    "nbest compare": ("nbest", [ONE, TWO], {"compare": True, "systems": ("two", "one"), "unpaired": True}),
    "nbest recalibrated": ("nbest", [ONE], {"recalibrate_on": (TWO,), "where": (("noise", "loud"),), "items": "dstc"}),
    "nbest in an engine": ("nbest", ["lists"], {"engine": "duckdb", "by": "noise"}),
    "nbest of a scorer": ("nbest", [ONE], {"scorer": "infev", "sentences": 1, "columns": {"dialogue": "noise"}}),
    "nbest of scorers": ("nbest", [ONE], {"scorer": ("const", "infev-tp1"), "heard": "asr", "normalise": True}),
    "outcome fit": ("outcome fit", [TURNS], {"outcomes": GAINS, "features": "conf", "sets": True}),
    "outcome fit in an engine": ("outcome fit", ["turns"], {"outcomes": GAINS, "features": "conf", "engine": "duckdb"}),
    "outcome fit of some": (
        "outcome fit",
        [TURNS],
        {"outcomes": GAINS, "map_outcomes": {"group": "who"}, "features": ["age", "recall.correct"], "keep": ("age",)},
    ),
    "outcome regress": (
        "outcome regress",
        [GAINS],
        {"outcome": "outcome", "candidates": ("age", "who"), "direction": "forward", "folds": 3, "level": 0.8},
    ),
    "outcome predict": ("outcome predict", [MODEL, "better.jsonl"], {"extrapolate": True, "level": 0.8}),
    "outcome compare": ("outcome compare", [MODEL, TURNS, "better.jsonl"], {"pooled": True, "extrapolate": True}),
    "validate": ("validate", [A, B], {"where": (("domain", "phone"),)}),
    "gold": ("gold", [TRIALS], {"x": "wer", "y": "completed"}),
    "gold over a range": ("gold", [TRIALS], {**STUDY, "within": (0.2, 0.7), "cost": "100 * p", "gain": (0.2, 0.8)}),
    "gold by kinds": ("gold", [TRIALS], {**STUDY, "fit": {"": "polynomial", "A": "linear"}, "degree": 2}),
    "gold of one kind": ("gold", [TRIALS], {**STUDY, "fit": "logistic", "direction": "any", "level": 0.8}),
    "gold named": ("gold", [TRIALS], {**STUDY, "gold": ("B",), "columns": {"performer": "who"}, "components": False}),
    "gold of scores": ("gold", [TRIALS], {**STUDY, "lower": -1.0, "upper": 2.0, "where": (("odd", "1"),)}),
    "gold of studies": ("gold", [TRIALS, "more.csv"], STUDY),
    "agreement": ("agreement", ["judgements.csv"], {"level": 0.8}),
    "plan": ("plan", [TRIALS], SMALL),
    "plan wider": ("plan", [TRIALS], {**SMALL, "fit": "linear", "half_width": 0.2, "level": 0.8}),
    "train": ("understand train", [PAIRS], {}),
    "train otherwise": ("understand train", [PAIRS], {"sharpness": 0.5, "scoring": "kl", "out_of_scope": ("price",)}),
    "tune": ("understand tune", [PAIRS], {}),
    "tune by errors": ("understand tune", [PAIRS], {"max_error": 0.4, "off_topic": PAIRS}),
    "scorers": ("experiment scorers", [HEARD], {"scorers": ("const", "infev"), "sentences": 2, "floor": 0.01}),
    "conditions": ("experiment conditions", [HEARD], {"by": "noise", "few": 1, "many": 2}),
    "lengths": ("experiment lengths", [HEARD], {"by": "noise", "kept": (1, 2), "scorer": "const"}),
    "reward": ("experiment reward", [HEARD], {"measure": "oracle", "group": "noise", "where": (("noise", "low"),)}),
    "oracle": ("experiment oracle", [HEARD], {"scorers": ("const",), "items": "dstc"}),
    "tokenizers": ("experiment tokenizers", [PAIRS], {"tokens": ("words", "words+phones1"), "wer": 0.5}),
    "growth": ("experiment growth", [PAIRS], {"texts": ("rye.txt",)}),
    "gate": ("experiment gate", [PAIRS], {}),
    "demo": ("demo", [], {"logs": Path("logs")}),
    "simulate": ("simulate", ["town"], {"managers": ("state-machine", "belief"), "noise": (0.0, 0.3), "dialogues": 4}),
    "pairs": ("understand pairs", ["rye.txt"], {}),
    "grade train": ("understand grade train", ["marked.jsonl"], {"folds": 3, "level": 0.8}),
    "grade respond": ("understand grade respond", ["grader.json", "marked.jsonl"], {}),
    "outcome baseline": ("outcome baseline", [TURNS], {}),
    "learn": ("learn", ["town"], {"manager": "mdp", "rounds": 1, "dialogues": 10, "seeds": 1, "processes": 1}),
    "confusion": ("experiment confusion", [], {"noise": (0.0, 0.4), "confidences": ("good",), "dialogues": 4}),
    "predictors": ("experiment predictors", [], {"manager": ("state-machine",), "noise": (0.2, 0.4), "dialogues": 4}),
    "thresholds": ("experiment thresholds", [], {"manager": ("state-machine",), "cutoffs": (0.0, 0.5), "dialogues": 4}),
    "injected": ("experiment injected", [], {"dialogues": 20}),
    "respond": ("understand respond", ["guide", PAIRS], {}),
    "respond at a threshold": ("understand respond", ["guide", PAIRS], {"threshold": 0.9, "withhold": True}),
    "verify-engine": ("verify-engine", [], {"engine": "polars", "rows": 200}),
    "report": ("report", [A, B], {"by": ("domain",), "kinds": {"a.jsonl": "responses"}, "max_error": 0.3}),
    "report of a part": ("report", [A], {"where": (("domain", "desk"),), "by": (), "title": "Desk", "examples": 2}),
    "add": ("add", [A], {"store": Path("store"), "tags": ("old", "x"), "kind": {"a.jsonl": "responses"}}),
    "rm": ("rm", ["a"], {"store": Path("store"), "yes": True}),
    "runs": ("runs", [], {"store": Path("store"), "kind": "responses", "check": True}),
}
WRITE_ROWS = ("understand respond", "understand pairs", "understand grade respond", "outcome baseline")
"""Jobs whose files of JSON have the rows, not the document."""
LAB = {job.name for job in lab_jobs.JOBS}
AGAIN = {name: case for case, (name, _, _) in reversed(CASES.items()) if name not in LAB}
"""The first case of each job, by the job; that those of the lab give the same again is tested with them."""


UNORDERED = {"verify-engine"}
"""Jobs whose sums an engine adds up in whatever order its threads end: the last bits differ from run to run."""


def typed(function: Callable[..., Any], given: dict[str, Any]) -> list[str]:
    """What is typed for Python's values."""
    found: list[str] = []
    for one in parameters(function):
        if one.name not in given or not isinstance(one.option, Option):
            continue
        value = given[one.name]
        if one.type is bool:
            on, _, off = one.flag.partition("/")
            found += [on] if value else [off] if off else []
        elif one.option.repeat:
            pairs = one.option.parse is not None and not isinstance(value, str)
            named = [f"{key}={part}".removeprefix("=") for key, part in dict(value).items()] if pairs else []
            texts = named or ([value] if isinstance(value, str) else list(value))
            found += [part for text in (texts or [""]) for part in (one.flag, text)]
        else:
            found += [one.flag, one.option.write(value)]
    return found


def rounded(document: str) -> str:
    """A JSON document whose numbers have ten decimals."""
    return as_json(json.loads(document, parse_float=lambda text: round(float(text), 10) + 0.0)) + "\n"


def test_every_job_has_a_case() -> None:
    assert {name for name, _, _ in CASES.values()} == {job.name for job in JOBS} - {job.name for job in STUDY_JOBS}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """For each command its function, what that was called with, and what it gave."""
    found: list[tuple[Any, ...]] = []
    computed = commands.result_of

    def result_of(job: Job, given: dict[str, Any], *, quiet: bool) -> Any:
        result = computed(job, given, quiet=quiet)
        found.append((job.function, *commands.values_from(job, given), result))
        return result

    for module in (run_job, run_report):
        monkeypatch.setitem(module.__globals__, "result_of", result_of)
    return found


@pytest.mark.parametrize("case", CASES)
def test_python_and_the_command_give_the_same_json(
    demur: Demur, files: Path, calls: list[tuple[Any, ...]], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first case of a job is run in Python too, others where the command calls the function with other values."""
    name, arguments, options = CASES[case]
    function = {job.name: job.function for job in JOBS}[name]
    given = {**options, **{key: value for key, value in QUICK.items() if key in inspect.signature(function).parameters}}
    if MODEL in arguments:
        demur("outcome", "fit", TURNS, "--outcomes", GAINS, "--features", "conf", "--replicates", "0", "-m", MODEL)
    if name == "merge":
        for sweep, source in (("part", A), ("other", B)):
            assert demur("score", source, "--quiet", "-o", f"{sweep}.sweep", "--replicates", "50").returncode == 0
    if name == "verify-engine":
        monkeypatch.setattr(verify, "WEIGHTINGS", {"": verify.WEIGHTINGS[""]})
    if name == "watch":  # what the first run counts, the others take as kept
        shutil.copytree(LAKE, "dated/date=2026-03-01")
        assert demur("watch", "dated", "--quiet", "--name", "guide").returncode == 0
    if "store" in given:
        add_runs(A, store=Path("store"))
        shutil.copytree("store", "copy")
    kept = [] if name in WRITE_ROWS else ["-o", "kept.json"]
    done = demur(*name.split(), *arguments, *typed(function, given), "--json", *kept)
    assert done.returncode == 0, done.stderr
    if "store" in given:
        shutil.rmtree("store")
        Path("copy").rename("store")
    called, positional, values, result = calls[-1]
    usual = {one.name: one.default for one in inspect.signature(function).parameters.values()}
    assert (called, positional) == (function, arguments)
    if case in AGAIN.values() or {**usual, **values} != {**usual, **given}:
        result = function(*arguments, **given)
    expected = as_json(result.to_dict()) + "\n"
    printed = done.stdout if name not in UNORDERED else rounded(done.stdout)
    assert printed == (expected if name not in UNORDERED else rounded(expected))
    assert not kept or (files / "kept.json").read_text(encoding="utf-8") == done.stdout


def test_python_and_the_command_import_the_same_rows(tmp_path: Path, demur: Demur) -> None:
    given: dict[str, Any] = {"table": "turns", "labels": corpus(tmp_path / "data")}
    expected = import_dstc("data", **given)
    done = demur("import", "dstc2", "data", *typed(import_dstc, given))
    assert [json.loads(line) for line in done.stdout.splitlines()] == list(expected), done.stderr
    done = demur("import", "dstc3", "data", *typed(import_dstc, given), "--json", "-o", "rows.jsonl")
    document = {"format": 1, "rows": 4, **expected.counts, "out": "rows.jsonl", "notes": list(expected.notes)}
    assert json.loads(done.stdout) == document


def test_frames_take_the_options_of_files(files: Path) -> None:
    rows = pl.read_ndjson(files / A)
    asked: dict[str, Any] = {"by": "domain", "region": (0.1, 0.4), "curve": True, "name": "a", **QUICK}
    expected = demur.score(files / A, **asked).to_dict()
    assert demur.score(rows, engine="memory", **asked).to_dict() == expected
    assert demur.score(rows.lazy(), engine="memory", **asked).to_dict() == expected
    for data, engine in ((rows, "polars"), (rows.lazy(), "auto"), (rows.to_dicts(), "duckdb")):
        counted = demur.score(data, engine=engine, check_ids=True, exact_up_to=1000, **asked).to_dict()
        assert [one["system"] for one in counted["systems"]] == ["a"] * 3
        values = [one["measures"]["augrc"]["value"] for one in counted["systems"]]
        assert values == pytest.approx([one["measures"]["augrc"]["value"] for one in expected["systems"]], rel=1e-12)
    with pytest.raises(demur.UsageError, match="`engine` is for files, or for one frame"):
        demur.score(rows, rows, engine="polars")


def test_plain_values_are_all_that_the_command_prints(files: Path) -> None:
    found = demur.score(files / A, by="domain", **QUICK).to_dict()
    assert [one["part"] for one in found["slices_at_one_threshold"]] == ["domain=desk", "domain=phone"]
    assert found["notes"][-1] == "seed 1, 50 replicates"
    assert json.loads(as_json(found))["warnings"] == []


def study_job(calls: list[dict[str, Any]]) -> Job:
    """A job in a group, with arguments of two kinds, an option that must be given, and a file of its own."""

    def fit(
        model: Annotated[str, Argument("A model.")],
        *turns: Annotated[Any, Argument("Logs.", metavar="FILES")],
        x: Annotated[str, Option("A column.")],
        kind: Annotated[Literal["linear", "spline"] | None, Option("A curve.", short="-k")] = None,
        target: Annotated[Path | None, Option("A file.")] = None,
        keep: Annotated[tuple[str, ...], Option("Keep. Repeatable.", repeat=True)] = (),
        checks: Annotated[bool, Option("Whether to check.", flag="--checks/--no-checks")] = True,
    ) -> Any:
        """Fit a model."""
        calls.append({"model": model, "x": x, "kind": kind, "target": target, "keep": keep, "checks": checks})
        return demur.score(*turns, replicates=50)

    written = Output("--sweep-file", "Write the sweep.", "demur.returns.counting:write_sweep")
    shown = "demur.returns.presentation:of_scores"
    return Job("study fit", fit, present=shown, example="demur study fit m.json a.jsonl --x wer", outputs=(written,))


def test_a_job_may_be_in_a_group_and_write_a_file_of_its_own(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[dict[str, Any]] = []
    house = typer.Typer(pretty_exceptions_enable=False)
    house.callback()(lambda: None)
    add_jobs(house, [study_job(calls), replace(study_job(calls), name="study again")])
    monkeypatch.chdir(files)
    asked = ["--x", "wer", "-k", "spline", "--target", "t.txt", "--keep", "a", "--keep", "b", "--no-checks"]
    house(["study", "fit", "m.json", A, *asked, "--sweep-file", "w.sweep", "--json"], standalone_mode=False)
    assert calls == [
        {"model": "m.json", "x": "wer", "kind": "spline", "target": Path("t.txt"), "keep": ("a", "b"), "checks": False}
    ]
    assert json.loads(capsys.readouterr().out)["systems"][0]["system"] == "a"
    assert (files / "w.sweep").exists()
    house(["study", "again", "m.json", A, "--x", "wer", "--quiet"], standalone_mode=False)
    assert calls[1] == {**calls[1], "kind": None, "target": None, "keep": (), "checks": True}


LOADED = """
import json, sys
from demur.apps.cli.main import app_for
for command in json.loads(sys.argv[1]):
    app_for(command)(command, standalone_mode=False)
    print("loaded", *sys.modules)
"""
UNASKED = ("gold_standard", "outcome", "nbest_lists", "understanding", "reports", "store", "lab", "apps.web")
HEAVY = ("altair", "rich", "sklearn", "pandas", "duckdb", "pyarrow")


def test_a_command_loads_only_what_it_is_asked_for(tmp_path: Path) -> None:
    """One after another in one process, so that each adds to what those before it have loaded."""
    one, two = (str(log(tmp_path / name)) for name in (A, B))
    commands = [["score", one], ["classes", one], ["threshold", one, "--max-error", "0.2"], ["compare", one, two]]
    written = ("-o", str(tmp_path / "out.json"), "-o", str(tmp_path / "out.md"))
    asked = json.dumps([[*command, "--json", *written] for command in commands])
    done = subprocess.run([sys.executable, "-c", LOADED, asked], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert len(lines) == len(commands)
    for place, loaded in enumerate(lines):
        own = [name for name in loaded if name.partition(".")[0] == "demur"]
        assert len(own) < 90
        assert not [name for name in own for part in UNASKED if f"{name}.".startswith(f"demur.{part}.")]
        assert not {*HEAVY, *(["scipy"] if place == 0 else [])} & set(loaded)


@pytest.mark.parametrize("job", [one for one in JOBS if one.gate != "NAME > NUMBER"], ids=lambda job: job.name)
def test_the_gate_that_a_help_shows_can_be_asked_of_its_result(job: Job) -> None:
    folder, name = ROOT / "tests" / "golden" / "json", job.name.replace(" ", "-")
    recorded = next(path for path in (folder / f"{name}.json", *sorted(folder.glob(f"{name}-*.json"))) if path.exists())
    document = json.loads(recorded.read_text(encoding="utf-8"))["document"]
    assert isinstance(failures([job.gate], document), list)
