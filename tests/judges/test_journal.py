"""The journal: what was acknowledged is there after a kill, nothing is ever changed, and one process serves it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from demur.errors import DataError, UsageError
from demur.judges.journal import FILE, Journal, KeptItem, KeptRow, RepeatedRequest

WRITER = """
import sys
from pathlib import Path
from demur.judges.journal import Journal
journal, start = Journal(Path(sys.argv[1])), int(sys.argv[2])
for item in range(start, start + 100_000):
    journal.add("judge", "anna", item, "right", request=f"r{item}")
    print(item, flush=True)
"""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A journal with one item."""
    items, rows = [KeptItem(1, "[]", '["anna"]')], [KeptRow(0, 0, 0, 1, "{}")]
    return Journal.begin(tmp_path / "j.judging", {"plan": "{}"}, items, rows)


def test_nothing_acknowledged_is_lost_or_doubled_by_a_kill(journal: Journal) -> None:
    journal.close()
    start = 0
    for _ in range(5):
        command = [sys.executable, "-c", WRITER, str(journal.folder), str(start)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _, line in zip(range(20), writer.stdout, strict=False):
                acknowledged = int(line)
            writer.kill()  # as kill -9 does
        again = Journal(journal.folder)
        kept = [event.item for event in again.events()]
        again.close()
        assert kept == list(range(len(kept)))
        assert len(kept) > acknowledged
        start = len(kept)


def test_a_journal_is_begun_whole_or_not_at_all(tmp_path: Path) -> None:
    same = [KeptItem(1, "[]", "[]"), KeptItem(1, "[]", "[]")]
    with pytest.raises(UsageError, match="cannot be written"):
        Journal.begin(tmp_path / "j", {}, same, [])
    with pytest.raises(DataError, match="was not begun whole"):
        Journal(tmp_path / "j")
    with pytest.raises(DataError, match="is no folder of judgements"):
        Journal(tmp_path / "nothing")


def test_only_its_owner_can_read_a_journal(journal: Journal) -> None:
    assert (journal.folder / FILE).stat().st_mode & 0o077 == 0


def test_events_are_only_added(journal: Journal) -> None:
    journal.add("judge", "anna", 1, "right", request="r")
    with pytest.raises(RepeatedRequest):
        journal.add("judge", "anna", 1, "right", request="r")
    with sqlite3.connect(journal.folder / FILE) as other:
        for command in ("UPDATE events SET label = 'wrong'", "DELETE FROM events"):
            with pytest.raises(sqlite3.DatabaseError, match="events are only added"):
                other.execute(command)
    other.close()
    assert [event.label for event in journal.events()] == ["right"]


def test_one_process_serves_a_folder(journal: Journal) -> None:
    """Two connections hold each other off as two processes do; the end of one lets go."""
    other = Journal(journal.folder)
    with journal.served(), pytest.raises(UsageError, match="another process serves"), other.served():
        pass
    with other.served():
        assert other.events() == []


def test_a_damaged_journal_is_said_to_be_one(journal: Journal) -> None:
    journal.close()
    for path in journal.folder.iterdir():
        path.write_bytes(b"no database at all" * 300)
    with pytest.raises(DataError, match=r"cannot be opened|cannot be read"):
        Journal(journal.folder)


def test_what_cannot_be_kept_does_not_count(journal: Journal) -> None:
    """As on a full disk: the file has as many pages as it may."""
    pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        for item in range(1000):
            journal.add("judge", "anna", item, "right", note="x" * 2000)

    with pytest.raises(UsageError, match="could not be kept, so it does not count"):
        fill()
    kept = len(journal.events())
    journal._connection.execute("PRAGMA max_page_count = 100000")
    journal.add("judge", "anna", kept, "right")
    assert len(journal.events()) == kept + 1
