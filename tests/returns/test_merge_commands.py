"""`demur merge`: the sweeps of parts give what `demur score` of the whole log gives."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import polars as pl
import pytest

import demur as package
from commands import Demur, log
from demur.errors import DataError
from demur.returns.counting import tallies_of_frame
from demur.returns.sweep_files import SweepFile, read_sweep, rules_of
from demur.returns.table import Reading, read_responses

QUICK = ("--replicates", "50")


def sweep_of(path: Path, *, by: str | None = None, **options: Any) -> Path:
    """The sweep of a log, written beside it."""
    reading = Reading(**options, keep=() if by is None else (by,))
    judged = read_responses(path, reading=reading)
    tallies = tallies_of_frame(judged.frame, by=by)
    target = path.with_suffix(".sweep")
    SweepFile(tuple(tallies), rules_of(reading), (path.name,), judged.notes, judged.warnings).write(target)
    return target


def parted(path: Path, rows: int = 70) -> Iterator[Path]:
    """The log in parts of so many rows, all of one system."""
    lines = [json.dumps({**json.loads(line), "system": "guide"}) + "\n" for line in path.read_text().splitlines()]
    path.write_text("".join(lines))
    for place, start in enumerate(range(0, len(lines), rows)):
        part = path.with_name(f"part-{place}.jsonl")
        part.write_text("".join(lines[start : start + rows]))
        yield part


def test_merged_parts_are_shown_as_the_whole_is(demur: Demur, tmp_path: Path) -> None:
    domains = [("art", "opening hours")[k % 3 == 0] for k in range(200)]
    whole = log(tmp_path / "log.jsonl", domain=domains)
    for part in parted(whole):
        sweep_of(part, by="domain")
    options = (
        "--json",
        "--curve",
        "--at-nonreturn",
        "0.1:0.3",
        "--aurc",
        "trapezoid",
        "--region",
        "0.1:0.5",
        "--seed",
        "3",
    )
    merged = demur("merge", "part-*.sweep", *options)
    assert merged.returncode == 0, merged.stderr
    assert merged.stderr == ""
    scored = json.loads(demur("score", "log.jsonl", "--by", "domain", *options).stdout)
    document = json.loads(merged.stdout)
    assert document["systems"] == scored["systems"]
    assert document["slices_at_one_threshold"] == scored["slices_at_one_threshold"]
    assert document["notes"][0] == "3 sweeps of 3 logs merged"
    assert document["notes"][-1] == "seed 3, 1,000 replicates"


def test_parts_counted_by_different_engines_add_up(demur: Demur, tmp_path: Path) -> None:
    parts = list(parted(log(tmp_path / "log.jsonl")))
    for part, engine in zip(parts, ("memory", "polars", "duckdb"), strict=True):
        pl.read_ndjson(part).write_parquet(part.with_suffix(".parquet"))
        done = demur("score", f"{part.stem}.parquet", "--engine", engine, "-o", f"{part.stem}.sweep", *QUICK)
        assert done.returncode == 0, done.stderr
    merged = json.loads(demur("merge", "part-*.sweep", "--json", *QUICK).stdout)
    assert merged["systems"] == json.loads(demur("score", "log.jsonl", "--json", *QUICK).stdout)["systems"]
    assert "3 sweeps of 3 logs merged" in merged["notes"]


def test_tables_and_figures_are_those_of_the_whole(demur: Demur, tmp_path: Path) -> None:
    for part in parted(log(tmp_path / "log.jsonl")):
        sweep_of(part)
    parts = ("part-0.sweep", "part-2.sweep", "part-1.sweep")
    merged = demur("merge", *parts, "-o", "merged.csv", "-o", "merged.svg", *QUICK)
    scored = demur("score", "log.jsonl", "-o", "scored.csv", "-o", "scored.svg", *QUICK)
    assert merged.stdout == scored.stdout
    for ending in ("csv", "svg"):
        assert (tmp_path / f"merged.{ending}").read_bytes() == (tmp_path / f"scored.{ending}").read_bytes()
    assert "note: 3 sweeps of 3 logs merged" in merged.stderr


def test_dialogues_and_weights_give_the_same_values(demur: Demur, tmp_path: Path) -> None:
    columns = {"dialogue": [f"d{k // 4}" for k in range(200)], "weight": [1 + k % 3 / 2 for k in range(200)]}
    for part in parted(log(tmp_path / "log.jsonl", **columns)):
        sweep_of(part)
    merged = json.loads(demur("merge", "part-*.sweep", "--json", *QUICK).stdout)["systems"][0]
    scored = json.loads(demur("score", "log.jsonl", "--json", *QUICK).stdout)["systems"][0]
    assert merged["signature"] == scored["signature"]
    assert merged["clustered_by_dialogue"] is True
    for name, figure in scored["measures"].items():
        assert merged["measures"][name]["value"] == pytest.approx(figure["value"]), name


def test_a_merged_sweep_can_be_kept_and_added_to(demur: Demur, tmp_path: Path) -> None:
    for part in parted(log(tmp_path / "log.jsonl")):
        sweep_of(part)
    first = demur("merge", "part-0.sweep", "part-1.sweep", "-o", "so_far.sweep", *QUICK)
    assert first.returncode == 0, first.stderr
    assert "wrote so_far.sweep" in first.stderr
    assert read_sweep(tmp_path / "so_far.sweep").sources == ("part-0.jsonl", "part-1.jsonl")
    in_place = demur("merge", "so_far.sweep", "part-2.sweep", "-o", "so_far.sweep")
    assert (in_place.returncode, in_place.stderr) == (
        2,
        "error: -o so_far.sweep: this file is read here; write to another\n",
    )
    grown = demur("merge", "so_far.sweep", "part-2.sweep", "-o", "grown.sweep", "-o", "page.html", "--quiet", *QUICK)
    assert grown.returncode == 0, grown.stderr
    assert grown.stderr == ""
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert read_sweep(tmp_path / "grown.sweep").tallies[0].n == 200
    again = demur("merge", "grown.sweep", "part-2.sweep")
    assert again.returncode == 2
    assert '"part-2.jsonl" is in grown.sweep and part-2.sweep, so it counts 2 times' in again.stderr
    allowed = demur("merge", "grown.sweep", "part-2.sweep", "--allow-repeats", "--json", *QUICK)
    assert json.loads(allowed.stdout)["systems"][0]["n"] == 260
    assert '"part-2.jsonl" is in grown.sweep' in json.loads(allowed.stdout)["warnings"][0]


def test_a_gate_holds_for_merged_sweeps_too(demur: Demur, tmp_path: Path) -> None:
    sweep_of(log(tmp_path / "a.jsonl"))
    gated = demur("merge", "a.sweep", "--fail-if", "augrc > 0.01", "-o", "kept.sweep", *QUICK)
    assert gated.returncode == 1
    assert "gate: a: augrc > 0.01 holds" in gated.stderr
    assert (tmp_path / "kept.sweep").exists()


def test_logs_that_do_not_name_their_system_become_one(demur: Demur, tmp_path: Path) -> None:
    for seed in range(3):
        sweep_of(log(tmp_path / f"day-{seed}.jsonl", seed=seed))
    unnamed = demur("merge", "day-*.sweep", "--json", *QUICK)
    assert [(one["system"], one["n"]) for one in json.loads(unnamed.stdout)["systems"]] == [("day", 600)]
    assert 'taken for parts of one, here called "day"' in json.loads(unnamed.stdout)["warnings"][-1]
    apart = demur("merge", "day-*.sweep", "--apart", "--json", *QUICK)
    assert [one["n"] for one in json.loads(apart.stdout)["systems"]] == [200, 200, 200]
    together = demur("merge", "day-*.sweep", "--name", "guide", "-o", "guide.sweep", *QUICK)
    assert "taken for parts of one" not in together.stderr
    assert read_sweep(tmp_path / "guide.sweep").tallies[0].system == "guide"
    assert read_sweep(tmp_path / "guide.sweep").tallies[0].n == 600
    assert "taken for parts of one" not in demur("merge", "day-0.sweep", *QUICK).stderr
    assert package.merge(tmp_path / "day-*.sweep", name="guide", replicates=50)[0].n == 600


def test_many_notes_are_counted(demur: Demur, tmp_path: Path) -> None:
    for part in parted(log(tmp_path / "log.jsonl"), rows=8):
        sweep_of(part, where=(("target", "yes"),))
    notes = json.loads(demur("merge", "part-*.sweep", "--json", *QUICK).stdout)["notes"]
    assert len(notes) == 23
    assert notes[-2] == "5 more notes of the parts; -o WHOLE.sweep keeps them all"


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, its sweep, that of a log of which rows were chosen, and a folder called like one."""
    folder = tmp_path_factory.mktemp("sweeps")
    sweep_of(log(folder / "a.jsonl"))
    sweep_of(log(folder / "strict.jsonl"), where=(("target", "yes"),))
    (folder / "folder.sweep").mkdir()
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.jsonl"], "a.jsonl is no sweep file"),
        (["*.swep"], "*.swep matches no file"),
        (["a.swepp"], 'a.swepp does not exist (did you mean "'),
        (["a.sweep", "./a.sweep"], "a.sweep is given twice"),
        (["a.sweep", "strict.sweep"], "where is [] in a.sweep"),
        (["a.sweep", "-o", "a.xyz"], "the extension must be one of"),
        (["a.sweep", "-o", "folder.sweep"], "-o folder.sweep: this is a directory"),
        (["a.sweep", "--region", "0.3"], "--region takes a rising range"),
        (["a.sweep", "--fail-if", "x"], "--fail-if takes"),
    ],
)
def test_what_cannot_be_merged_is_refused(
    demur: Demur, sweeps: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    copytree(sweeps, tmp_path, dirs_exist_ok=True)
    done = demur("merge", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_help_has_an_example(demur: Demur) -> None:
    shown = demur("merge", "--help", columns=200)
    assert "demur merge parts/*.sweep -o whole.sweep -o plot.svg" in shown.stdout
    assert "--allow-repeats" in shown.stdout


def test_python_merges_files_and_sweeps_already_read(tmp_path: Path) -> None:
    paths = [sweep_of(part) for part in parted(log(tmp_path / "log.jsonl"))]
    scored = package.score(tmp_path / "log.jsonl", seed=5, replicates=50)
    for parts in (paths, [tmp_path / "part-*.sweep"], [read_sweep(paths[2]), *paths[:2]]):
        assert package.merge(*parts, seed=5, replicates=50).to_dict()["systems"] == scored.to_dict()["systems"]
    with pytest.raises(DataError, match="so it counts 2 times"):
        package.merge(*paths, read_sweep(paths[0]))
    assert package.merge(*paths, read_sweep(paths[0]), allow_repeats=True, replicates=50)[0].n == 270
