"""The jobs on gold standards: how far systems are from people, and how many people a study of that needs.

Only light modules are imported here, as every command loads this one for its help.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.core.jobs import Job, job
from demur.core.options import Level, Replicates, Seed, Where
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.gold_standard.options import (
    Checks,
    Components,
    Cost,
    Degree,
    Direction,
    Fit,
    Fits,
    Gain,
    Gold,
    HalfWidth,
    Lower,
    Studies,
    Subjects,
    Tables,
    TrialColumns,
    TrialsEach,
    Upper,
    Within,
    X,
    Y,
)

if TYPE_CHECKING:
    from demur.gold_standard.cost import CostFunction
    from demur.gold_standard.planning import GoldPlan
    from demur.gold_standard.study import GoldStudies
    from demur.gold_standard.trials import Trials


@job
def read_trials(
    *sources: Any,
    x: X = None,
    y: Y = None,
    gold: Gold = (),
    upper: Upper = None,
    lower: Lower = 0.0,
    columns: TrialColumns = None,
    where: Where = (),
) -> "tuple[Trials, ...]":
    """The trials of one or more studies, from files, or from one frame, columns or rows.

    `x` is the column that makes it harder, `y` how well it went; `gold` names the performers that are the gold
    standard, where no column role says so. `columns={"subject": "caller"}` names a column that is called differently.
    """
    from demur.gold_standard.trials import TrialReading, trials
    from demur.gold_standard.trials import read_trials as read_files

    if x is None or y is None:
        raise UsageError("`x` and `y` name the columns: what makes it harder, and how well it went")
    reading = TrialReading(
        x=x,
        y=y,
        upper=upper,
        lower=lower,
        gold=(gold,) if isinstance(gold, str) else tuple(gold),
        columns=dict(columns or {}),
        where=tuple((name, str(value)) for name, value in where),
    )
    if sources and all(isinstance(source, str | Path) for source in sources):
        return read_files(*sources, reading=reading)
    if len(sources) != 1:
        raise UsageError("trials are files, or one frame; concatenate several frames, with a column study")
    return trials(sources[0], reading=reading)


@job
def gold(
    *tables: Tables,
    x: X = None,
    y: Y = None,
    gold: Gold = (),
    upper: Upper = None,
    lower: Lower = 0.0,
    columns: TrialColumns = None,
    where: Where = (),
    fit: Fits = "auto",
    degree: Degree = 3,
    direction: Direction = "harmful",
    within: Within = None,
    components: Components = False,
    cost: Cost = None,
    gain: Gain = None,
    checks: Checks = True,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "GoldStudies":
    """How far from a human: benchmark graph, gold impurity, complexity, verdict and cost from trials.

    Tables are what `read_trials` takes, or trials that it has read. `fit` is a kind of curve, or a dict from
    performers to kinds, in which the empty name stands for all others. `cost` is a file, an expression in `p`, or
    pairs of performance and amount. Each study of the result has `.performers`, `.impurities`, `.pairs`,
    `.complexity`, `.costs`, `.components`, `.residuals`, `.wizards` and `.convergence`.
    """
    from demur.gold_standard.fitting import FitOptions
    from demur.gold_standard.study import GoldOptions, GoldStudies, analyse

    if gain is not None and cost is None:
        raise UsageError("`gain` says where a cost is taken: give `cost` as well")
    step("reading", 0, 1)
    studies = _studies(tables, x=x, y=y, gold=gold, upper=upper, lower=lower, columns=columns, where=where)
    fits: dict[str, Any] = {"": fit} if isinstance(fit, str) else dict(fit)
    options = GoldOptions(
        fit=FitOptions(kind=fits.pop("", "auto"), direction=direction, degree=degree),
        fits=fits,
        within=within,
        components=components,
        gain=gain,
        checks=checks,
        level=level,
        replicates=replicates,
        seed=seed,
    )
    return GoldStudies(analyse(one, options.with_cost(_cost_of(cost, one)), step=step) for one in studies)


@job
def plan_gold(
    *tables: Tables,
    x: X = None,
    y: Y = None,
    gold: Gold = (),
    upper: Upper = None,
    lower: Lower = 0.0,
    columns: TrialColumns = None,
    where: Where = (),
    fit: Fit = "auto",
    degree: Degree = 3,
    direction: Direction = "harmful",
    subjects: Subjects = (8, 12, 16, 24, 32),
    trials_each: TrialsEach = (10, 20, 40),
    half_width: HalfWidth = 0.05,
    studies: Studies = 200,
    level: Level = 0.95,
    seed: Seed = 0,
    step: Step = silent,
) -> "GoldPlan":
    """How many wizards and trials a study needs, by simulation from a pilot.

    Tables are what `read_trials` takes, or trials that it has read.
    """
    from demur.gold_standard.fitting import FitOptions
    from demur.gold_standard.planning import plan

    step("reading", 0, 1)
    pilots = _studies(tables, x=x, y=y, gold=gold, upper=upper, lower=lower, columns=columns, where=where)
    if len(pilots) > 1:
        raise UsageError(f"a plan starts from one pilot; these are {', '.join(one.study for one in pilots)}")
    return plan(
        pilots[0],
        fit=FitOptions(kind=fit, direction=direction, degree=degree),
        subjects=subjects,
        trials_each=trials_each,
        half_width=half_width,
        level=level,
        studies=studies,
        seed=seed,
        step=step,
    )


def _studies(tables: tuple[Any, ...], **options: Any) -> "tuple[Trials, ...]":
    from demur.gold_standard.trials import Trials

    given = [one for table in tables for one in (table if isinstance(table, tuple) else (table,))]
    if not given or not all(isinstance(one, Trials) for one in given):
        return read_trials(*tables, **options)
    if any(value not in (None, (), 0.0) for value in options.values()):
        raise UsageError("trials that were read already take no options of reading")
    return tuple(given)


def _cost_of(cost: Any, study: "Trials") -> "CostFunction | None":
    from demur.gold_standard.cost import CostFunction, cost_points, read_cost

    if cost is None or isinstance(cost, CostFunction):
        return cost
    read = read_cost if isinstance(cost, str | Path) else cost_points
    return read(cost, lower=study.lower, upper=study.upper)


JOBS = (
    Job(
        "gold",
        gold,
        present="demur.gold_standard.presentation:of_gold",
        example="demur gold trials.csv --x wer --y completed --cost cost.csv --gain 0.7:0.8 -o gold.html",
    ),
    Job(
        "plan",
        plan_gold,
        present="demur.gold_standard.presentation:of_plan",
        example="demur plan pilot.csv --x wer --y completed --subjects 8,16,32 --trials 20,40",
    ),
)
