"""The section of a report on slices: which differ from the rest, by how much, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from demur.analyses.slice_differences import LEAST, OUT_OF_SCOPE, SliceDifference, SliceDifferences, What
from demur.views.presentation import Presentation, Table, drawing
from demur.views.words import listed, p_value, percent

MOST_ROWS = 25
"""Tests that the table shows, the clearest first."""

MOST_NAMED = 3
"""Slices that a sentence names."""

FEW = f"fewer than {LEAST} inputs, or too few dialogues"

WORSE: dict[What, tuple[str, str]] = {
    "error": ("one slice errs more", "{} slices err more"),
    "nonreturn": ("one slice is withheld more", "{} slices are withheld more"),
}
"""What is said of one slice that does worse, and of several."""

NAMES: dict[What, str] = {"error": "error", "nonreturn": "non-return", "augrc": "area (AUGRC)"}
"""What is compared, as tables call it."""


def slice_section(found: SliceDifferences) -> Presentation:
    """Which slices differ."""
    errors = [test for test in found.tests if test.what == "error"]
    return Presentation(
        title="Slices that differ",
        sentences=tuple(slice_sentences(found)),
        tables=(_table(found), *_untested(found)) if found.tests else _untested(found),
        figures=(drawing("slice_difference_chart", found),) if errors else (),
        data=found.frame,
        document={"slices": found.to_dict(), "slices_that_differ": _worse_slices(found)},
        notes=(_how_made(found),) if found.tests else (),
    )


def slice_sentences(found: SliceDifferences) -> list[str]:
    """Which slices of each system do worse than the rest of its inputs."""
    if not found.tests:
        return [f"No slice by {listed(found.columns)} has inputs enough to be held against the rest."]
    tested = {test.system for test in found.tests}
    return [
        _of_system(system, [test for test in found.shown if test.system == system])
        for system in found.thresholds
        if system in tested
    ]


def _of_system(system: str, shown: Sequence[SliceDifference]) -> str:
    said = []
    for what, (one, many) in WORSE.items():
        worse = sorted((test for test in shown if test.what == what and test.difference > 0), key=_falling)
        if worse:
            named = listed([_told(test) for test in worse[:MOST_NAMED]])
            more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
            said.append(f"{one if len(worse) == 1 else many.format(len(worse))} than the rest: {named}{more}")
    return f"{system}: {'; '.join(said) or 'no slice is shown to do worse than the rest at its threshold'}."


def _falling(test: SliceDifference) -> float:
    return -test.difference


def _told(test: SliceDifference) -> str:
    return f"{test.part} ({percent(test.inside)} against {percent(test.outside)})"


def _worse_slices(found: SliceDifferences) -> int:
    """How many slices are shown to err more than the rest."""
    return sum(test.what == "error" and test.difference > 0 for test in found.shown)


def _table(found: SliceDifferences) -> Table:
    rows = tuple(
        (
            test.system,
            test.part,
            f"{test.n:,}",
            NAMES[test.what],
            _value(test.what, test.inside),
            _value(test.what, test.outside),
            difference_told(test),
            p_value(test.p_adjusted),
        )
        for test in found.tests[:MOST_ROWS]
    )
    left = f", the clearest {MOST_ROWS} of {len(found.tests):,}" if len(found.tests) > MOST_ROWS else ""
    columns = ("system", "slice", "inputs", "what", "on it", "on the rest", "difference", "corrected p")
    return Table(f"Slices against the rest{left}", columns, rows)


def _value(what: What, value: float) -> str:
    return f"{value:.4f}" if what == "augrc" else percent(value)


def difference_told(test: SliceDifference) -> str:
    """A difference with its interval."""
    if test.what == "augrc":
        return f"{test.difference:+.4f} ({test.low:+.4f} to {test.high:+.4f})"
    return f"{100 * test.difference:+.1f} ({100 * test.low:+.1f} to {100 * test.high:+.1f}) points"


def _untested(found: SliceDifferences) -> tuple[Table, ...]:
    """Slices that were not tested, by reason and column."""
    named: dict[tuple[str, str, str], list[str]] = {}
    for one in found.untested:
        why = OUT_OF_SCOPE if one.why == OUT_OF_SCOPE else FEW
        named.setdefault((one.column, why, one.system), []).append(f"{one.value} ({one.n:,})")
    systems: dict[tuple[str, str, str], list[str]] = {}
    for (column, why, system), values in named.items():
        systems.setdefault((column, why, _some(values)), []).append(system)
    rows = tuple((*key, "all" if len(own) == len(found.thresholds) else ", ".join(own)) for key, own in systems.items())
    return (
        (Table("Slices that were not tested", ("column", "why", "values (inputs)", "systems"), rows),) if rows else ()
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _how_made(found: SliceDifferences) -> str:
    mute = [system for system, cutoff in found.thresholds.items() if math.isnan(cutoff)]
    nothing = f" ({listed(mute)} would return nothing)" if mute else ""
    return (
        f"slices by {listed(found.columns)} at one threshold for all slices of a system, the one advised for it"
        f"{nothing}; p-values corrected by Holm's method for all {len(found.tests):,} tests of the table"
    )
