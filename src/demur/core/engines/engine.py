"""The engines that can hold rows: one class each, and the operations that all of them offer."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals as nw
import polars as pl

from demur.errors import DataError

if TYPE_CHECKING:
    from demur.core.engines.scanning import FilePart

Lazy = nw.LazyFrame[Any]
OfBatch = Callable[[pl.DataFrame], pl.DataFrame]
AddUp = Callable[[Lazy], Lazy]


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """An engine in the registry: its name in sentences, its package, its class, and what its package raises."""

    title: str
    package: str
    path: str
    faults: tuple[str, ...] = ()


ENGINES: dict[str, EngineEntry] = {
    "polars": EngineEntry("Polars", "polars", "demur.core.engines.polars:PolarsEngine"),
    "duckdb": EngineEntry("DuckDB", "duckdb", "demur.core.engines.duckdb:DuckDBEngine", ("duckdb:Error",)),
    "spark": EngineEntry(
        "Spark",
        "pyspark",
        "demur.core.engines.spark:SparkEngine",
        ("pyspark.errors:PySparkException", "py4j.protocol:Py4JError"),
    ),
}
"""Every engine beside memory, by name; a class is loaded when it is used."""

BUCKETS = 1024
"""Into how many buckets dialogues are hashed. A bucket is drawn as a whole, like a dialogue."""

NUMBERS = 2**32
"""Into how many numbers a dialogue is hashed once more: the least in a bucket tells how many dialogues it holds."""

MARKS = 2**31
"""Into how many numbers a text is hashed to see whether two systems have the same ones."""

BATCH = 2**16
"""Rows handed to a function at a time."""

_ADDED_UP = 2**20
"""Rows of partial sums that are kept before they are added up."""

_PREAMBLE = re.compile(r"An error occurred while calling|Traceback |\s*at |\s*File \"|\W*$")
_JAVA_CLASS = re.compile(r"^:?\s*(?:[\w$]+\.)+[\w$]+:\s*")
_TASK = re.compile(r"^Job aborted due to stage failure:.*?most recent failure: Lost task [^:]*:\s*")
_EMPTY = re.compile(r"Exception thrown in awaitResult|\.\.\. \d+ more")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


class Engine(ABC):
    """What an engine does with rows it holds, and how it is given files, URLs and rows; an instance is started."""

    reads_arrow: ClassVar[bool] = False
    """Whether it reads Arrow files beside Parquet."""

    folds_case: ClassVar[bool] = True
    """Whether it takes columns whose names differ by case alone for one."""

    in_process: ClassVar[bool] = False
    """Whether its rows are in this process anyway."""

    def __init__(self, *, memory: str | None = None, spark_master: str | None = None) -> None:
        """Starts the engine; `holder` is what must live as long as its frames do."""
        self.holder: object = None

    @staticmethod
    def why_unusable() -> str | None:
        """Says why the engine cannot be used although its package is there."""
        return None

    @staticmethod
    def collect(frame: Lazy) -> pl.DataFrame:
        """Computes a frame and gives the result in Polars."""
        return frame.collect(backend="polars").to_polars()

    @classmethod
    def summed_batches(cls, frame: Lazy, count: OfBatch, add: AddUp, schema: pl.Schema) -> pl.DataFrame:
        """Gives the sums, made by `add`, of what `count` makes of batches of rows, one batch after the other."""

        def added() -> pl.DataFrame:
            sums = add(nw.from_native(pl.concat(parts).lazy())).collect("polars").to_polars()
            return sums.select(schema.names()).cast(schema)

        parts = [pl.DataFrame(schema=schema)]
        rows, most = 0, _ADDED_UP
        for batch in cls.batches(frame.to_native()):
            parts.append(count(batch))
            rows += parts[-1].height
            if rows > most:
                parts = [added()]
                rows, most = parts[0].height, max(_ADDED_UP, 2 * parts[0].height)
        return added()

    @staticmethod
    def batches(native: Any) -> Iterator[pl.DataFrame]:
        """Gives the rows in batches, of an engine that adds up what is made of them in this process."""
        raise NotImplementedError

    @staticmethod
    @abstractmethod
    def contains(native: Any, lists: str, item: str, name: str) -> Any:
        """Adds the column `name`: whether the texts in `lists` have the one in `item` among them."""

    @staticmethod
    @abstractmethod
    def acceptable(native: Any, lists: str, refused: list[str], name: str, first: str) -> Any:
        """Adds the lists without nulls and refused labels, and the first label of each."""

    @staticmethod
    @abstractmethod
    def add_buckets(native: Any, name: str, buckets: int, least: str) -> Any:
        """Turns the texts in `name` into buckets, and adds the column `least`."""

    @staticmethod
    @abstractmethod
    def add_marks(native: Any, texts: str, name: str) -> Any:
        """Adds the column `name`: a number from 0 to `MARKS` - 1 for each text, by a hash of the engine's own."""

    @staticmethod
    @abstractmethod
    def beside(native: Any, table: pl.DataFrame) -> Any:
        """Hands a small table over to where a frame is, to be joined with it."""

    @abstractmethod
    def hold(self, frame: pl.DataFrame) -> Any:
        """Hands rows over to the engine; a cluster gets them from here, so it needs no files."""

    @abstractmethod
    def local(self, parts: Sequence[FilePart], partitioned: bool) -> Any:
        """Gives the engine's frame of files on this machine."""

    @abstractmethod
    def remote(self, urls: Sequence[str]) -> Any:
        """Gives the engine's frame of what lies at URLs."""

    @abstractmethod
    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Mapping[str, str]]]:
        """Gives the files at URLs as far as the engine can list them, and the type of each column."""


def engine_class(name: str) -> type[Engine]:
    """Gives the class of an engine."""
    if name not in ENGINES:
        fix = "hand over a Polars, DuckDB or PySpark frame, or collect the rows first"
        raise DataError("this engine cannot be asked for it", where="data:", got=name, fix=fix)
    module, _, kind = ENGINES[name].path.partition(":")
    found: type[Engine] = getattr(import_module(module), kind)
    return found


def title_of(name: str) -> str:
    """Gives what an engine is called in sentences."""
    return ENGINES[name].title if name in ENGINES else name


def why_absent(name: str) -> str | None:
    """Says why an engine cannot be used here, or nothing where it can, without loading its package."""
    if find_spec(ENGINES[name].package) is None:
        return f'pip install "demur[{name}]"'
    return engine_class(name).why_unusable()


def engine_of(frame: Lazy | nw.DataFrame[Any]) -> str:
    """Gives the name of the engine that holds a frame.

    >>> engine_of(nw.from_native(pl.LazyFrame()))
    'polars'
    """
    package = str(frame.implementation.value)
    return next((name for name, entry in ENGINES.items() if package.startswith(entry.package)), package)


def collect_frame(frame: Lazy | nw.DataFrame[Any]) -> pl.DataFrame:
    """Has the engine do what a frame stands for, and gives the result in Polars.

    Whole numbers become Int64: DuckDB sums integers to a decimal, and Polars counts in 32 bits.

    >>> collect_frame(nw.from_native(pl.LazyFrame({"n": [1, 2]})).select(nw.len())).item()
    2
    """
    with as_engine_fault():
        if isinstance(frame, nw.DataFrame):
            result = frame.to_polars()
        else:
            name = engine_of(frame)
            result = (engine_class(name) if name in ENGINES else Engine).collect(frame)
        kinds = result.schema.items()
        whole = [name for name, of in kinds if of.is_integer() or (isinstance(of, pl.Decimal) and of.scale == 0)]
        return result.with_columns(pl.col(whole).cast(pl.Int64)) if whole else result


def summed_batches(frame: Lazy, count: OfBatch, add: AddUp, schema: pl.Schema) -> pl.DataFrame:
    """Gives the sums, made by `add`, of what a function makes of batches of rows: what expressions cannot say.

    The function runs where the rows are: in this process for Polars and DuckDB, on the workers of Spark. `schema` is
    that of what it gives, and of the sums.

    >>> rows = nw.from_native(pl.LazyFrame({"text": ["a", "bc"]}))
    >>> count = lambda batch: batch.select(n=pl.col("text").str.len_chars().cast(pl.Int64))
    >>> summed_batches(rows, count, lambda parts: parts.select(nw.col("n").sum()), pl.Schema({"n": pl.Int64})).item()
    3
    """
    with as_engine_fault():
        return engine_class(engine_of(frame)).summed_batches(frame, count, add, schema)


def engine_faults() -> tuple[type[BaseException], ...]:
    """Gives what the engines in use raise, without loading one that is not."""
    named = [fault.partition(":") for entry in ENGINES.values() for fault in entry.faults]
    others = [getattr(sys.modules[module], kind) for module, _, kind in named if module in sys.modules]
    return (pl.exceptions.PolarsError, pl.exceptions.PanicException, nw.exceptions.ComputeError, OSError, *others)


class EngineFault(DataError):
    """What an engine says when it cannot read or count the rows; the part at fault is yet to be found."""

    @classmethod
    def of(cls, error: BaseException, where: str = "") -> EngineFault:
        """Puts an engine's exception in words."""
        return cls(f"cannot be read or counted: {reason_of(error)}", where=where or "the rows")


@contextmanager
def as_engine_fault(where: str = "") -> Iterator[None]:
    """Turns what an engine raises into an `EngineFault` with the engine's own reason."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, engine_faults()):
            raise
        raise EngineFault.of(error, where) from error


def reason_of(error: BaseException) -> str:
    r"""Gives the line of an engine's message that says what is wrong, without Java's classes and stack.

    >>> reason_of(ValueError("An error occurred while calling o1.\n: org.x.SparkError: [X] Bad. SQLSTATE: 1\n\tat y"))
    '[X] Bad.'
    """
    for line in str(error).splitlines():
        if not _PREAMBLE.match(line):
            message = _JAVA_CLASS.sub("", line.strip().removeprefix("Caused by: "))
            bare = _STATE.sub("", _JAVA_CLASS.sub("", _TASK.sub("", message)))
            if bare and not _EMPTY.match(bare):
                return bare
    return type(error).__name__


def contains(frame: Lazy, lists: str, item: str, name: str) -> Lazy:
    """Adds the column `name`: whether the texts listed in `lists` have among them the text in `item`.

    Where the list or the item is null the answer is no. Both columns become text, numbers their digits.

    >>> frame = pl.LazyFrame({"target": [["a", "b"], ["a"], None], "prediction": ["b", None, "a"]})
    >>> collect_frame(contains(nw.from_native(frame), "target", "prediction", "hit"))["hit"].to_list()
    [True, False, False]
    """
    engine = engine_class(engine_of(frame))
    frame = frame.with_columns(nw.col(lists).cast(nw.List(nw.String)), nw.col(item).cast(nw.String))
    found: Lazy = nw.from_native(engine.contains(frame.to_native(), lists, item, name))
    known = ~(nw.col(lists).is_null() | nw.col(item).is_null())
    return found.with_columns(nw.when(known).then(nw.col(name).fill_null(False)).otherwise(False).alias(name))


def acceptable(frame: Lazy, lists: str, refused: Collection[str], name: str, first: str) -> Lazy:
    """Adds the column `name`, the lists of `lists` without nulls and refused labels, and `first` of each, or null."""
    engine = engine_class(engine_of(frame))
    found: Lazy = nw.from_native(engine.acceptable(frame.to_native(), lists, list(refused), name, first))
    return found


def add_buckets(frame: Lazy, texts: str, name: str = "bucket", *, least: str = "least") -> Lazy:
    """Adds the column `name`: a bucket from 0 to `BUCKETS` - 1 for each text, null where that is null.

    The bucket is made of the first four hexadecimal digits of the MD5 of the text, so it is the same in every
    engine, on every machine and in every version: parts of a log that were counted apart can be added. The column
    `least` has the number that the next eight digits make, from 0 to 2**32 - 1. It does not depend on the bucket, so
    the least one in a bucket tells about how many texts that holds.

    >>> rows = nw.from_native(pl.LazyFrame({"d": ["a", None, "a"]}))
    >>> collect_frame(add_buckets(rows, "d").select("bucket", "least")).rows()
    [(193, 1975107825), (None, None), (193, 1975107825)]
    """
    engine = engine_class(engine_of(frame))
    copied = frame.with_columns(nw.col(texts).alias(name))
    result: Lazy = nw.from_native(engine.add_buckets(copied.to_native(), name, BUCKETS, least))
    return result


def add_marks(frame: Lazy, texts: str, name: str) -> Lazy:
    """Adds the column `name`: a whole number for each text, the same for the same text within one engine and version.

    Sums of it agree where the same texts were added, in whatever order, and hardly ever otherwise.

    >>> rows = collect_frame(add_marks(nw.from_native(pl.LazyFrame({"id": ["a", "b", "a"]})), "id", "mark"))
    >>> rows["mark"][0] == rows["mark"][2] != rows["mark"][1]
    True
    """
    engine = engine_class(engine_of(frame))
    result: Lazy = nw.from_native(engine.add_marks(frame.to_native(), texts, name))
    return result


def beside(frame: Lazy, table: pl.DataFrame) -> Lazy:
    """Gives a small table as a frame of the engine, and of the connection, that holds another frame."""
    engine = engine_class(engine_of(frame))
    result: Lazy = nw.from_native(engine.beside(frame.to_native(), table))
    return result
