"""How close to human: seconds of a whole study, refits at once beside one by one, and a curve beside its peers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

import numpy as np
import polars as pl

from benchmarks.arrays import Floats
from benchmarks.measuring import Line, fastest
from benchmarks.peers import installed
from demur.gold_standard.curves import Counts, batch_of, with_prior
from demur.gold_standard.fitting import CurveFit, FitOptions, draw_subjects, fit_curve
from demur.gold_standard.study import GoldOptions, GoldStudy, analyse
from demur.gold_standard.trials import TrialReading, Trials, trials
from demur.lab.wizards import simulate

SUBJECTS, TRIALS, REPLICATES = 50, 40, 1_000
SECONDS_BAR = 20.0
ONE_BY_ONE = 20
"""Refits that SciPy does; as many as ours are reckoned from these."""
REFITS_BAR = 1 / 10
CURVE_BAR = 1e-3
SIZE = f"{SUBJECTS} subjects x {TRIALS} trials"


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    study = _study()
    yield from _whole(study)
    counts = analyse(study, GoldOptions(replicates=2, checks=False)).gold.fit.counts
    with _one_thread():
        yield from _refits(counts)
        yield from _curves(counts)


def _one_thread() -> AbstractContextManager[object]:
    """Threads that wait for each other would be counted as time spent; on matrices this small they win nothing."""
    if not installed("threadpoolctl"):
        return nullcontext()
    limits: AbstractContextManager[object] = import_module("threadpoolctl").threadpool_limits(1)
    return limits


def _study() -> Trials:
    """Wizards and three systems: those of the bundled study, and B once more with other callers."""
    table = simulate(3, wizards=SUBJECTS, callers=SUBJECTS, trials=TRIALS)
    again = simulate(4, wizards=1, callers=SUBJECTS, trials=TRIALS).filter(pl.col("performer") == "B")
    whole = pl.concat([table, again.with_columns(performer=pl.lit("C"))])
    return trials(whole, reading=TrialReading(x="wer", y="completed"))[0]


def _read(study: Trials, options: GoldOptions) -> GoldStudy:
    """Everything a report shows."""
    found = analyse(study, options)
    for name in ("complexity", "impurities", "pairs", "means", "residuals", "wizards", "convergence"):
        getattr(found, name)
    return found


def _whole(study: Trials) -> Iterator[Line]:
    start = time.perf_counter()
    _read(study, GoldOptions(replicates=REPLICATES))
    spent = time.perf_counter() - start
    against = f"{REPLICATES:,} refits of every curve, all readings and checks"
    yield Line(f"whole study, {SIZE} x {len(study.performers)} performers", spent, "s", SECONDS_BAR, against)


def _refits(counts: Counts) -> Iterator[Line]:
    fit = fit_curve(counts, FitOptions(kind="spline"))
    drawn = draw_subjects([counts], REPLICATES, 0)
    few = np.asarray(drawn[:ONE_BY_ONE])
    took = fastest({"ours": lambda: fit.refits(drawn), "theirs": lambda: _one_by_one(fit, few)}, repeats=1)
    ratio = took["ours"] / (took["theirs"] * REPLICATES / ONE_BY_ONE)
    against = f"scipy.optimize.minimize(L-BFGS-B) with gradient, {ONE_BY_ONE} of them"
    yield Line(f"{REPLICATES:,} refits of a monotone spline, {SIZE}", ratio, "x CPU", REFITS_BAR, against)
    rows = fit.family.rows(np.linspace(fit.family.low, fit.family.high, 101))
    ours, theirs = (_shares(found @ rows.T) for found in (fit.refits(few), _one_by_one(fit, few)))
    apart = float(np.abs(ours - theirs).max())
    yield Line(f"refits of a monotone spline, {SIZE}", apart, "apart", CURVE_BAR, against)


def _shares(predictor: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-predictor)))


def _one_by_one(fit: CurveFit, weights: Floats) -> Floats:
    """The same refits as one writes them with SciPy."""
    from scipy.optimize import minimize

    problem = batch_of(fit.family, fit.counts, fit.smoothness)
    bounds = [(0, None) if held else (None, None) for held in problem.bounded]

    def cost(found: Floats, totals: Floats, sizes: Floats) -> tuple[float, Floats]:
        eta, pull = problem.rows @ found, problem.penalty @ found
        value = (sizes * np.logaddexp(0, eta) - totals * eta).sum() + 0.5 * found @ pull
        return float(value), np.asarray((sizes * _shares(eta) - totals) @ problem.rows + pull)

    pairs = zip(*with_prior(fit.family, *fit.counts.weighted(weights)), strict=True)
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-12, "gtol": 1e-6}
    return np.stack(
        [
            minimize(cost, fit.coefficients, args=pair, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
            for pair in pairs
        ]
    )


def _curves(counts: Counts) -> Iterator[Line]:
    """One curve from its trials, beside packages that fit the like without keeping it monotone."""
    x, y = _single(counts)
    if version := installed("statsmodels"):
        works = {"ours": lambda: fit_curve(counts, FitOptions(kind="spline")), "theirs": lambda: _b_splines(x, y)}
        took = fastest(works, repeats=3)
        against = f"statsmodels {version}: GLM(Binomial) on 13 B-splines, neither monotone nor smoothed"
        title = f"monotone spline with its smoothness chosen, {SIZE}"
        yield Line(title, took["ours"] / took["theirs"], "x CPU", None, against)
    if version := installed("scikit-learn"):
        works = {"ours": lambda: fit_curve(counts, FitOptions(kind="logistic")), "theirs": lambda: _logistic(x, y)}
        took = fastest(works, repeats=5)
        against = f"scikit-learn {version}: LogisticRegression without penalty"
        yield Line(f"two-parameter logistic curve, {SIZE}", took["ours"] / took["theirs"], "x CPU", None, against)


def _single(counts: Counts) -> tuple[Floats, Floats]:
    """Trials one by one."""
    totals, sizes = (part.round().astype(int) for part in counts.whole)
    x = np.repeat(counts.places, sizes)
    y = np.concatenate([np.arange(size) < total for total, size in zip(totals, sizes, strict=True)])
    return x, y.astype(np.float64)


def _b_splines(x: Floats, y: Floats) -> object:
    from statsmodels.formula.api import glm
    from statsmodels.genmod.families import Binomial

    return glm("y ~ bs(x, df=13)", {"x": x, "y": y}, family=Binomial()).fit()


def _logistic(x: Floats, y: Floats) -> object:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=np.inf).fit(x[:, None], y)
