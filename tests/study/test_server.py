"""The server of studies: who may ask for what, what participants could tell, and what a crash leaves."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from demur.apps.study.engine import StudyEngine
from demur.apps.study.server import LONGEST_MESSAGE, PATHS, RATES, StudySite, study_application
from demur.apps.web.security import LOOPBACK
from demur.apps.web.server import Address, listening_socket, shared_assets
from demur.study.design import read_design
from demur.study.export import StudyRecord
from demur.study.journal import read_rows
from study.designs import SMALL, write_small
from study.serving import Page, Served

ROLES = ("participant", "wizard", "experimenter", "nobody")
QUICK = (
    SMALL.replace("delay = 4.0", "delay = 0.1")
    .replace("connect = 2.0", "connect = 0.05")
    .replace("[0.0, 0.4]", "[0.0]")
)
ORIGIN = {"origin": "http://localhost"}
SECRETS = ("wizard", "anna", "guide", "level", "nbest", "performer", "given", "digest", "token")
"""Words that tell a participant of the condition; none may reach their page."""


class Office:
    """An application in this process, and browsers of every role."""

    def __init__(self, folder: Path) -> None:
        self.engine = StudyEngine(folder, read_design(folder))
        self.site = StudySite(self.engine)
        self.client = TestClient(
            study_application(self.site, hosts=LOOPBACK), base_url="http://localhost", follow_redirects=False
        )

    def cookies(self, role: str) -> dict[str, str]:
        if role == "nobody":
            return {}
        if role == "participant":
            token = self.site.links["participant", ""]
            answer = self.client.post("/join", json={"token": token}, headers={"x-demur": "1"})
            self.client.cookies.clear()
            name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
            return {name: value}
        name = "anna" if role == "wizard" else ""
        return {f"demur_token_default_{role}": self.site.links[role, name]}

    def socket(self, role: str, headers: dict[str, str]) -> Any:
        return self.client.websocket_connect(f"ws://localhost/ws/{role}", headers=headers)

    def headers(self, role: str, cookies: dict[str, str] | None = None) -> dict[str, str]:
        pairs = self.cookies(role) if cookies is None else cookies
        return {"cookie": "; ".join(f"{name}={value}" for name, value in pairs.items())} if pairs else {}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    one = Office(write_small(tmp_path_factory.mktemp("office") / "small", QUICK))
    with one.client:
        yield one


PAGES = {
    "/participant": {"participant"},
    "/wizard": {"wizard"},
    "/experimenter": {"experimenter"},
    "/benchmark.svg": {"experimenter"},
}


@pytest.mark.parametrize(("path", "role"), list(itertools.product(PAGES, ROLES)))
def test_pages_are_for_their_role_alone(office: Office, path: str, role: str) -> None:
    answer = office.client.get(path, headers={**office.headers(role), "accept": "application/json"})
    assert (answer.status_code in (200, 400)) == (role in PAGES[path])
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    if role not in PAGES[path]:
        assert answer.status_code == 403
        assert not any(token in answer.text for token in office.site.links.values())


ENTRIES = {"/join/{token}": "participant", "/wizard/{token}": "wizard", "/experimenter/{token}": "experimenter"}
OPEN = {"/", "/join"}
"""Routes that anybody may ask: what they give is tried below."""


def test_every_route_is_tried(office: Office) -> None:
    assets = {route.path for route in shared_assets() if isinstance(route, Route)}
    routes = {route.path for route in office.site.routes() if isinstance(route, Route)} - assets
    assert routes == {*PAGES, *ENTRIES, *OPEN, "/audio"}
    sockets = {route.path for route in office.site.routes() if isinstance(route, WebSocketRoute)}
    assert sockets == {f"/ws/{role}" for role in PATHS}


@pytest.mark.parametrize(("path", "role"), list(itertools.product(ENTRIES, ROLES)))
def test_a_link_opens_its_own_entry_alone(office: Office, path: str, role: str) -> None:
    name = "anna" if role == "wizard" else ""
    token = office.site.links.get((role, name), "x" * 32)
    answer = office.client.get(path.format(token=token), headers={"accept": "application/json"})
    office.client.cookies.clear()
    assert (answer.status_code in (200, 303, 307)) == (role == ENTRIES[path]), answer.status_code
    if role != ENTRIES[path]:
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


@pytest.mark.parametrize("role", ROLES)
def test_recordings_are_taken_from_participants_alone(office: Office, role: str) -> None:
    answer = office.client.post("/audio", content=b"no sound", headers={**office.headers(role), "x-demur": "1"})
    assert (answer.status_code, answer.json()["error"][:4]) == (
        (400, "This") if role == "participant" else (403, "This")
    )


@pytest.mark.parametrize("role", ROLES)
def test_the_front_page_tells_nobody_anything(office: Office, role: str) -> None:
    answer = office.client.get("/", headers=office.headers(role))
    assert answer.status_code == 200
    assert not any(token in answer.text for token in office.site.links.values())


@pytest.mark.parametrize(("socket", "role"), list(itertools.product(PATHS, ROLES)))
def test_sockets_are_for_their_role_alone(office: Office, socket: str, role: str) -> None:
    headers = {**office.headers(role), **ORIGIN}
    if role == socket:
        with office.socket(socket, headers) as page:
            assert "view" in page.receive_json()
    else:
        with (
            pytest.raises(WebSocketDisconnect),
            office.socket(socket, headers),
        ):
            pass


@pytest.mark.parametrize("origin", [{}, {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://[x"}])
def test_sockets_open_from_pages_of_this_server_alone(office: Office, origin: dict[str, str]) -> None:
    headers = {**office.headers("participant"), **origin}
    with (
        pytest.raises(WebSocketDisconnect),
        office.socket("participant", headers),
    ):
        pass


MESSAGES: list[dict[str, Any]] = [
    {"kind": "consent", "agree": True},
    {"kind": "begin"},
    {"kind": "say", "text": "hello"},
    {"kind": "finish"},
    {"kind": "report", "answers": {}},
    {"kind": "withdraw"},
    {"kind": "questionnaire", "stage": "before", "answers": {}},
    {"kind": "reply", "dialogue": "d00001", "turn": 1, "given": "x", "response": "hours"},
    {"kind": "click", "what": "search", "value": "x"},
    {"kind": "train", "item": 0, "response": "hours", "seconds": 1.0},
    {"kind": "train again"},
    {"kind": "available", "on": True},
    {"kind": "pause", "on": True},
    {"kind": "end", "dialogue": "d00001"},
]
OWN = {
    "participant": {"consent", "begin", "say", "finish", "report", "withdraw", "questionnaire"},
    "wizard": {"reply", "click", "train", "train again", "available"},
    "experimenter": {"pause", "end"},
}


@pytest.mark.parametrize("role", list(OWN))
def test_messages_are_taken_from_their_role_alone(office: Office, role: str) -> None:
    with office.socket(role, {**office.headers(role), **ORIGIN}) as page:
        page.receive_json()
        for number, message in enumerate(MESSAGES):
            page.send_json({**message, "id": f"{role}-message-{number}"})
            while not {"ack", "refused"} & (frame := page.receive_json()).keys():
                pass
            known = frame.get("ack") or frame.get("id")
            assert bool(known) == (message["kind"] in OWN[role]), (message, frame)
        page.send_json({"kind": "pause", "on": False, "id": "unpause-1"})
        page.receive_json()


def test_a_participant_sees_only_their_own_dialogue_and_nothing_of_the_condition(office: Office) -> None:
    first, second = (office.headers("participant") for _ in range(2))
    with (
        office.socket("participant", {**first, **ORIGIN}) as one,
        office.socket("participant", {**second, **ORIGIN}) as other,
    ):
        frames = [one.receive_json(), other.receive_json()]
        one.send_json({"kind": "consent", "agree": True, "id": "consent-one"})
        frames.append(one.receive_json())
        assert (frames[-1]["ack"], frames[-1]["view"]["stage"]) == ("consent-one", "briefing")
        other.send_json({"kind": "say", "text": "who is there", "id": "say-other"})
        frames.append(other.receive_json())
        assert "refused" in frames[-1]
    text = json.dumps(frames)
    assert not any(word in text for word in SECRETS)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"kind": "say"}', '{"kind": "say", "id": "x", "text": "short id"}', "\x00", "9" * 400],
)
def test_what_cannot_be_read_is_refused_and_the_page_stays(office: Office, content: str) -> None:
    with office.socket("wizard", {**office.headers("wizard"), **ORIGIN}) as page:
        page.receive_json()
        page.send_text(content)
        assert page.receive_json() == {"refused": "This message cannot be read."}


def test_who_sends_too_fast_is_refused_then_let_go(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RATES, "participant", (0.0, 20.0))
    with office.socket("participant", {**office.headers("participant"), **ORIGIN}) as page:
        page.receive_json()
        for _ in range(80):
            page.send_text("x")
        frames = []
        while "closed" not in (frames or [{}])[-1]:
            frames.append(page.receive_json())
    assert {"refused": "Too many messages; please wait a moment."} in frames
    assert frames[-1] == {"closed": "too fast"}


def test_other_names_of_the_server_are_refused(office: Office) -> None:
    assert office.client.get("/", headers={"host": "evil.example"}).status_code == 421
    headers = {**office.headers("wizard"), "host": "evil.example", "origin": "http://evil.example"}
    with (
        pytest.raises(WebSocketDisconnect),
        office.socket("wizard", headers),
    ):
        pass


def test_frames_leave_at_once_and_are_not_held_back_for_more() -> None:
    """By Nagle's algorithm a frame would wait until the last one is acknowledged, 40 ms as a rule."""
    noted: list[int] = []

    async def connect(listening: socket.socket) -> None:
        done = asyncio.Event()

        def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            noted.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()
            done.set()

        async with await asyncio.start_server(accepted, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            await done.wait()
            writer.close()

    with closing(listening_socket(Address(port=0))) as listening:
        talk = threading.Thread(target=lambda: asyncio.run(connect(listening)))  # a browser's loop may run in this one
        talk.start()
        talk.join()
    assert noted == [1]


def test_links_with_a_wrong_token_lead_nowhere(office: Office) -> None:
    for path in ("/join/x", "/wizard/x", "/experimenter/x", f"/wizard/{office.site.links['participant', '']}"):
        assert office.client.get(path).status_code == 403
    body = {"token": "x" * 32}
    assert office.client.post("/join", json=body, headers={"x-demur": "1"}).status_code == 403
    body = {"token": office.site.links["participant", ""]}
    assert office.client.post("/join", json=body).status_code == 403, "only pages of this server join"


def test_a_full_disk_is_said_and_what_was_sent_is_taken_once_there_is_room(office: Office) -> None:
    journal = office.engine.journal
    with office.socket("wizard", {**office.headers("wizard"), **ORIGIN}) as page:
        page.receive_json()
        journal.allow_pages(1)
        number, frame = 0, {}
        while "again" not in frame:
            number += 1
            said = {"kind": "click", "what": "search", "value": "x" * 200, "id": f"full-disk-{number}"}
            page.send_json(said)
            while not {"ack", "refused"} & frame.keys() or frame.get("ack") == f"full-disk-{number - 1}":
                frame = page.receive_json()
        assert frame["refused"].startswith("This could not be stored")
        assert office.engine.fault
        journal.allow_pages(1 << 20)
        page.send_json(said)
        while "ack" not in frame:
            frame = page.receive_json()
        assert not office.engine.fault
    clients = [client for _, client in read_rows(office.engine.folder) if client and "full-disk" in client]
    assert len(clients) == number == len(set(clients)), "each is there once"


def talk_once(page: Page, wizard: Page, text: str = "When do you open?") -> None:
    """One dialogue of one turn, whoever answers."""
    page.send("begin")
    page.until(lambda: page.view["stage"] == "talking")
    page.send("say", text=text)
    answer_if_asked(wizard, page)
    page.until(lambda: not page.view["waiting"])
    page.send("finish")
    page.send("report", answer="10 am", answers={"easy": 3})


def answer_if_asked(wizard: Page, page: Page) -> None:
    """Answer, unless the participant is answered by a system meanwhile."""
    while not wizard.view.get("open"):
        for one in (wizard, page):
            with suppress(TimeoutError):
                one.take(0.1)
        if not page.view["waiting"]:
            return
    one = wizard.view["open"]
    wizard.send("reply", dialogue=wizard.view["dialogue"], turn=one["turn"], given=one["given"], response="hours")


def test_the_curtain_frames_are_the_same_whoever_answers(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small", QUICK)
    with Served(folder) as served:
        wizard = Page(served, "wizard", served.wizard("anna"))
        wizard.send("available", on=True)
        page = Page(served, "participant", served.join())
        page.send("consent", agree=True)
        seen = []
        for _ in range(2):
            page.frames.clear()
            talk_once(page, wizard)
            seen.append([_without_goals(frame) for frame in page.frames])
        page.close()
        wizard.close()
    performers = {talk.performer for talk in StudyRecord.of(folder).state.talks.values()}
    assert performers == {"wizard", "guide"}
    assert seen[0][:-2] == seen[1][:-2], "frame by frame, until the next task differs"


def _without_goals(frame: dict[str, Any]) -> dict[str, Any]:
    whole = {"ack": ""} if "ack" in frame else {}
    return whole | {"view": {**frame["view"], "goal": "", "progress": ""}} if "view" in frame else whole or frame


def test_killed_five_times_under_load_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    """`make bench NAME=study` kills the server of 200 dialogues ten times."""
    text = (
        SMALL.replace("delay = 4.0", "delay = 0.0").replace("connect = 2.0", "connect = 0.0").replace("0.4", "0.0001")
    )
    text = text.replace("turns = 3", "turns = 200").replace("levels = [0.0, 0.0001]", "levels = [0.0]")
    folder = write_small(
        tmp_path / "small", text.replace('kind = "wizard"\n', 'kind = "python"\ncall = "echo:answer"\n')
    )
    (folder / "echo.py").write_text("def answer(conversation):\n    return 'Yes.'\n", encoding="utf-8")
    people: list[Talker] = []
    chance, port = random.Random(1), 0
    for kills in range(6):
        with Served(folder, port) as served:
            port = served.port
            people = people or [Talker(served, f"talker-{number}") for number in range(4)]
            threads = [threading.Thread(target=one.talk, args=[served]) for one in people]
            for thread in threads:
                thread.start()
            busy = 2 * kills + 2
            while any(len(one.acknowledged) < busy for one in people) and all(one.is_alive() for one in threads):
                threads[0].join(0.02)
            threads[0].join(0.3 * chance.random())
            assert all(thread.is_alive() for thread in threads)
        for thread in threads:
            thread.join()
    assert not [one.fault for one in people if one.fault]
    clients = [client for _, client in read_rows(folder) if client is not None]
    assert len(set(clients)) == len(clients)
    record = StudyRecord.of(folder)
    said = [event.body["text"] for event in record.of_kind("said")]
    assert len(set(said)) == len(said), "none is doubled"
    acknowledged = [text for one in people for text in one.acknowledged]
    assert len(acknowledged) > 40
    assert set(acknowledged) <= set(said), "none is lost"
    assert {talk.state for talk in record.state.talks.values()} == {"talking"}, "every dialogue goes on"


class Talker:
    """A participant who talks without end, and sends again what was not acknowledged when the server died."""

    def __init__(self, served: Served, name: str) -> None:
        self.name, self.number, self.fault = name, 0, ""
        self.acknowledged: list[str] = []
        self.page = Page(served, "participant", served.join())
        self.page.send("consent", agree=True)
        self.page.send("begin")
        self.page.until(lambda: self.page.view["stage"] == "talking")
        self.served = served

    def talk(self, served: Served) -> None:
        """Talk until the server dies; with another server, first send the last message again."""
        try:
            if served is not self.served:
                self.served, self.page.view = served, {}
                self.page.open(served)
                if self.page.view["stage"] != "talking":
                    self.fault = f"{self.name} did not go on: {self.page.view}"
                self.say()
            while True:
                self.page.until(lambda: not self.page.view["waiting"])
                self.say()
                threading.Event().wait(0.05)  # a dialogue has 200 turns at most
        except (ConnectionClosed, InvalidHandshake, OSError):
            self.page.close()

    def say(self) -> None:
        text = f"{self.name} {self.number}"
        frame = self.page.send("say", client=f"{self.name}-{self.number:08}", text=text)
        if "ack" in frame:
            self.acknowledged.append(text)
            self.number += 1
        elif self.page.view["waiting"] is False:
            self.fault = f"{text}: {frame}"


def test_a_message_beyond_the_limit_ends_the_connection_and_nothing_more(tmp_path: Path) -> None:
    with Served(write_small(tmp_path / "small", QUICK)) as served:
        page = Page(served, "participant", served.join())
        page.socket.send("x" * (LONGEST_MESSAGE + 1))
        with pytest.raises(Exception, match=r"1009|too big"):
            page.take()
        again = Page(served, "participant", page.cookie)
        assert again.view["stage"] == "consent"
        again.close()
