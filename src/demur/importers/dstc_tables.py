"""Dialogues of the Dialog State Tracking Challenges as what models of outcomes are made of: turns, and dialogues.

The live understanding is the component. A turn's label is the types of its acts, and what the component answered is
the same of its surest hypothesis.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from demur.core.show.results import Step, silent
from demur.errors import DataError
from demur.importers.dstc import Row, dialogues_at, twice
from demur.importers.dstc_records import Acts, Dialogue, Turn

DstcKind = Literal["turns", "dialogues"]

SCALE = ("strongly disagree", "disagree", "slightly disagree", "slightly agree", "agree", "strongly agree")
"""The answers to a question of the questionnaire, which count 1 to 6."""

NOTHING = "null"
"""The label of a turn in which nothing was meant, such as noise."""

_KNOWN = {"dialogue_manager": "manager", "acoustic_condition": "acoustic", "success": "success", "turns": "turns"}
_caller = re.compile(r"voip-(\w+)-\d{8}_\d{6}")


def read_dstc_table(source: Path, kind: DstcKind, *, labels: Path | None = None, step: Step = silent) -> DstcTable:
    """The responses of the live understanding, a row for each turn, or what is known of each dialogue.

    Turns have `id`, `dialogue`, `target`, `prediction` (null where the surest hypothesis holds no act, or there is
    none: a rejection) and `confidence`. Dialogues have `dialogue`, `success`, `turns`, `manager`, `acoustic`, `group`
    (the caller, where the session's name tells) and a column for each question, answered from 1 (strongly disagree)
    to 6 (strongly agree).
    """
    dialogues, notes = dialogues_at(Path(source), labels, "live")
    return DstcTable(str(source), kind, dialogues, notes, step)


@dataclass(slots=True)
class DstcTable:
    """Rows that are read while they are gone through; the notes are complete after the last."""

    source: str
    kind: DstcKind
    _dialogues: Callable[[], tuple[int, Iterator[Dialogue]]]
    _first_notes: tuple[str, ...]
    _step: Step = silent
    _seen: Counter[str] = field(default_factory=Counter)
    _odd: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Row]:
        self._seen.clear()
        self._odd.clear()
        places: dict[str, str] = {}
        total, dialogues = self._dialogues()
        for dialogue in dialogues:
            if dialogue.session in places:
                raise twice(dialogue.session, dialogue.where, places[dialogue.session])
            places[dialogue.session] = dialogue.where
            yield from self._turns(dialogue) if self.kind == "turns" else [self._dialogue(dialogue)]
            self._seen["dialogues"] += 1
            self._step("dialogues", len(places), total)
        if not self._seen["dialogues"] or (self.kind == "turns" and not self._seen["turns"]):
            raise DataError(f"holds no {self.kind}", where=self.source)

    @property
    def dialogues(self) -> int:
        """How many dialogues were gone through."""
        return self._seen["dialogues"]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the rows should know about how they came about."""
        return (*self._first_notes, *(self._turn_notes() if self.kind == "turns" else self._dialogue_notes()))

    def _turns(self, dialogue: Dialogue) -> Iterator[Row]:
        for turn in dialogue.turns:
            prediction, confidence = answered(turn)
            self._seen["turns"] += 1
            self._seen["rejected"] += prediction is None
            yield {
                "id": f"{dialogue.session}/{turn.index}",
                "dialogue": dialogue.session,
                "target": label(turn.reference),
                "prediction": prediction,
                "confidence": confidence,
            }

    def _turn_notes(self) -> Iterator[str]:
        seen = self._seen
        yield f'a label is the types of a turn\'s acts, in order of the alphabet; "{NOTHING}" where nothing was meant'
        yield f"turns rejected, as their surest hypothesis holds no act: {seen['rejected']:,} of {seen['turns']:,}"

    def _dialogue(self, dialogue: Dialogue) -> Row:
        known = {_KNOWN[name]: value for name, value in dialogue.about.items() if name in _KNOWN}
        answers = {name: self._mark(value) for name, value in dialogue.about.items() if name not in _KNOWN}
        caller = caller_of(dialogue.session)
        self._seen["called"] += caller is not None
        self._seen["asked"] += bool(answers)
        return {"dialogue": dialogue.session, "group": caller, **known, **answers}

    def _mark(self, answer: Any) -> int | None:
        mark = agreement(answer)
        if mark is None:
            self._odd[str(answer)] += 1
        return mark

    def _dialogue_notes(self) -> Iterator[str]:
        seen = self._seen
        yield f"dialogues whose caller the session's name tells: {seen['called']:,} of {seen['dialogues']:,}"
        if seen["asked"]:
            yield f"answers of the questionnaire count from 1 ({SCALE[0]}) to {len(SCALE)} ({SCALE[-1]})"
        if self._odd:
            first = next(iter(self._odd))
            yield f'answers that are not on this scale and are left out: {self._odd.total():,}, such as "{first}"'


def label(acts: Acts) -> str:
    """The types of acts, each once, in order of the alphabet, as one label.

    >>> from demur.importers.dstc_records import ActRecord
    >>> label((ActRecord("inform"), ActRecord("affirm"), ActRecord("inform"))), label(())
    ('affirm+inform', 'null')
    """
    return "+".join(sorted({act.act for act in acts})) or NOTHING


def answered(turn: Turn) -> tuple[str | None, float | None]:
    """The label of the surest hypothesis and its confidence; neither where it holds no act, which is a rejection.

    A list that sums to over 1 is normalised, as for `demur nbest`.
    """
    if not turn.hypotheses:
        return None, None
    confidence, acts = max(turn.hypotheses, key=lambda one: one[0])
    if not acts:
        return None, None
    return label(acts), confidence / max(sum(one for one, _ in turn.hypotheses), 1.0)


def caller_of(session: str) -> str | None:
    """Who called, as the name of a session tells.

    >>> caller_of("voip-14cb91bc48-20130327_190340"), caller_of("call 7")
    ('14cb91bc48', None)
    """
    found = _caller.fullmatch(session)
    return None if found is None else found[1]


def agreement(answer: object) -> int | None:
    """How far someone agrees, from 1 (strongly disagree) to 6 (strongly agree); None for what is not on the scale.

    >>> agreement("Slightly agree"), agreement("maybe")
    (4, None)
    """
    told = str(answer).strip().lower()
    return SCALE.index(told) + 1 if told in SCALE else None
