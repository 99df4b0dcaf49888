"""Where the logs, labels, lists and ontologies of the Dialog State Tracking Challenges 2 and 3 lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from demur.data.importers.dstc_records import session_of_label
from demur.data.json_rows import NOT_JSON
from demur.data.lines import Compression, compression_of, lines
from demur.errors import DataError, UsageError

LOGS = ("log.json", "log.json.gz")
LABELS = ("label.json", "label.json.gz")
LIST = ".flist"
LINES = (".jsonl", ".ndjson")
LEVELS_UP = 2
"""How far above the dialogues an ontology is looked for."""

LEVELS_DOWN = 3
"""How far down a folder is looked through to tell whether it holds dialogues at all."""

LOOKED_FOR = (
    "looked for log.json or log.json.gz at any depth, a .flist of sessions, "
    "or a .jsonl of dialogues with session and turns"
)

_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Layout:
    """The logs to read, with the note that says which were left out."""

    logs: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def holds_dialogues(path: Path) -> bool:
    """Whether a folder or file looks like dialogues of the challenge, without reading much of it."""
    if path.is_dir():
        return any(any(_logs_at(path, "*/" * depth)) for depth in range(LEVELS_DOWN + 1))
    return path.is_file() and (path.suffix == LIST or path.name in LOGS or is_compact(path))


def is_compact(path: Path) -> bool:
    """Whether a file is of the compact form, one dialogue a line, by its first line."""
    if not path.is_file() or not set(LINES) & set(path.suffixes):
        return False
    with suppress(DataError, OSError, *NOT_JSON):
        first = next(iter(lines(path, compression_at(path), str(path), limit=1)), b"")
        return {"session", "turns"} <= _keys.decode(first).keys()
    return False


def compression_at(path: Path) -> Compression:
    """How a file is compressed."""
    with path.open("rb") as file:
        return compression_of(file.read(4))


def layout_of(source: Path) -> Layout:
    """The logs that a folder, a list of sessions or a log stands for."""
    if not source.exists():
        raise DataError("does not exist", where=str(source), fix="name the folder that the challenge was unpacked into")
    if source.suffix == LIST:
        return Layout(tuple(_listed(source)))
    if source.name in LOGS:
        return Layout((source,))
    if not source.is_dir():
        raise DataError("holds no dialogues of DSTC2 or DSTC3", where=str(source), fix=f"{LOOKED_FOR}; unpack archives")
    logs = tuple(sorted(chain.from_iterable(source.rglob(name) for name in LOGS)))
    if not logs:
        raise DataError("holds no dialogues of DSTC2 or DSTC3", where=str(source), fix=LOOKED_FOR)
    return _as_listed(source, logs)


def label_beside(log: Path) -> Path:
    """The label file in the folder of a log."""
    found = [log.with_name(name) for name in LABELS if log.with_name(name).is_file()]
    if found:
        return found[0]
    fix = "put the labels of the dialogue there, or name the folder of all labels with --labels"
    raise DataError("has neither label.json nor label.json.gz beside it", where=str(log), fix=fix)


def label_files(folder: Path) -> dict[str, Path]:
    """The label files below a folder, by their session-id."""
    if not folder.is_dir():
        raise UsageError(f"--labels {folder}: there is no such folder")
    found: dict[str, Path] = {}
    for path in sorted(chain.from_iterable(folder.rglob(name) for name in LABELS)):
        session = session_of_label(path)
        if session in found:
            raise twice(session, str(path), str(found[session]))
        found[session] = path
    if not found:
        raise UsageError(f"--labels {folder}: there is no label.json or label.json.gz in it, at any depth")
    return found


def twice(session: str, where: str, other: str) -> DataError:
    """The fault of a session that was met before."""
    return DataError(f'session "{session}" is there twice', where=f"{where}:", fix=f"also in {other}; leave one out")


def ontology_near(source: Path) -> Path | None:
    """The one ontology in the folder of the dialogues, or in the nearest folder above that has one."""
    folder = (source if source.is_dir() else source.parent).absolute()
    for place in (folder, *folder.parents[:LEVELS_UP]):
        found = sorted(chain(place.glob("ontology*.json"), place.glob("scripts/config/ontology*.json")))
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise DataError(f"has several ontologies: {names}", where=str(place), fix="name one with --ontology")
        if found:
            return found[0]
    return None


def _logs_at(folder: Path, depth: str) -> Iterator[Path]:
    return chain.from_iterable(folder.glob(f"{depth}{name}") for name in LOGS)


def _as_listed(folder: Path, logs: tuple[Path, ...]) -> Layout:
    """Keeps to the list of sessions that lies in a folder, if there is just one."""
    lists = sorted(folder.glob(f"*{LIST}"))
    if len(lists) > 1:
        names = ", ".join(path.name for path in lists)
        return Layout(logs, (f"every dialogue was read: there are several lists of sessions ({names}); name one",))
    if not lists:
        return Layout(logs)
    listed = tuple(_listed(lists[0]))
    left_out = len(logs) - len(listed)
    notes = (f"dialogues left out because {lists[0].name} does not list them: {left_out:,}",) if left_out > 0 else ()
    return Layout(listed, notes)


def _listed(path: Path) -> Iterator[Path]:
    """The logs of the sessions in a list; the folder of all may be the list's, one above, or a `data` in these."""
    text = path.read_text(encoding="utf-8", errors="replace")
    sessions = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not sessions:
        raise DataError("lists no sessions", where=str(path))
    near = path.absolute().parent
    places = [place / data for place in (near, *near.parents[:LEVELS_UP]) for data in ("", "data")]
    root = next((place for place in places if _log_in(place / sessions[0][1])), near)
    for number, session in sessions:
        log = _log_in(root / session)
        if log is None:
            rule = f'session "{session}" has no log.json or log.json.gz'
            raise DataError(rule, where=f"{path}:{number}:", fix=f"looked in {root / session}")
        yield log


def _log_in(folder: Path) -> Path | None:
    return next((folder / name for name in LOGS if (folder / name).is_file()), None)
