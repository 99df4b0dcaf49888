"""The applications: the command line, the workbench, the servers of studies and of judges; they only wire."""

from collections.abc import Iterator
from contextlib import contextmanager

from demur.errors import UsageError


@contextmanager
def web_extra(what: str) -> Iterator[None]:
    """Say which extra is missing where a server is loaded without it; `what` needs it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name in ("starlette", "anyio", "uvicorn", "jinja2", "websockets"):
            raise UsageError(f"{what} the extra: pip install 'demur[web]'") from None
        raise
