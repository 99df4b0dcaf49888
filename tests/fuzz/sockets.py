"""Messages of every role, fed to the sockets of a study: pages stay, nothing leaks, and the journal holds."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from demur.apps.study.engine import StudyEngine
from demur.apps.study.server import RATES, StudySite, study_application
from demur.apps.web.security import LOOPBACK
from demur.study.design import read_design
from demur.study.journal import read_events
from demur.study.state import StudyState, digest_of
from study.designs import SMALL

PAGES = ("participant", "wizard", "participant", "experimenter")
"""Whose page sends a line, by its number: there are two participants, a wizard and an experimenter."""
MOST_LINES = 60
SECRETS = ("wizard", "anna", "guide:", "level", "nbest", "performer", "digest", "token", "Traceback")
"""What no frame to a participant may have."""
QUICK = {"delay = 4.0": "delay = 0.0", "connect = 2.0": "connect = 0.0", "levels = [0.0, 0.4]": "levels = [0.0]"}
SYSTEM = ('kind = "relevance"\npairs = "pairs.jsonl"', 'kind = "python"\ncall = "fuzz.sockets:answer"')


def answer(_: dict[str, Any]) -> str:
    """The system of the study that is fed."""
    return "We open at 10 am."


def study_files() -> dict[str, bytes]:
    """A study, and messages with which both participants, the wizard and the experimenter go through it."""
    text = SMALL
    for old, new in (*QUICK.items(), SYSTEM):
        text = text.replace(old, new)
    return {"study/study.toml": text.encode(), "study/messages.jsonl": "\n".join(_messages()).encode()}


def _messages() -> list[str]:
    heard = digest_of({"text": "when do you open", "nbest": [{"text": "when do you open", "confidence": 1.0}]})
    reply = {"kind": "reply", "dialogue": "d00001", "turn": 1, "given": heard, "response": "hours"}
    person: list[dict[str, Any]] = [{"kind": "consent", "agree": True}, {"kind": "begin"}]
    person += [{"kind": "say", "text": "When do you open?"}, {"kind": "say", "text": "again"}, {"kind": "finish"}]
    person += [{"kind": "report", "answer": "10 am", "answers": {"easy": 3}}]
    person += [{"kind": "questionnaire", "stage": "after", "answers": {"remarks": "none"}}, {"kind": "withdraw"}]
    wizard = [{"kind": "available", "on": True}, {"kind": "click", "what": "search", "value": "open"}]
    wizard += [reply, {**reply, "dialogue": "d00002"}, {"kind": "train", "item": 0, "response": "hours", "seconds": 1}]
    wizard += [{"kind": "train again"}, {**reply, "response": "confirm", "slots": {"topic": "hours"}}]
    wizard += [{**reply, "response": None, "text": "Ten."}]
    other = [{"kind": "pause", "on": False}, {"kind": "end", "dialogue": "d00009"}] * 4
    turns = zip(person, wizard, person, other, strict=True)
    every = [one for turn in turns for one in turn]
    return [json.dumps({**one, "id": f"message-{place}"}) for place, one in enumerate(every)]


def feed_sockets(folder: Path) -> None:
    """Send each line of messages.jsonl from its page, and fail where a page is left without an answer or told more."""
    RATES.update(dict.fromkeys(RATES, (1e9, 1e9)))
    lines = (folder / "messages.jsonl").read_bytes().splitlines()[:MOST_LINES]
    engine = StudyEngine(folder, read_design(folder))
    site = StudySite(engine)
    frames: list[list[dict[str, Any]]] = [[] for _ in PAGES]
    app = study_application(site, hosts=LOOPBACK)
    with TestClient(app, base_url="http://localhost") as client, ExitStack() as open_:
        pages = [open_.enter_context(_page(client, site, role)) for role in PAGES]
        for number, line in enumerate([*lines, *[b"last"] * len(PAGES)]):
            place = number % len(PAGES)
            _settle(engine)
            pages[place].send_text(line.decode(errors="replace"))
            frames[place] += _until_answered(pages[place])
        state = engine.state
    for place, role in enumerate(PAGES):
        text = json.dumps(frames[place])
        assert role != "participant" or not any(word in text for word in SECRETS), f"a participant was told: {text}"
    replayed = StudyState.replay(engine.design, read_events(folder))
    assert replayed.talks == state.talks, "the journal is the whole state"


def _page(client: TestClient, site: StudySite, role: str) -> Any:
    if role == "participant":
        client.post("/join", json={"token": site.links["participant", ""]}, headers={"x-demur": "1"})
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        client.cookies.clear()
    else:
        cookies = f"demur_token_default_{role}={site.links[role, 'anna' if role == 'wizard' else '']}"
    headers = {"origin": "http://localhost", "cookie": cookies}
    return client.websocket_connect(f"ws://localhost/ws/{role}", headers=headers)


def _until_answered(page: Any) -> Iterator[dict[str, Any]]:
    """The frames of a page up to the acknowledgement or the refusal of what it sent."""
    frame: dict[str, Any] = {}
    while not frame.keys() & {"ack", "refused"}:
        frame = page.receive_json()
        yield frame


def _settle(engine: StudyEngine) -> None:
    """Wait until whatever was sent before is heard and answered."""
    while engine.busy:
        time.sleep(0.002)
