"""The engines that can hold rows, and the few operations that each needs in its own words."""

import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import md5
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from demur.errors import DataError

Words = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int64]

_BLOCK = 64
_ROOM = 55
"""Bytes of a text that fit in one block, with the mark of its end and its length."""

_AT_ONCE = 1 << 14
"""Texts in one pass, so few that all of its arrays stay in the processor's cache."""

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES = tuple(np.uint32(int(abs(math.sin(step + 1)) * 2**32)) for step in range(64))
_TURNS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_ORDER = ((1, 0), (5, 1), (3, 5), (7, 0))


def leading_digits(texts: pl.Series) -> Numbers:
    """Gives the first twelve hexadecimal digits, as a number, of the MD5 of each text's UTF-8 bytes.

    >>> [f"{number:012x}" for number in leading_digits(pl.Series(["", "a"]))], md5(b"a").hexdigest()[:12]
    (['d41d8cd98f00', '0cc175b9c0f1'], '0cc175b9c0f1')
    """
    lengths = texts.str.len_bytes().to_numpy()
    short = lengths <= _ROOM
    digits = np.empty(len(texts), dtype=np.int64)
    if short.any():
        digits[short] = _of_short(texts.filter(short), lengths[short])
    if not short.all():
        digits[~short] = _of_long(texts.filter(~short))
    return digits


def _of_long(texts: pl.Series) -> Numbers:
    digests = b"".join(md5(text, usedforsecurity=False).digest()[:8] for text in texts.cast(pl.Binary))
    return (np.frombuffer(digests, dtype=">u8") >> 16).astype(np.int64)


def _of_short(texts: pl.Series, lengths: npt.NDArray[np.uint32]) -> Numbers:
    starts = range(0, len(texts), _AT_ONCE)
    blocks = (_blocks(texts[at : at + _AT_ONCE], lengths[at : at + _AT_ONCE]) for at in starts)
    return np.concatenate([_twelve_digits(*_first_words(block)) for block in blocks])


def _twelve_digits(first: Words, second: Words) -> Numbers:
    """Gives eight digits of the first word and four of the second; in a digest the lowest byte of a word is first."""
    return first.byteswap().astype(np.int64) << 16 | second.byteswap() >> 16


def _blocks(texts: pl.Series, lengths: npt.NDArray[np.uint32]) -> Words:
    """Lays each text in a block of 16 words: its bytes, the bit that ends it, zeros, its length in bits."""
    blocks = np.zeros((len(texts), _BLOCK), dtype=np.uint8)
    joined = texts.str.join("").cast(pl.Binary).item()
    blocks[np.arange(_BLOCK) < lengths[:, None]] = np.frombuffer(joined, dtype=np.uint8)
    blocks[np.arange(len(texts)), lengths] = 0x80
    words = blocks.view("<u4").astype(np.uint32, copy=False)
    words[:, 14] = lengths * 8
    return np.ascontiguousarray(words.T)


def _first_words(block: Words) -> tuple[Words, Words]:
    """Gives the first two of the four words of each digest (RFC 1321, section 3.4)."""
    a, b, c, d = (np.full(block.shape[1], start, dtype=np.uint32) for start in _START)
    for step, sine in enumerate(_SINES):
        kind, place = divmod(step, 16)
        factor, offset = _ORDER[kind]
        mixed = _mixed(kind, b, c, d)
        mixed += a
        mixed += sine
        mixed += block[(factor * place + offset) % 16]
        turn = _TURNS[kind][step % 4]
        turned = mixed << np.uint32(turn)
        turned |= mixed >> np.uint32(32 - turn)
        turned += b
        a, b, c, d = d, turned, b, c
    a += np.uint32(_START[0])
    b += np.uint32(_START[1])
    return a, b


def _mixed(kind: int, b: Words, c: Words, d: Words) -> Words:
    """The functions F, G, H and I of RFC 1321, written with one operation less where that is possible."""
    if kind == 0:
        mixed = c ^ d
        mixed &= b
        mixed ^= d
    elif kind == 1:
        mixed = b ^ c
        mixed &= d
        mixed ^= c
    elif kind == 2:
        mixed = b ^ c
        mixed ^= d
    else:
        mixed = ~d
        mixed |= b
        mixed ^= c
    return mixed


Engine = Literal["polars", "duckdb", "spark"]
Lazy = nw.LazyFrame[Any]

ENGINES: tuple[Engine, ...] = ("polars", "duckdb", "spark")
TITLES: dict[str, str] = {"polars": "Polars", "duckdb": "DuckDB", "spark": "Spark"}
"""What the engines are called in sentences."""

BUCKETS = 1024
"""Into how many buckets dialogues are hashed. A bucket is drawn as a whole, like a dialogue."""

NUMBERS = 2**32
"""Into how many numbers a dialogue is hashed once more: the least in a bucket tells how many dialogues it holds."""

_SPARK = {nw.Implementation.PYSPARK, nw.Implementation.PYSPARK_CONNECT}
_ELSEWHERE = {"duckdb": ("Error",), "pyspark.errors": ("PySparkException",), "py4j.protocol": ("Py4JError",)}
_EXACT = 2.0**53
"""Up to here every whole number is a float of its own, and every engine writes it alike."""

_PREAMBLE = re.compile(r"An error occurred while calling|Traceback |\s*at |\s*File \"|\W*$")
_JAVA_CLASS = re.compile(r"^:?\s*(?:[\w$]+\.)+[\w$]+:\s*")
_TASK = re.compile(r"^Job aborted due to stage failure:.*?most recent failure: Lost task [^:]*:\s*")
_EMPTY = re.compile(r"Exception thrown in awaitResult|\.\.\. \d+ more")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


def engine_of(frame: Lazy | nw.DataFrame[Any]) -> str:
    """Gives the name of the engine that holds a frame.

    >>> engine_of(nw.from_native(pl.LazyFrame()))
    'polars'
    """
    return "spark" if frame.implementation in _SPARK else str(frame.implementation.value)


def collected(frame: Lazy | nw.DataFrame[Any]) -> pl.DataFrame:
    """Has the engine do what a frame stands for, and gives the result in Polars; whole numbers become Int64.

    >>> collected(nw.from_native(pl.LazyFrame({"n": [1, 2]})).select(nw.len())).item()
    2
    """
    with engine_faults_told():
        return _counts_as_integers(_in_polars(frame))


def _in_polars(frame: Lazy | nw.DataFrame[Any]) -> pl.DataFrame:
    if isinstance(frame, nw.DataFrame):
        return frame.to_polars()
    if engine_of(frame) == "polars":
        native: pl.LazyFrame = frame.to_native()
        return native.collect(engine="streaming")
    return frame.collect(backend="polars").to_polars()


def _counts_as_integers(frame: pl.DataFrame) -> pl.DataFrame:
    """Undoes that DuckDB sums integers to a decimal, and Polars counts in 32 bits."""
    whole = [name for name, kind in frame.schema.items() if kind.is_integer() or _is_whole_decimal(kind)]
    return frame.with_columns(pl.col(whole).cast(pl.Int64)) if whole else frame


def _is_whole_decimal(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.Decimal) and kind.scale == 0


def engine_faults() -> tuple[type[BaseException], ...]:
    """Gives what the engines in use raise, without loading one that is not."""
    loaded = [(sys.modules[name], kinds) for name, kinds in _ELSEWHERE.items() if name in sys.modules]
    others = [getattr(module, kind) for module, kinds in loaded for kind in kinds]
    return (pl.exceptions.PolarsError, pl.exceptions.PanicException, nw.exceptions.ComputeError, OSError, *others)


class EngineFault(DataError):
    """What an engine says when it cannot read or count the rows; the part at fault is yet to be found."""

    @classmethod
    def of(cls, error: BaseException, where: str = "") -> "EngineFault":
        """Puts an engine's exception in words."""
        return cls(f"cannot be read or counted: {reason_of(error)}", where=where or "the rows")


@contextmanager
def engine_faults_told(where: str = "") -> Iterator[None]:
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
    told = (_bare(line) for line in str(error).splitlines() if not _PREAMBLE.match(line))
    return next((line for line in told if line and not _EMPTY.match(line)), type(error).__name__)


def _bare(line: str) -> str:
    """Gives a line without the classes and the numbers of tasks that Java puts before a message."""
    message = _JAVA_CLASS.sub("", line.strip().removeprefix("Caused by: "))
    return _STATE.sub("", _JAVA_CLASS.sub("", _TASK.sub("", message)))


def contains(frame: Lazy, lists: str, item: str, name: str) -> Lazy:
    """Adds the column `name`: whether the texts listed in `lists` have among them the text in `item`.

    Where the list or the item is null the answer is no. Both columns become text, numbers their digits.

    >>> frame = pl.LazyFrame({"target": [["a", "b"], ["a"], None], "prediction": ["b", None, "a"]})
    >>> collected(contains(nw.from_native(frame), "target", "prediction", "hit"))["hit"].to_list()
    [True, False, False]
    """
    engine = engine_of(frame)
    if engine not in _CONTAINS:
        raise _unable(engine)
    frame = frame.with_columns(nw.col(lists).cast(nw.List(nw.String)), nw.col(item).cast(nw.String))
    found: Lazy = nw.from_native(_CONTAINS[engine](frame.to_native(), lists, item, name))
    known = ~(nw.col(lists).is_null() | nw.col(item).is_null())
    return found.with_columns(nw.when(known).then(nw.col(name).fill_null(False)).otherwise(False).alias(name))


def _polars_contains(native: pl.LazyFrame, lists: str, item: str, name: str) -> pl.LazyFrame:
    return native.with_columns(pl.col(lists).list.contains(pl.col(item)).alias(name))


def _duckdb_contains(native: Any, lists: str, item: str, name: str) -> Any:
    from duckdb import ColumnExpression, FunctionExpression, StarExpression

    found = FunctionExpression("list_contains", ColumnExpression(lists), ColumnExpression(item))
    return native.select(StarExpression(), found.alias(name))


def _spark_contains(native: Any, lists: str, item: str, name: str) -> Any:
    from pyspark.sql import functions

    return native.withColumn(name, functions.array_contains(_spark_column(lists), _spark_column(item)))


_CONTAINS: dict[str, Callable[[Any, str, str, str], Any]] = {
    "polars": _polars_contains,
    "duckdb": _duckdb_contains,
    "spark": _spark_contains,
}


def bucketed(
    frame: Lazy | nw.DataFrame[Any], column: str, name: str, buckets: int = BUCKETS, *, least: str | None = None
) -> Lazy:
    """Adds the column `name`: a bucket from 0 to `buckets` - 1 for the text in `column`, null where that is null.

    The bucket is made of the first four hexadecimal digits of the MD5 of the text, so it is the same in every
    engine, on every machine and in every version: parts of a log that were counted apart can be added. Whole
    numbers count as their digits. Of numbers with a fraction the whole part counts, and those beyond 2**53
    as that: different ones may share a bucket, equal ones always do.

    The column `least`, where it is named, has the number that the next eight digits make, from 0 to 2**32 - 1. It
    does not depend on the bucket, so the least one in a bucket tells about how many texts that holds.

    >>> rows = nw.from_native(pl.LazyFrame({"d": ["a", None, "a"]}))
    >>> collected(bucketed(rows, "d", "bucket", least="least").select("bucket", "least")).rows()
    [(193, 1975107825), (None, None), (193, 1975107825)]
    """
    lazy = frame if isinstance(frame, nw.LazyFrame) else nw.from_native(frame.to_polars().lazy())
    engine = engine_of(lazy)
    if engine not in _BUCKETED:
        raise _unable(engine)
    texts = lazy.with_columns(_as_text(column, lazy.collect_schema()[column]).alias(name))
    result: Lazy = nw.from_native(_BUCKETED[engine](texts.to_native(), name, buckets, least))
    return result


def _as_text(column: str, kind: Any) -> nw.Expr:
    """Gives a column as text that is the same in every engine."""
    value = nw.col(column)
    if kind.is_float():
        number = value.cast(nw.Float64)
        within = number.clip(-_EXACT, _EXACT)
        return nw.when(~number.is_nan()).then(within.floor().cast(nw.Int64)).cast(nw.String)
    alike = kind.is_numeric() or kind in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Date)
    if not alike:
        fix = "make it text, or map another column"
        raise DataError("must be text or numbers", where=f'column "{column}"', got=str(kind), fix=fix)
    return value.cast(nw.String)


def _polars_bucketed(native: pl.LazyFrame, name: str, buckets: int, least: str | None) -> pl.LazyFrame:
    digits = pl.col(name)
    hashed = native.with_columns(digits.map_batches(_hashed, return_dtype=pl.Int64, is_elementwise=True))
    rest = [] if least is None else [(digits % NUMBERS).alias(least)]
    return hashed.with_columns((digits // NUMBERS % buckets).cast(pl.Int32), *rest)


def _hashed(texts: pl.Series) -> pl.Series:
    """Hashes each run of equal texts once, as the turns of a dialogue mostly stand together."""
    runs = texts.rle().struct.unnest()
    values = runs["value"]
    known = values.is_not_null()
    found = np.zeros(len(values), dtype=np.int64)
    found[known.to_numpy()] = leading_digits(values.filter(known))
    whole = pl.Series(found).zip_with(known, pl.Series([None], dtype=pl.Int64))
    return whole.gather(np.repeat(np.arange(len(values)), runs["len"]))


def _duckdb_bucketed(native: Any, name: str, buckets: int, least: str | None) -> Any:
    from duckdb import SQLExpression, StarExpression

    digits = _quoted(name)
    hashed = SQLExpression(f"('0x' || left(md5({digits}), 12))::BIGINT").alias(name)
    bucket = SQLExpression(f"({digits} // {NUMBERS:d} % {buckets:d})::INTEGER").alias(name)
    rest = [] if least is None else [SQLExpression(f"{digits} % {NUMBERS:d}").alias(least)]
    replaced = [column for column in native.columns if column in (name, least)]
    found = native.select(StarExpression(exclude=[name]), hashed)
    return found.select(StarExpression(exclude=replaced), bucket, *rest)


def _spark_bucketed(native: Any, name: str, buckets: int, least: str | None) -> Any:
    from pyspark.sql import functions

    digits = functions.md5(_spark_column(name))

    def number(first: int, count: int) -> Any:
        return functions.conv(functions.substring(digits, first, count), 16, 10).cast("bigint")

    rest = {} if least is None else {least: number(5, 8)}
    return native.withColumns({**rest, name: (number(1, 4) % buckets).cast("int")})


_BUCKETED: dict[str, Callable[[Any, str, int, str | None], Any]] = {
    "polars": _polars_bucketed,
    "duckdb": _duckdb_bucketed,
    "spark": _spark_bucketed,
}


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _spark_column(name: str) -> Any:
    from pyspark.sql import functions

    escaped = name.replace("`", "``")
    return functions.col(f"`{escaped}`")


def _unable(engine: str) -> DataError:
    fix = "hand over a Polars, DuckDB or PySpark frame, or collect the rows first"
    return DataError("this engine cannot be asked for it", where="data:", got=engine, fix=fix)
