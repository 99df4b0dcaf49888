"""The web application: pages with their JSON twins, actions, jobs, static files and faults; and how it is served."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any
from urllib.parse import quote

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from demur.apps.web.pages import adding, compare, errors, gold, nbest, outcome, runs, settings
from demur.apps.web.security import LOOPBACK, Guard, path_of
from demur.apps.web.site import (
    MOST_UPLOADED,
    Action,
    JsonAnswer,
    Page,
    PageContent,
    Query,
    Site,
    Waiting,
    message_of,
    render,
    site_of,
    steadily,
)
from demur.apps.web.worker import ENDED, UNLESS_TOLD, Limits
from demur.core.show.results import plain
from demur.errors import DemurError, UsageError
from demur.store.records import NoRunError
from demur.store.runs import Store

VIEW_FILES = {
    "page.css": ("core/show", "text/css"),
    "explorer.css": ("returns/explorer", "text/css"),
    **dict.fromkeys(
        ("explorer.js", "explorer_numbers.js", "explorer_reading.js"), ("returns/explorer", "text/javascript")
    ),
}
"""What pages share with the self-contained ones: the folder of each file, and its type."""

MAKING = """
import sys
from demur.core.show import pictures
sys.stdout.buffer.write(pictures.javascript().encode())
"""
"""What a process does to make the bundle; here it would hold up every answer meanwhile."""


class PackageFiles(StaticFiles):
    """Files that a browser keeps, and asks whether they are still the same."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """The file, or that it is still the same."""
        answer = super().file_response(*arguments, **options)
        answer.headers["cache-control"] = "no-cache"
        return answer


def asset_routes(site: Site) -> list[BaseRoute]:
    """Where the files are found."""
    return [Route("/static/vega.js", sender_of(lambda: vega(site), "text/javascript")), *shared_assets()]


def shared_assets() -> list[BaseRoute]:
    """Where the files are found that pages of every server share."""
    shared = [
        Route(f"/views/{name}", sender_of(files("demur").joinpath(folder, name).read_bytes, kind))
        for name, (folder, kind) in VIEW_FILES.items()
    ]
    return [Mount("/static", PackageFiles(packages=[("demur.apps.web", "static")])), *shared]


_bundles: dict[str, bytes] = {}
_making = Lock()


def vega(site: Site) -> bytes:
    """Vega, Vega-Lite and Vega-Embed in one script; made once for each version and kept in the store.

    To make it takes a second or more and the memory of a JavaScript engine, so a process of its own does it.
    """
    signature = vega_signature()
    with _making:
        if signature not in _bundles:
            _bundles[signature] = site.store.cached(signature) or _bundle(site, signature)
        return _bundles[signature]


def vega_signature() -> str:
    """What the script is kept under."""
    try:
        return f"vega-{version('vl-convert-python')}-{version('altair')}"
    except PackageNotFoundError:
        return "vega-none"


def _bundle(site: Site, signature: str) -> bytes:
    process = subprocess.run([sys.executable, "-c", MAKING], capture_output=True, check=False)
    script = process.stdout if process.returncode == 0 else b""
    if not script:
        from demur.core.show import pictures

        script = pictures.javascript().encode()
    site.store.keep(signature, script)
    return script


def sender_of(content: Callable[[], bytes], kind: str) -> Callable[[Request], Any]:
    """What sends a file that is made once, and again only to browsers that have another."""

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
    compare.ReportPage(),
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
    """What answers a request for a page: with its result if that is soon there, otherwise with a page that waits.

    A script that asks with `wait=1` gets the result when it is there, however long that takes.
    """

    async def show(request: Request) -> Response:
        query = _query_of(request)
        last: str | None = ""
        while True:  # a page may need several results, one after the other
            try:
                shown = await run_in_threadpool(page.show, site, query)
                return _answer(page, shown, request, as_json=as_json)
            except Waiting as wait:
                job, about = wait.job, wait.about
            if job.signature == last:
                raise HTTPException(500, "the result was made but could not be kept; is the disk full?")
            with anyio.move_on_after(None if query.text("wait") else PATIENCE):
                while job.state not in ENDED and not await request.is_disconnected():  # nobody waits for who has left
                    await anyio.sleep(0.02)
            if job.state != "done":
                status = 202 if job.state != "failed" else 500 if job.internal else 400
                waiting = PageContent(about, {"job": job.to_dict()}, status=status)
                return _answer(page, waiting, request, as_json=as_json, template="waiting.html")
            last = job.signature

    return show


def _answer(
    page: Page, shown: PageContent, request: Request, *, as_json: bool, template: str | None = None
) -> Response:
    document = plain(shown.document)
    if as_json:
        return JsonAnswer(document, status_code=shown.status)
    if shown.download:
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(shown.download, safe='')}"}
        return Response(document["html"], media_type="text/html; charset=utf-8", headers=headers)
    twin = f"{path_of(request)}.json" + (f"?{request.url.query}" if request.url.query else "")
    theme = request.cookies.get(THEME_COOKIE, "")
    html = render(
        template or page.template, shown.title, document, navigation=PAGES, twin=twin, path=page.path, theme=theme
    )
    return HTMLResponse(html, shown.status)


def _actor(site: Site, action: Action) -> Callable[[Request], Any]:
    async def act(request: Request) -> Response:
        body = await json_body(request)
        answer = await run_in_threadpool(action.act, site, _query_of(request), body)
        return JsonAnswer(plain(answer), status_code=action.status)

    return act


async def json_body(request: Request) -> dict[str, Any]:
    """The JSON object that a request to change something brings."""
    content = b""
    async for chunk in steadily(request.stream()):
        content += chunk
        if len(content) > LONGEST_BODY:
            raise HTTPException(413, "this is too much for one change")
    try:
        body = msgspec.json.decode(content) if content else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise HTTPException(400, "the body must be a JSON object") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "the body must be a JSON object")
    return body


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
        return JsonAnswer(plain(job.to_dict() if job else {}))

    return state


def _job_ending(site: Site) -> Callable[[Request], Any]:
    """Cancels a job; one that has failed is let go of, so that its page tries again."""

    async def end(request: Request) -> Response:
        number = _job_number(site, request)
        await run_in_threadpool(site.worker.cancel, number)
        job = site.worker.forget(number)
        return JsonAnswer(plain(job.to_dict() if job else {}))

    return end


async def _answer_fault(request: Request, fault: Exception) -> Response:
    return fault_answer(request, *fault_words(fault, "demur serve", {NoRunError: 404}))


def fault_words(fault: Exception, command: str, statuses: Mapping[type[DemurError], int]) -> tuple[int, str]:
    """The status of a fault and what is said of it; those of demur have status 400, or the one given for their kind."""
    if isinstance(fault, DemurError):
        return next((status for kind, status in statuses.items() if isinstance(fault, kind)), 400), message_of(fault)
    if isinstance(fault, HTTPException):
        return fault.status_code, "there is no such page" if fault.detail == "Not Found" else fault.detail
    where = f"This is a fault of demur; the terminal of {command} has more."
    return 500, f"internal error: {type(fault).__name__}. {where}"


def fault_answer(request: Request, status: int, message: str) -> Response:
    """What is said of a fault: a page to who looks at pages, JSON to scripts."""
    path = path_of(request)
    script = path.endswith(".json") or path.startswith(("/api/", "/jobs/")) or request.method not in ("GET", "HEAD")
    if script or "text/html" not in request.headers.get("accept", "text/html"):
        return JsonAnswer({"error": message}, status_code=status)
    theme = request.cookies.get(THEME_COOKIE, "")
    if status == 401:
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        came_by_link = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        about = {"path": path, "rest": rest, "wrong": "token" in request.query_params, "came_by_link": came_by_link}
        return HTMLResponse(render("entry.html", "Token needed", about, theme=theme), status)
    document = {"error": message, "status": status}
    return HTMLResponse(render("fault.html", "This did not work", document, navigation=PAGES, theme=theme), status)


SHORTEST_TOKEN = 16
"""Characters of a token that cannot be guessed in any useful time, if they are random."""

HEADERS_WITHIN = 10
"""Seconds in which the headers of a request must have come, and that a connection may stay without one."""

PARTING = 1
"""Seconds that requests under way have to end when the server is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the workbench listens."""

    host: str = "127.0.0.1"
    port: int = 8378
    token: str | None = None
    """What visitors must know; made where none is given."""
    open_to_all: bool = False
    """Whether everybody on this machine may come without a token."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host.lower() in LOOPBACK or ((ip := _ip(self.host)) is not None and ip.is_loopback)

    @property
    def hosts(self) -> frozenset[str] | None:
        """Names by which the server may be called; None for any, where other machines can reach it."""
        return LOOPBACK | {self.host.lower()} if self.loopback else None

    @property
    def linked_host(self) -> str:
        """The host as it stands in a link; where it listens at every address, this machine's name."""
        ip = _ip(self.host)
        host = socket.gethostname() if ip is not None and ip.is_unspecified else self.host
        return f"[{host}]" if ":" in host else host


def check_address(address: Address) -> Address:
    """The address with its token, made where none is given; without one only where nobody else can come."""
    if address.open_to_all:
        if not address.loopback:
            raise UsageError(f"--host {address.host} lets other machines come, so --no-token cannot be given")
        return replace(address, token=None)
    token = secrets.token_urlsafe(24) if address.token in (None, "auto") else address.token
    if len(token) < SHORTEST_TOKEN:
        raise UsageError(f"--token must have at least {SHORTEST_TOKEN} characters; without it one is made")
    if not (token.isascii() and token.isprintable() and token.split() == [token]):
        raise UsageError("--token may hold printable ASCII characters, no space; without it one is made")
    return replace(address, token=token)


def serve(
    root: Path | None,
    address: Address,
    *,
    most_uploaded: int = MOST_UPLOADED,
    limits: Limits = UNLESS_TOLD,
    announce: Callable[[str], None],
) -> None:
    """Serve the store until the process is ended; `announce` is told where, once it can be opened."""
    where = check_address(address)
    with closing(listening_socket(where)) as listening, closing(Store.open(root)) as store:
        site = site_of(store, limits, most_uploaded=most_uploaded, settings={"token": where.token is not None})
        app = application(site, hosts=where.hosts, token=where.token)
        for problem in (*site.problems, *store.problems):
            announce(f"note: {problem}")
        announce(f"The workbench is at {link(where, listening.getsockname()[1])}")
        announce(f"Runs are kept in {store.root}. Ctrl-C ends it.")
        try:
            server_of(app).run(sockets=[listening])
        finally:
            site.worker.close()


def server_of(app: ASGIApp, **sockets: Any) -> uvicorn.Server:
    """What serves an application over HTTP; `sockets` are uvicorn's options on WebSockets, which are off without."""
    config = uvicorn.Config(
        app,
        http=_PromptProtocol,
        log_level="error",
        access_log=False,  # links may hold the token
        server_header=False,
        proxy_headers=False,  # what proxies say is not trusted
        timeout_keep_alive=HEADERS_WITHIN,
        timeout_graceful_shutdown=PARTING,
        **({"ws": "none"} | sockets),
    )
    return _Server(config)


class _PromptProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Hangs up on who does not get to the end of the headers."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, fault: Exception | None) -> None:
        super().connection_lost(fault)
        self._unwatch()

    def _watch(self) -> None:
        """Have the deadline run until the headers of a request are complete, or have made it a WebSocket."""
        if self.transport.get_protocol() is not self or (self.cycle is not None and not self.cycle.response_complete):
            self._unwatch()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(HEADERS_WITHIN, self.transport.close)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # whoever is cut off by the end is no fault
        await super().shutdown(sockets)


def link(address: Address, port: int) -> str:
    """The link that opens the workbench, with the token where there is one."""
    query = f"?token={address.token}" if address.token else ""
    return f"http://{address.linked_host}:{port}/{query}"


@contextmanager
def page_that_opens(address: str) -> Iterator[Path]:
    """A file that only its owner can read and that leads on to a link: arguments of programs are seen by all users."""
    with TemporaryDirectory(prefix="demur-") as folder:
        page = Path(folder) / "open.html"
        content = f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">'
        page.write_text(content, encoding="utf-8")
        yield page


def listening_socket(address: Address) -> socket.socket:
    """A socket that listens; a port in use is said before anything else happens."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
    if sys.platform != "win32":  # there it would let two programs listen on one port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        listening.listen(128)
    except OSError as fault:
        listening.close()
        place, why = f"{address.host} port {address.port}", fault.strerror or str(fault)
        raise UsageError(f"cannot listen on {place}: {why}; try another with --port (0 takes a free one)") from None
    return listening


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
