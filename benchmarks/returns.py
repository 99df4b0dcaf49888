"""The error-return curve: speed, memory, replicates, peers, and agreement with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.arrays import KINDS, Flags, Floats, answers, argsort_and_cumsum
from benchmarks.measuring import Line, fastest
from benchmarks.memory import WORKS
from benchmarks.peers import (
    area_of_accuracy,
    auroc,
    installed,
    interval_of_auroc,
    promised_threshold,
    roc_points,
)
from demur.core.stats.resampling import Rows, Sample
from demur.core.stats.sweep import Sweep
from demur.returns.measures import AURC, AUROC, curve_at
from demur.returns.threshold import threshold_by_error

CURVE_BARS = {100_000: 0.7, 1_000_000: 0.65, 10_000_000: 0.3}
REPEATS = {100_000: 40, 1_000_000: 8, 10_000_000: 5}
MEMORY_ROWS = 10_000_000
MEMORY_BAR = 250.0
REPLICATE_ROWS = 100_000
REPLICATE_BAR = 100.0
PEER_REPLICATES = 10
AGREEMENT_BAR = 1e-12
BASELINE = "np.argsort + np.cumsum, same arrays"

Work = Callable[[Floats, Flags], object]


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    for n, bar in CURVE_BARS.items():
        for kind, decimals in KINDS.items():
            yield from _speed(n, kind, decimals, bar)
    yield from _memory()
    yield from _replicates()
    yield from _agreement()


def _speed(n: int, kind: str, decimals: int | None, bar: float) -> Iterator[Line]:
    confidence, right = answers(n, decimals)
    works: dict[str, tuple[Work, float | None]] = {
        "curve as counts per cutoff": (WORKS["counts"], bar),
        "curve with its rates": (WORKS["rates"], bar),
        **{f"{name} {version}: {what}": (work, None) for name, version, what, work in _peers()},
    }
    calls = {name: partial(work, confidence, right) for name, (work, _) in works.items()}
    took = fastest({"": partial(argsort_and_cumsum, confidence, right), **calls}, repeats=REPEATS[n])
    for name, (_, its_bar) in works.items():
        yield Line(f"{name}, {n:.0e} {kind}", took[name] / took[""], "x CPU", its_bar, BASELINE)


def _peers() -> Iterator[tuple[str, str, str, Work]]:
    known = (("scikit-learn", "roc_curve", roc_points), ("mapie", "auarc", area_of_accuracy))
    for name, what, work in known:
        version = installed(name)
        if version is not None:
            yield name, version, what, work


def _memory() -> Iterator[Line]:
    for kind in KINDS:
        for name, work, bar in (
            ("curve as counts per cutoff", "counts", MEMORY_BAR),
            ("curve with its rates", "rates", MEMORY_BAR),
            ("np.argsort + np.cumsum", "numpy", None),
            *((f"{name} {version}: {what}", name, None) for name, version, what, _ in _peers()),
        ):
            resident, traced = _extra_memory(work, kind)
            title = f"{name}, {MEMORY_ROWS:.0e} {kind}: extra"
            yield Line(f"{title} resident memory", resident, "MB", bar, "before the call, in a process of its own")
            yield Line(f"{title} as tracemalloc sees it", traced, "MB", None, "without Polars' own allocations")


def _extra_memory(work: str, kind: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.memory", work, kind, str(MEMORY_ROWS)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(printed[0]), float(printed[1])


def _replicates() -> Iterator[Line]:
    confidence, right = answers(REPLICATE_ROWS, None)
    x = np.linspace(0, 1, 1000)
    independent = Rows.of(confidence, right)
    dialogues = Rows(
        confidence, right, independent.answered, independent.weight, np.arange(REPLICATE_ROWS, dtype=np.int64) // 10
    )

    def replicates(rows: Rows) -> object:
        return curve_at(Sample(rows, replicates=1000, levels=x.size).drawn, x)

    took = fastest(
        {
            "one": lambda: Sweep.of(confidence, right).rates,
            "rows": lambda: replicates(independent),
            "dialogues": lambda: replicates(dialogues),
        },
        repeats=5,
    )
    against = "one curve with its rates"
    title = "1,000 bootstrap curves on 1,000 points, n = 1e5"
    yield Line(title, took["rows"] / took["one"], "x CPU", REPLICATE_BAR, against)
    yield Line(f"{title}, 10,000 dialogues", took["dialogues"] / took["one"], "x CPU", None, against)
    if installed("scikit-learn"):
        yield _peer_replicates(confidence, right, took["one"], against)


def _peer_replicates(confidence: Floats, right: Flags, one: float, against: str) -> Line:
    spent = fastest({"peer": lambda: interval_of_auroc(confidence, right, PEER_REPLICATES)}, repeats=1)["peer"]
    name = f"scipy.stats.bootstrap of scikit-learn's AUROC, 1,000 replicates reckoned from {PEER_REPLICATES}, n = 1e5"
    return Line(name, spent * 1000 / PEER_REPLICATES / one, "x CPU", None, against)


def _agreement() -> Iterator[Line]:
    for kind, decimals in KINDS.items():
        confidence, right = answers(1_000_000, decimals)
        sweep = Sweep.of(confidence, right)
        if installed("scikit-learn"):
            gap = abs(float(AUROC().finish(sweep)) - auroc(confidence, right))
            yield Line(f"AUROC, 1e+06 {kind}", gap, "apart", AGREEMENT_BAR, "scikit-learn: roc_auc_score")
        if installed("mapie"):
            yield from _agreement_with_mapie(sweep, confidence, right, kind)
    if installed("mapie"):
        yield Line(
            "thresholds by promise that differ, of 200 logs",
            _other_thresholds(200),
            "logs",
            0.0,
            "mapie: fixed_sequence",
        )


def _other_thresholds(logs: int) -> int:
    """Logs, most with tied confidences, for which MAPIE's fixed-sequence testing gives another threshold."""
    rng, other = np.random.default_rng(0), 0
    for _ in range(logs):
        n = int(rng.integers(5, 400))
        right = rng.random(n) < rng.random()
        confidence: Floats = np.round(0.6 * rng.random(n) + 0.3 * right, int(rng.integers(1, 4))).astype(np.float64)
        most, delta = float(rng.choice([0.05, 0.1, 0.2, 0.3])), float(rng.choice([0.05, 0.1]))
        ours = threshold_by_error(Sample(Rows.of(confidence, right)), most, delta=delta).threshold
        theirs = promised_threshold(confidence, right, most, delta)
        other += not (ours == theirs or (np.isnan(ours) and np.isnan(theirs)))
    return other


def _agreement_with_mapie(sweep: Sweep, confidence: Floats, right: Flags, kind: str) -> Iterator[Line]:
    if np.all(sweep.right + sweep.wrong == 1):
        gap = abs(float(AURC("mean").finish(sweep)) - (1 - area_of_accuracy(confidence, right)))
        yield Line(f"AURC (mean), 1e+06 {kind}", gap, "apart", AGREEMENT_BAR, "mapie: 1 - auarc")
        return
    orders = [np.argsort(right, kind="stable"), np.argsort(~right, kind="stable")]
    theirs = [area_of_accuracy(confidence[order], right[order]) for order in orders]
    ours = [float(AURC("mean").finish(Sweep.of(confidence[order], right[order]))) for order in orders]
    against = "the same rows in another order"
    yield Line(f"AURC (mean), 1e+06 {kind}: moved by row order", abs(ours[0] - ours[1]), "apart", 0.0, against)
    yield Line(f"mapie: auarc, 1e+06 {kind}: moved by row order", abs(theirs[0] - theirs[1]), "apart", None, against)
