"""The page docs/gold_coverage.md: tables of simulated coverage, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from string import Template

import numpy as np
from numpy.typing import NDArray

from benchmarks.gold_scenes import FITS, SCALARS, WIZARDS, Plain, Scene, Wizards, X
from demur import __version__

Held = Mapping[str, NDArray[np.float64]]
Found = Mapping[Scene, Held]

WORDS = Path(__file__).with_name("gold_coverage_page.md")
BAR, BAR_SUBJECTS = 0.92, 12
"""What bands should hold at least, and with how many subjects."""
NEAR = 0.005
"""A miss by less than this part of the metric is told apart."""
METHODS = (
    ("auto, ours", "ours"),
    ("auto, closed", "closed at the bounds"),
    ("auto, plain t", "without the floor"),
    ("auto, percentile", "percentile"),
    ("logistic, ours", "logistic, ours"),
    ("logistic, percentile", "logistic, percentile"),
    ("logistic, sandwich", "logistic, sandwich"),
)


@dataclass(frozen=True, slots=True)
class GoldRun:
    """How the simulation was run."""

    studies: int
    replicates: int
    seed: int

    @property
    def command(self) -> str:
        """The command that does it again."""
        options = f"--studies {self.studies} --replicates {self.replicates} --seed {self.seed}"
        return f"python -m benchmarks.gold_coverage {options}"

    def noise(self, rate: float) -> float:
        """Monte-Carlo standard error of a share."""
        return float(np.sqrt(rate * (1 - rate) / self.studies))


@dataclass(frozen=True, slots=True)
class Row:
    """The curve of one performer in studies of one size."""

    curve: str
    spread: str
    subjects: int
    held: Held

    def along(self, what: str) -> NDArray[np.float64]:
        """The share of studies whose band holds the truth, by place."""
        return np.asarray(self.held[what].mean(axis=0))

    def mean(self, what: str) -> str:
        """The same on average over x."""
        return f"{self.along(what).mean():.3f}"

    def nearly(self) -> str:
        """The share that holds the truth or misses it by half a point in a hundred."""
        return f"{(self.held['auto, miss'] <= NEAR).mean():.3f}"

    def worst(self, what: str) -> str:
        """The same where it is lowest, and where that is."""
        by_x = self.along(what)
        return f"{by_x.min():.3f} (x = {X[by_x.argmin()]:.2f})"


def page(found: Found, run: GoldRun) -> str:
    """The whole page: the words of gold_coverage_page.md with the tables put in."""
    rows = list(rows_of(found))
    given = {
        "version": __version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": run.command,
        "studies": f"{run.studies:,}",
        "replicates": f"{run.replicates:,}",
        "seed": str(run.seed),
        "noise": f"{run.noise(0.95):.3f}",
        "bar": _bar(rows),
        "bands": _bands(rows),
        "lowest": _lowest(rows),
        "kinds": _kinds(rows),
        "methods": _methods(rows),
        "figures": _figures(found),
    }
    return Template(WORDS.read_text(encoding="utf-8")).substitute(given)


def rows_of(found: Found) -> Iterator[Row]:
    """A row for each curve and number of subjects: the wizards' study by performer, then the plain shapes."""
    for performer in WIZARDS:
        for scene, held in found.items():
            if isinstance(scene, Wizards):
                start = f"{performer}: "
                mine = {key.removeprefix(start): value for key, value in held.items() if key.startswith(start)}
                name = performer if performer == WIZARDS[0] else f"system {performer}"
                yield Row(name, "as they do", scene.subjects, mine)
    for scene, held in found.items():
        if isinstance(scene, Plain):
            yield Row(scene.shape, f"{scene.spread:g}", scene.subjects, held)


def _bar(rows: Sequence[Row]) -> str:
    """Whether the bar is held, in words."""
    counted = [row for row in rows if row.subjects == BAR_SUBJECTS]
    shares = [float(row.along("auto, ours").mean()) for row in counted]
    least = counted[int(np.argmin(shares))]
    verdict = "is held by every curve" if min(shares) >= BAR else "is **not** held by every curve"
    spread = "" if least.spread == "as they do" else f" with persons who differ by {least.spread}"
    return (
        f"With {BAR_SUBJECTS} subjects the bands hold {np.mean(shares):.3f} on average over curves and places, and "
        f"{min(shares):.3f} on average over places for the curve that fares worst ({least.curve}{spread}). The bar set "
        f"for them, {BAR} at {BAR_SUBJECTS} subjects, {verdict}."
    )


def _bands(rows: Sequence[Row]) -> str:
    head = ("curve", "persons differ by", "subjects", "mean over x", "worst x", "within .005", "mean half-width")
    return _table(
        head,
        [
            (
                row.curve,
                row.spread,
                str(row.subjects),
                row.mean("auto, ours"),
                row.worst("auto, ours"),
                row.nearly(),
                f"{row.along('auto, half-width').mean():.3f}",
            )
            for row in rows
        ],
    )


def _lowest(rows: Sequence[Row]) -> str:
    """Where coverage is lowest of all, in words."""
    least = min(rows, key=lambda row: float(row.along("auto, ours").min()))
    by_x = least.along("auto, ours")
    few = sum(float((row.along("auto, ours") < 0.9).mean()) for row in rows) / len(rows)
    return (
        f"The lowest of all is {by_x.min():.3f}, at x = {X[by_x.argmin()]:.2f} of the curve “{least.curve}” with "
        f"{least.subjects} subjects; {few:.2f} of all rows and places lie below .90."
    )


def _kinds(rows: Sequence[Row]) -> str:
    head = ("curve", "persons differ by", "subjects", "spline chosen", *(f"{fit}: mean, worst" for fit in FITS))
    found = []
    for row in rows:
        pairs = (f"{row.mean(f'{fit}, ours')}, {row.along(f'{fit}, ours').min():.3f}" for fit in FITS)
        found.append((row.curve, row.spread, str(row.subjects), f"{row.held['spline chosen'].mean():.2f}", *pairs))
    return _table(head, found)


def _methods(rows: Sequence[Row]) -> str:
    head = ("curve", "persons differ by", "subjects", *(shown for _, shown in METHODS))
    found = [(row.curve, row.spread, str(row.subjects), *(row.mean(key) for key, _ in METHODS)) for row in rows]
    for subjects in sorted({row.subjects for row in rows}):
        alike = [row for row in rows if row.subjects == subjects]
        means = (f"{np.mean([row.along(key).mean() for row in alike]):.3f}" for key, _ in METHODS)
        found.append(("**mean**", "", str(subjects), *means))
    return _table(head, found)


def _figures(found: Found) -> str:
    rows = [
        (str(scene.subjects), *(_share(held[name]) for name in SCALARS))
        for scene, held in found.items()
        if isinstance(scene, Wizards)
    ]
    return _table(("subjects", *SCALARS), rows)


def _share(held: NDArray[np.float64]) -> str:
    defined = held[~np.isnan(held)]
    return f"{defined.mean():.3f}" if defined.size else "-"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
