"""Reads dialogues of the Dialog State Tracking Challenges 2 and 3 as rows: N-best acts, turns, or dialogues.

Of turns and dialogues, for models of outcomes, the live understanding is the component: a turn's label is the types of
its acts, and what the component answered is the same of its surest hypothesis.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import exp, log
from pathlib import Path
from typing import Any, Literal

import msgspec

from demur.core.acts import Act, Slot, dstc_items
from demur.core.io.json import NOT_JSON
from demur.core.io.sources import Compression, compression_of, lines
from demur.core.show.results import Step, silent
from demur.errors import DataError, UsageError
from demur.importers import Importer
from demur.importers.dstc_records import (
    Acts,
    DstcDialogue,
    DstcTurn,
    Network,
    Recogniser,
    Scalar,
    compact_dialogue,
    counted_slots,
    original_dialogue,
    session_of_label,
)

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
class LogFiles:
    """The logs to read, with the note that says which were left out."""

    logs: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def holds_dialogues(path: Path) -> bool:
    """Whether a folder or file looks like dialogues of the challenges, in their own layout or the compact form."""
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


def layout_of(source: Path) -> LogFiles:
    """The logs that a folder, a list of sessions or a log stands for."""
    if not source.exists():
        raise DataError("does not exist", where=str(source), fix="name the folder that the challenge was unpacked into")
    if source.suffix == LIST:
        return LogFiles(tuple(_listed(source)))
    if source.name in LOGS:
        return LogFiles((source,))
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
    fix = "put the labels of the dialogue there, or name the folder of all labels with `labels`"
    raise DataError("has neither label.json nor label.json.gz beside it", where=str(log), fix=fix)


def label_files(folder: Path) -> dict[str, Path]:
    """The label files below a folder, by their session-id."""
    if not folder.is_dir():
        raise UsageError(f"`labels` {folder}: there is no such folder")
    found: dict[str, Path] = {}
    for path in sorted(chain.from_iterable(folder.rglob(name) for name in LABELS)):
        session = session_of_label(path)
        if session in found:
            raise twice(session, str(path), str(found[session]))
        found[session] = path
    if not found:
        raise UsageError(f"`labels` {folder}: there is no label.json or label.json.gz in it, at any depth")
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
            raise DataError(f"has several ontologies: {names}", where=str(place), fix="name one with `ontology`")
        if found:
            return found[0]
    return None


def _logs_at(folder: Path, depth: str) -> Iterator[Path]:
    return chain.from_iterable(folder.glob(f"{depth}{name}") for name in LOGS)


def _as_listed(folder: Path, logs: tuple[Path, ...]) -> LogFiles:
    """Keeps to the list of sessions that lies in a folder, if there is just one."""
    lists = sorted(folder.glob(f"*{LIST}"))
    if len(lists) > 1:
        names = ", ".join(path.name for path in lists)
        return LogFiles(logs, (f"every dialogue was read: there are several lists of sessions ({names}); name one",))
    if not lists:
        return LogFiles(logs)
    listed = tuple(_listed(lists[0]))
    left_out = len(logs) - len(listed)
    notes = (f"dialogues left out because {lists[0].name} does not list them: {left_out:,}",) if left_out > 0 else ()
    return LogFiles(listed, notes)


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


Row = dict[str, Any]

LEAST = 1e-3
"""Probability below which a word of a confusion network is left out: there are dozens of them for each that counts."""

SLACK = 1e-6
"""How far over 1 a list may sum by rounding alone."""

_LEAST_SCORE = log(LEAST)
_NOT_SPOKEN = frozenset({"!null", "<s>", "</s>"})


def read_dstc(
    source: Path,
    *,
    labels: Path | None = None,
    ontology: Path | None = None,
    asr: Recogniser = "live",
    step: Step = silent,
) -> DstcRows:
    """The turns of the dialogues below a folder, in a `.flist` of sessions, or in a file of the compact form.

    Logs and labels are matched by session-id, their turns by turn-index. References and hypotheses are lists of
    items as the challenge counts them: of the slots with more than one informable value in the ontology, which is
    looked for in the folder and up to two folders above if none is named. `labels` is the folder of the labels where
    they are not beside the logs. `asr` chooses whose sentences are kept: the live recogniser's or the later batch's.
    """
    source = Path(source)
    found = ontology_near(source) if ontology is None else Path(ontology)
    slots = None if found is None else counted_slots(found)
    dialogues, notes = dialogues_at(source, labels, asr)
    return DstcRows(str(source), dialogues, slots, (*notes, _which_slots(slots, found)), step)


@dataclass(slots=True)
class DstcRows:
    """Rows that are read while they are gone through; the notes are complete after the last."""

    source: str
    _dialogues: Callable[[], tuple[int, Iterator[DstcDialogue]]]
    _slots: frozenset[str] | None
    _first_notes: tuple[str, ...]
    _step: Step = silent
    _seen: Counter[str] = field(default_factory=Counter)
    _items: dict[Acts, list[str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Row]:
        self._seen.clear()
        places: dict[str, str] = {}
        total, dialogues = self._dialogues()
        for dialogue in dialogues:
            if dialogue.session in places:
                raise twice(dialogue.session, dialogue.where, places[dialogue.session])
            places[dialogue.session] = dialogue.where
            for turn in dialogue.turns:
                yield self._row(dialogue, turn)
            self._seen["dialogues"] += 1
            self._step("dialogues", len(places), total)
        if not self._seen["turns"]:
            raise DataError("holds no turns", where=self.source)

    @property
    def dialogues(self) -> int:
        """How many dialogues were gone through."""
        return self._seen["dialogues"]

    @property
    def counts(self) -> dict[str, int]:
        """How many dialogues were gone through, for documents."""
        return {"dialogues": self.dialogues}

    def summary(self, rows: int) -> str:
        """How much was read, in words."""
        return f"{rows:,} turns of {self.dialogues:,} dialogues"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the rows should know about how they came about."""
        seen = self._seen
        told = {
            f"turns without any hypothesis list: {seen['silent']:,} of {seen['turns']:,}": seen["silent"],
            f"lists of hypotheses that summed to over 1, normalised: {seen['over']:,}": seen["over"],
            f"confusion networks hold the words with a probability of {LEAST:g} and more": seen["networks"],
            "no turn has sentences of the recogniser asked for": seen["turns"] and not seen["sentences"],
        }
        return (*self._first_notes, *(note for note, holds in told.items() if holds))

    def _row(self, dialogue: DstcDialogue, turn: DstcTurn) -> Row:
        try:
            row = {
                "id": f"{dialogue.session}/{turn.index}",
                "dialogue": dialogue.session,
                "reference": self._itemised(turn.reference),
                "hypotheses": self._hypotheses(turn),
                **self._recognised(turn),
            }
        except DataError as fault:
            where = f"{dialogue.where}: turn {turn.index}:"
            raise DataError(fault.rule, where=where, got=fault.got, fix=fault.fix) from None
        if turn.text is not None:
            row["text"] = turn.text
        return row | {name: value for name, value in dialogue.about.items() if name not in row}

    def _itemised(self, acts: Acts) -> list[str]:
        items = self._items.get(acts)
        if items is None:
            items = self._items[acts] = sorted(dstc_items(map(_act, acts), self._slots))
        return list(items)

    def _hypotheses(self, turn: DstcTurn) -> list[Row]:
        """The list with items for acts; one that sums to over 1 is normalised, as the challenge's scorer does."""
        given = turn.hypotheses or []
        total = sum(confidence for confidence, _ in given)
        self._seen["turns"] += 1
        self._seen["silent"] += not given
        self._seen["over"] += total > 1 + SLACK
        scale = max(total, 1.0)
        return [{"items": self._itemised(acts), "confidence": confidence / scale} for confidence, acts in given]

    def _recognised(self, turn: DstcTurn) -> Row:
        row: Row = {}
        if turn.sentences:
            self._seen["sentences"] += 1
            row["asr"] = [{"text": text, "logprob": score} for score, text in turn.sentences]
        if turn.network is not None:
            self._seen["networks"] += 1
            row["cnet"] = _network(turn.network)
        return row


def dialogues_at(
    source: Path, labels: Path | None, asr: Recogniser
) -> tuple[Callable[[], tuple[int, Iterator[DstcDialogue]]], tuple[str, ...]]:
    """What reads the dialogues of a folder, list or file, with how many there are; and what was left out."""
    return _compact(source, labels, asr) if is_compact(source) else _original(source, labels, asr)


def _compact(
    source: Path, labels: Path | None, asr: Recogniser
) -> tuple[Callable[[], tuple[int, Iterator[DstcDialogue]]], tuple[str, ...]]:
    if labels is not None:
        raise UsageError(f"`labels` {labels}: {source} holds its references itself")

    def dialogues() -> tuple[int, Iterator[DstcDialogue]]:
        every = list(lines(source, compression_at(source), str(source)))
        filled = [(number, line) for number, line in enumerate(every, start=1) if line.strip()]
        return len(filled), (compact_dialogue(line, f"{source}:{number}", asr) for number, line in filled)

    return dialogues, ()


def _original(
    source: Path, labels: Path | None, asr: Recogniser
) -> tuple[Callable[[], tuple[int, Iterator[DstcDialogue]]], tuple[str, ...]]:
    layout = layout_of(source)
    label_of = _label_finder(labels)
    return lambda: (len(layout.logs), (original_dialogue(log, label_of, asr) for log in layout.logs)), layout.notes


def _label_finder(labels: Path | None) -> Callable[[Path, str], Path]:
    if labels is None:
        return lambda log, _: label_beside(log)
    files = label_files(labels)

    def labels_for(log: Path, session: str) -> Path:
        if session in files:
            return files[session]
        rule = f'session "{session}" has no label file in {labels}'
        raise DataError(rule, where=f"{log}:", fix="logs and labels are matched by session-id")

    return labels_for


def _which_slots(slots: frozenset[str] | None, ontology: Path | None) -> str:
    if slots is None or ontology is None:
        return "no ontology was found: items of every slot are kept; the option ontology names one"
    return f"items of the slots with more than one value in {ontology.name} are kept: {', '.join(sorted(slots))}"


def _act(record: Any) -> Act:
    return Act(record.act, tuple(Slot(name, _text(value)) for name, value in record.slots))


def _text(value: Scalar) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _network(places: Network) -> list[list[Row]]:
    """The places of a network in which something may have been said; one silent place if there are none."""
    found = [arcs for place in places if (arcs := _arcs(place))]
    return [arcs for arcs in found if len(arcs) > 1 or arcs[0]["word"]] or found[:1]


def _arcs(place: list[tuple[str, float]]) -> list[Row]:
    """The words of a place from the likeliest on; silence and the marks of beginning and end are the empty word."""
    shares: dict[str, float] = {}
    for word, score in [arc for arc in place if arc[1] >= _LEAST_SCORE] or sorted(place, key=_score)[-1:]:
        if score > 0:
            raise DataError("a word's score must be the natural logarithm of a probability", got=score)
        spoken = "" if word in _NOT_SPOKEN else word
        shares[spoken] = shares.get(spoken, 0.0) + exp(score)
    scale = max(sum(shares.values()), 1.0)
    ranked = sorted(shares.items(), key=_likeliest_first)
    return [{"word": word, "confidence": share / scale} for word, share in ranked]


def _score(arc: tuple[str, float]) -> float:
    return arc[1]


def _likeliest_first(share: tuple[str, float]) -> tuple[float, str]:
    return -share[1], share[0]


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
    _dialogues: Callable[[], tuple[int, Iterator[DstcDialogue]]]
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
    def counts(self) -> dict[str, int]:
        """How many dialogues were gone through, for documents."""
        return {"dialogues": self.dialogues}

    def summary(self, rows: int) -> str:
        """How much was read, in words."""
        told = f"{self.dialogues:,} dialogues"
        return told if self.kind == "dialogues" else f"{rows:,} turns of {told}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the rows should know about how they came about."""
        return (*self._first_notes, *(self._turn_notes() if self.kind == "turns" else self._dialogue_notes()))

    def _turns(self, dialogue: DstcDialogue) -> Iterator[Row]:
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

    def _dialogue(self, dialogue: DstcDialogue) -> Row:
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


def answered(turn: DstcTurn) -> tuple[str | None, float | None]:
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


IMPORTER = Importer(holds_dialogues, read_dstc, ("id", "dialogue", "reference", "hypotheses", "asr", "cnet"))
