"""How the numbers of a report were made: files, settings, software and signatures."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from demur import __version__
from demur.analyses.story import Story
from demur.data.mixture import FileRead
from demur.views.presentation import Presentation, Table
from demur.views.words import percent

PACKAGES = ("numpy", "polars", "scipy")


def versions() -> dict[str, str]:
    """The versions of what made the numbers."""
    return {"demur": __version__, "python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def making_section(story: Story, notes: Sequence[str], signatures: Sequence[str]) -> Presentation:
    """Everything needed to make the same numbers again."""
    files = story.mixture.files
    return Presentation(
        title="How the numbers were made",
        sentences=(_settings(story),),
        tables=(*([_file_table(files)] if files else []), _row_table(story), _version_table()),
        figures=(),
        data=pl.DataFrame,
        document={"files": [_file(one) for one in files], "made": made(story)},
        notes=tuple(notes),
        signatures=tuple(signatures),
    )


def made(story: Story) -> dict[str, Any]:
    """Settings and versions as plain values."""
    asked = story.asked
    settings = {"seed": asked.seed, "replicates": asked.replicates, "level": asked.level, "at_nonreturn": asked.at}
    return {**settings, "versions": versions()}


def _settings(story: Story) -> str:
    asked = story.asked
    return (
        f"Intervals and bands hold with {percent(asked.level)} confidence; those that are drawn anew come from "
        f"{asked.replicates:,} replicates with seed {asked.seed}. The same files and settings give the same report."
    )


def _file(one: FileRead) -> dict[str, Any]:
    return {"name": one.name, "kind": one.kind, "bytes": one.size, "sha256": one.digest}


def _file_table(files: Sequence[FileRead]) -> Table:
    rows = tuple((one.name, one.kind, "–" if one.size is None else f"{one.size:,}", one.digest or "–") for one in files)
    return Table("Files", ("file", "read as", "bytes", "SHA-256, first 16 digits"), rows)


def _row_table(story: Story) -> Table:
    """How many rows there are of each kind, by system or study."""
    mixture = story.mixture
    rows: list[tuple[str, str, str]] = []
    if mixture.responses is not None:
        counts = mixture.responses.frame["system"].value_counts().sort("system")
        rows += [("responses", name, f"{count:,}") for name, count in counts.iter_rows()]
    if mixture.lists is not None:
        counts = mixture.lists.frame["system"].value_counts().sort("system")
        rows += [("N-best lists", name, f"{count:,}") for name, count in counts.iter_rows()]
    if mixture.dialogues is not None:
        rows.append(("dialogues", mixture.dialogues.outcome, f"{len(mixture.dialogues):,}"))
    rows += [("trials", study.study, f"{len(study):,}") for study in mixture.trials]
    return Table("Rows", ("kind", "system or study", "rows"), tuple(rows))


def _version_table() -> Table:
    return Table("Software", ("package", "version"), tuple(versions().items()))
