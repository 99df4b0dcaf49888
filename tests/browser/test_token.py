"""The way into a workbench in a real browser: by the link that is printed, and by the file that `--open` shows."""

from contextlib import closing

import pytest

from browser.conftest import why_not
from browser.workbench import served
from demur.apps.web.server import page_that_opens, vega_signature
from demur.store.runs import Store


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    """The link of a server as it is started without any option."""
    if why_not():
        pytest.skip(why_not())
    root = tmp_path_factory.mktemp("guarded") / "store"
    with closing(Store.open(root)) as store:
        store.keep(vega_signature(), b"// nothing is drawn")
    with served(root, "--host", "127.0.0.1") as found:
        yield found


@pytest.mark.parametrize("way", ["link", "file"])
def test_the_link_is_opened_once_and_the_token_leaves_the_address(chromium, link, way):
    bare = link.split("/?")[0]
    with closing(chromium.new_context()) as context, page_that_opens(link) as file:
        page = context.new_page()
        assert page.goto(f"{bare}/runs").status == 401
        page.goto(link if way == "link" else file.as_uri())
        page.wait_for_url(f"{bare}/runs")
        page.get_by_role("heading", name="Runs", exact=True).wait_for()
        assert page.evaluate("document.cookie") == ""
        assert page.goto(f"{bare}/settings").status == 200
        assert page.evaluate("fetch('/runs.json').then((answer) => answer.status)") == 200
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
