import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import polars as pl
import pytest

from demur import __version__
from demur.core.show import pictures
from demur.core.show.html import data_table, table_html
from demur.core.show.page import Section, page, presentation_page, slim
from demur.core.show.presentation import ResultTable
from demur.returns import presentation
from demur.returns.charts.error_return import error_return_chart
from demur.returns.charts.readings import roc_chart
from demur.returns.evaluate import evaluate
from demur.returns.table import responses

EVIL = '<script>alert("x")</script> & </script>'


class Reader(HTMLParser):
    """Notes tags, identifiers and the text of scripts of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.scripts, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data):
        if self.lasttag == "script" and self.scripts and not self.scripts[-1][1]:
            self.scripts[-1] = (self.scripts[-1][0], data)


def read(document):
    reader = Reader()
    reader.feed(document)
    return reader


@pytest.fixture(scope="module")
def document(evaluations):
    table = ResultTable("Few", ("name", "value"), (("a", "1"),))
    return page(
        "Three systems",
        [Section("Curves", ("One sentence.",), (error_return_chart(evaluations), roc_chart(evaluations)), (table,))],
        verdict=["better errs less."],
        notes=["a note"],
        warnings=["a warning"],
        signatures=[evaluations[0].signature],
        seed=7,
    )


def test_a_page_holds_verdict_figures_tables_notes_warnings_and_its_making(document, evaluations):
    reader = read(document)
    assert reader.tags.count("figure") == 2
    assert len(reader.ids) == len(set(reader.ids))
    for words in ("better errs less.", "One sentence.", "a note", "a warning", "<caption>Few</caption>"):
        assert words in document
    assert evaluations[0].signature in document
    assert f"demur {__version__} with seed 7" in document


def test_a_page_takes_nothing_from_outside(document):
    sources = [value for _, name, value in read(document).attributes if name in ("src", "href")]
    assert sources
    assert all(value.startswith(("data:image/svg+xml;base64,", "#")) for value in sources)


def test_only_the_page_s_own_script_may_run(document):
    reader = read(document)
    (policy,) = [
        value for tag, name, value in reader.attributes if (tag, name) == ("meta", "content") and "src" in value
    ]
    (own,) = [text for attributes, text in reader.scripts if "type" not in attributes]
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_pictures_stand_in_where_scripts_do_not_run(document):
    pictures = re.findall(r'<img alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)"', document)
    assert len(pictures) == 2
    for about, picture in pictures:
        assert len(about) > 40
        assert base64.b64decode(picture).startswith(b"<svg")


def test_data_tables_are_thinned_evenly_and_say_so(document, evaluations):
    shown = re.findall(r"<summary>Data behind figure 1 \((\d+) of (\d+) rows, evenly spaced\)", document)
    assert shown == [("200", str(sum(one.curve.threshold.size for one in evaluations)))]


def test_numbers_break_before_their_intervals_only_and_reasons_anywhere():
    reason = "none: ties leave no common cutoff near a non-return rate of 20 %"
    rows = (("a", "0.2 (0.1 to 0.3)", "3 : 4"), ("b", "–", reason))
    shown = table_html(ResultTable("", ("system", "AUGRC", "McNemar"), rows))
    assert '<td class="n">0.2 <wbr>(0.1 to 0.3)</td>' in shown
    assert f'<td class="n reason">{reason.replace(" %", "&nbsp;%")}</td>' in shown


@pytest.mark.parametrize(("rows", "told"), [(250, "250 rows"), (251, "200 of 251 rows, evenly spaced")])
def test_tables_up_to_250_rows_are_shown_whole(rows, told):
    shown = data_table(pl.DataFrame({"a": range(rows)}), "Data")
    assert f"<summary>Data ({told})</summary>" in shown
    assert shown.count("<tr>") == int(told.split()[0]) + 1


@pytest.fixture(scope="module")
def evil(simulated):
    return evaluate(responses(simulated(EVIL, n=30)), replicates=20)


def test_whatever_comes_from_data_is_escaped(evil):
    shown = presentation.of_scores(evil)
    document = page(
        EVIL,
        [Section.of(shown, title=EVIL)],
        verdict=[EVIL],
        notes=[EVIL],
        warnings=[EVIL],
        signatures=[EVIL],
    )
    assert "<script>alert" not in document
    kinds = [attributes.get("type") for attributes, _ in read(document).scripts]
    assert kinds == ["application/json"] * (len(kinds) - 1) + [None]
    for attributes, text in read(document).scripts:
        if attributes.get("type") == "application/json":
            assert "alert" in json.dumps(json.loads(text))


def test_results_in_notebooks_are_escaped_too(evil):
    (one,) = evil
    for result in (one, one.curve):
        assert "<script>" not in result._repr_html_()


def test_every_result_shows_itself_in_a_notebook(evaluations, comparison, choice):
    for result in (evaluations[0], evaluations[0].curve, comparison, comparison.pairs[0], choice):
        shown = result._repr_html_()
        assert shown.startswith("<div>")
        assert result.chart().to_dict()["title"]


def test_a_presentation_becomes_a_page_with_its_sentences_on_top(evaluations):
    shown = presentation.of_scores(evaluations[:1])
    document = presentation_page(shown, seed=3)
    assert document.index('class="verdict"') < document.index("<figure")
    assert document.count("<figure ") == len(shown.figures)


def test_long_tables_are_folded():
    rows = tuple((str(place),) for place in range(31))
    assert "<summary>Long (31 rows)</summary>" in page("T", [Section("S", tables=(ResultTable("Long", ("a",), rows),))])


def test_a_page_without_figures_carries_no_script():
    document = page("T", [Section("S", ("text",))])
    assert "<script" not in document
    assert "script-src 'none'" in document


def test_a_slim_spec_keeps_only_what_it_draws():
    spec = {
        "layer": [{"encoding": {"x": {"field": "kept"}}, "transform": [{"filter": "datum.kind == 1"}]}],
        "datasets": {"d": [{"kept": 1, "kind": 1, "other": 2}]},
    }
    assert slim(spec)["datasets"] == {"d": [{"kept": 1, "kind": 1}]}


def test_numbers_are_to_the_right_and_names_to_the_left():
    rows = (("a", "3.2 % (1.0 to 5.0)", "-0.03", "< 0.001", "model-7b"), ("b", "–", "baseline", "", "7b"))
    table = ResultTable("Few", ("system", "error", "difference", "p", "name"), rows)
    assert table.numeric == (False, True, True, True, False)
    assert "| --- | ---: | ---: | ---: | --- |" in table.markdown()
    assert table_html(table).count('<td class="n">') == 6


def test_a_range_of_ranks_does_not_break():
    shown = table_html(ResultTable("Leaderboard", ("rank", "system"), (("11–26", "a"),)))
    assert '<th scope="row" class="rank">11–26</th>' in shown
    assert "th.rank { white-space: nowrap; }" in page("T", [])


def test_the_script_of_figures_is_made_once_for_all_processes(tmp_path, monkeypatch):
    made = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(pictures.DrawingProcess, "draw", lambda *_, **__: made.append(1) or b"vega")
    bundle = pictures._bundle.__wrapped__
    assert [bundle(), bundle(), len(made)] == ["vega", "vega", 1]
    (kept,) = (tmp_path / "cache" / "demur").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert [bundle(), bundle(), len(made)] == ["vega", "vega", 2]
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))  # a file, so that no folder can be made there
    assert [bundle(), bundle(), len(made)] == ["vega", "vega", 4]


def test_a_long_name_of_a_system_breaks_before_numbers_lose_their_place():
    rows = (("1", "meta_llama_3_70B_Instruct", "0.1"), ("2", "short_name", "0.2"))
    shown = table_html(ResultTable("Leaderboard", ("rank", "system", "AUGRC"), rows))
    assert '<td class="long">meta_<wbr>llama_<wbr>3_<wbr>70B_<wbr>Instruct</td>' in shown
    assert "<td>short_name</td>" in shown
    first = table_html(ResultTable("Inputs", ("system", "AUGRC"), tuple(row[1:] for row in rows)))
    assert '<th scope="row" class="long">meta_<wbr>' in first
    assert '<th scope="row">short_name</th>' in first
