"""One self-contained HTML page: verdict first, then figures with captions and data; and charts saved to files."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from demur import __version__
from demur.core.io.writing import write_whole
from demur.core.show import pictures
from demur.core.show.charts import WIDTH, chart_table
from demur.core.show.html import (
    MOST_ROWS,
    THINNED_ROWS,
    data_block,
    data_table,
    evenly,
    frame_table,
    paragraphs,
    table_html,
    text_table,
    written,
)
from demur.core.show.markdown import visible
from demur.core.show.presentation import Presentation, ResultTable
from demur.errors import UsageError

DRAW = files("demur.core.show").joinpath("page.js").read_text(encoding="utf-8")
MOST_OPEN_ROWS = 30
STYLE = files("demur.core.show").joinpath("page.css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: sentences, then a fragment, then charts, then tables.

    `texts` are tables whose cells hold what people wrote, so they break anywhere. `fragment` is HTML that was made
    here, with its own figures; nothing in it is escaped again.
    """

    title: str
    sentences: tuple[str, ...] = ()
    charts: tuple[Any, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    texts: tuple[ResultTable, ...] = ()
    fragment: str = ""

    @classmethod
    def of(cls, presentation: Presentation, *, title: str | None = None, sentences: bool = True) -> Section:
        """The section that shows a result; `sentences=False` where the page's verdict already says them."""
        said = presentation.sentences if sentences else ()
        charts = tuple(figure() for figure in presentation.figures)
        return cls(presentation.title if title is None else title, said, charts, presentation.tables)


def page(
    title: str,
    sections: Sequence[Section],
    *,
    verdict: Sequence[str] = (),
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    signatures: Sequence[str] = (),
    seed: int | None = None,
    contents: bool = False,
    style: str = "",
    script: str = "",
) -> str:
    """A whole HTML document that needs nothing from outside: it reads offline, without scripts and on paper.

    Figures are there as pictures; where scripts run they become interactive. Whatever comes from data is escaped, and
    the page's own content policy lets no other script run. With `contents` the sections are listed, with links.
    `style` and `script` are what fragments need besides; `vegaEmbed` is there already.
    """
    drawn = script or any(section.charts for section in sections)
    code = pictures.javascript(DRAW + script).replace("</script", "<\\/script") if drawn else ""
    parts = [
        _head(title, code, style),
        '<body class="report">' if contents else "<body>",
        '<a class="skip" href="#main">Skip to the contents</a>' if contents else "",
        f"<header><h1>{written(title)}</h1>{_verdict(verdict)}{_warnings(warnings)}</header>",
        _contents(sections) if contents else "",
        f'<main id="main">{_sections(sections)}{_notes(notes)}</main>',
        _footer(signatures, seed),
        f"<script>{code}</script>" if code else "",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def presentation_page(presentation: Presentation, *, seed: int | None = None) -> str:
    """The page that shows one result; of one made of parts, its own tables and figures before those of the parts."""
    parts = [Section.of(part) for part in presentation.parts]
    if presentation.tables or not parts:
        parts.insert(0, Section.of(presentation, title="Figures and measures", sentences=False))
    return page(
        presentation.title,
        parts,
        verdict=presentation.sentences,
        notes=presentation.notes,
        warnings=presentation.warnings,
        signatures=presentation.signatures,
        seed=seed,
    )


def chart_page(chart: Any) -> str:
    """The page that shows one figure."""
    title, _ = pictures.titles(chart.to_dict())
    return page(title or "Figure", [Section("Figure", charts=(chart,))])


def _head(title: str, script: str, style: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><meta name="generator" content="demur {__version__}">'
        f"<title>{written(title)}</title><style>{STYLE}{style}</style></head>"
    )


def _policy(script: str) -> str:
    """Nothing from anywhere; of scripts only the page's own, known by its hash."""
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{own}'" if script else "'none'"
    rules = (
        "default-src 'none'",
        f"script-src {scripts}",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
    )
    return "; ".join((*rules, "form-action 'none'"))


def _verdict(sentences: Sequence[str]) -> str:
    return f'<div class="verdict">{paragraphs(sentences)}</div>' if sentences else ""


def _warnings(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    items = "".join(f"<li>{written(warning)}</li>" for warning in warnings)
    return f'<aside class="warnings" aria-label="Warnings"><strong>Warnings</strong><ul>{items}</ul></aside>'


def _contents(sections: Sequence[Section]) -> str:
    links = (
        f'<li><a href="#section-{place}">{written(section.title)}</a></li>'
        for place, section in enumerate(sections, start=1)
    )
    return f'<nav class="contents" aria-label="Contents"><ol>{"".join(links)}</ol></nav>'


def _sections(sections: Sequence[Section]) -> str:
    parts, number = [], 0
    for place, section in enumerate(sections, start=1):
        body = [f"<h2>{written(section.title)}</h2>", paragraphs(section.sentences), section.fragment]
        for chart in section.charts:
            number += 1
            body.append(_figure(chart, number))
        body += [_table(table) for table in section.tables]
        body += [_texts(table, first=place == 0) for place, table in enumerate(section.texts)]
        parts.append(f'<section id="section-{place}">{"".join(body)}</section>')
    return "\n".join(parts)


def _table(table: ResultTable) -> str:
    """A table, folded where it is long."""
    if len(table.rows) <= MOST_OPEN_ROWS:
        return table_html(table)
    return f"<details><summary>{written(table.title)} ({len(table.rows)} rows)</summary>{table_html(table)}</details>"


def _texts(table: ResultTable, *, first: bool) -> str:
    """A table of texts; all but the first are folded, as they take much room."""
    if first:
        return text_table(table)
    return f"<details><summary>{written(table.title)}</summary>{text_table(table)}</details>"


def _figure(chart: Any, number: int) -> str:
    spec = chart.to_dict()
    title, subtitle = pictures.titles(spec)
    about = str(spec.get("description", ""))
    bare = {key: value for key, value in spec.items() if key != "title"}
    picture = base64.b64encode(pictures.svg_of(bare).encode()).decode()
    return (
        f'<figure id="figure-{number}"><figcaption><h3>Figure {number}. {written(title)}</h3>'
        f'<p class="subtitle">{written(subtitle)}</p></figcaption>'
        f'<div class="chart" data-spec="spec-{number}">'
        f'<img alt="{escape(visible(about))}" src="data:image/svg+xml;base64,{picture}"></div>'
        f"{data_block(slim(_fluid(bare)), f'spec-{number}')}"
        f'<p class="description">{written(about)}</p>'
        f"{data_table(chart_table(chart), f'Data behind figure {number}')}</figure>"
    )


def _fluid(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec as wide as its place on the page, where it is a plot of the usual width."""
    return {**spec, "width": "container"} if spec.get("width") == WIDTH else spec


def slim(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with only those columns of its data that it draws or tells."""
    named = _fields({key: value for key, value in spec.items() if key != "datasets"})
    datasets = {
        name: [{key: row[key] for key in row if key in named} for row in rows]
        for name, rows in spec.get("datasets", {}).items()
    }
    return {**spec, "datasets": datasets}


def _fields(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["field"]} if isinstance(part.get("field"), str) else set()
        return own.union(*(_fields(value) for value in part.values()))
    if isinstance(part, list):
        return set().union(*(_fields(value) for value in part))
    return set(re.findall(r"datum\.(\w+)", part)) if isinstance(part, str) else set()


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    return f"<section><h2>Notes</h2><ul>{''.join(f'<li>{written(note)}</li>' for note in notes)}</ul></section>"


def _footer(signatures: Sequence[str], seed: int | None) -> str:
    lines = "".join(f"<li><code>{written(signature)}</code></li>" for signature in signatures)
    made = f"Made by demur {__version__}" + ("" if seed is None else f" with seed {seed}") + "."
    listed = (
        f"<details><summary>Signatures: how each number was made</summary><ul>{lines}</ul></details>" if lines else ""
    )
    return f"<footer>{listed}<p>{made}</p></footer>"


def presentation_document(presentation: Presentation) -> dict[str, Any]:
    """Everything that a presentation shows, its parts included."""
    return {
        "title": presentation.title,
        "sentences": list(presentation.sentences),
        "figures": [figure_document(figure()) for figure in presentation.figures],
        "tables": [table_document(table) for table in presentation.tables],
        "notes": list(presentation.notes),
        "warnings": list(presentation.warnings),
        "signatures": list(presentation.signatures),
        "parts": [presentation_document(part) for part in presentation.parts],
    }


def figure_document(chart: Any) -> dict[str, Any]:
    """A figure: its words, its spec without title, and the table of its data."""
    spec = chart.to_dict()
    title, subtitle = pictures.titles(spec)
    bare = {key: value for key, value in spec.items() if key != "title"}
    if bare.get("width") == WIDTH and not _in_pixels(bare):
        bare["width"] = "container"
    frame = chart_table(chart)
    shown = frame if frame.height <= MOST_ROWS else evenly(frame, THINNED_ROWS)
    table = table_document(frame_table(shown, "Data behind this figure"))
    about = str(spec.get("description", ""))
    return {
        "title": title,
        "subtitle": subtitle,
        "description": about,
        "spec": slim(bare),
        "table": {**table, "of": frame.height},
    }


def _in_pixels(spec: dict[str, Any]) -> bool:
    """Whether a layer stands at pixels of the plot, which would be another place in a wider one."""
    across = spec.get("encoding", {}).get("x", {})
    return ("scale" in across and across["scale"] is None) or any(map(_in_pixels, spec.get("layer", ())))


def table_document(table: ResultTable) -> dict[str, Any]:
    """A table of text."""
    return {"title": table.title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}


FORMATS: dict[str, Callable[[Any], str | bytes]] = {
    ".svg": pictures.svg,
    ".png": pictures.png,
    ".pdf": pictures.pdf,
    ".html": chart_page,
}
"""Writers by the ending of the file."""


def save_chart(chart: Any, path: str | Path) -> None:
    """Writes a figure to a file; the ending says in which form."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f'figures can be saved as {", ".join(FORMATS)}; got "{Path(path).name}"')
    write_whole(path, FORMATS[ending](chart))
