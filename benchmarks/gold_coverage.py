"""How often the bands and figures of `demur gold` hold the truth: simulated, written to docs/gold_coverage.md.

Run as `python -m benchmarks.gold_coverage`. Every study has a seed of its own, so the numbers do not depend on how
many processes share the work.
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

from benchmarks.coverage import ONE_THREAD
from benchmarks.gold_coverage_page import Found, GoldRun, page
from benchmarks.gold_scenes import Outcome, Scene, scenes

BATCH = 10
PAGE = Path(__file__).parents[1] / "docs" / "gold_coverage.md"


def simulate(chosen: list[Scene], run: GoldRun, workers: int) -> Found:
    """The outcomes of every scene: one array per thing that was looked at, one entry per study."""
    os.environ.update(ONE_THREAD)
    outcomes: dict[Scene, list[Outcome]] = {scene: [] for scene in chosen}
    with (
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
        Progress(console=Console(stderr=True)) as progress,
    ):
        waiting: dict[Future[list[Outcome]], Scene] = {
            pool.submit(_batch, scene, place, start, run): scene
            for place, scene in enumerate(chosen)
            for start in range(0, run.studies, BATCH)
        }
        task = progress.add_task("simulating", total=len(waiting))
        for done in as_completed(waiting):
            outcomes[waiting[done]] += done.result()
            progress.advance(task)
    return {scene: {key: np.array([one[key] for one in many]) for key in many[0]} for scene, many in outcomes.items()}


def _batch(scene: Scene, place: int, start: int, run: GoldRun) -> list[Outcome]:
    return [
        scene.outcome(run.replicates, np.random.default_rng([run.seed, place, number]), number)
        for number in range(start, min(start + BATCH, run.studies))
    ]


def main() -> None:
    """Simulate and write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.gold_coverage", description=__doc__)
    options.add_argument("--studies", type=int, default=300, help="studies per row of the tables")
    options.add_argument("--replicates", type=int, default=300, help="bootstrap replicates per study")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options.add_argument("-o", "--output", type=Path, default=PAGE)
    given = options.parse_args()
    run = GoldRun(given.studies, given.replicates, given.seed)
    given.output.write_text(page(simulate(scenes(), run, given.workers), run), encoding="utf-8")


if __name__ == "__main__":
    main()
