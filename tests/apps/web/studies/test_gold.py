"""Gold graphs: studies read as the form asks, and faults told beside it."""

from dataclasses import asdict

import numpy as np
import pytest

from apps.web.logs import MARKUP, log, written
from demur.core.jobs import fields_of
from demur.core.show.results import plain
from demur.gold_standard.jobs import gold
from demur.store.intake import RunReading

AXES = RunReading(x="wer", y="done")


def trials(ends, *, study="s", each=6, components=None):
    """Trials of four subjects a performer, the more successful the nearer the line is to 1."""
    rng = np.random.default_rng(len(study))
    return [
        {
            "study": study,
            "performer": name,
            "subject": f"{name} {subject}",
            "wer": round(float(x), 3),
            "cost": round(float(1 - x), 3),
            "done": int(rng.random() < a + (b - a) * x),
            "components": (components or {}).get(name),
        }
        for name, (a, b) in ends.items()
        for subject in range(4)
        for x in np.linspace(0, 1, each)
    ]


ENDS = {"wizards": (1.0, 0.7), f"A {MARKUP}": (0.9, 0.1), "B": (0.7, 0.4)}


@pytest.fixture(scope="module")
def run(store, folder):
    return store.add(written(folder / "study.jsonl", trials(ENDS)), name=f"study {MARKUP}", reading=AXES)[0].run


def document(client, run, **query):
    answer = client.get(f"/gold/{run.id}.json", params={"wait": 1, "checks": "false", "fit": "linear", **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_without_studies_the_page_offers_the_bundled_one(empty):
    page = empty[0].get("/gold").text
    assert "No run has trials of a gold standard yet" in page
    assert 'data-example="wizards"' in page


def test_a_run_of_another_kind_is_refused(client, store, folder):
    answers = store.add(log(folder / "answers.jsonl"))[0].run
    refused = client.get(f"/gold/{answers.id}")
    assert refused.status_code == 400
    assert "gold graphs are of trials" in refused.text


def test_a_study_is_read_by_the_columns_it_was_added_with(client, run):
    found = document(client, run)
    assert (found["x"], found["y"], found["fault"]) == ("wer", "done", None)
    assert found["columns"] == ["wer", "cost", "done"]
    assert found["performers"] == ["wizards", f"A {MARKUP}", "B"]
    assert "Gold impurity" in found["presentation"]["figures"][1]["description"]


def test_the_form_says_by_which_columns_a_study_is_read(client, run):
    found = document(client, run, x="cost", direction="helpful")
    assert found["x"] == "cost"
    assert "against cost" in found["presentation"]["figures"][0]["description"]


def test_wizards_and_convergence_are_looked_at_unless_it_must_be_quick(client, run):
    quick, whole = document(client, run), document(client, run, checks="true")
    assert len(whole["presentation"]["figures"]) > len(quick["presentation"]["figures"])


@pytest.mark.parametrize("cost", ["1000 * p ** 2", "0:0, 0.5:10, 1:40"])
def test_a_cost_is_an_expression_or_points(client, run, cost):
    found = document(client, run, cost=cost)
    assert found["fault"] is None
    assert any("marginal cost" in sentence for sentence in found["presentation"]["sentences"])


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        ("nonsense(p)", "cannot use"),
        ("0:0, half:10", "got "),
        ("1 / p", "must be a finite number"),
        ("__import__('os')", "the cost:"),
    ],
)
def test_a_cost_that_is_none_is_told_beside_the_form(client, run, cost, told):
    found = document(client, run, cost=cost)
    assert told in found["fault"]
    page = client.get(f"/gold/{run.id}", params={"wait": 1, "checks": "false", "cost": cost})
    assert page.status_code == 200
    assert 'class="fault" role="alert"' in page.text
    assert 'name="cost"' in page.text


def test_a_cost_never_names_a_file(client, run, folder, monkeypatch):
    (folder / "cost.csv").write_text("performance,amount\n0,0\n1,100\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    for name in ("cost.csv", str(folder / "cost.csv"), "-"):
        assert "the cost:" in document(client, run, cost=name)["fault"]


def test_a_range_has_two_ends(client, run):
    answer = client.get(f"/gold/{run.id}.json", params={"within": 0.2})
    assert answer.status_code == 400
    assert "within takes two numbers" in answer.json()["error"]
    found = document(client, run, within="0.2:0.8")
    assert any("20 % to 80 %" in note for note in found["presentation"]["notes"])


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"fit": "nonsense"}, "fit takes one of"),
        ({"degree": 0}, "degree must be at least 1 and at most 9"),
        ({"cost": "p" * 501}, "at most 500"),
    ],
)
def test_what_the_form_cannot_ask_is_refused(client, run, query, told):
    answer = client.get(f"/gold/{run.id}.json", params=query)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


def test_another_performer_can_be_the_gold_standard(client, run):
    found = document(client, run, gold="B")
    assert any(note.startswith("the column role") or "B" in note for note in found["presentation"]["notes"])
    assert "B (gold)" in found["presentation"]["figures"][0]["description"]


def test_several_studies_are_held_against_each_other(client, run, store, folder):
    rows = trials({"wizards": (0.9, 0.3), "C": (0.6, 0.1)}, study="other")
    other = store.add(written(folder / "other.jsonl", rows), name="other", reading=AXES)[0].run
    found = document(client, run, also=other.id)
    assert found["presentation"]["title"] == "Across domains"
    assert [part["title"] for part in found["presentation"]["parts"]] == ["s", "other"]


def test_two_studies_of_one_name_are_refused(client, run, store, folder):
    twin = store.add(written(folder / "twin.jsonl", trials(ENDS, each=7)), name="twin", reading=AXES)[0].run
    assert 'two studies are called "s"' in document(client, run, also=twin.id)["fault"]


def test_components_are_taken_apart_when_asked(client, store, folder):
    rows = trials({"gold": (1, 0.8), "A": (0.9, 0.1), "B": (0.9, 0.4)}, components={"A": "none", "B": "spell"})
    run = store.add(written(folder / "parts.jsonl", rows), reading=AXES)[0].run
    found = document(client, run, components="true")
    assert found["fault"] is None
    assert any("spell" in row[0] for table in found["presentation"]["tables"] for row in table["rows"])


def test_nothing_of_the_data_is_markup(client, run):
    query = {"wait": 1, "checks": "false", "cost": f"'{MARKUP}'"}
    for params in (query, {**query, "cost": ""}):
        assert MARKUP not in client.get(f"/gold/{run.id}", params=params).text
    assert MARKUP not in client.get("/gold").text


def test_the_example_is_two_studies_of_wizards_and_added_once(empty):
    client, store = empty
    first, second = (client.post("/api/examples/wizards").json() for _ in range(2))
    assert first["page"] == f"/gold/{store.run('wizards').id}"
    assert first == second
    assert len(store.runs(kind="trials")) == len(store.runs()) == 2


def test_the_form_has_the_options_of_the_job(client, run):
    form, declared = document(client, run)["form"], {one.name: asdict(one) for one in fields_of(gold)}
    for name, one in form.items():
        assert {**one, "choices": []} == {**plain(declared[name]), "label": one["label"], "choices": []}
    page = client.get(f"/gold/{run.id}", params={"wait": 1, "checks": "false", "fit": "linear"}).text
    assert all(f'name="{name}"' in page for name in form)
    assert 'name="degree" step="1" min="1" max="9" value="3"' in page
