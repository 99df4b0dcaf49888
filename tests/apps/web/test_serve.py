"""The server as a user starts it: where it listens, what it says, how it ends."""

import http.client
import json
import os
import socket
import sys
import time
import urllib.request
from contextlib import ExitStack, closing
from threading import Thread
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from apps.web.logs import answers, log
from apps.web.waiting import until
from browser.workbench import served
from demur.apps.web import server
from demur.apps.web import site as site_module
from demur.apps.web.security import LOOPBACK
from demur.apps.web.server import Address, check_address, link, page_that_opens
from demur.errors import UsageError
from demur.store.runs import Store

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folder of the store that the servers of this module share; what would draw figures is taken for made."""
    folder = tmp_path_factory.mktemp("served")
    with closing(Store.open(folder / "store")) as store:
        store.keep(server.vega_signature(), b"// nothing is drawn")
        store.add(log(folder / "first.jsonl", 30))
    return folder / "store"


@pytest.fixture(scope="module")
def url(root):
    """A server on this machine."""
    with served(root) as found:
        yield found


def fetched(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
        return answer.read()


def names(url):
    return {run["name"] for run in json.loads(fetched(f"{url}/runs.json"))["runs"]}


def test_it_listens_on_this_machine_only_and_serves_the_store(url):
    assert urlsplit(url).hostname == "127.0.0.1"
    assert "first" in names(url)


def sent_slowly(url, part, length):
    """A connection that has sent a part of an upload and waits."""
    where = urlsplit(url)
    connection = socket.create_connection((where.hostname, where.port), timeout=20)
    head = f"POST /api/uploads?file=slow.jsonl HTTP/1.1\r\nHost: {where.netloc}\r\nX-Demur: 1\r\n"
    head += f"Authorization: Bearer {TOKEN}\r\n"
    connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode() + part)
    return connection


def test_slow_uploads_hold_nobody_up_and_leave_nothing_when_they_break_off(url, root):
    body = "".join(json.dumps(row) + "\n" for row in answers(20)).encode()
    slow = [sent_slowly(url, body[:100], len(body)) for _ in range(3)]
    until(lambda: len(list((root / "staging").glob("upload-*"))) == 3)
    assert "first" in names(url)
    for connection in slow:
        connection.close()
    until(lambda: not list((root / "staging").glob("upload-*")))
    assert "slow" not in names(url)


def test_headers_without_end_are_refused(url):
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as connection:
        connection.sendall(b"GET /runs HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 200_000)
        answer = connection.recv(100)
    assert b" 400 " in answer
    assert "first" in names(url)


@pytest.fixture
def hasty(site, monkeypatch):
    """A server in a thread that waits for headers and for bodies only a moment."""
    monkeypatch.setattr(server, "HEADERS_WITHIN", 0.2)
    monkeypatch.setattr(site_module, "LONGEST_PAUSE", 0.2)
    running = server.server_of(server.application(site, hosts=LOOPBACK))
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()
        running.should_exit = True
        thread.join(30)
    assert not thread.is_alive()


def answer_to(address, *parts):
    """What a server says to parts of a request, until it hangs up."""
    with socket.create_connection(address, timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(10_000), b""))


GET = b"GET /views/page.css HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("parts", [[], [b"GET /runs HT"], [GET], [GET, b"X: y\r\n"]])
def test_headers_that_do_not_end_are_given_up(hasty, parts):
    assert answer_to(hasty, *parts) == b""


def test_headers_of_a_second_request_that_do_not_end_are_given_up_too(hasty):
    assert answer_to(hasty, GET + b"\r\n" + GET).startswith(b"HTTP/1.1 200 OK")


def test_a_request_whose_headers_have_come_may_be_answered_late(hasty, site, monkeypatch):
    shown = type(site.store).runs
    monkeypatch.setattr(type(site.store), "runs", lambda *_: time.sleep(0.6) or shown(site.store))
    answer = answer_to(hasty, b"GET /runs.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("asked", [b"POST /api/uploads?file=a.jsonl", b"PATCH /api/settings"])
def test_a_body_that_does_not_come_is_given_up_and_the_upload_removed(hasty, site, asked):
    headers = b" HTTP/1.1\r\nHost: localhost\r\nX-Demur: 1\r\nContent-Length: 9999\r\n\r\n"
    answer = answer_to(hasty, asked + headers, b"{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"too slowly" in answer
    assert not list((site.store.root / "staging").glob("upload-*"))


def test_a_work_in_the_process_is_done_for_a_real_page(url):
    answer = urllib.request.Request(
        f"{url}/api/uploads?file=fourth.jsonl",
        data="".join(json.dumps(row) + "\n" for row in answers(25, seed=9)).encode(),
        headers={"X-Demur": "1"},
    )
    with urllib.request.urlopen(answer, timeout=20) as sent:
        number = json.load(sent)["job"]["number"]
    until(lambda: json.loads(fetched(f"{url}/jobs/{number}.json"))["state"] == "done")
    assert "fourth" in names(url)


@pytest.fixture(scope="module")
def guarded(root):
    """A server on this machine as it is started without any option."""
    with served(root, "--host", "127.0.0.1") as found:
        yield found


@pytest.fixture(scope="module")
def ending(root):
    """A second server of the same store, with a token and a small limit, and what ends it."""
    with ExitStack() as stack:
        yield stack.enter_context(served(root, "--token", TOKEN, "--max-upload", "1")), stack.close


@pytest.fixture
def other(ending):
    return ending[0]


def test_with_a_token_only_those_who_know_it_come_in(other):
    assert other.endswith(f"/?token={TOKEN}")
    bare = other.split("/?")[0]
    with pytest.raises(HTTPError, match="401") as refused:
        fetched(f"{bare}/runs.json")
    refused.value.close()
    assert fetched(f"{bare}/runs.json", Authorization=f"Bearer {TOKEN}")


def test_what_another_program_adds_appears_in_both_servers_of_a_store(url, other, root, tmp_path):
    with closing(Store.open(root)) as store:
        store.add(log(tmp_path / "second.jsonl", 20, seed=5))
    assert "second" in names(url)
    assert b'"second"' in fetched(f"{other.split('/?')[0]}/runs.json", Authorization=f"Bearer {TOKEN}")


def test_an_upload_that_says_it_is_too_long_is_refused_before_it_is_sent(other):
    with sent_slowly(other.split("/?")[0], b"", 3 * 1024**2) as connection:
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 413
        assert "1 MB" in json.loads(answer.read())["error"]


def test_it_ends_at_once_with_work_under_way_and_a_visitor_who_is_slow(ending, root):
    """Without a fault and without a word; the last test of this server."""
    other, end = ending
    bare = other.split("/?")[0]
    with sent_slowly(bare, b"{", 1000):
        fetched(f"{bare}/runs.json", Authorization=f"Bearer {TOKEN}")
        end()
    until(lambda: not list((root / "staging").glob("upload-*")))


def test_a_port_in_use_is_told_with_what_to_do(demur, tmp_path):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        done = demur("serve", "--port", str(taken.getsockname()[1]), "--store", str(tmp_path / "store"))
    assert done.returncode == 2
    assert "cannot listen on 127.0.0.1 port" in done.stderr
    assert "--port (0 takes a free one)" in done.stderr


def test_without_the_extra_it_says_what_to_install(demur, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "demur.apps.web.server", raising=False)
    done = demur("serve")
    assert done.returncode == 2
    assert done.stderr == "error: the workbench needs the extra: pip install 'demur[web]'\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_other_machines_may_not_come_without_a_token(host):
    with pytest.raises(UsageError, match="--no-token cannot be given"):
        check_address(Address(host=host, open_to_all=True))
    assert len(check_address(Address(host=host, token="auto")).token) >= 32


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "::1", "127.8.9.1", "0.0.0.0"])
def test_a_token_is_made_where_none_is_given(host):
    assert len(check_address(Address(host=host)).token) >= 32


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "::1", "127.8.9.1"])
def test_this_machine_may_do_without_a_token(host):
    assert check_address(Address(host=host, token=TOKEN, open_to_all=True)).token is None


def test_another_user_of_the_machine_can_neither_see_nor_delete_a_run(guarded):
    bare, token = guarded.split("/?token=")
    assert len(token) >= 32
    for path, method in (("/runs.json", "GET"), ("/runs", "GET"), ("/api/runs/first", "DELETE")):
        asked = urllib.request.Request(f"{bare}{path}", headers={"X-Demur": "1"}, method=method)
        with pytest.raises(HTTPError, match="401") as refused:
            urllib.request.urlopen(asked, timeout=20)
        refused.value.close()
    assert b'"first"' in fetched(f"{bare}/runs.json", Authorization=f"Bearer {token}")


def test_a_token_and_none_exclude_each_other(demur):
    done = demur("serve", "--token", TOKEN, "--no-token")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_the_browser_is_led_to_the_link_by_a_file_that_nobody_else_can_read():
    address = f"http://127.0.0.1:1/?token={TOKEN}&x=1"
    with page_that_opens(address) as page:
        assert f"url=http://127.0.0.1:1/?token={TOKEN}&amp;x=1" in page.read_text()
        assert os.name == "nt" or page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()


def test_no_program_that_is_started_to_open_the_link_is_given_the_token(demur, monkeypatch, tmp_path):
    launched = []
    monkeypatch.setattr("webbrowser.open", lambda address: launched.append(address))
    monkeypatch.setattr(server, "_Server", lambda *_: SimpleNamespace(run=lambda **_: None))
    done = demur("serve", "--open", "--port", "0", "--token", TOKEN, "--store", str(tmp_path / "store"))
    assert done.returncode == 0
    assert TOKEN in done.stderr
    assert len(launched) == 1
    assert launched[0].startswith("file://")
    assert TOKEN not in launched[0]


@pytest.mark.parametrize(
    "token", ["short", "", "with a space in it....", "ünicode-is-not-a-header", "tab\tbed-token-...."]
)
def test_a_token_that_is_weak_or_cannot_be_sent_is_refused(token):
    with pytest.raises(UsageError, match="--token"):
        check_address(Address(token=token))


def test_tokens_that_are_made_differ():
    assert check_address(Address(token="auto")).token != check_address(Address(token="auto")).token


def test_the_link_names_a_host_that_can_be_opened():
    assert link(Address(), 8378) == "http://127.0.0.1:8378/"
    assert link(Address(host="::1", token=TOKEN), 1) == f"http://[::1]:1/?token={TOKEN}"
    assert link(Address(host="0.0.0.0", token=TOKEN), 1) == f"http://{socket.gethostname()}:1/?token={TOKEN}"


def test_an_address_of_no_machine_is_told_of(demur, tmp_path):
    done = demur("serve", "--host", "no.such.host.invalid", "--token", "auto", "--store", str(tmp_path / "store"))
    assert done.returncode == 2
    assert "cannot listen on no.such.host.invalid" in done.stderr
    assert os.listdir(tmp_path) == []
