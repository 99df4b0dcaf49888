"""Who may ask: by which name, with which token, and for changes only pages from here; and the headers of answers."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROLE = "demur.role"
"""Where the role of who asks stands in the scope of a request."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE = frozenset({"GET", "HEAD"})
OPEN_TO_ALL = ("/static/", "/views/")
"""Files of the package itself, which the page that asks for the token needs too; nothing of the user's is there."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing from outside, no script but the server's own files, no page of anybody's around these.

Vega draws under it: it sets styles through the object model, which a policy does not bind, and is told to add no
style sheet and to walk expressions instead of compiling them (`static/figures.js`).
"""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

Refusing = Callable[[Request, int, str], Response]
"""Makes the answer to a request that is refused: the request, the status and the reason."""

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:@/\s]+)(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class Guard:
    """ASGI application around another: refuses who may not ask, and puts the security headers on every answer."""

    app: ASGIApp
    hosts: frozenset[str] | None
    """Names by which this server may be called; None lets any (then a token is asked for)."""
    token: str | Mapping[str, str] | None
    """What visitors must know; where they have roles, the token of each role."""
    refusing: Refusing
    asking: str = "a token is needed: open the link that demur serve printed, or send it as a bearer token"
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "websocket" and not self._is_named(Headers(scope=scope)):
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await (self._refusal(Request(scope)) or self.app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        if not self._is_named(request.headers):
            message = "this server answers only to its own name; open it as http://localhost"
            return self.refusing(request, 421, message)
        if fault := _foreign(request):
            return self.refusing(request, 403, fault)
        if self.token is None:
            return None
        return self._entry(request, {"": self.token} if isinstance(self.token, str) else self.token)

    def _is_named(self, headers: Headers) -> bool:
        """Whether the server was called by a name of its own."""
        return self.hosts is None or host_of(headers) in self.hosts

    def _entry(self, request: Request, tokens: Mapping[str, str]) -> Response | None:
        """Nothing where the token is known; else the way in, by a link with the token or a request for it.

        A link is heeded before what the browser kept: whoever opens the link of another role means to change it.
        """
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        cookie, linked = request.cookies.get(cookie_of(request), ""), request.query_params.get("token", "")
        known = [role for role, token in tokens.items() if same(cookie, stamp(token)) or same(bearer, token)]
        named = [role for role, token in tokens.items() if same(linked, token)]
        if request.method in SAFE and named and named != known:
            return _let_in(request, tokens[named[0]])
        if known:
            request.scope[ROLE] = known[0]
            return None
        if request.scope["path"].startswith(OPEN_TO_ALL) and request.method in SAFE:
            return None
        return self.refusing(request, 401, self.asking)


def stamp(token: str) -> str:
    """What a browser keeps instead of the token."""
    return hashlib.sha256(f"demur {token}".encode()).hexdigest()


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are equal, in time that does not tell how far."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def cookie_of(connection: HTTPConnection) -> str:
    """The name of the cookie: browsers share cookies between ports, so that two servers would take each other's."""
    match = _HOST.fullmatch(connection.headers.get("host", ""))
    return f"demur_token_{(match and match[2]) or 'default'}"


def host_of(headers: Headers) -> str:
    """The name by which the server was called; empty where there is none to be trusted."""
    match = _HOST.fullmatch(headers.get("host", ""))
    return match[1].strip("[]").lower() if match else ""


def path_of(request: Request) -> str:
    """The path that was asked for, as it stands in a link.

    It is taken from what is routed by, never from the whole address: that begins with the host as the asker names it,
    so that a host of `x/static/` would make any path look like one that is open to all.
    """
    return "/" + quote(request.scope["path"]).lstrip("/")  # two slashes would lead to another host


def _let_in(request: Request, token: str) -> Response:
    """The way in, which leaves the token out of the address."""
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
    path = path_of(request)
    onward = f"{path}?{urlencode(rest)}" if rest else path
    answer = leading_to(request, onward)
    secure = request.url.scheme == "https"
    answer.set_cookie(cookie_of(request), stamp(token), httponly=True, samesite="strict", secure=secure)
    return answer


def leading_to(request: Request, onward: str) -> Response:
    """An answer that leads to another page and may set a strict cookie, wherever the browser came from.

    No other site makes a browser send a strict cookie, so one that followed a link from elsewhere would not send it on
    a redirect either; it is given a page that goes on by itself, which is of this site.
    """
    if request.headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return RedirectResponse(onward, status_code=303)
    refresh = f'<meta http-equiv="refresh" content="0; url={escape(onward)}">'
    return HTMLResponse(f'<!doctype html><html lang="en"><title>demur</title>{refresh}')


def _foreign(request: Request) -> str:
    """Why a request may not come from where it comes from; empty where it may.

    Other sites may link to pages here, nothing else: what changes something comes from a page of this server, and so
    does every request that is not for a page to go to, as those start work and their time tells of the data.
    """
    headers = request.headers
    site = headers.get("sec-fetch-site", "same-origin")
    from_here = site in ("same-origin", "none")
    if request.method in SAFE:
        visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return "" if from_here or visit else "this request comes from another site"
    origin = headers.get("origin")
    try:
        own = origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        own = False
    if not from_here or not own:
        return "this request comes from another site"
    if headers.get("x-demur") != "1":
        return "requests that change something carry the header X-Demur: 1"
    return ""
