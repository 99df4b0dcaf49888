"""Jobs on gold standards: how far systems are from people, and how many people that takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from demur.core.jobs import check_options
from demur.errors import UsageError
from demur.gold_standard.cost import CostFunction, cost_points
from demur.gold_standard.cost import read_cost as read_cost_function
from demur.gold_standard.curves import FIT_KINDS, FitKind
from demur.gold_standard.fitting import Direction, FitOptions, Kind
from demur.gold_standard.planning import Plan
from demur.gold_standard.planning import plan as plan_from
from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.gold_standard.trials import TrialReading, Trials, trials
from demur.gold_standard.trials import read_trials as read_files

Cost = str | Path | CostFunction | Sequence[tuple[float, float]]


def read_trials(
    *sources: Any,
    x: str,
    y: str,
    gold: str | Sequence[str] = (),
    upper: float | None = None,
    lower: float = 0.0,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
) -> tuple[Trials, ...]:
    """The trials of one or more studies, from files, or from one frame, columns or rows.

    `x` is the column that makes it harder, `y` how well it went; `gold` names the performers that are the gold
    standard, where no column role says so. `columns={"subject": "caller"}` names a column that is called differently.
    """
    reading = TrialReading(
        x=x,
        y=y,
        upper=upper,
        lower=lower,
        gold=(gold,) if isinstance(gold, str) else tuple(gold),
        columns=dict(columns or {}),
        where=tuple((name, str(value)) for name, value in (where.items() if isinstance(where, Mapping) else where)),
    )
    if all(isinstance(source, str | Path) for source in sources) and sources:
        return read_files(*sources, reading=reading)
    if len(sources) != 1:
        raise UsageError("trials are files, or one frame; several frames are put together with a column study")
    return trials(sources[0], reading=reading)


def gold(
    *tables: Any,
    x: str | None = None,
    y: str | None = None,
    fit: Kind | Mapping[str, FitKind] = "auto",
    degree: int = 3,
    direction: Direction = "harmful",
    within: tuple[float, float] | None = None,
    components: bool = False,
    cost: Cost | None = None,
    gain: tuple[float, float] | None = None,
    checks: bool = True,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    **options: Any,
) -> GoldStudies:
    """How far systems are from the gold standard: curves with bands, impurity, verdicts, complexity and cost.

    Tables are what `read_trials` takes, and further options go to it; or trials that it has read. `fit` is a kind of
    curve, or a mapping from performers to kinds. `cost` is a file, an expression in `p`, or pairs of performance and
    amount. Each study of the result has `.performers`, `.impurities`, `.pairs`, `.complexity`, `.costs`,
    `.components`, `.residuals`, `.wizards` and `.convergence`.
    """
    studies = _studies(tables, x, y, options)
    fits = {} if isinstance(fit, str) else dict(fit)
    for kind in fits.values():
        _check_kind(kind)
    how = GoldOptions(
        fit=_fit_options(fit if isinstance(fit, str) else "auto", direction, degree),
        fits=fits,
        within=within,
        components=components,
        gain=gain,
        checks=checks,
        level=level,
        replicates=replicates,
        seed=seed,
    )
    if gain is not None and cost is None:
        raise UsageError("a gain says where a cost is taken: give cost as well")
    return GoldStudies(analyse(study, how.with_cost(_cost(cost, study))) for study in studies)


def plan_gold(
    *tables: Any,
    x: str | None = None,
    y: str | None = None,
    subjects: Sequence[int] = (8, 12, 16, 24, 32),
    trials_each: Sequence[int] = (10, 20, 40),
    half_width: float = 0.05,
    fit: Kind = "auto",
    degree: int = 3,
    direction: Direction = "harmful",
    level: float = 0.95,
    studies: int = 200,
    seed: int = 0,
    **options: Any,
) -> Plan:
    """How many subjects and trials a study needs, by simulation from a pilot; further options go to `read_trials`."""
    found = _studies(tables, x, y, options)
    if len(found) > 1:
        raise UsageError(f"a plan starts from one pilot; these are {', '.join(one.study for one in found)}")
    return plan_from(
        found[0],
        fit=_fit_options(fit, direction, degree),
        subjects=subjects,
        trials_each=trials_each,
        half_width=half_width,
        level=level,
        studies=studies,
        seed=seed,
    )


def _studies(tables: tuple[Any, ...], x: str | None, y: str | None, options: dict[str, Any]) -> tuple[Trials, ...]:
    given = [one for table in tables for one in (table if isinstance(table, tuple) else (table,))]
    if given and all(isinstance(one, Trials) for one in given):
        if options or x is not None or y is not None:
            raise UsageError("trials that were read already take no options of reading")
        return tuple(given)
    if isinstance(options.get("where"), Mapping):
        options = {**options, "where": tuple(options["where"].items())}
    check_options(options, TrialReading, ("fit", "within", "components", "cost", "gain", "checks"))
    if x is None or y is None:
        raise UsageError("x and y name the columns: what makes it harder, and how well it went")
    return read_trials(*tables, x=x, y=y, **options)


def _fit_options(kind: Kind, direction: Direction, degree: int) -> FitOptions:
    _check_kind(kind)
    if direction not in ("harmful", "helpful", "any"):
        raise UsageError(f'direction is "harmful", "helpful" or "any"; got "{direction}"')
    if degree < 1:
        raise UsageError(f"the degree of a polynomial is 1 or more; got {degree}")
    return FitOptions(kind=kind, direction=direction, degree=degree)


def _check_kind(kind: str) -> None:
    if kind not in ("auto", *FIT_KINDS):
        raise UsageError(f'fit is one of auto, {", ".join(FIT_KINDS)}; got "{kind}"')


def _cost(cost: Cost | None, study: Trials) -> CostFunction | None:
    if cost is None or isinstance(cost, CostFunction):
        return cost
    if isinstance(cost, str | Path):
        return read_cost_function(cost, lower=study.lower, upper=study.upper)
    return cost_points(cost, lower=study.lower, upper=study.upper)
