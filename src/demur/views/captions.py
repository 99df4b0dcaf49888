"""What stands over and under an error-return plot: title, facts and the description for screen readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from demur.analyses.bands import Band
from demur.analyses.evaluation import Evaluation
from demur.analyses.threshold import Choice
from demur.measures.curves import ErrorReturnCurve
from demur.measures.returns import ErrorAtNonreturn
from demur.views.numbers import inputs, point_words
from demur.views.words import percent

Region = tuple[float, float]


class Drawn(Protocol):
    """What is drawn as a line: an evaluation, or a curve without a band."""

    @property
    def name(self) -> str:
        """Its name in the legend."""

    @property
    def n(self) -> int:
        """Inputs behind it."""

    @property
    def clustered(self) -> bool:
        """Whether inputs come in dialogues."""

    @property
    def curve(self) -> ErrorReturnCurve:
        """The curve itself."""

    @property
    def band(self) -> Band | None:
        """Its bands, where there are any."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A curve alone, drawn without a band."""

    curve: ErrorReturnCurve
    band: Band | None = None
    clustered: bool = False

    @property
    def name(self) -> str:
        """The curve's name."""
        return self.curve.name

    @property
    def n(self) -> int:
        """Inputs behind the curve."""
        return self.curve.sweep.n


def neutral_title(drawn: Sequence[Drawn], region: Region | None) -> str:
    """What the curves are, with the numbers of a single one: nothing here says that one is better."""
    slices = [one for one in drawn[1:] if isinstance(one, Evaluation) and one.part is not None]
    if len(drawn) > 1 and len(slices) < len(drawn) - 1:
        return f"Error-return curves of {len(drawn)} systems"
    first = drawn[0]
    forced, withheld = percent(float(first.curve.error[0])), first.curve.floor
    start = "when all is returned" if withheld == 0 else f"at {percent(withheld)} non-return, its least"
    return f"{first.name}: {forced} errors {start}{_at_point(first, region, ', ')}"


def subtitle(
    drawn: Sequence[Drawn], region: Region | None, *, bands: str, left_out: int = 0, crossings: bool = False
) -> list[str]:
    """The facts a reader needs to read the plot: inputs, bands, shaded strip, where curves start."""
    parts = [inputs([one.n for one in drawn], clustered=any(one.clustered for one in drawn))]
    parts += _band_words(drawn, bands)
    if region is not None:
        parts.append(f"shaded strip: critical region, {percent(region[0])} to {percent(region[1])}")
    if len(drawn) > 1:
        sliced = any(isinstance(one, Evaluation) and one.part is not None for one in drawn)
        parts.append("thickest line: all inputs" if sliced else "thickest line: baseline")
    if left_out:
        parts.append(f"the {len(drawn) - 1} worst of {len(drawn) - 1 + left_out} slices")
    if crossings:
        parts.append("crosses: where the better system changes")
    return [*parts, *_late_words(drawn)]


def description(drawn: Sequence[Drawn], region: Region | None, choices: Sequence[Choice] = ()) -> str:
    """The plot in words."""
    parts = [
        f"{one.name} falls from {percent(float(one.curve.error[0]))} at {percent(one.curve.floor)} non-return"
        + _at_point(one, region, " to ")
        for one in drawn
    ]
    marked = "".join(f" {_choice_words(choice)}" for choice in choices)
    return f"Error-return plot: error rate against non-return rate, lower is better. {'; '.join(parts)}.{marked}"


def choice_text(choice: Choice) -> str:
    """A chosen threshold as a short label."""
    return "return nothing" if math.isnan(choice.threshold) else f"threshold {choice.printed_threshold}"


def _choice_words(choice: Choice) -> str:
    promise = (
        ""
        if choice.guarantee is None
        else f"; a thin line marks the promised error rate of {percent(choice.guarantee.bound)}"
    )
    return (
        f"Marked: {choice_text(choice)}, with an error rate of {percent(choice.error)} at "
        f"{percent(choice.nonreturn)} non-return{promise}."
    )


def _at_point(one: Drawn, region: Region | None, lead: str) -> str:
    """The error rate at the point or over the range asked for; nothing where the curve starts later."""
    asked = _asked(one, region)
    value = float(asked.finish(one.curve.sweep))
    mean = "" if asked.to is None else "a mean of "
    return "" if math.isnan(value) else f"{lead}{mean}{percent(value)} {point_words(asked)} non-return"


def _asked(one: Drawn, region: Region | None) -> ErrorAtNonreturn:
    measure = one.measures.get("error_at_nonreturn") if isinstance(one, Evaluation) else None
    if isinstance(measure, ErrorAtNonreturn):
        return measure
    return ErrorAtNonreturn() if region is None else ErrorAtNonreturn(x=(region[0] + region[1]) / 2)


def _band_words(drawn: Sequence[Drawn], bands: str) -> list[str]:
    band = None if bands == "none" else next((one.band for one in drawn if one.band is not None), None)
    if band is None:
        return []
    reach = f"over {percent(band.region[0])} to {percent(band.region[1])}"
    whole = "for the whole curve" if band.region == (0.0, 1.0) else reach
    return [f"{percent(band.level)} bands {'at each point' if bands == 'pointwise' else whole}"]


def _late_words(drawn: Sequence[Drawn]) -> list[str]:
    late = [one for one in drawn if one.curve.floor > 0]
    if len(late) == 1:
        return [f"{late[0].name} starts at {percent(late[0].curve.floor)}, the share it withholds by itself"]
    return ["curves start where a system withholds by itself"] if late else []
