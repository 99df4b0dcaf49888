import re

import polars as pl
import pytest

from demur.core.show import papers
from demur.core.show.charts import spec_of
from demur.core.show.page import figure_file
from demur.core.show.papers import FigureLook
from demur.core.show.presentation import Drawing, Presentation, ResultTable, latex_of, text_latex
from demur.errors import UsageError
from demur.lab.dialogue.charts import band_chart
from demur.nbest_lists.charts import paired_chart
from demur.returns.charts.comparison import comparison_chart
from demur.returns.charts.error_return import error_return_chart
from demur.returns.charts.readings import reliability_chart, roc_chart
from demur.returns.comparison.compare import compare
from demur.returns.presentation import of_comparison
from reference.answers import made_up, table

CHARTS = {"curves": error_return_chart, "roc": roc_chart, "reliability": reliability_chart}


def drawn(chart, look, ending="svg"):
    return figure_file(lambda: chart, f"figure.{ending}", look)


@pytest.mark.parametrize("kind", CHARTS)
@pytest.mark.parametrize("font_size", [6, 8])
def test_type_is_never_under_six_points_at_the_width_asked_for(eight, kind, font_size):
    picture = drawn(CHARTS[kind](eight), FigureLook.of("3.3in", font_size=font_size, grey=True))
    head = picture.split(">", 1)[0]
    pixels = float(re.search(r'viewBox="0 0 ([\d.]+)', head)[1])
    assert 'width="3.3in"' in head
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', picture)]
    assert min(sizes) * 3.3 * 72 / pixels >= 5.999
    assert pixels == pytest.approx(3.3 * 72 * 12 / font_size)


def test_in_grey_every_colour_is_grey_and_every_system_has_a_marker_of_its_own(eight):
    picture = drawn(error_return_chart(eight), FigureLook.of("3.3in", grey=True))
    colours = set(re.findall(r"#[0-9a-fA-F]{6}", picture))
    assert colours
    assert all(len({one[1:3], one[3:5], one[5:7]}) == 1 for one in colours)
    view = papers.with_markers(papers.in_grey(spec_of(error_return_chart(eight))))
    shapes = view["usermeta"]["shapes"]
    assert list(shapes) == [one.name for one in eight]
    assert len(set(shapes.values())) == 8


@pytest.mark.parametrize("kind", CHARTS)
def test_a_picture_is_white_to_its_edges_and_its_legend_keeps_the_order_of_systems(eight, kind):
    picture = drawn(CHARTS[kind](eight), FigureLook.of("3.3in", grey=True))
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
    ground = re.search(r'<rect width="([\d.]+)" height="([\d.]+)" fill="white"/>', picture)
    assert ground.groups() == box.groups()
    names = [one.name for one in eight]
    assert [text for text in re.findall(r">([^<]*)</text>", picture) if text in names] == names


def entry(label):
    return papers.LegendEntry(label, {"color": "#000000"}, None)


def test_a_legend_has_long_names_below_only_where_that_saves_rows():
    def labels(*names):
        layers = papers._legend_view([entry(name) for name in names], 260)["layer"]
        return [one["mark"]["text"] for one in layers if one["mark"]["type"] == "text"]

    assert labels("own confidence", "gate", "both") == ["own confidence", "gate", "both"]
    assert labels("a system with a long name", *"abcdef") == [*"abcdef", "a system with a long name"]


def test_columns_of_a_legend_have_room_for_wide_letters():
    def second(name):
        layers = papers._legend_view([entry(name), entry("b")], 260)["layer"]
        return [one["encoding"]["x"]["value"] for one in layers if one["mark"]["type"] == "text"][1]

    assert second("模型模型") > second("abcd")


def test_panels_stand_one_below_the_other_in_a_narrow_figure():
    plot = {"width": 200, "height": 100, "mark": "point", "encoding": {"y": {"axis": {}}}}
    for spec in ({"concat": [plot, plot], "columns": 2}, {"spec": plot, "facet": {"field": "f"}, "columns": 2}):
        assert papers._widest(spec) == 400
        assert papers._stacked(spec)["columns"] == 1
        assert papers._widest(papers._stacked(spec)) == 200
    assert set(papers._stacked({"hconcat": [plot, plot]})) == {"vconcat"}


def test_titles_of_panels_fit_their_panels():
    spec = {"vconcat": [{"title": "a-name-" * 9, "width": 200, "height": 100, "mark": "point"}]}
    (panel,) = papers._narrowed(spec, FigureLook.of("3.3in"), (560, 340), 1.0)["vconcat"]
    (line,) = panel["title"]["text"]
    assert len(line) <= 200 / 6.6
    assert line.startswith("a-name-a-name")
    assert line.endswith("name-a-name-")


@pytest.mark.parametrize(("title", "there"), [(True, True), (False, False)])
def test_a_title_is_there_unless_it_is_not_wanted(comparison, title, there):
    picture = drawn(comparison_chart(comparison), FigureLook.of("84mm", title=title))
    assert ("role-title-text" in picture) is there


def test_a_pdf_and_a_png_have_the_width_asked_for(comparison):
    chart, look = comparison_chart(comparison), FigureLook.of("3.3in", title=False)
    box = re.search(rb"MediaBox ?\[0 0 ([\d.]+)", drawn(chart, look, "pdf"))
    assert float(box[1]) == pytest.approx(3.3 * 72, abs=0.1)
    assert int.from_bytes(drawn(chart, look, "png")[16:20], "big") == 990


@pytest.mark.parametrize("width", ["3.3 feet", "wide", "0.2in", -3])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(UsageError, match=r"`width` is from 1 to 40 inches"):
        FigureLook.of(width)


def test_type_that_cannot_be_read_is_refused():
    with pytest.raises(UsageError, match=r"`font_size` is from 6 to 24 points; got 5"):
        FigureLook.of(font_size=5)


def shown(*names, **more):
    figures = tuple(Drawing(name, lambda: None) for name in names)
    return Presentation("t", (), (), figures, data=lambda: None, document={}, **more)


def test_every_figure_has_a_name_of_its_own():
    whole = shown("roc", "roc", parts=(shown("roc", "det"),), further=(Drawing("cost", lambda: None),))
    assert list(whole.drawings()) == ["roc", "roc:2", "roc:3", "det", "cost"]
    assert list(whole.chosen(["ROC:2", "cost"])) == ["roc:2", "cost"]
    assert list(whole.chosen(["all"])) == list(whole.drawings())
    assert list(whole.chosen([])) == ["roc"]
    with pytest.raises(UsageError, match=r'no figure "rok" here; there are: roc, roc:2, roc:3, det, cost'):
        whole.chosen(["rok"])


def test_names_and_numbers_read_in_latex_as_they_are():
    assert text_latex("R&D_1 {50 %} -0.5 a-1") == r"R\&D\_1 \{50\,\%\} $-$0.5 a-1"
    table = ResultTable("Errors", ("system", "error", "p"), (("a_b", "1.0 %", "p < 0.001"), ("c", "–", "p = 0.2")))
    text = latex_of(Presentation("t", (), (table,), (), data=lambda: None, document={}))
    assert r"\begin{tabular}{lrr}" in text
    assert r"a\_b & 1.0\,\% & p $<$ 0.001 \\" in text
    with pytest.raises(UsageError, match=r"no table for \.tex"):
        latex_of(shown("roc"))


def test_markers_stand_where_a_line_is_seen():
    rows = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 4.0}]
    encoding = {name: {"field": name, "scale": {"domain": [0, 1]}} for name in ("x", "y")}
    spots = papers._spots(rows, encoding, 0.0)
    assert len(spots) == papers.MARKERS
    assert all(0 <= one["y"] <= 1 and one["y"] == pytest.approx(4 * one["x"]) for one in spots)
    assert papers._spots([], encoding, 0.0) == []


HEADING = "error at 20 % non-return of all inputs that are in scope or not"


def test_a_table_in_latex_takes_the_form_that_fits_a_page_and_long_ones_come_in_parts():
    brief = ResultTable("Errors (all: -o page.html)", ("system", HEADING), (("a", "3.0 %"),) * 60)
    wide = ResultTable("All errors", ("system", "verdict"), (("a", "word " * 30),), brief=brief)
    notes = ('names share the prefix "x_"',)
    text = latex_of(Presentation("t", (), (wide,), (), data=lambda: None, document={}, notes=notes))
    assert '% names share the prefix "x_"\n' in text
    assert r"\caption{Errors}" in text
    assert r"\caption{Errors (continued)}" in text
    assert text.count(r"3.0\,\% \\") == 60
    assert r"\begin{tabular}[b]{@{}r@{}}error at 20\,\% non-return of" in text
    assert text.count("{") == text.count("}")
    assert "XeLaTeX" not in text


def test_latex_says_what_names_in_other_scripts_need():
    table = ResultTable("T", ("system", "error"), (("模型", "3.0 %"),))
    assert "XeLaTeX" in latex_of(Presentation("t", (), (table,), (), data=lambda: None, document={}))


def matrix(names):
    logs = [made_up(name, 60, seed=place, accuracy=0.3 + 0.02 * place) for place, name in enumerate(names)]
    return of_comparison(compare(table(*logs), replicates=50)).chosen(["pair_matrix"])["pair_matrix"].draw


def test_a_matrix_whose_names_would_overlap_is_refused_with_the_width_it_needs():
    draw = matrix([f"{'abcde'[place % 5]} model {place} of {place % 7}" for place in range(30)])
    with pytest.raises(UsageError, match="does not fit") as fault:
        figure_file(draw, "figure.svg", FigureLook.of("3.3in"))
    needed = re.search(r"about ([\d.]+) inches", str(fault.value))[1]
    assert float(needed) > 3.5
    assert figure_file(draw, "figure.svg", FigureLook.of(f"{needed}in"))


def test_names_of_a_narrow_matrix_differ():
    names = [f"deepseek-ai-long-name-{place}B" for place in (4, 21, 63, 105, 147, 189)]
    picture = figure_file(matrix([*names, "other"]), "figure.svg", FigureLook.of("3.3in"))
    shown = [text for text in re.findall(r"<text[^>]*>([^<]*)</text>", picture) if text.endswith("B")]
    assert len(set(shown)) == len(names)


def test_a_figure_that_does_not_fit_fits_the_width_it_is_said_to_need():
    rows = [
        {"measure": f"a measure with a long name, {k}", "difference": 0.1, "low": -0.1, "high": 0.3, "better": "lower"}
        for k in "ab"
    ]
    chart = paired_chart(pl.DataFrame(rows), a="one", b="other")
    with pytest.raises(UsageError, match="does not fit") as fault:
        drawn(chart, FigureLook.of("2in"))
    inches = re.search(r"about ([\d.]+) inches", str(fault.value))[1]
    assert float(inches) < 4
    assert f'width="{float(inches):g}in"' in drawn(chart, FigureLook.of(float(inches)))


def test_in_grey_the_dots_of_values_are_the_markers():
    values = [{"group": group, "x": x, "value": x, "low": x - 0.1, "high": x + 0.1} for group in "ab" for x in (0, 1)]
    chart = band_chart(pl.DataFrame(values).cast({"x": pl.Float64}), x_title="x", y_title="y", title="t")
    marked = papers.with_markers(papers.in_grey(spec_of(chart)))
    points = [one for one in marked["layer"] if one["mark"]["type"] == "point"]
    assert [one["encoding"]["shape"]["scale"]["range"] for one in points] == [["circle", "square"]]
