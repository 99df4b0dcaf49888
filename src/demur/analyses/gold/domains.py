"""Studies side by side: how hard each is for its own gold standard, and how far its systems are from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from demur.analyses.gold.study import GoldStudy
from demur.measures.intervals import Figure
from demur.show import Shown


@dataclass(frozen=True, slots=True)
class Domain:
    """A system of a study, as it can be held against systems of other studies."""

    study: str
    system: str
    complexity: Figure
    relative: Figure
    """Impurity mass as a share of the area under the study's own gold standard."""

    def to_dict(self) -> dict[str, Any]:
        """The row of the table."""
        return {
            "study": self.study,
            "system": self.system,
            "complexity": self.complexity.to_dict(),
            "relative_mass": self.relative.to_dict(),
        }


class GoldStudies(tuple[GoldStudy, ...], Shown):
    """One or more studies, each with a gold standard of its own, which show themselves together."""

    __slots__ = ()

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Every system by the complexity of its study and by its distance from that study's gold standard."""
        return tuple(
            Domain(study.trials.study, one.system, study.complexity, one.relative)
            for study in self
            for one in study.impurities
        )

    def to_dict(self) -> dict[str, Any]:
        """The studies as plain values, and their systems side by side."""
        return {"domains": [one.to_dict() for one in self.domains], "studies": [study.to_dict() for study in self]}

    def frame(self) -> pl.DataFrame:
        """The systems of all studies as rows."""
        rows = [
            {
                "study": one.study,
                "system": one.system,
                "complexity": one.complexity.value,
                "complexity_low": one.complexity.low,
                "complexity_high": one.complexity.high,
                "relative_mass": one.relative.value,
                "low": one.relative.low,
                "high": one.relative.high,
            }
            for one in self.domains
        ]
        return pl.DataFrame(rows)
