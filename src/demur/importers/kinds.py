"""Tells which kind of table a file holds by the names of its columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from demur.core.io.columns import ALIASES, DIALOGUE_ALIASES, NBEST_ALIASES, TRIAL_ALIASES
from demur.core.io.files import header_of
from demur.core.io.json import BYTE_ORDER_MARK, NAMES_FROM, column_names, read_json
from demur.core.io.sources import Compression, Source, compression_at, first_bytes
from demur.core.io.tables import Request
from demur.core.options import Kind
from demur.errors import DataError
from demur.importers import importer_of
from demur.importers.reading import opened

SUCCESS = ("success", "successful", "task_success")
"""Columns that say how a dialogue ended, where none is called outcome and no tests were taken."""

CHOOSING = '--kind FILE=KIND, or kind="KIND", chooses'


def kind_of(columns: Collection[str], *, where: str = "") -> Kind:
    """Tells the kind of a table by its columns; refuses one that could be several.

    >>> kind_of(["id", "text", "gold", "prediction", "confidence"]), kind_of(["id", "reference", "hypotheses"])
    ('responses', 'nbest')
    >>> kind_of(["dialogue", "pre", "post"]), kind_of(["performer", "wer", "completed"])
    ('dialogues', 'trials')
    """
    names = {name.casefold() for name in columns}
    found = [kind for kind, speaks in _EVIDENCE.items() if speaks(names)]
    if len(found) > 1:
        listed = ", ".join(f'"{name}"' for name in list(columns)[:12])
        rule = f"may be a table of {' or of '.join(found)}, by its columns {listed}"
        raise DataError(rule, where=where, fix=f"{CHOOSING}: {', '.join(found)}")
    if found:
        return found[0]
    return "trials" if _unnamed_trials(names) else "responses"


def columns_of(path: str | Path | Source) -> tuple[str, ...]:
    """Gives the names of the columns of a file, from its first thousand rows where each row has names of its own."""
    if isinstance(path, Source) and path.frame is not None:
        return tuple(path.frame.columns)
    path = path.path if isinstance(path, Source) else path
    importer = importer_of(path)
    if importer is not None and not _is_array(Path(path)):
        return importer.columns
    with opened(path) as sources:
        return tuple(dict.fromkeys(name for source in sources for name in columns_in(source)))


def outcome_column(columns: Collection[str]) -> str | None:
    """Gives the column to take for the outcome where none is called so and no tests were taken: that of success.

    >>> outcome_column(["dialogue", "Success"]), outcome_column(["dialogue", "outcome", "success"])
    ('Success', None)
    """
    names = {name.casefold() for name in columns}
    if _has_part(names, "outcome", DIALOGUE_ALIASES) or _both_tests(names):
        return None
    return next((name for name in columns if name.casefold() in SUCCESS), None)


def _is_array(path: Path) -> bool:
    """Whether a file is an array of rows, which no log of the challenges is, whatever it is called."""
    if not path.is_file():
        return False
    return _first_text(path, compression_at(path), str(path)).startswith(b"[")


def _first_text(path: Path, compression: Compression, name: str) -> bytes:
    return first_bytes(path, compression, name).removeprefix(BYTE_ORDER_MARK).lstrip()


def columns_in(source: Source) -> Collection[str]:
    """Gives the names of the columns of an opened file."""
    if source.format != "json":
        return header_of(source)
    if _first_text(source.path, source.compression, source.name).startswith(b"["):
        return read_json(source, Request()).columns
    return column_names(source, NAMES_FROM)


def _has_part(names: Collection[str], part: str, aliases: Mapping[str, tuple[str, ...]] = ALIASES) -> bool:
    return any(name in names for name in (part, *aliases[part]))


def _holds_answers(names: Collection[str]) -> bool:
    return _has_part(names, "prediction") or "correct" in names


def _holds_lists(names: Collection[str]) -> bool:
    """Whether there are N-best lists; a column nbest beside predictions only shows what else was thought of."""
    if "hypotheses" in names or "hyps" in names:
        return True
    heard = "nbest" in names or _has_part(names, "asr", NBEST_ALIASES) or _has_part(names, "cnet", NBEST_ALIASES)
    return heard and ("reference" in names or "ref" in names) and not _holds_answers(names)


def _holds_dialogues(names: Collection[str]) -> bool:
    ended = "outcome" in names or _both_tests(names) or any(name in names for name in SUCCESS)
    return (
        ended
        and _has_part(names, "dialogue", DIALOGUE_ALIASES)
        and not _holds_answers(names)
        and not _holds_lists(names)
    )


def _both_tests(names: Collection[str]) -> bool:
    return _has_part(names, "pre", DIALOGUE_ALIASES) and _has_part(names, "post", DIALOGUE_ALIASES)


def _unnamed_trials(names: Collection[str]) -> bool:
    """Whether a table without a column performer speaks of roles or of who took part, and of no labels."""
    takes_part = "role" in names or "components" in names or _has_part(names, "subject", TRIAL_ALIASES)
    return takes_part and _has_part(names, "performer", TRIAL_ALIASES) and not _has_part(names, "target")


_EVIDENCE: dict[Kind, Callable[[Collection[str]], bool]] = {
    "responses": _holds_answers,
    "nbest": _holds_lists,
    "dialogues": _holds_dialogues,
    "trials": lambda names: "performer" in names,
}
