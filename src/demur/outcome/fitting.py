"""A model of the outcome, chosen, validated and bootstrapped; and feature sets side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Shown, Step, plain, silent
from demur.errors import DataError
from demur.outcome.fbeta import FBeta, cross_validated_f_beta, fit_f_beta
from demur.outcome.features import MIN_PER_DIALOGUE, Design, Rejections, Undefined, design
from demur.outcome.learners import LEARNERS, cross_validated
from demur.outcome.models import OutcomeModel, model_of
from demur.outcome.paradise import Paradise, paradise
from demur.outcome.prediction import Price, prices
from demur.outcome.stepwise import Selection, Stepwise, step
from demur.outcome.table import Dialogues
from demur.outcome.validation import (
    Bootstrap,
    Diagnostics,
    Validation,
    bootstrap,
    diagnose,
    folds_of_groups,
    grouped_folds,
    leave_out,
    nested,
)
from demur.returns.table import Responses

PAPER_SETS = ("scores.fm", "scores.precision", "scores.recall", "conf", "scores.all", "conf+scores.f", "full")
"""The feature sets of Table 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """How a model is chosen and held against rows that it has not seen."""

    selection: Selection = field(default_factory=lambda: Selection(direction="both"))
    folds: int | None = None
    """Folds of the nested validation; left out, each dialogue or each group is one."""
    replicates: int = 1000
    seed: int = 0
    level: float = 0.95
    workers: int = 1
    """Processes that a long bootstrap may use."""

    def fold_of(self, groups: Array | NDArray[np.int64] | None, n: int) -> NDArray[np.int64] | None:
        """The fold of each row; None leaves out one at a time."""
        if self.folds is not None:
            return grouped_folds(list(range(n)) if groups is None else groups.tolist(), self.folds)
        return None if groups is None else folds_of_groups(groups.tolist())


@dataclass(frozen=True, eq=False)
class Regression(Shown):
    """A stepwise regression with all that says how far to trust it."""

    names: tuple[str, ...]
    x: Array
    y: Array
    outcome: str
    chosen: Stepwise
    loo: Validation
    nested: Validation
    bootstrap: Bootstrap | None
    groups: NDArray[np.int64] | None
    rows: tuple[str, ...]
    """What each row is called."""
    notes: tuple[str, ...]

    @cached_property
    def diagnostics(self) -> Diagnostics | None:
        """Inflation, sign flips, ranges and standardised coefficients of the terms; None without terms."""
        kept = [self.names[place] for place in self.chosen.columns]
        return diagnose(self.x[:, list(self.chosen.columns)], self.y, kept) if kept else None

    @cached_property
    def performance(self) -> Paradise | None:
        """The chosen terms as a performance function of z-scores (PARADISE); None without terms."""
        kept = [self.names[place] for place in self.chosen.columns]
        return paradise(self.x[:, list(self.chosen.columns)], self.y, kept) if kept else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using the model."""
        told = [f"{name} is a combination of terms before it and was left out" for name in self.chosen.aliased]
        if self.nested.failed:
            first = self.nested.failed[0].why
            told.append(f"{len(self.nested.failed)} folds of the nested validation have no model: {first}")
        found = self.diagnostics
        if found is not None:
            told += [
                f"{name} goes along with other terms (variance inflation {factor:.3g}): do not read its weight alone"
                for name, factor in found.inflated.items()
            ]
            told += [
                f"{flip.term} has a weight of {flip.multiple:+.3g} beside the others but {flip.simple:+.3g} alone"
                for flip in found.flips
            ]
        return tuple(told)

    @property
    def validation(self) -> dict[str, dict[str, float | None]]:
        """R2, MSE and SD in-sample, leaving out, and nested."""
        return {
            "in_sample": plain({"r2": self.chosen.r2, "mse": self.chosen.mse}),
            **{
                kind: plain({"r2": one.r2, "mse": one.mse, "sd": one.sd})
                for kind, one in (("loo", self.loo), ("nested", self.nested))
            },
        }

    def to_dict(self) -> dict[str, Any]:
        """The regression as plain values."""
        found = self.diagnostics
        return {
            **self.chosen.to_dict(),
            "outcome": self.outcome,
            "candidates": list(self.names),
            **self.validation,
            "nested_selected": dict(self.nested.selected),
            "nested_failed": [{"fold": one.fold, "why": one.why} for one in self.nested.failed],
            "grouped": self.groups is not None,
            **({} if self.bootstrap is None else {"bootstrap": self.bootstrap.to_dict()}),
            **({} if found is None else {"diagnostics": found.to_dict()}),
            **({} if self.performance is None else {"paradise": self.performance.to_dict()}),
        }


@dataclass(frozen=True, eq=False)
class OutcomeFit(Shown):
    """A model of the outcome of dialogues, with the prices of confusions where it is made of turns."""

    regression: Regression
    design: Design
    model: OutcomeModel

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """What putting right half of each confusion would do to the predicted outcome."""
        turns = self.design.turns
        return () if turns is None or not self._from_turns else prices(self.model, turns)

    @property
    def _from_turns(self) -> bool:
        from_turns = set(self.design.names) - set(self.design.columns)
        return set(self.model.terms) <= from_turns

    def to_dict(self) -> dict[str, Any]:
        """The fit as plain values."""
        return {
            **self.regression.to_dict(),
            "features": self.design.asked,
            "dialogues": len(self.design.dialogues),
            "undefined": self.design.undefined,
            "rejections": self.design.rejections,
            "mean_outcome": self.model.mean_outcome,
            "formula": self.model.formula(),
            "prices": [price.to_dict() for price in self.prices],
        }


@dataclass(frozen=True, slots=True)
class SetResult:
    """One feature set: how many candidates, which terms are kept, and how well it does; or why it has no model."""

    name: str
    candidates: int
    terms: tuple[str, ...]
    validation: Mapping[str, Mapping[str, float | None]]
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "features": self.name,
            "candidates": self.candidates,
            "terms": list(self.terms),
            **{kind: dict(values) for kind, values in self.validation.items()},
            **({} if self.why is None else {"why": self.why}),
        }


def regress(
    x: Array,
    y: Array,
    names: Sequence[str],
    *,
    outcome: str,
    how: Procedure,
    groups: NDArray[np.int64] | None = None,
    rows: Sequence[str] | None = None,
    notes: tuple[str, ...] = (),
    step: Step = silent,
) -> Regression:
    """Choose the predictors, validate the choice inside and out, and bootstrap the whole."""
    if groups is not None and np.ptp(groups) == 0:
        raise DataError("all rows are of one group, so none can be left out", fix="leave the column of groups out")
    chosen = _stepped(x, y, names, how)
    folds = how.fold_of(groups, y.size)
    alone = None if groups is None else folds_of_groups(groups.tolist())
    loo = leave_out(x[:, list(chosen.columns)], y, folds=alone)
    inside = nested(x, y, names, selection=how.selection, folds=folds, step=step)
    drawn = None
    if how.replicates:
        drawn = bootstrap(
            x,
            y,
            names,
            selection=how.selection,
            groups=None if groups is None else groups.tolist(),
            replicates=how.replicates,
            seed=how.seed,
            level=how.level,
            workers=how.workers,
            step=step,
        )
    called = tuple(rows) if rows is not None else tuple(f"row {place + 1}" for place in range(y.size))
    return Regression(tuple(names), x, y, outcome, chosen, loo, inside, drawn, groups, called, notes)


def fit_outcome(made: Design, *, how: Procedure, step: Step = silent) -> OutcomeFit:
    """The model of an outcome by features of dialogues."""
    found = regress(
        made.x,
        made.y,
        made.names,
        outcome=made.outcome,
        how=how,
        groups=made.groups,
        rows=made.dialogues,
        notes=made.notes,
        step=step,
    )
    model = model_of(made, found.chosen.terms, direction=str(how.selection.direction), validation=found.validation)
    return OutcomeFit(found, made, model)


def feature_sets(
    table: Dialogues,
    responses: Responses,
    *,
    sets: Sequence[str] = PAPER_SETS,
    how: Procedure,
    least: float = MIN_PER_DIALOGUE,
    undefined: Undefined = "impute-mean",
    rejections: Rejections = "counted",
    allow_unmatched: bool = False,
    step: Step = silent,
) -> tuple[SetResult, ...]:
    """Feature sets side by side, each chosen and validated alike; one that cannot be fitted says why."""
    found = []
    quick = Procedure(selection=how.selection, folds=how.folds, replicates=0, seed=how.seed, level=how.level)
    for done, name in enumerate(sets):
        step(f"trying {name}", done, len(sets))
        try:
            made = design(
                table,
                responses,
                features=name,
                least=least,
                undefined=undefined,
                rejections=rejections,
                allow_unmatched=allow_unmatched,
            )
            one = regress(made.x, made.y, made.names, outcome=made.outcome, how=quick, groups=made.groups)
        except DataError as fault:
            found.append(SetResult(name, 0, (), {}, str(fault)))
            continue
        found.append(SetResult(name, len(made.names), one.chosen.terms, one.validation))
    return tuple(found)


def other_learners(
    made: Design, names: Sequence[str] = ("ols", "lasso", "tree", "net"), *, how: Procedure, step: Step = silent
) -> dict[str, Validation]:
    """How well other learners do on the same rows and folds, each fitted anew without each fold."""
    folds = how.fold_of(made.groups, made.y.size)
    found = {}
    for done, name in enumerate(names):
        step(f"trying {name}", done, len(names))
        found[name] = cross_validated(LEARNERS[name], made.x, made.y, made.names, groups=made.groups, folds=folds)
    if made.turns is not None:
        found["f-beta"] = cross_validated_f_beta(made.turns.confusion, made.y, groups=made.groups, folds=folds)
    return found


def fitted_beta(made: Design, *, how: Procedure) -> FBeta | None:
    """The beta for which F of the turns tells most of the outcome; None where the model is not made of turns."""
    if made.turns is None:
        return None
    return fit_f_beta(
        made.turns.confusion,
        made.y,
        undefined=made.undefined,
        groups=made.groups,
        level=how.level,
        replicates=how.replicates,
        seed=how.seed,
    )


def sets_frame(results: Sequence[SetResult]) -> pl.DataFrame:
    """Feature sets as a table: a row per set and kind of validation."""
    rows = [
        {"features": one.name, "validation": kind, "r2": values.get("r2"), "mse": values.get("mse")}
        for one in results
        for kind, values in one.validation.items()
    ]
    schema = {"features": pl.String, "validation": pl.String, "r2": pl.Float64, "mse": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def _stepped(x: Array, y: Array, names: Sequence[str], how: Procedure) -> Stepwise:
    one = how.selection
    return step(x, y, names, direction=one.direction, start=one.start, scope=one.scope, k=one.k, limit=one.limit)
