"""Reads dialogues of the Dialog State Tracking Challenges 2 and 3 as rows: N-best acts, turns, or dialogues.

Of turns and dialogues, for models of outcomes, the live understanding is the component: a turn's label is the types of
its acts, and what the component answered is the same of its surest hypothesis.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import exp, log
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from demur.core.acts import Act, Slot, dstc_items
from demur.core.io.sources import NOT_JSON, compression_at, lines
from demur.core.show.results import Step, silent
from demur.errors import DataError, UsageError
from demur.importers import CorpusImporter
from demur.importers.dstc_records import (
    Acts,
    DstcDialogue,
    DstcTurn,
    Recogniser,
    WordScores,
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

Row = dict[str, Any]
ReadDialogues = Callable[[], tuple[int, Iterator[DstcDialogue]]]
"""Gives the number of dialogues, and reads them."""

_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])


def holds_dialogues(path: Path) -> bool:
    """Whether a folder or file looks like dialogues of the challenges, in their own layout or the compact form."""
    if path.is_dir():
        depths = ("*/" * depth for depth in range(LEVELS_DOWN + 1))
        return any(any(path.glob(f"{depth}{name}")) for depth in depths for name in LOGS)
    return path.is_file() and (path.suffix == LIST or path.name in LOGS or _is_compact(path))


def _is_compact(path: Path) -> bool:
    """Whether a file is of the compact form, one dialogue a line, by its first line."""
    if not path.is_file() or not set(LINES) & set(path.suffixes):
        return False
    with suppress(DataError, OSError, *NOT_JSON):
        first = next(iter(lines(path, compression_at(path), str(path), limit=1)), b"")
        return {"session", "turns"} <= _keys.decode(first).keys()
    return False


def _log_files(source: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The logs that a folder, a list of sessions or a log stands for, and the note that says which were left out.

    Where just one list of sessions lies in a folder, only the dialogues in the list are read.
    """
    if not source.exists():
        raise DataError("does not exist", where=str(source), fix="name the folder that the challenge was unpacked into")
    if source.suffix == LIST:
        return tuple(_sessions_in(source)), ()
    if source.name in LOGS:
        return (source,), ()
    if not source.is_dir():
        raise DataError("holds no dialogues of DSTC2 or DSTC3", where=str(source), fix=f"{LOOKED_FOR}; unpack archives")
    logs = tuple(sorted(chain.from_iterable(source.rglob(name) for name in LOGS)))
    if not logs:
        raise DataError("holds no dialogues of DSTC2 or DSTC3", where=str(source), fix=LOOKED_FOR)
    lists = sorted(source.glob(f"*{LIST}"))
    if len(lists) > 1:
        names = ", ".join(path.name for path in lists)
        return logs, (f"every dialogue was read: there are several lists of sessions ({names}); name one",)
    listed = tuple(_sessions_in(lists[0])) if lists else logs
    left_out = len(logs) - len(listed)
    if left_out <= 0:
        return listed, ()
    return listed, (f"dialogues left out because {lists[0].name} does not list them: {left_out:,}",)


def _sessions_in(path: Path) -> Iterator[Path]:
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


def _label_beside(log: Path, _session: str) -> Path:
    for name in LABELS:
        if log.with_name(name).is_file():
            return log.with_name(name)
    fix = "put the labels of the dialogue there, or name the folder of all labels with `labels`"
    raise DataError("has neither label.json nor label.json.gz beside it", where=str(log), fix=fix)


def _labels_below(folder: Path) -> Callable[[Path, str], Path]:
    """Finds the label file of a session below a folder, by its session-id."""
    if not folder.is_dir():
        raise UsageError(f"`labels` {folder}: there is no such folder")
    files: dict[str, Path] = {}
    for path in sorted(chain.from_iterable(folder.rglob(name) for name in LABELS)):
        session = session_of_label(path)
        if session in files:
            raise _repeated(session, str(path), str(files[session]))
        files[session] = path
    if not files:
        raise UsageError(f"`labels` {folder}: there is no label.json or label.json.gz in it, at any depth")

    def label_of(log: Path, session: str) -> Path:
        if session in files:
            return files[session]
        rule = f'session "{session}" has no label file in {folder}'
        raise DataError(rule, where=f"{log}:", fix="logs and labels are matched by session-id")

    return label_of


def _repeated(session: str, where: str, other: str) -> DataError:
    return DataError(f'session "{session}" is there twice', where=f"{where}:", fix=f"also in {other}; leave one out")


def _ontology_near(source: Path) -> Path | None:
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


def _dialogues_at(source: Path, labels: Path | None, asr: Recogniser) -> tuple[ReadDialogues, tuple[str, ...]]:
    """What reads the dialogues of a folder, list or file; and the note on what was left out."""
    if not _is_compact(source):
        logs, notes = _log_files(source)
        label_of = _label_beside if labels is None else _labels_below(labels)
        return lambda: (len(logs), (original_dialogue(log, label_of, asr) for log in logs)), notes
    if labels is not None:
        raise UsageError(f"`labels` {labels}: {source} holds its references itself")

    def read() -> tuple[int, Iterator[DstcDialogue]]:
        every = lines(source, compression_at(source), str(source))
        filled = [(number, line) for number, line in enumerate(every, start=1) if line.strip()]
        return len(filled), (compact_dialogue(line, f"{source}:{number}", asr) for number, line in filled)

    return read, ()


@dataclass
class DstcTable:
    """Rows that are read while they are iterated over; the notes are complete after the last."""

    source: str
    _dialogues: ReadDialogues
    _first_notes: tuple[str, ...]
    _step: Step = silent
    _seen: Counter[str] = field(default_factory=Counter)

    unit: ClassVar[Literal["turns", "dialogues"]] = "turns"
    """What there is a row of."""

    def __iter__(self) -> Iterator[Row]:
        self._seen.clear()
        places: dict[str, str] = {}
        total, dialogues = self._dialogues()
        for dialogue in dialogues:
            if dialogue.session in places:
                raise _repeated(dialogue.session, dialogue.where, places[dialogue.session])
            places[dialogue.session] = dialogue.where
            yield from self._rows(dialogue)
            self._seen["dialogues"] += 1
            self._step("dialogues", len(places), total)
        if not self._seen[self.unit]:
            raise DataError(f"holds no {self.unit}", where=self.source)

    @abstractmethod
    def _rows(self, dialogue: DstcDialogue) -> Iterator[Row]: ...

    @abstractmethod
    def _own_notes(self) -> Iterator[str]: ...

    @property
    def counts(self) -> dict[str, int]:
        """How many dialogues were read, for documents."""
        return {"dialogues": self._seen["dialogues"]}

    def summary(self, rows: int) -> str:
        """How much was read, in words."""
        turns = f"{rows:,} turns of " if self.unit == "turns" else ""
        return f"{turns}{self._seen['dialogues']:,} dialogues"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the rows should know about how they were made."""
        return (*self._first_notes, *self._own_notes())


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
) -> DstcLists:
    """The turns of the dialogues below a folder, in a `.flist` of sessions, or in a file of the compact form.

    Logs and labels are matched by session-id, their turns by turn-index. References and hypotheses are lists of
    items as the challenge counts them: of the slots with more than one informable value in the ontology, which is
    looked for in the folder and up to two folders above if none is named. `labels` is the folder of the labels where
    they are not beside the logs. `asr` chooses whose sentences are kept: the live recogniser's or the later batch's.
    """
    source = Path(source)
    chosen = _ontology_near(source) if ontology is None else Path(ontology)
    slots = None if chosen is None else counted_slots(chosen)
    dialogues, notes = _dialogues_at(source, labels, asr)
    if slots is None or chosen is None:
        kept = "no ontology was found: items of every slot are kept; the option ontology names one"
    else:
        kept = f"items of the slots with more than one value in {chosen.name} are kept: {', '.join(sorted(slots))}"
    return DstcLists(str(source), dialogues, (*notes, kept), step, slots=slots)


@dataclass
class DstcLists(DstcTable):
    """A row for each turn, with the N-best acts of the live understanding."""

    slots: frozenset[str] | None = None
    _items: dict[Acts, list[str]] = field(default_factory=dict)

    def _own_notes(self) -> Iterator[str]:
        seen = self._seen
        if seen["silent"]:
            yield f"turns without any hypothesis list: {seen['silent']:,} of {seen['turns']:,}"
        if seen["over"]:
            yield f"lists of hypotheses that summed to over 1, normalised: {seen['over']:,}"
        if seen["networks"]:
            yield f"confusion networks hold the words with a probability of {LEAST:g} and more"
        if seen["turns"] and not seen["sentences"]:
            yield "no turn has sentences of the recogniser asked for"

    def _rows(self, dialogue: DstcDialogue) -> Iterator[Row]:
        for turn in dialogue.turns:
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
            yield row | {name: value for name, value in dialogue.about.items() if name not in row}

    def _itemised(self, records: Acts) -> list[str]:
        if records not in self._items:
            acts = [
                Act(one.act, tuple(Slot(name, None if value is None else str(value)) for name, value in one.slots))
                for one in records
            ]
            self._items[records] = sorted(dstc_items(acts, self.slots))
        return list(self._items[records])

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
        """The sentences, and the places of the network in which something may have been said, or one silent place."""
        row: Row = {}
        if turn.sentences:
            self._seen["sentences"] += 1
            row["asr"] = [{"text": text, "logprob": score} for score, text in turn.sentences]
        if turn.network is not None:
            self._seen["networks"] += 1
            places = [words for place in turn.network if (words := _word_shares(place))]
            row["cnet"] = [words for words in places if len(words) > 1 or words[0]["word"]] or places[:1]
        return row


def _word_shares(place: WordScores) -> list[Row]:
    """The words of a place from the likeliest on; silence and the marks of beginning and end are the empty word."""
    shares: dict[str, float] = {}
    likely = [arc for arc in place if arc[1] >= _LEAST_SCORE]
    for word, score in likely or sorted(place, key=lambda arc: arc[1])[-1:]:
        if score > 0:
            raise DataError("a word's score must be the natural logarithm of a probability", got=score)
        spoken = "" if word in _NOT_SPOKEN else word
        shares[spoken] = shares.get(spoken, 0.0) + exp(score)
    if len(shares) == 1:  # so it is at most places
        return [{"word": word, "confidence": min(share, 1.0)} for word, share in shares.items()]
    scale = max(sum(shares.values()), 1.0)
    ranked = sorted(shares.items(), key=lambda one: (-one[1], one[0]))
    return [{"word": word, "confidence": share / scale} for word, share in ranked]


SCALE = ("strongly disagree", "disagree", "slightly disagree", "slightly agree", "agree", "strongly agree")
"""The answers to a question of the questionnaire, which count 1 to 6."""

NOTHING = "null"
"""The label of a turn in which nothing was meant, such as noise."""

_KNOWN = {"dialogue_manager": "manager", "acoustic_condition": "acoustic", "success": "success", "turns": "turns"}
_caller = re.compile(r"voip-(\w+)-\d{8}_\d{6}")


def read_dstc_table(
    source: Path, kind: Literal["turns", "dialogues"], *, labels: Path | None = None, step: Step = silent
) -> DstcTable:
    """The responses of the live understanding, a row for each turn, or what is known of each dialogue.

    Turns have `id`, `dialogue`, `target`, `prediction` (null where the surest hypothesis holds no act, or there is
    none: a rejection) and `confidence`. Dialogues have `dialogue`, `success`, `turns`, `manager`, `acoustic`, `group`
    (the caller, where the session's name tells) and a column for each question, answered from 1 (strongly disagree)
    to 6 (strongly agree).
    """
    dialogues, notes = _dialogues_at(Path(source), labels, "live")
    table = DstcTurns if kind == "turns" else DstcDialogues
    return table(str(source), dialogues, notes, step)


class DstcTurns(DstcTable):
    """A row for each turn: what was meant, and what the live understanding answered."""

    def _rows(self, dialogue: DstcDialogue) -> Iterator[Row]:
        for turn in dialogue.turns:
            prediction, confidence = top_label(turn)
            self._seen["turns"] += 1
            self._seen["rejected"] += prediction is None
            yield {
                "id": f"{dialogue.session}/{turn.index}",
                "dialogue": dialogue.session,
                "target": label(turn.reference),
                "prediction": prediction,
                "confidence": confidence,
            }

    def _own_notes(self) -> Iterator[str]:
        seen = self._seen
        yield f'a label is the types of a turn\'s acts, in order of the alphabet; "{NOTHING}" where nothing was meant'
        yield f"turns rejected, as their surest hypothesis holds no act: {seen['rejected']:,} of {seen['turns']:,}"


@dataclass
class DstcDialogues(DstcTable):
    """A row for each dialogue: how it ended, under which conditions, and the answers to the questionnaire."""

    _odd: Counter[str] = field(default_factory=Counter)
    unit: ClassVar[Literal["turns", "dialogues"]] = "dialogues"

    def __iter__(self) -> Iterator[Row]:
        self._odd.clear()
        return super().__iter__()

    def _rows(self, dialogue: DstcDialogue) -> Iterator[Row]:
        known = {_KNOWN[name]: value for name, value in dialogue.about.items() if name in _KNOWN}
        asked = {name: answer for name, answer in dialogue.about.items() if name not in _KNOWN}
        answers = {name: agreement(answer) for name, answer in asked.items()}
        self._odd.update(str(asked[name]) for name, mark in answers.items() if mark is None)
        caller = _caller.fullmatch(dialogue.session)
        self._seen["called"] += caller is not None
        self._seen["asked"] += bool(answers)
        yield {"dialogue": dialogue.session, "group": None if caller is None else caller[1], **known, **answers}

    def _own_notes(self) -> Iterator[str]:
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


def top_label(turn: DstcTurn) -> tuple[str | None, float | None]:
    """The label of the surest hypothesis and its confidence; neither where it holds no act, which is a rejection.

    A list that sums to over 1 is normalised, as for `demur nbest`.
    """
    if not turn.hypotheses:
        return None, None
    confidence, acts = max(turn.hypotheses, key=lambda one: one[0])
    if not acts:
        return None, None
    return label(acts), confidence / max(sum(one for one, _ in turn.hypotheses), 1.0)


def agreement(answer: object) -> int | None:
    """How far someone agrees, from 1 (strongly disagree) to 6 (strongly agree); None for what is not on the scale.

    >>> agreement("Slightly agree"), agreement("maybe")
    (4, None)
    """
    text = str(answer).strip().lower()
    return SCALE.index(text) + 1 if text in SCALE else None


IMPORTER = CorpusImporter(holds_dialogues, read_dstc, ("id", "dialogue", "reference", "hypotheses", "asr", "cnet"))
