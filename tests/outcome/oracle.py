"""What R gives on three small tables."""

import json

import numpy as np
import polars as pl

from pages import ROOT

HOME = ROOT / "tests" / "outcome" / "r_oracle"
TABLES = ("mtcars", "swiss", "aliased")
WAYS = {
    "backward": ("backward", None),
    "forward": ("forward", None),
    "both_from_full": ("both", "full"),
    "both_from_null": ("both", "null"),
}


class Oracle:
    def __init__(self, table):
        self.said = json.loads((HOME / f"{table}.json").read_text(encoding="utf-8"))
        self.names = self.said["candidates"]
        rows = pl.read_csv(HOME / f"{table}.csv")
        self.x = rows.select(self.names).to_numpy().astype(np.float64)
        self.y = rows[self.said["outcome"]].to_numpy().astype(np.float64)

    def of(self, way):
        return self.said["directions"][way]
