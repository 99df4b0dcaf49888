import json
from threading import Event

import pytest

from apps.web.inside import InsideWorker
from apps.web.logs import MARKUP
from demur.apps.web import server
from demur.apps.web.server import PAGES, vega
from demur.apps.web.site import Page, PageContent, Query, Site, render
from demur.core.show.safe import visible
from demur.errors import DataError, UsageError
from demur.store import runs


@pytest.fixture
def work(monkeypatch):
    """What the worker does when it is asked for the task `made`; it waits for the event."""
    go = Event()
    made = {"go": go, "times": 0, "fails": None}

    def perform_task(_, given, signature, root, step):
        step("counting", 1, 2)
        assert go.wait(20)
        made["times"] += 1
        if made["fails"]:
            raise made["fails"]
        with_store = runs.Store.open(root)
        with_store.keep(signature, json.dumps({"value": given["x"]}).encode())
        with_store.close()

    monkeypatch.setattr("apps.web.inside.perform_task", perform_task)
    return made


@pytest.fixture
def page_of_work(monkeypatch, work):
    """A page that shows what the worker makes."""

    class MadePage(Page):
        path, template = "/made/{id}", "fault.html"

        def show(self, site, query):
            made = site.result("made", [], "Making it", x=query.text("x"))
            return PageContent("Made", {"made": made, "error": "", "status": 0})

    monkeypatch.setattr(server, "PAGES", (MadePage(),))
    return work


@pytest.mark.parametrize("page", [page for page in PAGES if page.heading], ids=lambda page: page.path)
def test_every_page_has_a_json_twin_and_works_with_an_empty_store(client, page):
    twin = client.get(f"{page.path}.json")
    assert twin.status_code == 200
    assert twin.headers["content-type"] == "application/json"
    html = client.get(f"{page.path}?x=1").text
    assert f'href="{page.path}.json?x=1"' in html
    assert html.count("<h1>") == 1


def test_a_quick_result_is_shown_at_once(page_of_work, site, client_for):
    page_of_work["go"].set()
    assert client_for(site).get("/made/a.json?x=1&wait=1").json()["made"] == {"value": "1"}
    assert client_for(site).get("/made/a.json?x=1").json()["made"] == {"value": "1"}
    assert page_of_work["times"] == 1


def test_a_slow_result_shows_that_it_is_being_made_and_can_be_cancelled(page_of_work, site, client_for, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.01)
    client = client_for(site)
    answer = client.get("/made/a.json?x=2")
    job = answer.json()["job"]
    assert (answer.status_code, job["about"]) == (202, "Making it")
    assert client.get("/made/a.json?x=2").json()["job"]["number"] == job["number"]
    assert f'data-job="{job["number"]}"' in client.get("/made/a?x=2").text
    assert client.get(f"/jobs/{job['number']}.json").json()["state"] == "running"
    assert client.delete(f"/jobs/{job['number']}").json()["state"] == "cancelled"
    page_of_work["go"].set()


def test_a_failure_is_shown_until_it_is_let_go_of(page_of_work, site, client_for):
    page_of_work["fails"] = DataError("is odd", where=MARKUP)
    page_of_work["go"].set()
    client = client_for(site)
    answers = [client.get("/made/a.json?x=3&wait=1") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert page_of_work["times"] == 1
    page = client.get("/made/a?x=3").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; is odd" in page
    client.delete(f"/jobs/{answers[0].json()['job']['number']}")
    page_of_work["fails"] = None
    assert client.get("/made/a.json?x=3&wait=1").json()["made"] == {"value": "3"}


def test_a_fault_of_our_own_is_a_server_error(page_of_work, site, client_for):
    page_of_work["fails"] = ValueError("oops")
    page_of_work["go"].set()
    answer = client_for(site).get("/made/a.json?x=3&wait=1")
    assert answer.status_code == 500
    assert "internal error: ValueError: oops" in answer.json()["job"]["message"]


def test_a_result_that_the_store_cannot_keep_is_shown_and_held_for_the_next_look(site, client_for, runs, monkeypatch):
    monkeypatch.setattr("demur.store.records.Cache.keep", lambda *_: False)
    client = client_for(site)
    shown = [client.get(f"/run/{runs[0].id}.json?wait=1") for _ in range(2)]
    assert [answer.status_code for answer in shown] == [200, 200]
    assert shown[0].json() == shown[1].json()
    (job,) = site.worker.jobs()
    assert job.to_dict()["answer"] is None


def test_few_results_are_held_in_memory(site, monkeypatch):
    monkeypatch.setattr("demur.apps.web.worker.RESULTS_HELD", 2)
    monkeypatch.setattr("apps.web.inside.perform_task", lambda _, given, *__: given)
    for name in "abc":
        assert site.worker.start("made", {"x": name}, signature=name).ended.wait(20)
    assert [site.worker.unsaved_result(name) for name in "abc"] == [None, {"x": "b"}, {"x": "c"}]
    site.worker.forget(3)
    assert site.worker.unsaved_result("c") is None


def test_a_result_that_is_neither_kept_nor_held_is_told_of_and_not_made_again_and_again(
    page_of_work, site, client_for, monkeypatch
):
    monkeypatch.setattr(type(site.store), "cached", lambda *_: None)
    page_of_work["go"].set()
    answer = client_for(site).get("/made/a.json?x=3&wait=1")
    assert answer.status_code == 500
    assert "could not be kept" in answer.json()["error"]


def test_a_value_in_the_path_does_not_swallow_the_ending_of_the_twin(page_of_work, site, client_for):
    page_of_work["go"].set()
    assert client_for(site).get("/made/x.json?x=1&wait=1").headers["content-type"] == "application/json"


def test_results_depend_on_the_settings_they_are_made_with(site):
    signatures = []
    site.worker.start = lambda *given, **named: signatures.append((named["signature"], given[1]["sampling"]))
    for change in ({}, {}, {"level": 0.9}):
        site.change_preferences(change)
        with pytest.raises(Exception, match="about"):
            site.result("evaluation", [], "about", by="x")
    assert signatures[0] == signatures[1] != signatures[2]
    assert signatures[2][1] == {"level": 0.9, "replicates": 1000, "seed": 0}


@pytest.mark.parametrize(
    "path", ["/run/x", "/nbest/x", "/gold/x", "/errors?run=x", "/compare?run=x", "/errors.csv?run=x"]
)
def test_a_run_that_is_not_there_is_not_found(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("number", ["9" * 5000, "x", "-1", "1.5", "²"])
def test_what_is_no_number_is_no_job(client, number):
    assert client.get(f"/jobs/{number}.json").status_code == 404
    assert client.delete(f"/jobs/{number}").status_code == 404


@pytest.mark.parametrize("body", [b'{"note": "\\ud800"}', b'{"note": NaN}', b"\xff", b"[" * 30_000])
def test_a_body_that_is_no_strict_json_is_refused(client, runs, body):
    answer = client.patch(f"/api/runs/{runs[0].id}", content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "the body must be a JSON object")


def test_jobs_that_nobody_knows_are_not_found(client):
    assert client.get("/jobs/77.json").status_code == 404
    assert client.delete("/jobs/77").status_code == 404


def test_a_page_that_is_not_there_says_so_and_shows_the_way_back(client):
    answer = client.get("/nothing")
    assert answer.status_code == 404
    assert "there is no such page" in answer.text
    assert 'href="/runs"' in answer.text


def test_files_are_kept_by_the_browser_and_asked_for_again(client):
    first = client.get("/views/page.css")
    again = client.get("/views/page.css", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    script = client.get("/static/site.js")
    assert script.headers["cache-control"] == "no-cache"
    assert client.get("/static/site.js", headers={"if-none-match": script.headers["etag"]}).status_code == 304


def test_the_bundle_of_vega_is_made_once_and_kept_in_the_store(store, monkeypatch):
    pytest.importorskip("vl_convert")
    monkeypatch.setattr("demur.apps.web.server._bundles", {})
    monkeypatch.setattr("demur.apps.web.server.MAKING", "print('made')")
    worker = InsideWorker(store.root)
    site = Site(store, worker)
    assert vega(site) == b"made\n"
    monkeypatch.setattr("demur.apps.web.server._bundles", {})
    monkeypatch.setattr("demur.apps.web.server.MAKING", "raise SystemExit(1)")
    assert vega(site) == b"made\n"
    worker.close()


def test_where_no_process_can_make_the_bundle_the_server_does(store, monkeypatch):
    monkeypatch.setattr("demur.apps.web.server._bundles", {})
    monkeypatch.setattr("demur.apps.web.server.MAKING", "raise SystemExit(1)")
    monkeypatch.setattr("demur.core.show.pictures.javascript", lambda: "made here")
    worker = InsideWorker(store.root)
    assert vega(Site(store, worker)) == b"made here"
    worker.close()


def test_rows_of_the_last_few_runs_stay_at_hand(site, runs):
    assert site.rows(runs[0]) is site.rows(runs[0])
    site.forget_rows(runs[0])
    site.forget_rows(runs[0])
    assert site.rows(runs[0]) is not None


@pytest.mark.parametrize("value", ["</script><script>alert(1)</script>", "\u2028", "&lt;"])
def test_data_in_a_page_cannot_end_the_element_it_stands_in(value):
    html = render("fault.html", value, {"error": value})
    block = html.split('id="page-data">')[1].split("</script>")[0]
    assert json.loads(block) == {"error": visible(value)}
    assert html.count("<script") == 2


def test_a_theme_that_there_is_not_is_left_out():
    assert "data-theme" not in render("fault.html", "x", {"error": ""}, theme='"><script>')
    assert 'data-theme="dark"' in render("fault.html", "x", {"error": ""}, theme="dark")


def query(text):
    return Query({"id": "seven"}, [tuple(pair.split("=", 1)) for pair in text.split("&") if pair])


def test_values_of_a_link_are_read_by_type():
    asked = query("run=a&run=b&x=0.5&n=3&empty=&where=domain=bank=2")
    assert asked.several("run") == ("a", "b")
    assert (asked.text("run"), asked.text("id"), asked.text("empty", "none")) == ("b", "seven", "none")
    assert (asked.number("x", low=0, high=1), asked.number("y", 0.2), asked.whole("n", 1)) == (0.5, 0.2, 3)
    assert asked.where() == (("domain", "bank=2"),)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda asked: asked.number("x"), 'x must be a number; got "high"'),
        (lambda asked: asked.number("n", high=1), "n must lie between -inf and 1; got 2.5"),
        (lambda asked: asked.number("nan"), "nan must be a number"),
        (lambda asked: asked.whole("n", 1), "n must be a whole number; got 2.5"),
        (lambda asked: asked.choice("x", ("low",), "low"), 'x is one of low; got "high"'),
        (lambda asked: asked.where("x"), 'x takes column=value; got "high"'),
    ],
)
def test_a_wrong_value_in_a_link_is_told_with_what_it_must_be(read, told):
    with pytest.raises(UsageError, match=told):
        read(query("x=high&n=2.5&nan=nan"))
