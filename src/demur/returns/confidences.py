"""Confidences as logs have them: on which scale they are, and whether a column that was guessed holds any.

The questions are asked of judged rows in memory and inside engines alike, and only where a glance leaves them open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import polars as pl

from demur.core.engines.engine import Lazy, collect_frame
from demur.core.io.columns import mapping_of
from demur.core.stats.calibration import ROUNDING
from demur.errors import DataError
from demur.importers.choices import current_choices
from demur.returns.judging import LOWEST, RANK_LOWEST

PERCENT = 100.0
DIGITS = 12
"""Digits of a rate read from a percentage: Polars divides by multiplying, which is off in the last digit."""

NEAR_PERCENT = 90.0
"""A column of percentages reaches up to here, as systems are sure at times; votes and scores hardly end just there."""

CLEAR = 5
"""Right and wrong answers, each, from which no confidence is expected to separate them without a single exception."""

_CONFIDENCE = nw.col("confidence")
_KNOWN = nw.col("answered") & (_CONFIDENCE > LOWEST)
_FRACTION = _KNOWN & (_CONFIDENCE > ROUNDING) & (_CONFIDENCE < 1 - ROUNDING)
_OVER = _KNOWN & (_CONFIDENCE > 1 + ROUNDING)

Scale = Literal["as it is", "percent", "mixed"]


def is_declared_percent() -> bool:
    """Whether the user says that confidences are percentages, however small they are."""
    return current_choices().confidence_scale == "percent"


@dataclass(frozen=True, slots=True)
class ScaleCounts:
    """Confidences of one system, none below 0 or above 100, by where they lie.

    >>> ScaleCounts(known=12032, fractions=12011, over=21, tens=21, split=0, high=9).scale
    'mixed'
    >>> ScaleCounts(known=1000, fractions=9, over=991, tens=900, split=940, high=120).scale
    'percent'
    >>> ScaleCounts(known=1000, fractions=0, over=800, tens=0, split=0, high=0).scale  # votes of five
    'as it is'
    """

    known: int
    fractions: int
    """Between 0 and 1."""
    over: int
    """Above 1."""
    tens: int
    """10 or more."""
    split: int
    """Above 1 and not whole."""
    high: int
    """90 or more."""

    @property
    def scale(self) -> Scale:
        """What the column says: mixed where both scales are there with nothing between, or with whole numbers only.

        A column that passes from fractions through single digits to tens is one scale, as no two scales meet so.
        """
        between = self.over - self.tens
        if self.fractions and self.tens and (min(self.fractions, self.tens) > between or 2 * self.split < self.over):
            return "mixed"
        return "percent" if self.high and 2 * self.tens >= self.known else "as it is"

    @property
    def may_be_percent(self) -> bool:
        """Whether they are on one scale, most of them 10 or more, but do not come near 100.

        >>> ScaleCounts(known=400, fractions=0, over=400, tens=390, split=0, high=0).may_be_percent
        True
        """
        return self.scale == "as it is" and 2 * self.tens >= self.known

    @property
    def without_strays(self) -> ScaleCounts:
        """The counts without those of the rarer scale, where two are mixed."""
        if self.scale != "mixed":
            return self
        if self.fractions < self.over:
            return replace(self, known=self.known - self.fractions, fractions=0)
        return replace(self, known=self.known - self.over, over=0, tens=0, split=0, high=0)


def scale_counts(judged: Lazy, keys: Sequence[str] = ("system",)) -> dict[str | None, ScaleCounts]:
    """The counts of each system that has a confidence above 1 and none below 0 or above 100."""
    inside = nw.when(_OVER & (_CONFIDENCE <= PERCENT)).then(_CONFIDENCE).otherwise(0.0)  # Spark rounds small ones only
    parts = {
        "known": _KNOWN,
        "fractions": _FRACTION,
        "over": _OVER,
        "tens": _KNOWN & (_CONFIDENCE >= 10),
        "split": inside.floor() != inside,
        "high": _KNOWN & (_CONFIDENCE >= NEAR_PERCENT),
        "elsewhere": _KNOWN & ((_CONFIDENCE < -ROUNDING) | (_CONFIDENCE > PERCENT + ROUNDING)),
    }
    sums: dict[str, Any] = {name: nw.when(condition).then(1).count() for name, condition in parts.items()}
    table = collect_frame(judged.group_by(*keys).agg(**sums) if keys else judged.select(**sums))
    rows = table.filter((pl.col("over") > 0) & (pl.col("elsewhere") == 0)).drop("elsewhere").sort(*keys or ("known",))
    return {row.pop("system", None): ScaleCounts(**row) for row in rows.iter_rows(named=True)}


_SAY_PERCENT = "if they are percent, --confidence-scale percent reads them so, and calibration is defined"


def settle_scales(
    judged: Lazy, *, keys: Sequence[str], missing_is_lowest: bool, where: str, places: Callable[[nw.Expr], str]
) -> tuple[Lazy, list[str], list[str]]:
    """The rows with percentages read as rates, notes and warnings; a column that mixes both scales is refused.

    With `missing_is_lowest` the fewer of a mixture are read as missing instead. `places` says where rows stand. What
    the user says of the scale is taken as it is said.
    """
    declared = current_choices().confidence_scale
    if declared == "as-is":
        return judged, [], []
    if declared == "percent":
        return _all_percent(judged, where, places)
    notes, warnings = [], []
    for system, counts in scale_counts(judged, keys).items():
        own: nw.Expr = nw.lit(value=True) if system is None else nw.col("system") == system
        of_which = "" if system is None else f' of system "{system}"'
        if counts.scale == "mixed":
            few = own & (_FRACTION if counts.fractions < counts.over else _OVER)
            odd, kind = min((counts.fractions, "between 0 and 1"), (counts.over, "above 1"))
            which = places(few)
            listed = f" ({which})" if which else ""
            rule = f"confidences{of_which} mix 0 to 1 with 0 to 100: {odd:,} of {counts.known:,} are {kind}{listed}"
            if not missing_is_lowest:
                raise DataError(rule, where=f"{where}:", fix=f"write all on one scale; {RANK_LOWEST}")
            judged = judged.with_columns(confidence=nw.when(few).then(nw.lit(LOWEST)).otherwise(_CONFIDENCE))
            warnings.append(f"{rule}; these are read as missing and ranked lowest")
        if counts.without_strays.scale == "percent":
            rate = (_CONFIDENCE / PERCENT).round(DIGITS)
            judged = judged.with_columns(confidence=nw.when(own).then(rate).otherwise(_CONFIDENCE))
            notes.append(f"confidences{of_which} from 0 to 100 read as percent: thresholds are given from 0 to 1")
        if counts.may_be_percent:
            notes.append(f"confidences{of_which} read as they stand; {_SAY_PERCENT}")
    return judged, notes, warnings


def _all_percent(judged: Lazy, where: str, places: Callable[[nw.Expr], str]) -> tuple[Lazy, list[str], list[str]]:
    """The rows with all confidences divided by 100; refused where one cannot be a percentage."""
    outside = _KNOWN & ((_CONFIDENCE < -ROUNDING) | (_CONFIDENCE > PERCENT + ROUNDING))
    if count := int(collect_frame(judged.select(count=nw.when(outside).then(1).count()))["count"][0]):
        which = places(outside)
        rule = f"a confidence in percent lies between 0 and 100; {count:,} do not{f' ({which})' if which else ''}"
        raise DataError(rule, where=f"{where}:", fix="--confidence-scale as-is takes confidences as they stand")
    rate = nw.when(_KNOWN).then((_CONFIDENCE / PERCENT).round(DIGITS)).otherwise(_CONFIDENCE)
    return judged.with_columns(confidence=rate), ["confidences read as percent: thresholds are given from 0 to 1"], []


def rates_of(numbers: pl.Series) -> pl.Series:
    """Confidences of one system as rates, where their column says that they are percentages.

    >>> rates_of(pl.Series([95.0, None, 40.0])).to_list(), rates_of(pl.Series([0.5, 3.0])).to_list()
    ([0.95, None, 0.4], [0.5, 3.0])
    """
    rows = pl.LazyFrame({"answered": numbers.is_not_null(), "confidence": numbers})
    declared = current_choices().confidence_scale
    is_percent = declared == "percent"
    if declared == "guess":
        is_percent = any(one.scale == "percent" for one in scale_counts(nw.from_native(rows), ()).values())
    return (numbers / PERCENT).round(DIGITS) if is_percent else numbers


def is_guess(columns: Mapping[str, str], explicit: Mapping[str, str]) -> bool:
    """Whether the column of confidences was found by another name that these may go by."""
    return "confidence" not in explicit and columns.get("confidence", "confidence").casefold() != "confidence"


def looks_like_correctness(judged: Lazy) -> bool:
    """Whether confidences separate right from wrong without an exception, as no real ones do.

    Few answers say so only where the confidences are nothing but 0 and 1.
    """
    right, wrong = (_KNOWN & side for side in (nw.col("right"), ~nw.col("right")))
    of_right, of_wrong = (nw.when(side).then(_CONFIDENCE) for side in (right, wrong))
    sums: dict[str, Any] = {
        "lowest": of_right.min(),
        "highest_right": of_right.max(),
        "highest": of_wrong.max(),
        "lowest_wrong": of_wrong.min(),
        "right": of_right.count(),
        "wrong": of_wrong.count(),
    }
    found = collect_frame(judged.select(**sums)).row(0, named=True)
    scarce = min(found["right"], found["wrong"])
    if scarce < 2 or not found["lowest"] > found["highest"]:
        return False
    flags = (found["lowest_wrong"], found["highest"]) == (0, 0) and (found["lowest"], found["highest_right"]) == (1, 1)
    return flags or scarce >= CLEAR


def not_taken(column: str) -> str:
    """Why a column that was guessed is not taken for the confidence."""
    return (
        f'the column "{column}" is not taken for the confidence: it is higher for every right answer than for any '
        "wrong one, so it tells correctness"
    )


def take_anyway(column: str) -> str:
    """How to take a column that was guessed, another one, or none."""
    without = '--missing-confidence lowest, or missing_confidence="lowest", reads the log without confidences'
    named = mapping_of("confidence", column)
    return f"--confidence COLUMN names another column; {named} takes this one all the same; {without}"
