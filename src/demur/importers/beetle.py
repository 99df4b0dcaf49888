"""Reads logs of the BEETLE II tutor: what it made of each answer, as a label of Dzikovska et al. (2012), figure 1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sized
from dataclasses import replace
from types import MappingProxyType

import polars as pl

from demur.core.io.columns import ALIASES, mapping_of, nearest, resolve
from demur.core.io.files import table_of
from demur.core.io.tables import FALSE, TRUE, Cells, Request, first
from demur.core.show.numbers import Wording
from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer

LABELS = ("correct", "pc_incomplete", "contradictory", "irrelevant", "non_content")
SPEECH_ACTS = ("answer", "help request", "social", "uninterpretable")

DIAGNOSIS = ("matched", "contradictory", "extra", "not_mentioned")
_NEEDED = ("speech_act", "matched", "contradictory", "not_mentioned")
_RECOGNISED = ("speech_act", "matched", "not_mentioned")
_REJECTED = Wording("uninterpretable utterance read as rejected", "uninterpretable utterances read as rejected")
_KEPT = ("id", "target", "system", "dialogue", "weight")
COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "speech_act": ("speech-act", "speech act", "act"),
        "consistency": ("consistent",),
        "matched": (),
        "contradictory": (),
        "extra": (),
        "not_mentioned": ("not-mentioned", "not mentioned"),
        **{part: ALIASES[part] for part in _KEPT},
        "target": ("gold", "label"),
    }
)
"""The canonical columns of a log, each with the other names it may go by."""

_CONSISTENCY = {
    **dict.fromkeys(("consistent", *TRUE), True),
    **dict.fromkeys(("inconsistent", *FALSE), False),
}
_NOTHING = ("", "[]", "{}", "null", "none", *FALSE)
_joint = re.compile(r"[\s_-]+")


def beetle_label(
    speech_act: str,
    *,
    consistent: bool = True,
    matched: Sized | bool = False,
    contradictory: Sized | bool = False,
    extra: Sized | bool = False,  # noqa: ARG001  # logged with the others, but no rule asks for it
    not_mentioned: Sized | bool = False,
) -> str | None:
    """The label for what the tutor logged, or None where it is unclassified.

    A field of the diagnosis is a list or text of the parts found, or whether there were any. The rules, of which the
    first that fits decides:

    1. an uninterpretable utterance is unclassified;
    2. a help request or a social act is `non_content`;
    3. an answer that is inconsistent, or has something contradictory, is `contradictory`;
    4. an answer with nothing matched is `irrelevant`;
    5. an answer with something not mentioned is `pc_incomplete`;
    6. what is left, with something matched and nothing missing, is `correct`.

    The paper leaves open: the order of the rules, except that it names them in the order 3, 5, 4, and that 4 and 5
    exclude each other; rule 6, which it does not spell out; and what extra parts do, which here is nothing. It takes
    "nothing matched" to mean that the whole expected answer is in not-mentioned, so it does not say what becomes of an
    answer where both are empty; by its words it is `irrelevant`. In rules 1 and 2 the diagnosis does not count.

    >>> beetle_label("answer", matched=["closed path"], not_mentioned=["battery"])
    'pc_incomplete'
    >>> beetle_label("help request"), beetle_label("uninterpretable")
    ('non_content', None)
    """
    act = _act(speech_act)
    if act is None:
        fix = "the speech acts are " + ", ".join(SPEECH_ACTS)
        raise DataError("must be a speech act of BEETLE II", where="speech_act", got=speech_act, fix=fix)
    if act == "uninterpretable":
        return None
    if act != "answer":
        return "non_content"
    if not consistent or contradictory:
        return "contradictory"
    if not matched:
        return "irrelevant"
    return "pc_incomplete" if not_mentioned else "correct"


def beetle_responses(
    data: object, *, columns: Mapping[str, str] | None = None, where: str | None = None
) -> pl.DataFrame:
    """A table of responses from a table of logs, in a frame, in columns or in rows; null is a rejected utterance.

    The logs need `speech_act`, `matched`, `contradictory` and `not_mentioned`; `consistency` and `extra` are read where
    they are there. Fields of the diagnosis hold lists or texts of the parts found, counts, or yes and no; an empty cell
    is nothing found. `consistency` is consistent or inconsistent, or yes or no; an empty cell is consistent. An
    answer in whose diagnosis everything is empty is refused, as its diagnosis may have been lost.
    The columns id, target, system, dialogue and weight are carried along. `columns` maps canonical
    columns to those of the data; faults name the place `where`.

    >>> log = {"id": 1, "target": "correct", "speech_act": "answer", "matched": 2, "contradictory": 0}
    >>> beetle_responses([{**log, "not_mentioned": 1}]).row(0, named=True)
    {'id': '1', 'target': 'correct', 'prediction': 'pc_incomplete'}
    """
    table = table_of(data, Request())
    if where is not None:
        table = replace(table, name=where, place=lambda row: f"{where}: row {row + 1}")
    found = resolve(table.columns, dict(columns or {}), where=f"{table.name}:", aliases=COLUMNS).columns
    for part in _NEEDED:
        if part not in found:
            fix = f"{nearest(part, table.columns)}; {mapping_of(part, '...')}"
            raise DataError(f'there is no column "{part}"', where=f"{table.name}:", fix=fix)
    cells = Cells(table, found)
    written = cells.text("speech_act")
    act = pl.Series([None if text is None else _act(text) for text in written], dtype=pl.String)
    place = first(act.is_null())
    if place is not None:
        fix = nearest(written[place] or "", SPEECH_ACTS)
        raise cells.fault("speech_act", place, "must be a speech act of BEETLE II", got=written[place], fix=fix)
    text = cells.text("consistency").str.strip_chars().str.to_lowercase().replace({"": None})
    consistent = text.replace_strict(_CONSISTENCY, default=None, return_dtype=pl.Boolean)
    place = first(text.is_not_null() & consistent.is_null())
    if place is not None:
        raise cells.fault("consistency", place, "must be consistent or inconsistent", got=text[place])
    consistent = consistent.fill_null(True)
    parts = pl.DataFrame([cells.text(part).str.strip_chars().str.to_lowercase().alias(part) for part in DIAGNOSIS])
    diagnosis = parts.select(pl.all().is_not_null() & ~pl.all().is_in(_NOTHING).fill_null(True))
    place = first((act == "answer") & consistent & ~diagnosis.select(pl.any_horizontal(pl.all())).to_series())
    if place is not None:
        rule = "an answer must have something in its diagnosis"
        raise DataError(rule, where=f"{cells.place(place)}:", fix="what was expected is matched or not mentioned")
    rows = zip(act, consistent, diagnosis.iter_rows(named=True), strict=True)
    labels = [beetle_label(act, consistent=consistent, **parts) for act, consistent, parts in rows]
    kept = [cells.text(part) for part in _KEPT if part in found]
    return pl.DataFrame([*kept, pl.Series("prediction", labels, dtype=pl.String)])


def _act(text: str) -> str | None:
    """The speech act that a text names, in any case, its words joined in any way."""
    act = _joint.sub(" ", text.strip().casefold())
    return act if act in SPEECH_ACTS else None


class BeetleLog(Importer):
    """Tables of what the tutor logged: a speech act and the fields of the diagnosis for each student answer."""

    name = "beetle"
    title = "logs of the BEETLE II tutor"

    def recognises(self, file: ForeignFile) -> str:
        """A table with a speech act and the fields of a diagnosis."""
        return "" if _absent(file, _RECOGNISED) else "log"

    def lacking(self, file: ForeignFile) -> str:
        """The columns that every log has and this file does not."""
        absent = _absent(file, _NEEDED)
        return f"it has no {'column' if len(absent) == 1 else 'columns'} {', '.join(absent)}"

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log."""
        mapped = {part: column for part, column in choices.columns.items() if part in COLUMNS}
        frame = beetle_responses(file.cells(), columns=mapped, where=file.name)
        taken = {"prediction": "speech act and diagnosis, by the rules of Dzikovska et al. (2012)"}
        rejected = frame["prediction"].null_count()
        more = [_REJECTED.with_count(rejected)] if rejected else []
        return [self.log(file, frame, taken, more=more)]


def _absent(file: ForeignFile, parts: Iterable[str]) -> list[str]:
    """The columns among these that a file has under no name."""
    named = {name.casefold().strip() for name in file.columns}
    return [part for part in parts if not named & {part, *COLUMNS[part]}]
