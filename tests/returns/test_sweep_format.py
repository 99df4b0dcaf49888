"""No damaged file gives a number: each fault is told with the file's name."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.io.untrusted import MOST_JSON, MOST_MEMBERS
from demur.errors import DataError, DemurError
from demur.returns.sweep_files import SweepFile, merged, parsed_sweep, read_sweep
from demur.returns.tally import ConfidenceGrid
from mutated import changed_zip, unzipped, zipped
from returns.test_sweep_files import RULES, SMALL, tally_of

PLAIN = SweepFile(
    (
        tally_of(SMALL),
        tally_of(SMALL, part="domain=a"),
    ),
    RULES,
).to_bytes()
WITH_UNITS = SweepFile((tally_of(SMALL, units=True),), RULES).to_bytes()
JOINED = SweepFile((tally_of(SMALL).joined(ConfidenceGrid.over(1.0, 1)),), RULES).to_bytes()


def with_header(content, **changes):
    """The file with other values in its header; those of a tally go to the first one."""
    parts = unzipped(content)
    header = json.loads(parts["sweep.json"])
    for name, value in changes.items():
        (header if name in header else header["tallies"][0])[name] = value
    return zipped({**parts, "sweep.json": json.dumps(header)})


def with_column(content, member="levels.parquet", **columns):
    """The file with other values in the columns of a table, or without a column that is None."""
    parts = unzipped(content)
    table = pl.read_parquet(io.BytesIO(parts[member]))
    for name, values in columns.items():
        table = table.drop(name) if values is None else table.with_columns(pl.Series(name, values, strict=False))
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return zipped({**parts, member: buffer.getvalue()})


def refused(content, said):
    with pytest.raises(DataError, match=said) as fault:
        parsed_sweep(content, name="part.sweep")
    assert str(fault.value).startswith("part.sweep")


def test_the_sound_files_are_read():
    for content in (PLAIN, WITH_UNITS, JOINED):
        assert parsed_sweep(content, name="part.sweep").tallies[0].n == 6


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b'{"id": 1}\n', r"is no sweep file \(`demur score LOG -o PART\.sweep` writes one\)"),
        (PLAIN[: len(PLAIN) // 2], "cannot be unpacked: .*cut off or changed after it was written; write it again"),
        (zipped({"word/document.xml": b"<x/>"}), r"is an archive without sweep\.json, so it is no sweep file"),
        (zipped({"sweep.json": b"{"}), r"sweep\.json does not have the form of a sweep's header: .*truncated"),
        (zipped({"sweep.json": b"\xff{}"}), r"sweep\.json does not have the form of a sweep's header"),
        (zipped({"sweep.json": b'{"format": "zebra"}'}), r"sweep's header: Invalid enum value 'zebra'"),
    ],
    ids=["empty", "log", "cut off", "another archive", "cut header", "no text", "another format"],
)
def test_what_is_no_sweep_file_is_refused(content, said):
    refused(content, said)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.sweep cannot be read: No such file"):
        read_sweep(tmp_path / "nowhere.sweep")


def test_a_changed_byte_in_a_table_is_noticed():
    place = PLAIN.index(b"PAR1") + 40
    refused(PLAIN[:place] + bytes([PLAIN[place] ^ 255]) + PLAIN[place + 1 :], "cannot be unpacked: Bad CRC-32")


def test_a_newer_version_says_what_to_do():
    newer = zipped({"sweep.json": b'{"format": "demur sweep", "version": 3, "demur": "9.1"}'})
    refused(
        newer, r"has version 3 of the format, written by demur 9\.1 \(update demur; this one, .*, reads version 2\)"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n": 7}, "right, wrong and unanswered rows must be 7 together"),
        ({"squares": 7}, "right, wrong and unanswered rows must be 6 together"),
        ({"n": 0}, r"Expected `int` >= 1 - at `\$\.tallies\[0\]\.n`"),
        ({"n": "six"}, r"Expected `int`, got `str` - at `\$\.tallies\[0\]\.n`"),
        ({"right": 4}, r'"guide": right must add up to 4, as sweep\.json says; got 3'),
        ({"wrong": 1}, r"wrong must add up to 1, as sweep\.json says; got 2"),
        ({"failed": 2}, "failed, unanswered and out_of_scope cannot be more than there are rows"),
        ({"failed": -1}, "Expected `int` >= 0"),
        ({"unanswered": 0}, "right, wrong and unanswered rows must be 6 together"),
        ({"withheld_weight": 2}, "right, wrong and unanswered rows must be 6 together"),
        ({"out_of_scope": 7}, "cannot be more than there are rows"),
        ({"cutoffs": 4}, r"levels\.parquet must hold the rows that sweep\.json says"),
        ({"cutoffs": 2**53}, r"levels\.parquet has 9,007,199,254,740,99\d rows, and at most 33,554,432 can be read"),
        ({"units": 2}, r"units\.parquet is missing"),
        ({"slice": "domain=a"}, "must have each system and slice once"),
        ({"tallies": []}, "must have each system and slice once, and at least one"),
        ({"terms": {"brier": [1, 2]}}, 'the totals of "brier" are not those of 6 rows'),
        ({"terms": {"brier": ["many"]}}, r"at `\$\.tallies\[0\]\.terms"),
    ],
    ids=lambda value: None if isinstance(value, str) else json.dumps(value),
)
def test_a_header_that_disagrees_with_the_counts_is_refused(changes, said):
    refused(with_header(PLAIN, **changes), said)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"right": [1, 1, 2] * 2}, r"right must add up to 3, as sweep\.json says; got 4"),
        ({"right": [-1, 2, 2] * 2}, "counts of right must be numbers of at least 0"),
        ({"wrong": [1, None, 1] * 2}, "counts of wrong must be numbers of at least 0"),
        ({"wrong": [1.0, np.inf, 1.0] * 2}, "counts of wrong must be numbers of at least 0"),
        ({"threshold": [0.2, 0.9, 0.5] * 2}, "thresholds must rise"),
        ({"threshold": [0.2, 0.2, 0.5] * 2}, "thresholds must rise"),
        ({"threshold": [0.2, np.nan, 0.5] * 2}, "a threshold is not a number"),
        ({"threshold": [0.2, None, 0.5] * 2}, "a threshold is not a number"),
        ({"upper": [0.3, 0.1, 0.9] * 2}, "no upper end may lie below its threshold"),
        ({"upper": [0.5, 0.5, 0.9] * 2}, "thresholds must rise"),
        ({"upper": [0.3, 0.5, 0.9] * 2}, 'joins close confidences and has no totals of "brier"'),
        ({"tally": [0, 0, 1, 1, 1, 1]}, r"levels\.parquet must hold the rows that sweep\.json says"),
        ({"wrong": ["one", "one", "none"] * 2}, r'levels\.parquet must have a column "wrong" of numbers'),
        ({"upper": None}, r'levels\.parquet must have a column "upper" of numbers'),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(f"{k} {v}" for k, v in value.items()),
)
def test_tables_changed_by_hand_are_refused(columns, said):
    refused(with_column(PLAIN, **columns), said)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"bucket": [0, 1, 2, 3, 4, 1024]}, "a bucket must be a number from 0 to 1023"),
        ({"bucket": [-1, 1, 2, 3, 4, 5]}, "a bucket must be a number from 0 to 1023"),
        ({"least": [0, 1, 2, 3, 4, 2**32]}, "the least number of a bucket must be one from 0 to 4294967295"),
        ({"least": [-1, 1, 2, 3, 4, 5]}, "the least number of a bucket must be one from 0 to 4294967295"),
        ({"least": [0, 1, 2, None, 4, 5]}, "the least number of a bucket must be one from 0 to 4294967295"),
        ({"least": [0.0, 1.0, 2.0, np.nan, 4.0, 5.0]}, "the least number of a bucket must be one from 0 to 4294967295"),
        ({"least": None}, r'units\.parquet must have a column "least" of numbers'),
        ({"right": [9, 0, 0, 0, 0, 0]}, r"right in units must add up to 3, as sweep\.json says; got 9"),
        ({"withheld": [-1, 1, 1, 0, 0, 0]}, "counts of withheld in units must be numbers of at least 0"),
        ({"confidence": [np.nan] * 6}, "a confidence of the units is not a number"),
        ({"confidence": None}, r'units\.parquet must have a column "confidence" of numbers'),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(f"{k} {v}" for k, v in value.items()),
)
def test_units_changed_by_hand_are_refused(columns, said):
    refused(with_column(WITH_UNITS, "units.parquet", **columns), said)


def test_rows_that_nothing_names_are_in_no_bucket_and_have_no_least_number():
    columns = {"bucket": [None, 1, 2, 3, 4, 4], "least": [None, 1, 2, 3, 4, 4]}
    read = parsed_sweep(with_column(WITH_UNITS, "units.parquet", **columns), name="part.sweep")
    assert read.tallies[0].units["least"].to_list() == columns["least"]


def test_small_types_of_numbers_are_read_as_others_are():
    wide = parsed_sweep(WITH_UNITS, name="part.sweep").tallies[0].units
    narrow = with_column(WITH_UNITS, "units.parquet", bucket=pl.Series([0, 1, 2, 3, 4, 5], dtype=pl.Int8))
    assert parsed_sweep(narrow, name="part.sweep").tallies[0].units.schema == wide.schema


def test_more_weight_than_the_rows_can_have_is_refused():
    refused(with_header(WITH_UNITS, n=5), "the weights and their squares cannot be those of 5 rows")


@pytest.mark.parametrize("member", ["levels.parquet", "units.parquet"])
def test_a_table_that_is_missing_or_no_table_is_refused(member):
    parts = unzipped(WITH_UNITS)
    refused(
        zipped({name: part for name, part in parts.items() if name != member}), rf"part\.sweep: {member} is missing"
    )
    refused(zipped({**parts, member: b"PAR1 and more"}), rf"part\.sweep: {member} cannot be read")


def test_a_measure_that_is_not_known_here_is_left_out():
    terms = {"later": [1, 6]}
    assert parsed_sweep(with_header(PLAIN, terms=terms), name="part.sweep").tallies[0].terms == {}


def test_weights_whose_sum_moves_in_its_last_digit_are_accepted():
    rows = [row._replace(weight=0.1) for row in SMALL]
    content = SweepFile((tally_of(rows, units=True),), RULES).to_bytes()
    right = json.loads(unzipped(content)["sweep.json"])["tallies"][0]["right"]
    moved = with_header(content, right=float(np.nextafter(right, 1)))
    assert parsed_sweep(moved, name="part.sweep").tallies[0].sweep.total == pytest.approx(0.6)


@given(st.integers(0, len(WITH_UNITS) - 1), st.integers(1, 255))
def test_a_file_with_any_byte_changed_gives_the_same_counts_or_a_fault(place, change):
    content = bytearray(WITH_UNITS)
    content[place] ^= change
    try:
        read = parsed_sweep(bytes(content), name="part.sweep")
    except DataError:
        return
    assert read.tallies[0].sweep == tally_of(SMALL).sweep


@given(st.integers(0, len(WITH_UNITS) - 1))
def test_a_file_cut_off_anywhere_is_refused(length):
    with pytest.raises(DataError, match=r"part\.sweep (is empty|is no sweep file|cannot be unpacked)"):
        parsed_sweep(WITH_UNITS[:length], name="part.sweep")


@given(st.sampled_from([PLAIN, WITH_UNITS, JOINED]).flatmap(lambda content: changed_zip(content, "sweep.json")))
def test_a_file_with_any_part_changed_adds_up_or_is_refused(content):
    try:
        read = parsed_sweep(content, name="part.sweep")
        whole = merged([read, read], allow_repeats=True)
        again = parsed_sweep(whole.to_bytes(), name="part.sweep")
    except DemurError:
        return
    assert again.tallies[0].n == 2 * read.tallies[0].n


def constant(rows):
    """A table of levels that says the same in every row, which takes next to no room."""
    zeros = pl.repeat(0, rows, dtype=pl.Int32, eager=True)
    buffer = io.BytesIO()
    pl.DataFrame(dict.fromkeys(("tally", "threshold", "upper", "right", "wrong"), zeros)).write_parquet(buffer)
    return buffer.getvalue()


def lying(content, size):
    """The archive with the size of its first member told otherwise wherever it is told."""
    told = zipfile.ZipFile(io.BytesIO(content)).infolist()[0].file_size.to_bytes(4, "little")
    return content.replace(told, size.to_bytes(4, "little"))


def huge_header():
    return zipped({"sweep.json": bytes(MOST_JSON + 1)})


HUGE = {
    "header": huge_header,
    "header that lies": lambda: lying(huge_header(), 100),
    "table": lambda: zipped({**unzipped(PLAIN), "levels.parquet": bytes(20_000_000)}),
    "rows": lambda: zipped({**unzipped(PLAIN), "levels.parquet": constant(10_000_000)}),
    "members": lambda: zipped({f"{number}": b"" for number in range(MOST_MEMBERS + 1)}),
}


@pytest.mark.parametrize("make", HUGE.values(), ids=HUGE)
def test_a_file_that_would_fill_memory_is_not_unpacked(make):
    content = make()
    tracemalloc.start()
    try:
        refused(content, "part.sweep")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_header_that_says_more_rows_than_can_be_read_is_refused():
    refused(with_header(PLAIN, cutoffs=2**30), r"levels\.parquet has 1,073,741,82\d rows, and at most 33,554,432")
