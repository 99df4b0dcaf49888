"""The design of a study: a TOML file read into types, with all faults at once, each with its line and a fix."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo, fields

from demur.errors import DataError

FILE = "study.toml"

MOST_BYTES = 1 << 20
"""Bytes of a design."""

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
ShortText = Annotated[str, Meta(min_length=1, max_length=300)]
LongText = Annotated[str, Meta(min_length=1, max_length=20_000)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
PerformerKind = Literal["wizard", "relevance", "command", "python", "http"]

SLOT = re.compile(r"\{([A-Za-z0-9_]+)\}")
"""How a slot stands in a response."""

TRIAL_COLUMNS = ("study", "performer", "role", "subject", "components", "order")
"""Columns of the table of trials beside the metric and what is varied."""
DIALOGUE_COLUMNS = (
    *("dialogue", "group", "performer", "wizard", "task", "level", "wer", "turns", "seconds", "end", "fallback"),
    "answer",
)
"""Columns of the table of dialogues beside the metric and the questionnaires."""

LONGEST_VALUE = 100
"""Characters that a wizard may type into a slot."""

ANYTHING = "any"
"""What stands for the values of a slot into which a wizard may type."""


class DesignPart(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """A part of a design."""


class MetricSpec(DesignPart, frozen=True, kw_only=True):
    """Step 1 of Paek's protocol: what is measured of a dialogue."""

    name: Name = "completed"
    source: Literal["answer", "said", "item"] = "answer"
    """The participant's answer against those of the task; the participant's word; or an item of the questionnaire."""
    item: str = ""
    lower: float = 0.0
    upper: float = 1.0


class InputSpec(DesignPart, frozen=True, kw_only=True):
    """Step 2: what is varied, its levels, and how an utterance gets to whoever answers."""

    name: Name = "wer"
    levels: Annotated[list[Annotated[float, Meta(ge=0)]], Meta(min_length=1, max_length=20)]
    by: Literal["keyboard", "speech"] = "keyboard"
    nbest: Annotated[int, Meta(ge=1, le=20)] = 1
    confidences: bool = True
    recogniser: list[ShortText] = []
    """A command that is given the path of a WAV file and prints a text, or a JSON list of texts with confidences."""
    timeout: Annotated[float, Meta(gt=0, le=300)] = 20.0
    vocabulary: list[ShortText] = []
    measured: Literal["level", "realised"] = "level"
    """Whether trials are exported by the level that was asked for, or by the error rate of their own words."""


class InterfaceSpec(DesignPart, frozen=True, kw_only=True):
    """Step 3: what is held constant whoever answers."""

    output: Literal["text", "speech"] = "text"
    captions: bool = True
    """With speech: whether responses stand on the page too."""
    voice: str = ""
    opening: str = ""
    no_answer: ShortText = "I did not understand that. Could you put it differently?"
    latency: Literal["fixed", "matched", "none"] = "fixed"
    delay: Seconds = 4.0
    """Seconds from an utterance to its answer: of all with a fixed latency, and until five answers of wizards are
    known with a matched one."""
    connect: Seconds = 3.0
    """Least seconds in the waiting room, whoever answers."""
    turns: Annotated[int, Meta(ge=1, le=200)] = 12
    minutes: Annotated[float, Meta(gt=0, le=240)] = 10.0
    longest: Annotated[int, Meta(ge=1, le=4000)] = 400
    """Characters of an utterance."""


class PerformerSpec(DesignPart, frozen=True, kw_only=True):
    """Who answers: a wizard, or a system reached in one of several ways."""

    name: Name
    kind: PerformerKind
    component: Literal["all", "understanding"] = "all"
    """Of a wizard: whether they are the whole system, or only understand and leave the rest to `system`."""
    system: str = ""
    components: list[Name] = []
    """What is switched on, for the analysis of components."""
    command: list[ShortText] = []
    call: str = ""
    address: str = ""
    model: str = ""
    pairs: str = ""
    threshold: float | None = None
    timeout: Annotated[float, Meta(gt=0, le=300)] = 10.0

    @property
    def is_wizard(self) -> bool:
        """Whether people answer."""
        return self.kind == "wizard"


class TaskSpec(DesignPart, frozen=True, kw_only=True):
    """What a participant is asked to achieve."""

    id: Name
    goal: LongText
    question: str = ""
    """What the participant is asked at the end of the dialogue."""
    answers: list[ShortText] = []
    """Answers that show the goal achieved."""
    choices: list[ShortText] = []
    """Answers to choose from; without them one is typed."""


class ResponseSpec(DesignPart, frozen=True, kw_only=True):
    """What the system can say, and so the wizard."""

    id: Name
    text: LongText
    key: Annotated[str, Meta(pattern=r"^[0-9a-z]$")] | None = None
    group: str = ""
    repair: bool = False
    """Whether it asks back instead of answering: a system that withholds its answer there is right."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots in its text, each once."""
        return tuple(dict.fromkeys(SLOT.findall(self.text)))


class QuestionSpec(DesignPart, frozen=True, kw_only=True):
    """An item of a questionnaire."""

    id: Name
    text: LongText
    kind: Literal["scale", "choice", "text", "number"] = "scale"
    low: int = 1
    high: int = 5
    labels: list[ShortText] = []
    """The ends of a scale, or the choices."""
    required: bool = True


class WizardSpec(DesignPart, frozen=True, kw_only=True):
    """Who the wizards are and what they may do."""

    names: Annotated[list[Name], Meta(max_length=500)] = []
    instructions: str = "Answer as the system would. You see only what the system sees."
    free_text: bool = False
    rounds: Annotated[int, Meta(ge=0, le=20)] = 0
    """Rounds of training before the first dialogue."""
    settled: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Share of answers that may change from a round to the next in those who have settled."""


class TrainingSpec(DesignPart, frozen=True, kw_only=True):
    """An input on which wizards are trained, and the response that is best."""

    heard: ShortText
    best: Name
    nbest: list[ShortText] = []


class PairingSpec(DesignPart, frozen=True, kw_only=True):
    """Who meets which conditions, in which order, and what happens where no wizard is free."""

    order: Literal["latin square", "balanced"] = "latin square"
    dialogues: Annotated[int, Meta(ge=1, le=400)] | None = None
    """Dialogues of each participant; by default one in every condition."""
    wait: Seconds = 60.0
    fallback: bool = True
    """Whether a dialogue with a system takes the place of one for which no wizard comes."""
    away: Seconds = 60.0
    """Seconds that either side may be gone before the dialogue ends."""
    participants: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    shadow: bool = True
    """Whether systems get the utterances of wizards' dialogues too; their answers are logged, and seen by nobody."""


class WozDesign(DesignPart, frozen=True, kw_only=True):
    """A whole study."""

    name: Name
    title: ShortText
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 0
    welcome: str = ""
    consent: LongText
    thanks: str = "Thank you for taking part."
    metric: MetricSpec = MetricSpec()
    input: InputSpec
    interface: InterfaceSpec = InterfaceSpec()
    pairing: PairingSpec = PairingSpec()
    wizard: WizardSpec = WizardSpec()
    performers: Annotated[list[PerformerSpec], Meta(min_length=1, max_length=20)]
    tasks: Annotated[list[TaskSpec], Meta(min_length=1, max_length=400)]
    responses: Annotated[list[ResponseSpec], Meta(max_length=1000)] = []
    slots: dict[str, list[ShortText] | Literal["any"]] = {}
    before: list[QuestionSpec] = []
    dialogue: list[QuestionSpec] = []
    """Asked after each dialogue."""
    after: list[QuestionSpec] = []
    training: list[TrainingSpec] = []

    @property
    def wizards(self) -> tuple[PerformerSpec, ...]:
        """The performers that are people."""
        return tuple(one for one in self.performers if one.is_wizard)

    @property
    def systems(self) -> tuple[PerformerSpec, ...]:
        """The performers that are systems."""
        return tuple(one for one in self.performers if not one.is_wizard)

    def performer(self, name: str) -> PerformerSpec:
        """The performer of this name."""
        return next(one for one in self.performers if one.name == name)

    def task(self, name: str) -> TaskSpec:
        """The task of this name."""
        return next(one for one in self.tasks if one.id == name)

    def response(self, name: str) -> ResponseSpec | None:
        """The canned response of this name."""
        return next((one for one in self.responses if one.id == name), None)

    def filled(self, name: str, slots: Mapping[str, str]) -> str | None:
        """The text of a response with its slots filled; None where the study does not allow it."""
        one = self.response(name)
        if one is None or set(slots) != set(one.slots) or not all(map(self.allows, slots, slots.values())):
            return None
        return SLOT.sub(lambda match: slots[match[1]], one.text)

    def allows(self, slot: str, value: str) -> bool:
        """Whether a slot may have this value."""
        allowed = self.slots.get(slot, [])
        return value in allowed if allowed != ANYTHING else 0 < len(value.strip()) <= LONGEST_VALUE

    @property
    def conditions(self) -> tuple[tuple[str, float], ...]:
        """Every performer at every level."""
        return tuple((one.name, level) for one in self.performers for level in self.input.levels)

    @property
    def dialogues_each(self) -> int:
        """Dialogues of a participant."""
        return min(self.pairing.dialogues or len(self.conditions), len(self.conditions))

    def questions(self, stage: str) -> list[QuestionSpec]:
        """The items of a questionnaire: before, dialogue or after."""
        return {"before": self.before, "dialogue": self.dialogue, "after": self.after}[stage]

    @property
    def digest(self) -> str:
        """Digest of all that the study is; who the wizards are is left out, as more of them may be recruited."""
        content = msgspec.structs.replace(self, wizard=msgspec.structs.replace(self.wizard, names=[]))
        return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=8).hexdigest()


def read_design(path: str | Path) -> WozDesign:
    """The design in a study's folder, or in a TOML file; every fault is told, with its line."""
    place = Path(path)
    file = place / FILE if place.is_dir() else place
    if not file.is_file():
        fix = "demur study new FOLDER writes one"
        raise DataError("does not exist" if not place.exists() else f"has no {FILE}", where=f"{place}", fix=fix)
    try:
        content = file.read_bytes()
        if len(content) > MOST_BYTES:
            raise DataError(f"may have at most {MOST_BYTES:,} bytes", where=f"{file}", got=f"{len(content):,}")
        return parse_design(content.decode(), f"{file}")
    except UnicodeDecodeError as fault:
        raise DataError("is not UTF-8", where=f"{file}", fix=f"byte {fault.start}") from None
    except OSError as fault:
        raise DataError(f"cannot be read: {fault.strerror}", where=f"{file}") from None


def parse_design(text: str, where: str = FILE) -> WozDesign:
    """The design in a text."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise DataError(f"is no TOML: {fault}", where=f"{where}:") from None
    reader = _DesignReader(where, text)
    design = reader.read(WozDesign, document, ())
    reader.faults += [reader.fault(path, rule, got, fix) for path, rule, got, fix in _broken_rules(design)]
    if reader.faults:
        raise DataError.joined(reader.faults)
    return design


Fault = tuple[tuple[str | int, ...], str, object, str]
"""Where in the document, the rule, what was found, and how to mend it."""


_Part = TypeVar("_Part", bound=msgspec.Struct)


class _UnreadableError(Exception):
    """A rule asks for a value that could not be read, so that it cannot be checked."""


class _Unreadable:
    """Stands for a value that is at fault: whatever is done with it raises `_UnreadableError`."""

    def _refuse(self, *_: object) -> Any:
        raise _UnreadableError

    __bool__ = __contains__ = __eq__ = __float__ = __format__ = __ge__ = __getattr__ = __getitem__ = _refuse
    __gt__ = __hash__ = __iter__ = __le__ = __len__ = __lt__ = __str__ = _refuse


class _DesignReader:
    """Reads values into types field by field, so that a fault does not hide the next."""

    def __init__(self, where: str, text: str) -> None:
        self.where, self.faults = where, list[DataError]()
        self._lines = text.splitlines()

    def read(self, kind: type[_Part], given: Mapping[str, Any], path: tuple[str | int, ...]) -> _Part:
        """The struct that a table is, with an unreadable value in each field that is at fault; faults are noted."""
        known = {one.encode_name: one for one in fields(kind)}
        for name in given.keys() - known.keys():
            near = get_close_matches(name, known, n=1)
            fix = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(known)}"
            self.faults.append(self.fault((*path, name), "is not known", None, fix))
        values = {
            one.name: self._value(one, given[name], (*path, name)) for name, one in known.items() if name in given
        }
        for name, one in known.items():
            if one.required and name not in given:
                self.faults.append(self.fault((*path, name), "is missing", None, ""))
                values[one.name] = _Unreadable()
        return kind(**values)

    def _value(self, one: FieldInfo, given: Any, path: tuple[str | int, ...]) -> Any:
        struct, before = _struct_in(one.type), len(self.faults)
        if isinstance(struct, type) and isinstance(given, dict):
            return self.read(struct, given, path)
        if isinstance(struct, type) and isinstance(given, list) and all(isinstance(item, dict) for item in given):
            parts = [self.read(struct, item, (*path, place)) for place, item in enumerate(given)]
            if len(self.faults) > before:
                return parts
            given = [msgspec.to_builtins(part) for part in parts]
        try:
            return msgspec.convert(given, one.type)
        except msgspec.ValidationError as fault:
            rule, _, place = str(fault).partition(" - at `$")
            at = place.rstrip("`")
            if "enum" in rule:
                rule = f"Expected `{' | '.join(map(str, get_args(one.type)))}`"
            shown = given if isinstance(given, str | int | float | bool) else None
            self.faults.append(self.fault(path, f"{at + ': ' if at else ''}{_plain_rule(rule)}", shown, ""))
            return _Unreadable()

    def fault(self, path: Sequence[str | int], rule: str, got: object, fix: str) -> DataError:
        """A fault with the line it is in."""
        line = self.line(path)
        shown = "".join(f"[{one + 1}]" if isinstance(one, int) else f".{one}" for one in path).lstrip(".")
        return DataError(rule, where=f"{self.where}:{line}: {shown}", got=got, fix=fix, row=line)

    def line(self, path: Sequence[str | int]) -> int:
        """The line of a key, or else of the table that should hold it."""
        tables = [one for one in path if isinstance(one, str)]
        number = next((one for one in path if isinstance(one, int)), None)
        start = 0
        if number is not None or (tables and self._heading(tables[0], 0) is not None):
            start = self._heading(tables[0], number or 0) or 0
            tables = tables[1:]
        if tables:
            for place in range(start, len(self._lines)):
                if place > start and self._lines[place].startswith("["):
                    break
                if re.match(rf'\s*"?{re.escape(tables[0])}"?\s*=', self._lines[place]):
                    return place + 1
        return start + 1

    def _heading(self, name: str, number: int) -> int | None:
        wanted = re.compile(rf"\s*\[\[?\s*{re.escape(name)}\s*\]")
        places = [place for place, line in enumerate(self._lines) if wanted.match(line)]
        return places[number] if number < len(places) else None


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field is, or is a list of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((found for part in get_args(kind) if (found := _struct_in(part)) is not None), None)


def _plain_rule(rule: str) -> str:
    """A fault of msgspec in words that need no Python.

    >>> _plain_rule("Expected `int`, got `str`"), _plain_rule("Expected `array`, got `str`")
    ('must be a whole number', 'must be a list')
    >>> _plain_rule("Expected `int` >= 1"), _plain_rule("Expected `str` of length <= 300")
    ('must be a whole number of at least 1', 'must have at most 300 characters')
    """
    if "pattern" in rule or "matching regex" in rule:
        return "must be a name of letters, digits, _ . or -, or for keys one letter or digit"
    if bounded := re.fullmatch(r"Expected `(int|float)` (>=|<=|>|<) (.+)", rule):
        return f"must be {_KINDS[bounded[1]]} {_BOUNDS[bounded[2]]} {bounded[3]}"
    if sized := re.fullmatch(r"Expected `(str|array)` of length (>=|<=) (.+)", rule):
        unit = "characters" if sized[1] == "str" else "entries"
        return f"must have {_BOUNDS[sized[2]].removeprefix('of ')} {sized[3]} {unit}"
    expected = re.match(r"Expected `([^`]*)`(?:, got .*)?$", rule)
    if expected:
        named = [_KINDS.get(part.strip(), part.strip()) for part in expected[1].split("|")]
        return f"must be {' or '.join(named)}"
    return rule.replace("Expected", "must be").replace("`", "")


_KINDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "array": "a list"}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}


def _broken_rules(design: WozDesign) -> Iterator[Fault]:
    """What no single field shows."""
    for check in (
        _repeats,
        _performers_faults,
        _dialogue_faults,
        _input_faults,
        _level_faults,
        _response_faults,
        _training_faults,
        _questions_faults,
        _name_faults,
        _item_name_faults,
        _metric_faults,
        _tasks_faults,
    ):
        yield from _checkable(check(design))


def _checkable(faults: Iterator[Fault]) -> Iterator[Fault]:
    """Faults up to a rule about a value that could not be read."""
    with suppress(_UnreadableError):
        yield from faults


def _metric_faults(design: WozDesign) -> Iterator[Fault]:
    metric = design.metric
    if metric.lower >= metric.upper:
        yield ("metric", "upper"), "must exceed lower", metric.upper, ""
    if metric.source == "item" and metric.item not in [one.id for one in design.dialogue]:
        fix = "name an item of [[dialogue]], the questionnaire after each dialogue"
        yield ("metric", "item"), "must be an item that is asked after each dialogue", metric.item, fix


def _tasks_faults(design: WozDesign) -> Iterator[Fault]:
    if design.metric.source == "answer":
        for place, task in enumerate(design.tasks):
            yield from _checkable(_task_faults(place, task))


def _task_faults(place: int, task: TaskSpec) -> Iterator[Fault]:
    if not task.answers:
        fix = 'list those that show the goal achieved, or set metric.from to "said"'
        yield ("tasks", place, "answers"), "is missing: the metric compares answers", None, fix
    for answer in task.answers if task.choices else ():
        if answer not in task.choices:
            yield ("tasks", place, "answers"), "must be among the choices", answer, ""


def _repeats(design: WozDesign) -> Iterator[Fault]:
    for table in ("performers", "tasks", "responses", *_STAGES):
        yield from _checkable(_repeated_names(table, getattr(design, table)))
    yield from _checkable(_repeated_keys(design))
    yield from _checkable(_wizard_name_faults(design))
    if len(set(design.input.levels)) < len(design.input.levels):
        yield ("input", "levels"), "has a level twice", None, ""


def _repeated_names(table: str, parts: Sequence[Any]) -> Iterator[Fault]:
    key = "name" if table == "performers" else "id"
    names = [getattr(one, key) for one in parts]
    for place, name in enumerate(names):
        if name in names[:place]:
            yield (table, place, key), "is given twice", name, "names tell things apart"


def _repeated_keys(design: WozDesign) -> Iterator[Fault]:
    keys = [one.key for one in design.responses]
    for place, pressed in enumerate(keys):
        if pressed is not None and pressed in keys[:place]:
            yield ("responses", place, "key"), "is the key of another response", pressed, ""


def _wizard_name_faults(design: WozDesign) -> Iterator[Fault]:
    for place, name in enumerate(design.wizard.names):
        if name in design.wizard.names[:place]:
            yield ("wizard", "names"), "names somebody twice", name, ""
        if re.fullmatch(r"[pd]\d+", name):
            yield ("wizard", "names"), "names a wizard as participants and dialogues are named", name, ""


_STAGES = ("before", "dialogue", "after")
"""When the questionnaires are asked."""

_NEEDED: dict[PerformerKind, tuple[str, str]] = {
    "command": ("command", 'such as ["python", "bot.py"]'),
    "python": ("call", "such as package.module:function"),
    "http": ("address", "such as http://127.0.0.1:5005/respond"),
}


def _performers_faults(design: WozDesign) -> Iterator[Fault]:
    for place, one in enumerate(design.performers):
        yield from _checkable(_performer_faults(design, place, one))
    if design.wizards and not design.wizard.names:
        yield ("wizard", "names"), "is missing: a performer is a wizard", None, 'such as names = ["anna", "ben"]'


def _performer_faults(design: WozDesign, place: int, one: PerformerSpec) -> Iterator[Fault]:
    at = ("performers", place)
    if one.kind in _NEEDED:
        field, fix = _NEEDED[one.kind]
        if not getattr(one, field):
            yield (*at, field), f"is missing: kind is {one.kind}", None, fix
    if one.kind == "relevance" and not (one.model or one.pairs):
        yield (*at, "pairs"), "is missing: kind is relevance", None, "name a table of pairs, or a model's folder"
    if one.kind == "http" and one.address and not is_local(one.address):
        fix = "what people type must not leave this machine; run a proxy here if you mean to send it on"
        yield (*at, "address"), "must be http on this machine (127.0.0.1, ::1 or localhost)", one.address, fix
    if one.component == "understanding" and not one.is_wizard:
        yield (*at, "component"), "is for wizards; name what a system has in components", one.component, ""
    systems = [each.name for each in design.systems] if one.component == "understanding" else []
    if one.component == "understanding" and one.is_wizard and one.system not in systems:
        fix = f"systems here: {', '.join(systems) or 'none'}"
        yield (*at, "system"), "must name the system that does the rest", one.system, fix


def _dialogue_faults(design: WozDesign) -> Iterator[Fault]:
    if design.pairing.dialogues and design.pairing.dialogues > len(design.conditions):
        fix = f"there are {len(design.conditions)} conditions, and nobody meets one twice"
        yield ("pairing", "dialogues"), "is more than there are conditions", design.pairing.dialogues, fix


def is_local(address: str) -> bool:
    """Whether an address is HTTP on this machine.

    >>> is_local("http://127.0.0.1:5005/respond"), is_local("http://127.0.0.1@evil.example/"), is_local("https://x.org")
    (True, False, False)
    """
    pattern = r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?(/[!-~]*)?"
    return re.fullmatch(pattern, address) is not None


def _input_faults(design: WozDesign) -> Iterator[Fault]:
    one = design.input
    if one.by == "speech" and not one.recogniser:
        yield ("input", "recogniser"), "is missing: input is by speech", None, 'such as ["recognise", "{wav}"]'
    if one.recogniser and not any("{wav}" in part for part in one.recogniser):
        yield ("input", "recogniser"), "must say where the file goes, as {wav}", None, ""
    if one.by == "speech" and one.measured == "realised":
        fix = 'leave it at "level"'
        yield ("input", "measured"), "needs typed input: nobody knows the words that were spoken", "realised", fix


def _level_faults(design: WozDesign) -> Iterator[Fault]:
    one = design.input
    if one.by == "keyboard" and max(one.levels) > 1:
        yield ("input", "levels"), "must lie between 0 and 1: the word error rates of the channel", max(one.levels), ""


def _response_faults(design: WozDesign) -> Iterator[Fault]:
    whole = [one for one in design.wizards if one.component == "all"]
    if whole and not design.responses and not design.wizard.free_text:
        fix = "add [[responses]], or set wizard.free_text = true"
        yield ("responses",), "is missing: a wizard could say nothing", None, fix
    for place, one in enumerate(design.responses):
        yield from _checkable(_slot_faults(design, place, one))


def _slot_faults(design: WozDesign, place: int, one: ResponseSpec) -> Iterator[Fault]:
    for slot in one.slots if one.text else ():
        if slot not in design.slots:
            fix = f'add {slot} = ["..."] to [slots], or {slot} = "any"'
            yield ("responses", place, "text"), f"has a slot without values: {slot}", None, fix


def _training_faults(design: WozDesign) -> Iterator[Fault]:
    if design.wizard.rounds and not design.training:
        yield ("wizard", "rounds"), "asks for training, but there is no [[training]]", design.wizard.rounds, ""
    whole = [one for one in design.wizards if one.component == "all"]
    known = {one.id for one in design.responses}
    for place, item in enumerate(design.training):
        if item.best not in known and whole:
            yield ("training", place, "best"), "must be the id of a response", item.best, ""


def _questions_faults(design: WozDesign) -> Iterator[Fault]:
    for stage in _STAGES:
        for place, one in enumerate(design.questions(stage)):
            yield from _checkable(_question_faults(stage, place, one))


def _question_faults(stage: str, place: int, one: QuestionSpec) -> Iterator[Fault]:
    if one.kind == "choice" and len(one.labels) < 2:
        yield (stage, place, "labels"), "must list two choices or more", None, ""
    if one.kind == "scale" and not one.low < one.high <= one.low + 20:
        yield (stage, place, "high"), "must exceed low, by at most 20", one.high, ""


_TAKEN = "is the name of another column of the tables", "choose another name"


def _name_faults(design: WozDesign) -> Iterator[Fault]:
    """Names of x and y that tables could not keep apart from their other columns."""
    rule, fix = _TAKEN
    varied, metric = design.input.name, design.metric
    if metric.name in (*TRIAL_COLUMNS, *DIALOGUE_COLUMNS):
        yield ("metric", "name"), rule, metric.name, fix
    if varied in (*TRIAL_COLUMNS, metric.name):
        yield ("input", "name"), rule, varied, fix


def _item_name_faults(design: WozDesign) -> Iterator[Fault]:
    """Items that tables could not keep apart from their other columns."""
    rule, fix = _TAKEN
    metric = design.metric
    asked = {f"{stage}_{one.id}" for stage in ("before", "after") for one in design.questions(stage)}
    for place, one in enumerate(design.dialogue):
        taken = one.id == metric.name and (metric.source, metric.item) != ("item", one.id)
        if taken or one.id in DIALOGUE_COLUMNS or one.id in asked:
            yield ("dialogue", place, "id"), rule, one.id, fix
