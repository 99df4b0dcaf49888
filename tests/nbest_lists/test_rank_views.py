"""Ranks of right labels in words, in a table and in a figure."""

import json

import pytest

from demur.core.show.charts import chart_table
from demur.core.show.page import presentation_document
from demur.errors import UsageError
from demur.nbest_lists.charts import rank_chart
from demur.nbest_lists.ranks import ListRanks, of_ranks, rank_frame, rank_sentences, rank_table


def ranks(at=(90.0, 6.0, 2.0), nowhere=2.0, **more):
    n = int(sum(at) + nowhere)
    given = {"n": n, "total": float(n), "effective": float(n), "without": 0, "out_of_scope": 0}
    return ListRanks(system="mine", at=at, nowhere=nowhere, **{**given, **more})


def words(spec):
    return " ".join(spec["title"]["text"]).replace("\N{NO-BREAK SPACE}", " ")


def test_sentences_say_where_the_right_label_stands_and_what_a_choice_could_mend():
    assert rank_sentences(ranks()) == [
        "The right label is first for 90 % of 100 inputs, second for 6 %, third for 2 %.",
        "A perfect choice among the labels listed would mend 8 % of all inputs; for 2 % the right label is not in the "
        "list.",
    ]


def test_what_was_left_out_is_said():
    told = rank_sentences(ranks(without=3, out_of_scope=1200))[-1]
    assert told == "Left out: 1,200 to which no listed label is known to be right and 3 without a list."


def test_the_table_has_every_place_and_what_is_nowhere():
    table = rank_table(ranks())
    assert [row[0] for row in table.rows] == ["first", "second", "third", "not in the list"]
    assert table.rows[1][1:] == ("6.0 %", "96.0 % (90.2 to 98.4)")


def test_places_beyond_the_tenth_are_told_together():
    table = rank_table(ranks(at=(1.0,) * 14, nowhere=0.0))
    assert [row[0] for row in table.rows[-2:]] == ["later", "not in the list"]
    assert table.rows[-2][1] == "28.6 %"
    assert rank_frame(ranks(at=(1.0,) * 14)).height == 10


def test_the_figure_rises_to_the_last_place_and_says_so():
    chart = rank_chart(rank_frame(ranks()), n=100)
    spec = chart.to_dict()
    assert words(spec) == "The right label is first for 90 %, and among the first 3 for 98 %"
    assert chart_table(chart)["accuracy"].to_list() == [0.9, 0.96, 0.98]
    assert "first 2: 96 %" in spec["description"]


def test_lists_of_one_label_have_a_figure_of_one_dot():
    spec = rank_chart(rank_frame(ranks(at=(9.0,), nowhere=1.0)), n=10).to_dict()
    assert words(spec) == "The right label is first for 90 %"


def test_a_right_label_that_is_never_listed_has_no_figure():
    shown = of_ranks(ranks(at=(), nowhere=5.0))
    assert shown.figures == ()
    assert shown.sentences[0] == "The right label is first for 0 % of 5 inputs."


def test_the_presentation_is_plain_values():
    document = presentation_document(of_ranks(ranks()))
    assert json.loads(json.dumps(document)) == document
    assert document["figures"][0]["table"]["of"] == 3


def test_a_table_that_lacks_a_column_is_refused():
    with pytest.raises(UsageError, match='the figure needs a column "here"'):
        rank_chart(rank_frame(ranks()).drop("here"), n=3)
