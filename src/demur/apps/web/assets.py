"""The files that pages are drawn with: the package's own scripts and styles, and the bundle of Vega."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from threading import Lock, Thread
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from demur.apps.web.site import Site
from demur.errors import DemurError

VIEW_FILES = {
    "page.css": "text/css",
    "explorer.css": "text/css",
    **dict.fromkeys(("explorer.js", "explorer_numbers.js", "explorer_reading.js"), "text/javascript"),
}
"""What pages share with the self-contained ones."""

BUNDLED = "globalThis.vegaEmbed = vegaEmbed;"

MAKING = f"""
import sys
from demur.views import rendering
sys.stdout.buffer.write(rendering.javascript({BUNDLED!r}).encode())
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
    return [
        Route("/static/vega.js", _sent(lambda: vega(site), "text/javascript")),
        Mount("/static", _Files(packages=[("demur.apps.web", "static")])),
        *(Route(f"/views/{name}", _sent(_view_file(name), kind)) for name, kind in VIEW_FILES.items()),
    ]


def prepare(site: Site) -> None:
    """Have the bundle of Vega at hand before the first page asks for it, without waiting for it here."""

    def making() -> None:
        with suppress(DemurError):  # who asks for the script is told what is missing
            vega(site)

    Thread(target=making, name="demur-vega", daemon=True).start()


_bundles: dict[str, bytes] = {}
_making = Lock()


def vega(site: Site) -> bytes:
    """Vega, Vega-Lite and Vega-Embed in one script; made once for each version and kept in the store.

    To make it takes a second or more and the memory of a JavaScript engine, so a process of its own does it.
    """
    signature = f"vega-{_bundler()}"
    with _making:
        if signature not in _bundles:
            _bundles[signature] = site.store.cached(signature) or _bundled(site, signature)
        return _bundles[signature]


def _bundled(site: Site, signature: str) -> bytes:
    apart = subprocess.run([sys.executable, "-c", MAKING], capture_output=True, check=False)
    made = apart.stdout if apart.returncode == 0 and apart.stdout else _bundled_here()
    site.store.keep(signature, made)
    return made


def _bundled_here() -> bytes:
    from demur.views import rendering

    return rendering.javascript(BUNDLED).encode()


@cache
def _bundler() -> str:
    try:
        return f"{version('vl-convert-python')}-{version('altair')}"
    except PackageNotFoundError:
        return "none"


def _view_file(name: str) -> Callable[[], bytes]:
    return lambda: files("demur").joinpath("views", name).read_bytes()


def _sent(content: Callable[[], bytes], kind: str) -> Callable[[Request], Any]:
    async def send(request: Request) -> Response:
        body = await run_in_threadpool(content)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)

    return send
