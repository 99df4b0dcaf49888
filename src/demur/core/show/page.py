"""One self-contained HTML page: verdict first, then figures with captions and data; and charts saved to files."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from demur import __version__
from demur.core.io.writing import write_whole
from demur.core.show import pictures
from demur.core.show.charts import WIDTH, chart_table, spec_of
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
        charts = tuple(figure() for figure in presentation.figures)
        shown = presentation.sentences if sentences else ()
        return cls(presentation.title if title is None else title, shown, charts, presentation.tables)


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
    links = "".join(
        f'<li><a href="#section-{place}">{written(section.title)}</a></li>'
        for place, section in enumerate(sections, start=1)
    )
    conclusion = f'<div class="verdict">{paragraphs(verdict)}</div>' if verdict else ""
    caution = f'<aside class="warnings" aria-label="Warnings"><strong>Warnings</strong>{_list(warnings)}</aside>'
    listed = _list(signatures, "<li><code>{}</code></li>")
    made = f"Made by demur {__version__}" + ("" if seed is None else f" with seed {seed}") + "."
    sources = f"<details><summary>Signatures: how each number was made</summary>{listed}</details>"
    parts = [
        _head(title, code, style),
        '<body class="report">' if contents else "<body>",
        '<a class="skip" href="#main">Skip to the contents</a>' if contents else "",
        f"<header><h1>{written(title)}</h1>{conclusion}{caution if warnings else ''}</header>",
        f'<nav class="contents" aria-label="Contents"><ol>{links}</ol></nav>' if contents else "",
        f'<main id="main">{_sections(sections)}'
        + (f"<section><h2>Notes</h2>{_list(notes)}</section></main>" if notes else "</main>"),
        f"<footer>{sources if signatures else ''}<p>{made}</p></footer>",
        f"<script>{code}</script>" if code else "",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _list(texts: Sequence[str], item: str = "<li>{}</li>") -> str:
    return f"<ul>{''.join(item.format(written(text)) for text in texts)}</ul>"


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
    title, _ = pictures.titles(spec_of(chart))
    return page(title or "Figure", [Section("Figure", charts=(chart,))])


def _head(title: str, script: str, style: str) -> str:
    """The head of a page that takes nothing from anywhere; of scripts only its own runs, known by its hash."""
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{own}'" if script else "'none'"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><meta name="generator" content="demur {__version__}">'
        f"<title>{written(title)}</title><style>{STYLE}{style}</style></head>"
    )


def _sections(sections: Sequence[Section]) -> str:
    parts, number = [], 0
    for place, section in enumerate(sections, start=1):
        body = [f"<h2>{written(section.title)}</h2>", paragraphs(section.sentences), section.fragment]
        for chart in section.charts:
            number += 1
            body.append(_figure(chart, number))
        for table in section.tables:
            rows, shown = len(table.rows), table_html(table)
            body.append(shown if rows <= MOST_OPEN_ROWS else _folded(f"{table.title} ({rows} rows)", shown))
        for before, table in enumerate(section.texts):  # they take much room, so all but the first are folded
            body.append(_folded(table.title, text_table(table)) if before else text_table(table))
        parts.append(f'<section id="section-{place}">{"".join(body)}</section>')
    return "\n".join(parts)


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{written(title)}</summary>{content}</details>"


def _figure(chart: Any, number: int) -> str:
    spec, words = _pieces(chart)
    about = words["description"]
    return (
        f'<figure id="figure-{number}"><figcaption><h3>Figure {number}. {written(words["title"])}</h3>'
        f'<p class="subtitle">{written(words["subtitle"])}</p></figcaption>'
        f'<div class="chart" data-spec="spec-{number}">{pictures.embedded(pictures.svg_of(spec), about)}</div>'
        f"{data_block(_in_its_place(spec), f'spec-{number}')}"
        f'<p class="description">{written(about)}</p>'
        f"{data_table(chart_table(chart), f'Data behind figure {number}')}</figure>"
    )


def _pieces(chart: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The spec of a chart without its title, and its title, subtitle and description."""
    spec = spec_of(chart)
    title, subtitle = pictures.titles(spec)
    words = {"title": title, "subtitle": subtitle, "description": str(spec.get("description", ""))}
    return {key: value for key, value in spec.items() if key != "title"}, words


def _in_its_place(spec: dict[str, Any]) -> dict[str, Any]:
    """The slim spec, as wide as its place on the page where it is a plot of the usual width.

    A plot with a layer at pixels, which would be another place in a wider one, keeps its width.
    """
    wide = spec.get("width") == WIDTH and not _in_pixels(spec)
    return slim({**spec, "width": "container"} if wide else spec)


def _in_pixels(spec: dict[str, Any]) -> bool:
    across = spec.get("encoding", {}).get("x", {})
    return ("scale" in across and across["scale"] is None) or any(map(_in_pixels, spec.get("layer", ())))


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
    spec, words = _pieces(chart)
    frame = chart_table(chart)
    shown = frame if frame.height <= MOST_ROWS else evenly(frame, THINNED_ROWS)
    table = table_document(frame_table(shown, "Data behind this figure"))
    return {**words, "spec": _in_its_place(spec), "table": {**table, "of": frame.height}}


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
