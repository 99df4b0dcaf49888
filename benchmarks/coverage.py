"""How often the intervals hold the truth: simulated coverage, written to docs/coverage.md.

Run as `python -m benchmarks.coverage`. Every sample has a seed of its own, so the numbers depend neither on how
many processes share the work nor on `--only`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.coverage_page import TABLES, Run, page
from benchmarks.scenes import scenes
from benchmarks.simulating import simulated

BATCH = 25
PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"


def main() -> None:
    """Simulate and write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    options.add_argument("--simulations", type=int, default=400, help="samples per row of the tables")
    options.add_argument("--replicates", type=int, default=500, help="bootstrap replicates per sample")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options.add_argument("-o", "--output", type=Path, default=PAGE)
    kinds = {kind.__name__: kind for kind in TABLES}
    options.add_argument("--only", choices=kinds, nargs="+", help="kinds of scenes; other tables stay as they are")
    given = options.parse_args()
    run = Run(given.simulations, given.replicates, given.seed)
    wanted = tuple(kinds[name] for name in given.only or kinds)
    how = {"count": run.simulations, "replicates": run.replicates, "seed": run.seed, "workers": given.workers}
    found = simulated(scenes(), only=wanted, batch=BATCH, **how)
    former = given.output.read_text(encoding="utf-8") if given.output.exists() else ""
    given.output.write_text(page(found, run, former), encoding="utf-8")


if __name__ == "__main__":
    main()
