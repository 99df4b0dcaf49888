"""The web application: pages with their JSON twins, actions, jobs, static files and faults."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from threading import Lock, Thread
from typing import Any

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from demur.apps.web.pages import adding, compare, errors, gold, nbest, outcome, runs, settings
from demur.apps.web.rendering import rendered
from demur.apps.web.security import Guard, path_of
from demur.apps.web.site import Action, Page, PageContent, Query, Site, Waiting, message_of
from demur.apps.web.worker import ENDED
from demur.core.show.results import plain
from demur.errors import DemurError
from demur.store.records import NoRunError

VIEW_FILES = {
    "page.css": ("core/show", "text/css"),
    "explorer.css": ("returns/explorer", "text/css"),
    **dict.fromkeys(
        ("explorer.js", "explorer_numbers.js", "explorer_reading.js"), ("returns/explorer", "text/javascript")
    ),
}
"""What pages share with the self-contained ones: the folder of each file, and its type."""

BUNDLED = "globalThis.vegaEmbed = vegaEmbed;"

MAKING = f"""
import sys
from demur.core.show import pictures
sys.stdout.buffer.write(pictures.javascript({BUNDLED!r}).encode())
"""
"""What a process does to make the bundle; here it would hold up every answer meanwhile."""


class _Files(StaticFiles):
    """Files that a browser keeps, and asks whether they are still the same."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        answer = super().file_response(*arguments, **options)
        answer.headers["cache-control"] = "no-cache"
        return answer


def asset_routes(site: Site) -> list[BaseRoute]:
    """Where the files are found."""
    shared = [
        Route(f"/views/{name}", _sender(files("demur").joinpath(folder, name).read_bytes, kind))
        for name, (folder, kind) in VIEW_FILES.items()
    ]
    return [
        Route("/static/vega.js", _sender(lambda: vega(site), "text/javascript")),
        Mount("/static", _Files(packages=[("demur.apps.web", "static")])),
        *shared,
    ]


_bundles: dict[str, bytes] = {}
_making = Lock()


def vega(site: Site) -> bytes:
    """Vega, Vega-Lite and Vega-Embed in one script; made once for each version and kept in the store.

    To make it takes a second or more and the memory of a JavaScript engine, so a process of its own does it.
    """
    try:
        signature = f"vega-{version('vl-convert-python')}-{version('altair')}"
    except PackageNotFoundError:
        signature = "vega-none"
    with _making:
        if signature not in _bundles:
            _bundles[signature] = site.store.cached(signature) or _bundle(site, signature)
        return _bundles[signature]


def _bundle(site: Site, signature: str) -> bytes:
    apart = subprocess.run([sys.executable, "-c", MAKING], capture_output=True, check=False)
    made = apart.stdout if apart.returncode == 0 else b""
    if not made:
        from demur.core.show import pictures

        made = pictures.javascript(BUNDLED).encode()
    site.store.keep(signature, made)
    return made


def _sender(content: Callable[[], bytes], kind: str) -> Callable[[Request], Any]:
    async def send(request: Request) -> Response:
        body = await run_in_threadpool(content)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)

    return send


PAGES: tuple[Page, ...] = (
    runs.RunsPage(),
    runs.RunPage(),
    compare.ComparePage(),
    errors.ErrorsPage(),
    errors.ErrorRowsPage(),
    nbest.ListRunsPage(),
    nbest.ListsPage(),
    nbest.TurnsPage(),
    outcome.OutcomePage(),
    outcome.WhatIfPage(),
    gold.GoldRunsPage(),
    gold.GoldPage(),
    settings.SettingsPage(),
)
"""Every page, in the order of the navigation."""

ACTIONS: tuple[Action, ...] = (*runs.ACTIONS, *settings.ACTIONS, *adding.ACTIONS)

LONGEST_BODY = 64 * 1024
"""Bytes of an action's JSON; uploads have a way and a limit of their own."""

PATIENCE = 0.4
"""Seconds that a page waits for its result before it shows that it is waiting."""

THEME_COOKIE = "demur_theme"


def application(site: Site, *, hosts: frozenset[str] | None, token: str | None = None) -> ASGIApp:
    """The web application over a site, guarded: also what it says of its own faults has the security headers."""

    def prepare_vega() -> None:
        with suppress(DemurError):  # who asks for the script is told what is missing
            vega(site)

    @asynccontextmanager
    async def lifetime(_: Starlette) -> AsyncIterator[None]:
        site.worker.warm()
        Thread(target=prepare_vega, name="demur-vega", daemon=True).start()
        yield
        await run_in_threadpool(site.worker.close)

    routes: list[BaseRoute] = [Route("/", lambda _: RedirectResponse("/runs"))]
    for page in PAGES:  # the twin first, as a value in the page's path would take its ending for its own
        routes.append(Route(f"{page.path}.json", _shower(site, page, as_json=True)))
        routes.append(Route(page.path, _shower(site, page, as_json=False)))
    routes += [
        *(Route(action.path, _actor(site, action), methods=[action.method]) for action in ACTIONS),
        Route("/errors.csv", errors.downloader(site)),
        Route("/api/uploads", adding.receiver(site), methods=["POST"]),
        Route("/jobs/{number}.json", _job_state(site)),
        Route("/jobs/{number}", _job_ending(site), methods=["DELETE"]),
        *asset_routes(site),
    ]
    faults = dict.fromkeys((DemurError, HTTPException, Exception), _answer_fault)
    return Guard(Starlette(routes=routes, lifespan=lifetime, exception_handlers=faults), hosts, token, fault_answer)


def _query_of(request: Request) -> Query:
    path = {name: str(value) for name, value in request.path_params.items()}
    return Query(path, request.query_params.multi_items())


def _shower(site: Site, page: Page, *, as_json: bool) -> Callable[[Request], Any]:
    async def show(request: Request) -> Response:
        query = _query_of(request)
        try:
            shown = await run_in_threadpool(page.show, site, query)
        except Waiting as wait:
            return await _awaited(site, page, request, query, wait, as_json=as_json)
        return _answer(page, shown, request, as_json=as_json)

    return show


async def _awaited(site: Site, page: Page, request: Request, query: Query, wait: Waiting, *, as_json: bool) -> Response:
    """The page with its result if that is soon there, else the page that waits for it.

    A script that asks with `wait=1` gets the result when it is there, however long that takes.
    """
    job = wait.job
    with anyio.move_on_after(None if query.text("wait") else PATIENCE):
        while job.state not in ENDED and not await request.is_disconnected():  # nobody waits for who has left
            await anyio.sleep(0.02)
    if job.state == "done":
        try:
            shown = await run_in_threadpool(page.show, site, query)
        except Waiting as again:  # a page may need several results, one after the other
            if again.job.signature == job.signature:
                raise HTTPException(500, "the result was made but could not be kept; is the disk full?") from None
            return await _awaited(site, page, request, query, again, as_json=as_json)
        return _answer(page, shown, request, as_json=as_json)
    status = 202 if job.state != "failed" else 500 if job.internal else 400
    waiting = PageContent(wait.about, {"job": job.to_dict()}, status=status)
    return _answer(page, waiting, request, as_json=as_json, template="waiting.html")


def _answer(
    page: Page, shown: PageContent, request: Request, *, as_json: bool, template: str | None = None
) -> Response:
    document = plain(shown.document)
    if as_json:
        return JSONResponse(document, status_code=shown.status)
    twin = f"{path_of(request)}.json" + (f"?{request.url.query}" if request.url.query else "")
    theme = request.cookies.get(THEME_COOKIE, "")
    html = rendered(
        template or page.template, shown.title, document, navigation=PAGES, twin=twin, path=page.path, theme=theme
    )
    return HTMLResponse(html, shown.status)


def _actor(site: Site, action: Action) -> Callable[[Request], Any]:
    async def act(request: Request) -> Response:
        body = await _body(request)
        answer = await run_in_threadpool(action.act, site, _query_of(request), body)
        return JSONResponse(plain(answer), status_code=action.status)

    return act


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > LONGEST_BODY:
            raise HTTPException(413, "this is too much for one change")
    try:
        found = msgspec.json.decode(content) if content else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise HTTPException(400, "the body must be a JSON object") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the body must be a JSON object")
    return found


def _job_number(site: Site, request: Request) -> int:
    """The number of a job that is remembered."""
    text = request.path_params["number"]
    number = int(text) if text.isdecimal() and len(text) < 20 else -1  # no longer than Python cares to read
    if site.worker.job(number) is None:
        raise HTTPException(404, "there is no such job; it may have been forgotten")
    return number


def _job_state(site: Site) -> Callable[[Request], Any]:
    async def state(request: Request) -> Response:
        job = site.worker.job(_job_number(site, request))
        return JSONResponse(plain(job.to_dict() if job else {}))

    return state


def _job_ending(site: Site) -> Callable[[Request], Any]:
    """Cancels a job; one that has failed is let go of, so that its page tries again."""

    async def end(request: Request) -> Response:
        number = _job_number(site, request)
        await run_in_threadpool(site.worker.cancel, number)
        job = site.worker.forget(number)
        return JSONResponse(plain(job.to_dict() if job else {}))

    return end


async def _answer_fault(request: Request, fault: Exception) -> Response:
    if isinstance(fault, DemurError):
        return fault_answer(request, 404 if isinstance(fault, NoRunError) else 400, message_of(fault))
    if isinstance(fault, HTTPException):
        message = "there is no such page" if fault.detail == "Not Found" else fault.detail
        return fault_answer(request, fault.status_code, message)
    internal = (
        f"internal error: {type(fault).__name__}. This is a fault of demur; the terminal of demur serve has more."
    )
    return fault_answer(request, 500, internal)


def fault_answer(request: Request, status: int, message: str) -> Response:
    """What is said of a fault: a page to who looks at pages, JSON to scripts."""
    path = path_of(request)
    script = path.endswith(".json") or path.startswith(("/api/", "/jobs/")) or request.method not in ("GET", "HEAD")
    if script or "text/html" not in request.headers.get("accept", "text/html"):
        return JSONResponse({"error": message}, status_code=status)
    theme = request.cookies.get(THEME_COOKIE, "")
    if status == 401:
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        about = {"path": path, "rest": rest, "wrong": "token" in request.query_params}
        return HTMLResponse(rendered("entry.html", "Who is there?", about, theme=theme), status)
    document = {"error": message, "status": status}
    return HTMLResponse(rendered("fault.html", "This did not work", document, navigation=PAGES, theme=theme), status)
