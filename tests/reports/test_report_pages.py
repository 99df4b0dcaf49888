import json
import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import demur
from demur.core.show.charts import chart_table, hover_layer
from demur.core.show.presentation import plain_mark
from demur.errors import UsageError
from demur.lab import tutor
from demur.lab.corpora import restaurant, wizards
from demur.reports.sections import RATIOS
from demur.returns.charts.error_return import cost_path_chart

EVIL = '<script>alert("x")</script>]]>\u202e & `x` *y* [z](http://e) |'
QUICK = {"replicates": 60}


def log(n=400, *, seed=0, name=None, skill=2.0, **columns):
    rng = np.random.default_rng(seed)
    sure = rng.normal(size=n)
    right = rng.random(n) < 1 / (1 + np.exp(-(1 + skill * sure)))
    frame = {
        "id": [f"q{k}" for k in range(n)],
        "target": [f"t{k % 5}" for k in range(n)],
        "prediction": [f"t{k % 5}" if one else f"t{(k + 1) % 5}" for k, one in enumerate(right)],
        "confidence": np.round(1 / (1 + np.exp(-sure)), 6),
        "text": [f"input number {k}" for k in range(n)],
        "domain": [("bank", "home", "work")[k % 3] for k in range(n)],
        **columns,
    }
    return pl.DataFrame({**frame, **({} if name is None else {"system": name})})


@cache
def reported(name=""):
    """The report on an edge case, or on the log."""
    return demur.report(EDGES[name] if name else log(), **QUICK)


class Reader(HTMLParser):
    """Notes tags, links, identifiers and headings of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.links, self.headings, self.scripts = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.tags.append(tag)
        self.ids += [told["id"]] if "id" in told else []
        self.links += [told["href"]] if tag == "a" else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self.scripts += [told.get("type")] if tag == "script" else []


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


@pytest.fixture(scope="module")
def whole():
    """A report of everything at once."""
    study = restaurant()
    turns, ends = tutor.study()
    return demur.report(
        pl.concat([log(name="one"), log(name="two", seed=1, skill=0.5)]),
        study.turns,
        wizards().trials,
        **QUICK,
    ), demur.report(turns, pl.DataFrame(ends), **QUICK)


def titles(report):
    return [part.shown.title for part in report.parts]


def test_the_story_is_told_in_order(whole):
    assert titles(whole[0]) == [
        "Errors and non-returns",
        "Which threshold",
        "Which system",
        "Slices that differ",
        "Do confidences mean what they say",
        "What to look at",
        "N-best lists",
        "How far from the gold standard",
        "How the numbers were made",
    ]
    assert "What the outcome follows from" in titles(whole[1])


def test_the_verdict_speaks_of_every_part(whole):
    said = " ".join(whole[0].verdict)
    for words in ("one is better than two", "Recommended threshold for one: ", "ICE", "gold standard"):
        assert words in said
    assert "Normalised gain follows from how turns are understood" in " ".join(whole[1].verdict)


def test_the_page_is_one_document_with_contents_and_headings_in_order(whole):
    page = whole[0].html()
    reader = read(page)
    assert len(reader.ids) == len(set(reader.ids))
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    assert reader.links[0] == "#main", "the first link skips to the contents"
    assert len(reader.links) == 2 + len(whole[0].parts), "the further findings and every part"
    assert reader.headings[0] == 1
    assert all(after - before <= 1 for before, after in zip(reader.headings, reader.headings[1:], strict=False))
    assert not re.findall(r'(?:src|href)="(?!data:|#)', re.sub("<script.*?</script>", "", page, flags=re.DOTALL))
    figures = reader.tags.count("figure")
    assert figures > 8
    assert len(re.findall(r'<img alt="[^"]{40,}" src="data:image', page)) == figures


def test_markdown_has_every_section_and_table(whole):
    text = whole[0].markdown()
    for title in titles(whole[0]):
        assert f"## {title}" in text
    assert "### Thresholds" in text
    assert "### Signatures" in text


def test_the_document_holds_every_number_and_how_it_was_made(whole):
    document = json.loads(whole[0].render(".json"))
    assert [one["system"] for one in document["systems"]] == ["one", "two"]
    assert document["pairs"][0]["verdict"] == "a better"
    assert document["thresholds"][0]["choices"][0]["guarantee"]["bound"] == 0.05
    assert {"slices", "calibration", "examples", "nbest", "gold"} <= document.keys()
    assert document["made"]["versions"].keys() == {"demur", "python", "numpy", "polars", "scipy"}
    assert (document["made"]["seed"], document["made"]["replicates"]) == (0, 60)


def test_the_same_data_give_the_same_report():
    one, two = reported(), demur.report(log(), **QUICK)
    assert one.html() == two.html()
    assert one.markdown() == two.markdown()


def test_no_markup_from_data_is_ever_rendered():
    evil = log(text=[EVIL] * 400, domain=[EVIL, "x", "y", "z"] * 100, nbest=[json.dumps([[EVIL, 0.5]])] * 400)
    evil = evil.with_columns(
        target=pl.lit(EVIL),
        prediction=pl.when(pl.col("confidence") > 0.4).then(pl.lit(EVIL + "x")).otherwise(pl.lit(EVIL)),
    )
    report = demur.report(evil.with_columns(system=pl.lit(EVIL)), title=EVIL, **QUICK)
    page = report.html()
    assert "<script>alert" not in page
    assert "\u202e" not in re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    kinds = read(page).scripts
    assert kinds == ["application/json"] * (len(kinds) - 1) + [None]
    text = report.markdown()
    assert "<script>" not in text
    assert not re.search(r"(?<!\\)\]\(", text), "no link"
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a_b", "a_b"),
        ("_x_", r"\_x\_"),
        ("<b>|", r"&lt;b&gt;\|"),
        ("two\nlines", "two lines"),
        ("- x", r"\- x"),
        ("12. x", r"12\. x"),
        ("-0.5", "-0.5"),
    ],
)
def test_markdown_shows_text_as_it_stands(raw, shown):
    assert plain_mark(raw) == shown


def test_long_inputs_are_cut_and_line_breaks_shown():
    report = demur.report(log(text=["first line\nsecond " + "long " * 2000] * 400), **QUICK)
    page = report.html()
    assert "first line ⏎ second" in page
    assert "…" in page
    assert "long " * 100 not in page


def test_the_page_does_not_grow_with_the_log():
    small, large = (len(demur.report(log(n), **QUICK).html()) for n in (1_000, 10_000))
    assert large < 1.06 * small
    assert large < 2_000_000


def edge(n, **columns):
    return pl.DataFrame({"id": range(n), **columns})


EDGES = {
    "three rows": edge(3, target=["a"] * 3, prediction=["a", "b", "a"], confidence=[0.1, 0.2, 0.3]),
    "one row": edge(1, target=["a"], prediction=["a"], confidence=[0.1]),
    "no errors": edge(50, target=["a"] * 50, prediction=["a"] * 50, confidence=np.arange(50) / 50),
    "only errors": edge(50, target=["a"] * 50, prediction=["b"] * 50, confidence=np.arange(50) / 50),
    "no confidences": edge(50, target=["a"] * 50, prediction=["a", "b"] * 25),
    "all withheld": edge(50, target=["a"] * 50, prediction=["nlu_fallback"] * 50, confidence=[0.5] * 50),
    "all out of scope": edge(50, target=["oos"] * 50, prediction=["a"] * 50, confidence=np.arange(50) / 50),
    "only judged": edge(50, correct=[True, False] * 25, confidence=np.arange(50) * 3.5),
}


@pytest.mark.parametrize("name", EDGES)
def test_a_report_is_made_of_whatever_there_is(name):
    report = reported(name)
    assert report.verdict
    assert "<h1>" in report.html()
    assert report.markdown()
    json.loads(report.render(".json"), parse_constant=lambda sign: pytest.fail(f"{sign} is not JSON"))


def test_confidences_that_heap_are_noted():
    heaped = log(200, confidence=[(0.5, 0.9)[k % 2] for k in range(200)])
    said = demur.report(heaped, **QUICK).markdown()
    assert "has 2 distinct confidences; the most frequent, 0.5, is that of 50 % of the inputs" in said


def test_too_few_inputs_for_a_promise_are_told():
    said = reported("no errors").verdict[1]
    assert "50 inputs are too few to promise an error rate of at most 5 %, even if every answer were right" in said


def test_nothing_that_is_answered_is_told():
    report = reported("all withheld")
    assert report.verdict == ("system answers none of 50 inputs.",)
    assert titles(report) == ["Errors and non-returns", "How the numbers were made"]


def test_systems_with_other_ids_are_compared_where_they_meet_and_that_is_warned_of():
    other = log(name="two", seed=1).with_columns(id=pl.concat_str(pl.lit("x"), "id"))
    apart = demur.report(log(name="one"), other, **QUICK)
    assert "Which system" in titles(apart)
    some = pl.concat([log(name="one"), log(name="two", seed=1).head(300)])
    assert any("left out without a counterpart: 100 of one" in told for told in demur.report(some, **QUICK).warnings)


def test_a_part_that_cannot_be_told_is_left_out_with_the_reason():
    ends = pl.DataFrame({"dialogue": ["d1", "d2"], "outcome": [0.5, 0.75]})
    report = demur.report(log(), ends, **QUICK)
    assert any(warning.startswith("outcome of system left out: ") for warning in report.warnings)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"cost_ratio": 0.3}, "cost ratio 0.3"),
        ({"max_error": 0.1}, "error rate at most 0.1 in this sample"),
        ({"max_error": 0.1, "delta": 0.1}, "error rate at most 0.1 on new data, with probability 0.9"),
        ({"max_nonreturn": 0.1}, "non-return rate at most 0.1"),
    ],
)
def test_thresholds_are_advised_for_what_is_asked(options, rule):
    (advice,) = demur.report(log(), **options, **QUICK).to_dict()["thresholds"]
    (choice,) = advice["choices"]
    assert choice["rule"].startswith(rule)
    assert advice["recommended"] == advice["shown_at"] == choice["threshold"]


def test_the_page_stands_at_the_threshold_it_recommends():
    report = demur.report(log(name="one"), log(name="two", seed=1), **QUICK)
    page, advice = report.html(), report.to_dict()["thresholds"]
    (document,) = re.findall(r'id="explorer-document">(.*?)</script>', page, flags=re.DOTALL)
    systems = json.loads(document)["systems"]
    for system, one in zip(systems, advice, strict=True):
        place = system["advised"]
        assert 1 - system["returned"][place] / system["total"] == pytest.approx(one["choices"][0]["nonreturn"])
        assert f"threshold {system['threshold'][place]:g}" in document
    assert "At the recommended thresholds, one withholds" in page
    assert report.to_dict()["target"] == {"max_error": 0.05, "delta": 0.05, "assumed": True}
    assert any("error target of 5 % is assumed" in sentence for sentence in report.said.lead)


def test_a_target_that_cannot_be_met_is_told_and_no_other_rule_takes_its_place():
    report = demur.report(log(), max_error=0.001, delta=0.05, **QUICK)
    (advice,) = report.to_dict()["thresholds"]
    assert advice["recommended"] is None
    assert "No threshold can be recommended" in report.verdict[1]
    assert "which is not recommended" in report.verdict[1]
    assert not any("assumed" in sentence for sentence in report.verdict)
    assert report.summary().tables[0].rows[0][4] == "none"


def test_gates_stand_in_markdown_and_on_the_page():
    held = {"condition": "n < 1", "subject": "one", "passed": True, "failure": None}
    failed = {"condition": "augrc > 0", "subject": "one", "passed": False, "failure": "one: augrc > 0 holds: it is 0.2"}
    report = demur.report(log(name="one"), **QUICK).with_gates([held, failed])
    text = report.markdown()
    places = [text.index(part) for part in ("| pass | one | not n &lt; 1 |", "| FAIL | one |", "## Errors and")]
    assert places == sorted(places)
    assert ">FAIL</th>" in report.html()


@pytest.mark.parametrize("logs", [("one",), ("one", "two")])
def test_in_brief_there_are_a_verdict_a_plot_three_numbers_and_five_examples(logs):
    tables = [log(name=name, seed=seed) for seed, name in enumerate(logs)]
    report = demur.report(*tables, brief=True, **QUICK)
    page = report.html()
    assert page.count("<figure ") == 1
    assert page.count("<dd>") == 3
    assert page.count('<tr><td class="n"><bdi>0.') == 5
    assert report.markdown().count("\n") < 40


def test_three_systems_or_more_stand_in_the_order_of_their_ranks():
    report = demur.report(
        *(log(name=name, skill=skill) for name, skill in (("c", 0.1), ("a", 2.0), ("b", 9.0))), **QUICK
    )
    ranked = [one.system for one in report.analyses.answers.comparison.leaderboard.ranked]
    assert [row[0] for row in report.summary().tables[0].rows] == ranked == ["a", "b", "c"]
    assert [
        row[0] for row in demur.report(log(name="c", skill=0.1), log(name="b"), **QUICK).summary().tables[0].rows
    ] == [
        "c",
        "b",
    ]


def test_examples_without_a_confidence_say_so():
    text = reported("no confidences").markdown()
    assert "| none |" in text
    assert "system: with all returned, 25 answers are wrong." in text
    assert "-inf" not in text


@pytest.mark.parametrize(("systems", "columns"), [(3, ("cost", "0", "1", "2")), (4, ("system", "cost", "threshold"))])
def test_cheapest_thresholds_of_many_systems_stand_below_each_other(systems, columns):
    report = demur.report(*(log(name=str(seed), seed=seed) for seed in range(systems)), **QUICK)
    (table,) = [one for part in report.parts for one in part.shown.tables if one.title.startswith("Cheapest")]
    assert table.columns[: len(columns)] == columns
    assert len(table.rows) == (len(RATIOS) if systems == 3 else systems * len(RATIOS))


def test_slices_are_those_asked_for():
    assert demur.report(log(), by=(), **QUICK).analyses.answers.slices is None
    found = demur.report(log(part=["a", "b"] * 200), by="part", **QUICK).analyses.answers.slices
    assert found.columns == ("part",)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"cost_ratio": 0.3, "max_error": 0.1}, "advised for one aim; got `max_error` and `cost_ratio`"),
        ({"delta": 0.1}, "`delta` goes with `max_error`"),
        ({"at_nonreturn": 2}, "`at_nonreturn` must be at least 0 and at most 1"),
        ({"examples": -1}, "`examples` must be at least 0"),
        ({"levl": 0.9}, 'there is no option "levl" here. Did you mean "level"'),
    ],
)
def test_what_cannot_be_asked_is_refused(options, fault):
    with pytest.raises(UsageError, match=re.escape(fault)):
        demur.report(log(), **options)


def test_a_report_is_saved_by_the_ending_and_shown_in_a_notebook(tmp_path):
    report = reported()
    for ending in ("html", "md", "json"):
        report.save(tmp_path / f"r.{ending}")
        assert (tmp_path / f"r.{ending}").stat().st_size > 1000
    with pytest.raises(UsageError, match=r"a report is written as \.html, \.md, \.json"):
        report.save(tmp_path / "r.txt")
    assert report._repr_html_().startswith("<div>")


def test_confidences_that_do_not_differ_leave_no_threshold_to_advise():
    assert "Which threshold" not in titles(reported("no confidences"))
    assert "Which threshold" in titles(reported("no errors"))


def test_a_long_cost_path_is_drawn_in_part_and_that_is_said():
    choice = demur.threshold(log(20_000), cost_ratio=0.3)
    assert len(choice.path) > 12
    chart = cost_path_chart(choice, most=10)
    ratios = chart_table(chart)["ratio"].to_list()
    assert (min(ratios), max(ratios)) == (0, 1)
    assert sorted(ratios) == ratios
    assert all(low == high for high, low in zip(ratios[1:-1:2], ratios[2::2], strict=True)), "no gap is left"
    assert "of them are drawn" in " ".join(chart.to_dict()["title"]["subtitle"])


def test_tooltips_may_be_named_with_what_vega_takes_for_syntax():
    rows = pl.DataFrame({"x": [1.0], "y": [2.0], "the dialogue's (x)": ["1"], "plain": ["2"]})
    told = hover_layer(rows, "x", "y").to_dict()["encoding"]["tooltip"]
    assert [(one["field"], one["title"]) for one in told] == [("hover_0", "the dialogue's (x)"), ("hover_1", "plain")]


def test_the_verdict_tells_what_a_system_withholds_by_itself():
    rows = edge(50, correct=[True, False] * 25, abstained=[True] * 10 + [False] * 40)
    (said,) = demur.report(rows, **QUICK).verdict
    assert "40 % of 50 inputs are answered wrongly when all is returned, and 20 % not at all; " in said


def test_lists_of_labels_among_the_answers_have_a_section_for_each_system():
    rows = [
        {
            "id": k,
            "system": name,
            "target": "a",
            "prediction": "b" if k % 2 else "a",
            "confidence": 0.6 + k / 100,
            "nbest": [
                {"label": "b" if k % 2 else "a", "confidence": 0.6},
                {"label": "a" if k % 2 else "b", "confidence": 0.4},
            ],
        }
        for name in ("one", "two")
        for k in range(12)
    ]
    found = demur.report(rows, replicates=50)
    assert [one["top"]["2"]["value"] for one in found.to_dict()["ranks"]] == [1.0, 1.0]
    text = found.markdown()
    assert "Where the right label stands (one)" in text
    assert "The right label is first for 50 % of 12 inputs, second for 50 %." in text


def test_of_many_systems_sections_speak_of_the_leader_and_tables_have_the_others():
    names = [f"s{place}" for place in range(7)]
    report = demur.report(
        pl.concat([log(200, seed=place, name=name, skill=1.0 + place) for place, name in enumerate(names)]), **QUICK
    )
    page = report.markdown()
    opening = "when it returns every answer it has"
    leader = min(report.analyses.answers.evaluations, key=lambda one: one.figures["augrc"].value).name
    assert re.findall(rf"(s\d): {opening}", page) == [leader]
    assert re.findall(r"(s\d): return an answer when", page) == [leader]
    assert page.count("The table of measures has the other 6 systems.") == 1
    assert page.count("The table of thresholds has the other 6 systems.") == 1
    assert page.count("no slice is significantly worse") == 0
    assert re.search(r"No slice of the \d (other )?systems is significantly worse", page)


def test_of_many_systems_those_without_a_recommended_threshold_are_named():
    frame = pl.concat([log(60, seed=place, name=f"s{place}", skill=0.0) for place in range(8)])
    page = demur.report(frame, **QUICK, max_error=0.001, delta=0.05).markdown()
    assert "No threshold is recommended for s0, s1, s2, s3, s4 and 3 more." in page
