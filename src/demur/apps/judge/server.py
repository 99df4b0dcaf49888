"""The pages of judges and of the lead: what each role may ask for, and how it is served.

A judge sees one answer at a time and nothing else: no system, no confidence, no other judge. The lead sees how far
everybody is, how far judges agree, and settles what they disagree on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from demur.apps.web.security import ROLE, Guard, path_of
from demur.apps.web.server import (
    THEME_COOKIE,
    Address,
    PackageFiles,
    fault_words,
    json_body,
    listening_socket,
    server_of,
    shared_assets,
)
from demur.apps.web.site import JsonAnswer, render
from demur.core.io.writing import as_lines
from demur.core.show.results import plain
from demur.errors import DemurError
from demur.judges.presentation import JudgedAnswers, of_judged
from demur.judges.session import LEAD, JudgeState, Judging, NotYours

ASKING = "a token is needed: open the link that you were given"
NOT_FOR_YOU = "this page is not for you; open the link that you were given"
LONGEST_REQUEST_ID = 64
FRESH = 2.0
"""Seconds for which agreement is not computed again, however many look at it."""

REPLICATES = 400
"""Replicates behind the intervals that are shown while judging goes on."""


@dataclass(frozen=True, slots=True)
class LeadPage:
    """A page of the lead, in the navigation."""

    path: str
    heading: str


LEAD_PAGES = (LeadPage("/overview", "Progress and agreement"), LeadPage("/adjudicate", "Disagreements"))


class Desk:
    """What pages are made of: the judging, and what is known of its agreement for a moment."""

    def __init__(self, judging: Judging) -> None:
        """Serve a judging."""
        self.judging = judging
        self._lock = Lock()
        self._overview: tuple[float, int, dict[str, Any]] | None = None

    def overview(self) -> dict[str, Any]:
        """How far everybody is and how far judges agree; the same for a moment, as it takes some work,
        unless the lead has settled something."""
        with self._lock:
            events, kept, now = self.judging.events, self._overview, time.monotonic()
            if kept is None or (kept[1] != events and now - kept[0] > FRESH):
                found = JudgedAnswers.of(self.judging, replicates=REPLICATES)
                shown = of_judged(found)
                tables = [
                    {"title": one.title, "columns": one.columns, "rows": one.rows, "numeric": one.numeric}
                    for one in shown.tables
                ]
                document = {**found.to_dict(), "sentences": shown.sentences, "tables": tables}
                kept = self._overview = now, events, plain(document)
            return kept[2]

    def settled_document(self) -> dict[str, Any]:
        """The disagreements after the lead settled or reopened one; the overview is made again with it."""
        with self._lock:
            self._overview = None
        return self.conflict_document()

    def judge_document(self, state: JudgeState) -> dict[str, Any]:
        """What a judge is shown: the answer, the labels, and how far the judge is."""
        return {
            "judge": state.judge,
            "item": state.item,
            "shown": [{"name": name, "text": text} for name, text in state.shown],
            "done": state.done,
            "total": state.total,
            "last": state.last,
            **self._labels(),
        }

    def conflict_document(self) -> dict[str, Any]:
        """What the lead is shown of disagreements: the first that is open, and all that were settled."""
        conflicts = self.judging.conflicts()
        still_open = [one for one in conflicts if one.settled is None]
        first = still_open[0] if still_open else None
        settled = [
            {
                "item": one.item,
                "shown": [{"name": name, "text": text} for name, text in one.shown],
                "labels": [list(pair) for pair in one.labels],
                "settled": one.settled,
                "note": one.note,
            }
            for one in conflicts
            if one.settled is not None
        ]
        return {
            "item": None if first is None else first.item,
            "shown": [] if first is None else [{"name": name, "text": text} for name, text in first.shown],
            "given": [] if first is None else [list(pair) for pair in first.labels],
            "done": len(settled),
            "total": len(conflicts),
            "last": self.judging.last_label(LEAD),
            "settled": settled,
            **self._labels(),
        }

    def _labels(self) -> dict[str, Any]:
        labels = self.judging.plan.labels
        return {
            "question": labels.question,
            "guidelines": labels.guidelines,
            "labels": [{"name": one.name, "key": one.key, "about": one.about} for one in labels.labels],
        }


def application(judging: Judging, *, hosts: frozenset[str] | None) -> ASGIApp:
    """The web application over a judging, guarded by a token for each role."""
    desk = Desk(judging)
    routes: list[BaseRoute] = [
        Route("/", _start),
        *_page("/judge", lambda role: desk.judge_document(judging.state_of(role)), "judge.html", role=""),
        *_page("/overview", lambda _: desk.overview(), "overview.html", role=LEAD),
        *_page("/adjudicate", lambda _: desk.conflict_document(), "adjudicate.html", role=LEAD),
        Route("/judged.jsonl", _download(judging)),
        Route("/api/judgements", _judge(desk), methods=["POST"]),
        Route("/api/undo", _undo(desk), methods=["POST"]),
        Route("/api/adjudications", _settle(desk), methods=["POST"]),
        Route("/api/reopen", _reopen(desk), methods=["POST"]),
        Mount("/static/judge", PackageFiles(packages=[("demur.apps.judge", "static")])),
        *shared_assets(),
    ]
    faults = dict.fromkeys((DemurError, HTTPException, Exception), _answer_fault)
    roles = (*judging.plan.judges, LEAD)
    tokens = {role: judging.token(role) for role in roles}
    return Guard(Starlette(routes=routes, exception_handlers=faults), hosts, tokens, fault_answer, ASKING)


def role_of(request: Request, wanted: str) -> str:
    """The role of a visitor, refused unless it is the one wanted; an empty one means any judge."""
    role = str(request.scope.get(ROLE, ""))
    if not role or (role == LEAD) != (wanted == LEAD):
        raise HTTPException(403, NOT_FOR_YOU)
    return role


async def _start(request: Request) -> Response:
    return RedirectResponse("/overview" if request.scope.get(ROLE) == LEAD else "/judge", status_code=303)


def _page(path: str, document: Callable[[str], dict[str, Any]], template: str, *, role: str) -> list[BaseRoute]:
    """A page and its JSON twin."""

    async def twin(request: Request) -> Response:
        return JsonAnswer(plain(await run_in_threadpool(document, role_of(request, role))))

    async def page(request: Request) -> Response:
        who = role_of(request, role)
        found = await run_in_threadpool(document, who)
        titles = {"/overview": "Progress and agreement", "/adjudicate": "Disagreements"}
        title = titles.get(path) or found["question"]
        navigation = LEAD_PAGES if who == LEAD else ()
        theme = request.cookies.get(THEME_COOKIE, "")
        about: dict[str, Any] = {"navigation": navigation, "path": path, "twin": f"{path}.json", "theme": theme}
        return HTMLResponse(render(template, title, plain(found), home="/", package="demur.apps.judge", **about))

    return [Route(f"{path}.json", twin), Route(path, page)]


def _download(judging: Judging) -> Callable[[Request], Any]:
    async def send(request: Request) -> Response:
        role_of(request, LEAD)
        content = await run_in_threadpool(lambda: b"".join(as_lines(list(judging.judged_rows()))))
        headers = {"content-disposition": 'attachment; filename="judged.jsonl"'}
        return Response(content, media_type="application/x-ndjson", headers=headers)

    return send


class _Judgement(msgspec.Struct, forbid_unknown_fields=True):
    judge: str
    item: int
    label: str
    request: str


class _Undoing(msgspec.Struct, forbid_unknown_fields=True):
    judge: str
    request: str


class _Settlement(msgspec.Struct, forbid_unknown_fields=True):
    item: int
    label: str
    request: str
    note: str = ""


class _Reopening(msgspec.Struct, forbid_unknown_fields=True):
    request: str


async def _read_form(request: Request, form: type[Any]) -> Any:
    try:
        asked = msgspec.convert(await json_body(request), form)
    except msgspec.ValidationError as fault:
        raise HTTPException(400, f"this cannot be understood: {fault}") from None
    if not 1 <= len(asked.request) <= LONGEST_REQUEST_ID:
        raise HTTPException(400, f"a request has an id of 1 to {LONGEST_REQUEST_ID} characters")
    return asked


def _own(role: str, name: str) -> None:
    """Refuse what a page of another judge sends from this browser, whose link was opened since."""
    if role != name:
        raise HTTPException(409, f"this browser was since opened for {role}; open your own link again")


def _judge(desk: Desk) -> Callable[[Request], Any]:
    async def act(request: Request) -> Response:
        role, asked = role_of(request, ""), await _read_form(request, _Judgement)
        _own(role, asked.judge)
        state = await run_in_threadpool(desk.judging.judge, role, asked.item, asked.label, f"{role} {asked.request}")
        return JsonAnswer(plain(desk.judge_document(state)))

    return act


def _undo(desk: Desk) -> Callable[[Request], Any]:
    async def act(request: Request) -> Response:
        role, asked = role_of(request, ""), await _read_form(request, _Undoing)
        _own(role, asked.judge)
        state = await run_in_threadpool(desk.judging.undo, role, f"{role} {asked.request}")
        return JsonAnswer(plain(desk.judge_document(state)))

    return act


def _settle(desk: Desk) -> Callable[[Request], Any]:
    async def act(request: Request) -> Response:
        role, asked = role_of(request, LEAD), await _read_form(request, _Settlement)
        given = (asked.item, asked.label, asked.note, f"{role} {asked.request}")
        await run_in_threadpool(desk.judging.settle, *given)
        return JsonAnswer(plain(await run_in_threadpool(desk.settled_document)))

    return act


def _reopen(desk: Desk) -> Callable[[Request], Any]:
    async def act(request: Request) -> Response:
        role, asked = role_of(request, LEAD), await _read_form(request, _Reopening)
        await run_in_threadpool(desk.judging.reopen, f"{role} {asked.request}")
        return JsonAnswer(plain(await run_in_threadpool(desk.settled_document)))

    return act


async def _answer_fault(request: Request, fault: Exception) -> Response:
    return fault_answer(request, *fault_words(fault, "demur judge", {NotYours: 409}))


def fault_answer(request: Request, status: int, message: str) -> Response:
    """What is said of a fault: a page to who looks at pages, JSON to scripts."""
    path = path_of(request)
    script = path.endswith((".json", ".jsonl")) or path.startswith("/api/") or request.method not in ("GET", "HEAD")
    if script or "text/html" not in request.headers.get("accept", "text/html"):
        return JsonAnswer({"error": message}, status_code=status)
    theme = request.cookies.get(THEME_COOKIE, "")
    look: dict[str, Any] = {"theme": theme, "home": "/", "package": "demur.apps.judge"}
    if status == 401:
        came_by_link = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        about = {"path": path, "wrong": "token" in request.query_params, "came_by_link": came_by_link}
        return HTMLResponse(render("judge_entry.html", "Your link is needed", about, **look), status)
    document = {"error": message, "status": status}
    return HTMLResponse(render("fault.html", "This did not work", document, **look), status)


def serve(judging: Judging, address: Address, *, announce: Callable[[str], None]) -> None:
    """Serve a judging until the process is ended; `announce` is given the link of each role."""
    with judging.journal.served(), closing(listening_socket(address)) as listening:
        port = listening.getsockname()[1]
        for role in (*judging.plan.judges, LEAD):
            link = f"http://{address.linked_host}:{port}/?token={judging.token(role)}"
            announce(f"{'Lead (progress, agreement, disagreements)' if role == LEAD else role}: {link}")
        server_of(application(judging, hosts=address.hosts)).run(sockets=[listening])
