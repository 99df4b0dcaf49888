"""A model of the outcome, chosen, validated and bootstrapped; and feature sets and learners to compare it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Shown, Step, plain, silent
from demur.core.stats.intervals import Difference, student, student_p
from demur.errors import DataError
from demur.outcome.features import REJECTION_NOTES, Design, Turns, design
from demur.outcome.learners import LEARNERS, FBeta, cross_validate, cross_validate_f_beta, fit_f_beta
from demur.outcome.least_squares import Diagnostics, Paradise, diagnose, paradise
from demur.outcome.prediction import HIDDEN_PRICES, OutcomeModel, Price, model_from_formula, model_of, prices
from demur.outcome.stepwise import Selection, Stepwise, run_search
from demur.outcome.table import Dialogues
from demur.outcome.validation import (
    Bootstrap,
    OutcomeValidation,
    bootstrap,
    folds_of_groups,
    grouped_folds,
    leave_out,
    nested,
)
from demur.returns.table import Responses

PAPER_SETS = ("scores.fm", "scores.precision", "scores.recall", "conf", "scores.all", "conf+scores.f", "full")
"""The feature sets of Table 5."""

_STANDARDISED = "PARADISE performance function, with standardised terms N(x) = (x - mean) / SD"


@dataclass(frozen=True, slots=True)
class Procedure:
    """How a model is chosen and tested on rows that it has not seen."""

    selection: Selection = field(default_factory=lambda: Selection(direction="both"))
    _: KW_ONLY
    folds: int | None = None
    """Folds of the nested validation; left out, each dialogue or each group is one."""
    replicates: int = 1000
    """Replicates of the bootstrap; 0 for none."""
    seed: int = 0
    level: float = 0.95

    def fold_of(self, groups: NDArray[np.int64] | None, n: int) -> NDArray[np.int64] | None:
        """The fold of each row; None leaves out one at a time."""
        if self.folds is not None:
            return grouped_folds(list(range(n)) if groups is None else groups.tolist(), self.folds)
        return None if groups is None else folds_of_groups(groups.tolist())


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Shown):
    """A stepwise regression with all that says how far to trust it."""

    names: tuple[str, ...]
    x: Array
    y: Array
    outcome: str
    chosen: Stepwise
    loo: OutcomeValidation
    nested: OutcomeValidation
    bootstrap: Bootstrap | None
    groups: NDArray[np.int64] | None
    rows: tuple[str, ...]
    """What each row is called."""
    row_notes: tuple[str, ...]
    """How the rows were made."""

    @cached_property
    def diagnostics(self) -> Diagnostics | None:
        """Inflation, sign flips, ranges and standardised coefficients of the terms; None without terms."""
        return diagnose(*self._kept) if self.chosen.terms else None

    @cached_property
    def performance(self) -> Paradise | None:
        """The chosen terms as a performance function of z-scores (PARADISE); None without terms."""
        return paradise(*self._kept) if self.chosen.terms else None

    @property
    def _kept(self) -> tuple[Array, Array, tuple[str, ...]]:
        return self.x[:, list(self.chosen.columns)], self.y, self.chosen.terms

    @property
    def notes(self) -> tuple[str, ...]:
        """How the rows were made, and how the numbers are defined."""
        unit = "group" if self.groups is not None else "row"
        folds = self.nested.training_r2s.size + len(self.nested.failed)
        units = self.y.size if self.groups is None else int(self.groups.max()) + 1
        inside = "the choice as well" if folds == units else f"the choice as well, in {folds} folds"
        left_out = self.loo.constant_folds
        constant = f" but {left_out} in which {self.outcome} is the same in every row" if left_out else ""
        notes = [
            *self.row_notes,
            "R2 = 1 - squared errors / squares about the mean; SD is that of single squared errors",
            f"leave-one-out: the chosen model without each {unit}; nested: {inside}",
            f"R2 of training folds, the mean over the fits of leave-one-out{constant}: "
            f"{self.loo.training_r2:.2f} (SD {self.loo.training_r2_sd:.2f})",
        ]
        if self.bootstrap is not None:
            lost = len(self.bootstrap.failed)
            samples = f"{self.bootstrap.replicates:,} replicates of choice and fit, seed {self.bootstrap.seed}"
            notes.append(f"bootstrap: {samples}" + (f"; {lost:,} more had no model" if lost else ""))
            optimism = "the optimism of measuring it on the rows that the model was chosen on"
            notes.append(f"R2 corrected by the bootstrap for {optimism}: {self.bootstrap.corrected_r2:.3f}")
        return tuple(notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using the model."""
        warnings = [f"{name} is a combination of terms before it and was left out" for name in self.chosen.aliased]
        if self.nested.failed:
            first = self.nested.failed[0].why
            warnings.append(f"{len(self.nested.failed)} folds of the nested validation have no model: {first}")
        if self.diagnostics is not None:
            for name, factor in self.diagnostics.inflated.items():
                inflated = f"{name} goes along with other terms (variance inflation {factor:.3g})"
                warnings.append(f"{inflated}: do not read its weight alone")
            for name, simple, multiple in self.diagnostics.flips:
                warnings.append(f"{name} has a weight of {multiple:+.3g} beside the others but {simple:+.3g} alone")
        return tuple(warnings)

    @property
    def validation(self) -> dict[str, dict[str, float | None]]:
        """R2, MSE and SD in-sample, leaving out, and nested."""
        in_sample = {"r2": self.chosen.r2, "mse": self.chosen.mse}
        values: dict[str, dict[str, float | None]] = plain(
            {"in_sample": in_sample, "loo": self.loo.summary, "nested": self.nested.summary}
        )
        return values

    def values(self) -> dict[str, Any]:
        """The regression as plain values, without notes and warnings."""
        return {
            **self.chosen.to_dict(),
            "outcome": self.outcome,
            "candidates": list(self.names),
            **self.validation,
            "nested_selected": dict(self.nested.selected),
            "nested_failed": [{"fold": one.fold, "why": one.why} for one in self.nested.failed],
            "grouped": self.groups is not None,
            **({} if self.bootstrap is None else {"bootstrap": self.bootstrap.to_dict()}),
            **({} if self.diagnostics is None else {"diagnostics": self.diagnostics.to_dict()}),
            **({} if self.performance is None else {"paradise": self.performance.to_dict()}),
        }

    def to_dict(self) -> dict[str, Any]:
        """The regression as plain values."""
        return {**self.values(), "notes": list(self.notes), "warnings": list(self.warnings)}


@dataclass(frozen=True, slots=True)
class SetResult:
    """One feature set: how many candidates, which terms are kept, and how well it does; or why it has no model."""

    name: str
    candidates: int
    terms: tuple[str, ...]
    validation: Mapping[str, Mapping[str, float | None]]
    why: str | None = None
    formula: str = ""
    printed: tuple[float, float] | None = None
    """Mean and standard deviation of R2 over the training folds: what Table 5 seems to print as cross-validated."""
    errors: Mapping[str, Array] = field(default_factory=dict, compare=False)
    """Squared errors of each dialogue, leaving out and nested."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "features": self.name,
            "candidates": self.candidates,
            "terms": list(self.terms),
            **self.validation,
            **({} if self.printed is None else {"training_folds": dict(zip(("r2", "sd"), self.printed, strict=True))}),
            **({"formula": self.formula} if self.formula else {}),
            **({} if self.why is None else {"why": self.why}),
        }


@dataclass(frozen=True, slots=True)
class Decrease:
    """By how much the mean squared error of a feature set is below that of another, dialogue by dialogue."""

    features: str
    against: str
    loo: Difference
    nested: Difference

    def to_dict(self) -> dict[str, Any]:
        """The decrease as plain values."""
        tests = {"leave_one_out": self.loo.to_dict(), "nested": self.nested.to_dict()}
        return {"features": self.features, "against": self.against, **tests}


@dataclass(frozen=True, eq=False, repr=False)
class OutcomeFit(Shown):
    """A model of the outcome of dialogues, with the prices of confusions where it is made of turns.

    `sets`, `learners` and `beta` are feature sets, learners and the fitted F-beta to compare it with, where asked for.
    """

    regression: Regression
    design: Design
    model: OutcomeModel
    sets: tuple[SetResult, ...] = ()
    decreases: tuple[Decrease, ...] = ()
    """Of the mean squared error of each set against the first, corrected for all of them."""
    learners: Mapping[str, OutcomeValidation] = field(default_factory=dict)
    beta: FBeta | None = None
    reading_notes: tuple[str, ...] = ()
    reading_warnings: tuple[str, ...] = ()

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """What putting right half of each confusion would do to the predicted outcome."""
        turns = self.design.turns
        from_turns = set(self.design.names) - set(self.design.columns)
        return () if turns is None or not set(self.model.terms) <= from_turns else prices(self.model, turns)

    @property
    def notes(self) -> tuple[str, ...]:
        """The formula, and how it was made."""
        performance = self.regression.performance
        return (
            f"formula: {self.model.formula()}",
            *([f"{_STANDARDISED}: {performance.formula()}"] if performance else []),
            *([f"F-beta fitted to the outcome: {self.beta.words()}"] if self.beta else []),
            *([REJECTION_NOTES[self.design.rejections]] if self.design.turns else []),
            *([HIDDEN_PRICES] if self.prices and not self.model.predicts else []),
            *self.regression.notes,
            *self.reading_notes,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using the model."""
        return (*self.regression.warnings, *self.reading_warnings)

    def to_dict(self) -> dict[str, Any]:
        """The fit as plain values."""
        return {
            **self.regression.values(),
            "features": self.design.asked,
            "dialogues": len(self.design.dialogues),
            "undefined": self.design.undefined,
            "rejections": self.design.rejections,
            "mean_outcome": self.model.mean_outcome,
            "formula": self.model.formula(),
            "prices": [asdict(price) for price in self.prices],
            **({"feature_sets": [one.to_dict() for one in self.sets]} if self.sets else {}),
            **({"mse_decreases": [one.to_dict() for one in self.decreases]} if self.decreases else {}),
            **({"learners": {name: one.to_dict() for name, one in self.learners.items()}} if self.learners else {}),
            **({} if self.beta is None else {"f_beta": self.beta.to_dict()}),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def fit_regression(
    x: Array,
    y: Array,
    names: Sequence[str],
    *,
    outcome: str,
    how: Procedure,
    groups: NDArray[np.int64] | None = None,
    rows: Sequence[str] | None = None,
    row_notes: tuple[str, ...] = (),
    step: Step = silent,
) -> Regression:
    """Choose the predictors, validate the choice inside and out, and bootstrap the whole."""
    if groups is not None and np.ptp(groups) == 0:
        raise DataError("all rows are of one group, so none can be left out", fix="leave the column of groups out")
    chosen = run_search(x, y, names, how.selection.plan(names))
    alone = None if groups is None else folds_of_groups(groups.tolist())
    loo = leave_out(x[:, list(chosen.columns)], y, folds=alone)
    whole = nested(x, y, names, selection=how.selection, folds=how.fold_of(groups, y.size), step=step)
    draws = None
    if how.replicates:
        settings: dict[str, Any] = {"replicates": how.replicates, "seed": how.seed, "level": how.level}
        draws = bootstrap(x, y, names, selection=how.selection, groups=alone, **settings, step=step)
    labels = [f"row {place + 1}" for place in range(y.size)] if rows is None else rows
    return Regression(tuple(names), x, y, outcome, chosen, loo, whole, draws, groups, tuple(labels), row_notes)


def fit_design(made: Design, *, how: Procedure, step: Step = silent) -> OutcomeFit:
    """The model of an outcome by features of dialogues."""
    settings: dict[str, Any] = {"groups": made.groups, "rows": made.dialogues, "row_notes": made.notes}
    fit = fit_regression(made.x, made.y, made.names, outcome=made.outcome, how=how, **settings, step=step)
    model = model_of(made, fit.chosen.terms, direction=str(how.selection.direction), validation=fit.validation)
    return OutcomeFit(fit, made, model)


def feature_sets(
    table: Dialogues,
    responses: Responses | Turns,
    *,
    sets: Sequence[str] = PAPER_SETS,
    how: Procedure,
    step: Step = silent,
    **options: Any,
) -> tuple[SetResult, ...]:
    """Feature sets side by side, each chosen and validated alike; one that cannot be fitted says why.

    Options are those of `design`.
    """
    results = []
    quick = replace(how, replicates=0)
    for done, name in enumerate(sets):
        step(f"trying {name}", done, len(sets))
        try:
            made = design(table, responses, features=name, **options)
            one = fit_regression(made.x, made.y, made.names, outcome=made.outcome, how=quick, groups=made.groups)
            coefficients = {term: value for term, value in one.chosen.coefficients.items() if not np.isnan(value)}
            results.append(
                SetResult(
                    name,
                    len(made.names),
                    one.chosen.terms,
                    one.validation,
                    formula=model_from_formula(made.outcome, coefficients).formula(),
                    printed=(one.loo.training_r2, one.loo.training_r2_sd),
                    errors={"loo": one.loo.errors, "nested": one.nested.errors},
                )
            )
        except DataError as fault:
            results.append(SetResult(name, 0, (), {}, str(fault)))
    return tuple(results)


def mse_decreases(sets: Sequence[SetResult], made: Design, level: float = 0.95) -> tuple[Decrease, ...]:
    """How far below that of the first set the mean squared error of each other set is, paired by dialogue.

    Student's t on the differences of the squared errors, of groups where dialogues come in groups, corrected for the
    number of sets (Sidak 1967). Sets that were fitted on fewer dialogues are left out.
    """
    known = [one for one in sets if one.errors and all(part.size == made.y.size for part in one.errors.values())]
    if len(known) < 2:
        return ()
    first, others = known[0], known[1:]
    return tuple(
        Decrease(
            one.name,
            first.name,
            *(
                paired_decrease(first.errors[kind], one.errors[kind], made.groups, level).corrected(len(others), level)
                for kind in ("loo", "nested")
            ),
        )
        for one in others
    )


def paired_decrease(before: Array, after: Array, groups: NDArray[np.int64] | None, level: float = 0.95) -> Difference:
    """Mean of `before` less that of `after`, row by row, with Student's interval over rows or groups of them.

    >>> one = paired_decrease(np.array([0.4, 0.2, 0.3]), np.array([0.1, 0.1, 0.1]), None)
    >>> round(one.value, 3), round(one.p, 3)
    (0.2, 0.074)
    """
    gaps, rows = before - after, before.size
    pulls = (gaps - gaps.mean()) / rows
    units = pulls if groups is None else np.bincount(groups, pulls)
    error, freedom = float(np.sqrt(np.square(units).sum() * units.size / max(units.size - 1, 1))), units.size - 1
    value, undefined = float(gaps.mean()), float("nan")
    if not error > 0 or freedom < 1:
        return Difference(value, undefined, undefined, undefined, undefined, why="the errors do not vary")
    reach, p = student(level, freedom) * error, student_p(value, error, freedom)
    return Difference(value, value - reach, value + reach, p, p, freedom=freedom)


def validate_learners(
    made: Design, names: Sequence[str] = tuple(LEARNERS), *, how: Procedure, step: Step = silent
) -> dict[str, OutcomeValidation]:
    """How well other learners do on the same rows and folds, each fitted without each fold in turn."""
    folds = how.fold_of(made.groups, made.y.size)
    results = {}
    for done, name in enumerate(names):
        step(f"trying {name}", done, len(names))
        results[name] = cross_validate(LEARNERS[name], made.x, made.y, made.names, groups=made.groups, folds=folds)
    if made.turns is not None:
        results["f-beta"] = cross_validate_f_beta(made.turns.confusion, made.y, groups=made.groups, folds=folds)
    return results


def fit_beta(made: Design, *, how: Procedure) -> FBeta | None:
    """The beta for which F of the turns explains most of the outcome; None where the model is not made of turns."""
    if made.turns is None:
        return None
    settings: dict[str, Any] = {"replicates": how.replicates, "seed": how.seed, "level": how.level}
    return fit_f_beta(made.turns.confusion, made.y, undefined=made.undefined, groups=made.groups, **settings)
