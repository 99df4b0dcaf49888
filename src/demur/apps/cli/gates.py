"""Gates: conditions on the JSON document under which a command exits with 1."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demur.errors import UsageError

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*([\w.]+)\s*(>=|<=|>|<)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%?)\s*")
_CLAIMS = r"significantly\s+(?:worse|better)|not\s+(?:non-inferior|equivalent)"
_PROMISE = re.compile(r"\s*promise\s+is\s+(broken|not\s+shown\s+to\s+hold)\s*")
_VERDICT = re.compile(rf"\s*(.+?)\s+is\s+({_CLAIMS})\s*")


@dataclass(frozen=True, slots=True)
class Subject:
    """Something a gate is asked of: its name and its part of the document."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GateResult:
    """A condition asked of one subject; the failure is a sentence where it holds, and None where the gate is passed."""

    condition: str
    subject: str
    failure: str | None


def failures(conditions: list[str], document: Mapping[str, Any]) -> list[str]:
    """Sentences about the conditions that hold in the document; none if every gate is passed.

    >>> failures(["augrc > 0.1"], {"systems": [{"system": "guide", "measures": {"augrc": {"value": 0.2}}}]})
    ['guide: augrc > 0.1 holds: it is 0.2']
    """
    gates = (gate for condition in conditions for gate in _gates_of(condition, document))
    return [gate.failure for gate in gates if gate.failure is not None]


def gate_results(conditions: list[str], documents: Sequence[Mapping[str, Any]]) -> list[GateResult]:
    """Every gate, passed or not: each condition is asked of the first document that knows what it names.

    >>> one = {"systems": [{"system": "guide", "measures": {"augrc": {"value": 0.2}}}]}
    >>> [gate.failure for gate in gate_results(["augrc > 0.5"], [one])]
    [None]
    """
    results: list[GateResult] = []
    for condition in conditions:
        fault = UsageError(f'"{condition}": there is nothing here that a gate could be asked of')
        for place, document in enumerate(documents):
            try:
                results += _gates_of(condition, document)
                break
            except UsageError as unknown:
                fault = unknown if place == 0 else fault
        else:
            raise fault
    return results


def check_syntax(conditions: list[str]) -> None:
    """Refuse a condition that cannot be read, before any work is done."""
    for condition in conditions:
        if not any(pattern.fullmatch(condition) for pattern in (_CONDITION, _PROMISE, _VERDICT)):
            raise UsageError(
                f'--fail-if takes "NAME > NUMBER" (also <, >=, <=; NAME.low and NAME.high for the interval) or, for '
                f'compare, "b is significantly worse" (or better) and, with --margin, "b is not non-inferior" or "b is '
                f'not equivalent", for drift "promise is broken"; got "{condition}"'
            )


def _gates_of(condition: str, document: Mapping[str, Any]) -> Iterator[GateResult]:
    if promise := _PROMISE.fullmatch(condition):
        yield _promise_gate(condition, promise[1], document)
        return
    verdict = _VERDICT.fullmatch(condition)
    if verdict:
        yield from _verdict_gates(condition, verdict[1], verdict[2], document)
        return
    match = _CONDITION.fullmatch(condition)
    assert match is not None
    name, limit = match[1], float(match[3]) / (100 if match[4] else 1)
    for subject in _subjects(document, name):
        value, failure = _value_of(subject, name), None
        if _is_silent(subject) and name.partition(".")[0] not in SAID_OF_SILENCE:
            failure = f"{subject.name} answers nothing, so the gate {condition} cannot be passed"
        elif value is None:
            failure = f"{subject.name}: {name} is undefined, so the gate {condition} cannot be passed"
        elif _COMPARE[match[2]](value, limit):
            failure = f"{subject.name}: {condition} holds: it is {value:.6g}"
        yield GateResult(condition, subject.name, failure)


SAID_OF_SILENCE = ("n", "nonreturn_floor")
"""What can be asked of a system that answers nothing; that it makes no errors is no merit."""


def _is_silent(subject: Subject) -> bool:
    floor = subject.values.get("nonreturn_floor")
    return isinstance(floor, Mapping) and floor.get("value") == 1


def _subjects(document: Mapping[str, Any], name: str) -> list[Subject]:
    """What a name is asked of: the pairs of a comparison or, if they know no such name, the systems, or the whole."""
    pairs = [
        Subject(
            f"{pair['a']} against {pair['b']}",
            {**pair, **{f"{key}_difference": one for key, one in pair.get("differences", {}).items()}},
        )
        for pair in document.get("pairs", ())
    ]
    systems = [_system(part) for part in _systems(document, alone=not pairs)]
    whole = [_system(study) for study in document.get("studies", (document,))]
    first = name.partition(".")[0]
    for subjects in (pairs, systems, whole):
        if subjects and first in subjects[0].values:
            return subjects
    known = {key: value for one in (*systems[:1], *pairs[:1]) for key, value in one.values.items()}
    raise _unknown_name(name, known)


def _systems(document: Mapping[str, Any], *, alone: bool) -> list[Mapping[str, Any]]:
    """The systems of a document, and those of each study in it; without any, the whole where it stands alone."""
    if "studies" in document:
        return [part for study in document["studies"] for part in _systems(study, alone=False)]
    if "performers" in document:
        return [part for part in document["performers"] if part["role"] == "system"]
    return list(document.get("systems", (document,) if alone else ()))


def _system(part: Mapping[str, Any]) -> Subject:
    name = str(part.get("system", part.get("performer", part.get("study", "result"))))
    name += f" [{part['slice']}]" if "slice" in part else ""
    return Subject(name, {**part, **part.get("measures", {}), **part.get("intervals", {})})


def _value_of(subject: Subject, name: str) -> float | None:
    value: Any = subject.values
    for step in name.split("."):
        if not isinstance(value, Mapping) or step not in value:
            raise _unknown_name(name, subject.values)
        value = value[step]
    if isinstance(value, Mapping):
        if "value" not in value:
            raise _unknown_name(name, subject.values)
        value = value["value"]
    if value is not None and not isinstance(value, int | float):
        raise UsageError(f"--fail-if compares numbers; {name} is not one")
    return value


def _unknown_name(name: str, values: Mapping[str, Any]) -> UsageError:
    known = sorted(
        key
        for key, value in values.items()
        if (isinstance(value, int | float) and not isinstance(value, bool))
        or (isinstance(value, Mapping) and "value" in value)
    )
    near = difflib.get_close_matches(name, known, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else "."
    return UsageError(f'--fail-if knows no "{name}"{hint} Known: {", ".join(known)}')


def _promise_gate(condition: str, claim: str, document: Mapping[str, Any]) -> GateResult:
    """Whether the promise of a threshold is broken or, with the stricter claim, not shown to hold."""
    promise = document.get("promise")
    if not isinstance(promise, Mapping):
        raise UsageError(f'"{condition}" is a gate for drift with a promise: --max-error or --max-nonreturn')
    if claim == "broken":
        return GateResult(condition, "promise", "the promise is broken" if promise["verdict"] == claim else None)
    failure = f"the promise is not shown to hold: {promise['verdict']}"
    return GateResult(condition, "promise", None if promise["verdict"] == "holds" else failure)


def _verdict_gates(condition: str, name: str, claim: str, document: Mapping[str, Any]) -> Iterator[GateResult]:
    if not all("verdict" in pair for pair in document.get("pairs", [{}])):
        raise UsageError(f'"{condition}" is a gate for compare and nbest --compare; here it takes "NAME > NUMBER"')
    names = {pair[side] for pair in document["pairs"] for side in ("a", "b")}
    if name not in {"a", "b", *names}:
        raise UsageError(f'"{condition}": there is no system "{name}"; there are a, b, {", ".join(sorted(names))}')
    claim = " ".join(claim.split())
    for pair in document["pairs"]:
        for side, other in (("a", "b"), ("b", "a")):
            if name == (pair[side] if name in names else side):
                holds = _claim_holds(claim, pair, side, other, condition)
                failure = f"{pair[side]} is {claim} {'to' if 'not' in claim else 'than'} {pair[other]}"
                yield GateResult(condition, f"{pair['a']} against {pair['b']}", failure if holds else None)


def _claim_holds(claim: str, pair: Mapping[str, Any], side: str, other: str, condition: str) -> bool:
    """Whether a claim about one side of a pair holds: of the overall difference, or the region compared over."""
    if claim.startswith("significantly"):
        return bool(pair["better"] == (side if claim.endswith("better") else other))
    if "equivalence" not in pair:
        raise UsageError(f'"{condition}" needs --margin: the difference that does not matter, such as 0.01')
    p = pair["equivalence"]["p" if claim.endswith("equivalent") else side]
    return not p < 1 - pair["equivalence"]["level"]
