"""The section of a report on slices: which do worse than the rest."""

from __future__ import annotations

import math

from demur.core.show.numbers import listed, percent, tabled_p
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.reports.sections import MOST_IN_PROSE
from demur.returns.slices import LEAST, OUT_OF_SCOPE, SliceDifferences, What
from demur.returns.words import difference_text

MOST_ROWS = 25
"""Tests that the table shows, the clearest first."""

MOST_NAMED = 3
"""Slices that a sentence names."""

FEW = f"fewer than {LEAST} inputs, or too few dialogues"

WORSE: dict[What, tuple[str, str]] = {
    "error": ("one slice has significantly more errors", "{} slices have significantly more errors"),
    "nonreturn": ("one slice is withheld significantly more", "{} slices are withheld significantly more"),
}
"""What is said of one slice that does worse, and of several."""

NAMES: dict[What, str] = {"error": "error", "nonreturn": "non-return", "augrc": "area (AUGRC)"}
"""What is compared, as tables call it."""


def slice_section(slices: SliceDifferences) -> Presentation:
    """Which slices differ."""
    tests = slices.tests
    returns_nothing = [system for system, cutoff in slices.thresholds.items() if math.isnan(cutoff)]
    nothing = f" ({listed(returns_nothing)} would return nothing)" if returns_nothing else ""
    how_made = (
        f"slices by {listed(slices.columns)} at one threshold for all slices of a system, the recommended one if any"
        f"{nothing}; intervals and p-values corrected together for all {len(tests):,} tests of the table (Sidak)"
    )
    worse = sum(test.what == "error" and test.difference > 0 for test in slices.shown)
    errors = any(test.what == "error" for test in tests)
    return Presentation(
        title="Slices that differ",
        sentences=tuple(_slice_sentences(slices)),
        tables=(*([_slice_table(slices)] if tests else []), *_untested(slices)),
        figures=(drawing("returns.charts.slices.slice_difference_chart", slices),) if errors else (),
        data=slices.frame,
        document={"slices": slices.to_dict(), "slices_that_differ": worse},
        notes=(how_made,) if tests else (),
    )


def _slice_sentences(slices: SliceDifferences) -> list[str]:
    """Which slices of each system do worse than the rest of its inputs."""
    if not slices.tests:
        return [f"No slice by {listed(slices.columns)} has enough inputs to be compared with the rest."]
    tested = {test.system for test in slices.tests}
    sentences, unharmed = [], []
    for system in (system for system in slices.thresholds if system in tested):
        clauses = []
        for what, (one, many) in WORSE.items():
            worse = [t for t in slices.shown if (t.system, t.what) == (system, what) and t.difference > 0]
            worse.sort(key=lambda test: -test.difference)
            if worse:
                rates = [f"{t.part} ({percent(t.inside)} against {percent(t.outside)})" for t in worse[:MOST_NAMED]]
                more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
                clauses.append(
                    f"{one if len(worse) == 1 else many.format(len(worse))} than the rest: {listed(rates)}{more}"
                )
        none = "no slice is significantly worse than the rest at its threshold"
        if not clauses and len(tested) > MOST_IN_PROSE:
            unharmed.append(system)
        else:
            sentences.append(f"{system}: {'; '.join(clauses) or none}.")
    if unharmed:
        of = f"{len(unharmed)} " + ("other systems" if sentences else "systems")
        sentences.append(f"No slice of the {of} is significantly worse than the rest at the threshold of its system.")
    return sentences


def _slice_table(slices: SliceDifferences) -> ResultTable:
    def value(what: What, rate: float) -> str:
        return f"{rate:.4f}" if what == "augrc" else percent(rate)

    rows = tuple(
        (
            test.system,
            test.part,
            f"{test.n:,}",
            NAMES[test.what],
            value(test.what, test.inside),
            value(test.what, test.outside),
            difference_text(test),
            tabled_p(test.p_adjusted),
        )
        for test in slices.tests[:MOST_ROWS]
    )
    left = f", the clearest {MOST_ROWS} of {len(slices.tests):,}" if len(slices.tests) > MOST_ROWS else ""
    columns = ("system", "slice", "inputs", "what", "on it", "on the rest", "difference", "corrected p")
    return ResultTable(f"Slices against the rest{left}", columns, rows)


def _untested(slices: SliceDifferences) -> list[ResultTable]:
    """Slices that were not tested, by reason and column."""
    named: dict[tuple[str, str, str], list[str]] = {}
    for one in slices.untested:
        why = OUT_OF_SCOPE if one.why == OUT_OF_SCOPE else FEW
        named.setdefault((one.column, why, one.system), []).append(f"{one.value} ({one.n:,})")
    systems: dict[tuple[str, str, str], list[str]] = {}
    for (column, why, system), values in named.items():
        some = ", ".join(values[:8]) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
        systems.setdefault((column, why, some), []).append(system)
    every = len(slices.thresholds)
    rows = tuple((*key, "all" if len(own) == every else ", ".join(own)) for key, own in systems.items())
    columns = ("column", "why", "values (inputs)", "systems")
    return [ResultTable("Slices that were not tested", columns, rows)] if rows else []
