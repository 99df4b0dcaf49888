"""Tables to learn from and to answer: texts with labels, what the answers say, and texts without an answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from demur.core.io.columns import ALIASES, Where, filtered, mapping_of, resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.tables import ROW, Cells, Request, Table, as_lists, as_text, first
from demur.core.show.numbers import ROWS, Wording, first_names
from demur.errors import DataError
from demur.importers.reading import opened

PAIR_ALIASES = {"input": ALIASES["input"], "target": ALIASES["target"], "answer": ()}
"""The canonical columns of a table of pairs, each with the other names it may go by."""

_SOURCE = "demur:source"
_SHOWN = 5
_OFF_TOPIC = Wording(
    "text without an answer is off-topic: it helps to tune, and is not learnt from",
    "texts without an answer are off-topic: they help to tune, and are not learnt from",
)
_COPIES = Wording("pair repeats another", "pairs repeat others")
_SINGLE = Wording("label has one example", "labels have one example")
_CONTRADICTED = Wording("text has several labels", "texts have several labels")
_UNASKED = Wording(
    "answer has no questions, so it is never given", "answers have no questions, so they are never given"
)
_WORDLESS = Wording("label has no answer text", "labels have no answer text")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReading:
    """How to read a table of pairs.

    `columns` maps canonical columns to those of the file. `where` keeps the rows whose column has the value.
    `out_of_scope` are targets that stand for no answer, as a missing one does: their texts are off-topic.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()
    out_of_scope: tuple[str, ...] = ("oos", "out_of_scope")


AS_IT_COMES = PairReading()


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Texts and the labels of their answers, what the answers say where that is known, and off-topic texts."""

    frame: pl.DataFrame
    """`input` and `target`."""
    off_topic: tuple[str, ...] = ()
    answers: Mapping[str, str] | None = None
    """What each answer says, by label; of labels without questions too."""
    recognised: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.frame.height

    @property
    def texts(self) -> list[str]:
        """The texts, in the order of the table."""
        return self.frame["input"].to_list()

    @property
    def labels(self) -> list[str]:
        """The label of each text's answer."""
        return self.frame["target"].to_list()

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels, each once."""
        return tuple(self.frame["target"].unique(maintain_order=True))

    @property
    def single(self) -> tuple[str, ...]:
        """The labels with one example."""
        counts = self.frame.group_by("target", maintain_order=True).len()
        return tuple(counts.filter(pl.col("len") == 1)["target"])

    @property
    def copies(self) -> int:
        """Pairs that say the same as an earlier one, but for case and spaces."""
        return self.frame.height - self._folded().n_unique()

    @property
    def contradicted(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Texts that have several labels, with these."""
        groups = self._folded().group_by("input", maintain_order=True).agg(pl.col("target").unique(maintain_order=True))
        several = groups.filter(pl.col("target").list.len() > 1)
        return tuple((text, tuple(labels)) for text, labels in several.iter_rows())

    @property
    def unasked(self) -> tuple[str, ...]:
        """Answers that no text asks for."""
        known = set(self.classes)
        return tuple(label for label in self.answers or () if label not in known)

    @property
    def wordless(self) -> tuple[str, ...]:
        """Labels whose answer is not known, where others are."""
        return () if self.answers is None else tuple(label for label in self.classes if label not in self.answers)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table may want to know."""
        notes = [*self.recognised]
        notes += [_OFF_TOPIC.with_count(len(self.off_topic))] if self.off_topic else []
        notes += [f"{_COPIES.with_count(self.copies)}; each counts"] if self.copies else []
        for wording, labels in ((_SINGLE, self.single), (_WORDLESS, self.wordless)):
            notes += [f"{wording.with_count(len(labels))}: {first_names(labels, _SHOWN, quote='')}"] if labels else []
        return tuple(notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is likely a slip."""
        warnings = []
        if contradicted := self.contradicted:
            text, labels = contradicted[0]
            warnings.append(f'{_CONTRADICTED.with_count(len(contradicted))}, e.g. "{text}" has {" and ".join(labels)}')
        if unasked := self.unasked:
            warnings.append(f"{_UNASKED.with_count(len(unasked))}: {first_names(unasked, _SHOWN, quote='')}")
        return tuple(warnings)

    def _folded(self) -> pl.DataFrame:
        text = pl.col("input").str.strip_chars().str.to_lowercase().str.replace_all(r"\s+", " ")
        return self.frame.select(text, "target")

    def with_answers(self, data: object) -> Pairs:
        """The pairs with what their answers say, as `read_answers` takes it; what the table itself says must agree."""
        if data is None:
            return self
        own, given = self.answers or {}, read_answers(data)
        for label, text in given.items():
            if own.get(label, text) != text:
                raise _conflict(label, own[label], text)
        return replace(self, answers={**own, **given})


def read_pairs(data: object, *, reading: PairReading = AS_IT_COMES) -> Pairs:
    """The pairs in a file, a glob, `-` for standard input, a frame, columns or rows.

    >>> found = read_pairs([{"text": "when do you open", "label": "hours"}, {"text": "who are you", "label": "oos"}])
    >>> found.texts, found.labels, found.off_topic
    (['when do you open'], ['hours'], ('who are you',))
    """
    tables = _tables(data)
    notes: list[str] = []
    parts = []
    for number, table in enumerate(tables):
        found = resolve(table.columns, reading.columns, where=f"{table.name}:", aliases=PAIR_ALIASES)
        require(("input", "target"), found.columns, table)
        cells = _where(Cells(table, found.columns), reading.where)
        notes += found.notes
        if reading.where:
            notes.append(f"{table.name}: {cells.table.frame.height:,} of {ROWS.with_count(table.frame.height)} kept")
        parts.append(_pair_rows(cells, reading.out_of_scope).with_columns(pl.lit(number).alias(_SOURCE)))
    frame = pl.concat(parts)
    known = pl.col("target").is_not_null()
    if frame.filter(known).is_empty():
        fix = "targets that are missing or mean out of scope make their texts off-topic"
        raise DataError("no row has the label of an answer", where=f"{tables[0].name}:", fix=fix)
    return Pairs(
        frame.filter(known).select("input", "target"),
        tuple(frame.filter(~known)["input"]),
        _answers_in(frame.filter(known), tables),
        tuple(dict.fromkeys(notes)),
    )


def _tables(data: object) -> list[Table]:
    """The tables that a path or a glob stands for, or the one that the data are."""
    if not isinstance(data, str | Path):
        return [table_of(data, Request())]
    with opened(data) as files:
        return [read_source(file, Request()) for file in files]


def require(parts: Collection[str], columns: Mapping[str, str], table: Table) -> None:
    """Refuses a table that lacks a column it cannot do without."""
    for part in parts:
        if part not in columns:
            fix = f"{mapping_of(part, 'COLUMN')}; there are {', '.join(table.columns[:12])}"
            if part == "target" and "answer" in columns:
                fix = f"--map target={columns['answer']} makes each answer a label of its own"
            raise DataError(f"needs a column {part}", where=f"{table.name}:", fix=fix)


def _where(cells: Cells, where: Where) -> Cells:
    """The rows that meet the conditions, of which there must be one."""
    kept = filtered(cells, where)
    if where and kept.table.frame.is_empty():
        asked = " and ".join(f"{column} is {value}" for column, value in where)
        raise DataError(f"no row is left where {asked}", where=f"{kept.table.name}:")
    return kept


def _pair_rows(cells: Cells, out_of_scope: Sequence[str]) -> pl.DataFrame:
    """Text, label, what the answer says, and place of each row; the label is null where it means out of scope."""
    texts = cells.text("input")
    blank = first(texts.is_null() | (texts.str.strip_chars() == ""))
    if blank is not None:
        raise cells.fault("input", blank, "must hold words", got=texts[blank], fix="leave the row out")
    lists, _ = as_lists(cells.labels("target"))
    several = first(lists.list.len().fill_null(0) > 1)
    if several is not None:
        fix = "give each label a row of its own"
        raise cells.fault("target", several, "must be one label", got=", ".join(lists[several]), fix=fix)
    labels = lists.list.first().alias("target")
    blank = first(labels.str.strip_chars() == "")
    if blank is not None:
        raise cells.fault("target", blank, "must name an answer", got="", fix="null marks a text as off-topic")
    frame = pl.DataFrame([texts, labels, cells.text("answer").str.strip_chars(), cells.table.frame[ROW]])
    return frame.with_columns(
        pl.when(~pl.col("target").is_in(list(out_of_scope))).then("target").alias("target"),
        pl.when(pl.col("answer") != "").then("answer").alias("answer"),
    )


def _answers_in(frame: pl.DataFrame, tables: Sequence[Table]) -> Mapping[str, str] | None:
    """What answers say, by label; two texts for one label are refused."""
    answers = frame.filter(pl.col("answer").is_not_null()).unique(["target", "answer"], maintain_order=True)
    if answers.is_empty():
        return None
    twice = answers.filter(pl.col("target").is_duplicated())
    if not twice.is_empty():
        label = twice["target"][0]
        both = twice.filter(pl.col("target") == label).head(2)
        places = [tables[source].place(row) for source, row in both.select(_SOURCE, ROW).iter_rows()]
        raise _conflict(label, *both["answer"], where=f"{places[1]}:", earlier=f" at {places[0]}")
    return dict(answers.select("target", "answer").iter_rows())


def _conflict(label: str, one: str, other: str, *, where: str = "", earlier: str = "") -> DataError:
    rule = f'the answer "{label}" says "{_cut(other)}" here, and "{_cut(one)}"{earlier or " in the table of pairs"}'
    return DataError(rule, where=where, fix="a label stands for one answer; give the other one a label of its own")


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def read_answers(data: object) -> dict[str, str]:
    """What answers say, by label: a mapping, or a table with `answer` and `text`, or `target` and `answer`.

    >>> read_answers([{"answer": "hours", "text": "From ten."}]), read_answers({"hours": "From ten."})
    ({'hours': 'From ten.'}, {'hours': 'From ten.'})
    """
    if isinstance(data, Mapping) and all(isinstance(text, str) for text in data.values()):
        return dict(data)
    parts = []
    tables = _tables(data)
    for number, table in enumerate(tables):
        cells = Cells(table, _answer_columns(table))
        frame = pl.DataFrame([cells.text("target"), cells.text("answer").str.strip_chars(), table.frame[ROW]])
        for part in ("target", "answer"):
            missing = first(frame[part].is_null() | (frame[part] == ""))
            if missing is not None:
                raise cells.fault(part, missing, "must not be empty", fix="leave the row out")
        parts.append(frame.with_columns(pl.lit(number).alias(_SOURCE)))
    return dict(_answers_in(pl.concat(parts), tables) or {})


def _answer_columns(table: Table) -> Mapping[str, str]:
    """The column of labels as `target` and that of texts as `answer`, whichever way the table calls them."""
    names = {name.casefold(): name for name in table.columns}
    label = next((names[name] for name in ("target", *ALIASES["target"]) if name in names), names.get("answer"))
    text = next((names[name] for name in ("text", "answer") if name in names and names[name] != label), None)
    if label is None or text is None:
        rule = "needs columns answer and text, or target and answer"
        raise DataError(rule, where=f"{table.name}:", fix=f"there are {', '.join(table.columns[:12])}")
    return {"target": label, "answer": text}


ANSWERED = ("prediction", "confidence", "nbest", "returned", "why")
"""The columns that answers put into the table."""

_JUDGED = ("correct", "abstained", "failed")
_PARTS = ("id", "input", "target", "system")


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """`id`, `input`, `target` where it is known, and further columns as read; a missing text is an empty one."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The texts to be answered."""
        return self.frame["input"].to_list()


def read_inputs(data: object, *, reading: PairReading = AS_IT_COMES) -> Inputs:
    """The texts in a file, a glob, `-` for standard input, a frame, columns or rows, or a list of texts.

    >>> read_inputs(["when do you open"]).frame.row(0)
    ('1', 'when do you open')
    """
    if isinstance(data, Sequence) and not isinstance(data, str) and data and all(isinstance(one, str) for one in data):
        data = {"input": list(data)}
    tables = _tables(data)
    table = tables[0]
    if len(tables) > 1:
        whole = pl.concat([one.frame.drop(ROW) for one in tables], how="diagonal_relaxed")
        table = table_of(whole, Request())
    found = resolve(table.columns, reading.columns, parts=_PARTS, where=f"{table.name}:")
    require(("input",), found.columns, table)
    cells = _where(Cells(table, found.columns), reading.where)
    rows = cells.table.frame
    # what another system answered, and how that was judged, is not about the answers that are to come
    stale = [name for name in (*ANSWERED, *_JUDGED, found.columns.get("system")) if name in rows.columns]
    played = {found.columns[part] for part in ("id", "input", "target") if part in found.columns}
    kept = [rows[name] for name in rows.columns if name not in {ROW, *stale, *played, "id", "input", "target"}]
    numbers = pl.Series("id", [str(row + 1) for row in rows[ROW]], dtype=pl.String)
    columns = [cells.text("id") if "id" in cells else numbers, cells.text("input").fill_null("")]
    if "target" in found.columns:
        target = rows[found.columns["target"]]
        # a list of acceptable labels stays a list
        columns.append((target if target.dtype.is_nested() else as_text(target)).alias("target"))
    columns += kept
    frame = pl.DataFrame({column.name: column for column in columns})
    left = (f"{table.name}: the columns {', '.join(stale)} are left out",) if stale else ()
    notes = tuple(note for note in found.notes if not note.startswith("system"))
    return Inputs(frame, (*notes, *left))
