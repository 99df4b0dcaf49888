"""How often the bands and figures of `demur gold` hold the truth: simulated, written to docs/gold_coverage.md.

Run as `python -m benchmarks.gold_coverage`. Every study has a seed of its own, so the numbers do not depend on how
many processes share the work.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.gold_coverage_page import GoldRun, page
from benchmarks.gold_scenes import scenes
from benchmarks.simulating import simulated

BATCH = 10
PAGE = Path(__file__).parents[1] / "docs" / "gold_coverage.md"


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
    found = simulated(
        scenes(), count=run.studies, replicates=run.replicates, seed=run.seed, workers=given.workers, batch=BATCH
    )
    given.output.write_text(page(found, run), encoding="utf-8")


if __name__ == "__main__":
    main()
