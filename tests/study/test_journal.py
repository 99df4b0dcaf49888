import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from demur.errors import DataError, UsageError
from demur.study.journal import FILE, StudyJournal, erase_events, read_events, read_rows
from demur.study.state import StudyEvent

WRITER = """
import sys
from pathlib import Path
from demur.study.journal import StudyJournal
from demur.study.state import StudyEvent

journal = StudyJournal(Path(sys.argv[1]))
for number in range(10**6):
    def done(fault, number=number):
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
    journal.append([StudyEvent(at=1.0, kind="said", body={"n": number})], 0, done, f"c{number}")
"""


def appended(journal: StudyJournal, *events: StudyEvent, client: str | None = None) -> Exception | None:
    """Append and wait; what went wrong."""
    ready, faults = threading.Event(), []

    def done(fault: Exception | None) -> None:
        faults.append(fault)
        ready.set()

    journal.append(events, journal.epoch, done, client)
    assert ready.wait(20)
    return faults[0]


def event(number: int, **more: str) -> StudyEvent:
    return StudyEvent(at=float(number), kind="said", body={"n": number}, **more)


def test_events_come_back_in_order_with_what_they_hold(tmp_path: Path) -> None:
    assert read_events(tmp_path) == []
    journal = StudyJournal(tmp_path)
    for number in range(5):
        assert appended(journal, event(number), event(number + 10), client=f"c{number}") is None
    assert [one.body["n"] for one in read_events(tmp_path)] == [0, 10, 1, 11, 2, 12, 3, 13, 4, 14]
    journal.close()
    assert [client for _, client in read_rows(tmp_path)][:3] == ["c0", None, "c1"]
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0, "nobody else reads what people typed"


def test_an_id_is_taken_once_and_events_are_never_changed(tmp_path: Path) -> None:
    journal = StudyJournal(tmp_path)
    assert appended(journal, event(1), client="once") is None
    assert "UNIQUE" in str(appended(journal, event(2), client="once"))
    journal.close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        for change in ("DELETE FROM events", "UPDATE events SET body = '{}'"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(change)
    assert len(read_events(tmp_path)) == 1


def test_only_one_process_writes(tmp_path: Path) -> None:
    journal = StudyJournal(tmp_path)
    with pytest.raises(UsageError, match="being served by another process"):
        StudyJournal(tmp_path)
    journal.close()
    StudyJournal(tmp_path).close()


def test_a_full_disk_loses_nothing_that_was_acknowledged_and_stops_what_was_decided_on_it(tmp_path: Path) -> None:
    journal = StudyJournal(tmp_path, most_pages=12)
    known = 0
    big = StudyEvent(at=0.0, kind="said", body={"text": "x" * 3000})
    while (fault := appended(journal, big)) is None:
        known += 1
    assert "full" in str(fault)
    assert known > 2
    ready = threading.Event()
    faults: list[Exception | None] = []
    journal.append([event(1)], 0, lambda fault: (faults.append(fault), ready.set()))  # type: ignore[func-returns-value]
    assert ready.wait(20)
    assert "an earlier event" in str(faults[0]), "it was decided on a state that the disk does not have"
    journal.allow_pages(1000)
    assert appended(journal, event(2)) is None
    assert len(read_events(tmp_path)) == known + 1
    journal.close()


def test_a_killed_writer_loses_no_acknowledged_event_and_doubles_none(tmp_path: Path) -> None:
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(400)]
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
        process.wait()
        process.stdout.close()
        acknowledged = [int(line) for line in lines if line.endswith("\n")]
        kept = [one.body["n"] for one in read_events(tmp_path)]
        assert kept[: len(acknowledged)] == acknowledged
        assert len(set(kept)) == len(kept)
        for name in tmp_path.iterdir():
            name.unlink()


def test_one_person_is_erased_and_the_rest_stays(tmp_path: Path) -> None:
    journal = StudyJournal(tmp_path)
    appended(journal, event(1, person="p0001"), event(2, dialogue="d00001"), event(3, person="p0002"))
    journal.close()
    gone = StudyEvent(at=9.0, kind="erased", person="p0001", body={"dialogues": ["d00001"]})
    assert erase_events(tmp_path, "p0001", gone) == 2
    assert [one.kind for one in read_events(tmp_path)] == ["said", "erased"]
    with sqlite3.connect(tmp_path / FILE) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("DELETE FROM events")


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database at all" * 100)
    with pytest.raises(DataError, match="cannot be read"):
        read_events(tmp_path)
    with pytest.raises(DataError, match="cannot be used"):
        StudyJournal(tmp_path)
