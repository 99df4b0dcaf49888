"""Gaussian-process regression of dialogues: seconds, growth with their number, and a peer on fewer of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.arrays import Floats
from benchmarks.measuring import Line, fastest
from benchmarks.peers import installed
from demur.core.stats.smoothing import smooth

DIALOGUES = 2_000
SECONDS_BAR = 5.0
MANY = 20_000
PEER_DIALOGUES = 500
LIKELIHOOD_BAR = 1e-3
FLAT = 1e6
"""Variance of the peer's constant, which stands for the flat prior of ours."""


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    yield from _seconds()
    if installed("scikit-learn"):
        yield from _peer()


def _dialogues(n: int) -> tuple[Floats, Floats]:
    """ICE and reward of simulated dialogues: the worse understood, the less often they succeed."""
    rng = np.random.default_rng(8)
    ice = rng.gamma(3.0, 0.45, n)
    success = rng.random(n) < 1 / (1 + np.exp(1.2 * ice - 2.5))
    return ice, np.asarray(20.0 * success - rng.poisson(5 + 2 * ice), dtype=np.float64)


def _seconds() -> Iterator[Line]:
    few, many = _dialogues(DIALOGUES), _dialogues(MANY)
    spent = min(_wall(lambda: smooth(*few)) for _ in range(3))
    against = "fitted parameters, mean and error on 120 places"
    yield Line(f"Gaussian process on {DIALOGUES:,} dialogues", spent, "s", SECONDS_BAR, against)
    took = fastest({"few": lambda: smooth(*few), "many": lambda: smooth(*many)}, repeats=1)
    growth = took["many"] / took["few"]
    yield Line(f"Gaussian process on {MANY:,} dialogues", growth, "x CPU", None, f"{DIALOGUES:,} dialogues")


def _peer() -> Iterator[Line]:
    x, y = _dialogues(PEER_DIALOGUES)
    took = fastest({"ours": lambda: smooth(x, y), "theirs": lambda: _peer_likelihood(x, y)}, repeats=1)
    name = f"scikit-learn {installed('scikit-learn')}: GaussianProcessRegressor, {PEER_DIALOGUES} dialogues"
    against = "ours, same dialogues"
    yield Line(name, took["theirs"] / took["ours"], "x CPU", None, against)
    short = max(0.0, _peer_likelihood(x, y) - smooth(x, y).log_likelihood)
    title = f"log likelihood short of scikit-learn's, {PEER_DIALOGUES} dialogues"
    yield Line(title, short, "apart", LIKELIHOOD_BAR, "GaussianProcessRegressor from one start")


def _peer_likelihood(x: Floats, y: Floats) -> float:
    """What scikit-learn finds for the same model, from one start."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(FLAT, "fixed") + ConstantKernel(10.0, (1e-3, 1e8)) * Matern(1.0, nu=2.5) + WhiteKernel(50.0)
    found = GaussianProcessRegressor(kernel).fit(x[:, None], y).log_marginal_likelihood_value_
    return float(found) + 0.5 * math.log(2 * math.pi * FLAT)


def _wall(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
