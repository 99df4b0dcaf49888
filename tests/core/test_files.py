import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.core.io import json as json_lines
from demur.core.io import sources
from demur.core.io.files import read_source
from demur.core.io.sources import opened, stem_of
from demur.core.io.tables import Request
from demur.errors import DataError
from demur.importers.reading import read_table

ROWS = [
    {"id": "a", "target": "x", "confidence": "0.5", "note": "naïve, or so"},
    {"id": "b", "target": None, "confidence": "0.25", "note": "two\nlines"},
]
FRAME = pl.DataFrame(ROWS)
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


def csv_bytes(separator=","):
    return FRAME.write_csv(separator=separator).encode()


def parquet_bytes():
    buffer = io.BytesIO()
    FRAME.write_parquet(buffer)
    return buffer.getvalue()


def arrow_bytes():
    buffer = io.BytesIO()
    FRAME.write_ipc(buffer)
    return buffer.getvalue()


def arrow_stream_bytes():
    buffer = io.BytesIO()
    FRAME.write_ipc_stream(buffer)
    return buffer.getvalue()


CONTENT = {
    "t.jsonl": JSONL,
    "t.ndjson": JSONL,
    "t.json": json.dumps(ROWS, indent=2).encode(),
    "lines.json": JSONL,
    "t.csv": csv_bytes(),
    "t.tsv": csv_bytes("\t"),
    "t.parquet": parquet_bytes(),
    "t.arrow": arrow_bytes(),
    "t.feather": arrow_bytes(),
    "stream.arrow": arrow_stream_bytes(),
    "t.jsonl.gz": gzip.compress(JSONL),
    "t.csv.gz": gzip.compress(csv_bytes()),
    "t.tsv.gz": gzip.compress(csv_bytes("\t")),
    "t.jsonl.zst": zstd(JSONL),
    "t.csv.zst": zstd(csv_bytes()),
    "t.json.gz": gzip.compress(json.dumps(ROWS).encode()),
    "bom.jsonl": b"\xef\xbb\xbf" + JSONL,
    "two boms.jsonl": b"\xef\xbb\xbf\xef\xbb\xbf" + JSONL,
    "bom.csv": b"\xef\xbb\xbf" + csv_bytes(),
    "bom.jsonl.gz": gzip.compress(b"\xef\xbb\xbf" + JSONL),
    "windows.jsonl": JSONL.replace(b"}\n", b"}\r\n"),
    "blank.jsonl": b"\n" + JSONL.replace(b"}\n", b"}\n\n"),
    "unknown.txt": JSONL,
    "unknown_csv": csv_bytes(),
    "unknown_parquet.dat": parquet_bytes(),
}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", CONTENT)
def test_every_format_gives_the_same_table(tmp_path, name):
    assert read_table(write(tmp_path, name, CONTENT[name])).equals(FRAME)


def test_a_glob_reads_its_files_in_sorted_order(tmp_path):
    for name in ("b.jsonl", "a.jsonl"):
        write(tmp_path, name, json.dumps({"name": name}).encode())
    assert read_table(f"{tmp_path}/*.jsonl")["name"].to_list() == ["a.jsonl", "b.jsonl"]


def test_a_glob_that_matches_nothing_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"\*\.jsonl matches no file"):
        read_table(f"{tmp_path}/*.jsonl")


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet", "t.arrow", "stream.arrow", "t.jsonl.zst"])
def test_a_name_with_brackets_is_a_file_before_it_is_a_glob(tmp_path, name):
    assert read_table(write(tmp_path, f"run[1]*{name}", CONTENT[name])).equals(FRAME)


def test_only_the_wanted_columns_are_read_and_all_names_are_known(tmp_path):
    for name in ("t.jsonl", "t.csv", "t.parquet", "t.arrow", "stream.arrow"):
        request = Request(candidates=lambda _: ["id", "absent"], every_name=False)
        with opened(write(tmp_path, name, CONTENT[name])) as files:
            table = read_source(files[0], request)
        assert "note" not in table.frame.columns
        assert table.columns == ("id", "target", "confidence", "note")


@pytest.mark.parametrize("value", [1, "a: b", None, {"deep": 1}])
@pytest.mark.parametrize("zipped", [False, True])
def test_every_column_is_named_however_late_it_first_appears(tmp_path, value, zipped):
    rows = [{"id": place} for place in range(3000)] + [{"id": 3000, "late": value}]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = tmp_path / ("a.jsonl.gz" if zipped else "a.jsonl")
    path.write_bytes(gzip.compress(text) if zipped else text)
    with opened(path) as files:
        table = read_source(files[0], Request(candidates=list, every_name=True))
    assert table.columns == ("id", "late")
    assert table.frame.height == 3001


def test_a_column_that_first_appears_after_thousands_of_rows_is_kept(tmp_path):
    lines = [json.dumps({"id": i}) for i in range(3000)] + [json.dumps({"id": 3000, "late": "here"})]
    path = write(tmp_path, "late.jsonl", "\n".join(lines).encode())
    assert read_table(path)["late"].drop_nulls().to_list() == ["here"]
    request = Request(candidates=lambda _: ["id", "late", "never"], every_name=False)
    with opened(path) as files:
        assert read_source(files[0], request).columns == ("id", "late")


EARLY_AND_LATE = [{"id": str(place), "early" if place < 40 else "late": place, "same": "é"} for place in range(90)]


def read_at_once_and_in_parts(path, monkeypatch):
    wanted = ["id", "early", "late", "same", "absent"]
    request = Request(candidates=lambda _: wanted, numeric=frozenset(["late"]))
    for size in (sources.CHUNK, 100):
        monkeypatch.setattr(sources, "CHUNK", size)
        monkeypatch.setattr(json_lines, "CHUNK", size)
        monkeypatch.setattr(json_lines, "PIECE", 2 * size)
        with opened(path) as files:
            yield read_source(files[0], request).frame


def test_a_large_file_read_in_parts_gives_what_it_gives_at_once(tmp_path, monkeypatch):
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in EARLY_AND_LATE).encode())
    at_once, in_parts = read_at_once_and_in_parts(path, monkeypatch)
    assert in_parts.equals(at_once)
    assert in_parts["late"].to_list() == [None] * 40 + list(range(40, 90))


def test_a_fault_in_a_part_of_a_large_file_names_its_line(tmp_path, monkeypatch):
    lines = [*map(json.dumps, EARLY_AND_LATE), '{"id": "x", "early": "cut']
    monkeypatch.setattr(sources, "CHUNK", 100)
    monkeypatch.setattr(json_lines, "CHUNK", 100)
    monkeypatch.setattr(json_lines, "PIECE", 200)
    with pytest.raises(DataError, match=r"a\.jsonl:91"):
        read_table(write(tmp_path, "a.jsonl", "\n".join(lines).encode()))


def test_a_missing_file_names_the_near_misses(tmp_path):
    write(tmp_path, "run.jsonl", JSONL)
    with pytest.raises(DataError, match=r'runs.jsonl does not exist \(did you mean "run.jsonl"\?\)'):
        read_table(tmp_path / "runs.jsonl")


def test_a_missing_folder_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataError, match=r"the folder .*nowhere.* does not exist either"):
        read_table(tmp_path / "nowhere" / "run.jsonl")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder, not a file"):
        read_table(tmp_path)


def test_no_source_at_all_is_refused():
    with pytest.raises(DataError, match="no file to read was given"), opened():
        pass


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.jsonl", b""),
        ("e.csv", b""),
        ("e.parquet", b""),
        ("e.jsonl.gz", gzip.compress(b"", mtime=0)),
        ("e.jsonl.zst", zstd(b"")),
        ("blank.jsonl", b"\n \n"),
    ],
)
def test_an_empty_file_is_refused(tmp_path, name, content):
    with pytest.raises(DataError, match="is empty"):
        read_table(write(tmp_path, name, content))


def empty_parquet():
    buffer = io.BytesIO()
    FRAME.clear().write_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("h.csv", b"id,target\n", "holds a header but no rows"),
        ("h.json", b"[]", "holds no rows"),
        ("h.parquet", empty_parquet(), "holds no rows"),
    ],
)
def test_a_file_without_rows_is_refused(tmp_path, name, content, match):
    with pytest.raises(DataError, match=match):
        read_table(write(tmp_path, name, content))


CUT = {
    "cut.jsonl": (JSONL + b'{"id": "c", "tar', r"cut.jsonl:3: the line is cut off"),
    "cut.json": (json.dumps(ROWS).encode()[:-9], r"cut.json:1: the array is cut off"),
    "cut.jsonl.gz": (gzip.compress(JSONL * 500)[:-30], "is cut off or damaged"),
    "cut.csv.gz": (gzip.compress(csv_bytes() * 500)[:-30], "is cut off or damaged"),
    "cut.jsonl.zst": (zstd(JSONL * 500)[:-30], "is cut off or damaged"),
    "cut.parquet": (parquet_bytes()[:-40], "is cut off, damaged or not Parquet"),
    "cut.arrow": (arrow_bytes()[:-300], "is cut off, damaged or not Arrow"),
    "cut.csv": (b"id,target,confidence\na,x,0.5\nb,y", "the last line is cut off"),
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_that_is_cut_off_is_refused(tmp_path, name):
    content, match = CUT[name]
    with pytest.raises(DataError, match=match):
        read_table(write(tmp_path, name, content))


@pytest.mark.parametrize("line", [b"3", b"[1]", b'"text"', b"null"])
def test_a_line_that_is_no_object_is_refused_with_its_number(tmp_path, line):
    with pytest.raises(DataError, match=r"n.jsonl:4: each line must be a JSON object"):
        read_table(write(tmp_path, "n.jsonl", JSONL + b"\n" + line + b"\n"))


def test_an_array_element_that_is_no_object_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"n.json: element 2: each line must be a JSON object"):
        read_table(write(tmp_path, "n.json", b'[{"a": 1}, 2]'))


def test_a_line_that_is_not_json_is_refused_with_its_number(tmp_path):
    with pytest.raises(DataError, match=r"n.jsonl:2: the line is not JSON"):
        read_table(write(tmp_path, "n.jsonl", b'{"a": 1}\n{"a": oops}\n{"a": 2}\n'))


@pytest.mark.parametrize(
    ("name", "text"),
    [("l.jsonl", '{"a": "x"}\n{"a": "é"}\n'), ("l.csv", "a,b\né,1\n"), ("l.tsv", "a\tb\né\t1\n")],
)
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path, name, text, encoding):
    likely = {"latin-1": "Latin-1", "cp1252": "Windows-1252"}[encoding]
    shown = text.replace("é", "é" if encoding == "latin-1" else "é€")
    with pytest.raises(DataError, match=rf"{name}:2: byte \d+ of the line \(0xe9\) is not UTF-8.*{likely}"):
        read_table(write(tmp_path, name, shown.encode(encoding)))


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("l.jsonl", '{"a": "x"}\n{"a": "é"}\n', r"l.jsonl.zst:2: the line is not UTF-8"),
        ("l.csv", "a,b\né,1\n", r"l.csv.zst cannot be read: .*utf-8"),
    ],
)
def test_compressed_text_that_is_not_utf8_is_refused(tmp_path, name, text, match):
    with pytest.raises(DataError, match=match):
        read_table(write(tmp_path, f"{name}.zst", zstd(text.encode("latin-1"))))


@pytest.mark.parametrize("name", ["u.jsonl", "u.csv"])
def test_utf16_is_recognised_by_its_mark(tmp_path, name):
    with pytest.raises(DataError, match=r"mark of UTF-16.*iconv -f UTF-16"):
        read_table(write(tmp_path, name, JSONL.decode().encode("utf-16")))


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(DataError, match=r"no format known here \(known endings: .jsonl"):
        read_table(write(tmp_path, "x.txt", b"one word a line"))


def test_a_csv_file_may_use_semicolons(tmp_path):
    assert read_table(write(tmp_path, "s.csv", b"a;b\n1;x,y\n")).row(0) == ("1", "x,y")


def test_json_nested_beyond_reason_is_refused(tmp_path):
    content = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    with pytest.raises(DataError, match=r"d.jsonl"):
        read_table(write(tmp_path, "d.jsonl", b"oops\n" + content))


def test_a_row_with_too_many_cells_is_refused_with_its_line(tmp_path):
    with pytest.raises(DataError, match=r"w.csv:3: the row has 3 cells, the header 2"):
        read_table(write(tmp_path, "w.csv", b"a,b\n1,2\n1,2,3\n"))


def test_a_header_that_repeats_a_name_is_refused(tmp_path):
    with pytest.raises(DataError, match='names the column "a" twice'):
        read_table(write(tmp_path, "w.csv", b"a,a\n1,2\n"))


def test_a_quote_left_open_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"w.csv"):
        read_table(write(tmp_path, "w.csv", b'a,b\n"x,2\n1,3\n'))


def test_stray_quotes_in_tsv_are_text(tmp_path):
    assert read_table(write(tmp_path, "q.tsv", b'a\tb\n5" disk\t"so\n')).row(0) == ('5" disk', '"so')


def test_blank_lines_in_csv_are_no_rows(tmp_path):
    path = write(tmp_path, "b.csv", b"a,b\n\n1,2\n\n3,x\n")
    with opened(path) as files:
        table = read_source(files[0], Request())
        assert table.frame["a"].to_list() == ["1", "3"]
        assert table.place(int(table.frame["demur:row"][1])) == f"{path}:5"


def test_a_csv_row_after_a_cell_of_two_lines_is_placed_at_its_line(tmp_path):
    path = write(tmp_path, "t.csv", b'a,b\n"x\ny",1\nz,2\n')
    with opened(path) as files:
        assert read_source(files[0], Request()).place(1) == f"{path}:4"


def test_infinity_is_read_and_nan_in_a_label_is_missing(tmp_path):
    path = write(
        tmp_path,
        "i.jsonl",
        b'{"c": Infinity, "t": NaN}\n{"c": -Infinity, "t": "x"}\n{"c": 1e400, "t": "y"}\n',
    )
    request = Request(numeric=frozenset({"c"}))
    with opened(path) as files:
        frame = read_source(files[0], request).frame
    assert frame["c"].cast(pl.Float64).to_list() == [float("inf"), float("-inf"), float("inf")]
    assert frame["t"].to_list() == [None, "x", "y"]


class Pipe:
    def __init__(self, data):
        self.buffer = data if hasattr(data, "read") else io.BytesIO(data)


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet", "t.arrow", "stream.arrow", "t.jsonl.gz", "t.tsv"])
def test_standard_input_is_recognised_by_its_first_bytes(monkeypatch, name):
    monkeypatch.setattr("sys.stdin", Pipe(CONTENT[name]))
    assert read_table("-").equals(FRAME)


def test_a_fault_in_standard_input_names_its_line(monkeypatch):
    monkeypatch.setattr("sys.stdin", Pipe(JSONL + b"{oops\n"))
    with pytest.raises(DataError, match=r"<stdin>:3: the line"):
        read_table("-")


def test_empty_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", Pipe(b""))
    with pytest.raises(DataError, match="<stdin> is empty"):
        read_table("-")


class Interrupted(io.RawIOBase):
    def __init__(self):
        self.chunks = 3

    def read1(self, _size=-1):
        self.chunks -= 1
        if not self.chunks:
            raise KeyboardInterrupt
        return b"x" * sources.CHUNK


def test_an_interrupted_pipe_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", Pipe(Interrupted()))
    with pytest.raises(KeyboardInterrupt):
        read_table("-")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_a_pipe_that_has_gone_quiet_is_interrupted_at_once(tmp_path):
    script = (
        "import os, signal, threading; from demur.importers.reading import read_table;"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start();"
        "read_table('-')"
    )
    quiet, held_open = os.pipe()
    try:
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        found = subprocess.run(
            [sys.executable, "-c", script], stdin=quiet, env=environment, capture_output=True, timeout=20, check=False
        )
    finally:
        os.close(quiet)
        os.close(held_open)
    assert b"KeyboardInterrupt" in found.stderr
    assert os.listdir(tmp_path) == []


def test_a_pipe_that_was_read_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", Pipe(JSONL))
    read_table("-")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("run.jsonl.gz", "run"),
        ("run.v2.csv", "run.v2"),
        ("run", "run"),
        ("a.b.jsonl.zst", "a.b"),
        (".hidden", ".hidden"),
    ],
)
def test_the_stem_is_the_name_without_its_endings(tmp_path, name, stem):
    assert stem_of(tmp_path / name) == stem


def random_bytes():
    return bytes((37 * n * n + 11 * n) % 256 for n in range(5000))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        (b"PK\x03\x04\0\0", "a ZIP archive or an Excel workbook"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"SQLite format 3\0\x10", "an SQLite database"),
        (pickle.dumps([{"a": 1}]), "a Python pickle"),
        (gzip.compress(b"\x89PNG\r\n\x1a\n\0\0", mtime=0), "a PNG image"),
    ],
)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.xlsx"])
def test_a_binary_file_of_a_known_kind_is_named(tmp_path, name, content, kind):
    with pytest.raises(DataError, match=rf"{name} is a binary file \(looks like {kind}; known endings: .jsonl"):
        read_table(write(tmp_path, name, content))


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.bin"])
def test_bytes_that_are_no_text_are_a_binary_file(tmp_path, name):
    with pytest.raises(DataError, match=rf"{name} is a binary file \(.* of its first 4,096 bytes are control char"):
        read_table(write(tmp_path, name, random_bytes()))


def test_a_control_character_or_two_is_still_text(tmp_path):
    assert read_table(write(tmp_path, "x.csv", b"a,b\n\x01,\x02\n")).row(0) == ("\x01", "\x02")


def test_a_damaged_parquet_file_is_not_called_binary(tmp_path):
    with pytest.raises(DataError, match="is cut off, damaged or not Parquet"):
        read_table(write(tmp_path, "x.parquet", random_bytes()))


def test_a_damaged_line_is_not_taken_for_another_encoding(tmp_path):
    content = JSONL * 100 + b'{"id": "\xff\0\0"}\n'
    with pytest.raises(DataError, match=r"d.jsonl:201: byte 8 of the line \(0xff\) is not UTF-8 \(.*damaged or binary"):
        read_table(write(tmp_path, "d.jsonl", content))


@pytest.mark.parametrize("name", ["u.jsonl", "u.csv"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_recognised_without_its_mark(tmp_path, name, encoding):
    with pytest.raises(DataError, match=r"looks like UTF-16 without its mark.*iconv -f UTF-16"):
        read_table(write(tmp_path, name, JSONL.decode().encode(encoding)))


@contextmanager
def piped(*contents):
    """Gives paths of pipes that can each be read once, as a shell gives them for `<(command)`."""
    ends = []
    for content in contents:
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        ends.append(reading)
    try:
        yield [f"/dev/fd/{end}" for end in ends]
    finally:
        for end in ends:
            os.close(end)


needs_descriptors = pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files have no paths here")


@needs_descriptors
@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet", "t.arrow", "stream.arrow", "t.jsonl.gz", "t.tsv"])
def test_a_pipe_given_by_path_is_read_once(name):
    with piped(CONTENT[name]) as paths:
        assert read_table(*paths).equals(FRAME)


@needs_descriptors
def test_pipes_without_a_name_are_told_apart():
    with piped(JSONL, JSONL) as paths, opened(*paths) as files:
        assert [(file.name, file.stem) for file in files] == [("<pipe>", "pipe"), ("<pipe-2>", "pipe-2")]


@needs_descriptors
def test_a_fault_in_a_pipe_names_its_line():
    with piped(JSONL + b"{oops\n") as paths, pytest.raises(DataError, match=r"^<pipe>:3: the line"):
        read_table(*paths)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_read_once_and_keeps_its_name(tmp_path):
    path = tmp_path / "run.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(csv_bytes(),))
    writer.start()
    with opened(path) as files:
        assert (files[0].name, files[0].stem, files[0].format) == (str(path), "run", "csv")
        assert read_source(files[0], Request()).frame.drop("demur:row").equals(FRAME)
    writer.join()


@pytest.mark.parametrize(("missing", "near"), [("run.json", True), ("Rnu.csv", True), ("other.jsonl", False)])
def test_only_files_of_a_like_name_are_offered_for_a_missing_one(tmp_path, missing, near):
    write(tmp_path, "run.jsonl", JSONL)
    expected = r'does not exist \(did you mean "run.jsonl"\?\)$' if near else r"does not exist$"
    with pytest.raises(DataError, match=expected):
        read_table(tmp_path / missing)


def test_a_carriage_return_inside_the_header_of_a_csv_is_told(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"a\rb,c\n1,2\n")
    with pytest.raises(DataError, match=r"log\.csv:1: the header cannot be read: a carriage return stands inside it"):
        read_table(path)


@pytest.mark.parametrize("form", ["%s\n", "[%s]"])
def test_half_of_a_surrogate_pair_is_told_with_its_place(tmp_path, form):
    path = tmp_path / "log.json"
    path.write_text(form % '{"id": "a\\udfff"}')
    with pytest.raises(DataError, match=r"log\.json:.*1: the line has half of a surrogate pair.*got \"\\udfff\""):
        read_table(path)


def test_an_array_that_is_nested_too_deeply_is_told(tmp_path):
    path = tmp_path / "log.json"
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"log\.json: the array is nested too deeply"):
        read_table(path)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
@example(["a\\b"])
@example(["a\tb", "\\"])
@example(['"'])
@pytest.mark.parametrize("form", ["%s\n", "[%s]"])
def test_lists_in_json_are_read_with_all_their_letters(tmp_path_factory, form, texts):
    path = tmp_path_factory.mktemp("lists") / "log.json"
    path.write_text(form % json.dumps({"id": 1, "labels": texts}), encoding="utf-8")
    assert json.loads(read_table(path)["labels"].item()) == texts


@pytest.mark.parametrize(
    "spelling",
    [
        '"confidence": 0.9',
        '"weight": NaN, "confidence": 0.9',
        '"confidence":null',
        '"nested": {"a": 1, "a": 2}, "confidence": 1',
    ],
)
@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".json"])
def test_a_key_that_comes_twice_is_refused_with_its_line(tmp_path, spelling, ending):
    rows = [
        '{"id": 1, "confidence": 0.5}',
        '{"id": 2, "prediction": "confidence", "confidence": 0.5, ' + spelling + "}",
    ]
    path = tmp_path / f"log{ending}"
    text = f"[{','.join(rows)}]" if ending == ".json" else "\n".join(rows) + "\n"
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if ending == ".jsonl.gz" else text.encode())
    where = "element 2" if ending == ".json" else "2"
    with pytest.raises(DataError, match=rf'log{ending}: ?{where}: has the key "(confidence|a)" 2 times'):
        read_table(path)


ODD = st.none() | st.sampled_from(["id", '"a":', '{"a": 1}'])


@given(st.lists(st.fixed_dictionaries({"id": ODD}, optional={"a": ODD, "b": ODD}), min_size=1))
def test_keys_that_come_once_a_row_are_read_whatever_the_values_say(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("keys") / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = read_table(path)
    assert read.height == len(rows)
    assert all(read[name].to_list() == [row.get(name) for row in rows] for name in read.columns)
