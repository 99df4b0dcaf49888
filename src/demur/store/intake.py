"""Files become drafts of runs: read and checked by the project's own readers, nothing written yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.io.columns import JUDGED, MOST_SLICES, resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source, opened, stem_of, system_names
from demur.core.io.tables import ROW, Request
from demur.core.options import Kind
from demur.errors import DataError, DemurError, UsageError
from demur.gold_standard.trials import TrialReading, Trials, read_trials
from demur.importers import importer_of
from demur.importers.kinds import columns_of, kind_of, outcome_column
from demur.nbest_lists.table import NBest, NBestReading, read_nbest
from demur.outcome.table import DialogueReading, Dialogues, read_dialogues
from demur.returns.table import Reading, Responses, read_responses
from demur.store.records import canonical

BULKY = ("input", "nbest")
"""Columns of responses that are shown with a row, and never sliced by."""


def of_responses(frame: pl.DataFrame) -> dict[str, Any]:
    """How many were answered, right and so on, and by which columns rows can be sliced."""
    weight = frame["weight"].to_numpy()
    wrong = (frame["answered"] & ~frame["right"]).to_numpy()
    total = float(weight.sum())
    return {
        **{name: int(frame[name].sum()) for name in ("answered", "right", "failed", "out_of_scope")},
        "forced_error": float(weight[wrong].sum()) / total if total else None,
        "has_input": "input" in frame.columns,
        "has_nbest": "nbest" in frame.columns,
        "has_ids": frame["id"].null_count() < frame.height,
        "weighted": bool((weight != 1).any()),
        "dialogues": frame["dialogue"].drop_nulls().n_unique(),
        "slices": slices_in(frame),
    }


def slices_in(frame: pl.DataFrame) -> list[str]:
    """The columns of at most 200 values, of those that were kept along."""
    others = [name for name in frame.columns if name not in (*JUDGED, *BULKY)]
    return [name for name in others if 0 < frame[name].drop_nulls().n_unique() <= MOST_SLICES]


def of_lists(found: NBest, columns: Collection[str]) -> dict[str, Any]:
    """How many utterances and hypotheses there are, and of whom."""
    return {
        "utterances": len(found),
        "hypotheses": int(found.act.size),
        "systems": list(found.systems),
        "dialogues": found.frame["dialogue"].drop_nulls().n_unique(),
        "has_asr": any(name in columns for name in ("asr", "asr_hyps")),
        "has_cnet": any(name in columns for name in ("cnet", "confusion_network")),
    }


def of_dialogues(found: Dialogues) -> dict[str, Any]:
    """What the outcome is, and how it came out on average."""
    return {
        "outcome": found.outcome,
        "dialogues": len(found),
        "mean": float(np.mean(found.frame["outcome"].to_numpy())),
        "grouped": found.grouped,
    }


def of_trials(found: Sequence[Trials]) -> dict[str, Any]:
    """What was measured, in which studies, and who performed."""
    performers = dict.fromkeys(name for one in found for name in one.performers)
    return {
        "x": found[0].x_name,
        "y": found[0].y_name,
        "trials": sum(map(len, found)),
        "studies": [one.study for one in found],
        "performers": list(performers),
    }


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

    def __post_init__(self) -> None:
        """Has lists, as JSON gives them, stand for what they say, so that one reading is always written alike."""
        for name in ("out_of_scope", "withheld", "gold"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "where", tuple((column, value) for column, value in self.where))

    def responses(self) -> Reading:
        """How answers are read, every column kept."""
        return Reading(
            columns=self.columns,
            where=self.where,
            out_of_scope=self.out_of_scope,
            withheld=self.withheld,
            missing_confidence=self.missing_confidence,
            keep=("*",),
        )

    def lists(self, keep: Sequence[str] = ()) -> NBestReading:
        """How N-best lists are read."""
        return NBestReading(
            columns=self.columns, where=self.where, items=self.items, normalise=self.normalise, keep=tuple(keep)
        )

    def dialogues(self) -> DialogueReading:
        """How dialogues are read."""
        if self.where:
            raise UsageError("`where` chooses rows of responses, N-best lists and trials, not dialogues")
        return DialogueReading(outcome=self.outcome, columns=self.columns)

    def trials(self) -> TrialReading:
        """How trials are read; x and y must be given."""
        if self.x is None or self.y is None:
            raise UsageError("a table of trials needs `x` and `y`: what makes it harder, how well it went")
        return TrialReading(
            x=self.x,
            y=self.y,
            lower=self.lower,
            upper=self.upper,
            gold=self.gold,
            columns=self.columns,
            where=self.where,
        )

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
            with _naming_files(group):
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
    found = []
    for file, name in zip(files, names, strict=True):
        called = shown.get(str(file.path), file.name)
        sent = stem_of(Path(called)) if str(file.path) in shown else name
        with _naming_file(str(file.path), called):
            columns = columns_of(file.path)
            one = _kind_given(kind, called) or kind_of([*columns, *how.columns], where=f"{called}:")
        found.append(_Arrival(file, called, sent, one, columns))
    return found


def _kind_given(kind: Kind | Mapping[str, Kind] | None, called: str) -> Kind | None:
    return kind.get(called) or kind.get(Path(called).name) if isinstance(kind, Mapping) else kind


def _groups(arrivals: Sequence[_Arrival], how: RunReading) -> list[list[_Arrival]]:
    together = [one for one in arrivals if one.kind == "responses" and _names_systems(one, how)]
    alone = [[one] for one in arrivals if one not in together]
    return [together, *alone] if together else alone


def _names_systems(one: _Arrival, how: RunReading) -> bool:
    try:
        return "system" in resolve(one.columns, how.columns, where="").columns
    except DataError:
        return False  # reading says what is wrong, and where


@contextmanager
def _naming_files(group: Sequence[_Arrival]) -> Iterator[None]:
    if len(group) > 1:
        with _naming_file(str(group[0].file.path), group[0].shown), _naming_files(group[1:]):
            yield
    else:
        with _naming_file(str(group[0].file.path), group[0].shown):
            yield


@contextmanager
def _naming_file(path: str, shown: str) -> Iterator[None]:
    """Lets faults call a file what its owner calls it."""
    try:
        yield
    except DemurError as fault:
        if path == shown or path not in str(fault):
            raise
        if not isinstance(fault, DataError):
            raise type(fault)(str(fault).replace(path, shown)) from None
        raise fault.rewritten(lambda text: text.replace(path, shown)) from None


def _with_own_names(texts: Sequence[str], group: Sequence[_Arrival]) -> tuple[str, ...]:
    """What reading said, files called what their owner calls them, without the folders they lie in."""
    said = list(texts)
    for one in group:
        said = [text.replace(str(one.file.path), one.base) for text in said]
    return tuple(said)


def _answer_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    judged = read_responses(*(one.file.path for one in group), reading=how.responses())
    if len(judged.systems) > MOST_SYSTEMS:
        rule = f"names {len(judged.systems):,} systems, and each would be a run; {MOST_SYSTEMS} are the most"
        raise DataError(rule, where=group[0].shown, fix="`columns` system=COLUMN names the column of systems")
    only = group[0]
    named = {stem_of(only.file.path): only.name} if len(group) == 1 else {}
    taken = dict.fromkeys(name for one in group for name in _JUDGED_HERE if name in one.columns)
    lost = tuple(f'the column "{name}" is not kept: judged rows have one of that name' for name in taken)
    notes, warnings = _with_own_names(judged.notes, group), (*_with_own_names(judged.warnings, group), *lost)
    for system in judged.systems:
        frame = canonical("responses", _of_system(judged, system))
        name = named.get(system, system)
        source = ", ".join(one.base for one in group)
        yield Draft("responses", name, frame, source, how.to_dict(), of_responses(frame), notes, warnings)


def _of_system(judged: Responses, system: str) -> pl.DataFrame:
    frame = judged.frame if len(judged.systems) == 1 else judged.of(system).frame
    return frame.drop("system")


def _list_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    (one,) = group
    found = read_nbest(one.file.path, reading=how.lists())
    about = of_lists(found, one.columns)
    importer = importer_of(one.file.path)
    if importer is not None:  # its turns are kept, as rows
        rows = list(importer.read(one.file.path))
        yield _of_table(one, replace(how, items=how.items or "dstc"), about, found.notes, found.warnings, rows)
    else:
        yield _of_table(one, how, about, found.notes, found.warnings)


def _dialogue_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    (one,) = group
    notes: tuple[str, ...] = ()
    guessed = outcome_column(one.columns)
    if guessed and how.outcome is None and "outcome" not in how.columns:
        how, notes = replace(how, outcome=guessed), (f'outcome read from column "{guessed}"',)
    found = read_dialogues(one.file.path, reading=how.dialogues())
    yield _of_table(one, how, of_dialogues(found), (*found.notes, *notes), found.warnings)


def _trial_drafts(group: Sequence[_Arrival], how: RunReading) -> Iterator[Draft]:
    (one,) = group
    try:
        reading = how.trials()
    except UsageError as fault:
        raise UsageError(f"{one.shown}: {fault}; columns there: {', '.join(one.columns)}") from None
    found = read_trials(one.file.path, reading=reading)
    notes = dict.fromkeys(note for study in found for note in study.notes)
    warnings = dict.fromkeys(warning for study in found for warning in study.warnings)
    yield _of_table(one, how, of_trials(found), tuple(notes), tuple(warnings))


def _of_table(
    one: _Arrival,
    how: RunReading,
    about: dict[str, Any],
    notes: Sequence[str],
    warnings: Sequence[str],
    rows: Sequence[dict[str, Any]] | None = None,
) -> Draft:
    """A draft of a table as it stands in its file, or of rows that were made of it."""
    table = read_source(one.file, Request()) if rows is None else table_of(rows, Request())
    frame = canonical(one.kind, table.frame.drop(ROW))
    said = _with_own_names(notes, [one]), _with_own_names(warnings, [one])
    return Draft(one.kind, one.name, frame, one.base, how.to_dict(), about, *said)


_read_as = {"responses": _answer_drafts, "nbest": _list_drafts, "dialogues": _dialogue_drafts, "trials": _trial_drafts}
