"""What the values of a foreign log say: yes or no, a number, which of them judges answers and which ranks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from demur.importers.choices import ImportChoices
from demur.importers.protocol import Row, chosen

TRUE, FALSE = (
    (True, 1, "1", "1.0", "true", "yes", "pass", "correct"),
    (False, 0, "0", "0.0", "false", "no", "fail", "incorrect"),
)


CONFIDENT = ("confidence", "certainty", "probability", "logprob")
TRUTHS = ("y_true", "target", "gold", "label", "labels", "label_ids", "true", "truth", "expected", "ground_truth")
"""Names of targets in arrays and pipelines."""
NEEDS_TARGETS = "--gold FILE --on row joins the targets, a row for each answer, or --on COLUMN by a column of both"
LOGPROB = "logprob"
"""The name of the confidence that log probabilities of tokens give."""


def is_flag(value: Any) -> bool:
    """Whether a value says yes or no."""
    folded = value.strip().casefold() if isinstance(value, str) else value
    return not isinstance(folded, list | dict) and folded in (*TRUE, *FALSE)


def as_flag(value: Any) -> bool | None:
    """What a value says; None where it says nothing."""
    folded = value.strip().casefold() if isinstance(value, str) else value
    if isinstance(folded, list | dict) or folded is None:
        return None
    return True if folded in TRUE else False if folded in FALSE else None


def as_number(value: Any) -> float | None:
    """A number, or the number that a text spells."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def only_flags(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """The columns whose cells all say yes or no, where they say anything."""
    found = []
    for name in names:
        cells = [row[name] for row in rows if row.get(name) is not None]
        if cells and all(map(is_flag, cells)):
            found.append(name)
    return found


def only_confidences(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """The columns that are called like a confidence and hold numbers."""
    named = [name for name in names if any(word in name.casefold() for word in CONFIDENT)]
    cells = {name: [row[name] for row in rows if row.get(name) not in (None, "")] for name in named}
    return [name for name, values in cells.items() if values and all(as_number(one) is not None for one in values)]


def correctness(names: Sequence[str], choices: ImportChoices, where: str) -> str | None:
    """The column that judges answers: the one asked for, the only one, or the one that is called so."""
    obvious = next((name for name in names if any(word in name.casefold() for word in ("correct", "exact"))), None)
    return chosen("metric", "metric", names, choices.metric, where, obvious)


def confidence_of(names: Sequence[str], choices: ImportChoices, where: str) -> str | None:
    """The column of confidences: the one asked for, or the only one."""
    if choices.confidence is not None and choices.confidence not in names:
        return None  # a column of the table, mapped later
    return chosen("confidence", "confidence", names, choices.confidence, where)


UNRANKED = "none; answers are not ranked"


@dataclass(frozen=True)
class JudgedColumns:
    """The columns of a table that judge its answers and rank them, and the options that would take others."""

    metric: str | None
    confidence: str | None
    others: Sequence[str]

    @classmethod
    def among(
        cls,
        rows: Sequence[Mapping[str, Any]],
        metrics: Iterable[str],
        confidences: Iterable[str],
        choices: ImportChoices,
        where: str,
    ) -> JudgedColumns:
        """Those asked for or obvious, of columns that may hold metrics and of others that may hold confidences."""
        flags, offered = only_flags(rows, metrics), only_confidences(rows, confidences)
        metric, confidence = correctness(flags, choices, where), confidence_of(offered, choices, where)
        return cls(metric, confidence, other_choices(offered, confidence, flags, metric))

    def correct(self, row: Mapping[str, Any]) -> bool | None:
        """Whether the answer of a row is right; None where the row does not say it."""
        return as_flag(row.get(self.metric or ""))

    def ranked_by(self, row: Mapping[str, Any]) -> float | None:
        """The confidence of a row; None where it has none."""
        return as_number(row.get(self.confidence or ""))

    @property
    def taken(self) -> dict[str, str]:
        """What was taken for correctness and confidence."""
        return {"correct": self.metric or "", "confidence": self.confidence or UNRANKED}


def decoded_cell(value: Any) -> Any:
    """A cell, or what it spells where it is JSON."""
    if isinstance(value, str) and value[:1] in ("{", '"'):
        try:
            return msgspec.json.decode(value)
        except msgspec.MsgspecError:
            return value
    return value


def with_trials(rows: Sequence[Row], key: str = "id") -> list[Row]:
    """Rows numbered by how often their id came before, where any comes twice."""
    seen: Counter[Any] = Counter()
    numbered = []
    for row in rows:
        seen[row[key]] += 1
        numbered.append({**row, "trial": seen[row[key]]})
    return numbered if seen and max(seen.values()) > 1 else list(rows)


def other_choices(
    offered: Sequence[str], confidence: str | None, metrics: Sequence[str], metric: str | None
) -> list[str]:
    """The options that would take another confidence or metric."""
    others = [f"--confidence {name} takes another" for name in offered if name != confidence]
    return others + [f"--metric {name} judges otherwise" for name in metrics if name != metric]
