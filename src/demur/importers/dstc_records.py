"""What stands in the files of the Dialog State Tracking Challenges 2 and 3, in both forms, as one kind of dialogue."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from demur.core.io.json import NOT_JSON
from demur.core.io.sources import compression_of, cut_off
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
Network = list[list[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class DstcTurn:
    """What was heard, understood and meant in a turn; scores of words and sentences are natural logarithms."""

    index: int
    reference: Acts
    hypotheses: list[tuple[float, Acts]] | None
    sentences: list[tuple[float, str]]
    network: Network | None
    text: str | None


@dataclass(frozen=True, slots=True)
class DstcDialogue:
    """A dialogue, where it was read, and what is known of it as a whole."""

    session: str
    where: str
    about: dict[str, Any]
    turns: list[DstcTurn]


class CompactTurn(msgspec.Struct):
    """A turn of the compact form."""

    ref: Acts
    slu: list[tuple[float, Acts]] | None = None
    asr: list[tuple[float, str]] = []
    batch_asr: list[tuple[float, str]] = []
    cnet: Network | None = None
    transcription: str | None = None


class CompactDialogue(msgspec.Struct):
    """A line of the compact form."""

    session: str
    turns: list[CompactTurn]
    dm: Scalar = None
    acoustic: Scalar = None
    success: bool | None = None
    questionnaire: list[tuple[str, Scalar]] | None = None


class SentenceRecord(msgspec.Struct, rename="kebab"):
    """A recognised sentence."""

    asr_hyp: str
    score: float


class MeaningRecord(msgspec.Struct, rename="kebab"):
    """A hypothesis of what was meant."""

    score: float
    slu_hyp: Acts | None = None
    dialog_acts: Acts = ()


class ArcRecord(msgspec.Struct):
    """A word that may stand in a place of a network."""

    word: str
    score: float


class PlaceRecord(msgspec.Struct):
    """A place of a network."""

    arcs: list[ArcRecord]


class HeardRecord(msgspec.Struct, rename="kebab"):
    """What a recogniser heard, live or in a later batch."""

    asr_hyps: list[SentenceRecord] | None = None
    slu_hyps: list[MeaningRecord] | None = None
    cnet: list[PlaceRecord] | None = None


class InputRecord(msgspec.Struct):
    """The user's side of a turn."""

    live: HeardRecord | None = None
    batch: HeardRecord | None = None


class LogTurn(msgspec.Struct, rename="kebab"):
    """A turn of a log."""

    turn_index: int | None = None
    input: InputRecord | None = None


class SystemRecord(msgspec.Struct, rename="kebab"):
    """Under which conditions a dialogue was held."""

    dialog_manager: Scalar = None
    acoustic_condition: Scalar = None


class Log(msgspec.Struct, rename="kebab"):
    """A `log.json`."""

    session_id: str
    turns: list[LogTurn]
    system_specific: SystemRecord | None = None


class Semantics(msgspec.Struct):
    """What a user meant."""

    json: Acts | None = None


class LabelTurn(msgspec.Struct, rename="kebab"):
    """A turn of a label file."""

    turn_index: int | None = None
    semantics: Semantics | None = None
    dialog_acts: Acts | None = None
    transcription: str | None = None


class Feedback(msgspec.Struct):
    """What the user said of a dialogue."""

    success: bool | None = None
    questionnaire: list[tuple[str, Scalar]] | None = None


class Task(msgspec.Struct):
    """What the user was told to do, and how it went."""

    feedback: Feedback | None = None


class Label(msgspec.Struct, rename="kebab"):
    """A `label.json`."""

    session_id: str
    turns: list[LabelTurn]
    task_information: Task | None = None


class LabelHead(msgspec.Struct, rename="kebab"):
    """Whose labels a `label.json` holds."""

    session_id: str


class Ontology(msgspec.Struct):
    """The values that slots can have."""

    informable: dict[str, list[Any]]


class _Indexed(Protocol):
    turn_index: int | None


Record = TypeVar("Record")
_Turn = TypeVar("_Turn", bound=_Indexed)

_log = msgspec.json.Decoder(Log)
_label = msgspec.json.Decoder(Label)
_label_head = msgspec.json.Decoder(LabelHead)
_ontology = msgspec.json.Decoder(Ontology)
_compact = msgspec.json.Decoder(CompactDialogue)


def session_of_label(path: Path) -> str:
    """Whose labels a file holds."""
    return decoded(path, _label_head).session_id


def counted_slots(path: Path) -> frozenset[str]:
    """The slots of an ontology that have more than one informable value: those whose items the challenge counts."""
    informable = decoded(path, _ontology).informable
    return frozenset(slot for slot, values in informable.items() if len(values) > 1)


def original_dialogue(log_path: Path, label_of: Callable[[Path, str], Path], asr: Recogniser) -> DstcDialogue:
    """The dialogue of a log in the challenge's own layout, and of the labels for this file and session."""
    log = decoded(log_path, _log)
    label_path = label_of(log_path, log.session_id)
    label = decoded(label_path, _label)
    if log.session_id != label.session_id:
        rule = f'is of session "{label.session_id}", but the log beside it of "{log.session_id}"'
        raise DataError(rule, where=str(label_path), fix="put each label file beside the log of the same session-id")
    heard, meant = _by_index(log.turns, log_path), _by_index(label.turns, label_path)
    _refuse_unmatched(heard, meant, log_path, label_path)
    system = log.system_specific or SystemRecord()
    feedback = (label.task_information or Task()).feedback or Feedback()
    about = _about(system.dialog_manager, system.acoustic_condition, len(heard), feedback)
    turns = [_original_turn(index, heard[index], meant[index], asr, label_path) for index in sorted(heard)]
    return DstcDialogue(log.session_id, str(log_path), about, turns)


def compact_dialogue(line: bytes, where: str, asr: Recogniser) -> DstcDialogue:
    """The dialogue of a line of the compact form; the folder before a session's name is no part of its id."""
    found = decoded_text(line, where, _compact)
    feedback = Feedback(found.success, found.questionnaire)
    about = _about(found.dm, found.acoustic, len(found.turns), feedback)
    turns = [
        DstcTurn(
            index, turn.ref, turn.slu, turn.asr if asr == "live" else turn.batch_asr, turn.cnet, turn.transcription
        )
        for index, turn in enumerate(found.turns)
    ]
    return DstcDialogue(found.session.rsplit("/", 1)[-1], where, about, turns)


def decoded(path: Path, decoder: msgspec.json.Decoder[Record]) -> Record:
    """What a file holds, compressed with gzip or not."""
    try:
        text = path.read_bytes()
        if compression_of(text[:4]) == "gzip":
            text = gzip.decompress(text)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise cut_off(str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=str(path)) from None
    return decoded_text(text, str(path), decoder)


def decoded_text(text: bytes, where: str, decoder: msgspec.json.Decoder[Record]) -> Record:
    """What a JSON text holds."""
    try:
        return decoder.decode(text)
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


def _refuse_unmatched(heard: dict[int, LogTurn], meant: dict[int, LabelTurn], log: Path, label: Path) -> None:
    for index in sorted(heard.keys() ^ meant.keys()):
        there, missing = (log, label) if index in heard else (label, log)
        rule = f"the turn with turn-index {index} is not in {missing.name}"
        raise DataError(rule, where=f"{there}:", fix=f"{MATCHED}; are both files of the same release?")


def _about(manager: Scalar, acoustic: Scalar, turns: int, feedback: Feedback) -> dict[str, Any]:
    """What is known of a dialogue, a column each; a question of the questionnaire is a column of that name."""
    answers = {question: answer for question, answer in feedback.questionnaire or () if answer is not None}
    known = {"dialogue_manager": manager, "acoustic_condition": acoustic, "success": feedback.success, "turns": turns}
    return {name: value for name, value in known.items() if value is not None} | answers


def _original_turn(index: int, heard: LogTurn, meant: LabelTurn, asr: Recogniser, label: Path) -> DstcTurn:
    reference = meant.semantics.json if meant.semantics and meant.semantics.json is not None else meant.dialog_acts
    if reference is None:
        rule = f"turn {index} has no reference: neither semantics.json nor dialog-acts"
        raise DataError(rule, where=f"{label}:", fix="only labelled dialogues can be imported")
    sides = heard.input or InputRecord()
    live, batch = sides.live or HeardRecord(), sides.batch or HeardRecord()
    sentences = (live if asr == "live" else batch).asr_hyps or ()
    return DstcTurn(
        index,
        reference,
        None if live.slu_hyps is None else list(_meanings(live.slu_hyps)),
        [(sentence.score, sentence.asr_hyp) for sentence in sentences],
        None if batch.cnet is None else [[(arc.word, arc.score) for arc in place.arcs] for place in batch.cnet],
        meant.transcription,
    )


def _meanings(records: Iterable[MeaningRecord]) -> Iterator[tuple[float, Acts]]:
    for record in records:
        yield record.score, record.dialog_acts if record.slu_hyp is None else record.slu_hyp
