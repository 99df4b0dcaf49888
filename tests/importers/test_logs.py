"""Logs of other tools: rows as they were worked out apart from this project, the notes, the questions, the refusals."""

import gzip
import json
import re
import shutil
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from commands import Demur, run_in
from demur.core.io.tables import TableLimits, limited
from demur.errors import DataError, DemurError
from demur.importers import REGISTRY, log_importers
from demur.importers.choices import ImportChoices, choosing
from demur.importers.protocol import ForeignFile, frame_of, loose_series
from demur.importers.reading import opened
from demur.importers.speech import aligned, slots_of
from demur.returns.charts.error_return import error_return_chart
from demur.returns.jobs import compare, score
from demur.returns.table import Reading, read_responses

DATA = Path(__file__).parent / "data"
FOREIGN = Path(__file__).parents[3] / "shared" / "data" / "foreign"
needs_foreign = pytest.mark.skipif(not FOREIGN.is_dir(), reason="no ../shared/data/foreign beside the project")
REFUSALS = ImportChoices(withheld_like=("refusals",))
PLAIN = ImportChoices()

LOGS: list[tuple[str, list[str], ImportChoices]] = [
    ("inspect_ai-0.3.285_choice-3epochs", ["inspect_choice-3epochs.json"], PLAIN),
    ("inspect_ai-0.3.285_graded-qa-CIN", ["inspect_graded-qa-CIN.json"], PLAIN),
    ("inspect_ai-0.3.285_verbalised-2epochs", ["inspect_verbalised-2epochs.json"], ImportChoices(scorer="verbalised")),
    ("lm_eval_tiny-a_mc", ["lm_eval_samples_mc.jsonl", "lm_eval_results.json"], PLAIN),
    (
        "lm_eval_tiny-a_gen_maj5_agreement",
        ["lm_eval_results.json", "lm_eval_samples_gen.jsonl"],
        ImportChoices(filter="maj@5"),
    ),
    ("promptfoo_2providers", ["promptfoo.json"], PLAIN),
    ("promptfoo_2providers", ["promptfoo.jsonl"], PLAIN),
    ("rasa_intents", ["rasa_intent_errors.json", "rasa_intent_successes.json"], PLAIN),
    ("rasa_model_parse", ["rasa_model_parse.jsonl", "rasa_test_nlu.yml", "rasa_config.yml"], PLAIN),
    ("sklearn_proba", ["sklearn_all.npz"], PLAIN),
    ("sklearn_proba", ["sklearn_y_true.npy", "sklearn_predict_proba.npy"], PLAIN),
    ("sklearn_proba", ["sklearn_wide.csv"], PLAIN),
    ("sklearn_proba", ["sklearn_top1.csv"], PLAIN),
    ("sklearn_proba", ["sklearn_list_column.parquet"], PLAIN),
    ("hf_topk", ["hf_text-classification_topk_with_gold.jsonl"], PLAIN),
    ("hf_topk", ["hf_text-classification_with_gold.jsonl"], PLAIN),
    (
        "squad2_museum",
        ["squad_predictions.json", "squad_null_odds.json", "squad_nbest.json", "squad_references.json"],
        PLAIN,
    ),
    ("mlflow_split", ["mlflow_classic.json"], REFUSALS),
    ("openai_evals_a", ["openai_evals.jsonl"], PLAIN),
    ("lighteval_tiny-a", ["lighteval_details.parquet"], PLAIN),
    ("deepeval", ["deepeval_test_run.json"], REFUSALS),
    ("watson", ["watson.csv"], PLAIN),
    ("nlu_devops", ["nlu_devops.json"], PLAIN),
    ("sclite", ["sclite.sgml"], PLAIN),
    ("words_ctm", ["words.ctm", "references.stm"], PLAIN),
    ("openai_batch", ["openai_batch.jsonl"], ImportChoices(gold=DATA / "openai_batch_gold.csv", on="custom_id")),
]
"""The rows expected, the files, and what was chosen."""

WHOLE = [
    ("inspect_ai-0.3.285_choice-3epochs", ["inspect_ai/inspect_ai-0.3.285_choice-3epochs.eval"], PLAIN),
    ("inspect_ai-0.3.285_graded-qa-CIN", ["inspect_ai/inspect_ai-0.3.285_graded-qa-CIN.eval"], PLAIN),
    ("lm_eval_tiny-a_mc", ["lm-eval/lm_eval-0.4.13_tiny-a_*mc.jsonl", "lm-eval/*_results.json"], PLAIN),
    (
        "lm_eval_tiny-a_gen_maj5_agreement",
        ["lm-eval/lm_eval-0.4.13_tiny-a_*gen.jsonl", "lm-eval/*_results.json"],
        ImportChoices(filter="maj@5"),
    ),
    ("promptfoo_2providers", ["promptfoo/promptfoo-0.121.20_2providers.json"], PLAIN),
    ("promptfoo_2providers", ["promptfoo/promptfoo-0.121.20_2providers.jsonl"], PLAIN),
    ("rasa_intents", ["rasa/*_intent_errors.json", "rasa/*_intent_successes.json"], PLAIN),
    ("rasa_model_parse", ["rasa/*_model_parse.jsonl", "rasa/*_test_nlu.yml", "rasa/*_config.yml"], PLAIN),
    ("sklearn_proba", ["sklearn/*_all.npz"], PLAIN),
    ("sklearn_proba", ["sklearn/*_predict_proba.npy", "sklearn/*_y_true.npy"], PLAIN),
    ("sklearn_proba", ["sklearn/sklearn-1.9.1_wide.csv"], PLAIN),
    ("sklearn_proba", ["sklearn/*_top1.csv"], PLAIN),
    ("sklearn_proba", ["sklearn/*_list_column.parquet"], PLAIN),
    ("hf_topk", ["hf/*_topk_with_gold.jsonl"], PLAIN),
    ("hf_topk", ["hf/*_text-classification_with_gold.jsonl"], PLAIN),
    ("squad2_museum", ["squad2/*.json"], PLAIN),
    ("mlflow_split", ["mlflow/*_classic_eval_results_table.json"], REFUSALS),
    ("openai_evals_a", ["openai-evals/*.jsonl"], PLAIN),
    ("lighteval_tiny-a", ["lighteval/*.parquet"], PLAIN),
    ("deepeval", ["deepeval/*_test_run.json"], REFUSALS),
    ("watson_kfold0", ["watson/WA-Testing-Tool_kfold0_test-out.csv"], PLAIN),
    ("sclite_words", ["asr/sctk-2.4.10_lvc_hypc.sgml"], PLAIN),
]
"""The rows expected, the files (by pattern) and what was chosen; whole logs, where the fixtures are trimmed."""

REFUSED = {
    "asr/sctk-2.4.10_lvc_hypc.pra": "report of sclite",
    "asr/sctk-2.4.10_lvc_hypc.sys": "report of sclite",
    "asr/sctk-2.4.10_lvc_hypc_conf.ctm": "give the references too",
    "asr/sctk-2.4.10_lvc_refe.stm": "give a CTM",
    "hf/transformers-5.22.2_text-classification_top1.json": "--gold FILE",
    "hf/transformers-5.22.2_text-classification_top_k-none.json": "--gold FILE",
    "hf/transformers-5.22.2_zero-shot.json": "--gold FILE",
    "hf/transformers-5.22.2_zero-shot_multi_label.json": "--gold FILE",
    "inspect_ai/inspect_ai-0.3.285_samples_df.csv": "which scorer",
    "inspect_ai/inspect_ai-0.3.285_samples_df.parquet": "which scorer",
    "inspect_ai/inspect_ai-0.3.285_verbalised-2epochs.json": "which scorer",
    "lighteval/lighteval-0.13.0_results_tiny-a.json": "give the details",
    "lm-eval/lm_eval-0.4.13_tiny-a_results.json": "--log_samples",
    "nlu.devops/NLU.DevOps_statistics.json": "metadata.json",
    "promptfoo/promptfooconfig.json": "promptfoo eval",
    "promptfoo/provider.js": "program",
    "rasa/rasa-3.6.21_config.yml": "/model/parse",
    "rasa/rasa-3.6.21_failed_test_stories.yml": "stories",
    "rasa/rasa-3.6.21_intent_errors.json": "--successes",
    "rasa/rasa-3.6.21_intent_report.json": "report",
    "rasa/rasa-3.6.21_intent_successes.json": "intent_errors.json",
    "rasa/rasa-3.6.21_model_parse.jsonl": "nlu.yml",
    "rasa/rasa-3.6.21_response_selection_report.json": "report",
    "rasa/rasa-3.6.21_response_selection_successes.json": "response_selection_errors.json",
    "rasa/rasa-3.6.21_story_report.json": "report",
    "rasa/rasa-3.6.21_successful_test_stories.yml": "stories",
    "rasa/rasa-3.6.21_test_nlu.yml": "/model/parse",
    "sklearn/sklearn-1.9.1_predict_proba.npy": "y_true",
    "sklearn/sklearn-1.9.1_y_true.npy": "predict_proba",
    "squad2/museum-squad-v2_references.json": "give predictions",
    "squad2/transformers-5.22.2_run_qa_eval_nbest_predictions.json": "give the references",
    "squad2/transformers-5.22.2_run_qa_eval_null_odds.json": "give the references",
    "squad2/transformers-5.22.2_run_qa_eval_predictions.json": "give the references",
    "whisper/openai-whisper-20250625_words.json": "Whisper",
}
"""Files of the collection that are no log by themselves, with what the refusal says."""


def rows_of(paths: list[Path], choices: ImportChoices = PLAIN) -> list[dict[str, Any]]:
    with choosing(choices), opened(*paths) as files:
        assert all(file.origin and file.notes for file in files)
        frames = [file.frame for file in files if file.frame is not None]
        return pl.concat(frames, how="diagonal_relaxed").to_dicts()


def assert_as_expected(rows: list[dict[str, Any]], path: Path, *, all_of_them: bool) -> None:
    expected = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    several = len({row.get("system") for row in expected}) > 1
    found = {}
    for row in rows:
        name = row["id"] if row.get("trial") is None else f"{row['id']}#{row['trial']}"
        found[name, row["system"] if several else None] = row
    pairs = [(row, found.get((row["id"], row.get("system") if several else None))) for row in expected]
    if all_of_them:
        assert len(rows) == len(expected)
        assert all(own is not None for _, own in pairs)
    met = [
        (row, own) for row, own in pairs if own is not None and (all_of_them or not row["id"].endswith(("#2", "#3")))
    ]
    assert met
    for row, own in met:
        for name in row.keys() - {"id", "dialogue", "nbest"}:
            assert own.get(name) == pytest.approx(_alike(row[name], own.get(name)), abs=1e-7), (row["id"], name)
        if "nbest" in row:
            assert [one["label"] for one in own["nbest"]] == [one["label"] for one in row["nbest"]]


def _alike(expected: Any, got: Any) -> Any:
    """The expected value, but for what is written in several ways: false or nothing, one label or a list of it."""
    if expected in (None, "out_of_scope") and got == "out_of_scope":
        return got
    if isinstance(expected, list) and len(expected) == 1 and got == expected[0]:
        return got
    return got if not expected and not got else expected


@pytest.mark.parametrize(("name", "files", "choices"), LOGS, ids=[f"{files[0]}" for _, files, _ in LOGS])
def test_rows_are_those_worked_out_apart(name: str, files: list[str], choices: ImportChoices) -> None:
    rows = rows_of([DATA / file for file in files], choices)
    assert_as_expected(rows, DATA / "expected" / f"{name}.jsonl", all_of_them=False)


@needs_foreign
@pytest.mark.parametrize(("name", "patterns", "choices"), WHOLE, ids=[patterns[0] for _, patterns, _ in WHOLE])
def test_whole_logs_give_every_row(name: str, patterns: list[str], choices: ImportChoices) -> None:
    files = [path for pattern in patterns for path in sorted(FOREIGN.glob(pattern))]
    assert_as_expected(rows_of(files, choices), FOREIGN / "expected" / f"{name}.jsonl", all_of_them=True)


@needs_foreign
def test_words_aligned_here_are_the_words_that_sclite_aligns() -> None:
    asr = FOREIGN / "asr"
    own = rows_of([asr / "sctk-2.4.10_lvc_hypc_conf.ctm", asr / "sctk-2.4.10_lvc_refe.stm"])
    theirs = rows_of([asr / "sctk-2.4.10_lvc_hypc.sgml"])
    assert Counter(row["dialogue"] for row in own) == Counter(row["dialogue"] for row in theirs)
    assert len(own) == 1625
    assert abs(sum(row["correct"] for row in own) - sum(row["correct"] for row in theirs)) <= 5


@needs_foreign
def test_every_file_of_the_collection_is_read_or_refused_with_the_reason() -> None:
    files = [path for path in sorted(FOREIGN.rglob("*")) if path.is_file() and path.parent != FOREIGN]
    read = 0
    for path in files:
        name = path.relative_to(FOREIGN).as_posix()
        if name.startswith("expected/"):
            continue
        if name in REFUSED:
            with pytest.raises(DataError, match=re.escape(REFUSED[name])):
                read_responses(path)
        else:
            assert len(read_responses(path)) > 0, name
            read += 1
    assert read == 34


@needs_foreign
def test_the_nce_of_sclites_words_is_the_one_that_sclite_gives() -> None:
    found = score(FOREIGN / "asr/sctk-2.4.10_lvc_hypc.sgml", replicates=50)
    assert found.to_dict()["systems"][0]["measures"]["nce"]["value"] == pytest.approx(0.209, abs=5e-4)


def zstd_archive(path: Path, members: dict[str, bytes]) -> Path:
    """A ZIP archive with members packed by Zstandard, which zipfile does not write before Python 3.14."""
    body, directory = b"", b""
    for name, content in members.items():
        packed = pa.Codec("zstd").compress(content, asbytes=True)
        common = struct.pack("<5H3L2H", 20, 0, 93, 0, 0, zlib.crc32(content), len(packed), len(content), len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + common
        directory += struct.pack("<3H2L", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + common + name.encode() + packed
    end = struct.pack("<4H2LH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + end)
    return path


def inspect_members(file: str = "inspect_choice-3epochs.json") -> dict[str, bytes]:
    document = json.loads((DATA / file).read_text(encoding="utf-8"))
    samples = {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in document.pop("samples")}
    coded = {name: json.dumps(one, indent=2).encode() for name, one in samples.items()}
    return {"_journal/start.json": json.dumps(document).encode(), **coded, "header.json": json.dumps(document).encode()}


def test_an_archive_packed_with_zstandard_holds_what_the_document_holds(tmp_path: Path) -> None:
    archive = zstd_archive(tmp_path / "run.eval", inspect_members())
    assert rows_of([archive]) == rows_of([DATA / "inspect_choice-3epochs.json"])


@pytest.mark.parametrize(
    "file", ["inspect_choice-3epochs.json", "promptfoo.jsonl", "openai_evals.jsonl", "deepeval_test_run.json"]
)
def test_two_runs_of_one_system_are_compared_under_the_names_of_their_files(tmp_path: Path, file: str) -> None:
    for run in ("before", "after"):
        shutil.copy(DATA / file, tmp_path / f"{run}{Path(file).suffix}")
    systems = [{row["system"] for row in rows_of([path])} for path in (DATA / file, *sorted(tmp_path.iterdir()))]
    assert systems[0] == systems[1] == systems[2]
    found = compare(*sorted(tmp_path.iterdir(), reverse=True), replicates=50)
    named = {f"{name} ({run})" for name in systems[0] for run in ("before", "after")}
    assert {one.system for one in found.evaluations} == named
    same = [pair for pair in found.pairs if pair.a.partition(" (")[0] == pair.b.partition(" (")[0]]
    assert len(same) == len(systems[0])
    assert all(pair.paired for pair in same)


@pytest.mark.parametrize("file", ["inspect_choice.eval", "sklearn_all.npz"])
def test_archives_may_be_compressed_once_more(tmp_path: Path, file: str) -> None:
    path = tmp_path / f"{file}.gz"
    path.write_bytes(gzip.compress((DATA / file).read_bytes()))
    assert rows_of([path]) == rows_of([DATA / file])


def test_an_archive_of_deflate_names_model_and_logprobs() -> None:
    rows = rows_of([DATA / "inspect_choice.eval"])
    assert {row["system"] for row in rows} == {"mockllm/model"}
    assert all(0 < row["confidence"] <= 1 for row in rows if not row["abstained"])


def test_a_run_that_was_broken_off_is_read_as_far_as_it_went(tmp_path: Path) -> None:
    members = inspect_members()
    header = json.loads(members.pop("header.json"))
    members["_journal/start.json"] = json.dumps({**header, "status": "started"}).encode()
    archive = zstd_archive(tmp_path / "run.eval", members)
    with opened(archive) as (file,):
        assert any('the run has the status "started"' in note for note in file.notes)


def test_epochs_vote_where_agreement_is_asked_for() -> None:
    with opened(DATA / "inspect_choice-3epochs.json", columns={"confidence": "agreement"}) as (file,):
        assert file.frame is not None
        rows = {row["id"]: row for row in file.frame.to_dicts()}
    assert len(rows) == 5
    by_hand = {"q01": ("B", 1.0), "q02": ("A", 0.5), "q03": (None, None)}  # q03: withheld, then D: the first of a tie
    assert {name: (rows[name]["prediction"], rows[name]["confidence"]) for name in by_hand} == by_hand


def test_mixed_with_a_native_log_compressed_and_from_standard_input(tmp_path: Path) -> None:
    native = [{"id": f"q{k:02}", "target": "a", "prediction": "a", "confidence": k / 30} for k in range(1, 26)]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(one) + "\n" for one in native))
    with gzip.open(tmp_path / "other.json.gz", "wb") as file:
        file.write((DATA / "promptfoo.json").read_bytes())
    done = run_in(tmp_path, "validate", "own.jsonl", "other.json.gz", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["system"] for one in json.loads(done.stdout)["systems"]] == ["own", "guide-a", "guide-b"]
    piped = run_in(tmp_path, "validate", "-", "--json", piped=(DATA / "openai_evals.jsonl").read_text())
    notes = json.loads(piped.stdout)["notes"]
    assert any(note.startswith("<stdin>: read as events of OpenAI evals") for note in notes)


@pytest.mark.parametrize("command", ["score", "threshold", "classes", "report", "validate", "nbest", "add"])
def test_commands_read_a_log_of_another_tool(demur: Demur, tmp_path: Path, command: str) -> None:
    shutil.copy(DATA / "lm_eval_samples_mc.jsonl", tmp_path / "samples.jsonl")
    options = {"threshold": ["--max-error", "0.5"], "add": ["--store", "runs"], "report": ["-o", "page.html"]}
    done = demur(
        command,
        "samples.jsonl",
        *options.get(command, []),
        *([] if command in ("validate", "add") else ["--seed", "1"]),
    )
    assert done.returncode == 0, done.stderr
    assert "samples of lm-evaluation-harness" in done.stderr + done.stdout or command in ("report", "add")


def test_import_writes_the_rows_and_says_what_was_taken(demur: Demur, tmp_path: Path) -> None:
    shutil.copy(DATA / "promptfoo.json", tmp_path / "results.json")
    done = demur("import", "promptfoo", "results.json", "-o", "log.jsonl")
    assert done.returncode == 0, done.stderr
    assert "confidence <- namedScores.confidence" in done.stderr
    assert "--metric intent judges otherwise" in done.stderr
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert len(rows) == 12
    again = demur("import", "rasa", "results.json")
    assert again.returncode == 2
    assert "is not a log of Rasa" in again.stderr


def test_promptfoos_score_is_never_the_confidence() -> None:
    rows = rows_of([DATA / "promptfoo.csv"])
    assert [row["confidence"] for row in rows[:2]] == [0.86, 0.79]
    assert "Score" not in rows[0]


def test_trials_of_langsmith_are_paired_by_example() -> None:
    found = read_responses(DATA / "langsmith.csv")
    assert found.frame["dialogue"].n_unique() == 15
    assert len(found) == 30


def test_targets_may_come_from_a_second_file() -> None:
    gold = DATA / "hf_text-classification_with_gold.jsonl"
    with choosing(ImportChoices(gold=gold, on="row")), opened(DATA / "hf_text-classification_top1.json") as (file,):
        assert file.frame is not None
        assert file.frame["target"].to_list()[:2] == ["tickets", "opening_hours"]
    with choosing(ImportChoices(gold=gold, on="other")), pytest.raises(DataError, match='no column "other"'):
        read_responses(DATA / "hf_text-classification_top1.json")


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return path


def edited(file: str, text: str, other: str) -> str:
    """A log with a text of it replaced."""
    return (DATA / file).read_text(encoding="utf-8").replace(text, other)


BAD: dict[str, tuple[str, Any, ImportChoices, str]] = {
    "unknown scorer": ("a.json", "inspect_verbalised-2epochs.json", ImportChoices(scorer="verbal"), "did you mean"),
    "unknown metric": ("a.jsonl", "lm_eval_samples_mc.jsonl", ImportChoices(metric="accc"), "no metric"),
    "unknown filter": ("a.jsonl", "lm_eval_samples_gen.jsonl", ImportChoices(filter="maj"), "no filter"),
    "only errors": ("a.json", "rasa_intent_errors.json", PLAIN, "--successes"),
    "only successes": ("a.json", "rasa_response_selection_successes.json", PLAIN, "only answers that are right"),
    "a report": ("a.json", "rasa_intent_report.json", PLAIN, "no answers"),
    "a document": ("a.json", {"run": 1, "out": {"rows": [{"a": 1}]}}, PLAIN, "--rows out.rows"),
    "rows nowhere": ("a.json", {"run": {"rows": [{"a": 1}]}}, ImportChoices(rows="run.row"), "rows are at run.rows"),
    "no samples": (
        "a.json",
        {"version": 2, "status": "error", "eval": {"task": "t", "model": "m"}},
        PLAIN,
        "no samples",
    ),
    "only failures": (
        "a.json",
        edited("promptfoo.json", '"failureReason": ', '"failureReason": 2, "was": '),
        PLAIN,
        "failed, 12",
    ),
    "another version": ("a.json", edited("promptfoo.json", '"success"', '"passed"'), PLAIN, "is a success"),
    "no answers": (
        "a.jsonl",
        edited("lm_eval_samples_mc.jsonl", '"filtered_resps": [', '"filtered_resps": [], "was": ['),
        PLAIN,
        "no filtered_resps",
    ),
    "a bad pattern": ("a.csv", "target,prediction\na,a\n", ImportChoices(withheld_like=("(",)), "regular expression"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_a_sentence(tmp_path: Path, case: str) -> None:
    name, content, choices, says = BAD[case]
    path = tmp_path / name
    if isinstance(content, str) and len(content) < 100 and (DATA / content).is_file():
        shutil.copy(DATA / content, path)
    else:
        written(path, content)
    with choosing(choices), pytest.raises(DemurError, match=re.escape(says)):
        read_responses(path)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
@pytest.mark.parametrize("file", ["inspect_choice.eval", "promptfoo.json", "sklearn_all.npz", "squad_nbest.json"])
def test_logs_that_are_cut_off_are_refused(tmp_path: Path, file: str, share: float) -> None:
    content = (DATA / file).read_bytes()
    path = tmp_path / file
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError):
        read_responses(path)


def test_scores_that_are_texts_mean_what_they_spell(tmp_path: Path) -> None:
    spelled = written(tmp_path / "a.json", edited("promptfoo.json", '"success": false', '"success": "false"'))
    judged = [row["correct"] for row in rows_of([DATA / "promptfoo.json"])]
    assert [row["correct"] for row in rows_of([spelled])] == judged
    assert False in judged
    document = json.loads((DATA / "promptfoo.json").read_text(encoding="utf-8"))
    for one in document["results"]["results"]:
        one["namedScores"] = {name: str(score) for name, score in one["namedScores"].items()}
    for choices in (PLAIN, ImportChoices(metric="intent")):
        assert rows_of([written(tmp_path / "b.json", document)], choices) == rows_of([DATA / "promptfoo.json"], choices)
    texts = written(tmp_path / "a.jsonl", edited("lm_eval_samples_mc.jsonl", '"acc": 0.0', '"acc": "0.0"'))
    assert [row["correct"] for row in rows_of([texts])] == [
        row["correct"] for row in rows_of([DATA / "lm_eval_samples_mc.jsonl"])
    ]


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    members = inspect_members()
    members["samples/bomb.json"] = b" " * (1 << 22)
    with (
        limited(TableLimits(columns=1000, rows=3, cells=10**6, fix="smaller")),
        pytest.raises(DataError, match="more than 3"),
    ):
        read_responses(zstd_archive(tmp_path / "run.eval", inspect_members()))
    with zipfile.ZipFile(tmp_path / "large.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in inspect_members().items():
            archive.writestr(name, content)
        archive.infolist()[1].file_size = 1 << 40
    with pytest.raises(DataError):
        read_responses(tmp_path / "large.eval")


def test_nan_in_json_is_a_grader_that_failed() -> None:
    with opened(DATA / "inspect_graded-qa-CIN.json") as (file,):
        assert any("their grader failed" in note for note in file.notes)


def test_samples_without_a_score_are_left_out_and_did_not_fail(tmp_path: Path) -> None:
    document = json.loads((DATA / "inspect_choice-3epochs.json").read_text(encoding="utf-8"))
    document["samples"][0]["scores"] = None
    path = written(tmp_path / "run.json", document)
    with opened(path) as (file,):
        assert any("they have no score: 1" in note for note in file.notes)
    assert rows_of([path]) == rows_of([DATA / "inspect_choice-3epochs.json"])[1:]
    for sample in document["samples"]:
        sample["scores"] = {}
    with pytest.raises(DataError, match=r"no sample that was scored \(inspect score run.json"):
        read_responses(written(path, document))


def test_words_align_by_fewest_edits_and_may_be_left_out() -> None:
    slots = list(slots_of("i've { um / uh / @ } as far as i'm"))
    assert aligned(["they've", "as", "far", "i'm"], slots) == ["i've", "as", "far", "i'm"]


def test_words_are_of_the_first_segment_that_ends_after_them(tmp_path: Path) -> None:
    lines = ["1.0 2.0 <O> one two", "2.0 3.0 IGNORE_TIME_SEGMENT_IN_SCORING", "4.0 5.0 <O> three"]
    written(tmp_path / "words.stm", "".join(f"tape A me {line}\n" for line in lines))
    times = {"before": 0.1, "one": 1.0, "two": 1.5, "lost": 2.5, "between": 3.2, "three": 4.5, "after": 6.0}
    written(tmp_path / "words.ctm", "".join(f"tape A {time} 0.2 {word} 0.5\n" for word, time in times.items()))
    rows = rows_of([tmp_path / "words.ctm", tmp_path / "words.stm"])
    assert [(row["prediction"], row["target"]) for row in rows] == [
        ("before", None),
        ("one", "one"),
        ("two", "two"),
        ("between", None),
        ("three", "three"),
        ("after", None),
    ]


def test_a_table_of_samples_holds_the_confidences_of_a_scorer_that_gives_several_values(tmp_path: Path) -> None:
    header = "sample_id,eval_id,id,epoch,score_both\n"
    values = ['{"correct": 1.0, "confidence": 70}', '{"correct": 0.0, "confidence": 0.4}', '{"correct": 1, "x": NaN}']
    quoted = [f's{k},e,q{k},1,"{value.replace(chr(34), chr(34) * 2)}"\n' for k, value in enumerate(values)]
    path = written(tmp_path / "samples.csv", header + "".join(quoted))
    with opened(path) as (file,):
        assert not any("agreement" in note for note in file.notes)  # there are no answers that could agree
    rows = rows_of([path])
    assert [(row["correct"], row["confidence"]) for row in rows] == [(True, 0.7), (False, 0.4), (True, None)]


TURNED = {
    "columns of lists": {"target": ["x", "y"], "prediction": ["x", "x"], "confidence": [0.3, 0.4]},
    "columns by place": {"target": {"0": "x", "1": "y"}, "prediction": {"0": "x", "1": "x"}},
    "rows by id": {"q1": {"target": "x", "prediction": "x"}, "q2": {"target": "y", "prediction": "x"}},
    "split": {"columns": ["target", "prediction"], "index": [0, 1], "data": [["x", "x"], ["y", "x"]]},
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("shape", TURNED)
def test_a_table_is_read_whichever_way_json_turns_it(tmp_path: Path, shape: str, indent: int | None) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(TURNED[shape], indent=indent) + "\n")
    assert read_responses(path).frame["right"].to_list() == [True, False]
    path.write_text(json.dumps({"run": {"rows": TURNED["rows by id"]}}, indent=indent))
    with pytest.raises(DataError, match=re.escape("--rows run.rows (2 objects)")):
        read_responses(path)


def test_a_single_row_with_lists_or_objects_stays_a_row(tmp_path: Path) -> None:
    row = {"target": ["x", "y"], "prediction": "x"}
    assert len(read_responses(written(tmp_path / "a.jsonl", json.dumps(row)))) == 1
    inside = {"expected": {"name": "x", "sure": 1}, "actual": {"name": "x", "sure": 0.5}}
    columns = {"target": "expected.name", "prediction": "actual.name"}
    assert len(read_responses(written(tmp_path / "b.jsonl", json.dumps(inside)), reading=Reading(columns=columns))) == 1


def test_patterns_of_refusals_may_have_flags_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "target,prediction\nx,Sorry!\nx,x\n")
    with choosing(ImportChoices(withheld_like=("(?i)sorry", "cannot"))):
        assert read_responses(path).frame["answered"].to_list() == [False, True]


def test_importers_are_named_as_registered_and_do_not_take_native_logs(tmp_path: Path) -> None:
    assert [one.name for one in log_importers()] == list(REGISTRY)
    native = written(tmp_path / "own.jsonl", '{"id": 1, "gold": "a", "answer": "a", "score": 0.5}\n')
    from demur.core.io import sources

    with sources.opened(native) as (source,):
        assert not any(one.recognises(ForeignFile(source)) for one in log_importers())


def test_paths_lead_into_rows(tmp_path: Path) -> None:
    rows = [{"id": k, "want": "a", "out": {"label": "a", "scores": [{"value": k / 10}]}} for k in range(1, 9)]
    written(tmp_path / "log.json", {"results": {"items": rows}})
    columns = {"target": "want", "prediction": "out.label", "confidence": "out.scores[0].value"}
    with choosing(ImportChoices(rows="results.items")), opened(tmp_path / "log.json", columns=columns) as (file,):
        assert file.frame is not None
        assert file.frame["out.scores[0].value"].to_list() == [k / 10 for k in range(1, 9)]


def test_values_inside_rows_are_proposed_ready_to_copy(tmp_path: Path) -> None:
    rows = [{"gold": {"intent": "a"}, "out": {"prediction": {"name": "a"}, "scores": [{"confidence": 0.9}]}}]
    path = written(tmp_path / "log.jsonl", "\n".join(map(json.dumps, rows)))
    maps = "--map target=gold.intent --map prediction=out.prediction.name --map confidence='out.scores[0].confidence'"
    with pytest.raises(DataError, match=re.escape(maps)):
        read_responses(path)
    columns = dict(one.split("=") for one in maps.replace("'", "").split() if "=" in one)
    assert read_responses(path, reading=Reading(columns=columns)).frame["right"].to_list() == [True]
    written(tmp_path / "log.json", json.dumps({"results": rows}))  # on one line
    with pytest.raises(DataError, match=r"--rows results \(1 objects\)"):
        read_responses(tmp_path / "log.json")


def test_values_inside_rows_that_are_mapped_win_over_an_importer(tmp_path: Path) -> None:
    row = {"want": {"label": "a"}, "out": {"label": "a", "score": 0.9}}  # as pipelines of Hugging Face write it
    path = written(tmp_path / "log.jsonl", json.dumps(row))
    columns = {"target": "want.label", "prediction": "out.label", "confidence": "out.score"}
    assert read_responses(path, reading=Reading(columns=columns)).frame["right"].to_list() == [True]


def test_the_decimal_mark_can_be_said(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "target;prediction;confidence;weight\na;a;0,9;1,5\nb;a;1;2\n")
    with choosing(ImportChoices(decimal=",")):
        found = read_responses(path).frame
    assert found["confidence"].to_list() == [0.9, 1.0]
    assert found["weight"].to_list() == [1.5, 2.0]
    with choosing(ImportChoices(decimal=".")), pytest.raises(DataError, match=r'must have "\." before decimals'):
        read_responses(path)


def test_the_deployed_threshold_of_a_bot_is_marked_on_the_plot() -> None:
    files = [DATA / one for one in ("rasa_model_parse.jsonl", "rasa_test_nlu.yml", "rasa_config.yml")]
    (found,) = score(*files, replicates=50)
    point = found.deployed_point
    assert point is not None
    below = [row["confidence"] < 0.35 for row in rows_of(files)]
    assert (point.threshold, point.nonreturn) == (0.35, sum(below) / len(below))
    chart = json.dumps(error_return_chart([found]).to_dict())
    assert "deployed: 0.35" in chart
    assert found.to_dict()["deployed"] == {"threshold": 0.35, "nonreturn": point.nonreturn, "error": point.error}


def workbook(path: Path, rows: list[list[str | float]]) -> Path:
    """The least that is an Excel workbook."""

    def cell(value: str | float) -> str:
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>' if isinstance(value, str) else f"<c><v>{value}</v></c>"

    sheet = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
            f'<Override PartName="/xl/sheet.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" '
            f'Type="{relation}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{relation}"><sheets><sheet name="log" sheetId="1" r:id="s"/></sheets>'
            "</workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="s" Type="{relation}/worksheet" '
            'Target="sheet.xml"/></Relationships>',
        )
        archive.writestr("xl/sheet.xml", f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>')
    return path


def test_the_first_sheet_of_a_workbook_is_a_table(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    rows: list[list[str | float]] = [["target", "prediction", "confidence"], ["a", "a", 0.9], ["b", "a", 0.4]]
    found = read_responses(workbook(tmp_path / "log.xlsx", rows))
    assert found.frame["right"].to_list() == [True, False]
    assert found.frame["confidence"].to_list() == [0.9, 0.4]


def test_a_label_beside_a_better_name_is_not_the_target(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "expected_intent,label,detected_intent,score\na,x,a,0.9\nb,x,a,0.4\n")
    found = read_responses(path)
    assert found.frame["right"].to_list() == [True, False]
    assert "target <- expected_intent" in found.notes


def test_a_value_nested_hundreds_of_times_is_text_and_takes_no_memory():
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    column = loose_series("name", ["plain", deep])
    assert column.dtype == pl.String
    assert column[1] == "[" * 300 + '"x"' + "]" * 300


def test_trials_vote_alike_in_logs_of_other_tools_and_in_plain_tables(tmp_path: Path) -> None:
    rows = ["id,trial,target,answer", "q1,1,a,b", "q1,2,a,a", "q1,3,a,a", "q2,1,a,c", "q2,2,a,c", "q2,3,a,"]
    plain = written(tmp_path / "log.csv", "\n".join(rows) + "\n")
    with opened(plain, columns={"confidence": "agreement"}) as (file,):
        assert file.frame is not None
        voted = file.frame.select("id", "prediction", "agreement").rows()
    assert voted == [("q1", "a", pytest.approx(2 / 3)), ("q2", "c", pytest.approx(2 / 3))]
    langsmith = rows_of([DATA / "langsmith.csv"])
    with opened(DATA / "langsmith.csv", columns={"confidence": "entropy"}) as (file,):
        assert file.frame is not None
        assert file.frame.height == len({row["id"] for row in langsmith}) == 15
    with (
        pytest.raises(DataError, match="no trials whose agreement"),
        opened(DATA / "ragas.csv", columns={"confidence": "agreement"}),
    ):
        pass


def test_a_long_log_on_one_line_is_recognised_by_its_beginning(tmp_path: Path) -> None:
    document = json.loads((DATA / "inspect_choice-3epochs.json").read_text())
    deep: Any = {"end": True}
    for _ in range(20):
        deep = {"inside": [deep]}
    first = document["samples"][0]
    more = [{**first, "id": f"more{place}", "store": deep, "padding": "x" * 900} for place in range(100)]
    path = written(tmp_path / "log.json", json.dumps({**document, "samples": [*more, *document["samples"]]}))
    assert len(rows_of([path])) == 100 + len(document["samples"])


def test_rows_in_pieces_are_the_rows_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": place, "a": [place] if place == 7 else f"t{place}", "b": None if place else 1} for place in range(9)]
    whole = frame_of(rows)
    monkeypatch.setattr("demur.importers.protocol.IN_A_PIECE", 2)
    assert frame_of(iter(rows)).equals(whole)


@pytest.mark.parametrize("code", [0x7FF00000, 0xD800])
def test_texts_of_an_array_that_hold_no_characters_are_refused(tmp_path, code):
    labels = np.array(["yes", "no"])
    labels.view(np.uint32)[0] = code
    np.savez(tmp_path / "log.npz", y_true=labels, y_proba=np.array([[0.9, 0.1], [0.4, 0.6]]), classes=labels)
    done = run_in(tmp_path, "validate", "log.npz")
    assert done.returncode == 2
    assert "no characters" in done.stderr
