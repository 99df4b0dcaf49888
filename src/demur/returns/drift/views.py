"""How drift is put into words, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from demur.core.show.numbers import ends, interval, listed, p_value, percent, tabled_p, tabled_percent, with_interval
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.stats.intervals import Figure
from demur.returns.drift.analysis import MOST_LABELS, Drift, PromiseCheck
from demur.returns.drift.changes import Change, Distance, LabelShare

NAMES = {
    "confidence.distance": "confidences (Kolmogorov-Smirnov)",
    "confidence.mean": "mean confidence",
    "answers.distance": "answers (Cramer's V)",
    "withheld": "withheld by itself",
    "failed": "failed",
    "out_of_scope": "targets out of scope",
    "error": "error, all returned",
    "augrc": "AUGRC",
    "calibration.excess": "confidence above accuracy",
    "at_threshold.nonreturn": "non-return at the threshold",
    "at_threshold.error": "error at the threshold",
    "at_threshold.risk": "error among answers returned",
}
"""What the changes are called in tables."""

NUMBERS = ("confidence.mean", "augrc")
"""Changes that are numbers; the others that are no distances are rates."""

ALSO = ("withheld", "failed", "out_of_scope", "calibration.excess", "at_threshold.nonreturn")
"""Changes that one sentence tells together, where they are significant."""

MOST_NAMED = 3
"""Labels that a sentence names."""

HEADLINE = ("error", "augrc", "confidence.mean", "confidence.distance", "answers.distance")
"""Changes that a headline names first."""

MOST_CHANGES = 2
"""Changes that a headline names."""

EVENTS = {"error": "are answered wrongly", "nonreturn": "are not answered"}


def drift_sentences(drift: Drift) -> list[str]:
    """What changed, at most five sentences: the promise, errors, confidences, answers, and the rest."""
    promise = [] if drift.promise is None else [promise_sentence(drift.promise, drift.printed_threshold)]
    return [*promise, _errors(drift), _confidences(drift), *_answers(drift), *_others(drift)]


def promise_sentence(check: PromiseCheck, threshold: str) -> str:
    """Whether the promise holds, with the rate it is about."""
    limit = f"at most {percent(check.bound)}"
    if check.why is not None:
        return f"Whether the promise ({check.what} rate {limit}) holds cannot be checked: {check.why}."
    rate = _promised_rate(check, threshold)
    if check.verdict == "broken":
        return f"The promise is broken: {rate}, more than the {percent(check.bound)} promised."
    if check.verdict == "holds":
        return f"The promise holds: {rate}, and {limit} was promised."
    return f"Whether the promise holds is not shown either way: {rate}, where {limit} was promised."


def _promised_rate(check: PromiseCheck, threshold: str) -> str:
    """What the threshold does to the new log."""
    figure = check.figure
    share = f"{percent(figure.value)} of the new inputs {EVENTS[check.what]}"
    tested = with_interval(share, figure.low, figure.high, p_value(figure.p_adjusted), write=percent)
    return f"at threshold {threshold}, {tested}"


def _errors(drift: Drift) -> str:
    if not drift.judged:
        lacking = [word for word, log in zip(("old", "new"), drift.logs.sides, strict=True) if not log.judged]
        logs = f"the {listed(lacking)} log{'s do' if len(lacking) > 1 else ' does'}"
        return f"Errors and calibration cannot be compared: {logs} not tell right from wrong."
    error, area = drift.changes["error"], drift.changes["augrc"]
    if len(drift.logs.silent) == 1:
        return f"Errors cannot be compared: {error.difference.why}."
    old = f"{percent(error.old)} of the old inputs are answered wrongly when all is returned"
    rates = f"{old}, {percent(error.new)} of the new"
    tested = f"{rates}{_test(error, _points)}; AUGRC {area.old:.4f} and {area.new:.4f}{_test(area, _signed)}"
    return f"{_error_words(drift)}: {tested}."


def _confidences(drift: Drift) -> str:
    distance, mean = drift.changes["confidence.distance"], drift.changes["confidence.mean"]
    if distance.test is None:
        return f"Confidences cannot be compared: {distance.difference.why}."
    tested = f"Kolmogorov-Smirnov distance {_test(distance, '{:.3f}'.format, bare=True)}"
    if mean.test is not None:
        tested += f"; mean {mean.old:.3f} in the old log, {mean.new:.3f} in the new{_test(mean, _signed)}"
    return f"{_confidence_words(distance, mean, drift.level)}: {tested}."


def _answers(drift: Drift) -> list[str]:
    change = drift.changes["answers.distance"]
    if change.test is None:
        return []
    tested = f"Cramer's V {_test(change, '{:.3f}'.format, bare=True)}"
    if not change.is_significant(drift.level):
        return [f"No significant change in which answers are given: {tested}."]
    moved = [f'"{one.label}" ({percent(one.old)}, then {percent(one.new)})' for one in drift.labels.shares[:MOST_NAMED]]
    most = f"; most of all {listed(moved)}" if moved else ""
    return [f"Other answers are given: {tested}{most}."]


def _others(drift: Drift) -> list[str]:
    shown = [one for one in drift.significant if one.name in ALSO]
    parts = [f"{_moved(one)}{_test(one, _points)}" for one in shown]
    return [f"Changed as well: {'; '.join(parts)}."] if parts else []


def change_headline(drift: Drift) -> str | None:
    """What changed in one sentence; None where nothing is shown to have changed."""
    between = f"from {drift.logs.old.name} to {drift.logs.new.name}"
    check = drift.promise
    if check is not None and check.verdict == "broken":
        limit = f"at most {percent(check.bound)} of inputs that {EVENTS[check.what]}"
        rate = _promised_rate(check, drift.printed_threshold)
        return f"A threshold does not keep its promise, {limit}, {between}: {rate}."
    first = [drift.changes[name] for name in HEADLINE if name in drift.changes]
    ordered = [*first, *(one for name, one in drift.changes.items() if name not in HEADLINE)]
    shown = [one for one in ordered if one.is_significant(drift.level)]
    if not shown:
        return None
    more = f"; and {len(shown) - MOST_CHANGES} more" if len(shown) > MOST_CHANGES else ""
    changes = "; ".join(map(_moved, shown[:MOST_CHANGES]))
    return f"It has changed {between}: {changes}{more}."


def _moved(change: Change) -> str:
    """A change in a few words."""
    name = NAMES[change.name]
    if isinstance(change.test, Distance):
        return f"{name} {change.difference.value:.3f}"
    return f"{name} {_figure(change, change.old)}, then {_figure(change, change.new)}"


def _test(change: Change, write: Callable[[float], str], *, bare: bool = False) -> str:
    """A difference with interval and p-value; in brackets, unless it stands bare."""
    one = change.difference
    if math.isnan(one.p):
        return ""
    value, p = f"{write(one.value)}{' points' if write is _points else ''}", p_value(one.p_adjusted)
    if bare:
        return with_interval(value, one.low, one.high, p, write=write)
    return f" ({value}, {ends(one.low, one.high, write)}, {p})"


def _points(rate: float) -> str:
    return f"{100 * rate:+.1f}"


def _signed(value: float) -> str:
    return f"{value:+.4f}"


def change_table(drift: Drift) -> ResultTable:
    """Every change with its test, or why there is none."""
    rows = []
    for name, change in drift.changes.items():
        one = change.difference
        sides = [_figure(change, value) for value in (change.old, change.new)]
        if change.test is None:
            rows.append((NAMES[name], *sides, f"– ({one.why})", "–"))
            continue
        write = "{:.3f}".format if isinstance(change.test, Distance) else _signed if name in NUMBERS else _points
        span = with_interval(one.value, one.low, one.high, write=write)
        rows.append((NAMES[name], *sides, span, tabled_p(one.p_adjusted)))
    if drift.ece is not None:
        rows.append(("ECE", *(_ece(one) for one in drift.ece), "–", "–"))
    title = f"Old and new, intervals and p corrected for {drift.tests} tests"
    return ResultTable(title, ("what", "old", "new", "change (points, or number)", "corrected p"), tuple(rows))


def _figure(change: Change, value: float) -> str:
    if math.isnan(value):
        return "–"
    if change.name == "calibration.excess":
        return f"{_points(value)} points"
    return f"{value:.4f}" if change.name in NUMBERS else tabled_percent(value)


def _ece(figure: Figure) -> str:
    return f"{tabled_percent(figure.value)} ({interval(figure, lambda rate: f'{100 * rate:.1f}')})"


def label_tables(drift: Drift) -> list[ResultTable]:
    """The labels that moved most, where answers are shown to have changed, and those that only the new log has."""
    moved = drift.labels.shares if drift.changes["answers.distance"].is_significant(drift.level) else ()
    tables = []
    new = drift.labels.unseen if drift.labels.why is None else ()  # answers in free text are mostly new
    for title, shares in (("Answers that moved most", moved), ("Answers that are new", new)):
        if shares:
            rest = f", {MOST_LABELS} of {len(shares):,}" if len(shares) > MOST_LABELS else ""
            rows = tuple(map(_share, shares[:MOST_LABELS]))
            tables.append(ResultTable(f"{title}{rest}", ("answer", "old", "new"), rows))
    return tables


def _share(one: LabelShare) -> tuple[str, str, str]:
    return one.label, tabled_percent(one.old), tabled_percent(one.new)


def log_table(drift: Drift) -> ResultTable:
    """What the two logs consist of."""
    rows = []
    for word, values in ((word, drift.to_dict()[word]) for word in ("old", "new")):
        counts = ("n", "dialogues", "answered", "withheld", "failed", "out_of_scope")
        rows.append((word, values["name"], *("–" if values[name] is None else f"{values[name]:,}" for name in counts)))
    columns = ("", "log", "inputs", "dialogues", "answered", "withheld by itself", "failed", "out of scope")
    return ResultTable("Logs", columns, tuple(rows))


def drift_drawings(drift: Drift) -> tuple[Drawing, ...]:
    """The distributions of confidences, and the error-return curves where both logs are judged."""
    figures = [] if drift.changes["confidence.distance"].test is None else ["confidence_drift_chart"]
    figures += ["drift_curves_chart"] if drift.judged else []
    return tuple(drawing(f"returns.charts.slices.{name}", drift) for name in figures)


def of_drift(drift: Drift) -> Presentation:
    """How drift is shown."""
    return Presentation(
        title="Has it changed?",
        sentences=tuple(drift_sentences(drift)),
        tables=(change_table(drift), *label_tables(drift), log_table(drift)),
        figures=drift_drawings(drift),
        data=drift.frame,
        document=drift.to_dict(),
        notes=drift.notes,
        warnings=drift.warnings,
    )


def confidence_title(drift: Drift) -> str:
    """What happened to confidences, for a title."""
    distance, mean = drift.changes["confidence.distance"], drift.changes["confidence.mean"]
    test = f"Kolmogorov-Smirnov distance {distance.difference.value:.3f}, {p_value(distance.difference.p_adjusted)}"
    return f"{_confidence_words(distance, mean, drift.level)}: {test}"


def _confidence_words(distance: Change, mean: Change, level: float) -> str:
    if mean.is_significant(level):
        return f"Confidences are {'higher' if mean.new > mean.old else 'lower'}"
    changed = distance.is_significant(level)
    return "Confidences are distributed differently" if changed else "No significant change in confidences"


def error_title(drift: Drift) -> str:
    """What happened to errors, for a title: at the threshold, if one is in use, otherwise when all is returned."""
    at = drift.changes.get("at_threshold.error")
    if at is None or drift.threshold is None:
        one, words, where = drift.changes["error"], _error_words(drift), "when all is returned"
        if len(drift.logs.silent) == 1:
            return f"Errors cannot be compared: {one.difference.why}"
    else:
        one, words, where = at, _direction(drift, [at]), f"at threshold {drift.printed_threshold}"
    return f"{words}: {percent(one.old)} in the old log, {percent(one.new)} in the new, {where}"


def _error_words(drift: Drift) -> str:
    return _direction(drift, [drift.changes["error"], drift.changes["augrc"]])


def _direction(drift: Drift, changes: Sequence[Change]) -> str:
    """Whether changes of errors are significant, and which way they go."""
    ups = {one.difference.value > 0 for one in changes if one.is_significant(drift.level)}
    if not ups:
        return "No significant change in errors"
    return "Errors changed" if len(ups) == 2 else "More errors" if ups == {True} else "Fewer errors"
