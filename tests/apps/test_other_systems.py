"""What Windows and macOS do otherwise, simulated here."""

import ctypes
import os
import select
import socket
import sys
from contextlib import closing

import pytest

from commands import run_in
from demur.apps.cli.following import Stop
from demur.apps.web.server import Address, listening_socket
from demur.core.io.writing import write_whole
from demur.errors import UsageError

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
