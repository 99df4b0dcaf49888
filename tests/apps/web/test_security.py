import pytest
from starlette.requests import Request

from demur.apps.web.security import HEADERS, POLICY, cookie_of, host_of, path_of, same, stamp

TOKEN = "a-token-that-is-long-enough"
EVERY = ["/runs", "/runs.json", "/nothing", "/static/site.js", "/static/nothing.js", "/views/page.css", "/jobs/9.json"]


@pytest.fixture
def guarded(site, client_for):
    """A client of a server that asks for a token and answers to any name."""
    return client_for(site, token=TOKEN, hosts=None)


def asked(**headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": raw, "query_string": b""})


@pytest.mark.parametrize("path", EVERY)
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert not [name for name in headers if name.startswith("access-control")]


def test_what_is_said_of_our_own_faults_has_the_security_headers_too(site, client_for, monkeypatch):
    monkeypatch.setattr(type(site.store), "runs", lambda _: 1 / 0)
    answer = client_for(site, raise_server_exceptions=False).get("/runs")
    assert answer.status_code == 500
    assert "internal error: ZeroDivisionError" in answer.text
    assert answer.headers["content-security-policy"] == POLICY


def test_the_policy_lets_nothing_in_from_outside_and_nothing_inline():
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    assert "default-src 'none'" in POLICY


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "[", "a@localhost", "localhost/x", "127.0.0.2", "::1"]
)
def test_a_server_on_this_machine_answers_to_no_other_name(client, host):
    assert client.get("/runs", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:8378", "LOCALHOST", "127.0.0.1:1", "[::1]:8378"])
def test_a_server_on_this_machine_answers_to_its_own_names(client, host):
    assert client.get("/runs", headers={"host": host}).status_code == 200


def test_a_host_is_read_strictly():
    assert host_of(asked(host="[::1]:80").headers) == "::1"
    assert host_of(asked(host="x:80:90").headers) == ""
    assert host_of(asked().headers) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Demur": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("method", ["post", "patch", "delete", "put", "options"])
def test_nothing_is_changed_for_another_site(client, headers, method):
    for path in ("/api/uploads?file=a.jsonl", "/api/runs/x", "/api/settings", "/api/cache", "/jobs/1"):
        answer = client.request(method.upper(), path, headers=headers)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_of_this_server_may_change_things(client):
    headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert client.delete("/api/cache", headers=headers).status_code == 200


@pytest.mark.parametrize("site_of_asker", ["cross-site", "same-site"])
def test_another_site_may_link_to_a_page_and_ask_for_nothing_else(client, site_of_asker):
    link = {"sec-fetch-site": site_of_asker, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/runs", headers=link).status_code == 200
    picture = {"sec-fetch-site": site_of_asker, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    assert client.get("/runs", headers=picture).status_code == 403
    frame = {**link, "sec-fetch-dest": "iframe"}
    assert client.get("/runs", headers=frame).status_code == 403


def test_head_is_answered_and_options_is_not(client):
    assert client.head("/runs").status_code == 200
    assert client.options("/runs").status_code == 405


@pytest.mark.parametrize("path", ["/runs", "/runs.json", "/", "/jobs/1.json", "/nothing", "/api/uploads"])
def test_without_the_token_nobody_sees_anything(guarded, path):
    answer = guarded.get(path, follow_redirects=False)
    assert answer.status_code == 401
    assert "Nothing here yet" not in answer.text


@pytest.mark.parametrize("host", ["x/static/", "x/views/?", "x/static/#", "localhost/static/"])
def test_no_host_makes_a_page_one_of_the_files_that_are_open_to_all(site, client_for, host):
    open_to_names = client_for(site, hosts=None, token=TOKEN)
    assert open_to_names.get("/runs.json", headers={"host": host}).status_code == 401


def test_the_path_is_the_one_that_is_routed_by_whatever_the_host_says():
    headers = [(b"host", b"x/static/")]
    asked = Request({"type": "http", "path": "//a b?c", "headers": headers, "query_string": b"", "scheme": "http"})
    assert path_of(asked) == "/a%20b%3Fc"


def test_a_browser_without_the_token_is_asked_for_it_and_brought_where_it_wanted(guarded):
    page = guarded.get('/compare?run=a&run="><script>').text
    assert '<input id="token"' in page
    assert 'action="/compare"' in page
    assert 'name="run" value="a"' in page
    assert "<script>&" not in page
    assert 'value="&#34;&gt;&lt;script&gt;"' in page
    assert "That is not the token" not in page


def test_a_wrong_token_is_told_to_be_wrong(guarded):
    answer = guarded.get("/runs?token=wrong")
    assert answer.status_code == 401
    assert "That is not the token" in answer.text
    assert 'name="token" value' not in answer.text


def test_scripts_without_the_token_get_json(guarded):
    assert "bearer" in guarded.get("/runs.json").json()["error"]
    assert guarded.get("/runs", headers={"accept": "application/json"}).json()["error"]


def test_the_link_with_the_token_lets_in_and_leaves_it_out_of_the_address(guarded):
    answer = guarded.get(f"/runs?order=name&token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?order=name")
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert stamp(TOKEN) in cookie
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert guarded.get("/runs").status_code == 200


def test_a_link_with_the_token_that_was_followed_from_elsewhere_goes_on_from_a_page_of_this_site(guarded):
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    answer = guarded.get(f"/runs?order=a%22b&token={TOKEN}", headers=followed, follow_redirects=False)
    assert answer.status_code == 200
    assert 'content="0; url=/runs?order=a%22b"' in answer.text
    assert TOKEN not in answer.text
    assert stamp(TOKEN) in answer.headers["set-cookie"]


def test_who_follows_a_link_from_elsewhere_is_offered_to_go_on_with_the_cookie(guarded):
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert '<a href="/compare?run=a&amp;run=b">go on</a>' in guarded.get("/compare?run=a&run=b", headers=followed).text
    assert "go on</a>" not in guarded.get("/compare?run=a").text


def test_the_way_in_leads_to_no_other_host(guarded):
    answer = guarded.get(f"http://localhost//evil.example/?token={TOKEN}", follow_redirects=False)
    assert answer.headers["location"] == "/evil.example/"


def test_a_bearer_token_lets_in_and_a_wrong_one_does_not(guarded):
    assert guarded.get("/runs.json", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert guarded.get("/runs.json", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert guarded.get("/runs.json", headers={"authorization": f"Bearer {stamp(TOKEN)}"}).status_code == 401


def test_a_token_in_the_address_changes_nothing(guarded):
    assert guarded.delete(f"/api/cache?token={TOKEN}").status_code == 401


def test_a_token_does_not_make_up_for_coming_from_another_site(guarded):
    headers = {"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example"}
    assert guarded.delete("/api/cache", headers=headers).status_code == 403


def test_the_files_that_the_entry_is_drawn_with_need_no_token(guarded):
    assert guarded.get("/static/workbench.css").status_code == 200
    assert guarded.get("/views/page.css").status_code == 200


def test_cookies_of_servers_on_two_ports_do_not_mix():
    assert cookie_of(asked(host="localhost:1")) != cookie_of(asked(host="localhost:2"))


def test_secrets_of_any_letters_can_be_compared():
    assert not same("geheimnisvoll-ü", "x")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/views/x.py",
    ],
)
def test_no_path_leads_out_of_the_static_files(client, path):
    assert client.get(path).status_code == 404


def test_a_body_that_is_no_small_json_object_is_refused(client):
    answers = [client.patch("/api/settings", content=body) for body in (b"[1]", b"{", b"[" * 60_000, b"x" * 70_000)]
    assert [answer.status_code for answer in answers] == [400, 400, 400, 413]
