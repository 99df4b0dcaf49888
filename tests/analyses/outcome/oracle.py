"""What R gives on three small tables, where they are at hand."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

HOME = Path(__file__).parents[4] / "shared" / "data" / "r_oracle"
TABLES = ("mtcars", "swiss", "aliased")
WAYS = {
    "backward": ("backward", None),
    "forward": ("forward", None),
    "both_from_full": ("both", "full"),
    "both_from_null": ("both", "null"),
}


class Oracle:
    def __init__(self, table):
        if not HOME.is_dir():
            pytest.skip("what R gives is not at hand: ../shared/data/r_oracle is absent")
        self.said = json.loads((HOME / f"{table}.json").read_text(encoding="utf-8"))
        self.names = self.said["candidates"]
        rows = pl.read_csv(HOME / f"{table}.csv")
        self.x = rows.select(self.names).to_numpy().astype(np.float64)
        self.y = rows[self.said["outcome"]].to_numpy().astype(np.float64)

    def of(self, way):
        return self.said["directions"][way]
