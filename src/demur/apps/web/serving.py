"""Starting the workbench: where it listens, who may come, and what the terminal says."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from demur.apps.web.security import LOOPBACK
from demur.apps.web.server import application
from demur.apps.web.site import MOST_UPLOADED, site_of
from demur.errors import UsageError
from demur.store.runs import Store

SHORTEST_TOKEN = 16
"""Characters of a token that cannot be guessed in any useful time, if they are random."""

PARTING = 1
"""Seconds that requests under way have to end when the server is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the workbench listens."""

    host: str = "127.0.0.1"
    port: int = 8378
    token: str | None = None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host.lower() in LOOPBACK or ((ip := _ip(self.host)) is not None and ip.is_loopback)

    @property
    def shown(self) -> str:
        """The host as it stands in a link; where it listens at every address, this machine's name."""
        ip = _ip(self.host)
        host = socket.gethostname() if ip is not None and ip.is_unspecified else self.host
        return f"[{host}]" if ":" in host else host


def checked(address: Address) -> Address:
    """The address with its token made if asked for; refused where others could come without one."""
    token = secrets.token_urlsafe(24) if address.token == "auto" else address.token
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise UsageError(f"--token must have at least {SHORTEST_TOKEN} characters; --token auto makes one")
    if token is not None and not (token.isascii() and token.isprintable() and token.split() == [token]):
        raise UsageError("--token may hold letters, digits and signs of ASCII, no space; --token auto makes one")
    if token is None and not address.loopback:
        raise UsageError(
            f"--host {address.host} lets other machines come, so a token is needed: --token auto makes one "
            "(without --host only this machine can come)"
        )
    return Address(host=address.host, port=address.port, token=token)


def serve(
    root: Path | None, address: Address, *, most_uploaded: int = MOST_UPLOADED, announce: Callable[[str], None]
) -> None:
    """Serve the store until the process is ended; `announce` is told where, once it can be opened."""
    where = checked(address)
    with closing(_listening(where)) as listening, closing(Store.open(root)) as store:
        site = site_of(store, most_uploaded=most_uploaded, settings={"token": where.token is not None})
        hosts = LOOPBACK | {where.host.lower()} if where.loopback else None
        app = application(site, hosts=hosts, token=where.token)
        for problem in (*site.problems, *store.problems):
            announce(f"note: {problem}")
        announce(f"The workbench is at {link(where, listening.getsockname()[1])}")
        announce(f"Runs are kept in {store.root}. Ctrl-C ends it.")
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,  # links may hold the token
            server_header=False,
            proxy_headers=False,  # what proxies say is not trusted
            ws="none",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=PARTING,
        )
        try:
            _Server(config).run(sockets=[listening])
        finally:
            site.worker.close()


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # whoever is cut off by the end is no fault
        await super().shutdown(sockets)


def link(address: Address, port: int) -> str:
    """The link that opens the workbench, with the token where there is one."""
    query = f"?token={address.token}" if address.token else ""
    return f"http://{address.shown}:{port}/{query}"


def _listening(address: Address) -> socket.socket:
    """A socket that listens; a port in use is said before anything else happens."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address.host, address.port))
        made.listen(128)
    except OSError as fault:
        made.close()
        place, why = f"{address.host} port {address.port}", fault.strerror or str(fault)
        raise UsageError(f"cannot listen on {place}: {why}; try another with --port (0 takes a free one)") from None
    return made


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
