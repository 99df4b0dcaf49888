import hashlib
import json

import polars as pl
import pytest

import demur
from demur.core.io import tables
from demur.errors import DataError, UsageError
from demur.gold_standard.trials import TrialReading, measured_columns, trials
from demur.nbest_lists.table import nbest
from demur.outcome.table import dialogues
from demur.reports import analyses
from demur.reports.analyses import MixtureReading, read_mixture
from demur.returns.table import responses

ANSWERS = [
    {
        "id": k,
        "dialogue": f"d{k % 3}",
        "target": "oos" if k == 5 else "a",
        "prediction": "a",
        "confidence": k / 6,
        "noise": k % 2,
    }
    for k in range(6)
]
LISTS = [{"id": 1, "reference": ["a"], "hypotheses": [{"items": ["a"], "confidence": 0.5}]}]
ENDS = [{"dialogue": f"d{k}", "success": k % 2} for k in range(3)]
TRIALS = [{"performer": who, "wer": 0.1 * k, "done": k % 2} for k in range(4) for who in ("wizard", "A")]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path):
    tables = {"log": ANSWERS, "lists": LISTS, "ends": ENDS, "trials": TRIALS}
    return [write(tmp_path / f"{name}.jsonl", rows) for name, rows in tables.items()]


def test_each_file_is_read_as_what_it_is(files):
    found = read_mixture(*files)
    assert found.responses is not None
    assert found.responses.systems == ("log",)
    assert found.lists is not None
    assert len(found.lists) == 1
    assert found.dialogues is not None
    assert found.dialogues.frame["outcome"].to_list() == [0.0, 1.0, 0.0]
    assert [(one.study, one.x_name, one.y_name) for one in found.trials] == [("trials", "wer", "done")]
    assert [one.kind for one in found.files] == ["responses", "nbest", "dialogues", "trials"]
    assert "x <- wer, y <- done: the only columns they could be" in found.notes


def test_a_file_is_told_by_name_size_and_digest_without_its_folder(files):
    one = read_mixture(files[0]).files[0]
    content = files[0].read_bytes()
    assert (one.name, one.size) == ("log.jsonl", len(content))
    assert one.digest == hashlib.sha256(content).hexdigest()[:16]


def test_columns_to_slice_by_are_kept(files):
    found = read_mixture(files[0])
    assert found.responses is not None
    assert "noise" in found.responses.frame.columns


def test_turns_count_every_label_where_there_are_dialogues(files):
    found = read_mixture(files[0], files[2])
    assert found.responses is not None
    assert found.responses.frame["out_of_scope"].sum() == 1
    assert found.turns is not None
    assert found.turns.frame["out_of_scope"].sum() == 0
    assert read_mixture(files[0]).turns is None


def test_tables_read_before_and_frames_are_taken_as_they_are():
    study = trials(TRIALS, reading=TrialReading(x="wer", y="done"))
    found = read_mixture(responses(ANSWERS), nbest(LISTS), dialogues(ENDS, reading=_by_success()), study)
    assert (found.responses, found.lists) != (None, None)
    assert len(found.trials) == 1
    framed = read_mixture(pl.DataFrame(ANSWERS), pl.DataFrame(ENDS))
    assert framed.responses is not None
    assert framed.responses.systems == ("system",)
    two = read_mixture(ANSWERS, pl.DataFrame(ANSWERS))
    assert two.responses is not None
    assert two.responses.systems == ("system 1", "system 2")


def _by_success():
    from demur.outcome.table import DialogueReading

    return DialogueReading(outcome="success")


def test_a_kind_that_is_said_wins(tmp_path):
    path = write(tmp_path / "both.jsonl", [{**LISTS[0], "prediction": "a"}])
    with pytest.raises(DataError, match="may be a table of responses or of nbest"):
        read_mixture(path)
    for name in ("both.jsonl", str(path)):
        found = read_mixture(path, reading=MixtureReading(kinds={name: "nbest"}))
        assert found.lists is not None
        assert found.responses is None


def test_labels_out_of_scope_mean_nothing_in_lists_of_a_mixture(tmp_path):
    targets = ["pay", "oos", "other", None]
    rows = [{"id": n, "target": one, "nbest": [{"label": "pay", "p": 0.5}]} for n, one in enumerate(targets)]
    path = write(tmp_path / "log.jsonl", rows)
    for labels, empty in ((("oos",), 2), (("other",), 2), ((), 1)):
        found = read_mixture(path, reading=MixtureReading(kinds={"log.jsonl": "nbest"}, out_of_scope=labels))
        assert found.lists is not None
        assert (found.lists.sets.size[found.lists.reference] == 0).sum() == empty


def test_kinds_and_files_that_are_not_there_are_refused(files):
    with pytest.raises(UsageError, match="a table is one of responses, nbest, dialogues, trials"):
        read_mixture(files[0], reading=MixtureReading(kinds={"log.jsonl": "tails"}))  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r'no such file is read here; did you mean "log\.jsonl"'):
        read_mixture(files[0], reading=MixtureReading(kinds={"lag.jsonl": "trials"}))


def test_a_mapping_and_a_filter_count_for_the_tables_that_have_the_column(tmp_path, files):
    odd = write(
        tmp_path / "odd.jsonl", [{"nr": k, "right_one": "a", "prediction": "a", "confidence": k} for k in range(4)]
    )
    reading = MixtureReading(columns={"target": "right_one"}, where=(("nr", "2"),))
    found = read_mixture(odd, files[3], reading=reading)
    assert found.responses is not None
    assert len(found.responses) == 1
    assert any("nr=2 was not asked of trials" in note for note in found.notes)


def test_a_mapping_or_a_filter_that_concerns_no_table_is_refused(files):
    with pytest.raises(DataError, match='no table here has a column "gild" that can be mapped to target'):
        read_mixture(*files, reading=MixtureReading(columns={"target": "gild"}))
    with pytest.raises(DataError, match=r'no column is called "targt" here \(did you mean "target"'):
        read_mixture(*files, reading=MixtureReading(columns={"targt": "gold"}))
    with pytest.raises(DataError, match=r'no table here has a column "nois".*did you mean "noise"'):
        read_mixture(*files, reading=MixtureReading(where=(("nois", "1"),)))


def test_nothing_to_read_is_told():
    with pytest.raises(DataError, match="no file to read was given"):
        read_mixture()


def test_the_two_columns_measured_are_guessed_only_where_nothing_else_could_be_meant():
    rows = {"performer": ["wizard", "A"], "wer": [0.1, 0.35], "completed": [1, 0], "age": [3, 4]}
    with pytest.raises(UsageError, match=r"trials need --x.* columns of numbers here: wer, completed, age"):
        measured_columns([rows], None, None)
    assert measured_columns([rows], "wer", None)[:2] == ("wer", "completed")
    assert measured_columns([rows], "age", "completed") == ("age", "completed", [])
    assert measured_columns([{"performer": ["A"], "n": [5], "wer": [3.5], "rate": [0.4]}], None, None)[:2] == (
        "wer",
        "rate",
    )
    assert measured_columns([{"performer": ["A", "B"], "wer": ["3.5", "4"], "ok": ["yes", "no"]}], None, None)[:2] == (
        "wer",
        "ok",
    )


@pytest.fixture
def named_logs():
    """Two systems with long names that share their ends, and a column to slice by."""
    rows = {
        name: [
            {
                "id": k,
                "correct": k % every > 0,
                "confidence": (7 * k % 100) / 100,
                "part": "xy"[k % 2],
                "day": f"2026-0{1 + k // 40}-01",
            }
            for k in range(120)
        ]
        for name, every in (("results_mmlu_llama-3-70b_cot", 3), ("results_mmlu_qwen-2-72b_cot", 4))
    }
    return {name: pl.DataFrame(table) for name, table in rows.items()}


def test_pages_say_once_what_all_names_share_and_json_has_them_in_full(named_logs):
    made = demur.report(named_logs, replicates=50)
    shared = 'names share the prefix "results_mmlu_" and the suffix "_cot"'
    (table,) = made.summary().tables
    assert (table.title.count(shared), [row[0] for row in table.rows]) == (1, ["llama-3-70b", "qwen-2-72b"])
    before_rows = made.markdown().split("### Rows")[0]
    assert "qwen-2-72b" in before_rows
    assert "results_mmlu" not in before_rows
    assert [one["system"] for one in made.to_dict()["thresholds"]] == list(named_logs)


def test_columns_in_categories_and_packed_texts_give_the_same_report(named_logs, monkeypatch, tmp_path):
    texts = pl.concat_str(pl.lit("input "), pl.col("id").cast(pl.String)).alias("text")
    files = [tmp_path / f"{name}.csv" for name in named_logs]
    for file, log in zip(files, named_logs.values(), strict=True):
        log.with_columns(texts).write_csv(file)
    as_texts, read = demur.report(named_logs, replicates=50).to_dict(), demur.report(*files, replicates=50).to_dict()
    monkeypatch.setattr(tables, "PACKED_ROWS", 50)
    for module in (tables, analyses):
        monkeypatch.setattr(module, "CATEGORISED_ROWS", 1)
    assert demur.report(*files, replicates=50).to_dict() == read
    errors = read["examples"][1]["confident_errors"]
    assert [one["input"] for one in errors] == [f"input {one['id']}" for one in errors] != []
    assert read_mixture(named_logs).responses.frame["part"].dtype == pl.Enum
    assert demur.report(named_logs, replicates=50).to_dict() == as_texts
    assert {test["column"] for test in as_texts["slices"]["tests"]} == {"day", "part"}


def test_reports_pair_as_they_are_asked_to(named_logs):
    columns = {"question": pl.int_range(120), "target": pl.lit("a"), "prediction": pl.lit("a")}
    keyed = {name: log.drop("id").with_columns(**columns) for name, log in named_logs.items()}
    notes = [demur.report(keyed, pair_by=by, replicates=50).to_dict()["notes"] for by in ("question", "row")]
    assert "paired by question on 120 inputs" in notes[0]
    assert "paired by row on 120 inputs" in notes[1]
    with pytest.raises(DataError, match="nothing"):
        demur.report(keyed, pair_by="nothing")


def test_every_figure_of_a_report_has_a_name_of_its_own(named_logs):
    names = list(demur.report(named_logs, replicates=50).pictures().drawings())
    assert names[0] == "comparison"
    assert {"cost_path", "difference", "reliability", "slice_difference"} <= set(names)
