"""Promises about new inputs: which thresholds, or draws among ties, keep a limit with a given confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.stats.resampling import Sample
from demur.core.stats.sweep import RATE_ROUNDING, Sweep, Ties, ratio, spans
from demur.errors import UsageError

Limited = Literal["error", "risk", "nonreturn"]
"""What a limit is on: errors of all inputs, errors of the answers returned, or non-returns of all inputs."""

SEQUENCE = "fixed-sequence Learn-then-Test"
EXACT = f"{SEQUENCE}, exact binomial (Clopper-Pearson) bound"
BOUNDED = f"{SEQUENCE}, Hoeffding-Bentkus bound over dialogues or weighted rows"

STARTS = 5
"""Cutoffs from which a promise about the answers returned is tested, each with its part of the chance to fail."""

STEPS = 100
"""Probabilities with which tied answers may be returned, evenly spaced."""

SPLIT = 0.005
"""Share of the inputs from which tied answers are worth a draw."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A promise about new data: what `of` names stays under `bound` with probability 1 - `delta` over the sample."""

    bound: float
    delta: float
    method: str
    upper: float | None
    """Upper confidence bound of the rate under the chosen rule, where it has a closed form."""
    of: Limited = "error"


@dataclass(frozen=True, eq=False)
class ReturnRules:
    """ReturnRules from returning every answer to returning none, each returning less than the one before.

    A rule returns every answer from the cutoff at `place` of the curve on and, with `probability`, each answer of the
    next lower confidence. `returned` and `wrong` are weights; of draws they are expected, or those of one draw.
    """

    place: NDArray[np.int64]
    probability: Array
    returned: Array
    wrong: Array
    total: float

    @classmethod
    def of(cls, sweep: Sweep, ties: Ties = "together", rng: np.random.Generator | None = None) -> ReturnRules:
        """The rules that a sweep allows; with `rng` the draw among ties is made once for every row.

        >>> rules = ReturnRules.of(Sweep.of([0.9, 0.5, 0.5], [True, False, True]), "randomise")
        >>> rules.place[[0, 50, 100]].tolist(), rules.probability[[0, 50, 100]].tolist()
        ([0, 1, 1], [0.0, 0.5, 0.0])
        >>> rules.returned[[0, 50, 100]].tolist(), rules.wrong[[0, 50, 100]].tolist()
        ([3.0, 2.0, 1.0], [1.0, 0.5, 0.0])
        """
        answers, errors = (np.append(0.0, part)[::-1] for part in sweep.from_the_top)
        cutoffs = answers.size
        if ties == "together":
            return cls(np.arange(cutoffs), np.broadcast_to(0.0, cutoffs), answers, errors, float(sweep.total))
        counts = np.array([answers, errors])
        parts = []
        for level in range(sweep.threshold.size):
            cells = np.array([sweep.right[level], sweep.wrong[level]], dtype=np.float64)
            parts.append((np.array([level]), np.zeros(1), counts[:, level : level + 1]))
            if cells.sum() >= max(SPLIT * sweep.total, 2.0):
                shares = np.arange(STEPS - 1, 0, -1) / STEPS
                drawn = _draw(cells, rng)[:, :0:-1] if rng is not None else cells[:, None] * shares
                above = counts[:, level + 1 : level + 2]
                parts.append((np.full(STEPS - 1, level + 1), shares, above + np.array([drawn.sum(axis=0), drawn[1]])))
        parts.append((np.array([sweep.threshold.size]), np.zeros(1), counts[:, -1:]))
        place, probability, both = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return cls(place, probability, both[0], both[1], float(sweep.total))

    def at_cutoffs_of(self, sweep: Sweep, thresholds: Array) -> ReturnRules:
        """What these rules do to the rows of a part, `thresholds` being the cutoffs of the whole."""
        answers, errors = (np.append(0.0, part)[::-1] for part in sweep.from_the_top)
        own = np.searchsorted(sweep.threshold, thresholds)
        return ReturnRules(self.place, self.probability, answers[own], errors[own], float(sweep.total))

    def counts(self, of: Limited) -> tuple[Array, Array]:
        """What a limit counts under each rule, and out of what."""
        if of == "risk":
            return self.wrong, self.returned
        whole = np.broadcast_to(self.total, self.returned.size)
        return (self.wrong if of == "error" else self.total - self.returned), whole

    def rates(self, of: Limited) -> Array:
        """The rate that a limit is on; NaN where it is out of nothing."""
        events, trials = self.counts(of)
        return ratio(events, trials)


def _draw(cells: Array, rng: np.random.Generator) -> Array:
    """Right and wrong answers of a heap whose draw lies below each multiple of 1 / STEPS, from 0 on."""
    bins = np.array([rng.multinomial(round(count), np.full(STEPS, 1 / STEPS)) for count in cells.tolist()])
    return np.concatenate([np.zeros((2, 1)), np.cumsum(bins, axis=1)[:, :-1]], axis=1)


def within_limit(rules: ReturnRules, of: Limited, most: float) -> int:
    """The rule that keeps a limit in the sample: the one that returns most or, for non-returns, errs least."""
    rates = rules.rates(of)
    kept = np.flatnonzero(rates <= most + RATE_ROUNDING)
    if of != "nonreturn":
        return int(kept[0]) if kept.size else rates.size - 1
    return int(kept[np.argmin(rules.wrong[kept])])


def promised(
    whole: ReturnRules, samples: Sequence[tuple[Sample, ReturnRules]], of: Limited, most: float, delta: float
) -> tuple[int, int] | None:
    """The rule that keeps a promise for every sample, and from how many starts it was looked for; None if none does.

    A rule passes for all samples at level delta if it passes for each of them: were one of them beyond the limit, its
    own test would pass with a chance of at most delta, so nothing need be corrected (intersection-union).
    """
    worst = np.max([p_values(sample, rules, of, most) for sample, rules in samples], axis=0)
    last = worst.size - 1
    if of == "risk":
        ideal = [p_values(sample, replace(one, wrong=np.zeros(last + 1)), of, most) for sample, one in samples]
        return _from_starts(whole, worst, np.max(ideal, axis=0), delta)
    if of == "error":  # from returning nothing on: the rate can only rise
        failed = np.flatnonzero(worst[:-1] > delta) if most < 1 else np.array([], dtype=np.int64)
        return (int(failed[-1]) + 1 if failed.size else 0), 1
    failed = np.flatnonzero(worst > delta) if most < 1 else np.array([], dtype=np.int64)  # from returning all on
    strictest = int(failed[0]) - 1 if failed.size else last
    if strictest < 0:
        return None
    return int(np.argmax(whole.wrong <= whole.wrong[strictest] + RATE_ROUNDING)), 1


def _from_starts(rules: ReturnRules, p: Array, ideal: Array, delta: float) -> tuple[int, int]:
    """The rule that returns most of those that pass in order, from one of a few starts on, and how many these are.

    The risk of the answers returned may rise and fall with the threshold, and from the strictest threshold on there are
    too few answers to tell. So testing starts at a few cutoffs that the confidences alone determine, from twice as many
    answers as the test needs without an error (`ideal`) on, each with its part of delta; it goes on to cutoffs that
    return more until one fails.
    """
    last = p.size - 1
    able = np.flatnonzero(ideal[:-1] <= delta / STARTS)
    if not able.size:
        return last, STARTS
    answers = rules.returned[0]
    first = min(2 * rules.returned[able[-1]], answers)
    wanted = first * (answers / first) ** (np.arange(STARTS) / STARTS)
    starts = np.unique(np.searchsorted(-rules.returned, -wanted + RATE_ROUNDING, side="right") - 1)
    failed = p > delta / starts.size
    reached = [int(np.flatnonzero(failed[: start + 1]).max(initial=-1)) + 1 for start in starts.tolist()]
    passed = [to for to, start in zip(reached, starts.tolist(), strict=True) if to <= start]
    return min(passed, default=last), starts.size


def p_values(sample: Sample, rules: ReturnRules, of: Limited, most: float) -> Array:
    """p-values of "the rate is beyond `most`" for every rule; 1 where there is nothing to tell it by.

    Exact binomial where rows are independent and count alike: the counts are whole numbers there, as a draw is made
    for every row. Otherwise the bound of Hoeffding and Bentkus over units.
    """
    from scipy.special import bdtr

    events, trials = rules.counts(of)
    if not sample.alike:
        return np.where(trials > 0, _hoeffding_bentkus(sample, events, trials, most), 1.0)
    p = np.ones(trials.size)
    for part in spans(trials.size):
        out_of = np.maximum(np.rint(trials[part]), 1).astype(np.int64)
        np.copyto(p[part], bdtr(np.rint(events[part]), out_of, most), where=trials[part] > 0)
    return p


def upper_bound(sample: Sample, rules: ReturnRules, place: int, of: Limited, delta: float) -> float | None:
    """Clopper-Pearson's upper bound of a rate under a rule; None where it has none, or where several were tested."""
    from scipy.special import betaincinv

    if not sample.alike or of == "risk":
        return None
    event, n = float(np.rint(rules.counts(of)[0][place])), sample.n
    return float(betaincinv(event + 1, max(n - event, 1e-12), 1 - delta)) if event < n else 1.0


def method_of(sample: Sample, of: Limited, tested: int, *, drawn: bool) -> str:
    """How a promise was made."""
    method = EXACT if sample.alike else BOUNDED
    if of == "risk":
        several = f" from {tested} starts at delta / {tested} each" if tested > 1 else ""
        method = method.replace(SEQUENCE, f"{SEQUENCE}{several}")
    if drawn:
        how = f"the draw made once for every row, seed {sample.seed}" if sample.alike else "expected losses of the draw"
        method += f"; {how}"
    return method


def too_few(groups: Mapping[str, Sample], of: Limited, most: float, delta: float) -> tuple[str, ...]:
    """Groups for which no promise could be made even if nothing in them were beyond the limit."""
    found, chance = [], delta / STARTS if of == "risk" else delta
    for name, sample in groups.items():
        sweep = sample.sweep
        trials = float(sweep.answered if of == "risk" else sweep.total)
        ideal = ReturnRules(np.zeros(1, np.int64), np.zeros(1), np.array([trials]), np.zeros(1), trials)
        if most < 1 and p_values(sample, ideal, of, most)[0] > chance:
            found.append(name)
    return tuple(found)


def check_limit(of: Limited, most: float, delta: float | None) -> None:
    """Refuse limits and chances that are no rates."""
    what = {"error": ("an error rate", 0.05), "risk": ("a share of the answers returned", 0.05)}
    name, example = what.get(of, ("a non-return rate", 0.2))
    if not 0 <= most <= 1:
        raise UsageError(f"{name} lies in [0, 1], such as {example:g}; got {most:g}")
    if delta is not None and not 0 < delta < 1:
        raise UsageError(f"delta, the chance that the promise fails, lies between 0 and 1; got {delta:g}")


def _hoeffding_bentkus(sample: Sample, events: Array, trials: Array, most: float) -> Array:
    """p-values from sums over units, each unit bounded by the heaviest one seen.

    For unit u with m trials and k events, (k - most m) / heaviest + most lies in [0, 1], and its mean exceeds `most`
    exactly when the rate does (Bates et al. 2021, after Hoeffding and Bentkus).
    """
    from scipy.special import bdtr

    heaviest, units = sample.heaviest, sample.spread.units
    mean = np.clip((events - most * trials) / (heaviest * units) + most, 0.0, 1.0)
    bentkus = np.e * bdtr(np.ceil(units * mean), units, most)
    under = np.minimum(mean, most)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(under > 0, under * np.log(under / most), 0.0)
        second = np.where(under < 1, (1 - under) * np.log((1 - under) / (1 - most)), 0.0)
    relative_entropy = np.nan_to_num(first + second, nan=0.0, posinf=np.inf)
    return np.asarray(np.minimum(np.exp(-units * relative_entropy), bentkus))
