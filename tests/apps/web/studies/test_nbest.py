"""The N-best inspector: measures of lists, and turns one at a time."""

import pytest

from apps.web.logs import MARKUP, QUOTES, log, written

ACTS = [
    {
        "id": "u1",
        "dialogue": "d1",
        "text": f"thai food {MARKUP}",
        "noise": "low",
        "reference": ["food=thai"],
        "hypotheses": [{"items": ["food=tie"], "confidence": 0.5}, {"items": ["food=thai"], "confidence": 0.25}],
    },
    {
        "id": "u2",
        "dialogue": "d1",
        "text": "bye",
        "noise": "low",
        "reference": ["bye"],
        "hypotheses": [{"items": ["bye"], "confidence": 1.0}],
    },
    {
        "id": f"u3 {QUOTES}",
        "dialogue": "d2",
        "text": "north",
        "noise": MARKUP,
        "reference": ["area=north"],
        "hypotheses": [{"items": [f"area={MARKUP}"], "confidence": 0.9}],
    },
    {"id": "u4", "dialogue": "d3", "text": "", "noise": "low", "reference": ["help"], "hypotheses": []},
]


@pytest.fixture(scope="module")
def acts(store, folder):
    return store.add(written(folder / "acts.jsonl", ACTS), name=f"acts {MARKUP}")[0].run


@pytest.fixture(scope="module")
def labels(store, folder):
    return store.add(log(folder / "labels.jsonl", seed=3))[0].run


def document(client, path, **query):
    answer = client.get(f"{path}.json", params={**query, "wait": 1})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_without_runs_the_page_says_what_to_add_and_offers_an_example(empty):
    page = empty[0].get("/nbest")
    assert "No run has lists of hypotheses yet" in page.text
    assert 'data-example="restaurant"' in page.text


def test_only_runs_with_lists_are_offered(client, store, acts, folder):
    bare = [{"id": 1, "target": "a", "prediction": "a", "confidence": 0.5}]
    store.add(written(folder / "bare.jsonl", bare))
    assert [run["id"] for run in document(client, "/nbest")["runs"]] == [acts.id]
    refused = client.get(f"/nbest/{store.run('bare').id}")
    assert refused.status_code == 400
    assert "has no lists of hypotheses" in refused.text


def test_measures_come_with_intervals_and_the_parts_of_the_ice(client, acts):
    shown = document(client, f"/nbest/{acts.id}")["presentation"]
    assert {"What the ICE is made of"} <= {table["title"] for table in shown["tables"]}
    assert shown["figures"][0]["spec"]["$schema"].startswith("https://vega.github.io/schema/vega-lite")


def test_the_turn_of_largest_ice_comes_first(client, acts):
    found = document(client, f"/nbest/{acts.id}")
    assert [one["number"] for one in found["list"]] == [3, 4, 1, 2]
    turn = found["turn"]
    assert (turn["number"], turn["id"]) == (3, f"u3 {QUOTES}")
    assert turn["measures"]["ice"] == pytest.approx(sum(item["cost"] for item in turn["items"]))


def test_a_turn_shows_which_items_are_right_and_what_each_hypothesis_gets_wrong(client, acts):
    turn = document(client, f"/nbest/{acts.id}/turns", at=1)["turn"]
    assert [one["errors"] for one in turn["hypotheses"]] == [1, 0]
    assert [one["right"] for one in turn["hypotheses"]] == [False, True]
    assert turn["hypotheses"][0]["items"] == [{"text": "food=tie", "right": False}]
    assert turn["rest"] == pytest.approx(0.25)
    assert (turn["measures"]["ser"], turn["measures"]["oracle"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("sort", "numbers"),
    [("wrong", [3, 1, 4]), ("better", [1]), ("missing", [3, 4]), ("order", [1, 2, 3, 4])],
)
def test_orders_keep_the_turns_they_are_about(client, acts, sort, numbers):
    found = document(client, f"/nbest/{acts.id}/turns", sort=sort)
    assert [one["number"] for one in found["list"]] == numbers
    assert found["total"] == len(numbers)


def test_links_lead_to_the_turns_beside_this_one_in_the_same_order(client, acts):
    found = document(client, f"/nbest/{acts.id}/turns", sort="order", at=2)
    assert found["links"]["previous"] == "at=1&sort=order"
    assert found["links"]["next"] == "at=3&sort=order"
    assert document(client, f"/nbest/{acts.id}/turns", sort="order", at=1)["links"]["previous"] is None


def test_a_search_finds_words_items_and_ids_in_any_case(client, acts):
    for words, number in (("THAI", 1), ("area=north", 3), ("u4", 4), ("food d1", 1)):
        assert [one["number"] for one in document(client, f"/nbest/{acts.id}/turns", search=words)["list"]] == [number]


def test_a_search_without_a_find_says_so(client, acts):
    page = client.get(f"/nbest/{acts.id}/turns", params={"search": MARKUP + "none", "wait": 1})
    assert "No turn is to be seen" in page.text
    assert MARKUP not in page.text


def test_a_turn_that_was_linked_to_is_shown_though_the_order_leaves_it_out(client, acts):
    found = document(client, f"/nbest/{acts.id}/turns", sort="better", at=2)
    assert (found["turn"]["number"], found["position"]) == (2, None)
    page = client.get(f"/nbest/{acts.id}/turns", params={"sort": "better", "at": 2, "wait": 1})
    assert "not among the 1 of this order" in page.text


def test_a_link_beyond_the_last_turn_is_refused(client, acts):
    assert client.get(f"/nbest/{acts.id}/turns", params={"at": 5}).status_code == 400
    assert client.get(f"/nbest/{acts.id}/turns", params={"sort": "nonsense"}).status_code == 400


def test_measures_can_be_had_by_slices_and_too_many_are_said(client, acts):
    found = document(client, f"/nbest/{acts.id}", by="noise")
    assert any(f"noise={MARKUP}" in row[0] for table in found["presentation"]["tables"] for row in table["rows"])
    assert "noise" in found["slices"]
    wrong = client.get(f"/nbest/{acts.id}", params={"by": "nonsense", "wait": 1})
    assert wrong.status_code == 200
    assert "nonsense" in wrong.text
    assert 'role="alert"' in wrong.text


def test_nothing_of_the_data_is_markup(client, acts, labels):
    for run in (acts, labels):
        for path in (f"/nbest/{run.id}", f"/nbest/{run.id}/turns", "/nbest"):
            page = client.get(path, params={"wait": 1, "by": "noise" if run is acts else ""}).text
            assert MARKUP not in page
            assert "<img src=x" not in page


def test_lists_of_labels_show_where_the_right_one_stands(client, labels):
    found = document(client, f"/nbest/{labels.id}")
    assert found["presentation"]["title"] == "Where the right label stands"
    assert found["labels"] is True
    turn = found["turn"]
    assert turn["prediction"] == "maybe"
    assert turn["rank"] == 0
    assert [one["confidence"] for one in turn["hypotheses"]] == sorted(
        (one["confidence"] for one in turn["hypotheses"]), reverse=True
    )


def test_labels_further_down_come_by_their_place(client, store, folder):
    rows = [
        {"id": k, "target": target, "prediction": "a", "confidence": 0.6, "nbest": [["a", 0.6], ["b", 0.3], ["c", 0.1]]}
        for k, target in enumerate("abcab")
    ]
    run = store.add(written(folder / "ranked.jsonl", rows))[0].run
    found = document(client, f"/nbest/{run.id}/turns", sort="second")
    assert [(one["number"], one["rank"]) for one in found["list"]] == [(2, 2), (5, 2), (3, 3)]
    page = client.get(f"/nbest/{run.id}/turns", params={"sort": "second", "wait": 1}).text
    assert "stands at place 2" in page


def test_lists_of_25_turns_follow_each_other(client, labels):
    first = document(client, f"/nbest/{labels.id}/turns", sort="order")
    assert (len(first["list"]), first["links"]["later"], first["links"]["earlier"]) == (25, "at=26&sort=order", None)
    second = document(client, f"/nbest/{labels.id}/turns", sort="order", at=26)
    assert (second["list"][0]["number"], second["links"]["earlier"]) == (26, "at=1&sort=order")


def test_turns_of_a_dialogue_follow_each_other_though_their_numbers_grow(client, store, folder):
    rows = [{**ACTS[1], "id": f"d/{k}"} for k in (10, 9, 1, 2)]
    run = store.add(written(folder / "long.jsonl", rows))[0].run
    found = document(client, f"/nbest/{run.id}/turns", sort="order")
    assert [one["id"] for one in found["list"]] == ["d/1", "d/2", "d/9", "d/10"]


def test_the_example_is_added_and_its_page_named(empty):
    client, store = empty
    added = client.post("/api/examples/restaurant")
    assert (added.status_code, added.json()["page"]) == (201, f"/nbest/{store.run('restaurant guide').id}")
    assert len(store.runs()) == 1


def test_an_example_that_is_none_is_refused(client):
    refused = client.post("/api/examples/nonsense")
    assert refused.status_code == 400
    assert 'there is no example "nonsense"' in refused.json()["error"]
