"""What `demur outcome` does once its options are read."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from demur.apps.cli import output
from demur.apps.cli.options import InputOptions, OutputOptions, SamplingOptions, pair_of, read
from demur.apps.cli.output import steps
from demur.core.io.columns import nearest
from demur.core.io.files import read_table
from demur.core.io.writing import write_whole
from demur.core.show.presentation import Presentation
from demur.core.stats.intervals import check_level
from demur.errors import DataError, UsageError
from demur.outcome.features import Rejections, Undefined, design
from demur.outcome.fitting import Procedure, feature_sets, fit_outcome, fitted_beta, other_learners
from demur.outcome.fitting import regress as regress_rows
from demur.outcome.models import read_model
from demur.outcome.prediction import UnknownLabels, predicted_pairs, prices
from demur.outcome.prediction import predict as predict_system
from demur.outcome.presentation import of_fit, of_predictions, of_regression
from demur.outcome.stepwise import Selection
from demur.outcome.table import DialogueReading, Dialogues, read_dialogues, table_rows


@dataclass(frozen=True, slots=True)
class Search:
    """How terms are searched for."""

    direction: Literal["backward", "forward", "both"]
    start: Literal["full", "null"] | None
    keep: tuple[str, ...]
    folds: int | None

    def procedure(self, sampling: SamplingOptions, names: tuple[str, ...]) -> Procedure:
        """The procedure over these candidates; terms to keep are part of every model."""
        for name in self.keep:
            if name not in names:
                raise UsageError(f"--keep {name}: there is no such candidate; {nearest(name, names)}")
        start: Any = self.start
        if self.keep and (start == "null" or (start is None and self.direction == "forward")):
            start = self.keep
        scope = (self.keep, names) if self.keep else None
        selection = Selection(direction=self.direction, start=start, scope=scope)
        return Procedure(
            selection=selection,
            folds=self.folds,
            replicates=sampling.replicates,
            seed=sampling.seed,
            level=sampling.level,
            workers=os.cpu_count() or 1,
        )


@dataclass(frozen=True, slots=True)
class Predicting:
    """How outcomes are predicted."""

    extrapolate: bool
    pooled: bool
    unknown_labels: UnknownLabels


@dataclass(frozen=True, slots=True)
class Rows:
    """What the rows of a model are made of."""

    outcomes: Path
    outcome: str | None
    columns: tuple[str, ...]
    features: str
    least: float
    undefined: Undefined
    rejections: Rejections
    matched: bool


def fit(
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    rows: Rows,
    how: Search,
    *,
    sets: bool,
    learners: bool,
    model: Path | None,
) -> None:
    """Fit a model of the outcome to the turns of one system."""
    output.check(outputs)
    check_level(sampling.level)
    _check_model_file(model)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        turns = read(files, replace(inputs, missing_confidence="lowest"), plain_labels=True)
        table = _table(rows)
        common: dict[str, Any] = {
            "least": rows.least,
            "undefined": rows.undefined,
            "rejections": rows.rejections,
            "allow_unmatched": rows.matched,
        }
        made = design(table, turns, features=rows.features, **common)
        procedure = how.procedure(sampling, made.names)
        fitted = fit_outcome(made, how=procedure, step=step)
        plain = replace(procedure, selection=Selection(direction=how.direction, start=how.start))
        rivals = feature_sets(table, turns, how=plain, step=step, **common) if sets else ()
        others = other_learners(made, how=procedure, step=step) if learners else None
        beta = fitted_beta(made, how=procedure) if learners else None
    if model is not None:
        write_whole(model, fitted.model.to_json())
    shown = of_fit(fitted, sets=rivals, learners=others, beta=beta)
    written = (f"model written to {model}",) if model is not None else ()
    _deliver(shown, outputs, (*table.notes, *turns.notes, *written), (*table.warnings, *turns.warnings))


def regress(
    table: str,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    how: Search,
    *,
    outcome: str,
    candidates: str | None,
    group: str | None,
) -> None:
    """Regress a column of a table on others."""
    output.check(outputs)
    check_level(sampling.level)
    asked = None if candidates is None else [name.strip() for name in candidates.split(",") if name.strip()]
    if asked == []:
        raise UsageError("--candidates takes names of columns, separated by commas; got none")
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        rows = table_rows(read_table(table), outcome=outcome, candidates=asked, group=group)
        procedure = how.procedure(sampling, rows.names)
        found = regress_rows(rows.x, rows.y, rows.names, outcome=outcome, how=procedure, groups=rows.groups, step=step)
    _deliver(of_regression(found), outputs, (), ())


def predict(
    model: Path,
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    how: Predicting,
    *,
    comparing: bool,
) -> None:
    """Predict the outcome for the systems of the files."""
    output.check(outputs)
    check_level(sampling.level)
    fitted = read_model(model)
    turns = read(files, replace(inputs, missing_confidence="lowest"), plain_labels=True)
    if comparing and len(turns.systems) < 2:
        raise UsageError("a comparison needs two systems or more; outcome predict takes one")
    found = [
        predict_system(
            fitted,
            turns.of(system),
            pooled=how.pooled or None,
            extrapolate=how.extrapolate,
            unknown_labels=how.unknown_labels,
            level=sampling.level,
        )
        for system in turns.systems
    ]
    refused = [one for one in found if one.refused]
    if refused and (not comparing or len(refused) == len(found)):
        one = refused[0]
        raise DataError(
            f"{one.system} is unlike the training data of the model: {'; '.join(one.outside)}",
            where=f"{model}:",
            fix="collect dialogues with such a system; --extrapolate predicts all the same, with a warning",
        )
    pairs = predicted_pairs(fitted, found, sampling.level) if comparing else ()
    priced = prices(fitted, found[0].turns) if len(found) == 1 else ()
    _deliver(of_predictions(fitted, found, pairs, prices=priced), outputs, turns.notes, turns.warnings)


def _table(rows: Rows) -> Dialogues:
    columns = dict(pair_of(text, "--map-outcomes", "NAME=COLUMN") for text in rows.columns)
    try:
        return read_dialogues(rows.outcomes, reading=DialogueReading(outcome=rows.outcome, columns=columns))
    except DataError as fault:
        # --map is about the turns here, so advice to use it would not help.
        raise fault.rewritten(lambda text: text.replace("--map", "--map-outcomes")) from None


def _check_model_file(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix.lower() != ".json":
        raise UsageError(f"--model {path}: a model is written as .json")
    if path.is_dir():
        raise UsageError(f"--model {path}: this is a directory; name a file in it")


def _deliver(shown: Presentation, outputs: OutputOptions, notes: tuple[str, ...], warnings: tuple[str, ...]) -> None:
    told = replace(shown, notes=(*shown.notes, *notes), warnings=(*shown.warnings, *warnings))
    output.deliver(told, outputs)
