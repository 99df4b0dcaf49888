import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.io.growing import Pipe, Tail, batches, growing_log
from demur.errors import DataError

ROW = b'{"target": "a", "prediction": "a", "confidence": 0.5}\n'


class Time:
    """A clock that moves only when somebody waits, and lets things happen meanwhile."""

    def __init__(self, *events):
        self.now = 0.0
        self.events = list(events)

    def __call__(self):
        return self.now

    def wait(self, seconds, descriptor):
        self.now += seconds
        if self.events:
            self.events.pop(0)()


def taken(log, time=None, *, every=1.0, until_idle=None, stopped=lambda: False):
    time = time or Time()
    steps = batches(log, every=every, until_idle=until_idle, clock=time, wait=time.wait, stopped=stopped)
    return list(steps)


def texts(steps):
    return [step.text for step in steps if step is not None]


def append(path, text):
    def write():
        with path.open("ab") as file:
            file.write(text)

    return write


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def test_what_is_added_comes_once_and_in_order(path):
    path.write_bytes(b'{"a": 1}\n')
    time = Time(append(path, b'{"a": 2}\n'), append(path, b'{"a": 3}\n{"a": 4}\n'))
    steps = taken(Tail(path), time, until_idle=3)
    assert texts(steps) == [b'{"a": 1}\n', b'{"a": 2}\n', b'{"a": 3}\n{"a": 4}\n']
    assert [step.before for step in steps if step] == [0, 1, 2]


def test_it_is_time_to_show_after_each_batch_that_was_due(path):
    path.write_bytes(b'{"a": 1}\n')
    steps = taken(Tail(path), Time(append(path, b'{"a": 2}\n')), until_idle=3)
    assert [step and step.text for step in steps] == [b'{"a": 1}\n', None, b'{"a": 2}\n', None]


def test_a_line_without_its_end_waits_for_it(path):
    path.write_bytes(b'{"a": 1}\n{"a"')
    steps = taken(Tail(path), Time(append(path, b": 2}\n")), until_idle=3)
    assert texts(steps) == [b'{"a": 1}\n', b'{"a": 2}\n']


def test_a_line_without_its_end_counts_when_the_log_rests(path):
    path.write_bytes(b'{"a": 1}\n{"a": 2}')
    assert texts(taken(Tail(path), until_idle=0)) == [b'{"a": 1}\n', b'{"a": 2}']


def test_a_line_without_its_end_is_left_and_told_when_the_user_stops(path):
    path.write_bytes(b'{"a": 1}\n{"a": 2')
    log, time = Tail(path), Time()
    assert texts(taken(log, time, stopped=lambda: time.now > 5)) == [b'{"a": 1}\n']
    assert log.notes == [f"{path}:2: the last line has no end yet and was not counted"]


def test_whole_lines_that_are_held_are_counted_when_the_user_stops(path):
    path.write_bytes(ROW)
    time = Time(append(path, ROW), lambda: None)
    assert texts(taken(Tail(path), time, every=9, stopped=lambda: time.now >= 18)) == [ROW, ROW]
    stops = iter([False, True])
    assert texts(taken(Tail(path), Time(), stopped=lambda: next(stops))) == [ROW * 2]


def test_a_file_that_is_not_there_yet_is_waited_for(path):
    log = Tail(path)
    assert not log.more()
    assert log.missing
    assert texts(taken(log, Time(lambda: None, append(path, ROW)), until_idle=5)) == [ROW]
    assert not log.missing


def test_a_file_that_never_comes_is_refused_with_near_misses(path):
    path.write_bytes(ROW)
    log = Tail(path.with_name("rum.jsonl"))
    assert taken(log, until_idle=2) == []
    with pytest.raises(DataError, match=r'does not exist \(did you mean "run.jsonl"\?\)'):
        log.refuse_missing()


def test_a_file_that_is_cut_off_is_read_again_from_its_start(path):
    path.write_bytes(ROW * 3)
    log = Tail(path)
    steps = taken(log, Time(lambda: path.write_bytes(ROW)), until_idle=3)
    assert texts(steps) == [ROW * 3, ROW]
    assert [step.before for step in steps if step] == [0, 0]
    assert log.notes == [f"{path} was cut off and begun again: the counts go on with the new rows"]


def test_a_file_that_was_cut_off_and_has_outgrown_what_was_read_is_noticed_by_how_it_begins(path):
    path.write_bytes(b'{"a": 1}\n')
    steps = taken(Tail(path), Time(lambda: path.write_bytes(b'{"a": 2}\n{"a": 3}\n')), until_idle=3)
    assert texts(steps) == [b'{"a": 1}\n', b'{"a": 2}\n{"a": 3}\n']


def test_a_rotated_log_is_read_to_its_end_before_the_new_file(path):
    path.write_bytes(b'{"a": 1}\n')
    old = path.with_suffix(".1")

    def rotate():
        append(path, b'{"a": 2}\n')()
        path.rename(old)
        path.write_bytes(b'{"a": 3}\n')

    log = Tail(path)
    steps = taken(log, Time(rotate), until_idle=3)
    assert texts(steps) == [b'{"a": 1}\n', b'{"a": 2}\n', b'{"a": 3}\n']
    assert log.notes == [f"{path} was replaced: the counts go on with the new rows"]


def test_a_line_that_a_rotation_cut_is_told(path):
    path.write_bytes(b'{"a": 1}\n{"a')

    def rotate():
        path.rename(path.with_suffix(".1"))
        path.write_bytes(b'{"a": 3}\n')

    log = Tail(path)
    assert texts(taken(log, Time(rotate), until_idle=3)) == [b'{"a": 1}\n', b'{"a": 3}\n']
    assert log.notes[0].endswith("; its line 2 had no end and was not counted")


def test_a_log_that_is_away_for_a_while_is_waited_for(path):
    path.write_bytes(b'{"a": 1}\n')
    time = Time(lambda: path.rename(path.with_suffix(".1")), lambda: None, append(path, b'{"a": 2}\n'))
    assert texts(taken(Tail(path), time, until_idle=5)) == [b'{"a": 1}\n', b'{"a": 2}\n']


def test_a_long_log_comes_in_batches_of_bounded_size(path):
    path.write_bytes(ROW * 1000)
    steps = texts(taken(Tail(path, most=4096), until_idle=0))
    assert b"".join(steps) == ROW * 1000
    assert max(map(len, steps)) < 2 * 4096


def test_updates_go_on_while_a_long_log_is_caught_up_with(path):
    path.write_bytes(ROW * 1000)
    time = Time()
    steps = []
    for step in batches(Tail(path, most=4096), every=2, until_idle=0, clock=time, wait=time.wait):
        steps.append(step)
        time.now += 1.0
    assert steps.count(None) >= 4


def test_the_header_of_a_csv_comes_with_every_batch_and_lines_are_those_of_the_file(tmp_path):
    path = tmp_path / "run.csv"
    path.write_bytes(b"id,target\n1,a\n")
    steps = [step for step in taken(Tail(path), Time(append(path, b"2,b\n")), until_idle=3) if step]
    assert [(step.header, step.text, step.before) for step in steps] == [
        (b"id,target\n", b"1,a\n", 1),
        (b"id,target\n", b"2,b\n", 2),
    ]


def test_a_row_of_csv_with_a_line_end_in_quotes_is_not_cut(tmp_path):
    path = tmp_path / "run.csv"
    path.write_bytes(b'"id\nno",text\n1,"a\n')
    steps = [step for step in taken(Tail(path), Time(append(path, b'b"\n2,5" pipe\n')), until_idle=3) if step]
    assert [(step.header, step.text, step.before) for step in steps] == [
        (b'"id\nno",text\n', b'1,"a\nb"\n2,5" pipe\n', 2)
    ]


@given(st.lists(st.sampled_from(["a", 'say ""x""', "two\nlines", "1,5", ""]), min_size=1, max_size=30), st.data())
def test_rows_of_csv_stay_whole_wherever_the_writer_pauses(tmp_path_factory, cells, data):
    path = tmp_path_factory.mktemp("csv") / "run.csv"
    rows = [f'{place},"{cell}"\n'.encode() for place, cell in enumerate(cells)]
    whole = b"id,text\n" + b"".join(rows)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    pieces = [whole[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    path.write_bytes(pieces[0])
    found = texts(taken(Tail(path), Time(*(append(path, piece) for piece in pieces[1:])), until_idle=9))
    assert b"".join(found) == b"".join(rows)
    ends = {len(b"".join(rows[:place])) for place in range(len(rows) + 1)}
    assert {len(b"".join(found[:place])) for place in range(len(found) + 1)} <= ends


@pytest.mark.parametrize(
    ("second", "header"),
    [
        (b"id,target\n2,b\n", b"id,target\n"),
        (b"target,id\n2,b\n", b"target,id\n"),
        (b"2,b\n", b"id,target\n"),
    ],
)
def test_a_rotated_csv_may_repeat_change_or_leave_out_its_header(tmp_path, second, header):
    path = tmp_path / "run.csv"
    path.write_bytes(b"id,target\n1,a\n")

    def rotate():
        path.rename(tmp_path / "run.1.csv")
        path.write_bytes(second)

    steps = [step for step in taken(Tail(path), Time(rotate), until_idle=3) if step]
    assert (steps[-1].header, steps[-1].text) == (header, b"2,b\n")


def test_a_pipe_ends_with_its_writer():
    read, write = os.pipe()
    os.write(write, ROW + b'{"a": 1}')
    log = Pipe(read, "<stdin>", "stdin")
    assert log.more()
    assert log.descriptor == read
    assert log.batch().text == ROW
    os.close(write)
    assert texts(taken(log)) == [b'{"a": 1}']
    assert log.ended
    os.close(read)


def test_a_pipe_with_a_name_is_followed_as_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    keep = os.open(tmp_path / "fifo", os.O_RDWR)
    assert isinstance(growing_log(tmp_path / "fifo"), Pipe)
    os.close(keep)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("run.jsonl.gz", b"", "is compressed, which cannot be followed .unpack it on the way: zcat"),
        ("run.jsonl", b"\x1f\x8b\x08\x00" + b"x" * 5000, "is compressed, which cannot be followed"),
        ("run.parquet", b"", "is no text, which cannot be followed"),
        ("run", b"PAR1" + b"\n", "is a file of Parquet, which cannot be followed"),
        ("run.json", b'[{"a": 1},\n', "holds one JSON array, which cannot be followed"),
        ("run.log", b"what is this\n", "is in no format known here"),
        ("run.log", b"\x89PNG" + b"\n", "is a binary file"),
    ],
)
def test_what_cannot_be_followed_is_refused(tmp_path, name, text, said):
    (tmp_path / name).write_bytes(text)
    with pytest.raises(DataError, match=said):
        taken(Tail(tmp_path / name), until_idle=0)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder, not a file"):
        Tail(tmp_path).more()


def test_a_line_without_any_end_is_refused_before_it_fills_the_memory(path, monkeypatch):
    monkeypatch.setattr("demur.core.io.growing.LONGEST", 10_000)
    path.write_bytes(b"{" + b" " * 20_000)
    with pytest.raises(DataError, match=r"run.jsonl:1: the line is longer than 64 MB"):
        taken(Tail(path, most=4096), until_idle=0)


def test_the_rows_before_a_fault_are_found(path):
    path.write_bytes(b"".join(json.dumps({"a": k}).encode() + b"\n" for k in range(5)))
    log = Tail(path)
    log.more()
    batch = log.batch()
    log.close()
    assert batch.sound_part(DataError("bad", where=f"{path}:3: a")).text == b'{"a": 0}\n{"a": 1}\n'
    assert batch.sound_part(DataError("bad", where=f"{path}:1:")) is None
    assert batch.sound_part(DataError("bad", where=f"{path}:")) is None
    assert batch.lines == f"{path}: lines 1 to 5:"
