"""A column may be called anything: a name that looks like a pattern, or like one of ours, is a name all the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import demur
from demur.errors import DataError
from demur.nbest_lists.reward import rewards
from demur.returns.slices import slice_columns, slice_differences
from demur.returns.table import Reading, read_responses, responses
from demur.store.runs import Store

PATTERNS = ("*", "^other$", "^.*$")
NAMES = (*PATTERNS, "", "a\nb", "{}", "len", "count", "value", "n")
PLAIN = "plain"


def answers(name: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    rows = []
    for place, sure in enumerate(rng.random(160).round(3).tolist()):
        right = "yes" if rng.random() < sure else "no"
        rows.append({"id": f"q{place}", "target": "yes", "prediction": right, "confidence": sure})
        rows[-1] |= {"other": "xyz"[place % 3], name: "uv"[place % 2], "call": f"d{place % 40}"}
    return rows


def write(folder: Path, ending: str, rows: list[dict[str, Any]]) -> Path:
    path, frame = folder / f"log.{ending}", pl.DataFrame(rows)
    writers = {
        "jsonl": lambda: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
        "json": lambda: path.write_text(json.dumps(rows)),
        "csv": lambda: frame.write_csv(path),
        "tsv": lambda: frame.write_csv(path, separator="\t"),
        "parquet": lambda: frame.write_parquet(path),
        "arrow": lambda: frame.write_ipc(path),
    }
    writers[ending]()
    return path


def scored(data: Any, name: str, **how: Any) -> list[tuple[Any, ...]]:
    found = demur.score(data, replicates=50, **how).frame().filter(pl.col("measure") == "aurc")
    parts = found["slice"].cast(pl.String).str.strip_prefix(f"{name}=").to_list()
    return list(zip(parts, found["n"], found["value"], strict=True))


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet", "arrow"])
def test_a_name_is_that_of_one_column_in_every_format(ending: str, tmp_path: Path) -> None:
    for name in NAMES:
        path = write(tmp_path, ending, answers(name))
        judged = read_responses(path, reading=Reading(columns={"dialogue": name}, where=((name, "u"),), keep=(name,)))
        frame = judged.frame.with_row_index()
        assert frame["id"].to_list() == [f"q{2 * place}" for place in range(80)], name
        assert set(frame[name]) == set(frame["dialogue"]) == {"u"}, name
        assert ("other" in frame.columns) == (name == "*"), "which asks for all columns, too"


@pytest.mark.parametrize("name", PATTERNS)
def test_systems_are_scored_by_a_column_of_any_name(name: str, tmp_path: Path) -> None:
    expected, path = scored(answers(PLAIN), PLAIN, by=PLAIN), write(tmp_path, "jsonl", answers(name))
    assert scored(path, name, by=name) == expected
    assert scored(pl.DataFrame(answers(name)).lazy(), name, by=name, engine="memory") == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_that_of_one_column_in_frames(name: str) -> None:
    frame = pl.DataFrame(answers(name))
    for data in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), frame.to_dict(as_series=False)):
        judged = responses(data, reading=Reading(keep=(name,)))
        assert judged.frame[name].to_list() == frame[name].to_list()


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_any_name_are_sliced_by(name: str) -> None:
    everything = Reading(keep=("*",))
    judged = responses(answers(name), reading=everything)
    assert set(slice_columns(judged)) == {"other", name}
    found = slice_differences(judged, {"system": 0.5}, columns=(name,))
    plain = slice_differences(responses(answers(PLAIN), reading=everything), {"system": 0.5}, columns=(PLAIN,))
    assert [replace(one, column=PLAIN) for one in found.tests] == list(plain.tests)


@pytest.mark.parametrize("name", PATTERNS)
def test_what_an_engine_would_take_for_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    path, frame = write(tmp_path, "parquet", answers(name)), pl.DataFrame(answers(name))
    for data, engine in (
        (path, "polars"),
        (path, "duckdb"),
        (frame.lazy(), "auto"),
        (duckdb.from_arrow(frame.to_arrow()), "memory"),
    ):
        for how in ({"by": name}, {"where": [(name, "u")]}, {"columns": {"dialogue": name}}):
            with pytest.raises(DataError, match="takes for a pattern of names"):
                demur.score(data, engine=engine, **how)
    assert scored(path, "other", by="other", engine="polars") == scored(path, "other", by="other"), "not asked for"


@pytest.mark.parametrize("name", NAMES)
def test_a_run_keeps_and_finds_columns_of_any_name(name: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        run = store.add(write(tmp_path, "jsonl", answers(name)))[0].run
        rows = store.rows(run)
        assert dict(rows.slices())[name] == [("u", 80), ("v", 80)]
        assert rows.counts(where=[(name, "u")])["all"] == 80
        assert rows.page("all", where=[(name, "v"), ("other", "y")], limit=1).rows[0]["slices"][name] == "v"
        assert store.responses(run, columns=(name,)).frame[name].to_list().count("u") == 80
        assert store.responses(run, columns=("other",)).frame.columns[-1] == "other"


@pytest.mark.parametrize("name", ["*", "^other$", "n"])
def test_trials_and_outcomes_take_columns_of_any_name(name: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.random(120).round(2)
    trials = {"performer": ["wizard", "A"] * 60, name: x, "other": rng.random(120), "done": (rng.random(120) > x) * 1}
    plain = {PLAIN if column == name else column: values for column, values in trials.items()}
    found = [demur.gold(data, x=one, y="done", replicates=50) for data, one in ((trials, name), (plain, PLAIN))]
    assert found[0].to_dict()["performers"] == found[1].to_dict()["performers"]
    table = pl.DataFrame({name: x, "other": rng.random(120), "gain": x + 0.1 * rng.random(120)})
    one, two = (demur.regress(data, outcome="gain", replicates=0) for data in (table, table.rename({name: PLAIN})))
    assert one.chosen.aic == two.chosen.aic


@pytest.mark.parametrize("name", [name for name in NAMES if name != "a\nb"])
def test_lists_are_sliced_by_columns_of_any_name(name: str) -> None:
    def lists(column: str) -> list[dict[str, Any]]:
        return [
            {"id": k, "reference": ["a()"], "other": "xyz"[k % 3], column: "uv"[k % 2]}
            | {"hypotheses": [{"acts": ["a()" if k % 5 else "b()"], "confidence": 0.7}]}
            for k in range(20)
        ]

    one, two = (demur.nbest(lists(column), by=column, replicates=50) for column in (name, PLAIN))
    assert [part.part for part in one][1:] == [f"{name}=u", f"{name}=v"]
    assert one.frame()["value"].equals(two.frame()["value"], null_equal=True)
    with pytest.raises(DataError, match="a control character in its name"):
        demur.nbest(lists("a\nb"), by="a\nb")
    calls = pl.DataFrame({"dialogue": ["d"], "success": ["yes"], "turns": [3], "other": ["x"], name: ["u"]})
    assert rewards(calls, group=name)["group"].to_list() == ["u"]


@pytest.mark.parametrize("name", ["demur:row", "demur:source", "demur:correct"])
def test_names_that_are_ours_are_refused(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl", answers(name))
    with pytest.raises(DataError, match="what demur calls its own"):
        read_responses(path, reading=Reading(keep=(name,)))
    assert len(read_responses(path)) == 160, "not asked for, it does no harm"
