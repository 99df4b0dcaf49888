"""N-best lists made up at random: small logs as rows, and large ones of a law that is known, as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from demur.core.acts import numbered_sets
from demur.nbest_lists.table import NBest, NBestReading, nbest

FOODS, AREAS = 10, 5
TURNS = 4
KEPT = NBestReading(keep=("noise",))


def act(rng: np.random.Generator) -> str:
    return f"inform(food=f{rng.integers(FOODS)}, area=a{rng.integers(AREAS)})" if rng.random() < 0.8 else "bye()"


def utterance(rng: np.random.Generator, number: int, **others: Any) -> dict[str, Any]:
    """A row of which a tenth has no hypotheses and a tenth an empty reference; often the first hypothesis is right."""
    meant = "" if rng.random() < 0.1 else act(rng)
    count = 0 if rng.random() < 0.1 else int(rng.integers(1, 5))
    acts = [meant if rng.random() < 0.5 else act(rng), *(act(rng) for _ in range(count - 1))][:count]
    mass = rng.dirichlet(np.ones(count + 1))[:count].round(3) if count else []
    return {
        "id": f"d{number // TURNS:03}/{number % TURNS}",
        "dialogue": f"d{number // TURNS:03}",
        "noise": ("loud", "quiet")[number // TURNS % 2],
        "reference": meant,
        "hypotheses": [{"act": one, "confidence": float(sure)} for one, sure in zip(acts, mass, strict=True)],
        **others,
    }


def log(n: int, *, seed: int, weighted: bool = False, **others: Any) -> list[dict[str, Any]]:
    """Rows of a log with dialogues, empty lists and empty references; weights where asked for."""
    rng = np.random.default_rng(seed)
    weights = rng.choice([1.0, 2.0, 0.5, 0.7], size=n) if weighted else np.ones(n)
    return [utterance(rng, number, weight=float(weight), **others) for number, weight in enumerate(weights)]


def table(*logs: list[dict[str, Any]]) -> NBest:
    return nbest([row for rows in logs for row in rows], reading=KEPT)


def simulated(dialogues: int, *, seed: int, systems: tuple[str, ...] = ("a",), bonus: float = 0.0) -> NBest:
    """Lists of systems that are alike but for the chance of being right, which `bonus` raises in the first.

    Dialogues differ in how hard they are, for all systems alike, so turns of one dialogue are no independent rows.
    """
    rng = np.random.default_rng(seed)
    n = dialogues * TURNS
    acts = [frozenset({"inform", f"food={food}", f"area={area}"}) for food in range(FOODS) for area in range(AREAS)]
    sets, code = numbered_sets(acts)
    reference = code[rng.integers(len(acts), size=n)]
    ease = np.repeat(rng.beta(3, 2, size=dialogues), TURNS)
    parts = [_heard(reference, ease + (bonus if place == 0 else 0.0), rng) for place in range(len(systems))]
    number = np.arange(n)
    names = pl.DataFrame({"number": number}).select(
        dialogue=pl.format("d{}", (pl.col("number") // TURNS).cast(pl.String).str.zfill(6)),
        id=pl.format("u{}", pl.col("number").cast(pl.String).str.zfill(7)),
        weight=pl.lit(1.0),
    )
    return NBest(
        pl.concat([names.with_columns(system=pl.lit(system)) for system in systems]),
        sets,
        np.tile(reference, len(systems)),
        np.arange(n * len(systems) + 1) * 3,
        np.concatenate([act.ravel() for act, _ in parts]),
        np.concatenate([sure.ravel() for _, sure in parts]),
    )


def _heard(reference: Any, ease: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Three acts for each utterance, the one that was meant first, second or not there at all."""
    n, number = reference.size, FOODS * AREAS
    shift = np.stack([rng.integers(1, 17, n), rng.integers(17, 34, n), rng.integers(34, number, n)], axis=1)
    place = np.where(rng.random(n) < ease, 0, np.where(rng.random(n) < 0.5, 1, 3))
    right = np.arange(3) == place[:, None]
    act = np.where(right, reference[:, None], (reference[:, None] + shift) % number).astype(np.int32)
    sure = rng.uniform(0.3, 0.9, n) * 0.7 + 0.3 * np.clip(ease, 0, 0.9)
    left = (1 - sure) * rng.uniform(0.5, 1.0, n)
    return act, np.stack([sure, left * 0.7, left * 0.3], axis=1)
