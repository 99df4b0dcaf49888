"""What `demur understand` does once its options are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import typer

import demur
from demur.apps.cli import output
from demur.apps.cli.gates import failures
from demur.apps.cli.options import OutputOptions, SamplingOptions, pair_of
from demur.apps.cli.output import steps
from demur.core.io.tables import as_text
from demur.core.io.writing import ENDINGS, write_rows, write_whole
from demur.core.show.presentation import Presentation
from demur.core.stats.intervals import check_level
from demur.errors import UsageError
from demur.returns.threshold import aim
from demur.understanding.jobs import COST_RATIO, as_pairs, fitted_model
from demur.understanding.model_files import check_place, save_model
from demur.understanding.pairs import PairReading, Pairs, read_inputs, read_pairs
from demur.understanding.presentation import of_responses, of_training, of_tuning
from demur.understanding.tokens import parts_of
from demur.understanding.tuning import WEIGHTS

TABLE_FORMATS = (*ENDINGS, ".json", ".csv", ".tsv", ".parquet", ".arrow")
PAGE_FORMATS = (".md", ".html")


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was asked for: where it is, what its answers say, and how it is read."""

    source: str
    answers: str | None
    map: Sequence[str]
    where: Sequence[str]
    out_of_scope: Sequence[str]

    def reading(self) -> PairReading:
        """How it is read."""
        default = PairReading()
        labels = tuple(label for label in self.out_of_scope if label)
        return PairReading(
            columns=dict(pair_of(text, "--map", "NAME=COLUMN") for text in self.map),
            where=tuple(pair_of(text, "--where", "COLUMN=VALUE") for text in self.where),
            out_of_scope=labels if self.out_of_scope else default.out_of_scope,
        )

    def pairs(self) -> Pairs:
        """The pairs in it, with what their answers say."""
        return as_pairs(read_pairs(self.source, reading=self.reading()), self.answers)


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where a model goes, and where what is told of it goes."""

    folder: Path | None
    told: OutputOptions

    def save(self, model: Any, shown: Presentation) -> None:
        """Write the model, and say so; a gate that asks for what is not there is refused first."""
        failures(self.told.fail_if, shown.document)
        if self.folder is not None:
            save_model(model, self.folder)
            if not (self.told.quiet or self.told.json):
                typer.echo(f"wrote {self.folder}", err=True)


def destinations(names: list[str] | None, *, json: bool, quiet: bool, fail_if: list[str] | None) -> Destinations:
    """Tell the model's folder from files; what cannot be written is refused before any work is done."""
    folders = [name for name in names or [] if name.endswith("/") or not Path(name).suffix]
    files = [Path(name) for name in names or [] if name not in folders]
    for path in files:
        if path.suffix.lower() not in output.FORMATS:
            raise UsageError(
                f"-o {path}: the folder of a model has a name without an ending, or / at its end; "
                f"files end in {' '.join(output.FORMATS)}"
            )
    if len(folders) > 1:
        raise UsageError(f"-o {' -o '.join(folders)}: a model goes to one folder")
    told = OutputOptions(json=json, output=files, quiet=quiet, fail_if=fail_if or [])
    output.check(told)
    folder = Path(folders[0]) if folders else None
    if folder is not None:
        check_place(folder)
    return Destinations(folder, told)


def train(table: Table, manner: Mapping[str, Any], to: Destinations) -> None:
    """Train a model and write it."""
    if to.folder is None:
        raise UsageError("a model needs a folder to be written to: -o MODEL_DIR")
    output.refuse_figures(to.told)
    _check_threshold(manner["threshold"])
    parts_of(manner["tokens"])
    with steps(quiet=to.told.quiet or to.told.json) as step:
        step("reading", 0, 2)
        pairs = table.pairs()
        step("training", 1, 2)
        model = demur.train(pairs, **manner)
    shown = of_training(model, pairs)
    to.save(model, shown)
    _deliver(shown, pairs, to)


def tune(
    table: Table,
    manner: Mapping[str, Any],
    aims: Mapping[str, Any],
    sampling: SamplingOptions,
    to: Destinations,
    *,
    off_topic: str | None,
) -> None:
    """Tune a model and write the best."""
    check_level(sampling.level)
    parts_of(manner["tokens"])
    aimless = all(value is None for value in aims.values())
    if not aimless:
        aim(**aims, delta=None)
    with steps(quiet=to.told.quiet or to.told.json) as step:
        step("reading", 0, 1)
        pairs = table.pairs()
        drawn: dict[str, Any] = {"level": sampling.level, "replicates": sampling.replicates, "seed": sampling.seed}
        found = demur.tune(pairs, off_topic=off_topic, step=step, **manner, **aims, **drawn)
    notes = [f"no aim was given, so a non-return is taken to cost {COST_RATIO:g} of an error"] if aimless else []
    least, most = min(WEIGHTS), max(WEIGHTS)
    if found.tuning.best.parameters["question_weight"] in (least, most):
        notes.append(f"the best question weight is at the edge of those tried, {least:g} to {most:g}")
    notes += [] if to.folder else ["the model is not kept; -o MODEL_DIR writes it"]
    notes.append(f"seed {sampling.seed}, {sampling.replicates:,} replicates")
    shown = of_tuning(found.model, found.tuning, found.choice, found.evaluation, pairs)
    to.save(found.model, shown)
    _deliver(replace(shown, notes=(*shown.notes, *notes)), pairs, to)


def respond(
    model: Path, table: Table, manner: Mapping[str, Any], files: Sequence[Path], *, json: bool, quiet: bool
) -> None:
    """Answer the texts of a table."""
    _check_files(files)
    _check_threshold(manner["threshold"])
    with steps(quiet=quiet or json) as step:
        step("reading", 0, 1)
        fitted = fitted_model(model, manner["threshold"])
        if manner["withhold"] and fitted.threshold is None:
            raise UsageError("--withhold: the model has no threshold; give one with --threshold, or find one with tune")
        asked = read_inputs(table.source, reading=table.reading())
        found = demur.respond(fitted, asked, nbest=manner["nbest"], withhold=manner["withhold"], step=step)
    shown = of_responses(found, fitted)
    for path in files:
        _write(path, found, shown)
    notes = asked.notes if files else (*asked.notes, *shown.notes)
    rows = {} if files else {"responses": msgspec.to_builtins(found.to_dicts())}
    document = {**shown.document, **rows, "out": [str(path) for path in files]}
    told = replace(shown, tables=() if files else shown.tables, notes=notes, document=document)
    output.deliver(told, OutputOptions(json=json, quiet=quiet))
    if not (json or quiet):
        for path in files:
            typer.echo(f"wrote {path}", err=True)


def _deliver(shown: Presentation, pairs: Pairs, to: Destinations) -> None:
    document = {**shown.document, "model": None if to.folder is None else str(to.folder)}
    notes, warnings = (*shown.notes, *pairs.notes), (*shown.warnings, *pairs.warnings)
    output.deliver(replace(shown, document=document, notes=notes, warnings=warnings), to.told)


def _check_threshold(threshold: float | None) -> None:
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"--threshold takes a number; got {threshold}")


def _check_files(files: Sequence[Path]) -> None:
    for path in files:
        if not path.name.lower().endswith((*TABLE_FORMATS, *PAGE_FORMATS)):
            known = " ".join((*TABLE_FORMATS, *PAGE_FORMATS))
            raise UsageError(f'-o {path}: the name must end in one of {known}; got "{path.name}"')
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")


def _write(path: Path, table: pl.DataFrame, shown: Presentation) -> None:
    """The responses in the format of a name."""
    if path.name.lower().endswith(ENDINGS):
        write_rows(path, table.iter_rows(named=True))
        return
    suffix = path.suffix.lower()
    if suffix in PAGE_FORMATS:
        write_whole(path, output.rendered(shown, suffix))
        return
    writers: dict[str, Callable[[], str | bytes]] = {
        ".json": lambda: msgspec.json.encode(table.to_dicts()),
        ".csv": lambda: _flat(table).write_csv(),
        ".tsv": lambda: _flat(table).write_csv(separator="\t"),
        ".parquet": lambda: _bytes(table.write_parquet),
        ".arrow": lambda: _bytes(table.write_ipc),
    }
    write_whole(path, writers[suffix]())


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Lists as JSON, for formats whose cells are text."""
    return table.with_columns(as_text(column) for column in table if column.dtype.is_nested())


def _bytes(write: Callable[[BytesIO], Any]) -> bytes:
    buffer = BytesIO()
    write(buffer)
    return buffer.getvalue()
