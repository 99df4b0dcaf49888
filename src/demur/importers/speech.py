"""Reads words that recognisers gave with confidences: sclite's alignments, CTM with STM, and Whisper's words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row

_PATH = re.compile(r'<PATH id="\((?P<id>[^)"]*)\)"[^\n]*\n(?P<words>[^\n<]*)\n')
_SPEAKER = re.compile(r'<SPEAKER id="([^"]*)">')
_WORD = re.compile(
    r'(?P<kind>[CSIDU]),(?:"(?P<target>(?:[^"\\]|\\.)*)")?,(?:"(?P<said>(?:[^"\\]|\\.)*)")?,[^,:]*,?(?P<sure>[0-9.eE+-]*)(?::|$)'
)
_CTM = re.compile(rb"^\S+ +\S+ +[0-9.*]+ +[0-9.*]+ +\S+( +[0-9.eE+-]+)?\s*$", re.MULTILINE)
_STM = re.compile(rb"^\S+ +\S+ +\S+ +[0-9.]+ +[0-9.]+( +<[^>]*>)?( .*)?$", re.MULTILINE)
_OPTION = re.compile(r"\{([^}]*)\}")
NOTHING = "@"
"""A word of a reference that may be left out."""

IGNORED = "ignore_time_segment_in_scoring"
"""The transcript of a segment that nobody scores."""


class RecognisedWords(Importer):
    """Words with confidences, aligned with what was said."""

    name = "sclite"
    title = "words of a recogniser"

    def recognises(self, file: ForeignFile) -> str:
        """An alignment, words, references, a report of sclite, or words of Whisper."""
        text = file.start
        if file.is_json:
            segments = file.first.get("segments")
            held = isinstance(segments, list) and bool(segments) and isinstance(segments[0], dict)
            return "whisper" if held and segments is not None and "words" in segments[0] else ""
        if text.lstrip().startswith(b"<SYSTEM title="):
            return "alignment"
        if b"DUMP OF SYSTEM ALIGNMENT STRUCTURE" in text or b"SYSTEM SUMMARY PERCENTAGES" in text:
            return "report"
        lines = [line for line in text.splitlines()[:-1] if line.strip() and not line.startswith(b";;")][:50]
        if lines and all(map(_CTM.match, lines)):
            return "words"
        return "references" if lines and all(map(_STM.match, lines)) else ""

    def read(self, files: Sequence[tuple[str, ForeignFile]], choices: ImportChoices) -> list[ImportedLog]:
        """A log for each alignment, and for each file of words with the references."""
        of = {role: [file for one, file in files if one == role] for role, _ in files}
        logs = [self._alignment(file) for file in of.get("alignment", ())]
        references = of.get("references", [])
        if references:
            logs += [self._words(file, references[0]) for file in of.get("words", ())]
        if not logs:
            role, file = files[0]
            raise DataError(_WHY[role][0], where=f"{file.name}:", fix=_WHY[role][1])
        return logs

    def _alignment(self, file: ForeignFile) -> ImportedLog:
        text = file.content().decode(errors="replace")
        rows: list[Row] = []
        speakers = [(found.start(), found[1]) for found in _SPEAKER.finditer(text)]
        for path in _PATH.finditer(text):
            speaker = next((name for place, name in reversed(speakers) if place < path.start()), None)
            for place, word in enumerate(_WORD.finditer(path["words"])):
                if word["said"] is None:
                    continue
                one: Row = {"id": f"{path['id']}-{place}", "dialogue": speaker, "target": word["target"]}
                one |= {"prediction": word["said"], "correct": word["kind"] == "C"}
                rows.append(one | {"confidence": float(word["sure"]) if word["sure"] else None})
        if not rows:
            raise DataError("holds no words", where=f"{file.name}:", fix="was it written to its end?")
        if not text.rstrip().endswith("</SYSTEM>"):
            raise DataError("is cut off", where=f"{file.name}:", fix="run sclite -o sgml again")
        return self.log(file, rows, _TAKEN | {"correct": "C of sclite's alignment", "target": "the aligned word"})

    def _words(self, file: ForeignFile, references: ForeignFile) -> ImportedLog:
        segments = list(_segments(references))
        heard = _by_segment(_spoken(file), segments)
        rows: list[Row] = []
        for number, segment in enumerate(segments):
            own = [] if segment.is_ignored else heard.get(number, [])
            for place, (word, target) in enumerate(
                zip(own, aligned([one.text for one in own], segment.slots), strict=True)
            ):
                one: Row = {"id": f"{segment.speaker}-{number:03d}-{place}", "dialogue": segment.speaker}
                one |= {"target": target, "prediction": word.text, "correct": word.text == target}
                rows.append(one | {"confidence": word.sure})
        if not rows:
            rule = "has no word inside a segment of the references"
            raise DataError(
                rule, where=f"{file.name}:", fix=f"are {references.name} the references of these recordings?"
            )
        note = (
            f"{file.name}: words were aligned here by fewest edits in each segment, of alternatives the first; "
            "sclite -o sgml aligns by time too and takes the alternative that fits"
        )
        return self.log(file, rows, _TAKEN | {"correct": "alignment with the STM"}, more=[note])


_TAKEN = {
    "id": "segment and place",
    "dialogue": "the speaker",
    "prediction": "the word",
    "confidence": "its confidence",
}
_WHY = {
    "words": (
        "holds words of a recogniser, and not what was said",
        "give the references too: demur score words.ctm references.stm",
    ),
    "references": ("holds what was said, and no words of a recogniser", "give a CTM with confidences too"),
    "report": (
        "is a report of sclite that people read; it lacks confidences",
        "run sclite with -o sgml and give the .sgml",
    ),
    "whisper": (
        "holds words of Whisper, and not what was said",
        "write them as a CTM (file channel start length word probability) and give an STM with it",
    ),
}


@dataclass(frozen=True, slots=True)
class SpokenSegment:
    """What was said in a stretch of a recording: slots, each with its words; None where it may be left out."""

    recording: str
    channel: str
    speaker: str
    start: float
    end: float
    slots: tuple[frozenset[str | None], ...]
    is_ignored: bool = False


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word that a recogniser heard."""

    recording: str
    channel: str
    middle: float
    text: str
    sure: float | None


def _by_segment(words: Iterable[SpokenWord], segments: Sequence[SpokenSegment]) -> dict[int, list[SpokenWord]]:
    """The words of each segment by its place: a word belongs to the first that ends after its middle, as in sclite.

    So a word between two segments belongs to the later one, where it counts as inserted; one after the
    last segment belongs to that.
    """
    channels: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for place, segment in enumerate(segments):
        channels.setdefault((segment.recording, segment.channel), []).append((segment.end, place))
    channels = {name: sorted(ends) for name, ends in channels.items()}
    found: dict[int, list[SpokenWord]] = {}
    for word in words:
        if ends := channels.get((word.recording, word.channel)):
            at = min(bisect_right(ends, (word.middle, len(segments))), len(ends) - 1)
            found.setdefault(ends[at][1], []).append(word)
    return found


def _segments(file: ForeignFile) -> Iterator[SpokenSegment]:
    for line in file.content().decode(errors="replace").splitlines():
        parts = line.split(None, 5)
        if not parts or line.startswith(";;"):
            continue
        text = parts[5] if len(parts) > 5 else ""
        text = re.sub(r"^<[^>]*>\s*", "", text)
        yield SpokenSegment(
            parts[0].casefold(),
            parts[1].casefold(),
            parts[2],
            float(parts[3]),
            float(parts[4]),
            tuple(slots_of(text)),
            is_ignored=text.strip().casefold() == IGNORED,
        )


def slots_of(text: str) -> Iterator[frozenset[str | None]]:
    """The slots of a transcript: words, and alternatives such as `{ um / uh / @ }`.

    >>> [sorted(map(str, one)) for one in slots_of("so { um / @ } yes")]
    [['so'], ['None', 'um'], ['yes']]
    """
    begin = 0
    for found in _OPTION.finditer(text):
        yield from (frozenset([_plain_word(word)]) for word in text[begin : found.start()].split())
        options = [option.split() for option in found[1].split("/")]
        longest = max(len(option) for option in options)
        for place in range(longest):
            words = [option[place] if place < len(option) else NOTHING for option in options]
            yield frozenset(None if word == NOTHING else _plain_word(word) for word in words)
        begin = found.end()
    yield from (frozenset([_plain_word(word)]) for word in text[begin:].split())


def _plain_word(word: str) -> str:
    return word.replace("\\", "").strip("()").casefold()


def _spoken(file: ForeignFile) -> Iterator[SpokenWord]:
    """The words of a CTM; of alternatives the first."""
    is_other = False
    for line in file.content().decode(errors="replace").splitlines():
        parts = line.split()
        if len(parts) < 5 or line.startswith(";;"):
            continue
        if parts[2] == "*":
            is_other = parts[4] == "<ALT>"
            continue
        if is_other:
            continue
        start, length = float(parts[2]), float(parts[3])
        sure = float(parts[5]) if len(parts) > 5 else None
        yield SpokenWord(parts[0].casefold(), parts[1].casefold(), start + length / 2, _plain_word(parts[4]), sure)


def aligned(words: Sequence[str], slots: Sequence[frozenset[str | None]]) -> list[str | None]:
    """The word of a transcript that each recognised word stands for by fewest edits; None for one that was inserted.

    >>> aligned(["the", "red", "cat"], [frozenset(["the"]), frozenset(["cat"])])
    ['the', None, 'cat']
    """
    skips = [0 if None in slot else 3 for slot in slots]
    costs: list[list[int]] = [[0]]
    for skip in skips:
        costs[0].append(costs[0][-1] + skip)
    for word in words:
        before, row = costs[-1], [costs[-1][0] + 3]
        for place, slot in enumerate(slots):
            row.append(
                min(before[place] + (0 if word in slot else 4), before[place + 1] + 3, row[place] + skips[place])
            )
        costs.append(row)
    found: list[Any] = [None] * len(words)
    i, j = len(words), len(slots)
    while i:
        slot = slots[j - 1] if j else frozenset()
        if j and costs[i][j] == costs[i - 1][j - 1] + (0 if words[i - 1] in slot else 4):
            i, j = i - 1, j - 1
            found[i] = words[i] if words[i] in slot else next((one for one in slot if one is not None), None)
        elif j and costs[i][j] == costs[i][j - 1] + skips[j - 1]:
            j -= 1
        else:
            i -= 1
    return found
