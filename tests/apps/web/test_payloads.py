"""Names that try to be more than text, on every page of the workbench."""

import re
from html.parser import HTMLParser

import pytest

from apps.web.inside import InsideWorker, client_of
from demur.apps.web.site import Site
from demur.core.show.safe import visible
from demur.store.runs import RunReading, Store
from payloads import NAMES, write_logs

SENT_BACK = ("value", "name", "data-text")
"""Attributes that a form or a script sends back as they are, and that nobody sees."""


class Shown(HTMLParser):
    """Gathers all that a page shows or tells: its texts, and its attributes but for those that are sent back."""

    def __init__(self, page):
        super().__init__()
        self.texts = []
        self.feed(page)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        self.texts += [value or "" for name, value in attrs if name not in SENT_BACK]


@pytest.fixture(scope="module")
def ids(tmp_path_factory):
    """A client of a store in which all that is named is a payload, and the ids of its runs."""
    folder = write_logs(tmp_path_factory.mktemp("payloads"))
    with Store.open(folder / "store") as store:
        path = folder / "answers.jsonl"  # names of runs are refused where they do not print
        path.write_text(re.sub(r'"system": "(one|two) .*?", "target"', r'"system": "\1", "target"', path.read_text()))
        (one, two) = store.add(path, note="".join(NAMES))
        (lists,) = store.add(folder / "lists.jsonl")
        reading = RunReading(x="noise", y="done", gold=(f"wizards {NAMES[7]}",))
        (trials,) = store.add(folder / "trials.jsonl", reading=reading)
        site = Site(store, InsideWorker(store.root))
        site.change_preferences({"replicates": 50})
        yield client_of(site), {"one": one.run.id, "two": two.run.id, "lists": lists.run.id, "trials": trials.run.id}
        site.worker.close()


PAGES = (
    "/runs",
    "/run/{one}",
    "/run/{trials}",
    "/compare?run={one}&run={two}",
    "/errors?run={one}&other={two}&show=all&search=%E2%80%AE",
    "/errors/rows?run={one}&show=all",
    "/nbest",
    "/nbest/{lists}",
    "/nbest/{lists}/turns",
    "/gold",
    "/gold/{trials}?checks=false",
    "/settings",
    "/run/%E2%80%AE",
)


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_seen_can_be_seen_on_every_page(ids, page):
    client, known = ids
    path, _, query = page.format(**known).partition("?")
    answer = client.get(f"{path}?{query}&wait=1")
    assert answer.status_code == (404 if path == "/run/%E2%80%AE" else 200)
    shown = "\n".join(Shown(answer.text).texts)
    assert visible(shown) == shown
    twin = client.get(f"{path}.json?{query}&wait=1").text
    assert visible(twin) == twin


def test_what_a_form_sends_back_stays_as_it_is(ids):
    client, known = ids
    page = client.get("/errors", params={"run": known["one"], "show": "all"}).text
    sent = next(value for value in re.findall(r'<option value="([^"]+)"', page) if "\u202e" in value)
    column, _, value = sent.partition("=")
    assert column == NAMES[-1]
    rows = client.get("/errors.json", params={"run": known["one"], "show": "all", "where": sent}).json()["rows"]
    assert {row["slices"][column] for row in rows} == {value}
    assert f">{visible(value)} (" in page
