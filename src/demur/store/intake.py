"""Files become drafts of runs: read and checked by the project's own readers, nothing written yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from math import isnan
from pathlib import Path
from typing import Any, Literal, TypeVar

import narwhals as nw
import numpy as np
import polars as pl

from demur.core.io.columns import DEPLOYED, JUDGED, MOST_SLICES, STRATUM, resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source, stem_of, system_names
from demur.core.io.tables import ROW, Request
from demur.core.options import Kind
from demur.core.stats.strata import are_drawn_by_strata
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, DemurError, UsageError
from demur.gold_standard.trials import TrialReading, read_trials
from demur.importers import importer_of
from demur.importers.kinds import columns_of, kind_of, outcome_column
from demur.importers.reading import opened
from demur.nbest_lists.table import NBestReading, read_nbest
from demur.outcome.table import DialogueReading, read_dialogues
from demur.returns.measures import AUGRC, ErrorAtNonreturn, ForcedError
from demur.returns.slices import tells_correctness
from demur.returns.table import Reading, read_responses
from demur.store.records import canonical

T = TypeVar("T")

BULKY = ("input", "nbest")
"""Columns of responses that are shown with a row, and never sliced by."""


SHARES = tuple(percent / 100 for percent in range(0, 100, 5))
"""Non-return rates at which the error of a run is kept."""

MOST_SYSTEMS = 200
"""Systems that one adding may bring: with more, the column is likely none of systems."""

_JUDGED_HERE = ("answered", "right", "out_of_scope")
_AS_IT_COMES = Reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReading:
    """How a table is read when it is added; each kind of table takes of it what it knows."""

    columns: Mapping[str, str] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()
    out_of_scope: tuple[str, ...] = _AS_IT_COMES.out_of_scope
    withheld: tuple[str, ...] = _AS_IT_COMES.withheld
    missing_confidence: Literal["error", "lowest"] = "error"
    items: Literal["thomson", "dstc"] | None = None
    normalise: bool = False
    outcome: str | None = None
    x: str | None = None
    y: str | None = None
    lower: float = 0.0
    upper: float | None = None
    gold: tuple[str, ...] = ()
    confidence: tuple[str, ...] = ()
    """Columns of confidences, each of which makes a run of its own."""

    def __post_init__(self) -> None:
        """Has lists, as JSON gives them, stand for what they say, so that one reading is always written alike."""
        for name in ("out_of_scope", "withheld", "gold", "confidence"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "where", tuple((column, value) for column, value in self.where))

    def _of(self, kind: type[T], **more: Any) -> T:
        """The options that a kind of reading knows."""
        known = {one.name for one in fields(kind)} & {one.name for one in fields(self)}  # type: ignore[arg-type]
        return kind(**{name: getattr(self, name) for name in known}, **more)

    def responses(self) -> Reading:
        """How answers are read, every column kept."""
        return self._of(Reading, keep=("*",))

    def lists(self, keep: Sequence[str] = ()) -> NBestReading:
        """How N-best lists are read."""
        return self._of(NBestReading, keep=tuple(keep))

    def dialogues(self) -> DialogueReading:
        """How dialogues are read."""
        if self.where:
            raise UsageError("`where` chooses rows of responses, N-best lists and trials, not dialogues")
        return self._of(DialogueReading)

    def trials(self) -> TrialReading:
        """How trials are read; x and y must be given."""
        if self.x is None or self.y is None:
            raise UsageError("a table of trials needs `x` and `y`: what makes it harder, how well it went")
        return self._of(TrialReading)

    def to_dict(self) -> dict[str, Any]:
        """What differs from reading a table as it comes."""
        usual = asdict(RunReading())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


@dataclass(frozen=True, slots=True)
class RenamedFile:
    """A file that goes by another name than the one it has on disk, as one that was uploaded."""

    path: Path
    shown: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A run to be: its rows in the order in which they came, and what is known of them."""

    kind: Kind
    name: str
    frame: pl.DataFrame
    source: str
    reading: dict[str, Any]
    about: dict[str, Any]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Arrival:
    file: Source
    shown: str
    name: str
    kind: Kind
    columns: tuple[str, ...]

    @property
    def base(self) -> str:
        return Path(self.shown).name


def drafts(
    sources: Sequence[str | Path | RenamedFile], how: RunReading, kind: Kind | Mapping[str, Kind] | None
) -> Iterator[Draft]:
    """Reads files one after the other; those that name their systems together, as they may be parts of one log."""
    shown = {str(one.path): one.shown for one in sources if isinstance(one, RenamedFile)}
    paths = [one.path if isinstance(one, RenamedFile) else one for one in sources]
    with _opened(paths) as files:
        arrivals = _arrivals(files, shown, how, kind)
        if (how.x or how.y) and not any(one.kind == "trials" for one in arrivals):
            raise UsageError("`x` and `y` go with a table of trials; there is none here")
        for group in _groups(arrivals, how):
            with _own_names({str(one.file.path): one.shown for one in group}):
                yield from _read_as[group[0].kind](group, how)


@contextmanager
def _opened(paths: Sequence[str | Path]) -> Iterator[list[Source]]:
    """The files, and folders of dialogues of a challenge, which stand for a table too."""
    folders = [Path(path) for path in paths if Path(path).is_dir() and importer_of(path) is not None]
    stand_ins = [Source(path, str(path), "json", "", path.resolve().name) for path in folders]
    with ExitStack() as stack:
        rest = [path for path in paths if Path(path) not in folders]
        yield [*(stack.enter_context(opened(*rest)) if rest or not folders else ()), *stand_ins]


def _arrivals(
    files: Sequence[Source], shown: Mapping[str, str], how: RunReading, kind: Kind | Mapping[str, Kind] | None
) -> list[_Arrival]:
    names, _ = system_names(files)
    arrivals = []
    for file, name in zip(files, names, strict=True):
        called = shown.get(str(file.path), file.name)
        own_name = stem_of(Path(called)) if str(file.path) in shown else name
        given = kind.get(called) or kind.get(Path(called).name) if isinstance(kind, Mapping) else kind
        with _own_names({str(file.path): called}):
            columns = columns_of(file)
            recognised = given or kind_of([*columns, *how.columns], where=f"{called}:")
        arrivals.append(_Arrival(file, called, own_name, recognised, columns))
    return arrivals


def _groups(arrivals: Sequence[_Arrival], how: RunReading) -> list[list[_Arrival]]:
    together = []
    for one in arrivals:
        with suppress(DataError):  # reading says what is wrong, and where
            if one.kind == "responses" and "system" in resolve(one.columns, how.columns, where="").columns:
                together.append(one)
    alone = [[one] for one in arrivals if one not in together]
    return [together, *alone] if together else alone


@contextmanager
def _own_names(names: Mapping[str, str]) -> Iterator[None]:
    """Lets faults call files, given by their paths, what their owner calls them."""
    try:
        yield
    except DemurError as fault:
        if not any(path != name and path in str(fault) for path, name in names.items()):
            raise
        if not isinstance(fault, DataError):
            raise type(fault)(_replace_names(str(fault), names)) from None
        raise fault.rewritten(lambda text: _replace_names(text, names)) from None


def _replace_names(text: str, names: Mapping[str, str]) -> str:
    for path, name in names.items():
        text = text.replace(path, name)
    return text


def _with_own_names(texts: Iterable[str], group: Sequence[_Arrival]) -> tuple[str, ...]:
    """Notes or warnings, files called what their owner calls them, without the folders they lie in."""
    names = {str(one.file.path): one.base for one in group}
    return tuple(_replace_names(text, names) for text in texts)


def _readable(file: Source) -> Path | Source:
    """What readers are given: a file by its path, and rows that were read already as they are."""
    return file.path if file.frame is None else file


def _answer_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    if how.confidence and "confidence" in how.columns:
        raise UsageError("`confidence` names the columns of confidences, and so does `columns`: give one of them")
    for column in how.confidence:
        own = replace(how, columns={**how.columns, "confidence": column}, confidence=())
        yield from (replace(one, name=f"{one.name}:{column}") for one in _answer_drafts(group, own))
    if how.confidence:
        return
    judged = read_responses(*(_readable(one.file) for one in group), reading=how.responses())
    if len(judged.systems) > MOST_SYSTEMS:
        rule = f"names {len(judged.systems):,} systems, and each would be a run; {MOST_SYSTEMS} are the most"
        raise DataError(rule, where=group[0].shown, fix="`columns` system=COLUMN names the column of systems")
    only = group[0]
    named = {stem_of(only.file.path): only.name} if len(group) == 1 else {}
    taken = dict.fromkeys(name for one in group for name in _JUDGED_HERE if name in one.columns)
    lost = tuple(f'the column "{name}" is not kept: judged rows have one of that name' for name in taken)
    notes, warnings = _with_own_names(judged.notes, group), (*_with_own_names(judged.warnings, group), *lost)
    source = ", ".join(one.base for one in group)
    for system in judged.systems:
        rows = judged.frame if len(judged.systems) == 1 else judged.of(system).frame
        frame = canonical("responses", rows.drop("system"))
        name = named.get(system, system)
        yield Draft("responses", name, frame, source, how.to_dict(), _about_responses(frame), notes, warnings)


def _about_responses(frame: pl.DataFrame) -> dict[str, Any]:
    """How many were answered, right and so on, and by which columns of at most 200 values rows can be sliced."""
    weight = frame["weight"].to_numpy()
    aside = (*JUDGED, DEPLOYED, *BULKY, *((STRATUM,) if are_drawn_by_strata(frame) else ()))
    others = [one for one in frame if one.name not in aside]
    return {
        **{name: int(frame[name].sum()) for name in ("answered", "right", "failed", "out_of_scope")},
        **_readings_of(frame),
        "has_input": "input" in frame.columns,
        "has_nbest": "nbest" in frame.columns,
        "has_ids": frame["id"].null_count() < frame.height,
        "repeats_ids": bool(frame["id"].drop_nulls().is_duplicated().any()),
        "weighted": bool((weight != 1).any()),
        "dialogues": frame["dialogue"].drop_nulls().n_unique(),
        "slices": [
            one.name
            for one in others
            if 0 < one.alias("cell").drop_nulls().n_unique() <= MOST_SLICES and not tells_correctness(frame, one)
        ],
    }


def _readings_of(frame: pl.DataFrame) -> dict[str, Any]:
    """What a list of runs shows of the error-return curve; None where it is undefined."""
    if not frame["weight"].sum() > 0:
        return {"forced_error": None, "augrc": None, "errors_at": [None] * len(SHARES)}
    return readings_of(Sweep.from_frame(nw.from_native(frame)))


def readings_of(sweep: Sweep) -> dict[str, Any]:
    """What a list of runs shows of the error-return curve, from the sweep of a run."""
    measures = [ForcedError(), AUGRC(), *map(ErrorAtNonreturn, SHARES)]
    forced, area, *errors = [None if isnan(value := one.finish(sweep).item()) else value for one in measures]
    return {"forced_error": forced, "augrc": area, "errors_at": errors}


def _list_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    (one,) = group
    lists = read_nbest(_readable(one.file), reading=how.lists())
    about = {
        "utterances": len(lists),
        "hypotheses": int(lists.act.size),
        "systems": list(lists.systems),
        "dialogues": lists.frame["dialogue"].drop_nulls().n_unique(),
        "has_asr": any(name in one.columns for name in ("asr", "asr_hyps")),
        "has_cnet": any(name in one.columns for name in ("cnet", "confusion_network")),
    }
    importer = importer_of(one.file.path) if one.file.frame is None else None
    if importer is not None:  # its turns are kept, as rows
        rows = list(importer.read(one.file.path))
        yield _of_table(one, replace(how, items=how.items or "dstc"), about, lists.notes, lists.warnings, rows)
    else:
        yield _of_table(one, how, about, lists.notes, lists.warnings)


def _dialogue_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    (one,) = group
    notes: tuple[str, ...] = ()
    guessed = outcome_column(one.columns)
    if guessed and how.outcome is None and "outcome" not in how.columns:
        how, notes = replace(how, outcome=guessed), (f'outcome read from column "{guessed}"',)
    table = read_dialogues(_readable(one.file), reading=how.dialogues())
    mean = float(np.mean(table.frame["outcome"].to_numpy()))
    about = {"outcome": table.outcome, "dialogues": len(table), "mean": mean, "grouped": table.grouped}
    yield _of_table(one, how, about, (*table.notes, *notes), table.warnings)


def _trial_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    (one,) = group
    try:
        reading = how.trials()
    except UsageError as fault:
        raise UsageError(f"{one.shown}: {fault}; columns there: {', '.join(one.columns)}") from None
    studies = read_trials(_readable(one.file), reading=reading)
    notes = dict.fromkeys(note for study in studies for note in study.notes)
    warnings = dict.fromkeys(warning for study in studies for warning in study.warnings)
    about = {
        "x": studies[0].x_name,
        "y": studies[0].y_name,
        "trials": sum(map(len, studies)),
        "studies": [study.study for study in studies],
        "performers": list(dict.fromkeys(name for study in studies for name in study.performers)),
    }
    yield _of_table(one, how, about, notes, warnings)


def _of_table(
    one: _Arrival,
    how: RunReading,
    about: dict[str, Any],
    notes: Iterable[str],
    warnings: Iterable[str],
    rows: Sequence[dict[str, Any]] | None = None,
) -> Draft:
    """A draft of a table as it stands in its file, or of rows that were made of it."""
    table = read_source(one.file, Request()) if rows is None else table_of(rows, Request())
    frame = canonical(one.kind, table.frame.drop(ROW))
    texts = _with_own_names(notes, [one]), _with_own_names(warnings, [one])
    return Draft(one.kind, one.name, frame, one.base, how.to_dict(), about, *texts)


_read_as = {"responses": _answer_drafts, "nbest": _list_drafts, "dialogues": _dialogue_drafts, "trials": _trial_drafts}
