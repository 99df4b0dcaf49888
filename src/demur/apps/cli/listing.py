"""`demur nbest`: from tables of N-best lists to their measures, comparisons and recalibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

import demur
from demur.apps.cli import output
from demur.apps.cli.options import ListOptions, OutputOptions, SamplingOptions, ScorerOptions, pair_of
from demur.apps.cli.output import steps
from demur.core.io.writing import check_rows_file, write_rows
from demur.core.show.presentation import Presentation
from demur.core.show.results import Step
from demur.core.stats.calibration import Recalibration
from demur.core.stats.intervals import check_level
from demur.errors import UsageError
from demur.nbest_lists.asr.scorers import check_name
from demur.nbest_lists.compare import compare_nbest
from demur.nbest_lists.evaluate import Manner, evaluate_nbest
from demur.nbest_lists.presentation import of_nbest, of_nbest_comparison
from demur.nbest_lists.recalibrate import (
    Recalibrated,
    fit_acts,
    fit_items,
    nbest_rows,
    recalibrated_acts,
    recalibrated_items,
)
from demur.nbest_lists.table import NBest

BUNDLED_GRAMMAR = (
    "sentences were parsed by the bundled grammar of a restaurant guide; --grammar or --parser name another"
)


@dataclass(frozen=True, slots=True)
class Comparing:
    """Whether and how systems are compared."""

    asked: bool
    systems: tuple[str, ...]
    matched: bool
    unpaired: bool

    def check(self) -> None:
        """Refuse options that only a comparison takes."""
        if not self.asked and (self.systems or self.matched or self.unpaired):
            raise UsageError("--system, --matched and --unpaired go with --compare")
        if self.matched and self.unpaired:
            raise UsageError("--matched pairs utterances and --unpaired does not: give one of them")


def nbest(
    files: list[str],
    lists: ListOptions,
    scorers: ScorerOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    by: str | None,
    comparing: Comparing,
    floor: float,
    clip: float,
    recalibrate_on: list[str],
    write_lists: Path | None,
) -> None:
    """Evaluate the lists in the files, or compare them."""
    output.check(outputs)
    comparing.check()
    _check_files(files, recalibrate_on, write_lists)
    if comparing.asked and (by or recalibrate_on):
        raise UsageError("--compare looks at whole systems: leave out --by and --recalibrate-on, or use --where")
    manner = _manner(floor, clip, sampling)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        table = read(files, lists, scorers, by=by)
        fitted = _fitted(recalibrate_on, lists, scorers)
        shown = _compared(table, comparing, manner, step) if comparing.asked else None
        if shown is None:
            shown = of_nbest(
                evaluate_nbest(table, by=by, manner=manner, step=step), recalibrated=_mended(table, fitted, manner)
            )
    if write_lists is not None:
        output.refuse_undeliverable(shown, outputs)
        _write(write_lists, table, fitted)
        shown = replace(shown, notes=(*shown.notes, f"lists written to {write_lists}"))
    told = (*shown.notes, *table.notes, *_parsed(scorers), f"seed {sampling.seed}, {sampling.replicates:,} replicates")
    output.deliver(replace(shown, notes=told, warnings=(*shown.warnings, *table.warnings)), outputs)


def _check_files(files: list[str], recalibrate_on: list[str], write_lists: Path | None) -> None:
    """Refuse files in two parts that do not go together, before any work is done."""
    evaluated = {Path(file).resolve() for file in files}
    for file in recalibrate_on:
        if Path(file).resolve() in evaluated:
            raise UsageError(
                f"--recalibrate-on {file}: this file is evaluated too, and confidences that were fitted on it say "
                "nothing about new data; fit on another"
            )
    if write_lists is None:
        return
    check_rows_file(write_lists, "--write-lists")
    if write_lists.resolve() in evaluated | {Path(file).resolve() for file in recalibrate_on}:
        raise UsageError(f"--write-lists {write_lists}: this file is read here; write to another")


def _manner(floor: float, clip: float, sampling: SamplingOptions) -> Manner:
    for option, value in (("--floor", floor), ("--clip", clip)):
        if not 0 < value < 0.5:
            raise UsageError(f"{option} must lie between 0 and 0.5; got {value:g}")
    check_level(sampling.level)
    return Manner(floor, clip, sampling.level, sampling.replicates, sampling.seed)


def read(files: list[str], lists: ListOptions, scorers: ScorerOptions, *, by: str | None = None) -> NBest:
    """The lists of the files, made by a scorer where one is named."""
    return demur.read_nbest(
        *files,
        columns=dict(pair_of(text, "--map", "NAME=COLUMN") for text in lists.map),
        where=tuple(pair_of(text, "--where", "COLUMN=VALUE") for text in lists.where),
        items=lists.items,
        normalise=lists.normalise,
        ontology=lists.ontology,
        keep=(by,) if by else (),
        scorer=_names(scorers),
        grammar=scorers.grammar,
        parser=scorers.parser,
        heard=scorers.heard,
        sentences=scorers.sentences,
    )


def _names(scorers: ScorerOptions) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in (scorers.scorer or "").split(",") if name.strip()))
    if scorers.scorer is not None and not names:
        raise UsageError("--scorer takes a name, or several separated by commas, such as const,infev; got none")
    for name in names:
        check_name(name)
    if not names and (scorers.grammar or scorers.parser or scorers.sentences or scorers.heard != "auto"):
        raise UsageError("--grammar, --parser, --heard and --sentences go with --scorer")
    return names


def _parsed(scorers: ScorerOptions) -> tuple[str, ...]:
    """That nobody said how sentences are to be parsed, where a scorer needs it."""
    return (BUNDLED_GRAMMAR,) if scorers.scorer and not (scorers.grammar or scorers.parser) else ()


def _compared(table: NBest, how: Comparing, manner: Manner, step: Step) -> Presentation:
    comparison = compare_nbest(
        table, systems=how.systems or None, matched=how.matched, unpaired=how.unpaired, manner=manner, step=step
    )
    return of_nbest_comparison(comparison)


@dataclass(frozen=True, slots=True)
class _Fitted:
    items: Recalibration
    acts: Recalibration


def _fitted(files: list[str], lists: ListOptions, scorers: ScorerOptions) -> _Fitted | None:
    if not files:
        return None
    table = read(files, replace(lists, where=[]), scorers)
    return _Fitted(fit_items(table), fit_acts(table))


def _mended(table: NBest, fitted: _Fitted | None, manner: Manner) -> list[Recalibrated]:
    if fitted is None:
        return []
    return [recalibrated_items(table.of(system), fitted.items, manner) for system in table.systems]


def _write(path: Path, table: NBest, fitted: _Fitted | None) -> None:
    if fitted is None:
        write_rows(path, nbest_rows(table))
        return
    mended = recalibrated_acts(table, fitted.acts)
    named = mended.frame.with_columns(pl.col("system") + " recalibrated")
    write_rows(path, nbest_rows(replace(mended, frame=named), fitted.items))
