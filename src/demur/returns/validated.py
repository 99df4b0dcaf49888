"""What was recognised in tables that have no faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from demur.returns.table import Responses


@dataclass(frozen=True, eq=False)
class ValidatedTable:
    """What was recognised in tables that have no faults."""

    responses: Responses

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.responses)

    @property
    def slices(self) -> list[str]:
        """The columns to slice by."""
        columns = self.responses.frame.columns
        return columns[columns.index("weight") + 1 :]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was recognised while reading."""
        listed = (f"columns to slice by: {', '.join(self.slices)}",) if self.slices else ()
        return (*listed, *self.responses.notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong all the same."""
        return self.responses.warnings

    def frame(self) -> pl.DataFrame:
        """A row for each system: its rows by what became of them, its dialogues and its confidences."""
        frame = self.responses.frame
        counts = frame.group_by("system", maintain_order=True).agg(
            pl.len().alias("rows"),
            pl.col("answered").sum(),
            (~pl.col("answered") & ~pl.col("failed")).sum().alias("withheld"),
            pl.col("failed").sum(),
            pl.col("out_of_scope").sum(),
            pl.col("right").sum(),
            pl.col("dialogue").n_unique().alias("dialogues"),
            pl.col("confidence").min().alias("lowest_confidence"),
            pl.col("confidence").max().alias("highest_confidence"),
            pl.col("confidence").drop_nulls().n_unique().alias("distinct_confidences"),
            pl.col("confidence").drop_nulls().mode().min().alias("most_frequent_confidence"),
            pl.col("confidence").drop_nulls().unique_counts().max().alias("most_frequent_rows"),
        )
        return counts.with_columns(dialogues=pl.when(frame["dialogue"].null_count() < frame.height).then("dialogues"))

    def to_dict(self) -> dict[str, Any]:
        """What was recognised as plain values."""
        return {
            "valid": True,
            "n": self.n,
            "systems": self.frame().to_dicts(),
            "slices": self.slices,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }
