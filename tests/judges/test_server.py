"""The pages of judges: who may ask for what, and what a judge never learns."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from demur.apps.judge.server import application
from demur.apps.web.security import LOOPBACK, stamp
from demur.judges.session import LEAD, Judging
from judges.judged import answers, begun

ROLES = ("anna", "ben", LEAD, "nobody")
PAGES = {
    "/judge": {"anna", "ben"},
    "/judge.json": {"anna", "ben"},
    **{key: {LEAD} for key in ("/overview", "/overview.json", "/adjudicate", "/adjudicate.json", "/judged.jsonl")},
}
JUDGED = {"item": 1, "label": "right", "request": "a"}
ACTIONS: dict[str, tuple[set[str], dict[str, Any]]] = {
    "/api/judgements": ({"anna", "ben"}, {**JUDGED, "judge": "anna"}),
    "/api/undo": ({"anna", "ben"}, {"judge": "anna", "request": "b"}),
    "/api/adjudications": ({LEAD}, {**JUDGED, "request": "c"}),
    "/api/reopen": ({LEAD}, {"request": "d"}),
}


class Room:
    """An application in this process, and a browser that is given the cookie of a role."""

    def __init__(self, judging: Judging) -> None:
        self.judging = judging
        app = application(judging, hosts=LOOPBACK)
        self.client = TestClient(app, base_url="http://localhost", follow_redirects=False)

    def ask(self, method: str, path: str, role: str, **more: Any) -> Any:
        headers = {"x-demur": "1", **more.pop("headers", {})}
        if role != "nobody":
            headers["cookie"] = f"demur_token_default={stamp(self.judging.token(role))}"
        return self.client.request(method, path, headers=headers, **more)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    judging = begun(tmp_path_factory.mktemp("judging"), answers(8), overlap=1.0)
    yield Room(judging)
    judging.close()


@pytest.mark.parametrize(("path", "role"), list(itertools.product(PAGES, ROLES)))
def test_pages_are_for_their_role_alone(room: Room, path: str, role: str) -> None:
    answer = room.ask("GET", path, role)
    assert answer.status_code == (200 if role in PAGES[path] else 401 if role == "nobody" else 403)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert not any(room.judging.token(one) in answer.text for one in (*room.judging.plan.judges, LEAD))
    if role in ("anna", "ben", "nobody"):
        assert not any(word in answer.text for word in ("alpha", "beta", "confidence", "stratum"))


@pytest.mark.parametrize(("path", "role"), list(itertools.product(ACTIONS, ROLES)))
def test_actions_are_for_their_role_alone(room: Room, path: str, role: str) -> None:
    allowed, body = ACTIONS[path]
    before = room.judging.events
    answer = room.ask("POST", path, role, json=body)
    if role not in allowed:
        assert answer.status_code == (401 if role == "nobody" else 403)
    elif role == "ben":
        assert (answer.status_code, "opened for ben" in answer.text) == (409, True), "anna's page in ben's browser"
    assert role in allowed - {"ben"} or room.judging.events == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (json.dumps({**JUDGED, "judge": "anna", "more": 1}).encode(), 400),
        (json.dumps({**JUDGED, "judge": "anna", "request": ""}).encode(), 400),
        (json.dumps({**JUDGED, "judge": "anna", "request": "x", "label": "<b>"}).encode(), 400),
        (json.dumps({**JUDGED, "judge": "anna", "request": "y", "item": 10**9}).encode(), 409),
    ],
)
def test_what_cannot_be_read_changes_nothing(room: Room, body: bytes, status: int) -> None:
    before = room.judging.events
    assert room.ask("POST", "/api/judgements", "anna", content=body).status_code == status
    assert room.judging.events == before


def test_only_pages_of_this_server_judge(room: Room) -> None:
    body = {**JUDGED, "judge": "anna", "request": "z"}
    for headers in ({"x-demur": ""}, {"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert room.ask("POST", "/api/judgements", "anna", json=body, headers=headers).status_code == 403
    assert room.ask("GET", "/judge", "anna", headers={"host": "evil.example"}).status_code == 421


def test_a_link_lets_its_judge_in_once_and_leaves_no_token_in_the_address(room: Room, tmp_path: Path) -> None:
    answer = room.client.get(f"/?token={room.judging.token('ben')}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    room.client.cookies.clear()
    assert room.client.get("/?token=guess").status_code == 401
    other = begun(tmp_path, answers(3))
    assert other.token("ben") != room.judging.token("ben")
    other.close()
