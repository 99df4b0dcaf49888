"""The job of a report: its options are declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Job, Option, job
from demur.core.options import (
    KINDS,
    Kind,
    Level,
    OutcomeColumn,
    Replicates,
    Sampling,
    Seed,
    Tables,
    TrialX,
    TrialY,
    Where,
    file_and_kind,
)
from demur.core.show.results import Step, silent
from demur.importers.choices import reads_logs
from demur.returns.options import (
    OUT_OF_SCOPE,
    WITHHELD,
    Columns,
    EngineName,
    MissingConfidence,
    OutOfScope,
    PairBy,
    SparkMaster,
    Withheld,
    key_columns,
    labels,
)

if TYPE_CHECKING:
    from demur.reports.report import Report
    from demur.reports.verify import Verification


def named_file_and_kind(text: str) -> tuple[str, Kind]:
    """The two sides of FILE=KIND."""
    file, kind = file_and_kind(text)
    if not file:
        raise ValueError(text)
    return file, kind


KindOfEach = Annotated[
    Mapping[str, Kind] | None,
    Option(
        f"What a file is, where its columns do not say: {', '.join(KINDS[:-1])} or {KINDS[-1]}. Repeatable.",
        flag="--kind",
        metavar="FILE=KIND",
        parse=named_file_and_kind,
        takes=f"FILE=KIND, where KIND is one of {', '.join(KINDS)}",
        python=f"files with their kinds: {', '.join(KINDS)}",
        check=lambda value: value is None or isinstance(value, Mapping),
        repeat=True,
        collect=dict,
    ),
]


Title = Annotated[str | None, Option("Title of the report.", metavar="TEXT")]
SliceBy = Annotated[
    str | Sequence[str] | None,
    Option(
        "Slice by this column. Repeatable; by default every column of 2 to 20 values, two of them with 30 inputs. "
        '"" for none.',
        metavar="COLUMN",
        repeat=True,
        collect=labels,
    ),
]
Rate = Annotated[float, Option("Non-return rate of interest.", minimum=0, maximum=1, metavar="X")]
CostRatio = Annotated[
    float | None, Option("Advise the threshold for what a non-return costs over an error.", metavar="R")
]
MaxError = Annotated[float | None, Option("Advise the threshold for at most this share of errors.", metavar="E")]
Delta = Annotated[float | None, Option("With --max-error: chance that the promise fails on new data.", metavar="D")]
MaxNonreturn = Annotated[float | None, Option("Advise the threshold for at most this share withheld.", metavar="X")]
Brief = Annotated[
    bool,
    Option("One page of paper: verdict, plot, three numbers, five examples. Applies to .html and .md.", flag="--brief"),
]
ExampleRows = Annotated[int, Option("Rows to show of each kind, for each system.", minimum=0, metavar="N")]


@job
@reads_logs
def report(
    *data: Tables,
    kinds: KindOfEach = None,
    title: Title = None,
    by: SliceBy = None,
    at_nonreturn: Rate = 0.2,
    cost_ratio: CostRatio = None,
    max_error: MaxError = None,
    delta: Delta = None,
    max_nonreturn: MaxNonreturn = None,
    pair_by: PairBy = None,
    examples: ExampleRows = 10,
    brief: Brief = False,
    outcome: OutcomeColumn = None,
    x: TrialX = None,
    y: TrialY = None,
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
    classes: Any = None,
    step: Step = silent,
) -> "Report":
    """Write one page on tables of answers, N-best lists, dialogues and trials; also as Markdown, JSON and JUnit XML.

    Data are what `compare` takes, a dict of names to tables, arrays and estimators too, and tables of other kinds. What
    each table is, its columns say; `kinds={"log.csv": "trials"}` says it where they do not. `by` names the columns to
    slice by, by default all that suit. Thresholds are advised for a cost ratio, a limit on errors (promised with
    `delta`) or on non-returns; by default one is looked for that promises at most 5 % errors.

    Answers in folders and URLs of Parquet, and in lazy frames, are counted by an engine, each a system unless a column
    names systems. What cannot be computed there is named in the report, with the reason.

    The report has `.html()`, `.markdown()`, `.to_dict()` and `.save("report.html")`.
    """
    from demur.reports.analyses import MixtureReading, ReportOptions
    from demur.reports.lakes import analyse
    from demur.reports.report import report_of
    from demur.returns.counting import Counting

    aim: Any = {"cost_ratio": cost_ratio, "max_error": max_error, "delta": delta, "max_nonreturn": max_nonreturn}
    options = ReportOptions(
        **aim,
        at=at_nonreturn,
        by=(by,) if isinstance(by, str) else None if by is None else tuple(by),
        pair_by=key_columns(pair_by),
        examples=examples,
        **asdict(Sampling(level, replicates, seed)),
    )
    reading = MixtureReading(
        kinds=dict(kinds or {}),
        columns=dict(columns or {}),
        where=tuple(where),
        out_of_scope=tuple(out_of_scope),
        withheld=tuple(withheld),
        missing_confidence=missing_confidence,
        pair_by=options.pair_by,
        outcome=outcome,
        x=x,
        y=y,
        pack_inputs="input" not in (options.by or ()),
    )
    how = Counting(engine=engine, spark_master=spark_master)
    return report_of(analyse(_as_tables(data, classes), reading, options, how, step), title=title, brief=brief)


def _as_tables(data: tuple[Any, ...], classes: Sequence[str] | None) -> Sequence[Any]:
    """What was given, arrays and estimators as tables."""
    if classes is None and all(isinstance(one, str) for one in data):
        return data
    from demur.returns.predictions import tables_of

    return tables_of(data, classes)


@job
def verify_engine(
    *,
    engine: Annotated[
        Literal["polars", "duckdb", "spark"] | None,
        Option("Verify this engine; without it, every one that is installed."),
    ] = None,
    spark_master: Annotated[
        str | None, Option("The cluster to verify; by default this machine.", metavar="URL")
    ] = None,
    rows: Annotated[int, Option("Rows of the log made for it.", minimum=100, metavar="N")] = 20_000,
    seed: Annotated[int, Option("Seed of the log made for it.", minimum=0)] = 0,
    step: Step = silent,
) -> "Verification":
    """Check that an engine, or your cluster, gives the same numbers as memory: every measure and count."""
    from demur.reports.verify import verify_engines

    return verify_engines(engine, spark_master, rows=rows, seed=seed, step=step)


JOBS = (
    Job(
        "report",
        report,
        present="demur.reports.report:summary_of",
        example="demur report a.jsonl b.jsonl -o report.html -o report.xml",
        gate="b is significantly worse",
        about="Verdict, error-return plot, threshold, comparison, slices, calibration, examples; N-best lists, "
        "outcomes and a gold standard where the files have them. -o takes .html, .md, .json and .xml (JUnit: each gate "
        "of --fail-if is a test case) and may be repeated; without it a summary is all there is. A CI job appends the "
        ".md to its summary page. Figures are written as .svg, .png or .pdf: the error-return plot, or those that "
        "--figure names.",
    ),
)
CHECK_JOBS = (
    Job(
        "verify-engine",
        verify_engine,
        present="demur.reports.verify:of_verification",
        example="demur verify-engine --spark-master spark://host:7077",
        figures=False,
        fails=lambda found: not found.holds,
    ),
)
