"""Small studies for the tests of curves: trials from arrays, and trials drawn from a known truth."""

import numpy as np

from demur.gold_standard.curves import counts_of
from demur.gold_standard.fitting import FitOptions, Performer, draw_subjects, fit_curve
from demur.gold_standard.trials import Trials


def trials_of(x, y, *, n=None, subject=None, kind="trials", lower=0.0, upper=1.0, subjects=None):
    """The trials of one performer; without subjects each trial is one of its own."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    subject = np.arange(len(x)) if subject is None else np.asarray(subject)
    subjects = int(subject.max()) + 1 if subjects is None else subjects
    return Trials(
        study="study",
        x_name="wer",
        y_name="done",
        kind=kind,
        lower=lower,
        upper=upper,
        performers=("wizard",),
        roles=("gold",),
        performer=np.zeros(len(x), dtype=np.int64),
        x=x,
        y=y,
        n=np.ones(len(x)) if n is None else np.asarray(n, dtype=float),
        subject=subject.astype(np.int64),
        subjects=tuple(f"s{k}" for k in range(subjects)),
        combination=np.zeros(len(x), dtype=np.int64),
        combinations=(frozenset(),),
        independent=False,
    )


def counted(x, y, **known):
    trials = trials_of(x, y, **known)
    return counts_of(trials, np.ones(len(trials), dtype=bool))


def share(eta):
    return 1 / (1 + np.exp(-np.asarray(eta, dtype=float)))


def straight(x):
    """Straight on the logit scale."""
    return share(3 - 5 * x)


def plateau(x):
    """Flat, then a drop: what gold standards look like."""
    return np.where(x < 0.6, 0.95, 0.95 - 0.9 * np.clip((x - 0.6) / 0.15, 0, 1))


def kinked(x):
    """Two drops with a level stretch between them."""
    return 0.95 - 0.45 * share((x - 0.2) * 60) - 0.45 * share((x - 0.8) * 60)


def simulated(truth, *, subjects=12, trials=40, seed=0, spread=0.0, grid=41):
    """Places from 0 to 1, 0/1 outcomes and subjects, who differ by `spread` on the logit scale."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(subjects), trials)
    x = rng.integers(0, grid, len(subject)) / (grid - 1)
    x[0], x[-1] = 0.0, 1.0
    rate = truth(x)
    if spread:
        rate = share(np.log(rate / (1 - rate)) + rng.normal(0, spread, subjects)[subject])
    return x, (rng.random(len(x)) < rate).astype(float), subject


def simulated_counts(truth, **known):
    x, y, subject = simulated(truth, **known)
    return counted(x, y, subject=subject)


def performer_of(counts, *, kind="spline", direction="harmful", replicates=60, seed=0, level=0.95):
    fit = fit_curve(counts, FitOptions(kind=kind, direction=direction))
    noise = np.random.default_rng(seed).standard_normal(replicates)
    return Performer("wizard", "gold", fit, fit.refits(draw_subjects([counts], replicates, seed)), noise, level)
