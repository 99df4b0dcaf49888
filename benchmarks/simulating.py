"""Many simulated samples over several processes, the same whatever their number."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


class Simulated(Protocol):
    """What can be drawn again and again."""

    def outcome(self, replicates: int, rng: np.random.Generator, number: int, /) -> Mapping[str, Any]:
        """What is seen of one sample, by name."""


Scene = TypeVar("Scene", bound=Simulated)


def simulated(
    scenes: Sequence[Scene],
    *,
    only: tuple[type, ...] = (object,),
    count: int,
    replicates: int,
    seed: int,
    workers: int,
    batch: int,
) -> dict[Scene, dict[str, NDArray[Any]]]:
    """The outcomes of `count` samples of every scene of these kinds: an array per thing looked at, an entry per sample.

    Every sample has a seed of its own, made of the place of its scene among all scenes, so the numbers depend neither
    on how many processes share the work nor on which kinds are simulated.
    """
    os.environ.update(ONE_THREAD)
    chosen = [(place, scene) for place, scene in enumerate(scenes) if isinstance(scene, only)]
    outcomes: dict[Scene, list[Mapping[str, Any]]] = {scene: [] for _, scene in chosen}
    with (
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
        Progress(console=Console(stderr=True)) as progress,
    ):
        waiting: dict[Future[list[Mapping[str, Any]]], Scene] = {
            pool.submit(_batch, scene, [seed, place], range(start, min(start + batch, count)), replicates): scene
            for place, scene in chosen
            for start in range(0, count, batch)
        }
        task = progress.add_task("simulating", total=len(waiting))
        for done in as_completed(waiting):
            outcomes[waiting[done]] += done.result()
            progress.advance(task)
    return {scene: {key: np.array([one[key] for one in many]) for key in many[0]} for scene, many in outcomes.items()}


def _batch(scene: Simulated, seed: list[int], numbers: range, replicates: int) -> list[Mapping[str, Any]]:
    return [scene.outcome(replicates, np.random.default_rng([*seed, number]), number) for number in numbers]
