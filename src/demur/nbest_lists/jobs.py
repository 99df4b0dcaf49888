"""The jobs on N-best lists: their options are declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Job, Option, Output, job
from demur.core.options import By, Level, NoSeed, Replicates, Sampling, Seed, Where, name_columns
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.importers.choices import reads_logs
from demur.returns.options import OUT_OF_SCOPE, EngineName, SparkMaster, labels

if TYPE_CHECKING:
    from demur.nbest_lists.asr.lattices import LatticeRows
    from demur.nbest_lists.evaluate import NBestComparison, NBestEvaluations
    from demur.nbest_lists.table import NBest, NBestReading


def scorer_names(text: str) -> tuple[str, ...]:
    """The names in a text, separated by commas.

    >>> scorer_names("const, infev")
    ('const', 'infev')
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(text)
    return names


Lists = Annotated[
    Any,
    Argument(
        "Tables of N-best lists: .jsonl .csv .parquet and others as for score; folders of DSTC2 or DSTC3.",
        metavar="FILES",
    ),
]
ListColumns = Annotated[dict[str, str] | None, name_columns("reference=my_column")]
ItemKind = Annotated[
    Literal["thomson", "dstc"] | None,
    Option(
        "How an act becomes items. thomson: the act and each slot apart. dstc: the act with each slot. "
        "Item lists stay as they are. Default: thomson; dstc for folders of the challenges."
    ),
]
Normalise = Annotated[bool, Option("Scale lists whose confidences sum to over 1, instead of refusing them.")]
OutOfScopeLabels = Annotated[
    tuple[str, ...],
    Option(
        "Where hypotheses are labels: one that means out of scope. As reference nothing was meant, as hypothesis it "
        'holds no item. Repeatable; replaces oos and out_of_scope. "" for none.',
        metavar="LABEL",
        repeat=True,
        collect=labels,
    ),
]
ListOntology = Annotated[
    Path | None, Option("With a folder of DSTC: its ontology; by default one that is nearby.", metavar="FILE")
]
Scorer = Annotated[
    str | tuple[str, ...] | None,
    Option(
        "Make the lists from the columns asr or cnet: const, avgword or infev; with -tp1 only the best act. "
        "Several, separated by commas, are compared as systems.",
        metavar="NAME",
        parse=scorer_names,
        takes="a name, or several separated by commas, such as const,infev",
        write=lambda names: names if isinstance(names, str) else ",".join(names),
    ),
]
GrammarFile = Annotated[
    Path | None,
    Option("With --scorer: the grammar that parses sentences; by default a restaurant guide's.", metavar="TOML"),
]
Parser = Annotated[
    str | Callable[[str], str] | None,
    Option("With --scorer: a program that answers each line, a sentence, with a line of acts.", metavar="COMMAND"),
]
HeardIn = Annotated[
    Literal["auto", "asr", "cnet"], Option("With --scorer: take sentences from the list or from the confusion network.")
]
SentenceCount = Annotated[
    int | None, Option("With --scorer: take at most so many; default all, of a network 100.", minimum=1)
]
AcousticScale = Annotated[
    float | Literal["tuned"],
    Option(
        "Multiply the log posteriors of avgword and infev by this; tuned: chosen by the ICE of other dialogues.",
        metavar="X",
        parse=lambda text: text if text == "tuned" else float(text),
        takes="a number above 0, or tuned",
        check=lambda scale: scale == "tuned" or (isinstance(scale, int | float) and 0 < scale < float("inf")),
        write="{:g}".format,
    ),
]
Floor = Annotated[
    float | Literal["paper"],
    Option(
        "Least probability that ICE, ACE and NCE look at; paper is 0.01, near which the tables of Thomson et al. fit.",
        metavar="P",
        parse=lambda text: text if text == "paper" else float(text),
        takes="a number above 0 and below 0.5, or paper",
        check=lambda floor: floor == "paper" or (isinstance(floor, int | float) and 0 < floor < 0.5),
    ),
]
Clip = Annotated[float | None, Option("Another floor for the NCE, such as sclite's 1e-7.", above=0, below=0.5)]
ComparedSystems = Annotated[
    tuple[str, ...] | None,
    Option("With --compare: only these systems. Repeatable.", flag="--system", metavar="NAME", repeat=True),
]
Matched = Annotated[bool, Option("With --compare: only utterances that all systems have.")]
Unpaired = Annotated[bool, Option("With --compare: do not pair by id.")]


TrainingLists = Annotated[
    str | Path | tuple[Any, ...],
    Option(
        "Fit a recalibration of confidences on this file and show what it gains here. Repeatable.",
        metavar="FILE",
        repeat=True,
    ),
]


@job
@reads_logs
def read_nbest(
    *data: Any,
    keep: tuple[str, ...] = (),
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    out_of_scope: OutOfScopeLabels = OUT_OF_SCOPE,
    ontology: ListOntology = None,
    scorer: Scorer = None,
    grammar: GrammarFile = None,
    parser: Parser = None,
    heard: HeardIn = "auto",
    sentences: SentenceCount = None,
    acoustic_scale: AcousticScale = 1.0,
) -> "NBest":
    """N-best lists from files, globs, folders of DSTC2 and 3, frames, lists of dicts, or a mixture.

    With a scorer (const, avgword, infev; `-tp1` keeps the best act) the lists are made from the columns asr or cnet, by
    a grammar file, a parser (any callable from text to acts, or a command), or the grammar of a restaurant guide; of
    several scorers each is a system. `keep` names further columns to keep. A dict of names to data names the systems.
    """
    from demur.nbest_lists.asr.scorers import Scoring
    from demur.nbest_lists.scales import read_scored

    scoring = Scoring(scorer, grammar, parser, heard, sentences, acoustic_scale)
    table, scales = read_scored(
        data, list_reading(columns, where, items, normalise, ontology, keep, out_of_scope), scoring
    )
    return replace(table, notes=(*table.notes, *(one.note for one in scales)))


@job
@reads_logs
def nbest(
    *data: Lists,
    by: By = None,
    compare: Annotated[bool, Option("Compare the systems, paired by utterance.")] = False,
    systems: ComparedSystems = None,
    matched: Matched = False,
    unpaired: Unpaired = False,
    floor: Floor = 1e-3,
    clip: Clip = None,
    recalibrate_on: TrainingLists = (),
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    out_of_scope: OutOfScopeLabels = OUT_OF_SCOPE,
    ontology: ListOntology = None,
    scorer: Scorer = None,
    grammar: GrammarFile = None,
    parser: Parser = None,
    heard: HeardIn = "auto",
    sentences: SentenceCount = None,
    acoustic_scale: AcousticScale = 1.0,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "NBestEvaluations":
    """Score N-best lists with confidences: WSER, oracle, NCE and ICE, with intervals.

    Data are what `read_nbest` takes, or a lazy frame, which is counted where it is. With `compare` the result holds the
    comparison of its systems, as `comparison`; with `recalibrate_on` what recalibrating did to each system, as
    `recalibrated`.
    """
    from demur.nbest_lists.asr.scorers import Scoring
    from demur.nbest_lists.counted import in_engine
    from demur.nbest_lists.evaluate import NBestSettings, compare_lists, evaluate_nbest
    from demur.nbest_lists.recalibrate import ListRecalibration, list_rows, recalibrated_systems
    from demur.nbest_lists.scales import read_scored
    from demur.returns.counting import Counting

    choice: dict[str, Any] = {"systems": systems, "matched": matched, "unpaired": unpaired}
    training = (recalibrate_on,) if isinstance(recalibrate_on, str | Path) else tuple(recalibrate_on)
    _refuse_options(data, training, compare, any(choice.values()), bool(by or training))
    settings = NBestSettings(level, replicates, seed, floor, clip)
    reading = list_reading(columns, (), items, normalise, ontology, (), out_of_scope)
    chosen = replace(reading, where=tuple(where), keep=() if by is None else (by,))
    only_memory = {"matched": matched, "recalibrate_on": training, "scorer": scorer, "ontology": ontology}
    counting, compared = Counting(engine=engine, spark_master=spark_master), (systems, unpaired) if compare else None
    counted = in_engine(data, chosen, counting, only_memory, by=by, how=settings, compared=compared, step=step)
    if counted is not None:
        return counted
    scoring = Scoring(scorer, grammar, parser, heard, sentences, acoustic_scale)
    read = partial(read_scored, scoring=scoring, floor=settings.least, seed=seed, step=step)
    step("reading", 0, 1)
    table, scales = read(data, chosen)
    fitted = ListRecalibration.fit(read(training, reading)[0]) if training else None
    if compare:
        evaluations = compare_lists(table, settings=settings, step=step, **choice).as_evaluations()
    else:
        evaluations = evaluate_nbest(table, by=by, settings=settings, step=step)
    evaluations.recalibrated = () if fitted is None else recalibrated_systems(table, fitted, settings)
    evaluations.scales, evaluations.rows = scales, lambda: list_rows(table, fitted)
    tuned = tuple(one.note for one in scales) if compare else ()  # otherwise a sentence says it
    return evaluations.with_notes((*table.notes, *tuned, Sampling(level, replicates, seed).note), table.warnings)


@job
@reads_logs
def compare_nbest(
    *data: Any,
    systems: ComparedSystems = None,
    matched: Matched = False,
    unpaired: Unpaired = False,
    floor: Floor = 1e-3,
    clip: Clip = None,
    columns: ListColumns = None,
    where: Where = (),
    items: ItemKind = None,
    normalise: Normalise = False,
    out_of_scope: OutOfScopeLabels = OUT_OF_SCOPE,
    ontology: ListOntology = None,
    scorer: Scorer = None,
    grammar: GrammarFile = None,
    parser: Parser = None,
    heard: HeardIn = "auto",
    sentences: SentenceCount = None,
    acoustic_scale: AcousticScale = 1.0,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "NBestComparison":
    """N-best lists of two or more systems against each other, paired by utterance: `nbest` with `compare`."""
    options = locals()  # the arguments: nothing is assigned before this line
    return nbest(*options.pop("data"), compare=True, **options).comparison


_FINITE: dict[str, Any] = {"check": isfinite, "takes": "a finite number"}


@job
def import_slf(
    *sources: Annotated[
        str | Path,
        Argument(
            "Word lattices in HTK's Standard Lattice Format, .lat or .slf, also .gz and .zst; globs; folders of "
            "them, at any depth. An utterance is named after its file.",
            metavar="FILES",
        ),
    ],
    references: Annotated[
        Path | None,
        Option(
            "Table with a row per utterance: id, reference, and any further columns, such as dialogue.", metavar="FILE"
        ),
    ] = None,
    prune: Annotated[
        float, Option("Leave out words less probable than this, unless on the best path.", minimum=0, maximum=1)
    ] = 1e-4,
    acscale: Annotated[
        float | None, Option("Scale of acoustic scores; by default the lattice's own, or 1.", **_FINITE)
    ] = None,
    lmscale: Annotated[
        float | None, Option("Scale of language model scores; by default the lattice's own, or 1.", **_FINITE)
    ] = None,
    wdpenalty: Annotated[
        float | None, Option("Added to every word's score; by default the lattice's own, or 0.", **_FINITE)
    ] = None,
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "LatticeRows":
    """Word lattices as confusion networks, a row for each utterance, for `demur nbest --scorer`.

    The lattices are read while the rows are iterated over.
    """
    from demur.nbest_lists.asr.lattices import LatticeRows, References, lattice_files

    files = lattice_files(sources)
    table = None if references is None else References.read(Path(references))
    if table is not None:
        table.check(files)
    given = {"acscale": acscale, "lmscale": lmscale, "wdpenalty": wdpenalty}
    scales = {name: value for name, value in given.items() if value is not None}
    return LatticeRows(files, table, scales, prune, step)


def check_lists_file(path: Path, *data: Any, recalibrate_on: tuple[Any, ...] = (), **_: Any) -> None:
    """Refuse a file that lists cannot be written to, or that is read."""
    from demur.core.io.writing import check_rows_file

    check_rows_file(path, "`write_lists`")
    if path.resolve() in _files(data) | _files(recalibrate_on):
        raise UsageError(f"`write_lists` {path}: this file is read here; write to another")


def _refuse_options(
    data: tuple[Any, ...], training: tuple[Any, ...], compare: bool, of_comparison: bool, of_evaluation: bool
) -> None:
    if not compare and of_comparison:
        raise UsageError("`systems`, `matched` and `unpaired` go with `compare`")
    if compare and of_evaluation:
        raise UsageError("`compare` looks at whole systems: leave out `by` and `recalibrate_on`, or use `where`")
    for file in training:
        if _files(data) & _files((file,)):
            raise UsageError(
                f"`recalibrate_on` {file}: this file is evaluated too, and confidences that were fitted on it say "
                "nothing about new data; fit on another"
            )


def _files(data: tuple[Any, ...]) -> set[Path]:
    return {Path(one).resolve() for one in data if isinstance(one, str | Path)}


def list_reading(
    columns: dict[str, str] | None,
    where: tuple[tuple[str, str], ...],
    items: Literal["thomson", "dstc"] | None,
    normalise: bool,
    ontology: Path | None,
    keep: tuple[str, ...] = (),
    out_of_scope: tuple[str, ...] = OUT_OF_SCOPE,
) -> "NBestReading":
    """How to read lists by the options of a job."""
    from demur.nbest_lists.table import NBestReading

    return NBestReading(
        columns=dict(columns or {}),
        items=items,
        normalise=normalise,
        where=tuple(where),
        keep=tuple(keep),
        ontology=ontology,
        out_of_scope=tuple(out_of_scope),
    )


JOBS = (
    Job(
        "nbest",
        nbest,
        present="demur.nbest_lists.presentation:of_nbest",
        example="demur nbest lists.jsonl --by noise -o lists.html",
        gate="ice > 1.5",
        outputs=(
            Output(
                "--write-lists",
                "Write the lists as they were evaluated, recalibrated with --recalibrate-on: .jsonl, .gz or .zst.",
                write="demur.nbest_lists.recalibrate:write_lists",
                check="demur.nbest_lists.jobs:check_lists_file",
            ),
        ),
    ),
)
IMPORT_JOBS = (
    Job(
        "import slf", import_slf, present="", example="demur import slf lattices/ --references meant.csv -o cnets.jsonl"
    ),
)
