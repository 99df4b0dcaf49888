"""The web server of a study: pages and sockets for participants, wizards and the experimenter, each by their token."""

from __future__ import annotations

import asyncio
import gc
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from demur import __version__
from demur.apps.study.engine import EXPERIMENTER, UNWRITTEN, Connection, StudyEngine, audio_name
from demur.apps.web.security import HEADERS, Guard, cookie_of, leading_to, same
from demur.apps.web.server import (
    Address,
    PackageFiles,
    fault_words,
    json_body,
    listening_socket,
    server_of,
    shared_assets,
)
from demur.apps.web.site import JsonAnswer, steadily, templates
from demur.core.io.writing import write_whole
from demur.core.links import role_token
from demur.errors import DemurError, UsageError
from demur.study.design import WozDesign, read_design
from demur.study.folder import token_digest
from demur.study.journal import JournalFault
from demur.study.messages import MESSAGES
from demur.study.protocol import Join, Refused, Spoken
from demur.study.views import wizard_constants

LONGEST_MESSAGE = 16 * 1024
"""Bytes of a message from a page."""
MOST_AUDIO = 8 * 1024**2
"""Bytes of a spoken utterance: four minutes of 16 kHz."""
RATES = {"participant": (4.0, 20.0), "wizard": (15.0, 60.0), EXPERIMENTER: (4.0, 20.0), "join": (5.0, 60.0)}
"""Messages a second that a page may send for long, and how many at once."""
MOST_REFUSED = 50
"""Messages refused for coming too fast after which a page is disconnected."""
PATHS = {"participant": "/participant", "wizard": "/wizard", EXPERIMENTER: "/experimenter"}
LONGEST_EXTERNAL = 100
SWITCH = 0.0005
"""Seconds after which another thread may run."""

TOO_FAST = "Too many messages; please wait a moment."
NO_ENTRY = "This page is for those who were given its link. Open the link again, in this browser."

SPEECH = {"permissions-policy": "camera=(), microphone=(self), geolocation=()"}


class Bucket:
    """Lets so many messages through a second, and some more at once."""

    def __init__(self, kind: str) -> None:
        self.rate, self.most = RATES[kind]
        self._left, self._then = self.most, time.monotonic()
        self.refused = 0

    def take(self) -> bool:
        """Whether another message may come now."""
        now = time.monotonic()
        self._left, self._then = min(self.most, self._left + self.rate * (now - self._then)), now
        if self._left < 1:
            self.refused += 1
            return False
        self._left -= 1
        return True


class StudySite:
    """The pages and sockets over an engine."""

    def __init__(self, engine: StudyEngine, origin: str = "") -> None:
        """`origin` is the address that others reach the server by, where a proxy stands before it."""
        self.engine, self.origin = engine, origin
        self.design: WozDesign = engine.design
        self.joining = Bucket("join")
        named = {"wizard": self.design.wizard.names, EXPERIMENTER: [""], "participant": [""]}
        tokens = {(role, name): role_token(engine.key, role, name) for role, names in named.items() for name in names}
        self.links = tokens
        """The token of each link."""
        self._people = {role: {token_digest(tokens[role, name]): name for name in named[role]} for role in named}

    def person(self, connection: HTTPConnection, role: str) -> str | None:
        """Who asks in a role, by the cookie of that role; None for nobody."""
        token = connection.cookies.get(self.cookie(connection, role), "")
        known = self.engine.state.by_token if role == "participant" else self._people[role]
        return known.get(token_digest(token)) if token else None

    def cookie(self, connection: HTTPConnection, role: str) -> str:
        """The name of the cookie of a role at this port."""
        return f"{cookie_of(connection)}_{role}"

    def from_here(self, connection: HTTPConnection) -> bool:
        """Whether a socket is opened by a page of this server."""
        origin = connection.headers.get("origin", "")
        try:
            place = urlsplit(origin).netloc.lower()
        except ValueError:
            return False
        own = {connection.headers.get("host", "").lower(), urlsplit(self.origin).netloc.lower()} - {""}
        return place in own

    def routes(self) -> list[BaseRoute]:
        """Every address of the server."""
        return [
            Route("/", self.front),
            Route("/join/{token}", self.invitation),
            Route("/join", self.join, methods=["POST"]),
            Route("/wizard/{token}", self.entry("wizard")),
            Route("/experimenter/{token}", self.entry(EXPERIMENTER)),
            Route("/participant", self.page("participant")),
            Route("/wizard", self.page("wizard")),
            Route("/experimenter", self.page(EXPERIMENTER)),
            Route("/audio", self.audio, methods=["POST"]),
            Route("/benchmark.svg", self.benchmark),
            *(WebSocketRoute(f"/ws/{role}", self.socket(role)) for role in PATHS),
            Mount("/static/study", PackageFiles(packages=[("demur.apps.study", "static")])),
            *shared_assets(),
        ]

    async def front(self, request: Request) -> Response:
        """What somebody sees who comes without a link."""
        return self._render(request, "closed.html", self.design.title, {"message": NO_ENTRY})

    async def invitation(self, request: Request) -> Response:
        """The first page of a participant, which makes nobody of who only looks at it."""
        if not same(request.path_params["token"], self.links["participant", ""]):
            raise HTTPException(403, NO_ENTRY)
        about = {"welcome": self.design.welcome, "title": self.design.title, "token": request.path_params["token"]}
        about["external"] = request.query_params.get("pid", "")[:LONGEST_EXTERNAL]
        return self._render(request, "join.html", self.design.title, about)

    async def join(self, request: Request) -> Response:
        """Make a participant of somebody who has the link, or find the one that this browser is already."""
        body = await json_body(request)
        if not same(str(body.get("token", "")), self.links["participant", ""]):
            raise HTTPException(403, NO_ENTRY)
        answer = JsonAnswer({"onward": PATHS["participant"]})
        if self.person(request, "participant") is not None:
            return answer
        if not self.joining.take():
            raise HTTPException(429, TOO_FAST)
        token = secrets.token_urlsafe(32)
        external = str(body.get("external", ""))[:LONGEST_EXTERNAL]
        try:
            await self.engine.submit(Join(token_digest(token), external))
        except Refused as refusal:
            raise HTTPException(409, refusal.reason) from None
        except JournalFault:
            raise HTTPException(503, UNWRITTEN) from None
        self._give(answer, request, "participant", token)
        return answer

    def entry(self, role: str) -> Callable[[Request], Any]:
        """The way in for wizards and the experimenter: the token of the link becomes a cookie."""

        async def enter(request: Request) -> Response:
            token = request.path_params["token"]
            if not any(same(token, kept) for (kind, _), kept in self.links.items() if kind == role):
                raise HTTPException(403, NO_ENTRY)
            answer = leading_to(request, PATHS[role])
            self._give(answer, request, role, token)
            return answer

        return enter

    def _give(self, answer: Response, request: Request, role: str, token: str) -> None:
        secure = request.url.scheme == "https" or self.origin.startswith("https:")
        name = self.cookie(request, role)
        answer.set_cookie(name, token, httponly=True, samesite="strict", secure=secure, max_age=60 * 86_400)

    def page(self, role: str) -> Callable[[Request], Any]:
        """The page of a role; all that it shows comes by its socket."""

        async def show(request: Request) -> Response:
            if self.person(request, role) is None:
                raise HTTPException(403, NO_ENTRY)
            return self._render(request, f"{role}.html", self.design.title, self._constants(role, request))

        return show

    def _constants(self, role: str, request: Request) -> dict[str, Any]:
        interface = self.design.interface
        if role == "participant":
            return {
                "title": self.design.title,
                "longest": interface.longest,
                "output": interface.output,
                "captions": interface.captions,
                "voice": interface.voice,
                "input": self.design.input.by,
            }
        if role == "wizard":
            return wizard_constants(self.design, self.engine.labels)
        base = self.origin or f"{request.url.scheme}://{request.headers.get('host', '')}"
        named = {name: f"{base}/wizard/{self.links['wizard', name]}" for name in self.design.wizard.names}
        return {
            "title": self.design.title,
            "participants": f"{base}/join/{self.links['participant', '']}",
            "wizards": named,
            "folder": str(self.engine.folder),
            "x": self.design.input.name,
        }

    async def audio(self, request: Request) -> Response:
        """A spoken utterance: kept in the folder of the study, then recognised."""
        person = self.person(request, "participant")
        if person is None:
            raise HTTPException(403, NO_ENTRY)
        content = b""
        async for chunk in steadily(request.stream()):
            content += chunk
            if len(content) > MOST_AUDIO:
                raise HTTPException(413, "This is too long; please say less at a time.")
        if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
            raise HTTPException(400, "This is no WAV file.")
        talk = self.engine.state.talk_of(person)
        if talk is None or talk.open_exchange is not None:
            raise HTTPException(409, "Please wait for the answer.")
        file = audio_name(talk.id, len(talk.exchanges) + 1)
        try:
            await run_in_threadpool(write_whole, self.engine.folder / file, content)
            await self.engine.submit(Spoken(file), person)
        except Refused as refusal:
            raise HTTPException(409, refusal.reason) from None
        except (JournalFault, UsageError):
            raise HTTPException(503, UNWRITTEN) from None
        return JsonAnswer({"ok": True})

    async def benchmark(self, request: Request) -> Response:
        """The benchmark graph of the trials so far, for the experimenter."""
        if self.person(request, EXPERIMENTER) is None:
            raise HTTPException(403, NO_ENTRY)
        from demur.study.export import benchmark_svg

        return Response(await run_in_threadpool(benchmark_svg, self.engine.folder), media_type="image/svg+xml")

    def socket(self, role: str) -> Callable[[WebSocket], Any]:
        """The socket of a role: messages in, acknowledgements and views out."""

        async def talk(socket: WebSocket) -> None:
            person = self.person(socket, role)
            if person is None or not self.from_here(socket):
                await socket.close(1008)
                return
            await socket.accept()
            connection = Connection(role, person)
            sender = asyncio.create_task(_send_frames(socket, connection))
            try:
                await self.engine.connect(connection)
                await self._receive(socket, connection)
            except (WebSocketDisconnect, JournalFault, RuntimeError):
                pass
            finally:
                sender.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await sender
                await self.engine.disconnect(connection)

        return talk

    async def _receive(self, socket: WebSocket, connection: Connection) -> None:
        decoder = msgspec.json.Decoder(MESSAGES[connection.role])
        bucket = Bucket(connection.role)
        while True:
            frame = await socket.receive()
            if frame["type"] == "websocket.disconnect":
                return
            content = frame.get("text") or frame.get("bytes") or b""
            if not bucket.take():
                connection.send(_reply({"refused": TOO_FAST}))
                if bucket.refused > MOST_REFUSED:
                    connection.end("too fast")
                continue
            await self._take(connection, decoder, content)

    async def _take(self, connection: Connection, decoder: Any, content: str | bytes) -> None:
        try:
            message = decoder.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            connection.send(_reply({"refused": "This message cannot be read."}))
            return
        try:
            await self.engine.take(message, connection)
        except Refused as refusal:
            connection.send(_reply({"refused": refusal.reason, "id": message.id}))
        except JournalFault:
            connection.send(_reply({"refused": UNWRITTEN, "id": message.id, "again": True}))

    def _render(self, request: Request, template: str, title: str, document: dict[str, Any]) -> Response:
        about = {"title": title, "document": document, "version": __version__, "language": "en"}
        return HTMLResponse(templates("demur.apps.study").get_template(template).render(about))

    def fault(self, request: Request, status: int, message: str) -> Response:
        """What is said of a request that is refused."""
        if request.method != "GET" or "text/html" not in request.headers.get("accept", "text/html"):
            return JsonAnswer({"error": message}, status_code=status)
        answer = self._render(request, "closed.html", "This did not work", {"message": message})
        answer.status_code = status
        return answer


async def _send_frames(socket: WebSocket, connection: Connection) -> None:
    """Send what waits, until the page is disconnected."""
    while True:
        await connection.wake.wait()
        connection.wake.clear()
        while connection.frames:
            await socket.send_text(connection.frames.popleft().decode())
        if connection.ended:
            await socket.send_text(_reply({"closed": connection.ended}).decode())
            await socket.close(1008 if connection.ended in ("too fast", "too slow") else 1000)
            return


def _reply(content: dict[str, Any]) -> bytes:
    return msgspec.json.encode(content)


def study_application(site: StudySite, *, hosts: frozenset[str] | None) -> ASGIApp:
    """The application, guarded as the workbench is."""

    @asynccontextmanager
    async def lifetime(_: Starlette) -> AsyncIterator[None]:
        await site.engine.start()
        yield
        await site.engine.close()

    async def refuse(request: Request, fault: Exception) -> Response:
        return site.fault(request, *fault_words(fault, "demur study serve", {}))

    faults = dict.fromkeys((DemurError, HTTPException, Exception), refuse)
    app = Starlette(routes=site.routes(), lifespan=lifetime, exception_handlers=faults)
    headers = HEADERS | (SPEECH if site.design.input.by == "speech" else {})
    return Guard(app, hosts, None, site.fault, headers=headers)


SOCKETS: dict[str, Any] = {
    "ws": "websockets-sansio",
    "ws_max_size": LONGEST_MESSAGE,
    "ws_per_message_deflate": False,  # the length of a frame is not to depend on what came before
    "ws_ping_interval": 20.0,
    "ws_ping_timeout": 20.0,
}


def serve_study(folder: Path, address: Address, *, origin: str = "", announce: Callable[[str], None]) -> None:
    """Serve a study until the process is ended; `announce` is given the links once they can be opened."""
    design = read_design(folder)
    if origin and urlsplit(origin).scheme not in ("http", "https"):
        raise UsageError(f'--url is an address such as https://study.example.org; got "{origin}"')
    with closing(listening_socket(address)) as listening:
        engine = StudyEngine(folder.resolve(), design)
        site = StudySite(engine, origin.rstrip("/"))
        base = site.origin or f"http://{address.linked_host}:{listening.getsockname()[1]}"
        announce(f"Experimenter: {base}/experimenter/{site.links[EXPERIMENTER, '']}")
        for name in design.wizard.names if design.wizards else ():
            announce(f"Wizard {name}: {base}/wizard/{site.links['wizard', name]}")
        announce(f"Participants: {base}/join/{site.links['participant', '']}")
        announce(f"Everything is kept in {folder}. Ctrl-C stops it; started again, all dialogues continue.")
        application = study_application(site, hosts=None if origin else address.hosts)
        _keep_pauses_short()
        server_of(application, **SOCKETS).run(sockets=[listening])


def _keep_pauses_short() -> None:
    """Let no page wait for the collector to go through all that was imported, or for a thread that works out noise."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH)
