"""The page docs/coverage.md: tables of simulated coverage, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.scenes import (
    CALIBRATED,
    FAMILY,
    SCALARS,
    CrossingCurves,
    Difference,
    Family,
    Heaped,
    JudgedSample,
    NoDifference,
    Scene,
    Single,
)
from benchmarks.worlds import World, population
from demur import __version__
from demur.returns.measures import ForcedError

Held = Mapping[str, NDArray[np.float64]]
Found = Mapping[Scene, Held]
Kind = TypeVar("Kind", Single, Heaped, JudgedSample, NoDifference, Difference, Family, CrossingCurves)

WORDS = Path(__file__).with_name("coverage_page.md")
ABOUT_WORLD = ("error", "ties", "drawn", "n")


@dataclass(frozen=True, slots=True)
class Run:
    """How the simulation was run."""

    simulations: int
    replicates: int
    seed: int

    @property
    def command(self) -> str:
        """The command that does it again."""
        options = f"--simulations {self.simulations} --replicates {self.replicates} --seed {self.seed}"
        return f"python -m benchmarks.coverage {options}"

    def noise(self, rate: float) -> float:
        """Monte-Carlo standard error of a share."""
        return float(np.sqrt(rate * (1 - rate) / self.simulations))


TABLES: dict[type[Scene], tuple[str, ...]] = {
    Single: ("bands", "scalars", "calibrated"),
    Heaped: ("heaps",),
    JudgedSample: ("judged",),
    NoDifference: ("nothing",),
    Difference: ("differences",),
    Family: ("families",),
    CrossingCurves: ("crossings",),
}
"""The tables that each kind of scene fills."""


def page(found: Found, run: Run, former: str = "") -> str:
    """The whole page: the words of coverage_page.md with the tables put in; what was not simulated stays as it was."""
    made = {"bands": _bands, "scalars": _scalars, "calibrated": _calibrated, "heaps": _heaps, "judged": _judged}
    made |= {"nothing": _false_alarms, "differences": _differences, "families": _families, "crossings": _crossings}
    tables = {
        name: made[name](found) if any(isinstance(scene, kind) for scene in found) else _former(former, name)
        for kind, names in TABLES.items()
        for name in names
    }
    given = {
        "version": __version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": run.command,
        "simulations": f"{run.simulations:,}",
        "replicates": f"{run.replicates:,}",
        "seed": str(run.seed),
        "noise": f"{run.noise(0.95):.3f}",
        **{name: f"{_MARK.format(name)}\n\n{table}" for name, table in tables.items()},
    }
    return Template(WORDS.read_text(encoding="utf-8")).substitute(given)


_MARK = "<!-- table: {} -->"


def _former(text: str, name: str) -> str:
    """A table of a page that was written before."""
    _, _, rest = text.partition(_MARK.format(name) + "\n\n")
    return rest.partition("\n\n")[0]


def _heaps(found: Found) -> str:
    head = ("accuracy", "drawn", "n", *SCALARS)
    rows = [
        (f"{scene.world.accuracy:g}", scene.world.drawn, f"{scene.n:,}", *(_share(held[name]) for name in SCALARS))
        for scene, held in _of(found, Heaped)
    ]
    return _table(head, [*rows, *(_extreme(name, rows, choose, 3) for name, choose in _EXTREMES)])


def _bands(found: Found) -> str:
    head = (*ABOUT_WORLD, "one x, mean", "one x, worst", "at x = 0.2", "whole curve")
    rows = []
    for scene, held in _of(found, Single):
        if scene.world != CALIBRATED:
            by_x = held["pointwise"].mean(axis=0)
            worst = f"{by_x.min():.3f} (x = {by_x.argmin() / by_x.size:.2f})"
            rest = (_share(held["at"]), _share(held["everywhere"]))
            rows.append((*_about(scene.world, scene.n), f"{by_x.mean():.3f}", worst, *rest))
    return _table(head, [*rows, _extreme("lowest", rows, min)])


def _judged(found: Found) -> str:
    head = ("error", "ties", "judged", "of", "one x, mean", "one x, worst", "whole curve", *SCALARS)
    rows = []
    for scene, held in _of(found, JudgedSample):
        error, ties, _, n = _about(scene.world, scene.n)
        by_x = held["pointwise"].mean(axis=0)
        bands = (f"{by_x.mean():.3f}", f"{by_x.min():.3f}", _share(held["everywhere"]))
        rows.append((error, ties, n, f"{scene.of:,}", *bands, *(_share(held[name]) for name in SCALARS)))
    return _table(head, [*rows, _extreme("lowest", rows, min)])


def _scalars(found: Found) -> str:
    head = (*ABOUT_WORLD, *SCALARS)
    rows = [
        (*_about(scene.world, scene.n), *(_share(held[name]) for name in SCALARS))
        for scene, held in _of(found, Single)
        if scene.world != CALIBRATED
    ]
    return _table(head, [*rows, _extreme("lowest", rows, min)])


def _calibrated(found: Found) -> str:
    rows = [
        (f"{scene.n:,}", *(_share(held[name]) for name in ("brier", "ece", "ece_debiased", "ece_equal_mass")))
        for scene, held in _of(found, Single)
        if scene.world == CALIBRATED
    ]
    return _table(("n", "brier", "ece", "ece_debiased", "ece_equal_mass"), rows)


def _false_alarms(found: Found) -> str:
    head = (*ABOUT_WORLD, "compared", "any x shown different", "AUGRC p < 0.05", "McNemar p < 0.05 at x = 0.2")
    rows = [
        (*_about(scene.world, scene.n), _pairing(scene), *(_share(held[key]) for key in ("interval", "area", "point")))
        for scene, held in _of(found, NoDifference)
    ]
    return _table(head, [*rows, _extreme("highest", rows, max)])


def _differences(found: Found) -> str:
    head = (*ABOUT_WORLD, "compared", "true difference", "interval holds it", "shown with p < 0.05")
    rows = [
        (
            *_about(scene.world, scene.n),
            _pairing(scene),
            f"{scene.gap:.4f}",
            _share(held["held"]),
            _share(held["shown"]),
        )
        for scene, held in _of(found, Difference)
    ]
    return _table(head, rows)


def _families(found: Found) -> str:
    head = (*ABOUT_WORLD, "better ones", "from the baseline", "at any x", "any two", "shown better", "of all pairs")
    keys = ("baseline", "interval", "every", "shown", "shown_every")
    rows = [
        (*_about(scene.world, scene.n), f"({scene.better} of {FAMILY})", *(_share(held[key]) for key in keys))
        for scene, held in _of(found, Family)
    ]
    return _table(head, [*rows, (*_extreme("highest", rows, max)[:-2], "", "")])


def _crossings(found: Found) -> str:
    head = ("curves cross at", "drawn", "n", '"dominates"', '"better"', '"crossing"')
    rows = [
        (
            f"{scene.crossing:.2f}",
            "dialogues" if scene.clustered else "inputs",
            f"{scene.n:,}",
            *(_share(held[key]) for key in ("dominates", "better", "crossing")),
        )
        for scene, held in _of(found, CrossingCurves)
    ]
    return _table(head, rows)


def _extreme(
    name: str, rows: Sequence[Sequence[str]], choose: Callable[[Iterable[str]], str], about: int = len(ABOUT_WORLD)
) -> Sequence[str]:
    """The last row: the extreme share of each column; shares of three decimals sort as text."""
    columns = list(zip(*rows, strict=True))
    shares = [[cell for cell in column if cell[0].isdigit()] for column in columns[about:]]
    return (f"**{name}**", *[""] * (about - 1), *(choose(share) if share else "" for share in shares))


_EXTREMES: tuple[tuple[str, Callable[[Iterable[str]], str]], ...] = (("lowest", min), ("highest", max))


def _of(found: Found, kind: type[Kind]) -> Iterator[tuple[Kind, Held]]:
    return ((scene, held) for scene, held in found.items() if isinstance(scene, kind))


def _about(world: World, n: int) -> tuple[str, ...]:
    error = float(ForcedError().finish(population(world)))
    ties, drawn = "ties" if world.ties else "distinct", "dialogues" if world.clustered else "inputs"
    return f"{error:.2f}", ties, drawn, f"{n:,}"


def _pairing(scene: NoDifference | Difference) -> str:
    return "paired" if scene.paired else "unpaired"


def _share(held: NDArray[np.float64]) -> str:
    defined = held[~np.isnan(held.astype(np.float64))]
    return f"{defined.mean():.3f}" if defined.size else "-"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
