"""Jobs on outcomes: what explains what dialogues achieved, and what an untried system would achieve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from demur.core.io.files import read_table, table_of
from demur.core.io.tables import ROW, Request
from demur.errors import UsageError
from demur.outcome.features import MIN_PER_DIALOGUE, Rejections, Undefined, design
from demur.outcome.fitting import OutcomeFit, Procedure, Regression
from demur.outcome.fitting import fit_outcome as fit_design
from demur.outcome.fitting import regress as regress_rows
from demur.outcome.models import OutcomeModel, read_model
from demur.outcome.prediction import OutcomeComparison, Prediction, UnknownLabels, compared, predict
from demur.outcome.stepwise import Direction, Selection, Start
from demur.outcome.table import DialogueReading, Dialogues, dialogues, read_dialogues, table_rows
from demur.returns.jobs import read
from demur.returns.table import Responses

Model = str | Path | OutcomeModel | OutcomeFit


def fit_outcome(
    *turns: Any,
    outcomes: Any,
    outcome: str | None = None,
    map_outcomes: Mapping[str, str] | None = None,
    features: str | Sequence[str] = "conf+scores.f",
    direction: Direction = "both",
    start: Start = None,
    min_per_dialogue: float = MIN_PER_DIALOGUE,
    undefined: Undefined = "impute-mean",
    rejections: Rejections = "counted",
    matched: bool = False,
    folds: int | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    **options: Any,
) -> OutcomeFit:
    """A model of what dialogues achieved, by scores and confusions of one component in their turns.

    Turns are what `read` takes, and further options go to it. `outcomes` is a table of dialogues (a file, a frame or
    rows): `dialogue`, and the column `outcome` or `pre` and `post`; `group` where someone held several;
    `map_outcomes={"group": "caller"}` names a column that is called differently. The model is
    `.model`, and `.model.to_json()` is the file that `demur outcome predict` reads. No replicates, no bootstrap.
    """
    table = _dialogues(outcomes, outcome, map_outcomes)
    made = design(
        table,
        _turns(turns, options),
        features=features,
        least=min_per_dialogue,
        undefined=undefined,
        rejections=rejections,
        allow_unmatched=matched,
    )
    chosen = Selection(direction=direction, start=start)
    return fit_design(made, how=Procedure(selection=chosen, folds=folds, replicates=replicates, seed=seed, level=level))


def regress(
    table: Any,
    *,
    outcome: str,
    candidates: Sequence[str] | None = None,
    group: str | None = None,
    direction: Direction = "both",
    start: Start = None,
    folds: int | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> Regression:
    """Stepwise regression of a column under AIC, as R's step(), with leave-one-out, nested validation and bootstrap.

    The table (a file, a frame or rows) has a row per dialogue. Candidates are columns, by default all other numbers.
    """
    frame = read_table(table) if isinstance(table, str | Path) else table_of(table, Request()).frame.drop(ROW)
    rows = table_rows(frame, outcome=outcome, candidates=candidates, group=group)
    chosen = Selection(direction=direction, start=start)
    how = Procedure(selection=chosen, folds=folds, replicates=replicates, seed=seed, level=level)
    return regress_rows(rows.x, rows.y, rows.names, outcome=outcome, how=how, groups=rows.groups)


def predict_outcome(
    model: Model,
    *turns: Any,
    extrapolate: bool = False,
    pooled: bool = False,
    unknown_labels: UnknownLabels = "refuse",
    level: float = 0.95,
    **options: Any,
) -> Prediction:
    """The outcome that a model predicts for one system, from its answers on turns with known labels.

    The model is a fit, its `.model`, or a file. A system unlike the training data is refused: then `.refused` holds,
    the value is NaN and `.outside` says why; `extrapolate` predicts all the same. Labels that the model does not know
    are refused too; `unknown_labels="drop"` leaves out the turns that have them, and `.left_out` says how many.
    Further options go to `read`.
    """
    judged = _turns(turns, options)
    if len(judged.systems) > 1:
        raise UsageError(f"these are the turns of {', '.join(judged.systems)}; compare_outcomes takes several systems")
    how: dict[str, Any] = {"extrapolate": extrapolate, "unknown_labels": unknown_labels, "level": level}
    return predict(_model(model), judged, pooled=pooled or None, **how)


def compare_outcomes(
    model: Model,
    *turns: Any,
    extrapolate: bool = False,
    pooled: bool = False,
    unknown_labels: UnknownLabels = "refuse",
    level: float = 0.95,
    **options: Any,
) -> OutcomeComparison:
    """Two or more systems by predicted outcome; systems are named as by `compare`, and further options go to `read`.

    `extrapolate`, `pooled` and `unknown_labels` are those of `predict_outcome`.
    """
    judged = _turns(turns, options)
    if len(judged.systems) < 2:
        raise UsageError("a comparison needs two systems or more; predict_outcome takes one")
    systems = (judged.of(system) for system in judged.systems)
    how: dict[str, Any] = {"extrapolate": extrapolate, "unknown_labels": unknown_labels, "level": level}
    return compared(_model(model), systems, pooled=pooled or None, **how)


def _turns(data: tuple[Any, ...], options: dict[str, Any]) -> Responses:
    """Every label counts as a label, those that mean out of scope too, and no confidences are needed."""
    return read(*data, **{"out_of_scope": (), "missing_confidence": "lowest", **options})


def _dialogues(data: Any, outcome: str | None, columns: Mapping[str, str] | None) -> Dialogues:
    if isinstance(data, Dialogues):
        if outcome is not None or columns:
            raise UsageError("the table of dialogues is read already, so it takes no outcome and no other columns")
        return data
    reading = DialogueReading(outcome=outcome, columns=columns or {})
    return read_dialogues(data, reading=reading) if isinstance(data, str | Path) else dialogues(data, reading=reading)


def _model(model: Model) -> OutcomeModel:
    if isinstance(model, OutcomeFit):
        return model.model
    return model if isinstance(model, OutcomeModel) else read_model(model)
