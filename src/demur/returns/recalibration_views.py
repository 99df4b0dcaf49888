"""How recalibration is put into words, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence

from demur.core.show.numbers import listed, p_value, percent, tabled_p, with_interval
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.stats.calibration_maps import METHODS, MapOrder, Method
from demur.core.stats.intervals import Difference, Figure
from demur.returns.recalibration import Calibration, OutOfFold, RecalibratedLog

GIVEN_MAPS = (
    "intervals take the maps of the folds as they were fitted; that other answers would have given other maps is "
    "not in them"
)
FITTED_HERE = "the map was fitted to these very answers, so what it does to them flatters it; judge it on others"
CHOSEN_FOR_IT = "the method was chosen for its Brier score on these answers, so its own figures flatter it a little"


def order_sentence(order: MapOrder) -> str:
    """What a map does to the order of answers.

    >>> order_sentence(MapOrder(before=9, after=4, turned=False))
    'It pools 9 different confidences into 4: a threshold can no longer separate answers with pooled values.'
    """
    if order.kept:
        return (
            "It keeps the order of answers, so the error-return curve stays as it is; thresholds have to be mapped too."
        )
    counts = f"{order.before:,} different confidences into {order.after:,}"
    if order.turned:
        return (
            f"It changes the order of answers and makes {counts}: the error-return curve is another one, and "
            "thresholds have to be chosen again."
        )
    return f"It pools {counts}: a threshold can no longer separate answers with pooled values."


def calibration_sentence(one: Calibration) -> str:
    """What one system's confidences are off by, and what to do."""
    if one.given is None:
        off = f"{one.system}: confidences are scores, not probabilities"
    else:
        side = "too high" if one.bias > 0 else "too low"
        off = f"{one.system}: confidences are off by {percent(one.before['ece'].value)} on average (ECE)"
        off += f"; on the whole they are {side}, by {100 * abs(one.bias):.1f} points" if abs(one.bias) >= 0.005 else ""
    if one.chosen is None:
        return f"{off}. Whether recalibrating would help is unknown: {one.why}."
    after = f"{one.chosen.name} leaves {_percent(one.after['ece'])}"
    if one.change is None:
        return f"{off}. On answers that it was not fitted to, {after}."
    fall = f"{with_interval(-one.change.value, -one.change.high, -one.change.low, write=_four)}"
    if one.advice == "recalibrate":
        return (
            f"{off}. Recalibrate: on answers that it was not fitted to, {after}, and the Brier score falls by {fall}, "
            f"corrected {p_value(one.change.p_adjusted)}."
        )
    if one.change.value < 0 and one.change.p_adjusted < 1 - one.chosen.level:
        return f"{off}, which is too little to correct: leave them as they are."
    return f"{off}. No method is shown to lower the Brier score out of fold: leave them as they are."


def choice_sentence(one: Calibration) -> str:
    """Which method the map is of, and whether it is significantly better than the others."""
    assert one.chosen is not None
    brier = _figure(one.after["brier"])
    start = f"The lowest Brier score out of fold is that of {one.chosen.name}, {brier}"
    if one.asked:
        start = f"The Brier score of {one.chosen.name} out of fold is {brier}"
    level = 1 - one.chosen.level
    better = [name for name, lead in one.leads.items() if lead.value < 0 and lead.p_adjusted < level]
    worse = [name for name, lead in one.leads.items() if lead.value > 0 and lead.p_adjusted < level]
    alike = [name for name in one.leads if name not in (*better, *worse)]
    parts = [
        f"significantly lower than that of {_titles(better)}" if better else "",
        f"significantly higher than that of {_titles(worse)}" if worse else "",
        f"no significant difference from {_titles(alike)}" if alike else "",
    ]
    return f"{start}: {'; '.join(filter(None, parts))}."


def method_table(one: Calibration) -> ResultTable:
    """The figures of every method out of fold, with the change of the Brier score and its test."""
    sides = [*([] if one.given is None else [one.given]), *one.methods.values()]
    rows = tuple(
        (side.name, *(_figure(side.figures[key]) for key in ("ece", "brier", "nce")), *_change(one, side))
        for side in sides
    )
    columns = ("confidences", "ECE", "Brier score", "NCE", "change of Brier score", "corrected p")
    brief = ResultTable("Out of fold", columns[:-2], tuple(row[:-2] for row in rows))
    return ResultTable(f"{one.system}, {one.answers:,} answers, each mapped out of fold", columns, rows, brief=brief)


def _change(one: Calibration, side: OutOfFold) -> tuple[str, str]:
    change = None if side.method is None else one.changes.get(side.method)
    return ("–", "–") if change is None else (_difference(change), tabled_p(change.p_adjusted))


def calibration_table(calibrations: Sequence[Calibration]) -> ResultTable:
    """Confidences as they are and by the best method out of fold, a row for each system."""
    rows = tuple(
        (
            one.system,
            _figure(one.before["ece"]),
            _figure(one.after["ece"]),
            _figure(one.before["brier"]),
            _figure(one.after["brier"]),
            "–" if one.change is None else _difference(one.change),
            "–" if one.chosen is None else one.chosen.name,
        )
        for one in calibrations
    )
    names = ("system", "ECE", "ECE out of fold", "Brier", "Brier out of fold", "change of Brier", "method")
    return ResultTable("Confidences as they are, and recalibrated out of fold", names, rows)


def reliability_drawing(one: Calibration) -> Drawing:
    """Reliability as given and by the chosen method out of fold."""
    return drawing("returns.charts.readings.recalibration_chart", one)


def fold_notes(one: Calibration) -> tuple[str, ...]:
    """How the folds were dealt, and what the figures leave out."""
    if one.fitted is None or one.chosen is None:
        return ()
    dealt = "answers" if one.chosen.dialogues is None else f"{one.chosen.dialogues:,} dialogues"
    folds = f"{dealt} dealt at random into {one.fitted.folds} folds, stratified by errors, seed {one.fitted.seed}"
    return (folds, GIVEN_MAPS, *(() if one.asked else (CHOSEN_FOR_IT,)))


def of_calibration(one: Calibration) -> Presentation:
    """How a fitted recalibration is shown."""
    assert one.order is not None
    return Presentation(
        title="Recalibration",
        sentences=(calibration_sentence(one), choice_sentence(one), order_sentence(one.order)),
        tables=(method_table(one),),
        figures=(reliability_drawing(one),),
        data=one.frame,
        document=one.to_dict(),
        notes=one.notes,
        warnings=one.warnings,
    )


def of_recalibrated_log(log: RecalibratedLog) -> Presentation:
    """How a recalibrated log is shown."""
    sides = log.sides
    return Presentation(
        title="Recalibrated log",
        sentences=(*_log_sentences(log), order_sentence(log.order)),
        tables=(_log_table(log, sides),) if sides else (),
        figures=(drawing("returns.charts.readings.recalibration_chart", log),) if sides else (),
        data=lambda: log.table,
        document=log.to_dict(),
        notes=log.notes,
        warnings=(*log.warnings, *((FITTED_HERE,) if log.fitted_here else ())),
    )


def _log_sentences(log: RecalibratedLog) -> list[str]:
    recalibration = log.recalibration
    sentences = [
        f"{log.mapped:,} confidences in {log.table.height:,} rows are mapped by "
        f"{METHODS[recalibration.method].title}, fitted on {recalibration.n:,} answers."
    ]
    if log.after is not None:
        after = _percent(log.after.figures["ece"])
        before = "" if log.before is None else f"from {_percent(log.before.figures['ece'])} "
        sentences.append(f"{log.system}: the ECE goes {before}to {after}.")
    if (change := log.change) is not None:
        assert log.after is not None
        shown = "" if change.p < 1 - log.after.level else ", which is no significant difference"
        sentences.append(f"The Brier score changes by {_difference(change)}, {p_value(change.p)}{shown}.")
    return sentences


def _log_table(log: RecalibratedLog, sides: Sequence[OutOfFold]) -> ResultTable:
    rows = tuple((side.name, *(_figure(side.figures[key]) for key in ("ece", "brier", "nce"))) for side in sides)
    return ResultTable(f"{log.system}, {sides[0].n:,} answers", ("confidences", "ECE", "Brier score", "NCE"), rows)


def _titles(names: Sequence[Method]) -> str:
    return listed([METHODS[name].title for name in names])


def _figure(figure: Figure) -> str:
    if not figure.defined:
        return "–"
    return with_interval(figure.value, figure.low, figure.high, write=_four)


def _percent(figure: Figure) -> str:
    return with_interval(figure.value, figure.low, figure.high, write=percent)


def _difference(change: Difference) -> str:
    return with_interval(change.value, change.low, change.high, write="{:+.4f}".format)


def _four(value: float) -> str:
    return f"{value:.4f}"
