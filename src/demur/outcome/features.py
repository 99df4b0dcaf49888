"""Features of each dialogue from the turns of one component, and the rows of an outcome model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.engines.engine import collect_frame
from demur.core.io.columns import nearest
from demur.core.show.results import silent
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.outcome.options import MIN_PER_DIALOGUE, Rejections, Undefined, features_text
from demur.outcome.table import Dialogues, match_dialogues, number_groups
from demur.returns.classes import ClassAverage, Confusion, Kappa, class_values
from demur.returns.counting import Counting, judged_in_engine
from demur.returns.table import Reading, Responses

PARTS: Mapping[str, Any] = {"fmeasure": "f1", "precision": "precision", "recall": "recall"}
"""How the paper calls the parts of a score, and how this package does."""

OUT_OF_SCOPE = "out_of_scope"

REJECTION_NOTES: Mapping[Rejections, str] = {
    "counted": "rejected turns lower recall and are in no confusion; their share is the feature rejected",
    "left-out": "rejected turns are left out, as if they had not been",
}
"""What becomes of turns to which the system gave no label."""


@dataclass(frozen=True, eq=False)
class Turns:
    """How often each label was predicted where another was right, by dialogue; `counts[d, -1]` are the rejected."""

    dialogues: tuple[str, ...]
    labels: tuple[str, ...]
    counts: Array
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @cached_property
    def confusion(self) -> Confusion:
        """The tables of all dialogues, one behind the other."""
        return Confusion.dense(self.labels, self.counts, int(self.counts.sum()))

    @cached_property
    def pooled(self) -> Turns:
        """All dialogues as one."""
        return Turns(("all",), self.labels, self.counts.sum(axis=0, keepdims=True))

    def only(self, dialogues: Sequence[str]) -> Turns:
        """These dialogues, in this order."""
        place = {name: number for number, name in enumerate(self.dialogues)}
        return replace(self, dialogues=tuple(dialogues), counts=self.counts[[place[name] for name in dialogues]])

    def with_labels(self, labels: Sequence[str]) -> Turns:
        """With further labels that no turn has."""
        every = tuple(sorted({*self.labels, *labels}))
        place = [every.index(label) for label in self.labels]
        counts = np.zeros((len(self.dialogues), len(every) + 1, len(every)))
        counts[np.ix_(range(len(self.dialogues)), [*place, len(every)], place)] = self.counts
        return Turns(self.dialogues, every, counts)

    @cached_property
    def misclassified(self) -> Array:
        """How many turns of each dialogue got a wrong label; the rejected got none."""
        table = self.counts[:, :-1, :]
        return np.asarray(table.sum(axis=(1, 2)) - np.trace(table, axis1=1, axis2=2))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The confusions there can be: a predicted label, and another that is right."""
        return list(permutations(self.labels, 2))

    def cell(self, predicted: str, actual: str) -> Array:
        """How often one label was predicted where the other was right, by dialogue."""
        return self.counts[:, self.labels.index(predicted), self.labels.index(actual)]

    def corrected(self, predicted: str, actual: str, share: float) -> Turns:
        """The turns if this share of a confusion had been classified right."""
        counts = self.counts.copy()
        wrong, right = self.labels.index(predicted), self.labels.index(actual)
        moved = share * counts[:, wrong, right]
        counts[:, wrong, right] -= moved
        counts[:, right, right] += moved
        return replace(self, counts=counts)


def turns_of(responses: Responses, *, pooled: bool = False, rejections: Rejections = "counted") -> Turns:
    """The confusions of one system by dialogue; `pooled` takes all turns for one dialogue."""
    frame = responses.frame
    if len(responses.systems) > 1:
        raise UsageError(f"the turns are of one system at a time; there are {', '.join(responses.systems)}")
    if unknown := frame["target"].null_count():
        raise DataError(f"{unknown:,} turns have no target", fix="confusions need the right label of every turn")
    if not pooled and (lost := frame["dialogue"].null_count()):
        fix = "name the column with `columns`, as dialogue=COLUMN"
        raise DataError(f"{lost:,} turns are of no dialogue", fix=fix)
    table = frame.select(dialogue=pl.lit("all") if pooled else pl.col("dialogue"), weight="weight", **_turn_labels())
    return summed_turns(table.group_by("dialogue", "actual", "predicted").agg(pl.col("weight").sum()), rejections)


def turns_in_engine(data: Sequence[Any], reading: Reading, how: Counting, rejections: Rejections) -> Turns | None:
    """The confusions of one system by dialogue, summed by an engine; None for turns that memory is to read."""
    with judged_in_engine(data, reading, how, labels=True, dialogues=True, step=silent) as found:
        if found is None:
            return None
        judged, log = found
        systems = judged.survey["system"].unique().sort().to_list()
        if len(systems) > 1:
            raise UsageError(f"the turns are of one system at a time; there are {', '.join(systems)}")
        if "dialogue" not in judged.columns:
            fix = "name the column with `columns`, as dialogue=COLUMN"
            raise DataError("there is no column dialogue", where=f"{log.where}:", fix=fix)
        weight = nw.col("weight").sum() if "weight" in judged.columns else nw.len()
        sums = collect_frame(judged.frame.group_by("dialogue", "actual", "predicted").agg(weight.alias("weight")))
    if lost := int(sums.filter(pl.col("dialogue").is_null())["weight"].sum()):
        raise DataError(
            f"{lost:,} turns are of no dialogue", where=f"{log.where}:", fix="name the dialogue of every turn"
        )
    return replace(summed_turns(sums, rejections), notes=(*log.notes, *judged.notes), warnings=judged.warnings)


def summed_turns(sums: pl.DataFrame, rejections: Rejections) -> Turns:
    """The confusions of dialogues from the weight of each: dialogue, actual and predicted label, which may be null."""
    if rejections not in REJECTION_NOTES:
        raise UsageError(f'rejections are one of {", ".join(REJECTION_NOTES)}; got "{rejections}"')
    labels = sorted({*sums["actual"], *sums["predicted"].drop_nulls()})
    names = sorted(sums["dialogue"].unique())
    place = {label: number for number, label in enumerate([*labels, None])}
    rank = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(labels) + 1, len(labels)))
    for dialogue, actual, predicted, weight in sums.select("dialogue", "actual", "predicted", "weight").iter_rows():
        counts[rank[dialogue], place[predicted], place[actual]] = weight
    if rejections == "left-out":
        counts[:, -1] = 0.0
    return Turns(tuple(names), tuple(labels), counts)


FLOW: Mapping[str, str] = {
    "user_turns": "turns of the user, which are the rows of the log",
    "repair_ratio": "share of the user's turns that were not understood, so that they must be repaired",
    "concept_efficiency": "different labels understood rightly, over the user's turns",
}
"""Inputs of PARADISE that a log of turns gives, and what each is."""

DIALOGUE_COLUMNS = ("seconds", "turns", "system_turns")
"""Inputs of PARADISE that the table of dialogues gives, where it has such columns."""


def unknown_turns(responses: Responses, labels: Sequence[str]) -> pl.Series:
    """Which turns have a right or a predicted label that is none of these."""
    known = pl.Series(labels, dtype=pl.String).implode()
    table = responses.frame.select(**_turn_labels())
    return table.select(~(pl.col("actual").is_in(known) & pl.col("predicted").is_in(known).fill_null(True))).to_series()


def _turn_labels() -> dict[str, pl.Expr]:
    """The right label of a turn, of several the one that was predicted, and the predicted one; null if rejected."""
    return {
        "actual": pl.when("answered", pl.col("target").list.contains(pl.col("prediction")))
        .then("prediction")
        .otherwise(pl.col("target").list.first().fill_null(OUT_OF_SCOPE)),
        "predicted": pl.when("answered").then("prediction"),
    }


def confusion_name(predicted: str, actual: str) -> str:
    """What the share of a confusion among all misclassifications is called.

    >>> confusion_name("pc_incomplete", "contradictory")
    'predicted-pc_incomplete-actual-contradictory'
    """
    return f"predicted-{predicted}-actual-{actual}"


def score_features(turns: Turns, part: str) -> dict[str, Array]:
    """The averages and the class scores of one part of the scores, by dialogue; NaN where undefined."""
    kind = PARTS[part]
    values = class_values(turns.confusion)[kind]
    return {
        f"{part}.microaverage": np.asarray(ClassAverage("weighted", kind).finish(turns.confusion)),
        f"{part}.macroaverage": np.asarray(ClassAverage("macro", kind).finish(turns.confusion)),
        **{f"{part}.{label}": values[:, place] for place, label in enumerate(turns.labels)},
    }


def confusion_features(turns: Turns, only: Collection[str] | None = None) -> dict[str, Array]:
    """Every confusion, or those of some names, as a share of its dialogue's misclassifications; NaN without any."""
    pairs = [pair for pair in turns.pairs if only is None or confusion_name(*pair) in only]
    return {confusion_name(*pair): ratio(turns.cell(*pair), turns.misclassified) for pair in pairs}


def frequent_confusions(turns: Turns, least: float = MIN_PER_DIALOGUE) -> tuple[str, ...]:
    """The confusions that occur at least so often in a dialogue, on average."""
    fewest = max(least * len(turns.dialogues), 1e-12)
    return tuple(confusion_name(*pair) for pair in turns.pairs if turns.cell(*pair).sum() >= fewest)


def flow_features(turns: Turns) -> dict[str, Array]:
    """How each dialogue went, by the names of PARADISE's inputs (`FLOW`)."""
    total, hits = turns.counts.sum(axis=(1, 2)), np.diagonal(turns.counts[:, :-1], axis1=1, axis2=2)
    return {
        "user_turns": total,
        "repair_ratio": 1 - ratio(hits.sum(axis=1), total),
        "concept_efficiency": ratio((hits > 0).sum(axis=1).astype(np.float64), total),
    }


def all_features(turns: Turns, only: Collection[str] | None = None) -> dict[str, Array]:
    """Everything that can be computed of the turns, by name; the share of rejected turns and kappa too.

    Kappa is the agreement with the right labels beyond chance, which PARADISE takes for task success. What none of the
    names in `only` needs is left out.
    """
    parts = [part for part in PARTS if only is None or any(name.startswith(f"{part}.") for name in only)]
    made = {name: values for part in parts for name, values in score_features(turns, part).items()}
    made |= confusion_features(turns, only)
    made |= flow_features(turns)
    made["rejected"] = ratio(turns.counts[:, -1, :].sum(axis=1), turns.counts.sum(axis=(1, 2)))
    if only is None or "kappa" in only:
        made["kappa"] = np.asarray(Kappa().finish(turns.confusion))
    return made


SETS: Mapping[str, tuple[str, ...]] = {
    "scores.fm": ("fmeasure",),
    "scores.f": ("fmeasure",),
    "scores.precision": ("precision",),
    "scores.recall": ("recall",),
    "scores.all": ("fmeasure", "precision", "recall"),
    "conf": ("conf",),
    "full": ("conf", "fmeasure", "precision", "recall"),
    "paradise": ("flow",),
}
"""Feature sets by the paper's names, and the parts they are made of; they can be joined by +."""

SYNONYMS: Mapping[str, str] = {"unclassified": "rejected"}
"""Other names of features: the paper's percentage of unclassified answers is the share of rejected turns."""


def candidates(asked: str | Sequence[str], turns: Turns | None, columns: Sequence[str], *, least: float) -> list[str]:
    """The names of features that a set, several sets joined by +, or a list of names stands for."""
    names: dict[str, None] = {}
    for piece in _pieces(asked):
        if piece not in SETS:
            names[piece] = None
        elif turns is None:
            raise UsageError(f'the feature set "{piece}" is made from turns; give a log of turns, or name columns')
        else:
            for part in SETS[piece]:
                names.update(dict.fromkeys(_part_names(part, turns, columns, least)))
    known = {*columns, *(() if turns is None else all_features(turns))}
    for name in names:
        if name not in known:
            raise UsageError(f'there is no feature "{name}"; {nearest(name, [*SETS, *sorted(known)])}')
    return list(names)


def _part_names(part: str, turns: Turns, columns: Sequence[str], least: float) -> Collection[str]:
    """The features of one part of a set."""
    if part == "conf":
        return frequent_confusions(turns, least)
    if part == "flow":
        return ["kappa", *flow_features(turns), *(name for name in DIALOGUE_COLUMNS if name in columns)]
    return score_features(turns, part)


def _pieces(asked: str | Sequence[str]) -> list[str]:
    pieces = [piece.strip() for piece in (asked.split("+") if isinstance(asked, str) else asked)]
    return [SYNONYMS.get(piece, piece) for piece in pieces]


POLICIES: Mapping[Undefined, str] = {
    "drop": "dialogues with an undefined feature are left out",
    "zero": "undefined features count as 0",
    "impute-mean": "undefined features get the mean of the dialogues that have them",
}
"""What becomes of a score that a dialogue does not have, such as the recall of a class that never occurs in it."""


@dataclass(frozen=True, eq=False)
class Design:
    """Dialogues as rows, features as columns, with the outcome of each."""

    names: tuple[str, ...]
    x: Array
    y: Array
    dialogues: tuple[str, ...]
    groups: NDArray[np.int64] | None
    """The number of each dialogue's group; None where each dialogue stands alone."""
    outcome: str
    undefined: Undefined
    rejections: Rejections
    means: Mapping[str, float]
    """The mean of each feature over the dialogues that have it."""
    turns: Turns | None
    columns: tuple[str, ...]
    """The features that are columns of the table of dialogues, not made of turns."""
    least: float
    asked: str
    notes: tuple[str, ...]


def design(
    table: Dialogues,
    responses: Responses | Turns | None = None,
    *,
    features: str | Sequence[str],
    least: float = MIN_PER_DIALOGUE,
    undefined: Undefined = "impute-mean",
    rejections: Rejections = "counted",
    allow_unmatched: bool = False,
) -> Design:
    """The rows of a model from the table of dialogues and, for features made of them, the turns of one system."""
    if undefined not in POLICIES:
        raise UsageError(f'undefined features are handled by one of {", ".join(POLICIES)}; got "{undefined}"')
    turns = responses if isinstance(responses, Turns | None) else turns_of(responses, rejections=rejections)
    names, notes = table.frame["dialogue"].to_list(), list[str]()
    if turns is not None:
        names, notes = match_dialogues(turns.dialogues, table, allowed=allow_unmatched)
        turns = turns.only(names)
    known = {} if turns is None else all_features(turns)
    columns = [name for name in table.frame.columns if name not in ("dialogue", "outcome", "group")]
    chosen = _chosen_features(candidates(features, turns, columns, least=least), features, known, columns, notes)
    matched = table.frame["dialogue"].is_in(names)
    raw = {name: known[name] if name in known else table.numbers(name).filter(matched).to_numpy() for name in chosen}
    means, kept = _check_defined(raw, undefined, notes)
    rows = table.frame.filter(matched).filter(kept)
    y = rows["outcome"].to_numpy().astype(np.float64)
    if y.size < 2:
        raise DataError("a model needs at least two dialogues", got=int(y.size))
    if np.ptp(y) == 0:
        raise DataError("every dialogue has the same outcome, so there is nothing to explain", got=float(y[0]))
    dialogues = tuple(rows["dialogue"])
    return Design(
        tuple(chosen),
        fill_undefined(raw, list(raw), undefined, means)[kept],
        y,
        dialogues,
        number_groups(rows["group"], dialogues) if table.grouped else None,
        table.outcome,
        undefined,
        rejections,
        means,
        None if turns is None else turns.only(dialogues),
        tuple(name for name in chosen if name not in known),
        least,
        features_text(features),
        tuple(notes),
    )


def _chosen_features(
    names: Sequence[str],
    asked: str | Sequence[str],
    known: Mapping[str, Array],
    columns: Sequence[str],
    notes: list[str],
) -> list[str]:
    """The features that some dialogue has; those of a set that none has are left out, those asked for by name stay."""
    named = {*_pieces(asked)}
    absent = [name for name in names if name not in named and name in known and np.isnan(known[name]).all()]
    if absent:
        notes.append(f"left out, undefined in every dialogue: {', '.join(absent)}")
    chosen = [name for name in names if name not in absent]
    if not chosen:
        raise DataError(
            "there is no feature to explain the outcome by", fix="lower `min_per_dialogue`, or take another feature set"
        )
    for name in chosen:
        if name in known and name in columns:
            rule = f'"{name}" is a column of the dialogues and a feature of their turns'
            raise DataError(rule, fix="give the column another name")
    return chosen


def _check_defined(
    raw: Mapping[str, Array], undefined: Undefined, notes: list[str]
) -> tuple[dict[str, float], NDArray[np.bool_]]:
    """The mean of each feature, and which dialogues stay; what becomes of undefined features is noted."""
    gaps = {name: np.isnan(np.asarray(values, dtype=np.float64)) for name, values in raw.items()}
    empty = [name for name, missing in gaps.items() if missing.all()]
    if empty:
        raise DataError(
            f"{', '.join(empty)} is undefined in every dialogue",
            fix="leave it out of the features, or take another set",
        )
    incomplete = np.any(list(gaps.values()), axis=0)
    kept = ~incomplete if undefined == "drop" else np.ones_like(incomplete)
    if incomplete.any():
        worst = sorted((name for name in gaps if gaps[name].any()), key=lambda name: -int(gaps[name].sum()))[:3]
        listed = ", ".join(f"{name} in {int(gaps[name].sum()):,}" for name in worst)
        lost = f"; {int(incomplete.sum()):,} of {kept.size:,} dialogues left out ({listed})"
        filled = f" ({listed} of {kept.size:,} dialogues)"
        notes.append(f"{POLICIES[undefined]}{lost if undefined == 'drop' else filled}")
    if not kept.any():
        fix = "impute-mean or zero fills them in; or take fewer features"
        raise DataError("every dialogue has an undefined feature, so none is left", fix=fix)
    return {name: float(np.nanmean(values)) for name, values in raw.items()}, kept


def fill_undefined(
    raw: Mapping[str, Array], names: Sequence[str], undefined: Undefined, means: Mapping[str, float]
) -> Array:
    """Features of new rows as a table, what is undefined filled in as it was for the model; NaN where rows drop."""
    columns = []
    for name in names:
        values = np.asarray(raw[name], dtype=np.float64)
        if undefined != "drop":
            values = np.where(np.isnan(values), 0.0 if undefined == "zero" else means[name], values)
        columns.append(values)
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))
