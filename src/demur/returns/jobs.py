"""The jobs on answers that may be withheld: their options are declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from demur.core.jobs import Argument, Job, Option, Output, job
from demur.core.options import By, Level, NoSeed, Replicates, Sampling, Seed, Where
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.importers.choices import reads_logs
from demur.returns.engine_jobs import GATE, MERGE, SWEEPS, WATCH
from demur.returns.options import (
    EVERYWHERE,
    OUT_OF_SCOPE,
    WITHHELD,
    AtError,
    AtNonreturn,
    AtThreshold,
    Aurc,
    BandRegion,
    Baseline,
    ByGroup,
    CheckIds,
    Columns,
    ComparedRegion,
    ConfidenceColumns,
    CostRatio,
    Curve,
    EngineName,
    ErrorLimit,
    EveryPair,
    ExactUpTo,
    Folds,
    JoinById,
    LeastAccuracy,
    Logs,
    Margin,
    MissingConfidence,
    Name,
    NoLabels,
    NonreturnLimit,
    OnlySystems,
    OutOfScope,
    PairBy,
    PromiseChance,
    RecalibrationMethod,
    RiskLimit,
    SortKey,
    SparkMaster,
    System,
    TieChoice,
    Withheld,
    key_columns,
    reading_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.core.stats.calibration_maps import Recalibration
    from demur.core.stats.resampling import Sample
    from demur.returns.classes import ClassReports
    from demur.returns.comparison.compare import Comparison
    from demur.returns.counting import Counting
    from demur.returns.drift.analysis import Drift
    from demur.returns.evaluate import Evaluations
    from demur.returns.examples import ValidatedTable
    from demur.returns.recalibration import Calibration, RecalibratedLog
    from demur.returns.table import Reading, Responses
    from demur.returns.threshold import Choice


class OneSystem(NamedTuple):
    """The log of one system: what was read or counted, the samples of all rows (None) and of groups, its evaluation."""

    source: Any
    notes: tuple[str, ...]
    name: str
    samples: "dict[str | None, Sample]"
    evaluated: "Callable[[], Evaluations]"

    @property
    def counted(self) -> bool:
        """Whether an engine counted the rows."""
        return hasattr(self.source, "tallies")


BY_BUCKET = "the promise is made by buckets of dialogues; made by dialogues (engine memory), it may withhold less"


@job
@reads_logs
def read(
    *data: Any,
    keep: tuple[str, ...] = (),
    reading: "Reading | None" = None,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
) -> "Responses":
    """Judged responses from files, globs, frames (Polars, pandas, PyArrow, DuckDB ...), lists of dicts, or a mixture.

    `columns={"target": "gold"}` names columns that are called differently, `where=(("split", "test"),)` keeps rows,
    `keep=("domain",)` keeps further columns. Several frames without a column `system` are called system 1, system 2
    and so on; a dict of names to files or frames names them. `reading` gives all options as one.
    """
    from demur.returns.table import read_data

    how = reading_of(columns, where, out_of_scope, withheld, missing_confidence, keep)
    if reading is not None and how != reading_of():
        raise UsageError("give either reading=Reading(...) or its options, not both")
    return read_data(data, how if reading is None else reading)


@job
@reads_logs
def score(
    *data: Logs,
    at_nonreturn: AtNonreturn = 0.2,
    at_error: AtError = 0.05,
    at_threshold: AtThreshold = None,
    by: By = None,
    aurc: Aurc = "mean",
    region: BandRegion = EVERYWHERE,
    curve: Curve = False,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    exact_up_to: ExactUpTo = 2**24,
    check_ids: CheckIds = False,
    name: Name = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    classes: Any = None,
    step: Step = silent,
) -> "Evaluations":
    """Score each system: error-return curve, areas and operating points, with intervals.

    Data are what `read` takes, or arrays: `score(y_true, proba, classes=...)`, as `predictions` takes them, and
    `score(estimator, X, y)` of scikit-learn. A lazy frame (Polars, DuckDB, PySpark ...) is counted by the engine that
    holds it, and never brought here.
    """
    from demur.returns.counting import Counting, count, sweep_of_rows
    from demur.returns.evaluate import evaluate, returns_measures
    from demur.returns.judging import order_notes
    from demur.returns.table import named, read_data

    data = _tables(data, classes)
    sampling = Sampling(level, replicates, seed)
    measures = returns_measures(at=at_nonreturn, aurc=aurc, error=at_error, threshold=at_threshold)
    how = Counting(engine=engine, spark_master=spark_master, exact_up_to=exact_up_to, check_ids=check_ids, name=name)
    reading = reading_of(columns, where, out_of_scope, withheld, missing_confidence, () if by is None else (by,))
    asked: dict[str, Any] = {"measures": measures, "region": region, "step": step, **asdict(sampling)}
    counted = count(data, reading, how, by=by, step=step)
    if counted is None:
        step("reading", 0, 1)
        judged = named(read_data(data, reading), name)
        found = evaluate(judged, by=by, **asked).with_notes((*order_notes(judged), *judged.notes), judged.warnings)
        found.sweep_file = sweep_of_rows(judged, reading, data, by)
    else:
        found = evaluate(counted.tallies, **asked).with_notes(counted.notes, counted.warnings)
        found.sweep_file = lambda: counted
    found.with_curves = curve
    return found.with_notes((sampling.note,))


@job
@reads_logs
def compare(
    *data: Logs,
    systems: OnlySystems = None,
    at_nonreturn: AtNonreturn = 0.2,
    region: ComparedRegion = EVERYWHERE,
    matched: Annotated[bool, Option("Compare only the ids that all systems have.")] = False,
    unpaired: Annotated[bool, Option("Ignore ids: different inputs for each system.")] = False,
    pair_by: PairBy = None,
    confidence: ConfidenceColumns = (),
    margin: Margin = None,
    baseline: Baseline = None,
    every_pair: EveryPair = False,
    sort: Annotated[SortKey, Option("What the leaderboard is sorted by.")] = "rank",
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    exact_up_to: ExactUpTo = 2**24,
    check_ids: CheckIds = False,
    join: JoinById = False,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    classes: Any = None,
    step: Step = silent,
) -> "Comparison":
    """Compare systems: is the difference real, and where? Paired curves, tests, dominance, crossings.

    Systems are paired by id, or as `pair_by` says; inputs that were tried several times (a column trial) are paired and
    grouped by id. `confidence` names several columns of confidences, or a dict gives names to them: the same answers
    ranked by each are compared as systems. Data are what `read` takes: files, frames, or a dict of names to them; or
    arrays, `compare(y_true, {"a": proba, "b": other}, classes=...)`, and estimators, `compare({"a": one, "b": two}, X,
    y)`. Folders and URLs of Parquet, and lazy frames, are counted by an engine, each a system unless a column names
    systems.
    """
    from demur.returns.comparison.counted import compare_logs
    from demur.returns.counting import Counting
    from demur.returns.evaluate import returns_measures

    data = _tables(data, classes)
    sampling = Sampling(level, replicates, seed)
    reading = reading_of(columns, where, out_of_scope, withheld, missing_confidence)
    reading = replace(reading, pair_by=key_columns(pair_by))
    how = Counting(engine=engine, spark_master=spark_master, exact_up_to=exact_up_to, check_ids=check_ids)
    asked: dict[str, Any] = {
        "at": sum(at_nonreturn) / 2 if isinstance(at_nonreturn, tuple) else at_nonreturn,
        "measures": returns_measures(at=at_nonreturn),
        "region": region,
        "margin": margin,
        "baseline": baseline,
        "every_pair": every_pair,
        "sort": sort,
        "step": step,
        **asdict(sampling),
    }
    choice: dict[str, Any] = {"systems": systems, "confidences": confidence, "unpaired": unpaired}
    found = compare_logs(data, reading, how, **choice, matched=matched, join=join, **asked)
    return replace(found, notes=(*found.notes, sampling.note))


@job
@reads_logs
def threshold(
    *data: Logs,
    cost_ratio: CostRatio = None,
    max_error: ErrorLimit = None,
    max_risk: RiskLimit = None,
    min_accuracy_when_answering: LeastAccuracy = None,
    max_nonreturn: NonreturnLimit = None,
    delta: PromiseChance = None,
    ties: TieChoice = "together",
    by_group: ByGroup = None,
    system: System = None,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    exact_up_to: ExactUpTo = 2**24,
    check_ids: CheckIds = False,
    name: Name = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    classes: Any = None,
    step: Step = silent,
) -> "Choice":
    """Choose a threshold: by cost, or by a limit on errors or non-returns, with a guarantee for new inputs on request.

    It is of one system; its evaluation, in which the threshold is shown, is made when it is first asked for.
    """
    from demur.returns.counting import Counting
    from demur.returns.curves import Heaps, Joined
    from demur.returns.threshold import aim

    data = _tables(data, classes)
    sampling = Sampling(level, replicates, seed)
    choose = aim(
        cost_ratio=cost_ratio,
        max_error=max_error,
        max_risk=max_risk,
        min_accuracy_when_answering=min_accuracy_when_answering,
        max_nonreturn=max_nonreturn,
        delta=delta,
        ties=ties,
    )
    how = Counting(engine=engine, spark_master=spark_master, exact_up_to=exact_up_to, check_ids=check_ids, name=name)
    kept = () if by_group is None else (by_group,)
    reading = reading_of(columns, where, out_of_scope, withheld, missing_confidence, kept)
    log = _one_system(data, reading, how, system, by_group, sampling, step)
    sample, chosen, evaluated = log.samples[None], log.name, log.evaluated
    groups = {part: one for part, one in log.samples.items() if part is not None}
    promised = (BY_BUCKET,) if delta is not None and log.counted and sample.spread.clustered else ()
    joined = Joined.of(sample.sweep)
    heaps = Heaps.of(sample.sweep)
    exact = () if joined is None else (joined.note(chosen),)
    tied = () if heaps is None or not heaps.matter else (heaps.note(chosen),)
    notes = (*exact, *tied, *promised, *log.notes, sampling.note)
    choice = choose(sample, name=chosen, groups=groups, level=level)
    return replace(choice, notes=notes, warnings=log.source.warnings, evaluate=lambda: evaluated()[0])


@job
@reads_logs
def drift(
    old: Annotated[Any, Argument("The old log; with --by the only one.", metavar="OLD")],
    new: Annotated[Any, Argument("The new log.", metavar="NEW", optional=True)] = None,
    *,
    by: Annotated[
        str | None, Option("Split the one log given by this column, such as a date or a period.", metavar="COLUMN")
    ] = None,
    split: Annotated[
        str | None,
        Option("With --by: the first value that is new, such as 2026-01-01; otherwise the middle.", metavar="VALUE"),
    ] = None,
    threshold: Annotated[float | None, Option("The threshold in use.", metavar="T")] = None,
    max_error: Annotated[
        float | None,
        Option("Promised: most errors, as a share of all inputs. Chooses T on OLD if none is given.", metavar="E"),
    ] = None,
    delta: Annotated[
        float | None, Option("With --max-error: chance that the promise for T, made on OLD, fails.", metavar="D")
    ] = None,
    max_nonreturn: Annotated[
        float | None, Option("Promised: most non-returns. Chooses T on OLD if none is given.", metavar="X")
    ] = None,
    system: System = None,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "Drift":
    """Compare an old log with a new one: what has changed, and does the threshold still hold?

    Two logs, or one that `by` splits. A log that does not tell right from wrong is taken too. Two `.sweep` files, as
    `watch` keeps them, are compared without reading a log.
    """
    from demur.returns.counting import Counting
    from demur.returns.drift.analysis import Aim, read_counted, read_logs
    from demur.returns.drift.analysis import drift as compare_logs

    sampling = Sampling(level, replicates, seed)
    aim = Aim(threshold, max_error, delta, max_nonreturn)
    aim.check()
    if (new is None) == (by is None):
        raise UsageError("give an old and a new log, or one log and the column that splits it (`by`)")
    if split is not None and by is None:
        raise UsageError("`split` goes with `by`: it is the first value of that column that is new")
    step("reading", 0, 2)
    kept = () if by is None else (by,)
    reading = replace(reading_of(columns, where, out_of_scope, withheld, missing_confidence, kept), unjudged=True)
    sides: dict[str, Any] = {"by": by, "split": split, "system": system}
    logs = read_counted(old, new, reading, Counting(engine=engine, spark_master=spark_master), **sides)
    logs = read_logs(old, new, reading, **sides) if logs is None else logs
    step("testing", 1, 2)
    found = compare_logs(logs.old, logs.new, aim=aim, **asdict(sampling))
    return replace(found, notes=(*found.notes, *logs.notes, sampling.note), warnings=logs.warnings)


@job
@reads_logs
def classes(
    *data: Logs,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: NoLabels = (),
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "lowest",
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    exact_up_to: ExactUpTo = 2**24,
    check_ids: CheckIds = False,
    name: Name = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    classes: Any = None,
    step: Step = silent,
) -> "ClassReports":
    """Score classes: precision, recall, F and confusions of each, averages and kappa; rejected inputs count too.

    Every label counts as a label, those that mean out of scope too, and no confidences are needed.
    """
    from demur.returns.classes import ClassReports, class_reports, report_of_cells
    from demur.returns.counting import Counting, count_labels
    from demur.returns.table import named, read_data

    data = _tables(data, classes)
    sampling = Sampling(level, replicates, seed)
    how = Counting(engine=engine, spark_master=spark_master, exact_up_to=exact_up_to, check_ids=check_ids, name=name)
    reading = replace(reading_of(columns, where, out_of_scope, withheld, missing_confidence), ranked=False)
    source: Any = count_labels(data, reading, how, step=step)
    if source is None:
        step("reading", 0, 1)
        source = named(read_data(data, reading), name)
        found = class_reports(source, **asdict(sampling))
    else:
        how_counted: dict[str, Any] = {"clustered": source.clustered, **asdict(sampling)}
        found = ClassReports(report_of_cells(cells, system=one, **how_counted) for one, cells in source.cells.items())
    return found.with_notes((*source.notes, sampling.note), source.warnings)


@job
@reads_logs
def fit_recalibration(
    *data: Logs,
    method: RecalibrationMethod = "best",
    folds: Folds = 5,
    system: System = None,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "Calibration":
    """Fit a map that calibrates confidences; the best of five kinds is chosen by cross-validation.

    Its `fitted` is the map, which `apply_recalibration` takes; `to_dict()["map"]` is what a file holds of it.
    """
    from demur.core.stats.resampling import Rows
    from demur.errors import DataError
    from demur.returns.recalibration import cross_fitted
    from demur.returns.recalibration_views import fold_notes
    from demur.returns.table import one_system, read_data

    step("reading", 0, 2)
    judged = read_data(data, reading_of(columns, where, out_of_scope, withheld, missing_confidence))
    own = one_system(judged, system, what="a map")
    step("fitting out of fold", 1, 2)
    found = cross_fitted(
        Rows.from_frame(own.frame),
        system=own.systems[0],
        method=None if method == "best" else method,
        folds=folds,
        **asdict(Sampling(level, replicates, seed)),
    )
    if found.why is not None:
        raise DataError(f"no map can be fitted and tried: {found.why}", where=f'system "{found.system}":')
    notes = (*judged.notes, *fold_notes(found), f"{replicates:,} replicates")
    return replace(found, notes=notes, warnings=judged.warnings)


@job
@reads_logs
def apply_recalibration(
    map: Annotated[  # noqa: A002
        "str | Path | Calibration | Recalibration",
        Argument("The map: a .json file that recalibrate fit wrote with -o.", metavar="MAP"),
    ],
    data: Annotated[Any, Argument("The log whose confidences are mapped; - for standard input.", metavar="FILE")],
    *,
    system: System = None,
    columns: Columns = None,
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
) -> "RecalibratedLog":
    """Apply a map to the confidences of a log; all other columns stay, the old confidences among them.

    Where the log tells right from wrong, calibration is compared before and after. `table` has the rows.
    """
    from demur.returns.recalibration import read_map, recalibrate_log

    found = read_map(map)
    sampling = Sampling(level, replicates, seed)
    reading = reading_of(columns, (), out_of_scope, withheld, missing_confidence)
    log = recalibrate_log(found, data, reading, system=system, **asdict(sampling))
    return replace(log, notes=(*log.notes, *((sampling.note,) if log.after is not None else ())))


@job
@reads_logs
def validate(
    *data: Logs,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    seed: NoSeed = 0,  # noqa: ARG001
) -> "ValidatedTable":
    """Read and check tables, and say what was recognised in them."""
    from demur.returns.examples import ValidatedTable
    from demur.returns.judging import order_notes
    from demur.returns.table import read_data

    judged = read_data(data, reading_of(columns, where, out_of_scope, withheld, missing_confidence, ("*",)))
    return ValidatedTable(replace(judged, notes=(*order_notes(judged), *judged.notes)))


def _one_system(
    data: tuple[Any, ...],
    reading: "Reading",
    how: "Counting",
    system: str | None,
    by: str | None,
    sampling: Sampling,
    step: Step,
) -> "OneSystem":
    """The sample of one system and those of its groups, wherever its rows are counted."""
    from demur.core.stats.resampling import Rows, Sample
    from demur.returns.counting import count, one_tally
    from demur.returns.evaluate import evaluate, slice_frames
    from demur.returns.judging import order_notes
    from demur.returns.table import named, one_system, read_data
    from demur.returns.tally import tally_sample

    drawn = (sampling.replicates, sampling.seed)
    counted = count(data, reading, how, by=by, step=step)
    if counted is None:
        step("reading", 0, 1)
        source = one_system(named(read_data(data, reading), how.name), system)
        numbers = replace(source, frame=source.frame.drop("target", "prediction"))  # texts take most of the room
        frames = [(None, source.frame), *(() if by is None else slice_frames(source.frame, by))]
        samples = {part: Sample(Rows.from_frame(frame), *drawn) for part, frame in frames}
        notes = (*order_notes(source), *source.notes)
        evaluated = partial(evaluate, numbers, **asdict(sampling))
        return OneSystem(source, notes, source.systems[0], samples, evaluated)
    tally = one_tally([one for one in counted.tallies if one.part is None], system)
    parts = [tally, *(one for one in counted.tallies if one.part is not None and one.system == tally.system)]
    samples = {one.part: tally_sample(one, *drawn) for one in parts}
    evaluated = partial(evaluate, [tally], **asdict(sampling))
    return OneSystem(counted, counted.notes, tally.system, samples, evaluated)


def _tables(data: tuple[Any, ...], classes: Any) -> tuple[Any, ...]:
    """Data in which arrays and estimators are tables; files need nothing of the kind."""
    if classes is None and all(isinstance(one, str | Path) for one in data):
        return data
    from demur.returns.predictions import tables_of

    return tables_of(data, classes)


_VIEWS = "demur.returns.presentation"
_RECALIBRATION = "demur.returns.recalibration_views"
_ROWS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".csv", ".tsv", ".parquet", ".arrow")

JOBS = (
    Job(
        "score",
        score,
        f"{_VIEWS}:of_scores",
        "demur score run.jsonl --by domain -o plot.svg",
        endings=SWEEPS,
        gate=GATE,
    ),
    MERGE,
    WATCH,
    Job(
        "compare",
        compare,
        present=f"{_VIEWS}:of_comparison",
        example="demur compare a.jsonl b.jsonl --fail-if 'b is significantly worse' -o report.html",
        gate="b is significantly worse",
    ),
    Job(
        "threshold",
        threshold,
        f"{_VIEWS}:of_choice",
        "demur threshold run.jsonl --max-error 0.05 --delta 0.05",
        gate="error > 0.1",
    ),
    Job(
        "drift",
        drift,
        present="demur.returns.drift.views:of_drift",
        example="demur drift march.jsonl april.jsonl --max-error 0.05 --delta 0.05 -o drift.html",
        gate="promise is broken",
    ),
    Job(
        "classes",
        classes,
        f"{_VIEWS}:of_classes",
        "demur classes run.jsonl -o confusion.svg",
        gate="macro_f1 < 0.8",
        about="Of more than 200 classes the most frequent and the worst are shown; `-o` FILE.csv has all of them.",
        outputs=(
            Output(
                "--confusion",
                "Write every cell of the confusion table to this file.",
                "demur.returns.classes:write_confusion",
                metavar="FILE.csv",
                ending=".csv",
            ),
        ),
    ),
    Job(
        "recalibrate fit",
        fit_recalibration,
        present=f"{_RECALIBRATION}:of_calibration",
        example="demur recalibrate fit log.jsonl -o map.json -o reliability.svg",
        gate="ece > 0.1",
        about="`-o` FILE.json writes the map, with the figures that it was chosen by.",
    ),
    Job(
        "recalibrate apply",
        apply_recalibration,
        present=f"{_RECALIBRATION}:of_recalibrated_log",
        example="demur recalibrate apply map.json log.jsonl -o recalibrated.jsonl",
        gate="after.ece > 0.1",
        about="`-o` writes the log to .jsonl .jsonl.gz .jsonl.zst .csv .tsv .parquet .arrow.",
        endings=tuple((ending, "demur.returns.recalibration:write_log") for ending in _ROWS),
    ),
    Job("validate", validate, f"{_VIEWS}:of_validation", "demur validate run.jsonl", figures=False),
)
