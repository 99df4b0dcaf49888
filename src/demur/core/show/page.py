"""One self-contained HTML page: verdict first, then figures with captions and data; and charts saved to files."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur import __version__
from demur.core.io.writing import write_whole
from demur.core.show import pictures
from demur.core.show.charts import WIDTH, chart_table, spec_of
from demur.core.show.html import (
    MOST_ROWS,
    THINNED_ROWS,
    data_block,
    data_table,
    escape_text,
    evenly,
    frame_table,
    paragraphs,
    table_html,
    text_table,
)
from demur.core.show.presentation import Presentation, ResultTable
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.core.show.papers import FigureLook

DRAW = files("demur.core.show").joinpath("page.js").read_text(encoding="utf-8")
MOST_OPEN_ROWS = 12
"""Rows up to which a table in a section is open; a longer one is folded."""

_ELSEWHERE = re.compile(r" \([^()]*-o page\.html[^()]*\)$")
"""What the title of a table in brief says of where the whole is; on a page it is further down."""

ACROSS = 100
"""Characters across a page in the type of its tables."""

MOST_VERDICT = 3
"""Sentences that stand over the first table and figure; the others follow below."""

STYLE = files("demur.core.show").joinpath("page.css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: sentences, then a fragment, then charts, all but the first folded, then tables.

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
    def of(cls, presentation: Presentation, *, title: str | None = None) -> Section:
        """The section that shows a result."""
        charts = tuple(figure() for figure in presentation.figures)
        return cls(presentation.title if title is None else title, presentation.sentences, charts, presentation.tables)


def page(
    title: str,
    sections: Sequence[Section],
    *,
    verdict: Sequence[str] = (),
    lead: Section | None = None,
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    signatures: Sequence[str] = (),
    seed: int | None = None,
    style: str = "",
    script: str = "",
) -> str:
    """A whole HTML document that needs nothing from outside: it reads offline, without scripts and on paper.

    Every page has one layout: the verdict, then the table and the figure of `lead`, which fill the first screen, then
    links to the sections, the sections, notes, and how the numbers were made. Figures are there as pictures; where
    scripts run they become interactive. Whatever comes from data is escaped, and the page's own content policy lets no
    other script run. `style` and `script` are what fragments need besides; `vegaEmbed` is there already.
    """
    shown = [*([] if lead is None else [lead]), *sections]
    drawn = script or any(section.charts for section in shown)
    code = pictures.javascript(DRAW + script).replace("</script", "<\\/script") if drawn else ""
    conclusion = f'<div class="verdict">{paragraphs(verdict)}</div>' if verdict else ""
    listed = _list(signatures, "<li><code>{}</code></li>")
    made = f"Made by demur {__version__}" + ("" if seed is None else f" with seed {seed}") + "."
    sources = f"<details><summary>Signatures: how each number was made</summary>{listed}</details>"
    first = (
        ""
        if lead is None
        else f'<div class="lead"><h2 class="unseen">Overview</h2>{_body(lead, 1, tables_first=True)}</div>'
    )
    parts = [
        _head(title, code, style),
        '<body><a class="skip" href="#main">Skip to the contents</a>',
        f"<header><h1>{escape_text(title)}</h1>{conclusion}</header>",
        f'<main id="main">{first}{_warnings(warnings)}{_contents(sections)}'
        + _sections(sections, 1 + (0 if lead is None else len(lead.charts)))
        + (f"<section><h2>Notes</h2>{_list(notes)}</section></main>" if notes else "</main>"),
        f"<footer>{sources if signatures else ''}<p>{made}</p></footer>",
        f"<script>{code}</script>" if code else "",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _warnings(warnings: Sequence[str]) -> str:
    caution = f'<aside class="warnings" aria-label="Warnings"><strong>Warnings</strong>{_list(warnings)}</aside>'
    return caution if warnings else ""


def _contents(sections: Sequence[Section]) -> str:
    """Links to the sections, where there are some to choose from."""
    links = "".join(
        f'<li><a href="#section-{place}">{escape_text(section.title)}</a></li>'
        for place, section in enumerate(sections, start=1)
    )
    return f'<nav class="contents" aria-label="Contents"><ol>{links}</ol></nav>' if len(sections) > 2 else ""


def _list(texts: Sequence[str], item: str = "<li>{}</li>") -> str:
    return f"<ul>{''.join(item.format(escape_text(text)) for text in texts)}</ul>"


def presentation_page(presentation: Presentation, *, seed: int | None = None) -> str:
    """The page that shows one result: its verdict, first table and main figure lead, the rest and its parts follow."""
    table = lead_table(presentation)
    tables = tuple(one for one in presentation.tables if one is not table)
    figures = [figure() for figure in presentation.figures]
    details = Section("Details", presentation.sentences[MOST_VERDICT:], tuple(figures[1:]), tables)
    own = [details] if any((details.sentences, details.charts, details.tables)) else []
    return page(
        presentation.title,
        [*own, *map(Section.of, (*presentation.parts, *presentation.appendix))],
        verdict=presentation.sentences[:MOST_VERDICT],
        lead=Section("", charts=tuple(figures[:1]), tables=() if table is None else (table,)),
        notes=presentation.notes,
        warnings=presentation.warnings,
        signatures=presentation.signatures,
        seed=seed,
    )


def lead_table(presentation: Presentation) -> ResultTable | None:
    """The table that leads a page: the first in brief, as far as its rows need to be lines, or as it is where short."""
    first = next(iter(presentation.tables), None)
    if first is None or first.brief is None:
        return None if first is None or len(first.rows) > MOST_OPEN_ROWS else first
    brief = first.brief
    while brief.brief is not None and not _fits(brief):
        brief = brief.brief
    return brief.titled(_ELSEWHERE.sub("", brief.title))


def _fits(table: ResultTable) -> bool:
    """Whether each row of a table is one line across a page, with the names of systems cut where they are long."""
    from demur.core.show.terminal import width_in_lines, with_short_systems

    return width_in_lines(with_short_systems(table, ACROSS)) <= ACROSS


def chart_page(chart: Any) -> str:
    """The page that shows one figure."""
    title, _ = pictures.titles(spec_of(chart))
    return page(title or "Figure", [], lead=Section("", charts=(chart,)))


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
        f"<title>{escape_text(title)}</title><style>{STYLE}{style}</style></head>"
    )


def _sections(sections: Sequence[Section], number: int) -> str:
    """The sections, their figures numbered from `number` on."""
    parts = []
    for place, section in enumerate(sections, start=1):
        heading = f"<h2>{escape_text(section.title)}</h2>"
        parts.append(f'<section id="section-{place}">{heading}{_body(section, number)}</section>')
        number += len(section.charts)
    return "\n".join(parts)


def _body(section: Section, number: int, *, tables_first: bool = False) -> str:
    """What a section holds."""
    charts = [_figure(chart, number + place, folded=place > 0) for place, chart in enumerate(section.charts)]
    tables = []
    for table in section.tables:
        rows, shown = len(table.rows), table_html(table)
        is_open = tables_first or rows <= MOST_OPEN_ROWS
        tables.append(shown if is_open else _folded(f"{table.title} ({rows} rows)", shown))
    for before, table in enumerate(section.texts):  # they take much room, so all but the first are folded
        tables.append(_folded(table.title, text_table(table)) if before else text_table(table))
    parts = [*tables, section.fragment, *charts] if tables_first else [section.fragment, *charts, *tables]
    return paragraphs(section.sentences) + "".join(parts)


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape_text(title)}</summary>{content}</details>"


LARGEST_DRAWING = 150_000
"""Characters up to which a figure is drawn as SVG on a page; one of more, such as a heat map of many cells, as PNG."""


def _picture(spec: dict[str, Any]) -> str | bytes:
    drawing = pictures.svg_of(spec)
    return drawing if len(drawing) <= LARGEST_DRAWING else pictures.compressed(pictures.spec_png(spec))


def _figure(chart: Any, number: int, *, folded: bool) -> str:
    spec, words = _pieces(chart)
    about, title = words["description"], f"Figure {number}. {words['title']}"
    heading = "" if folded else f"<h3>{escape_text(title)}</h3>"
    shown = (
        f'<figure id="figure-{number}"><figcaption>{heading}'
        f'<p class="subtitle">{escape_text(words["subtitle"])}</p></figcaption>'
        f'<div class="chart" data-spec="spec-{number}">{pictures.embedded(_picture(spec), about)}</div>'
        f"{data_block(_in_its_place(spec), f'spec-{number}')}"
        f'<p class="description">{escape_text(about)}</p>'
        f"{data_table(chart_table(chart), f'Data behind figure {number}')}</figure>"
    )
    return _folded(title, shown) if folded else shown


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
    rows = [list(row) for row in table.rows]
    return {"title": table.title, "columns": list(table.columns), "numeric": list(table.numeric), "rows": rows}


FORMATS: dict[str, Callable[[Any], str | bytes]] = {
    ".svg": pictures.svg,
    ".png": pictures.png,
    ".pdf": pictures.pdf,
    ".html": chart_page,
}
"""Writers by the ending of the file."""


def save_chart(chart: Any, path: str | Path) -> None:
    """Writes a figure to a file; the ending says in which form."""
    write_whole(path, figure_file(lambda: chart, path))


def figure_file(draw: Callable[[], Any], path: str | Path, look: FigureLook | None = None) -> str | bytes:
    """A figure as the content of a file of this name, as the look has it; a page shows it as it comes."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f'figures can be saved as {", ".join(FORMATS)}; got "{Path(path).name}"')
    if look is None or look.is_usual or ending == ".html":
        return FORMATS[ending](draw())
    from demur.core.show import papers

    picture = papers.laid_out(draw, look, pictures.svg_of)
    if ending == ".svg":
        return picture
    in_points = papers.sized(picture, look, unit="")
    return pictures.pdf_of(in_points) if ending == ".pdf" else pictures.png_of(in_points)
