"""What Windows and macOS do otherwise, simulated here."""

import ctypes
import os
import select
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from commands import run_in
from demur.apps.cli.following import Stop
from demur.apps.web.server import Address, listening_socket
from demur.core.io.sources import opened
from demur.core.io.writing import write_whole
from demur.core.shell import command_words, quoted_word
from demur.errors import DataError, UsageError
from demur.lab.dialogue.domain import TaskDomain
from demur.lab.dialogue.managers import ManagerCommand
from demur.nbest_lists.asr.scorers import command_parser

LOG = b"id,target,prediction,confidence\r\n1,yes,yes,0.9\r\n2,no,yes,0.4\r\n"


def test_a_command_runs_where_the_c_library_cannot_be_opened_by_no_name(tmp_path, monkeypatch):
    def refuse(*_):
        raise TypeError("LoadLibrary() argument 1 must be str, not None")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    (tmp_path / "log.csv").write_bytes(LOG)  # and with the line ends of Windows
    assert "of 2 inputs" in run_in(tmp_path, "score", "log.csv", "--replicates", "50").stdout


def test_following_a_pipe_waits_where_only_sockets_can_be_waited_for(monkeypatch):
    stop, asked, really = Stop(), [], select.select

    def sockets_only(awaited, *rest):
        asked.append(len(awaited))
        if any(isinstance(one, int) for one in awaited):
            raise OSError(10038, "an operation was attempted on something that is not a socket")
        return really(awaited, *rest)

    monkeypatch.setattr(select, "select", sockets_only)
    stop.wait(0, 0)
    assert asked == [2, 1]
    for end in stop.ends:
        end.close()


def test_on_windows_a_second_server_on_one_port_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with closing(listening_socket(Address(host="127.0.0.1", port=0))) as first:
        assert first.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 0
        with pytest.raises(UsageError, match="cannot listen on"):
            listening_socket(Address(host="127.0.0.1", port=first.getsockname()[1]))


def test_a_file_that_another_program_holds_open_is_named_and_nothing_is_left(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "the file is being used by another process")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UsageError, match=r"page\.html cannot be written: the file is being used"):
        write_whole(tmp_path / "page.html", "text")
    assert list(tmp_path.iterdir()) == []


def test_a_command_of_windows_keeps_its_backslashes_and_quotes_group_words(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    typed = r"""C:\tools\parse.exe --lang en "C:\my grammars\a.toml" 'b c'"""
    assert command_words(typed) == [r"C:\tools\parse.exe", "--lang", "en", r"C:\my grammars\a.toml", "b c"]
    assert [quoted_word(name) for name in ("intent", "Top intent", 'a "b"')] == ["intent", '"Top intent"', r'"a \"b\""']


def test_a_parser_and_a_manager_are_named_by_paths_of_windows(monkeypatch):
    class Ended:
        """A program of Windows that has ended: a write fails, though not as a broken pipe."""

        stdin = stdout = property(lambda self: self)

        def __init__(self, words, **_):
            started.append(words)

        def write(self, _):
            raise OSError(22, "Invalid argument")

        def poll(self):
            return 3

    started = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(subprocess, "Popen", Ended)
    assert command_parser(r"C:\tools\parse.exe -x").command == (r"C:\tools\parse.exe", "-x")
    manager = ManagerCommand(r"C:\tools\manage.exe --fast").new(TaskDomain.read("town"))
    with pytest.raises(DataError, match=r"must answer each line with an act; it ended with exit code 3"):
        manager.answer([])
    assert started == [[r"C:\tools\manage.exe", "--fast"]]


def test_a_log_whose_name_is_no_text_is_read_where_nobody_may_make_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1314, "a required privilege is not held by the client")

    name = os.fsdecode(os.fsencode(tmp_path / "log") + b"\xff.csv")
    Path(name).write_bytes(LOG)
    monkeypatch.setattr(Path, "symlink_to", refuse)
    with opened(name) as (source,):
        assert source.path.read_bytes() == LOG
