import os
import sys
import threading
from contextlib import suppress

import pytest

from demur.core.io.sources import quiet_panics, without_panics_in

PANIC = b"\nthread 'async-executor-0' (7) panicked at crates/a.rs:418:9:\nassertion failed\n  left: 0\n right: 300\n"
TRACE = PANIC + b"stack backtrace:\n   0: rust_begin_unwind\n             at f.rs:1\nnote: Some details are omitted.\n"


@pytest.mark.parametrize("panic", [PANIC, TRACE, PANIC + b"note: run with `RUST_BACKTRACE=1`\n", TRACE + PANIC])
@pytest.mark.parametrize(("before", "after"), [(b"", b""), (b"one\n", b"two\n"), (b"one\n\n", b"note this\n")])
def test_of_what_was_printed_only_panics_are_left_out(panic, before, after):
    assert without_panics_in(before + panic + after) == before + after


def test_a_panic_prints_nothing_and_everything_else_is_printed(capfd):
    with suppress(ValueError), quiet_panics():
        os.write(2, b"other\n" + PANIC)
        raise ValueError
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "other\nlater\n"


def test_what_python_prints_is_printed_at_once(capfd, monkeypatch):
    monkeypatch.setattr(sys, "stderr", os.fdopen(2, "w", closefd=False))
    with quiet_panics():
        print("progress", file=sys.stderr)
        assert capfd.readouterr().err == "progress\n"
    print("after", file=sys.stderr, flush=True)
    assert capfd.readouterr().err == "after\n"


def test_standard_error_comes_back_when_the_last_thread_is_done(capfd):
    inside, leave = threading.Event(), threading.Event()

    def read() -> None:
        with quiet_panics():
            inside.set()
            leave.wait()
            os.write(2, PANIC)

    thread = threading.Thread(target=read)
    with quiet_panics():
        thread.start()
        inside.wait()
    os.write(2, b"kept\n")
    leave.set()
    thread.join()
    os.write(2, PANIC)
    assert capfd.readouterr().err == "kept\n" + PANIC.decode()


def test_with_debugging_panics_are_printed(capfd, monkeypatch):
    monkeypatch.setenv("DEMUR_DEBUG", "1")
    with quiet_panics():
        os.write(2, PANIC)
    assert capfd.readouterr().err == PANIC.decode()


def test_without_a_folder_for_temporary_files_everything_is_printed(capfd, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
        with quiet_panics():
            os.write(2, PANIC)
    assert capfd.readouterr().err == PANIC.decode()
