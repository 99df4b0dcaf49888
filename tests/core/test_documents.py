"""Presentations as plain values: figures fill the page unless something in them stands at pixels."""

import altair as alt
import polars as pl

from demur.core.show.charts import WIDTH, finished
from demur.core.show.page import figure_document

ROWS = pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})


def figure(*layers):
    chart = alt.layer(*layers).properties(width=WIDTH, height=100)
    return finished(chart, title="A figure", subtitle=["n = 2"], description="Two dots.", table=ROWS)


def test_a_figure_is_its_words_its_spec_and_its_table():
    found = figure_document(figure(alt.Chart().mark_point().encode(x="a:Q", y="b:Q")))
    assert (found["title"], found["subtitle"], found["description"]) == ("A figure", "n = 2", "Two dots.")
    assert (found["spec"]["width"], "title" in found["spec"]) == ("container", False)
    assert (found["table"]["columns"], found["table"]["of"]) == (["a", "b"], 2)


def test_a_figure_with_something_at_pixels_keeps_its_width():
    dots = alt.Chart().mark_point().encode(x="a:Q", y="b:Q")
    label = alt.Chart().mark_text().encode(x=alt.X("a:Q", scale=None), text="a:Q")
    assert figure_document(figure(dots, label))["spec"]["width"] == WIDTH
