"""Pages of judges: every route with every role and none, what each may know, and texts that stay texts."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from demur.apps.judge.server import application
from demur.apps.web.security import LOOPBACK
from demur.judges.labels import JudgeLabel, LabelSet
from demur.judges.session import LEAD, Judging
from judges.judged import answers, begun, judge_all
from payloads import NAMES, PAYLOADS

ClientFor = Callable[[str | None], TestClient]

ROUTES: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "/": ("GET", "any", None),
    "/judge": ("GET", "judge", None),
    "/judge.json": ("GET", "judge", None),
    "/overview": ("GET", LEAD, None),
    "/overview.json": ("GET", LEAD, None),
    "/adjudicate": ("GET", LEAD, None),
    "/adjudicate.json": ("GET", LEAD, None),
    "/judged.jsonl": ("GET", LEAD, None),
    "/api/judgements": ("POST", "judge", {"judge": "anna", "item": 0, "label": "right", "request": "r1"}),
    "/api/undo": ("POST", "judge", {"judge": "anna", "request": "r2"}),
    "/api/adjudications": ("POST", LEAD, {"item": 0, "label": "right", "request": "r3"}),
    "/api/reopen": ("POST", LEAD, {"request": "r4"}),
}
"""Each route with how it is asked, and who may."""


def test_every_route_is_tried(judging: Judging) -> None:
    guard: Any = application(judging, hosts=LOOPBACK)
    routes = [route.path for route in guard.app.routes if isinstance(route, Route)]
    assert {path for path in routes if not path.startswith("/views/")} == set(ROUTES)
    assert {route.path for route in guard.app.routes if isinstance(route, Mount)} == {"/static", "/static/judge"}


@pytest.mark.parametrize("role", ["anna", LEAD, None])
@pytest.mark.parametrize("path", ROUTES)
def test_a_role_reaches_its_own_pages_and_no_other(client_for: ClientFor, path: str, role: str | None) -> None:
    method, who, body = ROUTES[path]
    client = client_for(role)
    answer = client.request(method, path, json=body)
    if role is None:
        assert answer.status_code == 401
    elif who == "any" or (who == LEAD) == (role == LEAD):
        assert answer.status_code in (200, 409), "409 where the item is none, or nothing is to be undone"
    else:
        assert answer.status_code == 403
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["cache-control"] == "no-store"


def test_wrong_tokens_and_other_names_are_refused(client_for: ClientFor, judging: Judging) -> None:
    client = client_for(None)
    assert client.get("/?token=wrong").status_code == 401
    assert "That link is not known here" in client.get("/?token=wrong", headers={"accept": "text/html"}).text
    assert client.get("/judge", headers={"authorization": f"Bearer {judging.token('anna')}"}).status_code == 200
    assert client_for("anna").get("/judge", headers={"host": "elsewhere.example"}).status_code == 421
    assert client_for("anna").post("/api/undo", json={}, headers={"x-demur": "0"}).status_code == 403
    other = {"origin": "http://elsewhere.example"}
    assert client_for("anna").post("/api/undo", json={}, headers=other).status_code == 403


def test_a_link_of_another_role_is_heeded_and_the_page_of_the_first_is_refused(
    client_for: ClientFor, judging: Judging
) -> None:
    """Two people at one browser: what the first one's page sends must not count for the second."""
    client = client_for("anna")
    state = client.get("/judge.json").json()
    assert client.get(f"/?token={judging.token('ben')}").status_code == 200
    assert client.get("/judge.json").json()["judge"] == "ben"
    said = {"judge": "anna", "item": state["item"], "label": "right", "request": "r"}
    answer = client.post("/api/judgements", json=said)
    assert answer.status_code == 409
    assert "opened for ben" in answer.json()["error"]
    assert judging.given == {}


def test_a_judge_is_told_nothing_of_others(client_for: ClientFor, judging: Judging) -> None:
    judge_all(judging, "ben")
    client, seen = client_for("anna"), []
    state = client.get("/judge.json").json()
    while state["item"] is not None:
        seen.append(client.get("/judge").text + json.dumps(state) if len(seen) < 3 else json.dumps(state))
        said = {"judge": "anna", "item": state["item"], "label": "right", "request": f"r{len(seen)}"}
        state = client.post("/api/judgements", json=said).json()
    assert state["done"] == state["total"] == len(seen)
    secrets = ["ben", "alpha", "beta", "confidence", "stratum", "q1", *(judging.token(role) for role in ("ben", LEAD))]
    text = "".join(seen)
    assert [one for one in secrets if re.search(rf"\b{re.escape(one)}\b", text)] == []


def test_judging_undoing_and_settling_by_requests(client_for: ClientFor, judging: Judging) -> None:
    anna, ben, lead = (client_for(role) for role in ("anna", "ben", LEAD))
    for name, client, label in (("anna", anna, "right"), ("ben", ben, "wrong")):
        state = client.get("/judge.json").json()
        while state["item"] is not None:
            said = {"judge": name, "item": state["item"], "label": label, "request": f"r{state['item']}"}
            state = client.post("/api/judgements", json=said).json()
    undone = anna.post("/api/undo", json={"judge": "anna", "request": "u1"}).json()
    assert undone["item"] is not None
    said = {"judge": "anna", "item": undone["item"], "label": "right", "request": "again"}
    assert anna.post("/api/judgements", json=said).json()["item"] is None
    first = lead.get("/adjudicate.json").json()
    shared = sum(len(judges) > 1 for judges in judging.judges_of.values())
    assert (first["total"], first["given"]) == (shared, [["right", 1], ["wrong", 1]])
    settled = {"item": first["item"], "label": "wrong", "note": "looked up", "request": "s1"}
    after = lead.post("/api/adjudications", json=settled).json()
    assert (after["done"], after["last"], after["settled"][0]["note"]) == (1, "wrong", "looked up")
    assert lead.post("/api/reopen", json={"request": "o1"}).json()["done"] == 0
    overview = lead.get("/overview.json").json()
    assert overview["answers"]["open"] == shared
    assert overview["agreement"]["measures"]["cohen_kappa"]["value"] == 0.0
    rows = [json.loads(line) for line in lead.get("/judged.jsonl").text.splitlines()]
    assert sum(row["judgement"] is None for row in rows if row["prediction"]) >= shared
    assert "Settle disagreements" in lead.get("/overview").text


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"3", b"{", b'{"judge": "anna"}', b"\xff"),
        *(b'{"judge": 3, "item": 1, "label": "right", "request": "r"}', b"[" * 5000),
        b'{"judge": "anna", "item": "1", "label": "right", "request": "r"}',
        b'{"judge": "anna", "item": 99999999999999999999999, "label": "right", "request": "r"}',
        b'{"judge": "anna", "item": 1, "label": "right", "request": ""}',
        b'{"judge": "anna", "item": 1, "label": "right", "request": "r", "more": 1}',
        b'{"judge": "anna", "item": 1, "label": "%s", "request": "r"}' % (b"x" * 70_000),
        b'{"judge": "anna", "item": -1, "label": "right", "request": "r"}',
        b'{"judge": "anna", "item": 1, "label": "no such label", "request": "r"}',
    ],
)
def test_bodies_that_make_no_sense_are_refused_and_change_nothing(
    client_for: ClientFor, judging: Judging, body: bytes
) -> None:
    answer = client_for("anna").post("/api/judgements", content=body)
    assert answer.status_code in (400, 409, 413)
    assert answer.json()["error"]
    assert judging.journal.events() == []


def test_texts_of_logs_labels_and_guidelines_stay_texts(tmp_path: Path) -> None:
    every = "".join(NAMES)
    rows = [{**row, "input": every, "prediction": f"{every} {place}"} for place, row in enumerate(answers(9))]
    image = PAYLOADS["an image"][:60]
    named = (JudgeLabel("right", "right", every, "r"), JudgeLabel(image, "wrong", every, "w"))
    labels = LabelSet(named, every, every)
    judging = begun(tmp_path, rows, labels, overlap=1.0)
    judge_all(judging, "anna", lambda _: "right")
    judge_all(judging, "ben", lambda _: labels.names[1])
    judging.settle(judging.conflicts()[0].item, labels.names[1], every)
    judging.undo("anna")
    app = application(judging, hosts=LOOPBACK)
    for role, paths in (("anna", ["/judge"]), (LEAD, ["/overview", "/adjudicate"])):
        client = TestClient(app, base_url="http://127.0.0.1", headers={"X-Demur": "1"})
        client.get(f"/?token={judging.token(role)}")
        for path in paths:
            page = client.get(path).text
            assert "<script>window.harmed" not in page
            assert "<img src=x" not in page
            assert "\u202e" not in page
            assert "\x1b" not in page
            assert path == "/overview" or "&lt;script&gt;window.harmed" in page
    judging.close()


def test_the_pages_say_when_there_is_nothing_to_do(client_for: ClientFor, judging: Judging) -> None:
    assert "Judges do not disagree on any answer yet." in client_for(LEAD).get("/adjudicate").text
    assert "no answer is judged by two judges yet" in client_for(LEAD).get("/overview").text
    judge_all(judging, "anna")
    assert "All your answers are judged." in client_for("anna").get("/judge").text
    missing = client_for("anna").get("/nothing", headers={"accept": "text/html"})
    assert (missing.status_code, "there is no such page" in missing.text) == (404, True)
