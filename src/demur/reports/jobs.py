"""The job of a report: from files, frames and tables read before, of any kinds, to one story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from demur.core.jobs import check_options
from demur.core.show.results import Step, silent
from demur.importers.kinds import Kind
from demur.reports.report import Report, report_of
from demur.reports.story import Asked, tell
from demur.reports.tables import MixtureReading, read_mixture


def report(
    *data: Any,
    title: str | None = None,
    kinds: Mapping[str, Kind] | None = None,
    by: str | Sequence[str] | None = None,
    at_nonreturn: float = 0.2,
    cost_ratio: float | None = None,
    max_error: float | None = None,
    delta: float | None = None,
    max_nonreturn: float | None = None,
    examples: int = 10,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
    **options: Any,
) -> Report:
    """The story of answers, N-best lists, dialogues and trials in any mixture; what each table is, its columns tell.

    `kinds={"log.csv": "trials"}` says it where they do not. `by` names the columns to slice by, by default all that
    suit. Thresholds are advised for a cost ratio, a limit on errors (promised with `delta`) or on non-returns; by
    default one is looked for that promises at most 5 % errors. Further options are those of reading: `columns`,
    `where`, `out_of_scope`, `withheld`, `missing_confidence`, `outcome`, and `x` and `y` of trials.

    The report has `.html()`, `.markdown()`, `.to_dict()` and `.save("report.html")`.
    """
    check_options(options, MixtureReading, ("by", "at_nonreturn", "title", "examples"))
    asked = Asked(
        at=at_nonreturn,
        by=(by,) if isinstance(by, str) else None if by is None else tuple(by),
        cost_ratio=cost_ratio,
        max_error=max_error,
        delta=delta,
        max_nonreturn=max_nonreturn,
        examples=examples,
        level=level,
        replicates=replicates,
        seed=seed,
    )
    asked.check()
    step("reading", 0, 1)
    mixture = read_mixture(*data, reading=MixtureReading(kinds=dict(kinds or {}), **options))
    return report_of(tell(mixture, asked, step=step), title=title)
