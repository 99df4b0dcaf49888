"""Writes the pages of the docs that follow from the code: measures, commands, and the demo's figures.

Run by `make docs`; `tests/test_docs.py` checks that the pages are current.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from docs import cost

DOCS = Path(__file__).parent
HERE = "Made from the code by `make docs`; do not edit."


def measures_page() -> str:
    """The index of measures, from the registry and the docstrings."""
    from demur.measures.registry import MEASURES

    parts = ["# Measures", HERE]
    for name, measure in MEASURES.items():
        text = inspect.getdoc(type(measure)) or ""
        about, _, example = text.partition(">>>")
        parts.append(f"## {name}\n\n`{measure!r}` · better: {measure.better}\n\n{about.strip()}")
        if example:
            parts.append(f"```pycon\n>>>{example.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """The reference of commands, from the command line's own declarations."""
    import typer

    from demur.apps.cli.main import app

    group: Any = typer.main.get_command(app)
    parts = ["# Commands", HERE, "Exit codes: 0 fine; 1 a gate did not hold; 2 usage or bad input; 3 internal error."]
    for name, command in group.commands.items():
        rows = [_option_row(parameter) for parameter in command.params if parameter.name != "help"]
        table = "\n".join(["| option | meaning | default |", "|---|---|---|", *rows])
        parts.append(f"## demur {name}\n\n{inspect.cleandoc(command.help or '')}\n\n{command.epilog}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _option_row(parameter: Any) -> str:
    named = parameter.opts[0].startswith("-")
    names = ", ".join(f"`{option}`" for option in parameter.opts) if named else f"`{parameter.name.upper()}`"
    value = parameter.default
    shown = value is not None and value is not False and not callable(value) and value != []
    default = f"`{value}`" if shown else ""
    return f"| {names} | {(getattr(parameter, 'help', '') or '').replace('|', chr(92) + '|')} | {default} |"


def pages() -> dict[Path, str]:
    """Every generated page with its content."""
    return {DOCS / "measures.md": measures_page(), DOCS / "commands.md": commands_page(), DOCS / "cost.md": cost.page()}


def figures() -> None:
    """The figures of the README and the guide, from the demo."""
    from demur import api
    from demur.apps.cli.demonstration import CONDITIONS, answered
    from demur.data.corpora import museum
    from demur.views.export import save_chart
    from demur.views.presentation import of_comparison

    table = answered(museum())
    for condition in CONDITIONS:
        comparison = api.compare(table.filter(condition=condition))
        save_chart(of_comparison(comparison).figures[0](), DOCS / "images" / f"demo-{condition}.svg")
    save_chart(cost.chart(cost.figures()), DOCS / "images" / "scale.svg")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    figures()
    sys.stdout.write(f"pages and figures written to {DOCS}\n")
