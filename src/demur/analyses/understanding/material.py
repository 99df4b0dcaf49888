"""What an experiment on understanding is made of: questions to learn from, and questions to be tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from demur.data.cells import Cells, first
from demur.data.columns import ALIASES, resolve
from demur.data.corpora import Corpus
from demur.data.files import read_source
from demur.data.frames import table_of
from demur.data.pairs import AS_IT_COMES, require
from demur.data.sources import opened
from demur.data.tables import Request, Table
from demur.data.wording import ROWS
from demur.errors import DataError

HELD_OUT = 8
"""Questions of each of the museum guide's answers that are kept for testing."""

KEPT_BACK = 4
"""Of own questions that no column splits, one in so many of each label is kept for testing."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": (),
    "input": ALIASES["input"],
    "target": ALIASES["target"],
    "split": ("part", "fold"),
}
"""The columns of a table of questions, each with the other names it may go by."""

TRAIN, TEST = ("train", "training"), ("test", "testing")
"""What a split is called, in any letter case."""


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Questions to learn from and others to be tested on."""

    name: str
    train: pl.DataFrame
    """`input` and `target`."""
    test: pl.DataFrame
    """`id`, `input` and `target`, null where no answer is right."""
    off_topic: tuple[str, ...] = ()
    """Questions without an answer to learn from."""
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The questions to learn from."""
        return self.train["input"].to_list()

    @property
    def labels(self) -> list[str]:
        """Their answers."""
        return self.train["target"].to_list()

    @property
    def out_of_scope(self) -> int:
        """Test questions to which no answer is right."""
        return self.test["target"].null_count()

    def in_scope(self) -> Material:
        """The same, tested only on questions that have an answer."""
        return replace(self, test=self.test.filter(pl.col("target").is_not_null()))

    def with_off_topic(self, *, seed: int = 0) -> Material:
        """The same with off-topic questions to learn from; where there are none, half of those to be tested on."""
        if self.off_topic:
            return self
        lost = self.test.with_row_index("place").filter(pl.col("target").is_null())["place"].to_numpy()
        if len(lost) < 2:
            raise DataError(
                "the gate needs questions without an answer to learn from, and others to be tested on",
                where=f"{self.name}:",
                fix='give rows whose target is null or "oos"',
            )
        taken = np.random.default_rng(seed).permutation(lost)[: len(lost) // 2]
        to_learn = pl.int_range(pl.len()).is_in(taken.tolist())
        texts = self.test.filter(to_learn)["input"].to_list()
        return replace(self, off_topic=tuple(texts), test=self.test.filter(~to_learn))


def guide_material(corpus: Corpus, *, name: str = "museum", seed: int = 0) -> Material:
    """A corpus with eight questions of every answer held out; they and all off-topic ones are tested on."""
    shuffled = corpus.questions[np.random.default_rng(seed).permutation(corpus.questions.height)]
    place = pl.int_range(pl.len()).over("target")
    train, test = (shuffled.filter(kept).sort("id") for kept in (place >= HELD_OUT, place < HELD_OUT))
    off_topic = corpus.offtopic.with_columns(target=pl.lit(None, pl.String))
    return Material(name, train.select("input", "target"), pl.concat([test, off_topic], how="diagonal"))


def own_material(
    data: object, *, name: str = "data", columns: Mapping[str, str] | None = None, seed: int = 0
) -> Material:
    """The material in a table of questions with the label of their answer, null or "oos" where there is none.

    A column `split` says which rows are `train` and which are `test`; others are left out. Without it one in four
    questions of every label is tested on, and all without an answer.

    >>> rows = [{"text": f"open {k}", "label": "hours"} for k in range(8)] + [{"text": "hello", "label": "oos"}]
    >>> material = own_material(rows)
    >>> material.train.height, material.test.height, material.out_of_scope
    (6, 3, 1)
    """
    return _divided([table_of(data, Request())], name, columns or {}, seed)


def read_material(source: str | Path, *, columns: Mapping[str, str] | None = None, seed: int = 0) -> Material:
    """The material in the files that a path, a glob or `-` stands for, likewise."""
    with opened(source) as files:
        return _divided([read_source(file, Request()) for file in files], files[0].stem, columns or {}, seed)


def _divided(tables: Sequence[Table], name: str, columns: Mapping[str, str], seed: int) -> Material:
    read = [_rows(table, columns) for table in tables]
    rows = pl.concat([frame for frame, _ in read], how="diagonal")
    if "id" not in rows.columns:
        rows = rows.with_columns(id=pl.int_range(1, pl.len() + 1).cast(pl.String))
    train, test, told = _by_split(rows) if "split" in rows.columns else _by_chance(rows, seed)
    known = pl.col("target").is_not_null()
    for which, part in (("to learn from", train.filter(known)), ("to be tested on", test)):
        if part.is_empty():
            fix = f'a column split says "train" or "test"; without one a label needs {KEPT_BACK} questions'
            raise DataError(f"there are no questions {which}", where=f"{name}:", fix=fix)
    return Material(
        name,
        train.filter(known).select("input", "target"),
        test.select("id", "input", "target"),
        tuple(train.filter(~known)["input"]),
        tuple(dict.fromkeys(note for notes in (*(notes for _, notes in read), told) for note in notes)),
    )


def _rows(table: Table, columns: Mapping[str, str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows with the columns an experiment knows, all as text."""
    found = resolve(table.columns, dict(columns), where=f"{table.name}:", aliases=COLUMNS)
    require(("input", "target"), found.columns, table)
    cells = Cells(table, found.columns)
    missing = first(cells.text("input").is_null())
    if missing is not None:
        raise cells.fault("input", missing, "must not be missing", fix="leave the row out, or write an empty text")
    frame = pl.DataFrame([cells.text(part).alias(part) for part in found.columns])
    no_answer = pl.col("target").is_in([*AS_IT_COMES.out_of_scope, ""])
    return frame.with_columns(target=pl.when(~no_answer).then("target")), found.notes


def _by_split(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    split = pl.col("split").str.strip_chars().str.to_lowercase()
    train, test = (rows.filter(split.is_in(names)) for names in (TRAIN, TEST))
    rest = rows.height - train.height - test.height
    return train, test, (f"{ROWS.told(rest)} left out, neither train nor test",) if rest else ()


def _by_chance(rows: pl.DataFrame, seed: int) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    shuffled = rows.with_row_index("row")[np.random.default_rng(seed).permutation(rows.height)]
    place, size = (count.over("target") for count in (pl.int_range(pl.len()), pl.len()))
    tested = (place < size // KEPT_BACK) | pl.col("target").is_null()
    train, test = (shuffled.filter(kept).sort("row").drop("row") for kept in (~tested, tested))
    return train, test, (f"no column split: one question in {KEPT_BACK} of each label is kept for testing",)
