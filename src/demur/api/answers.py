"""Jobs on answers with confidences: from files, frames or judged responses to results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from demur.analyses.comparison import Comparison
from demur.analyses.comparison import compare as compare_systems
from demur.analyses.evaluation import Evaluations, evaluate, evaluate_tallies, returns_measures
from demur.analyses.labels import ClassReports, class_reports, class_reports_of_cells
from demur.analyses.threshold import Choice, threshold_by_cost, threshold_by_error, threshold_by_nonreturn
from demur.data.columns import nearest
from demur.data.lazy_judging import LazyResponses, judge_lazily
from demur.data.responses import Reading, Responses, read_responses, responses
from demur.errors import DataError, UsageError
from demur.measures.areas import Convention
from demur.measures.reduction import EXACT_UP_TO, label_cells, tallies
from demur.measures.resampling import Rows, Sample
from demur.measures.sweep_files import SweepFile, gathered, merged
from demur.measures.tally import Tally
from demur.measures.tally_samples import tally_sample


def read(*data: Any, reading: Reading | None = None, **options: Any) -> Responses:
    """Judged responses from files, globs, frames (Polars, pandas, PyArrow, DuckDB ...), lists of dicts, or a mixture.

    Options are those of `Reading`: `columns={"target": "gold"}`, `where=(("split", "test"),)`, `keep=("domain",)` ...
    Several frames without a column `system` are called system 1, system 2 and so on; a dict of names to files or
    frames names them.
    """
    if reading is not None and options:
        raise UsageError("give either reading=Reading(...) or its options, not both")
    how = _reading(options) if reading is None else reading
    if len(data) == 1 and named_systems(data[0]):
        return _joined([_renamed(read(one, reading=how), name) for name, one in data[0].items()])
    unnamed = sum(not isinstance(one, str | Path | Responses) for one in data)
    parts = [_read_one(one, how, f"system {place}" if unnamed > 1 else None) for place, one in enumerate(data, start=1)]
    if not parts:
        raise UsageError("there is nothing to read: give a file, a frame or a list of rows")
    return parts[0] if len(parts) == 1 else _joined(parts)


def score(
    *data: Any,
    by: str | None = None,
    at_nonreturn: float | tuple[float, float] = 0.2,
    at_error: float = 0.05,
    aurc: Convention = "trapezoid",
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    **options: Any,
) -> Evaluations:
    """Error-return curve, areas and operating points of each system, with intervals; further options go to `read`.

    A lazy frame (Polars, DuckDB, PySpark ...) is counted by the engine that holds it, and never brought here. It takes
    the options `system`, a name where no column names it, `exact_up_to`, the rows up to which every distinct confidence
    is kept, and `check_ids`, besides those of `read`.
    """
    if (rows := _lazily(data)) is not None:
        measures = returns_measures(at=at_nonreturn, aurc=aurc, error=at_error)
        found = _tallies(rows, by, options)
        return evaluate_tallies(found, measures=measures, level=level, replicates=replicates, seed=seed)
    judged = read(*data, **{**({"keep": (by,)} if by else {}), **options})
    measures = returns_measures(at=at_nonreturn, aurc=aurc, error=at_error)
    return evaluate(judged, measures=measures, by=by, level=level, replicates=replicates, seed=seed)


def merge(
    *parts: str | Path | SweepFile,
    at_nonreturn: float | tuple[float, float] = 0.2,
    at_error: float = 0.05,
    aurc: Convention = "trapezoid",
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    system: str | None = None,
    apart: bool = False,
    allow_repeats: bool = False,
) -> Evaluations:
    """What `score` of a whole log shows, from the sweeps of its parts: `.sweep` files, globs, or sweeps already read.

    Logs that name no system are taken for parts of one, which `system` names, unless they are to stay `apart`. A log
    that is in two parts is refused; `allow_repeats` is for different logs of one name.
    """
    whole = merged(gathered(*parts), system=system, apart=apart, allow_repeats=allow_repeats)
    measures = returns_measures(at=at_nonreturn, aurc=aurc, error=at_error)
    return evaluate_tallies(whole.tallies, measures=measures, level=level, replicates=replicates, seed=seed)


def compare(
    *data: Any,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    at_nonreturn: float = 0.2,
    region: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """Two or more systems against each other, paired by id; further options go to `read`."""
    return compare_systems(
        read(*data, **options),
        systems=systems,
        matched=matched,
        unpaired=unpaired,
        at=at_nonreturn,
        measures=returns_measures(at=at_nonreturn),
        region=region,
        level=level,
        replicates=replicates,
        seed=seed,
    )


def threshold(
    *data: Any,
    cost_ratio: float | None = None,
    max_error: float | None = None,
    delta: float | None = None,
    max_nonreturn: float | None = None,
    system: str | None = None,
    **options: Any,
) -> Choice:
    """The threshold for a cost ratio, an error rate (guaranteed with `delta`) or a non-return rate, for one system."""
    choose = aim(cost_ratio=cost_ratio, max_error=max_error, delta=delta, max_nonreturn=max_nonreturn)
    if (rows := _lazily(data)) is not None:
        tally = one_tally(_tallies(rows, None, options), system)
        return choose(tally_sample(tally), name=tally.system)
    judged = one_system(read(*data, **options), system)
    return choose(Sample(Rows.from_frame(judged.frame)), name=judged.systems[0])


def aim(
    *, cost_ratio: float | None, max_error: float | None, delta: float | None, max_nonreturn: float | None
) -> Callable[..., Choice]:
    """What chooses a threshold from a sample, for the one aim that is given."""
    asked = {"--cost-ratio": cost_ratio, "--max-error": max_error, "--max-nonreturn": max_nonreturn}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        named = " and ".join(given) or "none"
        raise UsageError(
            "choose by exactly one of a cost ratio (--cost-ratio), a limit on errors (--max-error, with --delta for a "
            f"guarantee) and a limit on non-returns (--max-nonreturn); got {named}"
        )
    if delta is not None and max_error is None:
        raise UsageError("--delta goes with --max-error: it is the chance that the promised error rate is exceeded")
    if cost_ratio is not None:
        return partial(threshold_by_cost, ratio=cost_ratio)
    if max_error is not None:
        return partial(threshold_by_error, most=max_error, delta=delta)
    assert max_nonreturn is not None
    return partial(threshold_by_nonreturn, most=max_nonreturn)


def classes(*data: Any, level: float = 0.95, replicates: int = 1000, seed: int = 0, **options: Any) -> ClassReports:
    """Precision, recall and F of each class, averages and kappa of each system.

    Every label counts as a label, those that mean out of scope too, and no confidences are needed.
    """
    options = {"out_of_scope": (), "missing_confidence": "lowest", **options}
    if (rows := _lazily(data)) is not None:
        judged = _judged_lazily(rows, None, options, labels=True)
        cells, clustered = label_cells(judged), judged.clustered
        return class_reports_of_cells(cells, clustered=clustered, level=level, replicates=replicates, seed=seed)
    return class_reports(read(*data, **options), level=level, replicates=replicates, seed=seed)


def one_system(judged: Responses, system: str | None) -> Responses:
    """The responses of the named system, or of the only one there is."""
    if system is not None:
        return judged.of(system)
    if len(judged.systems) > 1:
        raise UsageError(f"a threshold belongs to one system; choose with --system from {', '.join(judged.systems)}")
    return judged


def one_tally(tallies: Sequence[Tally], system: str | None) -> Tally:
    """The tally of the named system, or of the only one there is."""
    systems = tuple(tally.system for tally in tallies)
    if system is not None and system not in systems:
        raise DataError(f'there is no system "{system}"', fix=nearest(system, systems))
    if system is None and len(systems) > 1:
        raise UsageError(f"a threshold belongs to one system; choose with --system from {', '.join(systems)}")
    return tallies[0 if system is None else systems.index(system)]


def _lazily(data: tuple[Any, ...]) -> nw.LazyFrame[Any] | None:
    """The only thing given, if it is a frame that an engine has yet to compute."""
    if len(data) != 1 or isinstance(data[0], str | Path | Responses):
        return None
    frame = nw.from_native(data[0], pass_through=True)
    return frame if isinstance(frame, nw.LazyFrame) else None


def _judged_lazily(
    rows: nw.LazyFrame[Any], by: str | None, options: dict[str, Any], *, labels: bool = False
) -> LazyResponses:
    given = {name: options[name] for name in ("system", "check_ids") if name in options}
    reading = _reading({name: value for name, value in options.items() if name not in ("system", "check_ids")})
    return judge_lazily(rows, reading=reading, by=by, labels=labels, **{"system": "system", **given})


def _tallies(rows: nw.LazyFrame[Any], by: str | None, options: dict[str, Any]) -> list[Tally]:
    rest = {name: value for name, value in options.items() if name != "exact_up_to"}
    return tallies(_judged_lazily(rows, by, rest), exact_up_to=options.get("exact_up_to", EXACT_UP_TO))


def check_options(options: dict[str, Any], reading: type, others: tuple[str, ...]) -> None:
    """Refuse options that a reading does not have, with the one that was likely meant."""
    known = [part.name for part in fields(reading)]
    for name in options:
        if name not in known:
            near = get_close_matches(name, [*known, "level", "replicates", "seed", *others], n=1)
            hint = f' Did you mean "{near[0]}"?' if near and near[0] != name else ""
            raise UsageError(f'there is no option "{name}" here.{hint} Options for reading: {", ".join(known)}')
    for pair in options.get("where", ()):
        if isinstance(pair, str) or len(pair) != 2:
            raise UsageError('where is a sequence of (column, value) pairs, such as where=(("split", "test"),)')


def _reading(options: dict[str, Any]) -> Reading:
    check_options(options, Reading, ("at_nonreturn", "by"))
    return Reading(**options)


def _read_one(data: Any, reading: Reading, name: str | None) -> Responses:
    if isinstance(data, Responses):
        return data
    if isinstance(data, str | Path):
        return read_responses(data, reading=reading)
    return responses(data, system=name, reading=reading)


def named_systems(data: Any) -> bool:
    """Whether this is a dict of systems rather than one of columns."""
    return (
        isinstance(data, dict)
        and bool(data)
        and all(isinstance(one, str | Path | Responses) or hasattr(one, "columns") for one in data.values())
    )


def _renamed(part: Responses, name: str) -> Responses:
    if len(part.systems) > 1:
        raise UsageError(
            f'"{name}" holds several systems: {", ".join(part.systems)}; give the table without a new name'
        )
    return replace(part, frame=part.frame.with_columns(pl.lit(name).alias("system")))


def _joined(parts: list[Responses]) -> Responses:
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.warnings))
    return replace(parts[0], frame=frame, notes=notes, warnings=warnings)
