"""What a measure is: additive totals and a finish; and the score it gives, which carries its signature."""

from __future__ import annotations

import ast
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur import __version__
from demur.core.stats.sweep import Sweep
from demur.errors import DataError

IntervalKind = Literal["share", "height", "inverse", "area", "ranking", "risk", "miscalibration", "score", "gain"]
"""How the interval of a measure is found; `demur.returns.evaluate` has a method for each, which says what it does.

`score` suits every measure, `share` every proportion of rows; `area` and `inverse` are of one measure each.
"""
Frame = nw.LazyFrame[Any] | nw.DataFrame[Any]


@dataclass(frozen=True)
class Measure(ABC):
    """A number read from totals that can be added over rows, files, dialogues and replicates.

    The fields of a measure are its parameters, and its `repr` is its identity. `finish` works along leading axes, so
    one call reads a thousand replicates.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    better: ClassVar[Literal["lower", "higher"]]
    reference: ClassVar[str]
    interval: ClassVar[IntervalKind] = "score"
    """Which kind of interval suits the measure; a subclass has that of its parent unless it names another."""
    bottom: ClassVar[float] = 0.0
    """The lowest value a measure of rankings can take; the highest is 1."""

    independent: ClassVar[bool] = False
    """Whether the value itself, not only its interval, supposes independent rows that count alike."""

    @abstractmethod
    def reduce(self, frame: Frame) -> Any:
        """Totals of the judged rows, computed by the engine that holds them."""

    @abstractmethod
    def finish(self, totals: Any) -> NDArray[np.float64]:
        """The value that totals give; NaN where it has no meaning."""

    def trials(self, totals: Any) -> float:
        """Of what share of the rows a proportion is a share."""
        return 1.0

    def settled(self, totals: Any) -> Measure:
        """The measure whose interval is given: where rows chose a parameter, as a threshold, that with it fixed."""
        return self

    def why_undefined(self, totals: Any) -> str:
        """Why these totals give no value."""
        return f"{self.title} has no meaning on these rows"

    def __call__(self, frame: Any) -> Score:
        """Score of judged rows (`answered`, `right`, `confidence`, `weight`; any frame narwhals understands)."""
        return Score.of(self, self.reduce(nw.from_native(frame)))


@dataclass(frozen=True)
class SweepMeasure(Measure):
    """A measure that reads the threshold sweep."""

    def reduce(self, frame: Frame) -> Sweep:
        """The sweep of the judged rows."""
        return Sweep.from_frame(frame)

    def value_of(self, sweep: Sweep) -> NDArray[np.float64]:
        """What the sweep gives, computed once however many ask for it."""
        known: dict[Measure, NDArray[np.float64]] = sweep.values
        if self not in known:
            known[self] = self.finish(sweep)
        return known[self]


@dataclass(frozen=True)
class TermMeasure(Measure):
    """A measure whose totals are a few sums over rows."""

    @abstractmethod
    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """One expression per total, over the judged columns; its weighted sum over rows is the total.

        `of` makes the expressions: narwhals, for any engine, or Polars, whose own take a fifth of the time to make.
        """

    def reduce(self, frame: Frame) -> NDArray[np.float64]:
        """The weighted sums of the terms, and the number of rows last."""
        return term_totals([self], frame)[0]


def term_totals(measures: Sequence[TermMeasure], frame: Frame) -> list[NDArray[np.float64]]:
    """The totals of each of several measures, from one pass over the rows."""
    rows: Any = frame.lazy()
    of: Any = nw
    if rows.implementation.is_polars():
        rows, of = rows.to_native(), pl
    kinds = [measure.terms(of) for measure in measures]
    sums = {
        f"{place}:{name}": (term * of.col("weight")).sum()
        for place, terms in enumerate(kinds)
        for name, term in terms.items()
    }
    row = nw.from_native(rows.select(**sums, _rows=of.len())).collect("polars").to_native().row(0)
    if measures and not row[-1]:
        raise DataError(f"{measures[0].title} needs at least one row; the table is empty")
    values = iter(row)
    return [np.array([*(float(next(values) or 0.0) for _ in terms), float(row[-1])]) for terms in kinds]


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Totals that may be added, and the value and signature they give.

    >>> from demur.returns.measures import AUGRC
    >>> from demur.core.stats.sweep import Sweep
    >>> first = Score.of(AUGRC(), Sweep.of([0.9, 0.4], [True, False]))
    >>> second = Score.of(AUGRC(), Sweep.of([0.7, 0.6], [False, True]))
    >>> round((first + second).value, 4), (first + second).n
    (0.1875, 4)
    """

    measure: Measure
    totals: Any
    n: int
    data: str

    @classmethod
    def of(cls, measure: Measure, totals: Any) -> Score:
        """Score whose row count and data digest come from the totals themselves."""
        if isinstance(totals, np.ndarray):
            return cls(measure, totals, int(totals[-1]), digest_of(totals))
        return cls(measure, totals, totals.n, totals.digest())

    @property
    def value(self) -> float:
        """The value that the totals give; NaN where undefined."""
        return float(self.measure.finish(self.totals))

    @property
    def why(self) -> str | None:
        """Why the value is undefined, or None where it is defined."""
        return self.measure.why_undefined(self.totals) if np.isnan(self.value) else None

    @property
    def signature(self) -> str:
        """Measure with its parameters, rows, digest of the data, version."""
        return signature(self.measure, self.n, self.data)

    def __add__(self, other: Score) -> Score:
        if self.measure != other.measure:
            raise DataError(f"scores of {self.measure!r} and {other.measure!r} cannot be added; use one measure")
        return Score.of(self.measure, self.totals + other.totals)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Score):
            return NotImplemented
        return (self.measure, self.n, self.data) == (other.measure, other.n, other.data)

    def __hash__(self) -> int:
        return hash((self.measure, self.n, self.data))

    def to_dict(self) -> dict[str, Any]:
        """The score as plain values, null with a reason where undefined."""
        value = self.value
        shown: dict[str, Any] = {"value": None, "why": self.why} if np.isnan(value) else {"value": value}
        return {**shown, "n": self.n, "signature": self.signature}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a signature says, read back."""

    measure: Measure
    n: int
    data: str
    version: str


def signature(measure: Measure, n: int, data: str) -> str:
    """One line that says how a number was made."""
    return f"{measure!r} | n={n} | data={data} | demur {__version__}"


def digest_of(totals: NDArray[np.float64]) -> str:
    """A short name for a few totals, blind to the last digits, which the order of summing in an engine may move."""
    return hashlib.blake2b(" ".join(f"{total:.9g}" for total in totals).encode(), digest_size=8).hexdigest()


def parse_signature(text: str, measures: Mapping[str, type[Measure]]) -> Signature:
    """The parts of a signature; `measures` maps class names to classes (see `demur.nbest_lists.measures`)."""
    match = re.fullmatch(r"(\w+)\((.*)\) \| n=(\d+) \| data=(\w+) \| demur (\S+)", text)
    if match is None or match[1] not in measures:
        raise DataError("a signature reads `MEASURE(parameters) | n=N | data=DIGEST | demur VERSION`", got=text)
    return Signature(_parsed_measure(measures[match[1]], match[2]), int(match[3]), match[4], match[5])


def _parsed_measure(kind: type[Measure], arguments: str) -> Measure:
    known = sorted(field.name for field in fields(kind))
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            raise ValueError
        return kind(**{str(keyword.arg): _literal(keyword.value) for keyword in call.keywords})
    except (SyntaxError, TypeError, ValueError):
        raise DataError(f"{kind.__name__} takes the parameters {known}", got=arguments) from None


def _literal(node: ast.expr) -> Any:
    """A literal, with `inf` and `-inf` as Python prints them."""
    text = ast.unparse(node)
    return float(text) if text in ("inf", "-inf") else ast.literal_eval(node)
