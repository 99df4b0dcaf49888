"""`demur serve`: the workbench in the browser."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from demur.errors import UsageError


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: `demur serve --port 8400`")(serve)


def serve(
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", help="Folder of the run store; else $DEMUR_STORE or the user's data folder.", metavar="FOLDER"
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; others than this machine's need --token.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8378,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="DEMUR_TOKEN",
            help="Whoever comes must know it; auto makes one. Asked for when --host is not this machine.",
        ),
    ] = None,
    max_upload: Annotated[
        int, typer.Option("--max-upload", min=1, help="Largest upload, in megabytes.", metavar="MB")
    ] = 2048,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """The workbench in the browser: runs, comparisons, errors, N-best lists, outcomes and gold standards."""
    try:
        from demur.apps.web.serving import Address
        from demur.apps.web.serving import serve as serve_store
    except ModuleNotFoundError as missing:
        if missing.name in ("starlette", "uvicorn", "jinja2"):
            raise UsageError("the workbench needs the extra: pip install 'demur[web]'") from None
        raise

    def told(text: str) -> None:
        typer.echo(text, err=True)
        link = next((word for word in text.split() if word.startswith("http://")), None)
        if open_browser and link:
            typer.launch(link)

    address = Address(host=host, port=port, token=token)
    with suppress(KeyboardInterrupt):  # to end a server is no failure
        serve_store(store, address, most_uploaded=max_upload * 1024**2, told=told)
