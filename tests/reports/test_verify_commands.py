"""`demur verify-engine`: sound engines agree with arrays, and one that errs is found out and named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands import Demur
from demur.apps.cli.app import app_of
from demur.reports import verify
from demur.returns import counting
from demur.returns.classes import MEASURES
from engines.cluster import Cluster

SMALL = ("--rows", "300")


def verified(*arguments: str) -> Result:
    """The command run in this process, where an engine can be tampered with."""
    return CliRunner().invoke(app_of(["verify-engine"]), ["verify-engine", *SMALL, *arguments], catch_exceptions=False)


def test_polars_and_duckdb_give_the_numbers_of_arrays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(verify, "ENGINES", ("polars", "duckdb"))
    done = verified("--seed", "3", "-o", str(tmp_path / "verified.json"))
    document = json.loads((tmp_path / "verified.json").read_text(encoding="utf-8"))
    assert done.exit_code == 0
    assert document["holds"]
    assert [(one["engine"], one["n"], one["holds"]) for one in document["engines"]] == [
        ("polars", 300, True),
        ("duckdb", 300, True),
    ]
    for one in document["engines"]:
        names = [each["measure"] for each in one["differences"]]
        assert {*MEASURES, "counts, all rows", "counts in cells, domain=desk"} <= set(names)
        assert {f"{name} (weighted rows)" for name in MEASURES} <= set(names)
        assert all(each["difference"] < 1e-9 for each in one["differences"])
    first, second, *table = done.stdout.splitlines()
    assert first.startswith("Polars: no differences in ")
    assert second.startswith("DuckDB: no differences in ")
    rows = [line.split() for line in table]
    assert ["augrc"] in [row[:1] for row in rows if row[-1:] == ["same"]]
    assert not any("DIFFERS" in line for line in table)


def swapped(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the two labels changed for each other, where both are known."""
    return rows.with_columns(
        actual=pl.coalesce("predicted", "actual"), predicted=pl.when(pl.col("predicted").is_not_null()).then("actual")
    )


Tampering = Callable[[pl.DataFrame], pl.DataFrame]
ERRING: dict[str, tuple[Tampering, str]] = {
    "a row lost": (lambda rows: rows.slice(1), "forced_error"),
    "labels swapped": (lambda rows: swapped(rows) if "actual" in rows.columns else rows, "kappa"),
    "a verdict lost": (
        lambda rows: rows.with_columns(failed=pl.lit(value=False)) if "failed" in rows.columns else rows,
        "counts, all rows",
    ),
}


def erring(change: Tampering) -> Callable[..., Callable[[pl.DataFrame], Any]]:
    """What hands rows over to an engine that does something to them."""
    return lambda *_: lambda frame: change(frame).lazy()


@pytest.mark.parametrize("fault", ERRING)
def test_an_engine_that_errs_is_found_out_and_what_differs_is_named(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, named = ERRING[fault]
    monkeypatch.setattr(verify, "holder_of", erring(change))
    monkeypatch.setattr(verify, "WEIGHTINGS", {"": verify.WEIGHTINGS[""]})
    done = verified("--engine", "polars")
    verdict, _, table = done.stdout.partition("\n")
    assert done.exit_code == 1
    assert "numbers of 300 rows differ: " in verdict
    differing = [line.strip() for line in table.splitlines() if line.rstrip().endswith("DIFFERS")]
    assert any(line.startswith(f"{named} ") for line in differing)


def test_a_master_goes_with_spark(demur: Demur) -> None:
    done = demur("verify-engine", "--engine", "duckdb", "--spark-master", "spark://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --spark-master goes with --engine spark\n"


@pytest.mark.usefixtures("spark")
def test_a_cluster_gives_the_numbers_of_arrays(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "ROUNDS", 2)
    weighted = {" (weighted rows)": verify.WEIGHTINGS[" (weighted rows)"]}
    monkeypatch.setattr(verify, "WEIGHTINGS", weighted)  # what weighs alike is counted by the same queries
    done = verified("--spark-master", cluster.url, "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("Spark: no differences in ")
    assert done.stdout.count("\n") == 1
