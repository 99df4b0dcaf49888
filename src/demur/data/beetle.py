"""The logs of the BEETLE II tutor: what it took a student's utterance for becomes a label of its annotation scheme.

The mapping is that of Dzikovska et al. (2012), section 2.3, from the speech act and the diagnosis of section 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sized
from types import MappingProxyType

import polars as pl

from demur.data.cells import FALSE, TRUE, Cells, first
from demur.data.columns import ALIASES, mapping_of, nearest, resolve
from demur.data.frames import table_of
from demur.data.tables import Request
from demur.errors import DataError

LABELS = ("correct", "pc_incomplete", "contradictory", "irrelevant", "non_content")
SPEECH_ACTS = ("answer", "help request", "social", "uninterpretable")

DIAGNOSIS = ("matched", "contradictory", "extra", "not_mentioned")
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


def beetle_responses(data: object, *, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """A table of responses from a table of logs, in a frame, in columns or in rows; null is a rejected utterance.

    The logs need `speech_act`, `matched`, `contradictory` and `not_mentioned`; `consistency` and `extra` are read where
    they are there. Fields of the diagnosis hold lists or texts of the parts found, counts, or yes and no; an empty cell
    is nothing found. `consistency` is consistent or inconsistent, or yes or no; an empty cell is consistent. An
    answer in whose diagnosis everything is empty is refused, as it cannot be told from one whose diagnosis was lost.
    The columns id, target, system, dialogue and weight are carried along. `columns` maps canonical
    columns to those of the data.

    >>> log = {"id": 1, "target": "correct", "speech_act": "answer", "matched": 2, "contradictory": 0}
    >>> beetle_responses([{**log, "not_mentioned": 1}]).row(0, named=True)
    {'id': '1', 'target': 'correct', 'prediction': 'pc_incomplete'}
    """
    table = table_of(data, Request())
    found = resolve(table.columns, dict(columns or {}), where=f"{table.name}:", aliases=COLUMNS).columns
    for part in ("speech_act", "matched", "contradictory", "not_mentioned"):
        if part not in found:
            fix = f"{nearest(part, table.columns)}; {mapping_of(part, '...')}"
            raise DataError(f'there is no column "{part}"', where=f"{table.name}:", fix=fix)
    cells = Cells(table, found)
    read = _acts(cells), _consistent(cells), *(_filled(cells, part) for part in DIAGNOSIS)
    _refuse_lost_diagnoses(cells, *read)
    labels = [
        beetle_label(act, consistent=consistent, matched=matched, contradictory=wrong, not_mentioned=missing)
        for act, consistent, matched, wrong, _, missing in zip(*read, strict=True)
    ]
    kept = [cells.text(part) for part in _KEPT if part in found]
    return pl.DataFrame([*kept, pl.Series("prediction", labels, dtype=pl.String)])


def _act(text: str) -> str | None:
    """The speech act that a text names, in whatever case and however its words are joined."""
    act = _joint.sub(" ", text.strip().casefold())
    return act if act in SPEECH_ACTS else None


def _acts(cells: Cells) -> pl.Series:
    written = cells.text("speech_act")
    acts = pl.Series("speech_act", [None if text is None else _act(text) for text in written], dtype=pl.String)
    place = first(acts.is_null())
    if place is not None:
        fix = nearest(written[place] or "", SPEECH_ACTS)
        raise cells.fault("speech_act", place, "must be a speech act of BEETLE II", got=written[place], fix=fix)
    return acts


def _consistent(cells: Cells) -> pl.Series:
    text = cells.text("consistency").str.strip_chars().str.to_lowercase()
    text = text.replace({"": None})
    flags = text.replace_strict(_CONSISTENCY, default=None, return_dtype=pl.Boolean)
    place = first(text.is_not_null() & flags.is_null())
    if place is not None:
        raise cells.fault("consistency", place, "must be consistent or inconsistent", got=text[place])
    return flags.fill_null(True)


def _filled(cells: Cells, part: str) -> pl.Series:
    text = cells.text(part).str.strip_chars().str.to_lowercase()
    return text.is_not_null() & ~text.is_in(_NOTHING).fill_null(True)


def _refuse_lost_diagnoses(cells: Cells, acts: pl.Series, consistent: pl.Series, *fields: pl.Series) -> None:
    empty = (acts == "answer") & consistent
    for filled in fields:
        empty &= ~filled
    place = first(empty)
    if place is not None:
        rule = "an answer must have something in its diagnosis"
        raise DataError(rule, where=f"{cells.place(place)}:", fix="what was expected is matched or not mentioned")
