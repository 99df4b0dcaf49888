"""What stands in the files of the Dialog State Tracking Challenges 2 and 3, in both forms, as one kind of dialogue."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from demur.core.io.json import refuse_repeats_in_rows
from demur.core.io.sources import NOT_JSON, compression_of, cut_off
from demur.errors import DataError

Recogniser = Literal["live", "batch"]
Scalar = str | int | float | bool | None

MATCHED = "turns of a log and its labels are matched by turn-index, never by position"
AS_THE_CHALLENGE = "is not as the challenge writes it"


class ActRecord(msgspec.Struct, frozen=True):
    """An act with its pairs of slot and value."""

    act: str
    slots: tuple[tuple[str | None, Scalar], ...] = ()


Acts = tuple[ActRecord, ...]
WordScores = list[tuple[str, float]]
"""The words of a place in a network."""


@dataclass(frozen=True, slots=True)
class DstcTurn:
    """What was heard, understood and meant in a turn; scores of words and sentences are natural logarithms."""

    index: int
    reference: Acts
    hypotheses: list[tuple[float, Acts]] | None
    sentences: list[tuple[float, str]]
    network: list[WordScores] | None
    text: str | None


@dataclass(frozen=True, slots=True)
class DstcDialogue:
    """A dialogue, where it was read, and what is known of it as a whole."""

    session: str
    where: str
    about: dict[str, Any]
    turns: list[DstcTurn]


class _CompactTurn(msgspec.Struct):
    ref: Acts
    slu: list[tuple[float, Acts]] | None = None
    asr: list[tuple[float, str]] = []
    batch_asr: list[tuple[float, str]] = []
    cnet: list[WordScores] | None = None
    transcription: str | None = None


class _CompactDialogue(msgspec.Struct):
    session: str
    turns: list[_CompactTurn]
    dm: Scalar = None
    acoustic: Scalar = None
    success: bool | None = None
    questionnaire: list[tuple[str, Scalar]] | None = None


class _SentenceRecord(msgspec.Struct, rename="kebab"):
    asr_hyp: str
    score: float


class _MeaningRecord(msgspec.Struct, rename="kebab"):
    score: float
    slu_hyp: Acts | None = None
    dialog_acts: Acts = ()


class _ArcRecord(msgspec.Struct):
    word: str
    score: float


class _PlaceRecord(msgspec.Struct):
    arcs: list[_ArcRecord]


class _HeardRecord(msgspec.Struct, rename="kebab"):
    asr_hyps: list[_SentenceRecord] | None = None
    slu_hyps: list[_MeaningRecord] | None = None
    cnet: list[_PlaceRecord] | None = None


class _InputRecord(msgspec.Struct):
    live: _HeardRecord | None = None
    batch: _HeardRecord | None = None


class _LogTurn(msgspec.Struct, rename="kebab"):
    turn_index: int | None = None
    input: _InputRecord | None = None


class _SystemRecord(msgspec.Struct, rename="kebab"):
    dialog_manager: Scalar = None
    acoustic_condition: Scalar = None


class _LogRecord(msgspec.Struct, rename="kebab"):
    session_id: str
    turns: list[_LogTurn]
    system_specific: _SystemRecord | None = None


class _Semantics(msgspec.Struct):
    json: Acts | None = None


class _LabelTurn(msgspec.Struct, rename="kebab"):
    turn_index: int | None = None
    semantics: _Semantics | None = None
    dialog_acts: Acts | None = None
    transcription: str | None = None


class _Feedback(msgspec.Struct):
    success: bool | None = None
    questionnaire: list[tuple[str, Scalar]] | None = None


class _Task(msgspec.Struct):
    feedback: _Feedback | None = None


class _LabelRecord(msgspec.Struct, rename="kebab"):
    session_id: str
    turns: list[_LabelTurn]
    task_information: _Task | None = None


class _LabelHead(msgspec.Struct, rename="kebab"):
    session_id: str


class _Ontology(msgspec.Struct):
    informable: dict[str, list[Any]]


Record = TypeVar("Record")
_Turn = TypeVar("_Turn", _LogTurn, _LabelTurn)


def session_of_label(path: Path) -> str:
    """Whose labels a file holds."""
    return _decoded_file(path, _LabelHead).session_id


def counted_slots(path: Path) -> frozenset[str]:
    """The slots of an ontology that have more than one informable value: those whose items the challenge counts."""
    informable = _decoded_file(path, _Ontology).informable
    return frozenset(slot for slot, values in informable.items() if len(values) > 1)


def original_dialogue(log_path: Path, label_of: Callable[[Path, str], Path], asr: Recogniser) -> DstcDialogue:
    """The dialogue of a log in the challenge's own layout, and of the labels for this file and session."""
    log = _decoded_file(log_path, _LogRecord)
    label_path = label_of(log_path, log.session_id)
    label = _decoded_file(label_path, _LabelRecord)
    if log.session_id != label.session_id:
        rule = f'is of session "{label.session_id}", but the log beside it of "{log.session_id}"'
        raise DataError(rule, where=str(label_path), fix="put each label file beside the log of the same session-id")
    heard, meant = _by_index(log.turns, log_path), _by_index(label.turns, label_path)
    for index in sorted(heard.keys() ^ meant.keys()):
        there, missing = (log_path, label_path) if index in heard else (label_path, log_path)
        rule = f"the turn with turn-index {index} is not in {missing.name}"
        raise DataError(rule, where=f"{there}:", fix=f"{MATCHED}; are both files of the same release?")
    system = log.system_specific or _SystemRecord()
    feedback = (label.task_information or _Task()).feedback or _Feedback()
    about = _about(system.dialog_manager, system.acoustic_condition, len(heard), feedback)
    turns = [_original_turn(index, heard[index], meant[index], asr, label_path) for index in sorted(heard)]
    return DstcDialogue(log.session_id, str(log_path), about, turns)


def compact_dialogue(line: bytes, where: str, asr: Recogniser) -> DstcDialogue:
    """The dialogue of a line of the compact form; the folder before a session's name is no part of its id."""
    found = _decoded_text(line, where, _CompactDialogue)
    feedback = _Feedback(found.success, found.questionnaire)
    about = _about(found.dm, found.acoustic, len(found.turns), feedback)
    turns = [
        DstcTurn(
            index, turn.ref, turn.slu, turn.asr if asr == "live" else turn.batch_asr, turn.cnet, turn.transcription
        )
        for index, turn in enumerate(found.turns)
    ]
    return DstcDialogue(found.session.rsplit("/", 1)[-1], where, about, turns)


def _decoded_file(path: Path, kind: type[Record]) -> Record:
    """What a file holds, compressed with gzip or not."""
    try:
        text = path.read_bytes()
        if compression_of(text[:4]) == "gzip":
            text = gzip.decompress(text)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise cut_off(str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=str(path)) from None
    return _decoded_text(text, str(path), kind)


def _decoded_text(text: bytes, where: str, kind: type[Record]) -> Record:
    try:
        found = msgspec.json.decode(text, type=kind)
        refuse_repeats_in_rows([text], lambda _: where)
        return found
    except msgspec.ValidationError as fault:
        raise DataError(f"{AS_THE_CHALLENGE}: {fault}", where=where, fix="$ is the whole file or line") from None
    except NOT_JSON as fault:
        raise DataError(f"is not JSON: {fault}", where=where, fix="copy or unpack it again") from None


def _by_index(turns: Iterable[_Turn], path: Path) -> dict[int, _Turn]:
    found: dict[int, _Turn] = {}
    for place, turn in enumerate(turns, start=1):
        if turn.turn_index is None:
            raise DataError(f"the turn in place {place} has no turn-index", where=f"{path}:", fix=MATCHED)
        if turn.turn_index in found:
            raise DataError(f"turn-index {turn.turn_index} is there twice", where=f"{path}:", fix=MATCHED)
        found[turn.turn_index] = turn
    return found


def _about(manager: Scalar, acoustic: Scalar, turns: int, feedback: _Feedback) -> dict[str, Any]:
    """What is known of a dialogue, a column each; a question of the questionnaire is a column of that name."""
    answers = {question: answer for question, answer in feedback.questionnaire or () if answer is not None}
    known = {"dialogue_manager": manager, "acoustic_condition": acoustic, "success": feedback.success, "turns": turns}
    return {name: value for name, value in known.items() if value is not None} | answers


def _original_turn(index: int, heard: _LogTurn, meant: _LabelTurn, asr: Recogniser, label: Path) -> DstcTurn:
    reference = meant.dialog_acts if meant.semantics is None or meant.semantics.json is None else meant.semantics.json
    if reference is None:
        rule = f"turn {index} has no reference: neither semantics.json nor dialog-acts"
        raise DataError(rule, where=f"{label}:", fix="only labelled dialogues can be imported")
    sides = heard.input or _InputRecord()
    live, batch = sides.live or _HeardRecord(), sides.batch or _HeardRecord()
    sentences = (live if asr == "live" else batch).asr_hyps or ()
    return DstcTurn(
        index,
        reference,
        None
        if live.slu_hyps is None
        else [(one.score, one.dialog_acts if one.slu_hyp is None else one.slu_hyp) for one in live.slu_hyps],
        [(sentence.score, sentence.asr_hyp) for sentence in sentences],
        None if batch.cnet is None else [[(arc.word, arc.score) for arc in place.arcs] for place in batch.cnet],
        meant.transcription,
    )
