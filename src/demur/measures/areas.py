"""Areas of the error-return family, and how well confidences rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from demur.errors import UsageError
from demur.measures.base import SweepMeasure
from demur.measures.sweep import Sweep, ratio

Array = NDArray[np.float64]
Convention = Literal["trapezoid", "mean"]


@dataclass(frozen=True)
class AUGRC(SweepMeasure):
    """Area under the error-return curve: the mean error rate over all non-return rates. Lower is better.

    0 when every answer is right, 0.5 when every answer is wrong; a system that ranks at random has err/2, an oracle
    err^2/2. It equals the sum over errors of (rank - 1/2) / N^2, with mid-ranks for ties, counted from the least
    confident. Where the system withholds by itself the area runs over [x0, 1].
    Reference: Traub et al. (2024), generalised risk; the curve is that of Artstein (2011).

    >>> AUGRC().finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).item()
    0.125
    """

    name: ClassVar = "augrc"
    title: ClassVar = "area under the error-return curve (AUGRC)"
    better: ClassVar = "lower"
    reference: ClassVar = "Traub et al. (2024); Artstein (2011), section 3"
    interval: ClassVar = "area"

    def finish(self, totals: Sweep) -> Array:
        """Trapezoid over the cutoffs, which is exact because the curve is straight between them."""
        at_level = np.add(totals.right, totals.wrong, dtype=np.float64)
        area = ratio((at_level * _mean_height(totals)).sum(axis=-1), np.square(totals.total))
        return np.where(totals.answered > 0, area, np.nan)

    def why_undefined(self, totals: Sweep) -> str:
        """No answers, no curve."""
        return "nothing was answered, so there is no curve"


@dataclass(frozen=True)
class AURC(SweepMeasure):
    """Area under selective risk over coverage. Lower is better; the convention is part of the name.

    `trapezoid` joins the risks at the cutoffs that the system really has by straight lines, and holds the first one
    down to coverage 0. `mean` averages the expected risk of returning the k most confident answers over k, with ties
    in random order. Libraries differ here: state the convention. The default is `trapezoid`, since it reads the
    plotted curve. Where the system withholds by itself the area runs over coverage [0, 1 - x0].
    Reference: Geifman and El-Yaniv (2017).

    >>> sweep = Sweep.of([0.9, 0.8], [True, False])
    >>> AURC().finish(sweep).item(), AURC("mean").finish(sweep).item()
    (0.125, 0.25)
    """

    convention: Convention = "trapezoid"

    name: ClassVar = "aurc"
    title: ClassVar = "area under selective risk over coverage (AURC)"
    better: ClassVar = "lower"
    reference: ClassVar = "Geifman and El-Yaniv (2017)"
    interval: ClassVar = "risk"

    def __post_init__(self) -> None:
        _check_convention(self.convention)

    def finish(self, totals: Sweep) -> Array:
        """The area under the named convention; undefined when nothing was answered."""
        returned, errors = totals.from_the_top
        return _aurc(returned, errors, totals.total, self.convention)

    def why_undefined(self, totals: Sweep) -> str:
        """No answers, no risk."""
        return "nothing was answered, so there is no risk to average"


@dataclass(frozen=True)
class EAURC(SweepMeasure):
    """AURC above that of an oracle with the same error rate. 0 is a perfect ranking; lower is better.

    The oracle is read where the convention reads the system: at the system's own cutoffs (`trapezoid`) or at every
    count (`mean`), so the value is never below 0, ties or not. Reference: Geifman et al. (2019).

    >>> EAURC().finish(Sweep.of([0.9, 0.8, 0.7], [True, True, False])).item()
    0.0
    """

    convention: Convention = "trapezoid"

    name: ClassVar = "e_aurc"
    title: ClassVar = "excess AURC over the oracle (e-AURC)"
    better: ClassVar = "lower"
    reference: ClassVar = "Geifman et al. (2019)"
    interval: ClassVar = "risk"

    def __post_init__(self) -> None:
        _check_convention(self.convention)

    def finish(self, totals: Sweep) -> Array:
        """AURC less the oracle's."""
        returned, errors = totals.from_the_top
        right = (totals.answered - totals.errors)[..., None]
        if self.convention == "trapezoid":
            oracle = _aurc(returned, np.maximum(returned - right, 0.0), totals.total, "trapezoid")
        else:
            oracle = _oracle_mean_risk(totals)
        return np.asarray(np.maximum(_aurc(returned, errors, totals.total, self.convention) - oracle, 0.0))

    def why_undefined(self, totals: Sweep) -> str:
        """No answers, no risk."""
        return "nothing was answered, so there is no risk to average"


@dataclass(frozen=True)
class AUROC(SweepMeasure):
    """Probability that a right answer has a higher confidence than a wrong one, ties half. Higher is better.

    0.5 is no better than chance. It says nothing of how many errors there are: the same value goes with any error
    rate. Reference: Artstein (2011), section 2, for the caution.

    >>> AUROC().finish(Sweep.of([0.9, 0.8, 0.8, 0.1], [True, True, False, False])).item()
    0.875
    """

    name: ClassVar = "auroc"
    title: ClassVar = "AUROC of confidence for correctness"
    better: ClassVar = "higher"
    reference: ClassVar = "Artstein (2011), section 2"
    interval: ClassVar = "ranking"

    def finish(self, totals: Sweep) -> Array:
        """Mann-Whitney count over the tied levels, divided by the number of pairs."""
        wrong_below = np.cumsum(totals.wrong, axis=-1, dtype=np.float64) - totals.wrong / 2
        pairs = totals.errors * (totals.answered - totals.errors)
        return ratio((totals.right * wrong_below).sum(axis=-1), pairs)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs answers of both kinds."""
        if float(totals.answered) == 0:
            return "nothing was answered"
        return "every answer is right" if float(totals.errors) == 0 else "no answer is right"


@dataclass(frozen=True)
class RankingSkill(SweepMeasure):
    """How much of the way from a random to a perfect ranking the confidences go: 1 oracle, 0 random. Higher is better.

    (A_random - A) / (A_random - A_oracle) of the areas under the error-return curve; with x0 = 0 it is 2 AUROC - 1.
    Negative where wrong answers are the more confident ones.

    >>> RankingSkill().finish(Sweep.of([0.9, 0.8, 0.8, 0.1], [True, True, False, False])).item()
    0.75
    """

    name: ClassVar = "ranking_skill"
    title: ClassVar = "ranking skill"
    better: ClassVar = "higher"
    reference: ClassVar = "Artstein (2011), section 3, for the curve"
    interval: ClassVar = "ranking"
    bottom: ClassVar = -1.0

    def finish(self, totals: Sweep) -> Array:
        """Position of the area between those of the random and the oracle ranking."""
        error, reach = ratio(totals.errors, totals.total), ratio(totals.answered, totals.total)
        random, oracle = error * reach / 2, np.square(error) / 2
        return ratio(random - AUGRC().finish(totals), random - oracle)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs answers of both kinds."""
        return AUROC().why_undefined(totals) + ", so every ranking is as good"


def _mean_height(sweep: Sweep) -> Array:
    """Errors returned halfway through each level."""
    through = np.cumsum(sweep.wrong, axis=-1, dtype=np.float64)
    return np.asarray(through[..., -1:] - through + sweep.wrong / 2)


def _aurc(returned: Array, errors: Array, total: Any, convention: Convention) -> Array:
    if returned.shape[-1] == 0:
        return np.full(returned.shape[:-1], np.nan)
    if convention == "trapezoid":
        risk = np.divide(errors, returned, out=np.zeros_like(errors), where=returned > 0)
        before = risk.copy()  # the first risk is held down to coverage 0, past levels that a replicate left empty
        np.copyto(before[..., 1:], risk[..., :-1], where=returned[..., :-1] > 0)
        width = np.diff(returned, axis=-1, prepend=0.0)
        area = (width * (risk + before) / 2).sum(axis=-1)
    else:
        area = _expected_risks(returned, errors).sum(axis=-1)
    return np.where(returned[..., -1] > 0, ratio(area, total), np.nan)


def _expected_risks(returned: Array, errors: Array) -> Array:
    """Sum, over the counts k inside each level, of the expected risk of returning the k most confident.

    Inside a level of m answers with w errors, after a answers with E errors, the risk at k is (E + (k-a) w/m) / k;
    summed over k = a+1 .. a+m this is m w/m + (E - a w/m)(H(a+m) - H(a)), H the harmonic numbers.
    """
    start, errors_before = (
        np.concatenate([np.zeros((*part.shape[:-1], 1)), part[..., :-1]], axis=-1) for part in (returned, errors)
    )
    size, wrong = returned - start, errors - errors_before
    rate = np.divide(wrong, size, out=np.zeros_like(wrong), where=size > 0)
    harmonic = digamma(returned + 1) - digamma(start + 1)
    return np.asarray(wrong + (errors_before - start * rate) * harmonic)


def _oracle_mean_risk(sweep: Sweep) -> Array:
    right, wrong = sweep.answered - sweep.errors, sweep.errors
    return ratio(wrong - right * (digamma(right + wrong + 1) - digamma(right + 1)), sweep.total)


def _check_convention(convention: str) -> None:
    if convention not in ("trapezoid", "mean"):
        raise UsageError(f'AURC has the conventions "trapezoid" and "mean"; got "{convention}"')
