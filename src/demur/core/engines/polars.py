"""Polars as an engine: rows in this process, read as they are needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import md5

import numpy as np
import numpy.typing as npt
import polars as pl

from demur.core.engines.engine import BATCH, MARKS, NUMBERS, Engine, Lazy
from demur.core.engines.scanning import FilePart, columns_of_each, keys_in
from demur.core.io.sources import exactly, quiet_panics
from demur.core.show.results import path_text

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
_MIX: tuple[Callable[[Words, Words, Words], Words], ...] = (
    lambda b, c, d: (c ^ d) & b ^ d,
    lambda b, c, d: (b ^ c) & d ^ c,
    lambda b, c, d: b ^ c ^ d,
    lambda b, c, d: (~d | b) ^ c,
)
"""The functions F, G, H and I of RFC 1321, written with one operation less where that is possible."""


class PolarsEngine(Engine):
    """Polars, which spills nothing to disk and orders nothing it need not."""

    reads_arrow = True
    folds_case = False
    in_process = True

    @staticmethod
    def collect(frame: Lazy) -> pl.DataFrame:
        """Computes a frame in pieces that fit into memory."""
        native: pl.LazyFrame = frame.to_native()
        with quiet_panics():
            return native.collect(engine="streaming")

    @staticmethod
    def batches(native: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Gives the rows in batches, as they are read."""
        with quiet_panics():
            yield from native.collect_batches(chunk_size=BATCH, maintain_order=False, lazy=True, engine="streaming")

    def hold(self, frame: pl.DataFrame) -> pl.LazyFrame:
        """Gives the rows as a lazy frame."""
        return frame.lazy()

    @staticmethod
    def contains(native: pl.LazyFrame, lists: str, item: str, name: str) -> pl.LazyFrame:
        """Adds whether a list has an item."""
        return native.with_columns(pl.col(lists).list.contains(pl.col(item)).alias(name))

    @staticmethod
    def acceptable(native: pl.LazyFrame, lists: str, refused: list[str], name: str, first: str) -> pl.LazyFrame:
        """Adds the lists without nulls and refused labels, and the first label of each."""
        wanted = pl.element().is_not_null() & ~pl.element().is_in(refused)
        kept = native.with_columns(pl.col(lists).list.eval(pl.element().filter(wanted)).alias(name))
        return kept.with_columns(pl.col(name).list.first().alias(first))

    @staticmethod
    def add_buckets(native: pl.LazyFrame, name: str, buckets: int, least: str) -> pl.LazyFrame:
        """Turns texts into buckets by the first digits of their MD5."""
        digits = pl.col(name)
        hashed = native.with_columns(digits.map_batches(_hash_runs, return_dtype=pl.Int64, is_elementwise=True))
        return hashed.with_columns((digits // NUMBERS % buckets).cast(pl.Int32), (digits % NUMBERS).alias(least))

    @staticmethod
    def add_marks(native: pl.LazyFrame, texts: str, name: str) -> pl.LazyFrame:
        """Adds numbers made of the upper bits of Polars' hash."""
        return native.with_columns((pl.col(texts).hash() // (2**64 // MARKS)).cast(pl.Int64).alias(name))

    @staticmethod
    def beside(native: pl.LazyFrame, table: pl.DataFrame) -> pl.LazyFrame:  # noqa: ARG004
        """Gives the table as a lazy frame."""
        return table.lazy()

    def local(self, parts: Sequence[FilePart], partitioned: bool) -> pl.LazyFrame:
        """Gives the frame of files on this machine."""
        paths = [path_text(part.path) for part in parts]
        if parts[0].format == "arrow":
            return pl.concat([pl.scan_ipc(exactly(part.path)) for part in parts], how="diagonal")
        keys = {key: pl.String() for path in paths for key in keys_in(path)} if partitioned else None
        return pl.scan_parquet(
            paths, glob=False, hive_partitioning=partitioned, hive_schema=keys, extra_columns="ignore"
        )

    def remote(self, urls: Sequence[str]) -> pl.LazyFrame:
        """Gives the frame of what lies at URLs."""
        plain = pl.scan_parquet(list(urls), hive_partitioning=False, extra_columns="ignore")
        stored = plain.collect_schema().names()
        inferred = pl.scan_parquet(list(urls), hive_partitioning=True, extra_columns="ignore").collect_schema().names()
        keys = {name: pl.String() for name in inferred if name not in stored}
        if not keys:
            return plain
        return pl.scan_parquet(list(urls), hive_partitioning=True, hive_schema=keys, extra_columns="ignore")

    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Mapping[str, str]]]:
        """Polars lists no remote folder; it refuses itself, while it reads, a file whose types are others."""
        return columns_of_each(
            urls, lambda url: {name: str(kind) for name, kind in pl.read_parquet_schema(url).items()}
        )


def leading_digits(texts: pl.Series) -> Numbers:
    """Gives the first twelve hexadecimal digits, as a number, of the MD5 of each text's UTF-8 bytes.

    >>> [f"{number:012x}" for number in leading_digits(pl.Series(["", "a"]))], md5(b"a").hexdigest()[:12]
    (['d41d8cd98f00', '0cc175b9c0f1'], '0cc175b9c0f1')
    """
    lengths = texts.str.len_bytes().to_numpy()
    digits = np.empty(len(texts), dtype=np.int64)
    long = np.flatnonzero(lengths > _ROOM)
    digests = b"".join(md5(text, usedforsecurity=False).digest()[:8] for text in texts.gather(long).cast(pl.Binary))
    digits[long] = np.frombuffer(digests, dtype=">u8") >> 16
    short = np.flatnonzero(lengths <= _ROOM)
    for start in range(0, short.size, _AT_ONCE):
        some = short[start : start + _AT_ONCE]
        first, second = _first_words(_blocks(texts.gather(some), lengths[some]))
        # eight digits of the first word and four of the second; in a digest the lowest byte of a word is first
        digits[some] = first.byteswap().astype(np.int64) << 16 | second.byteswap() >> 16
    return digits


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
        mixed = _MIX[kind](b, c, d)
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


def _hash_runs(texts: pl.Series) -> pl.Series:
    """Hashes each run of equal texts once, as the turns of a dialogue mostly stand together."""
    runs = texts.rle().struct.unnest()
    hashes = pl.Series(leading_digits(runs["value"].fill_null("")))
    known = hashes.zip_with(runs["value"].is_not_null(), pl.Series([None], dtype=pl.Int64))
    return known.gather(np.repeat(np.arange(len(runs)), runs["len"]))
