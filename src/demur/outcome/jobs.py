"""The jobs on outcomes: what explains what dialogues achieved, and what an untried system would achieve.

Only light modules are imported here, as every command loads this one for its help.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.core.jobs import Job, Output, job
from demur.core.options import ROW_ENDINGS, Level, Seed, Where
from demur.core.show.results import Step, silent
from demur.errors import DataError, UsageError
from demur.outcome import options
from demur.returns.jobs import read
from demur.returns.options import (
    WITHHELD,
    Columns,
    EngineName,
    MissingConfidence,
    NoLabels,
    SparkMaster,
    Withheld,
    reading_of,
)

if TYPE_CHECKING:
    from demur.outcome.baseline import BaselineLog
    from demur.outcome.features import Turns
    from demur.outcome.fitting import OutcomeFit, Regression
    from demur.outcome.prediction import OutcomeComparison, OutcomeModel, Prediction
    from demur.outcome.table import Dialogues
    from demur.returns.table import Responses


@job
def fit_outcome(
    *turns: options.TurnLogs,
    outcomes: options.Outcomes,
    outcome: options.OutcomeColumn = None,
    map_outcomes: options.MapOutcomes = None,
    features: options.Features = "conf+scores.f",
    direction: options.SearchDirection = "both",
    start: options.SearchStart = None,
    keep: options.Keep = (),
    min_per_dialogue: options.MinPerDialogue = options.MIN_PER_DIALOGUE,
    undefined: options.UndefinedPolicy = "impute-mean",
    rejections: options.RejectionPolicy = "counted",
    matched: options.Matched = False,
    folds: options.Folds = None,
    sets: options.Sets = False,
    learners: options.Learners = False,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: NoLabels = (),
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "lowest",
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    level: Level = 0.95,
    replicates: options.ModelReplicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "OutcomeFit":
    """Explain what dialogues achieved by the scores and confusions of one component in their turns.

    Turns are what `read` takes. `outcomes` is a table of dialogues (a file, a frame or rows): `dialogue`, and the
    column `outcome` or `pre` and `post`; `group` where someone held several; `map_outcomes={"group": "caller"}` names
    a column that is called differently. The model is `.model`, and `.model.to_json()` is the file that
    `demur outcome predict` reads.
    """
    from demur.outcome.features import design
    from demur.outcome.fitting import Procedure, feature_sets, fit_beta, fit_design, mse_decreases, validate_learners
    from demur.outcome.stepwise import Selection

    step("reading", 0, 1)
    reading = (columns, where, out_of_scope, withheld, missing_confidence)
    judged = _counted_turns(turns, reading, engine, spark_master, rejections) or _turns(turns, *reading)
    table = _dialogues(outcomes, outcome, map_outcomes)
    common: dict[str, Any] = {"least": min_per_dialogue, "undefined": undefined}
    common |= {"rejections": rejections, "allow_unmatched": matched}
    made = design(table, judged, features=features, **common)
    plain = Procedure(Selection(direction, start), folds=folds, replicates=replicates, seed=seed, level=level)
    how = replace(plain, selection=plain.selection.keeping(keep, made.names))
    compared = feature_sets(table, judged, how=plain, step=step, **common) if sets else ()
    return replace(
        fit_design(made, how=how, step=step),
        sets=compared,
        decreases=mse_decreases(compared, made, level),
        learners=validate_learners(made, how=how, step=step) if learners else {},
        beta=fit_beta(made, how=how) if learners else None,
        reading_notes=(*table.notes, *judged.notes),
        reading_warnings=(*table.warnings, *judged.warnings),
    )


@job
def regress(
    table: options.TableFile,
    *,
    outcome: options.ExplainedColumn,
    candidates: options.Candidates = None,
    group: options.Group = None,
    direction: options.SearchDirection = "both",
    start: options.SearchStart = None,
    keep: options.Keep = (),
    folds: options.Folds = None,
    level: Level = 0.95,
    replicates: options.ModelReplicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "Regression":
    """Stepwise regression under AIC, as R's step(), with leave-one-out, nested validation and bootstrap.

    The table (a file, a frame or rows) has a row per dialogue. Candidates are columns, by default all other numbers.
    """
    from demur.core.io.files import table_of
    from demur.core.io.tables import ROW, Request
    from demur.importers.reading import read_table
    from demur.outcome.fitting import Procedure, fit_regression
    from demur.outcome.stepwise import Selection
    from demur.outcome.table import table_rows

    step("reading", 0, 1)
    frame = read_table(table) if isinstance(table, str | Path) else table_of(table, Request()).frame.drop(ROW)
    rows = table_rows(frame, outcome=outcome, candidates=candidates, group=group)
    selection = Selection(direction, start).keeping(keep, rows.names)
    how = Procedure(selection, folds=folds, replicates=replicates, seed=seed, level=level)
    return fit_regression(rows.x, rows.y, rows.names, outcome=outcome, how=how, groups=rows.groups, step=step)


@job
def predict_outcome(
    model: options.ModelFile,
    *turns: options.TurnLogs,
    extrapolate: options.Extrapolate = False,
    pooled: options.Pooled = False,
    unknown_labels: options.UnknownLabelPolicy = "refuse",
    columns: Columns = None,
    where: Where = (),
    out_of_scope: NoLabels = (),
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "lowest",
    level: Level = 0.95,
) -> "Prediction":
    """Predict the outcome for a system never tried with users, from its answers on turns with known labels.

    The model is a fit, its `.model`, or a file. A system unlike the training data is refused: then `.refused` holds,
    the value is NaN and `.outside` says why; `extrapolate` predicts all the same. Labels that the model does not know
    are refused too; `unknown_labels="drop"` leaves out the turns that have them, and `.left_out` says how many.
    """
    from demur.outcome.prediction import predict

    known = _model(model)
    judged = _turns(turns, columns, where, out_of_scope, withheld, missing_confidence)
    if len(judged.systems) > 1:
        names = ", ".join(judged.systems)
        raise UsageError(f"these are the turns of {names}; outcome compare, or compare_outcomes, takes several systems")
    how: dict[str, Any] = {"extrapolate": extrapolate, "unknown_labels": unknown_labels, "level": level}
    found = predict(known, judged, pooled=pooled or None, **how)
    return replace(found, reading_notes=judged.notes, reading_warnings=judged.warnings)


@job
def compare_outcomes(
    model: options.ModelFile,
    *turns: options.TurnLogs,
    extrapolate: options.Extrapolate = False,
    pooled: options.Pooled = False,
    unknown_labels: options.UnknownLabelPolicy = "refuse",
    columns: Columns = None,
    where: Where = (),
    out_of_scope: NoLabels = (),
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "lowest",
    level: Level = 0.95,
) -> "OutcomeComparison":
    """Compare candidate systems by predicted outcome; one that is unlike the training data is left out, and why.

    Systems are named as by `compare`; `extrapolate`, `pooled` and `unknown_labels` are those of `predict_outcome`.
    """
    from demur.outcome.prediction import compare_predictions, predict

    known = _model(model)
    judged = _turns(turns, columns, where, out_of_scope, withheld, missing_confidence)
    if len(judged.systems) < 2:
        raise UsageError("a comparison needs two systems or more; outcome predict, or predict_outcome, takes one")
    how: dict[str, Any] = {"extrapolate": extrapolate, "unknown_labels": unknown_labels, "level": level}
    predictions = [predict(known, judged.of(system), pooled=pooled or None, **how) for system in judged.systems]
    found = compare_predictions(known, predictions, level)
    return replace(found, reading_notes=judged.notes, reading_warnings=judged.warnings)


@job
def majority_baseline(
    *turns: options.TurnLogs,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: NoLabels = (),
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "lowest",
) -> "BaselineLog":
    """Write a log of the same turns in which every answer is the most frequent right label: the majority baseline.

    Turns are what `read` takes. `frame()` of the result is a table that `classes`, `score` and `predict_outcome` read.

    >>> log = [{"target": "yes", "prediction": "no"}, {"target": "yes"}, {"target": "no", "prediction": "no"}]
    >>> majority_baseline(log).frame()["prediction"].to_list()
    ['yes', 'yes', 'yes']
    """
    from demur.outcome.baseline import baseline_log

    return baseline_log(_turns(turns, columns, where, out_of_scope, withheld, missing_confidence))


def _counted_turns(
    data: tuple[Any, ...], reading: tuple[Any, ...], engine: Any, spark_master: str | None, rejections: Any
) -> "Turns | None":
    """The turns of logs that an engine counts; None for others."""
    from demur.importers import importer_of
    from demur.outcome.features import turns_in_engine
    from demur.returns.counting import Counting

    if engine == "auto" and any(importer_of(one) for one in data if isinstance(one, str | Path)):
        return None
    counting = Counting(engine=engine, spark_master=spark_master)
    return turns_in_engine(data, replace(reading_of(*reading), ranked=False), counting, rejections)


def _turns(data: tuple[Any, ...], *reading: Any) -> "Responses":
    return read(*data, reading=replace(reading_of(*reading), ranked=False))


def _dialogues(data: Any, outcome: str | None, columns: dict[str, str] | None) -> "Dialogues":
    from demur.outcome.table import DialogueReading, Dialogues, dialogues, read_dialogues

    if isinstance(data, Dialogues):
        if outcome is not None or columns:
            raise UsageError("the table of dialogues is read already, so it takes no outcome and no other columns")
        return data
    how = DialogueReading(outcome=outcome, columns=columns or {})
    try:
        return read_dialogues(data, reading=how) if isinstance(data, str | Path) else dialogues(data, reading=how)
    except DataError as fault:
        # Here --map and `columns` are about the turns, so advice to use them would not help.
        names = {"--map": "--map-outcomes", "columns": "map_outcomes"}
        changed = partial(re.sub, r"--map\b|\bcolumns(?=[={:`])", lambda match: names[match[0]])
        raise fault.rewritten(changed) from None


def _model(model: Any) -> "OutcomeModel":
    from demur.outcome.fitting import OutcomeFit
    from demur.outcome.prediction import OutcomeModel, read_model

    if isinstance(model, OutcomeFit):
        return model.model
    return model if isinstance(model, OutcomeModel) else read_model(model)


JOBS = (
    Job(
        "outcome fit",
        fit_outcome,
        present="demur.outcome.presentation:of_fit",
        example="demur outcome fit turns.jsonl --outcomes gains.csv --features full --model m.json",
        gate="nested.r2 < 0.3",
        outputs=(
            Output(
                "--model",
                "Write the model to this file.",
                "demur.outcome.prediction:write_model",
                metavar="FILE.json",
                short="-m",
                ending=".json",
            ),
        ),
    ),
    Job(
        "outcome regress",
        regress,
        present="demur.outcome.presentation:of_regression",
        example="demur outcome regress table.csv --outcome gain --direction both",
        gate="loo.r2 < 0.3",
    ),
    Job(
        "outcome predict",
        predict_outcome,
        present="demur.outcome.presentation:of_known_predictions",
        example="demur outcome predict m.json new-system.jsonl",
        gate="predicted < 0.5",
    ),
    Job(
        "outcome compare",
        compare_outcomes,
        present="demur.outcome.presentation:of_known_predictions",
        example="demur outcome compare m.json old.jsonl new.jsonl",
        gate="difference < 0",
    ),
    Job(
        "outcome baseline",
        majority_baseline,
        present="demur.outcome.baseline:of_baseline",
        example="demur outcome baseline turns.jsonl -o majority.jsonl",
        about=f"`-o` writes the log to {' '.join(ROW_ENDINGS)}.",
        endings=tuple((ending, "demur.outcome.baseline:write_baseline") for ending in ROW_ENDINGS),
        figures=False,
        says_files=True,
    ),
)
