"""How often the intervals hold the truth: simulated coverage, written to docs/coverage.md.

Run as `python -m benchmarks.coverage`. Every sample has a seed of its own, so the numbers do not depend on how many
processes share the work.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

from benchmarks.coverage_page import Found, Run, page
from benchmarks.scenes import Outcome, Scene, scenes

BATCH = 25
PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


def simulate(chosen: list[Scene], run: Run, workers: int) -> Found:
    """The outcomes of every scene: one array per thing that was looked at, one entry per sample."""
    os.environ.update(ONE_THREAD)
    outcomes: dict[Scene, list[Outcome]] = {scene: [] for scene in chosen}
    with (
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
        Progress(console=Console(stderr=True)) as progress,
    ):
        waiting: dict[Future[list[Outcome]], Scene] = {
            pool.submit(_batch, scene, place, start, run): scene
            for place, scene in enumerate(chosen)
            for start in range(0, run.simulations, BATCH)
        }
        task = progress.add_task("simulating", total=len(waiting))
        for done in as_completed(waiting):
            outcomes[waiting[done]] += done.result()
            progress.advance(task)
    return {scene: {key: np.array([one[key] for one in many]) for key in many[0]} for scene, many in outcomes.items()}


def _batch(scene: Scene, place: int, start: int, run: Run) -> list[Outcome]:
    return [
        scene.outcome(run.replicates, np.random.default_rng([run.seed, place, number]), number)
        for number in range(start, min(start + BATCH, run.simulations))
    ]


def main() -> None:
    """Simulate and write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    options.add_argument("--simulations", type=int, default=400, help="samples per row of the tables")
    options.add_argument("--replicates", type=int, default=500, help="bootstrap replicates per sample")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options.add_argument("-o", "--output", type=Path, default=PAGE)
    given = options.parse_args()
    run = Run(given.simulations, given.replicates, given.seed)
    given.output.write_text(page(simulate(scenes(), run, given.workers), run), encoding="utf-8")


if __name__ == "__main__":
    main()
