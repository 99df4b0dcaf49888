"""Ways to spoil an input: bytes, tokens, JSON, tables and archives, each by the structure that its reader looks at."""

import gzip
import hashlib
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException, PolarsError

from payloads import PAYLOADS

NAMES = (
    *PAYLOADS.values(),
    *(
        "",
        " ",
        "{}",
        "{0}",
        "%s",
        "a\nb",
        '"',
        "'",
        "\\",
        "\x00",
        "\u2028",
        "é" * 300,
        "len",
        "count",
        "n",
        "value",
        "id",
    ),
    *("system", "target", "prediction", "confidence", "right", "answered", "weight", "slice", "index", "literal"),
    *("demur:row", "demur:source", "row", "rows", "unit", "bucket", "nan", "None", "null", "true", "0", "-1", "1e9"),
)
NUMBERS = (
    *(0, -0.0, -1, 1, 2, 1e-320, 1e308, -1e308, 0.1 + 0.2, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30),
    *(float("nan"), float("inf"), float("-inf"), 1e16, 0.5, 10**400),
)
WORDS = (
    *(
        "1e999",
        "-0",
        "NaN",
        "Infinity",
        "-Infinity",
        "99999999999999999999",
        "0x10",
        "1_000",
        "١٢",
        "1,5",
        "50%",
        "+1",
        ".5",
    ),
    *(
        "1e",
        "--1",
        "true",
        "null",
        "[]",
        "{}",
        '""',
        "[[[[",
        "]]]]",
        "\\ud800",
        "\\u0000",
        "\ufeff",
        "\r",
        "\x1a",
        "\t",
        ";",
    ),
)
ESCAPES = ('"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\\x"')
DEEP = (40, 600, 100_000)


NOT_WRITTEN = (
    *(ValueError, TypeError, ArithmeticError, LookupError, RecursionError),
    *(PolarsError, PanicException, pa.ArrowException),
)
"""What is raised at a table or a document that a format does not have."""


class Twice(dict[str, Any]):
    """An object of which a key is written twice."""


class Raw(str):
    """Text that is written as it stands."""

    __slots__ = ()


def write_json(value: Any) -> str:
    """JSON of what the library's own writer would refuse: keys twice, text that is none, numbers of any size."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        pairs = [f"{json.dumps(key)}: {write_json(one)}" for key, one in value.items()]
        return "{" + ", ".join(pairs + pairs[:1] * isinstance(value, Twice)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_json, value)) + "]"
    return json.dumps(value)


class Mutator:
    """Spoils inputs by a generator of random numbers, so that a seed repeats a run."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kinds: dict[str, Callable[[bytes], bytes]] = {
            "jsonl": self.json_lines,
            "json": self.document,
            "document": self.document,
            "outcome": self.outcome_model,
            "csv": lambda content: self.delimited(content, ","),
            "tsv": lambda content: self.delimited(content, "\t"),
            "parquet": self.parquet,
            "arrow": lambda content: self.arrow(content, streamed=False),
            "arrows": lambda content: self.arrow(content, streamed=True),
            "gz": lambda content: self.packed(content, gzip.decompress, gzip.compress),
            "zst": self.zstandard,
            "zip": self.archive,
            "text": self.text,
            "toml": self.text,
            "bytes": self.raw,
        }

    def one_of(self, *choices: Any) -> Any:
        """Any of these, functions called."""
        chosen = self.rng.choice(choices)
        return chosen() if callable(chosen) else chosen

    def mutate(self, kind: str, content: bytes) -> bytes:
        """A spoilt input of a kind: mostly by its structure, now and then by its bytes."""
        if self.rng.random() < 0.25:
            return self.raw(content)
        try:
            return self.kinds[kind](content)
        except NOT_WRITTEN:
            return self.raw(content)  # what could not be written in this format

    def raw(self, content: bytes) -> bytes:
        """Bits flipped, parts cut, repeated, exchanged, and numbers that lengths may be taken from."""
        data = bytearray(content)
        for _ in range(self.one_of(1, 1, 2, 6)):
            size = len(data)
            if not size:
                return self.rng.randbytes(self.one_of(0, 1, 40))
            at = self.rng.choice((self.rng.randrange(size), max(0, size - 1 - self.rng.randrange(min(size, 64)))))
            length = self.one_of(1, 4, 16, self.rng.randrange(size) + 1)
            match self.rng.randrange(8):
                case 0 | 1:
                    data[at] ^= 1 << self.rng.randrange(8)
                case 2:
                    del data[at:]
                case 3:
                    del data[at : at + length]
                case 4:
                    data[at:at] = data[at : at + length] * self.one_of(1, 1, 30)
                case 5:
                    data[at : at + 8] = self.one_of(
                        b"\xff" * 4, b"\xff" * 8, b"\0" * 8, b"\x7f\xff\xff\xff", b"\x80\0\0\0"
                    )
                case 6:
                    other = self.rng.randrange(size)
                    data[at : at + length] = data[other : other + length]
                case 7:
                    data[at:at] = self.rng.randbytes(length % 50)
        return bytes(data)

    def text(self, content: bytes) -> bytes:
        """Words, numbers and lines exchanged for others."""
        text = content.decode("utf-8", errors="replace")
        for _ in range(self.one_of(1, 1, 3)):
            match self.rng.randrange(7):
                case 0 | 1:
                    found = list(re.finditer(r"-?\d[\d.eE+-]*", text))
                    text = self._exchanged(text, found, str(self.rng.choice((*NUMBERS[:-1], *WORDS))))
                case 2:
                    found = list(re.finditer(r"[^\W\d]+", text))
                    text = self._exchanged(text, found, self.rng.choice((*NAMES, *WORDS)))
                case 3:
                    parts = text.splitlines(keepends=True)
                    at, to = self.rng.randrange(len(parts) + 1), self.rng.randrange(len(parts) + 1)
                    text = "".join(
                        parts[:at] + parts[to : to + self.one_of(0, 1, 3)] * self.one_of(1, 2, 40) + parts[at:]
                    )
                case 4:
                    parts = text.splitlines(keepends=True)
                    text = "".join(line for line in parts if self.rng.random() < 0.8)
                case 5:
                    found = list(re.finditer(r"[=,;:{}\[\]|\"\n]", text))
                    text = self._exchanged(
                        text, found, self.rng.choice(["", "=", ",", "\n", '"', "[", "]", "{", "}", "|"])
                    )
                case 6:
                    text = self.one_of(
                        "\ufeff" + text,
                        text.replace("\n", "\r\n"),
                        text.replace("\n", "\r"),
                        text + "x" * 100_000,
                        text + "\0",
                    )
        return text.encode("utf-8", errors="surrogatepass")

    def _exchanged(self, text: str, found: list[re.Match[str]], new: str) -> str:
        if not found:
            return text + new
        match = self.rng.choice(found)
        return text[: match.start()] + new + text[match.end() :]

    def value(self) -> Any:
        """A value that a reader may not expect."""
        deep = self.rng.choice(DEEP)
        return self.one_of(
            lambda: self.rng.choice(NUMBERS),
            lambda: self.rng.choice(NUMBERS),
            lambda: self.rng.choice(NAMES),
            lambda: self.rng.choice(WORDS),
            lambda: Raw(self.rng.choice(ESCAPES)),
            lambda: Raw(self.rng.choice(WORDS[:13])),
            lambda: Raw("[" * deep + "]" * deep),
            lambda: Raw('{"a":' * deep + "1" + "}" * deep),
            lambda: [self.rng.choice(NUMBERS), self.rng.choice(NAMES), None],
            lambda: {self.rng.choice(NAMES): self.rng.choice(NUMBERS)},
            lambda: "x" * 70_000,
            lambda: [0] * 20_000,
            None,
            True,
            [],
            {},
            "",
        )

    def tree(self, value: Any) -> Any:
        """A JSON value of which one place is changed."""
        at = value
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at))) if isinstance(at, list) else []
            if not keys:
                return self.value() if at is value else value
            key = self.rng.choice(keys)
            if isinstance(at[key], dict | list) and at[key] and self.rng.random() < 0.8:
                at = at[key]
                continue
            self._change(at, key)
            return value

    def _change(self, at: Any, key: Any) -> None:
        match self.rng.randrange(8):
            case 0:
                del at[key]
            case 1 if isinstance(at, dict):
                at[self.rng.choice(NAMES)] = at.pop(key)
            case 2 if isinstance(at, dict):
                at[self.rng.choice(NAMES)] = self.value()
            case 2 if isinstance(at, list):
                at.extend(at[:20] * self.one_of(1, 100))
            case 3 if isinstance(at[key], int | float) and not isinstance(at[key], bool):
                at[key] = self.rng.choice(NUMBERS)
            case 4 if isinstance(at[key], str):
                at[key] = at[key] + self.rng.choice(NAMES)
            case 5 if isinstance(at, dict):
                at[key] = Twice({str(key): at[key]})
            case _:
                at[key] = self.value()

    def document(self, content: bytes) -> bytes:
        """A JSON document of which some places are changed."""
        value = json.loads(content)
        for _ in range(self.one_of(1, 1, 2, 5)):
            value = self.tree(value)
        return write_json(value).encode("utf-8", errors="surrogatepass")

    def json_lines(self, content: bytes) -> bytes:
        """Rows of which some are changed, or all in one column."""
        if self.rng.random() < 0.2:
            return self.text(content)
        rows = [json.loads(line) for line in content.splitlines()]
        names = list(rows[0])
        match self.rng.randrange(6):
            case 0 | 1 | 2:
                for _ in range(self.one_of(1, 2, 10)):
                    place = self.rng.randrange(len(rows))
                    rows[place] = self.tree(rows[place])
            case 3:
                name = self.rng.choice(names)
                rows = [{**row, name: self.value() if self.rng.random() < 0.5 else row.get(name)} for row in rows]
            case 4:
                old, new = self.rng.choice(names), self.rng.choice(NAMES)
                rows = [{new if name == old else name: value for name, value in row.items()} for row in rows]
            case 5:
                place = self.rng.randrange(len(rows))
                rows[place] = self.one_of(
                    lambda: Twice(rows[place]),
                    lambda: {**rows[place], **{f"k{k}": k for k in range(3000)}},
                    lambda: dict.fromkeys(names),
                    [1, 2],
                    "text",
                    5,
                    {},
                )
        ends = self.rng.choice(["\n", "\n", "\n", "\r\n", "\n\n", " \n"])
        return "".join(write_json(row) + ends for row in rows).encode("utf-8", errors="surrogatepass")

    def delimited(self, content: bytes, separator: str) -> bytes:
        """Cells, names and widths of rows changed."""
        if self.rng.random() < 0.3:
            return self.text(content)
        rows = [line.split(separator) for line in content.decode().splitlines()]
        for _ in range(self.one_of(1, 2, 8)):
            row = self.rng.choice(rows)
            at = self.rng.randrange(len(row)) if row else 0
            match self.rng.randrange(7):
                case 0 | 1:
                    row[at : at + 1] = [str(self.rng.choice((*NUMBERS[:-1], *WORDS)))]
                case 2:
                    row[at : at + 1] = [self._quoted(self.rng.choice(NAMES))]
                case 3:
                    rows[0][at % len(rows[0])] = self._quoted(self.rng.choice(NAMES))
                case 4:
                    row += ["more"] * self.one_of(1, 2, 2000)
                case 5:
                    del row[at:]
                case 6:
                    column = self.rng.randrange(len(rows[0]))
                    for one in rows[1:]:
                        one[column : column + 1] = [str(self.rng.choice((*NUMBERS[:-1], *WORDS)))]
        return "\n".join(separator.join(row) for row in rows).encode("utf-8", errors="surrogatepass") + b"\n"

    def _quoted(self, text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if self.rng.random() < 0.8 else text

    def frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Columns of other types, names and lengths."""
        for _ in range(self.one_of(1, 1, 2)):
            name = self.rng.choice(frame.columns)
            match self.rng.randrange(6):
                case 0 | 1 | 2:
                    frame = frame.with_columns(self.series(name, frame.height))
                case 3:
                    frame = frame.rename({name: self.rng.choice([new for new in NAMES if new not in frame.columns])})
                case 4:
                    frame = frame.head(self.one_of(0, 1, 2))
                case 5:
                    frame = frame.drop(name)
        return frame

    def series(self, name: str, height: int) -> pl.Series:
        """A column of another type, with gaps."""
        makers: tuple[Callable[[], list[Any]], ...] = (
            lambda: [None],
            lambda: [True, False, None],
            lambda: [b"\xff\x00", b"", None],
            lambda: [["a", None], [], None],
            lambda: [[["a"]], []],
            lambda: [{"a": 1, "b": None}, None],
            lambda: [Decimal("1.10"), None, Decimal("-99999999999999")],
            lambda: [date(1, 1, 1), date(9999, 12, 31), None],
            lambda: [datetime(2024, 1, 1, tzinfo=UTC), None],
            lambda: [timedelta(days=400), None],
            lambda: [0.0, float("nan"), float("inf"), -float("inf"), None, 1e308],
            lambda: [2**63 - 1, -(2**63), 0],
            lambda: list(PAYLOADS.values()),
        )
        values = self.rng.choice(makers)()
        types = (
            pl.Categorical(),
            pl.UInt64(),
            pl.Float32(),
            pl.Int8(),
            pl.Array(pl.Int64, 2),
            pl.Int128(),
            pl.String(),
        )
        column = pl.Series(name, [values[place % len(values)] for place in range(height)], strict=False)
        if self.rng.random() < 0.4:
            try:
                return column.cast(self.rng.choice(types), strict=False)
            except PolarsError:
                return column
        return column

    def parquet(self, content: bytes) -> bytes:
        """A Parquet file of another table, or packed in another way; now and then damaged as well."""
        frame, buffer = self.frame(pl.read_parquet(io.BytesIO(content))), io.BytesIO()
        rows = self.one_of(1000, 7)
        if self.rng.random() < 0.5 or any("\0" in name for name in frame.columns):  # which Arrow has no name for
            frame.write_parquet(
                buffer, compression=self.one_of("snappy", "gzip", "zstd", "uncompressed"), row_group_size=rows
            )
        else:
            table = frame.to_arrow()
            if self.rng.random() < 0.2:  # two columns of one name
                names = [*table.column_names, table.column_names[-1]]
                table = pa.Table.from_arrays([*table.columns, table.column(0)], names)
            pq.write_table(table, buffer, compression=self.one_of("none", "lz4"), row_group_size=rows, version="1.0")
        return self.raw(buffer.getvalue()) if self.rng.random() < 0.3 else buffer.getvalue()

    def arrow(self, content: bytes, *, streamed: bool) -> bytes:
        """An Arrow file of another table; now and then damaged as well."""
        read, write = (pl.read_ipc_stream, "write_ipc_stream") if streamed else (pl.read_ipc, "write_ipc")
        buffer = io.BytesIO()
        getattr(self.frame(read(io.BytesIO(content))), write)(
            buffer, compression=self.rng.choice(["uncompressed", "lz4", "zstd"])
        )
        return self.raw(buffer.getvalue()) if self.rng.random() < 0.3 else buffer.getvalue()

    def packed(self, content: bytes, unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes]) -> bytes:
        """Rows packed again, in parts, within one another, or next to what is nothing."""
        plain = unpack(content)
        return self.one_of(
            lambda: pack(self.json_lines(plain)),
            lambda: pack(plain[:100]) + pack(plain[100:]),
            lambda: pack(pack(plain)),
            lambda: pack(b"\n" * 5_000_000 + plain),
            lambda: pack(b'{"id": 1}\n' * 300_000),
            lambda: pack(plain) + self.rng.randbytes(20),
            lambda: pack(b""),
            lambda: pack(self.raw(plain)),
        )

    def zstandard(self, content: bytes) -> bytes:
        """Rows packed by Zstandard."""
        codec = pa.Codec("zstd")
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
            plain = stream.read()
        return self.packed(content, lambda _: plain, lambda text: bytes(codec.compress(text, asbytes=True)))

    def archive(self, content: bytes) -> bytes:
        """A ZIP file of which a member is spoilt, with a checksum that is right."""
        members = _members(content)
        name = self.rng.choice(list(members))
        kind = "document" if name.endswith(".json") else "parquet" if name.endswith(".parquet") else "bytes"
        match self.rng.randrange(10):
            case 0:
                del members[name]
            case 1:
                members[self.rng.choice(["../x", "/x", "a" * 300, f"{name}\0", name.upper()])] = members.pop(name)
            case 2:
                members[name] = b"\0" * 30_000_000
            case _:
                members[name] = self.array(members[name]) if name.endswith(".npy") else self.mutate(kind, members[name])
        return _archived(members)

    def array(self, content: bytes) -> bytes:
        """A file of NumPy with other numbers, or another header."""
        head, _, body = content.partition(b"\n")
        if self.rng.random() < 0.3:
            return self.text(head) + b"\n" + body
        numbers = bytearray(body)
        for _ in range(self.one_of(1, 3)):
            at = self.rng.randrange(max(1, len(numbers) // 8)) * 8
            low = int(self.rng.choice((-1, 0, 1, 2**31, 2**62, -(2**63), 7))).to_bytes(8, "little", signed=True)
            numbers[at : at + 8] = self.one_of(low, b"\0\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf0\x7f")
        return head + b"\n" + bytes(numbers[: self.one_of(len(numbers), len(numbers), len(numbers) // 2)])

    def outcome_model(self, content: bytes) -> bytes:
        """A model with other numbers, mostly without the digest that would give it away."""
        model = json.loads(content)
        if self.rng.random() < 0.8:
            model.pop("digest", None)
        for name in ("covariance", "ranges") if self.rng.random() < 0.3 else ():
            model.pop(name, None)
        return self.document(json.dumps(model).encode())

    def options(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A command with other values of its options."""
        given = [place for place, word in enumerate(command) if place and command[place - 1].startswith("--")]
        given = [place for place in given if not command[place].startswith("-")]
        changed = list(command)
        for place in self.rng.sample(given, self.one_of(1, 1, len(given))):
            word = changed[place]
            new = self.rng.choice((*NAMES, *WORDS, *(str(number) for number in NUMBERS[:-1])))
            pieces = re.split(r"([=><: ]+)", word)
            if len(pieces) > 1 and self.rng.random() < 0.6:
                pieces[self.rng.randrange(len(pieces))] = new
                new = "".join(pieces)
            changed[place] = new.replace("\0", "")  # which no argument of a command can have
        return tuple(changed)


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _archived(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def sealed_model(files: dict[str, bytes]) -> dict[str, bytes]:
    """The folder of a model whose digests are those of its files, as whoever forges one would write them."""
    try:
        document = json.loads(files["guide/model.json"])
        for name in ("arrays.npz", "vocabularies.json"):
            document["digests"][name] = hashlib.blake2b(files[f"guide/{name}"], digest_size=16).hexdigest()
    except (ValueError, TypeError, KeyError, RecursionError):
        return files
    return {**files, "guide/model.json": json.dumps(document).encode()}


def sealed_store(files: dict[str, bytes]) -> dict[str, bytes]:
    """A store whose runs have the digests of their files."""
    sealed = dict(files)
    for name in [name for name in files if name.endswith("/rows.parquet")]:
        record = name.replace("rows.parquet", "run.json")
        try:
            document = json.loads(files[record])
            document["file_sha256"] = hashlib.sha256(files[name]).hexdigest()
            document["size"] = len(files[name])
            sealed[record] = write_json(document).encode("utf-8", errors="surrogatepass")
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return sealed
