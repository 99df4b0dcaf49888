"""The jobs on gold standards: how far systems are from people, and how many people a study of that needs.

Each option is declared once. Only light modules are imported here, as every command loads this one for its help.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from demur.core.jobs import Argument, Job, Option, job
from demur.core.options import Level, Replicates, Seed, Where, name_columns, range_text, rate_or_range
from demur.core.show.results import Step, silent
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.gold_standard.cost import CostFunction
    from demur.gold_standard.planning import GoldPlan
    from demur.gold_standard.study import GoldStudies
    from demur.gold_standard.trials import Trials

FitKind = Literal["spline", "logistic", "linear", "polynomial", "isotonic"]
"""The families of curves."""
FitChoice = Literal["auto", FitKind]
XDirection = Literal["harmful", "helpful", "any"]
"""Whether x can only harm, can only help, or either."""
Span = tuple[float, float]


def parse_span(text: str) -> Span:
    """The two ends of a range, as 0.7:0.8 or 70%:80%."""
    span = rate_or_range(text)
    if not isinstance(span, tuple):
        raise ValueError(text)
    return span


def parse_fit(text: str) -> tuple[str, str]:
    """The performer, empty for all others, and the kind of curve of KIND or NAME=KIND."""
    name, _, kind = text.rpartition("=")
    if kind not in get_args(FitChoice):
        raise ValueError(text)
    return name, kind


def collect_fits(pairs: tuple[tuple[str, str], ...]) -> str | dict[str, str]:
    """One kind for all, or kinds by performer."""
    fits = dict(pairs)
    return fits[""] if list(fits) == [""] else fits


def is_fit(value: Any) -> bool:
    """Whether this is a kind of curve, or maps performers to kinds."""
    kinds = [value] if isinstance(value, str) else list(value.values()) if isinstance(value, dict) else [None]
    return all(kind in get_args(FitChoice) for kind in kinds)


Tables = Annotated[
    Any,
    Argument(
        "Tables of trials: performer, role (gold or system), x, y, subject, n, components, study; .csv .jsonl "
        ".parquet ...; run:NAME, a stored run; - for standard input. Several files are several studies.",
        metavar="TRIALS",
    ),
]
X = Annotated[str | None, Option("The column that makes it harder: word error rate, noise, task size.")]
Y = Annotated[str | None, Option("The column that says how well it went: 0/1, a rate with n, or a score.")]
Gold = Annotated[
    str | tuple[str, ...],
    Option(
        "A performer that is the gold standard, where no column role says so. Repeatable.", metavar="NAME", repeat=True
    ),
]
Upper = Annotated[float | None, Option("The upper bound of a score; 0/1 and rates have 1.", metavar="U")]
Lower = Annotated[float, Option("The lower bound of a score.", metavar="L")]
TrialColumns = Annotated[dict[str, str] | None, name_columns("subject=caller")]
_KINDS = ", ".join(get_args(FitChoice))
Fits = Annotated[
    FitChoice | dict[str, FitChoice],
    Option(
        f"Kind of curve: {' or '.join(_KINDS.rsplit(', ', 1))}; A=linear for one performer. Repeatable.",
        metavar="KIND",
        parse=parse_fit,
        takes=f"one of {_KINDS}, or NAME=KIND",
        python=f"one of {_KINDS}, or a dict from performers to these",
        check=is_fit,
        repeat=True,
        collect=collect_fits,
    ),
]
Fit = Annotated[FitChoice, Option("Kind of curve of all performers.")]
Degree = Annotated[int, Option("Of polynomials.", minimum=1, maximum=9)]
Direction = Annotated[XDirection, Option("Whether x can only harm, can only help, or either.")]
_SPAN: dict[str, Any] = {
    "metavar": "A:B",
    "parse": parse_span,
    "takes": "two numbers, such as 0.7:0.8",
    "write": range_text,
}
Within = Annotated[
    Span | None, Option("Read only this range of x; default all that every curve covers.", flag="--range", **_SPAN)
]
Components = Annotated[bool, Option("Separate combinations of components, and say what each contributes.")]
Cost = Annotated[
    "str | Path | CostFunction | list[Span] | None",
    Option(
        'What levels of performance are worth: a table with performance and amount, or "1000 * p ** 2".',
        metavar="FILE|EXPRESSION",
    ),
]
CostUnit = Annotated[
    str | None,
    Option(
        "With --cost: what amounts are counted in, such as dollars; default: the table's column unit.", metavar="NAME"
    ),
]
Gain = Annotated[Span | None, Option("With --cost: only where a system performs between these, as 0.7:0.8.", **_SPAN)]
Checks = Annotated[
    bool, Option("Compare wizards with each other, and look at convergence.", flag="--checks/--no-checks")
]


def numbers_of(text: str, least: int, **more: Any) -> Option:
    """An option of whole numbers, separated by commas."""
    return Option(
        text,
        metavar="N,N,...",
        parse=lambda typed: tuple(int(part) for part in typed.split(",")),
        write=lambda numbers: ",".join(map(str, numbers)),
        takes=f"whole numbers of at least {least}, separated by commas",
        python=f"whole numbers of at least {least}",
        check=lambda numbers: len(numbers) > 0 and min(numbers) >= least,
        **more,
    )


Subjects = Annotated[tuple[int, ...], numbers_of("Numbers of wizards (and callers) to try.", 2)]
TrialsEach = Annotated[
    tuple[int, ...], numbers_of("Numbers of trials to try, per subject and performer.", 1, flag="--trials")
]
HalfWidth = Annotated[float, Option("How far off curves may be on average, as a share of the metric.", above=0)]
Studies = Annotated[int, Option("Studies to simulate for each design.", minimum=20)]


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
    cost_unit: CostUnit = None,
    gain: Gain = None,
    checks: Checks = True,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "GoldStudies":
    """Measure how far systems are from people: benchmark graph, gold impurity, complexity, verdict and cost.

    Tables are what `read_trials` takes, or trials that it has read. `fit` is a kind of curve, or a dict from
    performers to kinds, in which the empty name stands for all others. `cost` is a file, an expression in `p`, or
    pairs of performance and amount. Each study of the result has `.performers`, `.impurities`, `.pairs`,
    `.complexity`, `.costs`, `.components`, `.residuals`, `.wizards` and `.convergence`.
    """
    from demur.gold_standard.fitting import FitOptions
    from demur.gold_standard.study import GoldOptions, GoldStudies, analyse

    if gain is not None and cost is None:
        raise UsageError("`gain` says where a cost is taken: give `cost` as well")
    if cost_unit is not None and cost is None:
        raise UsageError("`cost_unit` is the unit of a cost: give `cost` as well")
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
    return GoldStudies(
        analyse(one, replace(options, cost=_cost_of(cost, cost_unit, one)), step=step) for one in studies
    )


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
    """Plan a study: how many wizards and trials it needs, by simulation from a pilot.

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


def _cost_of(cost: Any, unit: str | None, study: "Trials") -> "CostFunction | None":
    from demur.gold_standard.cost import CostFunction, cost_points, read_cost

    if cost is None:
        return None
    read = read_cost if isinstance(cost, str | Path) else cost_points
    found = cost if isinstance(cost, CostFunction) else read(cost, lower=study.lower, upper=study.upper)
    return found if unit is None else replace(found, unit=unit)


JOBS = (
    Job(
        "gold",
        gold,
        present="demur.gold_standard.presentation:of_gold",
        example="demur gold trials.csv --x wer --y completed --cost cost.csv --gain 0.7:0.8 -o gold.html",
        gate="mean_distance > 0.1",
    ),
    Job(
        "plan",
        plan_gold,
        present="demur.gold_standard.presentation:of_plan",
        example="demur plan pilot.csv --x wer --y completed --subjects 8,16,32 --trials 20,40",
        gate="needed.subjects > 32",
    ),
)
