"""Does an engine give the numbers that arrays give? Every measure, count, comparison and change of a sample log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.show.results import plain, silent
from demur.core.stats.calibration import cell_totals
from demur.core.stats.measure import Measure, Score, SweepMeasure, TermMeasure, term_totals
from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns.classes import MEASURES, Confusion, ConfusionMeasure, labelled
from demur.returns.comparison.contrasts import area_contrast, right_contrast
from demur.returns.comparison.counted import systems_in_engine
from demur.returns.comparison.systems import ComparedSystems, RowsTogether
from demur.returns.counting import EXACT_UP_TO, Counting, lazy_of_frame, tallies, tallies_of_frame
from demur.returns.drift.analysis import drift
from demur.returns.drift.changes import Log
from demur.returns.engine_judging import judge_lazily
from demur.returns.pairing import pair
from demur.returns.scope import VIEWS, ScopeMeasure
from demur.returns.table import Reading, read_data, responses
from demur.returns.tally import Tally, total

TOLERANCE = 1e-12
"""How far the order of adding fractions may move a value, as a share of it, or of 1 where it is smaller."""

_SHARED = (SweepMeasure.reduce, ConfusionMeasure.reduce, ScopeMeasure.reduce)
"""Reductions that are one and the same for all measures that have them, and look at the rows in the same way."""

NOT_COUNTED_BY_BUCKET = ("answers.distance", "withheld", "failed", "out_of_scope")
"""Changes of logs that follow from single rows, or from their labels."""

_LABELS = ("opening hours", "tickets", "wo ist die Garderobe?", "トイレ", "café 🥐", "naïve")


@dataclass(frozen=True, slots=True)
class EngineDifference:
    """A measure's value by an engine and by arrays, and how far apart they are.

    `exact`: the value is read from whole counts, so nothing may differ. `same_counts`: the numbers of rows are the same
    and, where exact, so are all counts behind the value.
    """

    measure: str
    value: float
    expected: float
    difference: float
    exact: bool
    same_counts: bool = True

    @property
    def holds(self) -> bool:
        """Whether the engine gives the same number, as far as its sums allow."""
        allowed = 0.0 if self.exact else TOLERANCE * max(1.0, abs(self.expected))
        return self.same_counts and self.difference <= allowed

    def to_dict(self) -> dict[str, Any]:
        """The comparison of one measure."""
        return {**asdict(self), "holds": self.holds}


@dataclass(frozen=True, slots=True)
class Equality:
    """Every measure by an engine and by arrays on the same rows."""

    engine: str
    n: int
    differences: tuple[EngineDifference, ...]

    @property
    def holds(self) -> bool:
        """Whether the engine gives the same numbers throughout."""
        return all(one.holds for one in self.differences)

    @property
    def faults(self) -> tuple[EngineDifference, ...]:
        """The measures of which the engine gives another number."""
        return tuple(one for one in self.differences if not one.holds)

    def frame(self) -> pl.DataFrame:
        """One row for each measure."""
        return pl.DataFrame([one.to_dict() for one in self.differences], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values, null for a value that is undefined."""
        differences = [plain(one.to_dict()) for one in self.differences]
        return {"engine": self.engine, "n": self.n, "holds": self.holds, "differences": differences}


def differences(
    frame: Any, reference: pl.DataFrame, measures: Mapping[str, Measure] = MEASURES
) -> tuple[EngineDifference, ...]:
    """Every measure by the engine of `frame` (any that narwhals knows) beside its value by arrays.

    >>> rows = judged_columns(sample_log(1000, seed=0))
    >>> all(one.holds for one in differences(rows.lazy(), rows))
    True
    """
    rows = nw.from_native(frame)
    whole = bool((reference["weight"] % 1 == 0).all())
    terms = [one for one in measures.values() if isinstance(one, TermMeasure)]
    summed: dict[Measure, Any] = dict(zip(terms, term_totals(terms, rows), strict=True))
    found = _scores(measures, lambda measure: summed[measure] if measure in summed else measure.reduce(rows))
    expected = _scores(measures, lambda measure: totals_by_arrays(measure, reference))
    return tuple(_difference(name, found[name], expected[name], whole=whole) for name in measures)


def tally_differences(frame: Any, raw: pl.DataFrame, *, by: str = "domain") -> tuple[EngineDifference, ...]:
    """What an engine counts of a log's raw rows, judged and reduced there, beside what is counted of them in memory.

    Answers and errors must be the same number by number: at every cutoff, in every bucket of dialogues, of the whole
    and of every slice; so must the numbers that dialogues are counted by; and once more where the engine is made to
    join confidences in cells.
    """
    judged = judge_lazily(frame, reading=Reading(), system="log", by=by)
    expected = lazy_of_frame(responses(raw, system="log", reading=Reading(keep=(by,))).frame, by=by)
    found: list[EngineDifference] = []
    for what, most in (("counts", EXACT_UP_TO), ("counts in cells", 1)):
        mine = {one.part: one for one in tallies(judged, exact_up_to=most)}
        theirs = {one.part: one for one in tallies(expected, exact_up_to=most)}
        for part in dict.fromkeys((*theirs, *mine)):
            both = mine.get(part), theirs.get(part)
            found.append(_tally_difference(*both, what=what, whole="weight" not in raw.columns))
            views = [{} if one is None else one.by_scope for one in both]
            found += [
                _tally_difference(
                    *(one.get(view) for one in views), what=f"{view} of scope in {what}", whole=found[-1].exact
                )
                for view in dict.fromkeys((*views[0], *views[1]))
            ]
    return tuple(found)


def comparison_differences(hold: Callable[[pl.DataFrame], Any], raw: pl.DataFrame) -> tuple[EngineDifference, ...]:
    """What an engine finds between two systems, whose rows `hold` hands over, beside what memory finds.

    The difference of areas and of right answers, their standard errors from a join by id or dialogue, and the inputs on
    which only one of the two errs. Confidences have two decimals, so that no level is joined with another.

    >>> found = comparison_differences(lambda frame: frame.lazy(), sample_log(500, seed=0))
    >>> all(one.holds for one in found), len(found)
    (True, 6)
    """
    logs = {"a": raw.with_columns(pl.col("confidence").round(2)), "b": other_answers(raw)}
    expected = _contrasts(RowsTogether(pair(read_data([logs], Reading()))))
    held = {name: hold(log) for name, log in logs.items()}
    with systems_in_engine([held], Reading(), Counting(), join=True, step=silent) as found:
        assert found is not None
        mine = _contrasts(found[0])
    whole = "weight" not in raw.columns
    return tuple(
        EngineDifference(f"comparison, {name}", mine[name], value, abs(mine[name] - value), whole and "only" in name)
        for name, value in expected.items()
    )


def day_differences(hold: Callable[[pl.DataFrame], Any], raw: pl.DataFrame) -> tuple[EngineDifference, ...]:
    """What an engine finds of two days, whose rows `hold` hands over, beside what memory finds.

    The counts of both days added up, as `merge` and `watch` do, and every change from the first to the second that
    `drift` shows. Confidences have two decimals, so that no level is joined with another.

    >>> found = day_differences(lambda frame: frame.lazy(), sample_log(500, seed=0).drop("weight"))
    >>> all(one.holds for one in found), len(found)
    (True, 6)
    """
    rounded = raw.with_columns(pl.col("confidence").round(2))
    days = [rounded.head(raw.height // 2), rounded.tail(-(raw.height // 2))]
    counted = [tallies(judge_lazily(hold(day), reading=Reading(), system="log"))[0] for day in days]
    judged = [responses(day, system="log").frame for day in days]
    (whole,) = tallies_of_frame(responses(rounded, system="log").frame)
    exact = "weight" not in raw.columns
    added = _tally_difference(total(counted), whole, what="counts of two days, added up", whole=exact)
    found, expected = (
        {name: one.difference.value for name, one in drift(*logs, replicates=50).changes.items()}
        for logs in (
            [Log.of_tally(name, tally) for name, tally in zip("ab", counted, strict=True)],
            [Log.of(name, rows, judged=True) for name, rows in zip("ab", judged, strict=True)],
        )
    )
    changes = [
        EngineDifference(f"change from a day to the next, {name}", found[name], value, abs(found[name] - value), False)
        for name, value in expected.items()
        if name not in NOT_COUNTED_BY_BUCKET
    ]
    return (added, *changes)


def other_answers(raw: pl.DataFrame) -> pl.DataFrame:
    """The answers of a second system to the same inputs: some better, some worse, confidences squared."""
    row, answered = pl.int_range(pl.len()), pl.col("prediction").is_not_null()
    return raw.with_columns(
        prediction=pl.when(answered & (row % 5 == 0))
        .then("target")
        .when(answered & (row % 7 == 1))
        .then(pl.lit(_LABELS[0]))
        .otherwise("prediction"),
        confidence=(pl.col("confidence") ** 2).round(2),
    )


def _contrasts(systems: ComparedSystems) -> dict[str, float]:
    one, two = systems.rows.values()
    area, right = (contrast(one, two, paired=True) for contrast in (area_contrast, right_contrast))
    thresholds = [float(np.median(side.sweep().threshold)) for side in (one, two)]
    a_only, b_only = systems.discordant(("a", "b"), (thresholds[0], thresholds[1]))
    return {
        "areas": area.value,
        "standard error of areas": area.estimate.error,
        "right answers": right.value,
        "standard error of right answers": right.estimate.error,
        "only a errs": a_only,
        "only b errs": b_only,
    }


def _tally_difference(found: Tally | None, expected: Tally | None, *, what: str, whole: bool) -> EngineDifference:
    """The errors of both, how far the counts at any one place are apart, and whether all else is the same."""
    if found is None or expected is None:  # a slice that only one of them has
        value, reference = (math.nan if one is None else float(one.sweep.errors) for one in (found, expected))
        part = next(one.part for one in (found, expected) if one is not None)
        return EngineDifference(f"{what}, {part}", value, reference, math.inf, whole, same_counts=False)
    kinds = ("n", "failed", "unanswered", "out_of_scope")
    mine, theirs = found.sweep, expected.sweep
    same = all(getattr(found, kind) == getattr(expected, kind) for kind in kinds)
    same = same and np.array_equal(mine.threshold, theirs.threshold) and np.array_equal(mine.highest, theirs.highest)
    apart = math.inf
    if same:
        pairs = ((mine.right, theirs.right), (mine.wrong, theirs.wrong))
        furthest = max(_apart(one, two) for one, two in pairs)
        apart = max(furthest, _units_apart(found.units, expected.units))
    name = f"{what}, {'all rows' if expected.part is None else expected.part}"
    return EngineDifference(name, float(mine.errors), float(theirs.errors), apart, whole, same)


def _units_apart(one: pl.DataFrame | None, two: pl.DataFrame | None) -> float:
    if one is None or two is None:
        return 0.0 if one is two else math.inf
    places = ("bucket", "confidence", "least")
    if not one.select(places).equals(two.select(places)):
        return math.inf
    counts = ("right", "wrong", "withheld")
    return _apart(one.select(counts).to_numpy(), two.select(counts).to_numpy())


def _apart(one: Array, two: Array) -> float:
    """How far counts are apart at most, as a share of them where they are above 1: sums round the more the larger."""
    return float((np.abs(one - two) / np.maximum(1.0, np.abs(two))).max(initial=0.0))


def totals_by_arrays(measure: Measure, frame: pl.DataFrame) -> Any:
    """A measure's totals by the road of the analyses: arrays, one sort, cells; no engine groups anything."""
    if isinstance(measure, ConfusionMeasure):
        counts = Counter(frame.select("actual", "predicted", "weight").iter_rows())
        return Confusion.from_cells([(a, p, w * rows) for (a, p, w), rows in counts.items()], n=frame.height)
    rows = frame.with_columns(dialogue=pl.lit(None, pl.String))
    if isinstance(measure, ScopeMeasure):
        rows = VIEWS[measure.view](nw.from_native(rows)).to_native()
    sweep = Rows.from_frame(rows).sweep()
    return cell_totals(measure, sweep) if isinstance(measure, TermMeasure) else sweep


def _scores(measures: Mapping[str, Measure], reduce: Callable[[Measure], Any]) -> dict[str, Score]:
    """Scores whose reductions are made once for all the measures that share them: each is a pass over the rows."""
    made: dict[Any, Any] = {}
    scores = {}
    for name, measure in measures.items():
        reduction = type(measure).reduce
        key = (reduction, getattr(measure, "view", None)) if reduction in _SHARED else measure
        if key not in made:
            made[key] = reduce(measure)
        scores[name] = Score.of(measure, made[key])
    return scores


def _difference(name: str, found: Score, expected: Score, *, whole: bool) -> EngineDifference:
    exact = whole and isinstance(expected.totals, Sweep | Confusion)
    same = found.n == expected.n and (not exact or (found == expected and found.totals == expected.totals))
    undefined = math.isnan(found.value), math.isnan(expected.value)
    apart = 0.0 if found.value == expected.value or all(undefined) else abs(found.value - expected.value)
    return EngineDifference(name, found.value, expected.value, math.inf if math.isnan(apart) else apart, exact, same)


def judged_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The judged columns that measures read, of a log's raw rows: rows without a `weight` weigh 1."""
    judged = responses(frame).frame
    labels = labelled(judged).select("actual", "predicted")
    return pl.concat(
        [labels, judged.select("answered", "right", "out_of_scope", "confidence", "weight")], how="horizontal"
    )


def sample_log(n: int, seed: int) -> pl.DataFrame:
    """Raw rows of a log with all that engines may disagree on.

    Confidences tie, are all distinct, are 0, -0 and 1; labels go beyond ASCII; one dialogue holds about a tenth of the
    rows; weights are whole and fractional; some targets are out of scope, some rows are unanswered, some failed.
    """
    if n < 1:
        raise UsageError(f"a log needs at least 1 row; got {n}")
    rng = np.random.default_rng(seed)
    distinct = rng.beta(2.0, 1.0, size=n)
    kind = rng.random(n)
    tied = np.where(kind < 0.6, np.round(distinct, 2), distinct)
    confidence = np.where(kind < 0.05, rng.choice([0.0, -0.0, 1.0], size=n), tied)
    label = rng.integers(0, len(_LABELS), size=n)
    other = (label + rng.integers(1, len(_LABELS), size=n)) % len(_LABELS)
    predicted = np.where(rng.random(n) < confidence, label, other)  # right about as often as the confidence says
    names = np.array(_LABELS, dtype=object)
    target = np.where(rng.random(n) < 0.05, "oos", names[label]).tolist()
    prediction = np.where(rng.random(n) < 0.03, "nlu_fallback", names[predicted]).tolist()
    failed = rng.random(n) < 0.02
    silent = failed | (rng.random(n) < 0.08)
    number = rng.integers(1, max(2, n // 8), size=n)
    number[rng.random(n) < 0.1] = 0
    return pl.DataFrame(
        {
            "id": [f"q{row}" for row in range(n)],
            "target": target,
            "prediction": prediction,
            "confidence": confidence,
            "dialogue": [f"d{one}" for one in number.tolist()],
            "weight": rng.choice([1.0, 1.0, 2.0, 3.0, 0.5, 0.1, 0.7], size=n),
            "domain": rng.choice(["desk", "phone", "kiosk"], size=n, p=[0.6, 0.3, 0.1]),
            "failed": failed,
        }
    ).with_columns(pl.when(~pl.lit(pl.Series(silent))).then(pl.col("prediction", "confidence")))
