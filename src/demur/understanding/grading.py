"""The short-answer grader as a model in a file: trained with its ten-fold evaluation, loaded, and grading a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta

from demur import __version__
from demur.core.io.untrusted import decode_json, read_bounded
from demur.core.io.writing import write_table, write_whole
from demur.core.options import Sampling
from demur.errors import DataError, UsageError
from demur.returns.classes import ClassReport, class_reports
from demur.returns.table import responses
from demur.understanding.grader import FEATURES, LEAF, ShortAnswerGrader, Tree, cross_graded, student_answers

MOST_NODES = 1 << 20
Place = Annotated[int, Meta(ge=-1, lt=MOST_NODES)]


class GraderFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The file of a grader: its settings and the nodes of its tree."""

    format: Literal["demur grader"] = "demur grader"
    made_by: str = f"demur {__version__}"
    labels: Annotated[list[str], Meta(min_length=2)]
    features: list[str]
    normalised_lesk: bool
    stop_words: list[str]
    feature: Annotated[list[Place], Meta(min_length=1)]
    threshold: list[float | None]
    below: list[Place]
    above: list[Place]
    counts: list[list[Annotated[float, Meta(ge=0, le=1e15)]]]


@dataclass(eq=False)
class TrainedGrader:
    """A grader, what it learnt from, and how it grades answers that it has not seen."""

    grader: ShortAnswerGrader
    report: ClassReport
    graded: pl.DataFrame
    """Each answer as graded by a tree that learnt from the other folds."""
    folds: int
    by: str | None
    notes: tuple[str, ...]

    def frame(self) -> pl.DataFrame:
        """A row for each answer, graded by the other folds."""
        return self.graded

    def to_dict(self) -> dict[str, Any]:
        """The training as plain values."""
        nodes = 0 if self.grader.tree_ is None else len(self.grader.tree_)
        settings = {"folds": self.folds, "by": self.by, "features": list(FEATURES), "nodes": nodes}
        return {**self.report.to_dict(), **settings, "notes": list(self.notes), "warnings": []}


def trained_grader(
    data: Any, *, folds: int, by: str | None, columns: dict[str, str], sampling: Sampling
) -> TrainedGrader:
    """A grader that has learnt from marked answers, with its evaluation by folds."""
    answers = student_answers(data, columns=columns, marked=True)
    grader = ShortAnswerGrader(seed=sampling.seed)
    graded = cross_graded(answers, grader=grader, folds=folds, by=by, seed=sampling.seed)
    how: dict[str, Any] = {"level": sampling.level, "replicates": sampling.replicates, "seed": sampling.seed}
    (report,) = class_reports(responses(graded, system=f"tree, {folds} folds"), **how)
    kept = f"whole values of {by} in one fold" if by else "labels spread evenly over the folds"
    notes = (f"{folds}-fold cross-validation, {kept}; the model itself learns from all answers", sampling.note)
    return TrainedGrader(grader.fit(answers), report, graded, folds, by, notes)


def write_grader(trained: TrainedGrader, path: Path) -> None:
    """Write the grader to a readable file."""
    grader, tree = trained.grader, trained.grader.tree_
    assert tree is not None
    numbers = {name: getattr(tree, name).tolist() for name in ("feature", "below", "above", "counts")}
    file = GraderFile(
        labels=grader.classes_.tolist(),
        features=list(FEATURES),
        normalised_lesk=grader.normalised_lesk,
        stop_words=sorted(grader.stop_words),
        threshold=[None if np.isnan(one) else float(one) for one in tree.threshold],
        **numbers,
    )
    write_whole(path, msgspec.json.format(msgspec.json.encode(file), indent=0) + b"\n")


def read_grader(path: str | Path) -> ShortAnswerGrader:
    """The grader in a file; one whose tree does not hang together is refused."""
    where = f"{path}:"
    file = decode_json(read_bounded(Path(path)), GraderFile, where, "a grader of demur")
    size = len(file.feature)
    inner = [place for place, feature in enumerate(file.feature) if feature != LEAF]
    sound = (
        file.features == list(FEATURES)
        and {len(part) for part in (file.threshold, file.below, file.above, file.counts)} == {size}
        and all(len(row) == len(file.labels) and sum(row) > 0 for row in file.counts)
        and max(file.feature) < len(FEATURES)
        # a child lies behind its parent, so that every walk ends
        and all(place < child < size for place in inner for child in (file.below[place], file.above[place]))
        and all(file.threshold[place] is not None for place in inner)
    )
    if not sound:
        raise DataError("the nodes do not make a tree of these features", where=where, fix="train the grader again")
    grader = ShortAnswerGrader(stop_words=file.stop_words, normalised_lesk=file.normalised_lesk)
    grader.classes_ = np.array(file.labels, dtype=object)
    threshold = np.array([np.nan if one is None else one for one in file.threshold])
    places = [np.array(part, dtype=np.intp) for part in (file.feature, file.below, file.above)]
    grader.tree_ = Tree(places[0], threshold, places[1], places[2], np.array(file.counts))
    return grader


@dataclass(eq=False)
class GradedAnswers:
    """What a grader made of the answers of a table."""

    table: pl.DataFrame = field(repr=False)
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each answer, which `classes` and `score` read."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """The grades as plain values; the rows are left out where a file has them."""
        counts = dict(sorted(self.table["prediction"].value_counts().iter_rows()))
        rows = {} if self.files else {"responses": self.table.to_dicts()}
        summary = {"n": self.table.height, "labels": counts, **rows, "out": list(self.files)}
        return {**summary, "notes": list(self.notes), "warnings": []}


def grade_answers(model: Any, data: Any, columns: dict[str, str]) -> GradedAnswers:
    """The grades of the answers in a file, a frame or rows, by a grader or the file of one."""
    if isinstance(model, TrainedGrader):
        model = model.grader
    grader = model if isinstance(model, ShortAnswerGrader) else read_grader(model)
    if grader.tree_ is None:
        raise UsageError("this grader has learnt nothing yet: train it first")
    return GradedAnswers(grader.respond(student_answers(data, columns=columns)))


def write_grades(graded: GradedAnswers, path: Path) -> None:
    """Write the rows in the format of the path's ending."""
    write_table(path, graded.table)
