"""An object store on loopback that speaks as much of S3 as reading takes: list a bucket, get an object in ranges."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

KEY = "a-key"


class ObjectStore(ThreadingHTTPServer):
    """A server of one bucket; `objects` are its contents by key, those in `gone` are listed but not there."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.gone: set[str] = set()
        self.bucket = f"bucket-{self.server_port}"  # Polars keeps what it knows of a bucket, credentials included

    @property
    def environment(self) -> dict[str, str]:
        """What points an engine at the store."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": "a-secret",
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A store that answers until the end of the block."""
    with ObjectStore() as store:
        threading.Thread(target=store.serve_forever, daemon=True).start()
        yield store
        store.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: ObjectStore
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        bucket, _, key = path.lstrip("/").partition("/")
        key = unquote(key)
        if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            self._refuse(403, "InvalidAccessKeyId")
        elif bucket != self.server.bucket:
            self._refuse(404, "NoSuchBucket")
        elif "list-type=2" in query:
            self._list(dict(parse_qsl(query)).get("prefix", ""))
        elif key not in self.server.objects or key in self.server.gone:
            self._refuse(404, "NoSuchKey")
        else:
            self._give(self.server.objects[key])

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def _list(self, prefix: str) -> None:
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>x</ETag><Size>{len(content)}</Size></Contents>"
            for key, content in self.server.objects.items()
            if key.startswith(prefix)
        )
        self._send(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())

    def _give(self, content: bytes) -> None:
        about = {"ETag": '"x"', "Last-Modified": formatdate(usegmt=True)}
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if asked is None:
            self._send(200, content, about)
            return
        size = len(content)
        start = int(asked[1]) if asked[1] else max(size - int(asked[2]), 0)
        stop = min(int(asked[2]), size - 1) if asked[1] and asked[2] else size - 1
        about["Content-Range"] = f"bytes {start}-{stop}/{size}"
        self._send(206, content[start : stop + 1], about)

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _send(self, status: int, content: bytes, about: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(about or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
