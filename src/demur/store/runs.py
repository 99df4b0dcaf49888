"""The store of runs: what was added stays whole, under one name and once, whoever writes and whatever breaks off."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from demur import __version__
from demur.core.io.columns import DEPLOYED, EVERYTHING, JUDGED, STRATUM, nearest, unknown_column
from demur.core.io.tables import named_column
from demur.core.jobs import Job
from demur.core.options import KINDS, Kind
from demur.core.show.results import Step, silent
from demur.errors import DataError, UsageError
from demur.gold_standard.trials import Trials, trials
from demur.nbest_lists.table import NBest, nbest
from demur.outcome.table import Dialogues, dialogues
from demur.returns.counting import Counting, Lake
from demur.returns.sweep_files import SweepFile, parsed_sweep
from demur.returns.table import Responses
from demur.store import index as store_index
from demur.store.index import Index, migrate, put_aside
from demur.store.intake import Draft, RenamedFile, RunReading, drafts
from demur.store.links import (
    LakeRows,
    LinkDraft,
    change_since,
    link_drafts,
    refuse_changed,
    refuse_linked,
)
from demur.store.records import (
    CACHE,
    ELSEWHERE,
    INDEX,
    PARTS,
    ROWS,
    RUN,
    RUNS,
    Cache,
    DamagedError,
    NoRunError,
    Run,
    changed,
    digest_of,
    disk_faults,
    file_digest,
    locked,
    mark_of,
    refuse_foreign,
    staged,
    usual_root,
    verify_rows,
    write_durably,
    write_rows,
    write_run,
)
from demur.store.rows import RunRows, damaged, refuse_other, rows_of

__all__ = ["Added", "RenamedFile", "Run", "RunReading", "Store"]

SHORTEST = 4
"""Characters of an id that are enough to name a run by."""

AS_IT_COMES = RunReading()
WHERE_THEY_LIE = Counting()

PREFIX, BASELINE = "run:", "@baseline"

KINDS_OF: Mapping[str, tuple[Kind, ...]] = {
    "returns": ("responses",),
    "nbest_lists": ("nbest",),
    "outcome": ("responses", "dialogues"),
    "gold_standard": ("trials",),
    "reports": KINDS,
}
"""The kinds of runs that the jobs of a question take."""

COUNTED_WHERE_THEY_LIE = ("score", "compare", "threshold", "drift", "classes", "report")
"""Jobs that take linked runs."""

READ_WHEN_ADDED = (
    "columns",
    "out_of_scope",
    "withheld",
    "missing_confidence",
    "confidence",
    "pair_by",
    "x",
    "y",
    "items",
)
"""Options on reading, which a run was read by when it was added."""


@dataclass(frozen=True, slots=True)
class Added:
    """A run, and whether it is new: content that was there already stays the run it was."""

    run: Run
    new: bool


class Store:
    """Runs in a folder; threads may share one, and so may programs."""

    def __init__(self, root: Path, index: Index, *, read_only: bool) -> None:
        """Holds what `open` has made ready."""
        self.root = root
        self.read_only = read_only
        self._index = index
        self._cache = Cache(root / CACHE)
        self._messages: list[str] = []
        self._verified: dict[str, tuple[int, int, int]] = {}

    @classmethod
    def open(cls, root: Path | None = None) -> Store:
        """Opens the store in a folder, which is made if there is none; mends what can be mended and tells of it.

        Without a folder it is the one that DEMUR_STORE names, else one where this system keeps the data of programs.
        """
        place = usual_root() if root is None else Path(root)
        with disk_faults(place):
            refuse_foreign(place)
            if not place.exists():
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with locked(place):
                messages = migrate(place)
                index, problems = _index_in(place)
                store = cls(place, index, read_only=False)
                store._messages += [*messages, *problems]
                store_index.clear_left_overs(place)
                store._update_index()
                return store
        except OSError as error:
            if not (place / RUNS).is_dir():
                raise UsageError(f"{place}: no store can be made here: {error.strerror}; {ELSEWHERE}") from None
            store = cls(place, Index(None), read_only=True)  # listed from its folders
            store._messages.append(f"the store can be read but not written to: {error.strerror}")
            store._update_index()
            return store

    @property
    def problems(self) -> tuple[str, ...]:
        """What was found wrong since the store was opened, repaired or not."""
        return tuple(dict.fromkeys([*self._messages, *store_index.problems_in(self.root, self._index)]))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the index."""
        self._index.close()

    def add(
        self,
        *sources: str | Path | RenamedFile,
        name: str | None = None,
        tags: Sequence[str] = (),
        note: str = "",
        reading: RunReading = AS_IT_COMES,
        kind: Kind | Mapping[str, Kind] | None = None,
        replace: bool = False,
        step: Step = silent,
    ) -> list[Added]:
        """Adds the tables in files: paths, globs, or `-` for standard input; answers as a run for each system.

        All is read and checked before anything is added. `name` is what the run is called, several `NAME: SYSTEM`;
        without it a run is called as its system or its file. `kind` follows from the columns, unless it is given, for
        all files or by their names. A name in use for other content is refused; with `replace` the new run takes it,
        and the old one is removed.
        """
        self._refuse_writing()
        with ExitStack() as stack:
            ready: list[tuple[Path, Run]] = []
            for done, draft in enumerate(drafts(sources, reading, kind)):
                step(f"adding {draft.name}", done, done + 1)
                ready.append(self._stage(draft, stack))
            runs = []
            for _, run in ready:
                called = run.name if name is None else name if len(ready) == 1 else f"{name}: {run.name}"
                runs.append(changed(run, name=called, tags=tags, note=note))
            with self._writing():
                self._refuse_taken(runs, replacing=replace)
                return [self._place(folder, run) for (folder, _), run in zip(ready, runs, strict=True)]

    def link(
        self,
        *sources: str,
        name: str | None = None,
        tags: Sequence[str] = (),
        note: str = "",
        reading: RunReading = AS_IT_COMES,
        how: Counting = WHERE_THEY_LIE,
        replace: bool = False,
        step: Step = silent,
    ) -> list[Added]:
        """Links to a lake of answers where it lies: a run for each system, its rows counted once and never copied.

        Paths, globs, folders and URLs together are one log. The run remembers its parts; where these are others later,
        it is refused until the lake is linked again, with `replace`.
        """
        self._refuse_writing()
        found = link_drafts(sources, reading, how, name=name, step=step)
        with ExitStack() as stack:
            ready = [self._stage_link(draft, stack) for draft in found]
            runs = [changed(run, name=run.name, tags=tags, note=note) for _, run in ready]
            with self._writing():
                self._refuse_taken(runs, replacing=replace)
                added = [self._place(folder, run) for (folder, _), run in zip(ready, runs, strict=True)]
        for one, draft in zip(added, found, strict=True):
            self.keep(_tallies_of(one.run), draft.counted.to_bytes())
        return added

    def _stage_link(self, draft: LinkDraft, stack: ExitStack) -> tuple[Path, Run]:
        """The parts of a lake under staging."""
        with disk_faults(self.root):
            folder = stack.enter_context(staged(self.root))
            write_durably(folder / PARTS, draft.parts.encoded())
        return folder, replace(
            draft.run,
            added=datetime.now(UTC).isoformat(timespec="milliseconds"),
            size=(folder / PARTS).stat().st_size,
            file_sha256=file_digest(folder / PARTS),
        )

    def lake(self, run: Run) -> Lake:
        """Where the rows of a linked run lie, and how they are read; refused where they are not what was linked."""
        refuse_other(run, "responses")
        path = self.rows_path(run)

        def kept() -> SweepFile | None:
            content = self.cached(_tallies_of(run))
            return None if content is None else parsed_sweep(content, name=run.name)

        def keep(counted: SweepFile) -> None:
            self.keep(_tallies_of(run), counted.to_bytes())

        reading = self._reading(run).responses()
        engine: Any = run.engine
        return Lake(
            run.name,
            run.lake,
            replace(reading, keep=()),
            engine,
            refuse_changes=lambda: refuse_changed(run, path),
            kept=kept,
            keep=keep,
        )

    def change_of(self, run: Run) -> str | None:
        """How the lake of a linked run has changed since; None where it has not, or where the rows are here."""
        return change_since(run, self.rows_path(run)) if run.lake else None

    def lake_rows(self, run: Run) -> LakeRows:
        """What looks up rows of a linked run."""
        return LakeRows(self.lake(run), run)

    def _stage(self, draft: Draft, stack: ExitStack) -> tuple[Path, Run]:
        """The rows of a draft under staging; those of a run that is there already are not written again."""
        digest = digest_of(draft.kind, draft.frame, draft.reading)
        with disk_faults(self.root):
            folder = stack.enter_context(staged(self.root))
            known = self._index.entry(digest[:16])
            there = known is not None and known.damage is None
            size = 0 if there else write_rows(folder / ROWS, draft.kind, draft.frame)
            bytes_digest = None if there else file_digest(folder / ROWS)
        shared = ("name", "kind", "source", "about", "notes", "warnings", "reading")
        return folder, Run(
            id=digest[:16],
            n=draft.frame.height,
            added=datetime.now(UTC).isoformat(timespec="milliseconds"),
            tags=(),
            note="",
            columns=tuple(draft.frame.columns),
            sha256=digest,
            size=size,
            file_sha256=bytes_digest,
            demur=__version__,
            **{name: getattr(draft, name) for name in shared},
        )

    def _refuse_taken(self, runs: Sequence[Run], *, replacing: bool) -> None:
        """Refuses names that stand for other content already, here or among those that come together."""
        taken = {run.name: run for run in self._index.sound_runs()}
        there = {run.id for run in taken.values()}
        for run in runs:
            other = taken.get(run.name)
            if run.id in there or other is None or other.id == run.id:
                taken.setdefault(run.name, run)
            elif other.id not in there:
                raise DataError(f'two of these would be called "{run.name}"', fix="add them one by one with `name`")
            elif not replacing:
                rule = f'the name "{run.name}" is taken by another run, {other.id}, of {other.n:,} rows'
                raise DataError(rule, fix="choose another with `name`, or `replace` it")
            else:
                taken[run.name] = run

    def _place(self, folder: Path, run: Run) -> Added:
        known = self._index.entry(run.id)
        if known is not None and known.run is not None and known.damage is None:
            return Added(known.run, new=False)
        if not run.size:
            raise UsageError(f'the run "{run.name}" was there and was removed just now; add it again')
        other = next((one for one in self._index.sound_runs() if one.name == run.name), None)
        with disk_faults(self.root):
            write_run(folder, run)
            store_index.put_in(self.root, self._index, folder, run, instead=other)
        return Added(run, new=True)

    def runs(self, *, kind: Kind | None = None, tag: str | None = None) -> list[Run]:
        """The runs, the newest first; only those of a kind, or with a tag."""
        self._look()
        every = self._index.sound_runs()
        return [run for run in every if kind in (None, run.kind) and (tag is None or tag in run.tags)]

    def run(self, reference: str) -> Run:
        """The run of this name or id, or the only one whose id begins so.

        A name that is the id of another run does not stand for it: links hold ids, and must lead where they led.
        """
        self._look()
        return self._find(reference)

    def _find(self, reference: str) -> Run:
        runs = self._index.sound_runs()
        exact = [run for run in runs if run.id == reference] or [run for run in runs if run.name == reference]
        begun = [run for run in runs if len(reference) >= SHORTEST and run.id.startswith(reference)]
        if exact or len(begun) == 1:
            return (exact or begun)[0]
        if begun:
            listed = ", ".join(f'{run.id} "{run.name}"' for run in begun[:5])
            raise DataError(f'"{reference}" may be several runs', fix=f"there are {listed}")
        entry = next((one for one in self._index.entries() if reference in (one.id, one.name)), None)
        if entry is not None:
            raise damaged(entry, entry.damage)
        fix = nearest(reference, [run.name for run in runs]) if runs else "the store is empty; demur add adds a run"
        raise NoRunError(f'there is no run "{reference}"', where=f"{self.root}:", fix=fix)

    def change(
        self, reference: str, *, name: str | None = None, tags: Sequence[str] | None = None, note: str | None = None
    ) -> Run:
        """Gives a run another name, other tags or another note."""
        with self._writing():
            run = self._find(reference)
            new = changed(run, name=name, tags=tags, note=note)
            others = [one for one in self._index.sound_runs() if one.id != run.id]
            other = next((one for one in others if one.name == new.name), None)
            if other is not None:
                raise DataError(f'the name "{new.name}" is taken by another run, {other.id}', fix="choose another")
            with disk_faults(self.root):
                write_run(self.root / RUNS / new.id, new)
                store_index.note(self.root, self._index, new)
        return new

    def remove(self, reference: str) -> Run:
        """Removes a run."""
        with self._writing():
            run = self._find(reference)
            with disk_faults(self.root):
                store_index.take_out(self.root, self._index, run.id)
        return run

    def responses(self, run: Run, *, columns: Sequence[str] = ()) -> Responses:
        """The judged answers of a run in the order in which they came, with these columns besides; `*` for all."""
        refuse_other(run, "responses")
        refuse_linked(run)
        for name in columns:
            if name not in (*run.columns, EVERYTHING):
                raise unknown_column(name, run.columns, f'run "{run.name}"')
        wanted = {STRATUM, DEPLOYED, *(run.columns if EVERYTHING in columns else columns)}
        kept = [name for name in run.columns if name not in JUDGED and name in wanted]
        judged = [name for name in JUDGED if name != "system"]
        frame = rows_of(self.rows_path(run), run, [*judged, *kept]).with_columns(pl.lit(run.name).alias("system"))
        return Responses(frame[[*JUDGED, *kept]], run.notes, run.warnings)

    def lists(self, run: Run, *, keep: Sequence[str] = ()) -> NBest:
        """The N-best lists of a run; a table that names no systems is that of one, called as the run."""
        frame, how = self._table(run, "nbest")
        rows = list(frame.iter_rows(named=True))
        for row in rows:  # a reference that is a list of items becomes one again
            for name in row.keys() & {"reference", "ref", "target", "gold"}:
                if isinstance(row[name], str) and row[name].startswith("["):
                    with suppress(msgspec.MsgspecError):
                        row[name] = msgspec.json.decode(row[name], type=list[str])
        return nbest(rows, system=run.name, reading=how.lists(keep))

    def dialogues(self, run: Run, *, outcome: str | None = None) -> Dialogues:
        """The dialogues of a run, with another outcome than it was added with if one is named."""
        frame, how = self._table(run, "dialogues", outcome=outcome)
        return dialogues(frame, reading=how.dialogues())

    def trials(self, run: Run, **changes: Any) -> tuple[Trials, ...]:
        """The trials of a run, one for each study; `x=` and others read them otherwise than they were added.

        A table that names no studies is one, called as the run.
        """
        frame, how = self._table(run, "trials", **changes)
        studies = trials(frame, reading=how.trials())
        return tuple(replace(one, study=run.name) if one.study == "study" else one for one in studies)

    def _table(self, run: Run, kind: Kind, **changes: Any) -> tuple[pl.DataFrame, RunReading]:
        """The rows of a run, and how they are read: as when it was added, but for changes."""
        refuse_other(run, kind)
        given = {name: value for name, value in changes.items() if value is not None}
        return rows_of(self.rows_path(run), run), replace(self._reading(run), **given)

    def _reading(self, run: Run) -> RunReading:
        """How a run was read when it was added."""
        try:
            return msgspec.convert(run.reading, RunReading)
        except msgspec.ValidationError as fault:
            raise damaged(run, f"the reading in its {RUN} is none: {fault}") from None

    def rows(self, run: Run) -> RunRows:
        """What looks up rows of a run of answers."""
        refuse_other(run, "responses")
        refuse_linked(run)
        return RunRows(self.rows_path(run), run)

    def rows_path(self, run: Run) -> Path:
        """The file that holds the rows of a run, verified when it is first asked for and whenever it has changed."""
        path = self.root / RUNS / run.id / run.content
        try:
            mark = mark_of(path, run)
            if self._verified.get(run.id) != mark:
                verify_rows(path, run)
                self._verified[run.id] = mark
        except DamagedError as damage:
            with suppress(sqlite3.Error):
                self._index.put(path.parent, run, str(damage))
            raise damaged(run, damage) from None
        return path

    def check(self, step: Step = silent) -> dict[str, str]:
        """Reads every run again, and gives what is wrong with those whose content is no longer what it was."""
        self._look()
        entries = self._index.entries()
        found: dict[str, str] = {}
        for done, one in enumerate(entries):
            step(f"reading {one.name}", done, len(entries))
            damage = one.damage
            if damage is None and (run := one.run) is not None:
                try:
                    verify_rows(self.root / RUNS / run.id / run.content, run, thorough=True)
                except DamagedError as error:
                    damage = str(error)
                else:
                    found |= {one.id: text} if (text := self.change_of(run)) is not None else {}
            if damage is not None:
                found[one.id] = f'the run "{one.name}" ({one.id}) is damaged: {damage}'
        return found

    def cached(self, signature: str) -> bytes | None:
        """A result that was kept under a signature."""
        return self._cache.cached(signature)

    def keep(self, signature: str, content: bytes) -> bool:
        """Keeps a result under a signature, and says whether it could be."""
        return not self.read_only and self._cache.keep(signature, content)

    def clear_cache(self) -> int:
        """Removes all results that were kept, and says how many."""
        self._refuse_writing()
        return self._cache.clear()

    def _look(self) -> None:
        """Sees what other programs have done to the folders since."""
        try:
            same = store_index.folders_of(self.root) == self._index.stamps()
        except sqlite3.DatabaseError:
            same = False
        except OSError as error:
            raise DataError(f"the store cannot be read: {error.strerror}", where=f"{self.root}:") from None
        if same:
            return
        if self.read_only:
            self._update_index()
        else:
            with self._writing():
                pass

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keeps other writers out, and has the index say what the folders hold."""
        self._refuse_writing()
        with disk_faults(self.root), locked(self.root):
            self._update_index()
            yield

    def _refuse_writing(self) -> None:
        if self.read_only:
            raise UsageError(f"{self.root}: the store can be read but not written to; {ELSEWHERE}")

    def _update_index(self) -> None:
        """Has the index follow the folders; one that cannot be is made again, in memory if nothing else is left."""
        writable = not self.read_only
        try:
            self._messages += store_index.update_index(self.root, self._index, writable=writable)
            return
        except sqlite3.OperationalError as error:
            self._index.close()
            self._index = Index(None)
            self._messages.append(f"the index cannot be written ({error}); runs are listed from their folders")
        except sqlite3.DatabaseError:
            self._index.close()
            self._index, problems = _index_in(self.root, spoilt=True)
            self._messages += problems
        self._messages += store_index.update_index(self.root, self._index, writable=writable)


def _index_in(root: Path, *, spoilt: bool = False) -> tuple[Index, list[str]]:
    """The index of a store, a damaged one put aside for a new one."""
    path = root / INDEX
    try:
        if not spoilt:
            return Index(path), []
    except sqlite3.OperationalError as error:
        return Index(None), [f"the index cannot be opened ({error}); runs are listed from their folders"]
    except sqlite3.DatabaseError:
        pass
    aside = put_aside(path)
    return Index(path), [f"the index was damaged and has been rebuilt from the runs; the old one is {aside.name}"]


def is_run(value: Any) -> bool:
    """Whether a text names a stored run and no file that is there."""
    return isinstance(value, str) and value.startswith(PREFIX) and not os.path.exists(value)


def with_runs(positional: list[Any], options: dict[str, Any], job: Job) -> tuple[list[Any], dict[str, Any]]:
    """Arguments and options of a job, with the tables of runs in place of their names.

    `where` keeps rows of runs as of files; `run:NAME@baseline` is the run that the others are compared with.
    """
    defaults = {one.name: one.default for one in job.parameters}
    kinds = KINDS_OF.get(job.function.__module__.split(".")[1], ())
    changed = [name for name in READ_WHEN_ADDED if name in options and options[name] != defaults[name]]
    if changed:
        fix = "give the file in its place"
        raise UsageError(f"`{changed[0]}` is how a file is read; a run was read when it was added ({fix})")
    tables: list[Any] = []
    with Store.open() as store:
        for one in positional:
            if not is_run(one):
                tables.append(one)
                continue
            name = one.removeprefix(PREFIX)
            run = store.run(name.removesuffix(BASELINE))
            if run.kind not in kinds:
                taken = f"takes runs of {' or '.join(kinds)}" if kinds else "takes no runs"
                raise UsageError(f"{one}: this run holds {run.kind}; demur {job.name} {taken}")
            where = options.get("where", ())
            tables += [_lake(store, run, job, where)] if run.lake else _tables(store, run, where)
            if name.endswith(BASELINE):
                if "baseline" not in defaults:
                    raise UsageError(f"{one}: only compare has a baseline")
                options = {**options, "baseline": run.name}
    if not any(isinstance(one, str) for one in tables):
        options.pop("where", None)
    return tables, options


def _tallies_of(run: Run) -> str:
    """The signature that the tallies of a linked run are kept under."""
    return f"tallies {__version__} {run.id}"


def _lake(store: Store, run: Run, job: Job, where: Sequence[tuple[str, str]]) -> Lake:
    """A linked run with the rows that are asked for."""
    if job.name not in COUNTED_WHERE_THEY_LIE:
        raise UsageError(
            f'run "{run.name}" is linked, so its rows are not here: demur {", ".join(COUNTED_WHERE_THEY_LIE)} take it; '
            "add its files for others"
        )
    return store.lake(run).among(where)


def _tables(store: Store, run: Run, where: Sequence[tuple[str, str]]) -> list[Any]:
    if run.kind == "responses":
        table = store.responses(run, columns=("*",))
        for column, value in where:
            if column not in table.frame.columns:
                raise unknown_column(column, run.columns, f'run "{run.name}"')
            table = replace(table, frame=table.frame.filter(named_column(column).cast(pl.String) == value))
        if table.frame.is_empty():
            raise UsageError(f'`where` keeps no row of run "{run.name}"')
        return [table]
    if where:
        raise UsageError(f'`where` is for runs of answers; run "{run.name}" holds {run.kind}')
    if run.kind == "nbest":
        return [store.lists(run)]
    return [store.dialogues(run)] if run.kind == "dialogues" else list(store.trials(run))
