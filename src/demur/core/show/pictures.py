"""Charts become pictures by vl-convert, in a process beside this one and without a network."""

from __future__ import annotations

import atexit
import base64
import json
import os
import re
import subprocess
import sys
import threading
import zlib
from contextlib import suppress
from functools import cache
from html import escape
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from struct import pack, unpack
from typing import Any

from demur.core.io.writing import write_whole
from demur.core.show.charts import alt, spec_of, without_hover
from demur.core.show.drawing_process import DRAWN, read_message, write_message
from demur.core.show.safe import chart_safe, visible
from demur.errors import UsageError

if find_spec("vl_convert") is None:
    raise UsageError("figures need the extra: pip install 'demur[plots]'")

_PNG = b"\x89PNG\r\n\x1a\n"
_CLIP = re.compile(r"\bclip\d+\b")


class DrawingProcess:
    """A process that draws; one that the drawing library has ended is followed by another."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        atexit.register(self.close)

    def draw(self, function: str, *arguments: Any, **options: Any) -> bytes:
        """What a function of vl-convert gives; a fault says why there is no picture."""
        request = json.dumps({"function": function, "arguments": arguments, "options": options}).encode()
        with self._lock:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                write_message(process.stdin, request)
            answer = read_message(process.stdout)
            if answer is None:
                raise UsageError(f"the figure cannot be drawn: the drawing library ended with code {self.close()}")
        if answer[:1] != DRAWN:
            raise UsageError(f"the figure cannot be drawn: {answer[1:].decode()}")
        return answer[1:]

    def _start(self) -> subprocess.Popen[bytes]:
        script = str(files("demur.core.show").joinpath("drawing_process.py"))
        return subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def close(self) -> int:
        """Ends the process, and gives its code."""
        if self._process is None:
            return 0
        ended, self._process = self._process, None
        with suppress(OSError), ended:  # what was not yet written fails where it has ended by itself
            pass
        return ended.returncode


_drawing_process = DrawingProcess()


def svg(chart: Any) -> str:
    """The figure as an SVG image."""
    return svg_of(spec_of(chart))


def svg_of(spec: dict[str, Any]) -> str:
    """The figure of a Vega-Lite spec as an SVG image that says what it shows to those who cannot see it.

    Clipping paths are numbered from 1: vl-convert counts on from picture to picture.
    """
    spec = chart_safe(spec)
    picture = _drawing_process.draw("vegalite_to_svg", without_hover(spec), vl_version=_version()).decode()
    numbers = {name: f"clip{place}" for place, name in enumerate(dict.fromkeys(_CLIP.findall(picture)), start=1)}
    head, rest = _CLIP.sub(lambda match: numbers[match[0]], picture).split(">", 1)
    texts = {"title": titles(spec)[0], "desc": str(spec.get("description", ""))}
    words = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in texts.items() if text)
    return head.replace("<svg", '<svg role="img"', 1) + f">{words}{rest}"


def png(chart: Any, *, scale: float = 2.0) -> bytes:
    """The figure as a PNG image, at twice its size unless said otherwise."""
    return spec_png(spec_of(chart), scale=scale)


def spec_png(spec: dict[str, Any], *, scale: float = 2.0) -> bytes:
    """The figure of a Vega-Lite spec as a PNG image."""
    return _drawing_process.draw("vegalite_to_png", without_hover(spec), vl_version=_version(), scale=scale)


def compressed(png: bytes) -> bytes:
    """The same PNG image with its pixels compressed as far as zlib can: a few times smaller than vl-convert's."""
    chunks, place = [], len(_PNG)
    while place < len(png):
        (length,) = unpack(">I", png[place : place + 4])
        chunks.append((png[place + 4 : place + 8], png[place + 8 : place + 8 + length]))
        place += length + 12
    pixels = zlib.compress(zlib.decompress(b"".join(content for kind, content in chunks if kind == b"IDAT")), 9)
    kept = [chunk for chunk in chunks if chunk[0] != b"IDAT"]
    kept.insert(-1, (b"IDAT", pixels))  # the last one is IEND
    parts = (pack(">I", len(part)) + kind + part + pack(">I", zlib.crc32(kind + part)) for kind, part in kept)
    return _PNG + b"".join(parts)


def pdf(chart: Any) -> bytes:
    """The figure as a PDF page."""
    return _drawing_process.draw("vegalite_to_pdf", static_spec(chart), vl_version=_version())


def pdf_of(picture: str) -> bytes:
    """An SVG picture, a pixel of which is a point, as a PDF page."""
    return _drawing_process.draw("svg_to_pdf", picture)


def png_of(picture: str) -> bytes:
    """An SVG picture, a pixel of which is a point, as a PNG image of 300 pixels an inch."""
    return _drawing_process.draw("svg_to_png", picture, ppi=300)


def static_spec(chart: Any) -> dict[str, Any]:
    """The Vega-Lite spec without what only a pointer can use."""
    return without_hover(spec_of(chart))


def embedded(picture: str | bytes, about: str) -> str:
    """An SVG or PNG picture as an image inside a page, described for those who cannot see it."""
    kind, content = ("svg+xml", picture.encode()) if isinstance(picture, str) else ("png", picture)
    return f'<img alt="{escape(visible(about))}" src="data:image/{kind};base64,{base64.b64encode(content).decode()}">'


def titles(spec: dict[str, Any]) -> tuple[str, str]:
    """Title and subtitle of a spec, each in one line; empty where there is none."""
    title = spec.get("title", {})
    if isinstance(title, str):
        return title, ""
    text, below = title.get("text", ""), title.get("subtitle", [])
    return text if isinstance(text, str) else " ".join(text), below if isinstance(below, str) else " · ".join(below)


def javascript(snippet: str = "") -> str:
    """Vega, Vega-Lite and Vega-Embed in one script that ends with `snippet` and needs nothing from outside.

    The snippet, and every other script on the page, finds `vegaEmbed`.
    """
    return f"(() => {{{_bundle()}}})();\n(() => {{\n{snippet}}})();\n"


@cache
def _bundle() -> str:
    """The libraries in one script, kept on disk for later processes: putting them together takes seconds."""
    with suppress(OSError, RuntimeError, ValueError, zlib.error):
        return zlib.decompress(_bundle_file().read_bytes()).decode()
    script = _drawing_process.draw("javascript_bundle", "globalThis.vegaEmbed = vegaEmbed;", vl_version=_version())
    with suppress(RuntimeError, UsageError):  # there is no home folder, or nothing can be written there
        write_whole(_bundle_file(), zlib.compress(script))
    return script.decode()


def _bundle_file() -> Path:
    """Where this system keeps what programs can make again."""
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "demur" / "cache"
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches" / "demur"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "demur"
    return folder / f"vega-{version('vl-convert-python')}-{_version()}.js.z"


@cache
def _version() -> str | None:
    """The Vega-Lite version that Altair writes for, where vl-convert has it; else vl-convert's newest."""
    import vl_convert

    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return wanted if wanted in vl_convert.get_vegalite_versions() else None
