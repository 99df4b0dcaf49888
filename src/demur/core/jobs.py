"""Jobs whose options are declared once: Python arguments, flags of the command line and fields of a form follow.

A job is a public function. Its signature is the declaration: an `Annotated` parameter with an `Option` or an `Argument`
is offered by the command and by the form too; any other parameter belongs to Python alone.

>>> Level = Annotated[float, Option("Confidence level.", above=0, below=1)]
>>> @job
... def sample(*files: Annotated[Any, Argument("Logs.")], level: Level = 0.95) -> float:
...     return level
>>> sample(level=2)
Traceback (most recent call last):
demur.errors.UsageError: `level` must be above 0 and below 1; got 2
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, wraps
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from demur.errors import DataError, DemurError, UsageError

Confirm = Callable[[str], bool]
"""Asks the user a question, and gives whether the answer is yes."""

P = ParamSpec("P")
R = TypeVar("R")

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that must be given."""

FLAGS = {"true": True, "on": True, "false": False, "off": False}
"""What forms send for a check box."""


@dataclass(frozen=True)
class Argument:
    """A positional argument of a command: `*data` takes several, any other parameter one."""

    help: str
    metavar: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Option:
    """What is said of a parameter once, for Python, the command line and forms.

    `parse` makes the Python value of a text and raises ValueError where it cannot; `takes` names what it takes. With
    `repeat` the flag may be given several times, and `collect` joins the values. `write` is the text of a default.
    """

    help: str
    flag: str | None = None
    short: str | None = None
    metavar: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    parse: Callable[[str], Any] | None = None
    takes: str = "another value"
    python: str = ""
    """What Python takes, where it is not said by `takes`."""
    check: Callable[[Any], bool] | None = None
    write: Callable[[Any], str] = str
    repeat: bool = False
    collect: Callable[[tuple[Any, ...]], Any] = tuple

    @property
    def range(self) -> str:
        """The range in words; empty where every number will do.

        >>> Option("Seed.", minimum=0).range, Option("Level.", above=0, below=1).range
        ('at least 0', 'above 0 and below 1')
        """
        bounds = {"at least": self.minimum, "above": self.above, "at most": self.maximum, "below": self.below}
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)

    def within(self, value: float) -> bool:
        """Whether a number lies in the range; NaN lies in no range."""
        return (
            (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )


@dataclass(frozen=True)
class Parameter:
    """One parameter of a job that the command line and forms offer too."""

    name: str
    type: Any
    """The type without `None`."""
    default: Any
    option: Option | Argument
    several: bool = False
    """Whether it takes any number of positional values."""

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values it may have; empty where they are not listed."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def flag(self) -> str:
        """Its flag on the command line; a positional argument has none and is named as it is."""
        if isinstance(self.option, Argument):
            return self.option.metavar or self.name.upper()
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @property
    def text(self) -> str | None:
        """The default as a text that parses to it; None where there is none, or where several values are collected."""
        if isinstance(self.option, Argument) or self.option.repeat or self.default in (REQUIRED, None):
            return None
        return self.option.write(self.default)

    def parsed(self, text: str) -> Any:
        """The Python value of a text; a fault names the parameter in backticks, as all faults of jobs do."""
        option = self.option
        if isinstance(option, Argument):
            return text
        try:
            value = _read(text, self.type) if option.parse is None else option.parse(text)
        except ValueError:
            raise UsageError(f'`{self.name}` takes {self._takes}; got "{text}"') from None
        if option.check is not None and not option.repeat and not option.check(value):
            raise UsageError(f'`{self.name}` takes {option.takes}; got "{text}"')
        return value

    @property
    def _takes(self) -> str:
        assert isinstance(self.option, Option)
        kinds = {int: "a whole number", float: "a number", bool: "true or false"}
        return kinds.get(self.type, self.option.takes) if self.option.parse is None else self.option.takes

    def refuse_outside(self, value: Any) -> None:
        """Refuse a value that is none of the choices, or out of range."""
        option = self.option
        if isinstance(option, Argument) or (value is None and self.default is None):
            return
        if self.choices and value not in self.choices:
            listed = ", ".join(map(str, self.choices))
            raise UsageError(f"`{self.name}` is one of {listed}; got {_text_of_value(value)}")
        if self.type in (int, float):
            kind = Integral if self.type is int else Real
            if value is True or value is False or not isinstance(value, kind):
                raise UsageError(f"`{self.name}` takes {self._takes}; got {_text_of_value(value)}")
            if not option.within(float(value)):
                raise UsageError(f"`{self.name}` must be {option.range}; got {value:g}")
        if option.check is not None and not option.check(value):
            raise UsageError(f"`{self.name}` takes {option.python or option.takes}; got {_text_of_value(value)}")


@cache
def parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a job that are annotated with an `Option` or an `Argument`, in order.

    >>> def fit(level: Annotated[float, Option("Level.")] = 0.95, quick: bool = False): ...
    >>> [(one.name, one.default, one.flag) for one in parameters(fit)]
    [('level', 0.95, '--level')]
    """
    declarations, signature = [], inspect.signature(function).parameters.values()
    if signature and all(isinstance(one.annotation, str) for one in signature):
        raise TypeError(f"{function.__module__} declares options, so it cannot import annotations from __future__")
    for one in signature:
        declared = [part for part in get_args(one.annotation)[1:] if isinstance(part, Option | Argument)]
        if get_origin(one.annotation) is Annotated and declared:
            kind = _without_none(get_args(one.annotation)[0])
            several = one.kind is inspect.Parameter.VAR_POSITIONAL
            declarations.append(Parameter(one.name, kind, one.default, declared[0], several))
    return tuple(declarations)


def check_values(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Refuse values that are out of range or none of the choices, and names that the function does not have."""
    signature = inspect.signature(function).parameters
    known = [name for name, one in signature.items() if one.kind is one.KEYWORD_ONLY]
    if not any(one.kind is one.VAR_KEYWORD for one in signature.values()):
        for name in values:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f' Did you mean "{near[0]}"?' if near else ""
                raise UsageError(f'there is no option "{name}" here.{hint} Options: {", ".join(known)}')
    for parameter in parameters(function):
        if parameter.name in values and not parameter.several:
            parameter.refuse_outside(values[parameter.name])


def job(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse options that it does not have, or that are out of range, before it does anything."""

    @wraps(function)
    def checked(*arguments: P.args, **values: P.kwargs) -> R:
        check_values(function, values)
        return function(*arguments, **values)

    return checked


@dataclass(frozen=True)
class Output:
    """A file that a command writes where its flag names one: `write`, a "module:function", takes result and path.

    `check`, a "module:function" too, takes the path and what the job takes, and refuses before any work is done.
    """

    flag: str
    help: str
    write: str
    metavar: str = "FILE"
    check: str | None = None
    short: str | None = None
    ending: str = ""
    """How the name of the file must end; any name will do where it is empty."""

    @property
    def name(self) -> str:
        """Its name among the options."""
        return self.flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class Job:
    """A function and what its command needs besides: where it is, how its result is shown, what else it writes.

    `name` may have several words, such as "outcome fit". `present` is the "module:function" from the result to what is
    shown, loaded only then. `about` are further paragraphs of the help. `endings` are file endings that `-o` takes
    here besides the usual ones, each with the "module:function" that writes the result to a path; an empty ending
    stands for a folder. `check` is the "module:function" that refuses such paths before any work is done.
    """

    name: str
    function: Callable[..., Any]
    present: str
    example: str
    about: str = ""
    endings: tuple[tuple[str, str], ...] = ()
    outputs: tuple[Output, ...] = ()
    check: str = ""
    says_files: bool = False
    """Whether the result has `files`, the paths of `-o`, and says them in its document."""
    figures: bool = True
    """Whether its result has figures."""
    gate: str = "NAME > NUMBER"
    """A condition that `--fail-if` may ask of its result, for the help."""
    fails: Callable[[Any], bool] = lambda _: False
    """Whether a result makes the command exit with 1."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its arguments and options."""
        return parameters(self.function)

    @property
    def help(self) -> str:
        """What it does: the first paragraph of the function's docstring, and what `about` adds."""
        first = (inspect.getdoc(self.function) or "").partition("\n\n")[0].replace("\n", " ")
        return "\n\n".join(part for part in (first, self.about) if part)

    def takes(self, name: str) -> bool:
        """Whether the function takes this parameter: `step` is called as work goes on, `confirm` asks the user."""
        return name in inspect.signature(self.function).parameters


@dataclass(frozen=True)
class Field:
    """A field of a form: how one option is asked for on a page."""

    name: str
    kind: Literal["number", "whole", "choice", "check", "text", "texts"]
    help: str
    default: Any
    """The text in the field; a flag for a check, and no text where several are collected."""
    required: bool
    choices: tuple[str, ...]
    minimum: float | None
    maximum: float | None
    above: float | None
    below: float | None


def fields_of(function: Callable[..., Any]) -> tuple[Field, ...]:
    """The fields of a form that asks for the options of a job."""
    return tuple(_field(one, one.option) for one in parameters(function) if isinstance(one.option, Option))


def values_of(function: Callable[..., Any], texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The Python values of what a form was filled with; an empty field leaves the default.

    >>> def fit(*, level: Annotated[float, Option("Level.")] = 0.95, seed: Annotated[int, Option("Seed.")] = 0): ...
    >>> values_of(fit, {"level": ["0.9"], "seed": [""]})
    {'level': 0.9}
    """
    values = {}
    for one in parameters(function):
        given = tuple(text for text in texts.get(one.name, ()) if text)
        if given and isinstance(one.option, Option):
            parsed = tuple(map(one.parsed, given))
            values[one.name] = one.option.collect(parsed) if one.option.repeat else parsed[-1]
    check_values(function, values)
    return values


def _field(parameter: Parameter, option: Option) -> Field:
    kinds: dict[Any, Any] = {bool: "check", int: "whole", float: "number"}
    kind: Any = "texts" if option.repeat else "choice" if parameter.choices else kinds.get(parameter.type, "text")
    return Field(
        name=parameter.name,
        kind="text" if option.parse is not None and not option.repeat else kind,
        help=option.help,
        default=parameter.default if parameter.type is bool else parameter.text,
        required=parameter.default is REQUIRED,
        choices=tuple(map(str, parameter.choices)),
        minimum=option.minimum,
        maximum=option.maximum,
        above=option.above,
        below=option.below,
    )


def are_pairs(values: Any) -> bool:
    """Whether this is a sequence of pairs."""
    return not isinstance(values, str) and all(not isinstance(one, str) and len(one) == 2 for one in values)


def load(place: str) -> Any:
    """What a "module:name" stands for."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def with_flags(fault: DemurError, flags: Mapping[str, str]) -> DemurError:
    """The fault for the command line: flags in place of options in backticks, without what is written in Python.

    >>> str(with_flags(UsageError("`delta` goes with `max_error`"), {"delta": "--delta", "max_error": "--max-error"}))
    '--delta goes with --max-error'
    >>> str(with_flags(UsageError('--map target=gold, or columns={"target": "gold"}, names it'), {}))
    '--map target=gold names it'
    """
    for one in {fault, *(fault.faults if isinstance(fault, DataError) else ())}:
        one.args = (_IN_PYTHON.sub("", flagged(str(one), flags)), *one.args[1:])
    return fault


_IN_PYTHON = re.compile(r', or \w+=(?:\{[^}]*\}|\([^)]*\)|"[^"]*"|True),?')
"""How a message says an option in Python, after the flag."""


def flagged(text: str, flags: Mapping[str, str]) -> str:
    """A text with flags in place of options in backticks.

    >>> flagged("joined by `on`, as `score` shows", {"on": "--on"})
    'joined by --on, as `score` shows'
    """
    return re.sub(r"`(\w+)`", lambda match: flags.get(match[1], match[0]), text)


def _read(text: str, kind: Any) -> Any:
    if (kind is bool and text.lower() not in FLAGS) or (kind is float and math.isnan(float(text))):
        raise ValueError(text)
    if kind is bool:
        return FLAGS[text.lower()]
    return kind(text) if kind in (int, float, Path) else text


def _text_of_value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _without_none(kind: Any) -> Any:
    parts = [part for part in get_args(kind) if part is not NoneType]
    if get_origin(kind) not in (Union, UnionType) or len(parts) == len(get_args(kind)):
        return kind
    return parts[0] if len(parts) == 1 else Union[tuple(parts)]  # noqa: UP007
