import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
from starlette.exceptions import HTTPException

from apps.web.logs import MARKUP, answers
from demur.apps.web import site as site_module
from demur.apps.web.pages import adding
from demur.apps.web.pages.adding import display_name, ending_of
from demur.apps.web.site import Site
from demur.errors import UsageError


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


LOG = lines(answers(30))


@pytest.fixture
def nothing_left(store):
    """Nothing of an upload is left when the test has ended."""
    yield
    staging = store.root / "staging"
    assert [path.name for path in staging.glob("upload-*")] == []


@pytest.mark.usefixtures("nothing_left")
def test_an_upload_becomes_a_run_named_after_the_users_file(sent, store):
    job = sent(LOG, "my log.v2.jsonl")
    assert job.state == "done"
    (told,) = job.answer["runs"]
    assert (told["name"], told["n"], told["new"]) == ("my log.v2", 30, True)
    assert store.run("my log.v2").source == "my log.v2.jsonl"


def test_what_was_asked_for_goes_with_the_upload(sent, store):
    sent(LOG, name=MARKUP, tag=["a", "b"], note="n", kind="responses")
    run = store.run(MARKUP)
    assert (run.tags, run.note, run.kind) == (("a", "b"), "n", "responses")


@pytest.mark.usefixtures("nothing_left")
def test_the_same_content_again_is_told_to_be_there_already(sent):
    sent(LOG, "one.jsonl")
    (told,) = sent(LOG, "two.jsonl").answer["runs"]
    assert (told["name"], told["new"]) == ("one", False)


@pytest.mark.parametrize(("log", "system"), [("inspect_choice.eval", "mockllm/model"), ("sklearn_all.npz", "log")])
def test_logs_of_other_tools_become_runs(sent, log, system):
    content = (Path(__file__).parents[2] / "importers" / "data" / log).read_bytes()
    (told,) = sent(content, f"log{Path(log).suffix}").answer["runs"]
    assert told["name"] == system


def test_columns_of_other_names_can_be_mapped(sent):
    rows = [{"gold": "a", "guess": "a", "sure": 0.5}, {"gold": "b", "guess": "a", "sure": 0.2}]
    refused = sent(lines(rows))
    assert refused.state == "failed"
    assert "(choose it among the columns below)" in refused.message
    assert "--map" not in refused.message
    job = sent(lines(rows), map=["target=gold", "prediction=guess", "confidence=sure"])
    assert job.state == "done"


def test_trials_take_their_axes_from_the_query(sent, store):
    rows = [
        {"performer": p, "role": r, "wer": w, "done": d}
        for p, r in (("wizard", "gold"), ("A", "system"))
        for w, d in ((0.1, 1), (0.2, 1), (0.3, 0), (0.4, 0))
    ]
    failed = sent(lines(rows), "trials.jsonl")
    assert failed.state == "failed"
    assert "trials.jsonl" in failed.message
    assert sent(lines(rows), "trials.jsonl", x="wer", y="done").state == "done"
    assert store.run("trials").kind == "trials"


@pytest.mark.usefixtures("nothing_left")
def test_a_bad_upload_says_what_and_where_and_leaves_no_run(sent, store):
    rows = answers(5)
    rows[3]["confidence"] = "high"
    job = sent(lines(rows), "../../odd/bad.jsonl")
    assert job.state == "failed"
    assert job.message.startswith("bad.jsonl:4: ")
    assert '"high"' in job.message
    assert "upload" not in job.message
    assert store.runs() == []


def test_a_fault_of_one_system_names_it_as_the_users_file(sent):
    rows = [{"correct": k % 2 == 0, "confidence": (k + 1) / 9} for k in range(8)]
    job = sent(lines([*rows, {"correct": True, "confidence": 95}]), "mine.jsonl")
    assert 'confidences of system "mine" mix 0 to 1' in job.message


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    "body", [b"\x80\x04K\x01.", b"not json\n", b"{}\n", b"\n \n", b"PAR1nothing", gzip.compress(b"{}", mtime=0)[:-9]]
)
def test_no_upload_that_is_no_log_leaves_a_run_or_a_fault_of_ours(sent, store, body):
    job = sent(body)
    assert (job.state, job.internal) == ("failed", False)
    assert "run.jsonl" in job.message
    assert store.runs() == []


@pytest.mark.usefixtures("nothing_left")
def test_an_empty_upload_is_refused(client):
    answer = client.post("/api/uploads?file=a.jsonl", content=b"")
    assert (answer.status_code, answer.json()["error"]) == (400, "the file is empty; it needs at least one row")


@pytest.mark.parametrize("name", ["run.exe", "run", "", "run.jsonl.exe", "run.parquet.gz", "x.py"])
@pytest.mark.usefixtures("nothing_left")
def test_a_file_of_no_known_ending_is_refused_before_it_is_read(client, name):
    answer = client.post("/api/uploads", params={"file": name}, content=LOG)
    assert answer.status_code == 400
    assert "in no format known here" in answer.json()["error"]


@pytest.mark.parametrize("query", ["kind=poems", "map=target", "missing_confidence=maybe"])
def test_a_wish_that_cannot_be_met_is_refused_before_the_upload_is_read(client, query):
    assert client.post(f"/api/uploads?file=a.jsonl&{query}", content=LOG).status_code == 400


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("told_length", [True, False])
def test_an_upload_beyond_the_limit_is_refused_with_the_limit(store, site, client_for, told_length):
    small = client_for(Site(store, site.worker, most_uploaded=1000))
    body = LOG if told_length else iter([LOG[:600], LOG[600:1400], LOG[1400:]])
    answer = small.post("/api/uploads?file=a.jsonl", content=body)
    assert answer.status_code == 413
    assert "1,000 bytes" in answer.json()["error"]
    assert site.worker.jobs() == []


def test_an_upload_that_is_sent_in_pieces_is_put_together_again(client, site, monkeypatch):
    monkeypatch.setattr(adding, "PIECE", 100)
    answer = client.post("/api/uploads?file=a.jsonl", content=iter([LOG[:7], LOG[7:500], LOG[500:]]))
    job = site.worker.job(answer.json()["job"]["number"])
    assert job.ended.wait(30)
    assert job.answer["runs"][0]["n"] == 30


@pytest.mark.usefixtures("nothing_left")
def test_a_full_disk_is_told_of_and_nothing_is_added(client, monkeypatch, store):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(adding, "_write_piece", full)
    answer = client.post("/api/uploads?file=a.jsonl", content=LOG)
    assert answer.status_code == 507
    assert "disk of the store is full; nothing was added" in answer.json()["error"]
    assert store.runs() == []


@pytest.mark.usefixtures("nothing_left")
def test_a_bomb_is_refused_before_it_is_unpacked(store, site, client_for):
    small = client_for(Site(store, site.worker, most_uploaded=100_000))
    bomb = gzip.compress(b'{"target": "a"}\n' * 100_000)
    answer = small.post("/api/uploads?file=bomb.jsonl.gz", content=bomb)
    job = site.worker.job(answer.json()["job"]["number"])
    assert job.ended.wait(30)
    assert job.message.startswith("bomb.jsonl.gz: unpacks to more than an upload may hold, 100,000 bytes")


def test_uploads_under_way_are_bounded(client, monkeypatch):
    monkeypatch.setattr(adding, "AT_ONCE", 0)
    assert client.post("/api/uploads?file=a.jsonl", content=LOG).status_code == 503


def test_names_of_files_are_shown_without_folders_and_signs_that_do_not_print():
    assert display_name("/a/b\\c/d\n.jsonl\x00") == "d.jsonl"
    assert len(display_name("x" * 999 + ".jsonl")) == 200


@pytest.mark.parametrize(("name", "ending"), [("a.JSONL", ".jsonl"), ("a.b.csv.GZ", ".csv.gz"), ("a.pq", ".pq")])
def test_the_ending_is_one_of_those_known_and_never_the_users_own(name, ending):
    assert ending_of(name) == ending


def test_a_file_without_a_name_is_called_so():
    with pytest.raises(UsageError, match="a file without a name"):
        ending_of("")


def taken(monkeypatch, stream, **limits):
    """What comes of a stream; in a thread of its own, as a browser of other tests has its event loop in this one."""
    for name, value in limits.items():
        monkeypatch.setattr(site_module, name, value)

    async def gather():
        return b"".join([chunk async for chunk in site_module.steadily(stream())])

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, gather).result(60)


def test_an_upload_that_stands_still_is_given_up(monkeypatch):
    async def stalling():
        yield b"x" * 10_000
        await anyio.sleep_forever()

    with pytest.raises(HTTPException, match="at least 1,000 bytes a second") as refused:
        taken(monkeypatch, stalling, LONGEST_PAUSE=0.05)
    assert refused.value.status_code == 408


def test_an_upload_that_trickles_is_given_up_however_often_it_brings_something(monkeypatch):
    async def trickling():
        while True:
            await anyio.sleep(0.001)
            yield b"x"

    with pytest.raises(HTTPException, match="too slowly"):
        taken(monkeypatch, trickling, LONGEST_PAUSE=0.2, LEAST_PACE=1_000_000)


def test_an_upload_may_pause_and_take_its_time_as_long_as_it_brings_enough(monkeypatch):
    async def slow():
        for _ in range(20):
            await anyio.sleep(0.01)
            yield b"x" * 1000

    assert len(taken(monkeypatch, slow, LONGEST_PAUSE=5, LEAST_PACE=1)) == 20_000
