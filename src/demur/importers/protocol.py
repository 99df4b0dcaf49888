"""What an importer is: a class that recognises files of another tool by content and reads them as tables."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, TypeVar

import msgspec
import narwhals as nw
import polars as pl

from demur.core.engines.engine import collect_frame
from demur.core.io.columns import nearest
from demur.core.io.files import scan_columnar
from demur.core.io.json import BYTE_ORDER_MARK
from demur.core.io.sources import NOT_JSON, UNREADABLE, Source, first_bytes, not_utf8, quiet_panics
from demur.core.io.tables import refuse_large
from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.samples import VOTES

T = TypeVar("T")

LOOKED_AT = 1 << 16
"""Bytes of a file, decompressed, that are looked at to recognise it."""

DEEPEST = 100
"""How deeply JSON may be nested in what is looked at."""

IN_A_PIECE = 10_000
"""Rows that become columns together."""

FEW = 12
"""Names that a message lists."""

Row = dict[str, Any]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
_NO_NUMBER = re.compile(rb"(?<![\w.])(?:NaN|-?Infinity)(?![\w.])")


@dataclass(frozen=True)
class ForeignFile:
    """A file that may be the log of another tool: what recognition looks at, and its content once it is recognised."""

    source: Source

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.source.name

    @property
    def stem(self) -> str:
        """Its name without folders and endings."""
        return self.source.stem

    @cached_property
    def start(self) -> bytes:
        """How it begins, decompressed."""
        start = first_bytes(self.source.path, self.source.compression, self.source.name, LOOKED_AT)
        return start.removeprefix(BYTE_ORDER_MARK)

    @cached_property
    def is_json(self) -> bool:
        """Whether it begins as JSON does."""
        return self.start.lstrip()[:1] in (b"{", b"[")

    @cached_property
    def value(self) -> Any:
        """The first JSON value in it, as far as its beginning shows it: a line, an array or a whole document."""
        return beginning_of_json(self.start.decode(errors="replace")) if self.is_json else None

    @cached_property
    def first(self) -> Row:
        """The first JSON object: that of the first line, the first element of an array, or the document."""
        value = self.value[0] if isinstance(self.value, list) and self.value else self.value
        return value if isinstance(value, dict) else {}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, where it is a table; those of a header may repeat."""
        if self.source.format in ("parquet", "arrow"):
            with suppress(*UNREADABLE), quiet_panics():
                return tuple(scan_columnar(self.source).collect_schema().names())
            return ()
        if self.source.format in ("csv", "tsv") and not self.is_json:
            return tuple(next(iter(delimited_rows(self.start, limit=1)), ()))
        return tuple(self.first)

    def has(self, *names: str) -> bool:
        """Whether all of these are among its columns, or the keys of its first object."""
        return set(names) <= set(self.columns)

    def content(self) -> bytes:
        """All of it, decompressed."""
        text = b"".join(self.source.blocks(cut=True))
        return text.removeprefix(BYTE_ORDER_MARK)

    def document(self, form: type[T]) -> T:
        """The JSON document that it is, in the form of a type."""
        return decoded(self.content(), form, self.name)

    def objects(self, form: type[T]) -> Iterator[T]:
        """The objects in it, each in the form of a type: one a line, or the elements of an array."""
        if isinstance(self.value, list):
            yield from self.document(list[form])  # type: ignore[valid-type]
            return
        decoder = msgspec.json.Decoder(form)
        before = 0
        for block in self.source.blocks():
            text = block if before else block.removeprefix(BYTE_ORDER_MARK)
            try:
                yield from decoder.decode_lines(text)
            except NOT_JSON:
                for number, line in enumerate(text.splitlines(), start=before + 1):
                    if line.strip():
                        yield decoded(line, form, f"{self.name}:{number}", decoder)
            before += text.count(b"\n")

    def cells(self) -> pl.DataFrame:
        """The rows of a table in it, texts of a CSV file as texts; a header name that repeats is numbered."""
        if self.source.format in ("parquet", "arrow"):
            return scan_columnar(self.source).collect()
        if self.is_json:
            objects = list(self.objects(dict[str, Any]))
            names = list(dict.fromkeys(name for row in objects for name in row))
            return pl.DataFrame({name: loose_series(name, [row.get(name) for row in objects]) for name in names})
        try:
            header, *rows = delimited_rows(self.content())
        except UnicodeDecodeError as error:
            raise not_utf8(error, f"{self.name}:") from None
        refuse_large(len(header), len(rows), self.name)
        for number, row in enumerate(rows, start=2):
            if len(row) != len(header):
                rule = f"row {number} has {len(row)} cells, the header {len(header)}"
                raise DataError(rule, where=f"{self.name}:", fix="is the file cut off?")
        names = list(numbered_names(header))
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        texts = (pl.Series([cell or None for cell in cells], dtype=pl.String) for cells in columns)
        return pl.DataFrame(dict(zip(names, texts, strict=True)))


@dataclass(frozen=True)
class ImportedLog:
    """What was read of a log: its rows under canonical names, what was taken for what, and the file it stands for.

    `taken` says for each part what it was taken from; `others` what else could have been taken, and by which option.
    """

    file: ForeignFile
    frame: pl.DataFrame
    taken: Mapping[str, str]
    others: Sequence[str] = ()
    more: Sequence[str] = ()
    """Further notes."""
    stem: str = ""
    title: str = field(default="", kw_only=True)

    def source(self) -> Source:
        """The file as a table that every reader knows."""
        if self.frame.is_empty():
            raise DataError("holds no rows", where=f"{self.file.name}:")
        if "failed" in self.frame.columns and self.frame["failed"].fill_null(value=False).all():
            rule = f"holds only inputs that failed, {self.frame.height:,} of them"
            raise DataError(rule, where=f"{self.file.name}:", fix="nothing was answered: run it again")
        refuse_large(self.frame.width, self.frame.height, self.file.name)
        source = self.file.source
        frame, withheld = mark_withheld(self.frame)
        return replace(
            source,
            format="arrow",
            compression="",
            frame=frame,
            origin=self.title,
            notes=(self.note, *self.more, *(f"{source.name}: {one}" for one in withheld)),
            stem=self.stem or source.stem,
        )

    @property
    def note(self) -> str:
        """What was taken for what, in one line."""
        parts = [f"{part} <- {origin}" for part, origin in self.taken.items() if origin]
        note = f"{self.file.name}: read as {self.title}: {', '.join(parts)}"
        can_vote = {"trial", "prediction"} <= set(self.frame.columns)
        others = [*self.others, *(f"--confidence {name} takes another" for name in VOTES if can_vote)]
        return f"{note}; {'; '.join(others)}" if others else note


class Importer(ABC):
    """Reads the logs of one tool.

    `name` is what `demur import NAME` calls it, and `title` what its files are.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def recognises(self, file: ForeignFile) -> str:
        """What a file is to this importer, by its content: a word of its own; empty where it is none of its files."""

    def lacking(self, file: ForeignFile) -> str:
        """What a file would need for this importer to recognise it; empty where that cannot be said."""
        return ""

    def read(self, files: Sequence[tuple[str, ForeignFile]], choices: ImportChoices) -> list[ImportedLog]:
        """The logs in files that this importer recognised, each with what it was recognised as."""
        return [log for role, file in files for log in self.read_file(role, file, choices)]

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """The logs in one file."""
        raise NotImplementedError

    def log(
        self,
        file: ForeignFile,
        rows: pl.DataFrame | Sequence[Row],
        taken: Mapping[str, str],
        others: Sequence[str] = (),
        more: Sequence[str] = (),
        stem: str = "",
    ) -> ImportedLog:
        """A log as this importer gives it."""
        frame = rows if isinstance(rows, pl.DataFrame) else frame_of(rows)
        return ImportedLog(file, frame, taken, others, more, stem, title=self.title)


def frame_of(rows: Iterable[Row]) -> pl.DataFrame:
    """Rows as a frame: columns in order of first appearance, a column that is empty everywhere left out.

    Many rows become columns in pieces, so that no more than a piece of them is held as rows.
    """
    pieces = [_piece(rows) for rows in _pieces(rows)]
    if len(pieces) <= 1:
        frame = pieces[0] if pieces else pl.DataFrame()
    else:
        try:
            frame = pl.concat(pieces, how="diagonal_relaxed")
        except pl.exceptions.PolarsError:  # nested values of other forms in some piece
            frame = _piece([row for piece in pieces for row in piece.iter_rows(named=True)])
    return frame.select(name for name in frame.columns if frame[name].null_count() < frame.height or name in _KEPT)


def _pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while piece := list(islice(iterator, IN_A_PIECE)):
        yield piece


def _piece(rows: Sequence[Row]) -> pl.DataFrame:
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: loose_series(name, [row.get(name) for row in rows]) for name in names})


_KEPT = ("id", "target", "prediction", "correct", "confidence")


def loose_series(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of values of any types; of several types, or nested deeply, as text: lists and objects as JSON."""
    try:
        if any(isinstance(value, list | dict) and _nests_deeply(value) for value in values):
            raise TypeError
        return _lists_of_objects(name, values) if _hold_objects(values) else pl.Series(name, values, strict=True)
    except (TypeError, pl.exceptions.PolarsError, OverflowError):
        return pl.Series(name, [text_of_cell(value) for value in values], dtype=pl.String)


def _hold_objects(values: Sequence[Any]) -> bool:
    """Whether all values are lists of objects, none empty, and all objects have the same keys."""
    if not values or not all(isinstance(value, list) and value and isinstance(value[0], dict) for value in values):
        return False
    keys = values[0][0].keys()
    return all(isinstance(one, dict) and one.keys() == keys for value in values for one in value)


def _lists_of_objects(name: str, values: Sequence[list[Row]]) -> pl.Series:
    """A column of lists of objects, made of all objects at once: made list by list each keeps 8 KB for its texts.

    >>> _lists_of_objects("nbest", [[{"label": "yes"}, {"label": "no"}], [{"label": "no"}]]).to_list()
    [[{'label': 'yes'}, {'label': 'no'}], [{'label': 'no'}]]
    """
    objects = pl.Series(name, [one for value in values for one in value], strict=True)
    places = pl.Series("demur:place", [place for place, value in enumerate(values) for _ in value])
    return pl.DataFrame([places, objects]).group_by("demur:place", maintain_order=True).agg(name)[name]


MOST_NESTED = 8
"""Levels of lists and objects that become a nested column; Polars needs gigabytes for some hundred."""


def _nests_deeply(value: Any, levels: int = MOST_NESTED) -> bool:
    """Whether lists and objects lie deeper in each other than a nested column may.

    >>> _nests_deeply([[1], {"a": [2]}]), _nests_deeply([[[3]]], levels=2)
    (False, True)
    """
    if not isinstance(value, list | dict):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_nests_deeply(one, levels - 1) for one in inner)


def text_of_cell(value: Any) -> str | None:
    """A value as text: texts as they are, whole numbers without a fraction, lists and objects as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value, enc_hook=str).decode()


WITHHELD_LABELS = (
    "unknown",
    "no_match",
    "nomatch",
    "[invalid]",
    "fallback",
    "no intent",
    "none",
    "n/a",
    "unanswerable",
)
"""Predictions that say that nothing was answered, where no target is the like and none is marked as right."""

_SPELLED = [spelled for one in WITHHELD_LABELS for spelled in (one, one.upper(), one.title(), one.capitalize())]


def is_placeholder(label: nw.Expr) -> nw.Expr:
    """Whether a label is one of `WITHHELD_LABELS`, in lower or upper case or with capitals."""
    return label.is_in(_SPELLED).fill_null(value=False)


def placeholder_labels(rows: nw.LazyFrame[Any], *, lists: bool) -> tuple[str, ...]:
    """The predictions that are no answers although nobody named them: no target is the like, and none is right.

    Targets may be lists of acceptable labels.

    >>> rows = pl.LazyFrame({"prediction": ["a", "UNKNOWN", "none"], "target": ["a", "b", "None"], "correct": None})
    >>> placeholder_labels(nw.from_native(rows), lists=False)
    ('UNKNOWN',)
    """
    found = rows.filter(is_placeholder(nw.col("prediction")))
    targets = rows.select(label="target")
    targets = targets.explode("label") if lists else targets
    wanted = (
        found.select(label="prediction"),
        found.filter(nw.col("correct")).select(label="prediction"),
        targets.filter(is_placeholder(nw.col("label"))),
    )
    labels, right, meant = (collect_frame(one.unique("label"))["label"] for one in wanted)
    answers = {label.lower() for label in (*right, *meant)}
    return tuple(sorted(label for label in labels if label.lower() not in answers))


def mark_withheld(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The rows of a foreign log with predictions that are no answers taken as withheld, and what to note of them.

    >>> rows = pl.DataFrame({"target": ["a", "b"], "prediction": ["a", "UNKNOWN"]})
    >>> mark_withheld(rows)[0]["abstained"].to_list(), mark_withheld(rows)[1]
    ([None, True], ['1 prediction "UNKNOWN" read as withheld'])
    """
    if frame.schema.get("prediction") != pl.String:
        return frame, []
    known = {
        "target": pl.lit(None, pl.String),
        "correct": pl.lit(None, pl.Boolean),
        "abstained": pl.lit(None, pl.Boolean),
    }
    rows = frame.with_columns(**{name: empty for name, empty in known.items() if name not in frame.columns})
    lists = rows.schema["target"] == pl.List(pl.String)
    texts = rows if lists else rows.with_columns(pl.col("target").cast(pl.String))
    labels = placeholder_labels(nw.from_native(texts.lazy()), lists=lists)
    found = frame["prediction"].is_in(labels).fill_null(value=False)
    if not found.any():
        return frame, []
    counts = frame.filter(found)["prediction"].value_counts(sort=True).rows()
    notes = [f'{count:,} prediction{"s" if count > 1 else ""} "{label}" read as withheld' for label, count in counts]
    kept = {name: pl.when(~found).then(pl.col(name)) for name in ("prediction", "correct")}
    marked = rows.with_columns(abstained=pl.when(found).then(pl.lit(value=True)).otherwise("abstained"), **kept)
    return marked.select(*frame.columns, *(() if "abstained" in frame.columns else ("abstained",))), notes


def chosen(
    what: str, option: str, candidates: Collection[str], asked: str | None, where: str, obvious: str | None = None
) -> str | None:
    """The candidate that was asked for, the only one, or the obvious one; several and none obvious are a question.

    >>> chosen("scorer", "scorer", ["match"], None, "a.eval")
    'match'
    """
    names = list(dict.fromkeys(candidates))
    if asked is not None:
        if asked not in names:
            rule = f'there is no {what} "{asked}"'
            raise DataError(rule, where=f"{where}:", fix=nearest(asked, names) or "the log has none")
        return asked
    if len(names) <= 1 or obvious in names:
        return obvious if obvious in names else next(iter(names), None)
    listed = ", ".join(f'"{name}"' for name in names[:FEW])
    rule = f"which {what} is meant: {listed}?"
    raise DataError(rule, where=f"{where}:", fix=f"choose with `{option}`, such as {flag_of(option)} {names[0]}")


def flag_of(option: str) -> str:
    """The flag of an option."""
    return f"--{option.replace('_', '-')}"


def decoded(text: bytes, form: type[T], where: str, decoder: msgspec.json.Decoder[T] | None = None) -> T:
    """What JSON spells, in the form of a type; NaN and Infinity, which JSON does not have, are null."""
    reading = decoder or msgspec.json.Decoder(form)
    try:
        return reading.decode(text)
    except NOT_JSON as fault:
        reason: Exception = fault
    if _NO_NUMBER.search(text):
        try:
            return reading.decode(without_nan(text))
        except NOT_JSON as fault:
            reason = fault
    if isinstance(reason, UnicodeDecodeError):
        raise not_utf8(reason, f"{where}:") from None
    if isinstance(reason, msgspec.ValidationError):
        raise DataError(f"does not have the form that it should: {reason}", where=f"{where}:") from None
    if isinstance(reason, RecursionError):
        raise DataError("is nested too deeply", where=f"{where}:") from None
    rule = "is cut off" if "truncated" in str(reason) else f"is not JSON: {reason}"
    raise DataError(rule, where=f"{where}:", fix="was it written to its end?" if rule == "is cut off" else "")


def without_nan(text: bytes) -> bytes:
    """JSON with null for NaN and Infinity wherever they are no part of a text.

    >>> without_nan(b'{"a": NaN, "b": "is NaN", "c": [-Infinity]}')
    b'{"a": null, "b": "is NaN", "c": [null]}'
    """
    parts, begin, is_open = [], 0, False
    for found in _NO_NUMBER.finditer(text):
        between = text[begin : found.start()]
        is_open ^= between.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"') % 2 == 1
        parts += [between, found[0] if is_open else b"null"]
        begin = found.end()
    return b"".join([*parts, text[begin:]])


def beginning_of_json(text: str) -> Any:
    """The first JSON value in a text, which may be cut off: then what is whole of it; None for what is no JSON.

    >>> beginning_of_json('{"a": [{"b": 1}, {"c'), beginning_of_json('{"a": 1}\\n{"b": 2}')
    ({'a': [{'b': 1}, {}]}, {'a': 1})
    >>> beginning_of_json("[" * 100_000) is None
    True
    """
    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    except ValueError:
        pass
    except RecursionError:
        return None
    closers: list[str] = []
    end, closing = 0, ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "{[":
            closers.append("}" if token == "{" else "]")
            if len(closers) > DEEPEST:
                return None
            end, closing = found.end(), "".join(reversed(closers))
        elif token in "}]":
            if not closers:
                return None
            closers.pop()
        elif token == ",":
            end, closing = found.start(), "".join(reversed(closers))
    try:
        return json.loads(text[:end] + closing)
    except (ValueError, RecursionError):
        return None


def delimited_rows(text: bytes, limit: int | None = None) -> list[list[str]]:
    """The cells of a CSV or TSV text, at most so many rows of it; blank lines left out."""
    import csv
    import io
    from itertools import islice

    decoded_text = text.decode("utf-8") if limit is None else text.decode(errors="replace")
    first = decoded_text.split("\n", 1)[0]
    separator = next((mark for mark in ",;\t" if mark in first), ",")
    rows = csv.reader(io.StringIO(decoded_text, newline=""), delimiter=separator)
    try:
        return [row for row in islice(rows, limit) if row]
    except csv.Error:
        return [first.split(separator)] if limit else _refuse_csv()


def _refuse_csv() -> list[list[str]]:
    raise DataError("the rows cannot be read as CSV", fix="is a quote left open?")


def numbered_names(names: Iterable[str]) -> Iterator[str]:
    """Names of columns, with a number from the second of a name on.

    >>> list(numbered_names(["a", "b", "a"]))
    ['a', 'b', 'a (2)']
    """
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"
