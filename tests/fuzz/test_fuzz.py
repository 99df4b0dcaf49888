"""A few inputs of every format, from a fixed seed: `make fuzz` feeds many more."""

import json
import random
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from commands import run_in
from demur.errors import DataError
from demur.nbest_lists.asr.lattices import read_lattice
from demur.returns.table import read_responses
from demur.store.runs import Store
from fuzz.__main__ import Case, Fuzzer, fault_of
from fuzz.corpus import answers, lines, targets
from fuzz.mutations import sealed_store


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("fuzz")
    made = Fuzzer(0, folder / "found", folder, targets())
    yield made
    made.child.end()


def test_spoilt_inputs_of_every_format_end_with_a_message(fuzzer: Fuzzer) -> None:
    wanted = Counter(dict.fromkeys(fuzzer.chosen, 1))
    for number in range(400):
        case = fuzzer.case(number)
        if wanted[case.target]:
            wanted[case.target] -= 1
            assert fuzzer.feed(case) is None, fuzzer.findings
    assert not wanted.total()


def test_sound_inputs_are_read(fuzzer: Fuzzer) -> None:
    for name in ("jsonl", "sweep", "model", "outcome", "dstc", "slf", "grammar", "trials", "pairs"):
        target = fuzzer.chosen[name]
        fuzzer.feed(Case(name, dict(target.files), target.commands[0]))
    assert fuzzer.codes["0"] >= 9


def test_what_fails_is_kept_with_the_command_that_repeats_it(fuzzer: Fuzzer) -> None:
    assert fuzzer.feed(Case("jsonl", {"a": b"x"}, ("@settings",))) == "IndexError", "it is given no folder"
    (folder,) = fuzzer.found.iterdir()
    assert (folder / "a").read_bytes() == b"x"
    assert (folder / "repeat.sh").read_text().endswith("demur @settings\n")
    assert "IndexError" in (folder / "said.txt").read_text()


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ({"code": 2, "said": "error: x", "peak": 0}, None),
        ({"code": 3, "said": "", "peak": 0}, "exit 3"),
        ({"code": 1, "said": "", "peak": 0}, None),
        ({"code": 1, "said": "Traceback (most recent call last):", "peak": 0}, "traceback"),
        ({"code": "signal 11", "said": "", "peak": 0}, "signal 11"),
        ({"code": 0, "said": "", "peak": 2 << 30}, "memory"),
    ],
)
def test_what_is_a_finding(answer: dict[str, object], wrong: str | None) -> None:
    assert fault_of(answer, ("runs", "--check")) == wrong


def test_the_code_of_a_failed_gate_is_a_finding_where_there_is_no_gate() -> None:
    assert fault_of({"code": 1, "said": "", "peak": 0}, ("score", "log.jsonl")) == "exit 1"


LOG = answers(random.Random(1), 30)


def refused(folder: Path, *command: str, **files: bytes) -> str:
    """What a command says of files it refuses."""
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    done = run_in(folder, *command)
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_an_array_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    rows = json.dumps(LOG).encode().replace(b"text 7", b"text \xee")
    assert "UTF-8" in refused(tmp_path, "score", "log.json", log_json=rows)


def test_a_number_beyond_all_floats_is_text_outside_columns_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines([{**LOG[0], "prediction": 10**400}, *LOG[1:]]))
    assert read_responses(path).frame["prediction"][0] == str(10**400)
    path.write_bytes(lines([{**LOG[0], "weight": 10**400}, *LOG[1:]]))
    with pytest.raises(DataError, match="weight must be a number of 0 or more"):
        read_responses(path)


def test_rows_nested_without_end_are_refused(tmp_path: Path) -> None:
    deep = b'{"id": 1, "reference": ' + b"[" * 600 + b"]" * 600 + b', "hypotheses": []}\n'
    said = refused(tmp_path, "nbest", "lists.jsonl", lists_jsonl=deep)
    assert "nested too deeply" in said or "must be text, not a list" in said  # Python 3.14 nests deeper


@pytest.mark.parametrize("weight", [1e308, 1e-200])
def test_a_weight_whose_square_is_no_number_is_refused(weight: float, tmp_path: Path) -> None:
    rows = lines([{**row, "weight": weight} for row in LOG])
    assert "within 1e-100 and 1e100" in refused(tmp_path, "score", "log.jsonl", log_jsonl=rows)


def test_a_date_that_no_calendar_has_is_refused(tmp_path: Path) -> None:
    """Polars panics where it writes such a date."""
    beyond = pl.Series("id", [2**62, 1], dtype=pl.Int64).cast(pl.Datetime("ms"))
    pl.DataFrame({"id": beyond, "correct": [True, False], "confidence": [0.5, 0.4]}).write_ipc(tmp_path / "log.arrow")
    assert "column id holds what cannot be read as text" in refused(tmp_path, "score", "log.arrow")


def test_a_long_line_of_a_lattice_takes_no_longer_than_it_is(tmp_path: Path) -> None:
    path = tmp_path / "u.lat"
    path.write_text("VERSION=1.0\n" + "x" * 2_000_000)
    with pytest.raises(DataError, match="must be fields name=value"):
        read_lattice(path)


def test_lists_of_numbers_are_kept_as_text(tmp_path: Path) -> None:
    pl.DataFrame([{**row, "nbest": place} for place, row in enumerate(LOG)]).write_parquet(tmp_path / "log.parquet")
    with Store.open(tmp_path / "store") as store:
        run = store.add(tmp_path / "log.parquet")[0].run
        assert store.responses(run, columns=("nbest",)).frame["nbest"][:2].to_list() == ["0", "1"]


@pytest.mark.parametrize(("name", "value"), [("right", "yes"), ("confidence", "0.5"), ("id", 1), ("domain", [1])])
def test_a_run_with_columns_of_other_types_is_damaged(name: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(lines(LOG))
    with Store.open(tmp_path / "store") as store:
        run = store.add(tmp_path / "log.jsonl")[0].run
    folder = tmp_path / "store" / "runs" / run.id
    sound = pl.read_parquet(folder / "rows.parquet")
    sound.with_columns(pl.Series(name, [value] * sound.height)).write_parquet(folder / "rows.parquet")
    files = {f"/{path.name}": path.read_bytes() for path in folder.iterdir()}
    (folder / "run.json").write_bytes(sealed_store(files)["/run.json"])
    damage = f'the column "{name}" in its rows.parquet is of'
    with Store.open(tmp_path / "store") as store, pytest.raises(DataError, match=damage):
        store.rows(store.run(run.id))
