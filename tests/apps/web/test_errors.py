import csv
import io
from urllib.parse import parse_qsl, urlsplit

import pytest

from apps.web.logs import MARKUP, QUOTES, answers, written
from demur.apps.web.pages.errors import FORMULAE, RowQuery, csv_of, hypotheses
from demur.apps.web.site import Query

ROWS = [
    # id, target, prediction, confidence
    ("a", "yes", "yes", 0.9),
    ("b", "yes", "no", 0.8),
    ("c", "oos", "no", 0.7),
    ("d", "no", "no", 0.4),
    ("e", "no", "yes", 0.3),
    ("f", "no", None, None),
]
"""At a threshold of 0.5: a is right, b and c wrong and returned, d right but withheld, e and f withheld."""


def table(rows, **further):
    columns = ("id", "target", "prediction", "confidence")
    return [
        {**dict(zip(columns, row, strict=True)), "input": f"say {row[0]}", "kind": "ab"[k % 2], **further}
        for k, row in enumerate(rows)
    ]


@pytest.fixture
def one(store, tmp_path):
    """Six answers, worked out by hand."""
    return store.add(written(tmp_path / "one.jsonl", table(ROWS)))[0].run


@pytest.fixture
def other(store, tmp_path):
    """Other answers to the same inputs in another order, one of them left out."""
    rows = [("e", "no", "no", 0.2), ("c", "oos", "no", 0.1), ("b", "yes", "no", 0.95), ("a", "yes", "no", 0.99)]
    rows.append(("d", "no", "yes", 0.6))
    return store.add(written(tmp_path / "other.jsonl", table(rows)))[0].run


def shown(client, run, **query):
    answer = client.get("/errors.json", params={"run": run.id, **query})
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["rows"]]


@pytest.mark.parametrize(
    ("show", "ids"),
    [
        ("wrong", ["b", "c"]),
        ("right", ["a"]),
        ("missed", ["d"]),
        ("scope", ["c"]),
        ("withheld", ["d", "e", "f"]),
        ("failed", []),
        ("all", ["a", "b", "c", "d", "e", "f"]),
    ],
)
def test_each_outcome_at_a_threshold_has_its_answers(client, one, show, ids):
    assert shown(client, one, show=show, threshold=0.5) == ids


def test_every_outcome_is_counted_and_linked(client, one):
    document = client.get("/errors.json", params={"run": one.id, "threshold": 0.5}).json()
    counted = {tab["show"]: tab["count"] for tab in document["tabs"]}
    assert counted == {"wrong": 2, "missed": 1, "scope": 1, "withheld": 3, "right": 1, "failed": 0, "all": 6}
    link = next(tab["link"] for tab in document["tabs"] if tab["show"] == "missed")
    assert "1 answer: right but withheld at a threshold of 0.5" in client.get(link).text


def test_without_a_threshold_every_answer_is_returned(client, one):
    assert shown(client, one) == ["b", "c", "e"]


def test_a_range_of_confidences_keeps_its_lower_end_and_not_its_upper(client, one):
    assert shown(client, one, show="all", low=0.4, high=0.8) == ["c", "d"]


def test_a_threshold_that_returns_nothing_withholds_all(client, one):
    assert shown(client, one, show="wrong", threshold="inf") == []
    assert len(shown(client, one, show="withheld", threshold="inf")) == 6


@pytest.mark.parametrize(
    ("order", "ids"), [("surest", ["b", "c", "e"]), ("least", ["e", "c", "b"]), ("nearest", ["e", "c", "b"])]
)
def test_answers_come_in_the_order_asked_for(client, one, order, ids):
    assert shown(client, one, order=order, threshold=0.25) == ids


def test_answers_are_filtered_by_slice_and_by_text_and_both(client, one):
    assert shown(client, one, show="all", where="kind=a") == ["a", "c", "e"]
    assert shown(client, one, show="all", search="SAY B") == ["b"]
    assert shown(client, one, show="all", where="kind=a", search="say b") == []


def test_answers_are_shown_page_by_page(client, one):
    first = client.get("/errors", params={"run": one.id, "show": "all", "limit": 4}).text
    assert "1 to 4 of 6" in first
    assert 'rel="prev"' not in first
    assert shown(client, one, show="all", limit=4, page=2) == ["e", "f"]
    assert shown(client, one, show="all", limit=4, page=3) == []


def test_a_choice_of_runs_is_offered_where_none_is_named(client, one):
    page = client.get("/errors").text
    assert "Choose a run" in page
    assert f'value="{one.id}"' in page


def test_an_empty_store_says_how_to_add_a_run(client):
    assert "demur add" in client.get("/errors").text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"show": "nonsense"}, "show is one of wrong, missed"),
        ({"threshold": "high"}, "threshold must be a number"),
        ({"where": "kind"}, "where takes column=value"),
        ({"where": "colour=red"}, "colour"),
        ({"page": "0"}, "page must lie between"),
        ({"limit": "5000"}, "limit must lie between"),
        ({"show": "alone"}, "needs a second run"),
    ],
)
def test_a_link_that_asks_for_what_there_is_not_says_so(client, one, query, told):
    answer = client.get("/errors.json", params={"run": one.id, **query})
    assert answer.status_code == 400
    assert told in answer.json()["error"]


def test_runs_of_other_kinds_have_no_answers_to_show(client, store, tmp_path):
    rows = [{"id": k, "reference": "yes()", "hypotheses": [{"act": "yes()", "confidence": 0.9}]} for k in range(3)]
    run = store.add(written(tmp_path / "lists.jsonl", rows))[0].run
    answer = client.get("/errors.json", params={"run": run.id})
    assert answer.status_code == 400
    assert "is a run of nbest" in answer.json()["error"]


def test_two_runs_are_shown_side_by_side_by_id(client, one, other):
    page = client.get("/errors.json", params={"run": one.id, "other": other.id, "show": "all"}).json()
    beside = {row["id"]: row["other"] and (row["other"]["prediction"], row["other"]["right"]) for row in page["rows"]}
    assert beside == {
        "a": ("no", False),
        "b": ("no", False),
        "c": ("no", False),
        "d": ("yes", False),
        "e": ("no", True),
        "f": None,
    }


def test_what_one_run_alone_gets_wrong_depends_on_both_thresholds(client, one, other):
    both = {"other": other.id, "threshold": 0.5}
    assert shown(client, one, show="alone", **both) == []
    assert shown(client, one, show="both", **both) == ["b", "c"]
    assert shown(client, one, show="alone", other_threshold=0.5, **both) == ["c"]
    assert shown(client, one, show="both", other_threshold=0.5, **both) == ["b"]
    assert shown(client, one, show="alone", other=other.id) == ["e"]


def test_runs_without_a_common_id_are_not_shown_side_by_side(client, store, one, tmp_path):
    rows = [(f"x{name}", *rest) for name, *rest in ROWS]
    stranger = store.add(written(tmp_path / "stranger.jsonl", table(rows)))[0].run
    answer = client.get("/errors.json", params={"run": one.id, "other": stranger.id})
    assert answer.status_code == 400
    assert "have no id in common" in answer.json()["error"]


def test_rows_without_ids_have_no_counterpart(client, store, one, tmp_path):
    rows = [{key: value for key, value in row.items() if key != "id"} for row in table(ROWS)]
    nameless = store.add(written(tmp_path / "nameless.jsonl", rows))[0].run
    answer = client.get("/errors.json", params={"run": nameless.id, "other": one.id})
    assert "have no id in common" in answer.json()["error"]


def test_the_rows_alone_are_a_part_of_a_page(client, one):
    part = client.get("/errors/rows", params={"run": one.id, "threshold": 0.5, "limit": 1}).text
    assert part.count("<tr>") == 2
    assert 'data-total="2"' in part
    assert "<html" not in part


def test_everything_from_data_is_text_on_the_page(client, runs):
    page = client.get("/errors", params={"run": runs[0].id, "other": runs[1].id, "show": "all"}).text
    assert MARKUP not in page
    assert QUOTES not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_hypotheses_tell_where_the_wanted_one_stands(client, store, tmp_path):
    nbest = [{"label": "no", "p": 0.6}, {"label": "yes", "p": 0.3}]
    row = {"id": 1, "target": "yes", "prediction": "no", "confidence": 0.6, "nbest": nbest}
    run = store.add(written(tmp_path / "lists.jsonl", [row, {**row, "id": 2, "target": "never"}]))[0].run
    page = client.get("/errors", params={"run": run.id}).text
    assert "wanted: 2 of 2" in page
    assert "wanted: none of 2" in page
    assert '<meter min="0" max="1" value="0.3"' in page


@pytest.mark.parametrize(
    ("nbest", "found"),
    [
        (None, []),
        ([], []),
        ("words", [("words", None)]),
        ([{"intent": "yes", "score": 2}], [("yes", 2)]),
        ([["yes", 0.5]], [("yes", 0.5)]),
        ([["yes", "sure"]], [("yes", None)]),
        ([{"odd": 1}], [('{"odd": 1}', None)]),
        ([{"label": "yes", "p": True}], [("yes", None)]),
    ],
)
def test_hypotheses_are_read_in_the_forms_that_logs_have(nbest, found):
    assert [(one["text"], one["confidence"]) for one in hypotheses(nbest)] == found


def test_a_second_run_that_is_not_there_is_not_found(client, one):
    answer = client.get("/errors.json", params={"run": one.id, "other": "nobody"})
    assert answer.status_code == 404
    assert "there is no run" in answer.json()["error"]


def test_a_column_whose_name_has_the_sign_of_a_filter_can_be_filtered_by(client, store, tmp_path):
    rows = [{**row, "a=b": "x=y" if k % 2 else "z", "a": "b=x=y"} for k, row in enumerate(answers(20))]
    run = store.add(written(tmp_path / "signs.jsonl", rows))[0].run
    found = client.get("/errors.json", params={"run": run.id, "show": "all", "where": "a=b=x=y"}).json()
    assert (found["total"], found["asked"]["where"]) == (10, [["a=b", "x=y"]])


def test_what_is_shown_can_be_taken_away_as_a_table(client, one):
    answer = client.get("/errors.csv", params={"run": one.id, "threshold": 0.5})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == f'attachment; filename="answers-{one.id}-wrong.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["id"], row["prediction"], row["confidence"], row["kind"]) for row in rows] == [
        ("b", "no", "0.8", "b"),
        ("c", "no", "0.7", "a"),
    ]


def test_a_bad_link_to_a_table_says_what_is_wrong(client, one):
    assert client.get("/errors.csv", params={"run": one.id, "show": "x"}).status_code == 400


def test_a_cell_that_a_spreadsheet_would_run_is_marked_as_text():
    row = {"id": "=1+1", "input": "+x", "target": ["a", "b"], "confidence": -0.5, "slices": {"kind": "@me"}}
    (cells,) = csv.DictReader(io.StringIO(csv_of([row])))
    assert (cells["id"], cells["input"], cells["kind"]) == ("'=1+1", "'+x", "'@me")
    assert (cells["target"], cells["confidence"]) == ("a | b", "-0.5")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"])
def test_no_spreadsheet_runs_a_cell_or_a_heading_wherever_it_parts_cells(start):
    row = {"id": f"a;{start}1", "slices": {f"{start}cmd()": f"{start}1"}}
    text = csv_of([row])
    headings, cells = csv.reader(io.StringIO(text, newline=""))
    assert (headings[-1], cells[-1]) == (f"'{start}cmd()", f"'{start}1")
    semicolons = [cell for line in csv.reader(io.StringIO(text, newline=""), delimiter=";") for cell in line]
    assert not any(cell.startswith(FORMULAE) for cell in semicolons)


def test_no_rows_are_a_table_of_headings():
    assert csv_of([]).startswith('"id","input","target"')


def test_a_link_restores_what_was_asked(one, other):
    asked = RowQuery(
        run=one,
        show="both",
        order="least",
        threshold=0.1 + 0.2,
        low=None,
        high=1e-9,
        where=(("kind", "a=b & c"), ("kind", MARKUP)),
        search="50 % + more",
        other=other,
        other_threshold=float("inf"),
    )
    query = Query({}, parse_qsl(urlsplit(asked.link("/errors")).query))
    assert query.where() == asked.where
    assert query.text("search") == asked.search
    assert (query.number("threshold"), query.number("low"), query.number("high")) == (0.1 + 0.2, None, 1e-9)
    assert query.number("other_threshold") == float("inf")
    assert query.text("other") == other.id


def test_the_threshold_of_a_link_is_written_in_all_its_digits(client, one):
    page = client.get("/errors", params={"run": one.id, "threshold": 0.6054921, "low": 5e-05}).text
    assert "at a threshold of 0.6054921, confidence at least 5e-5" in page
    assert 'name="threshold" value="0.6054921"' in page
