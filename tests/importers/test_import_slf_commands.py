"""`demur import slf`: word lattices become rows of confusion networks, and these N-best lists."""

import gzip
import json
from math import exp
from pathlib import Path
from typing import Any

import pytest

from commands import Demur
from demur.errors import DataError
from demur.nbest_lists.asr.lattices import References, lattice_files

LATTICE = """\
VERSION=1.0
acscale=1.0 lmscale=1.0 wdpenalty=0.0
N=3 L=4
I=0 t=0.0
I=1 t=0.4
I=2 t=1.0
J=0 S=0 E=1 W={sure} a=-0.5
J=1 S=0 E=1 W={unsure} a=-1.5
J=2 S=1 E=2 W=food a=-0.1
J=3 S=1 E=2 W=!NULL a=-3.1
"""
SURE = 1 / (1 + exp(-1.0))
"""The first word beats the second by a score of 1, so it has this probability."""
FOOD = 1 / (1 + exp(-3.0))

GRAMMAR = """\
otherwise = ""
[slots.food]
after = ["food"]
values = ["thai", "chinese"]
"""


def lattice(path: Path, sure: str, unsure: str) -> Path:
    text = LATTICE.format(sure=sure, unsure=unsure)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def lattices(tmp_path: Path) -> Path:
    lattice(tmp_path / "lattices" / "u1.lat", "thai", "tie")
    lattice(tmp_path / "lattices" / "later" / "u2.slf.gz", "china", "chinese")
    (tmp_path / "lattices" / "notes.txt").write_text("nothing to read here")
    (tmp_path / "meant.csv").write_text(
        "id,reference,dialogue,noise\nu2,inform(food=chinese),d1,loud\nu1,inform(food=thai),d1,\n"
    )
    return tmp_path


def decoded(text: str) -> dict[str, Any]:
    rows = [json.loads(line) for line in text.splitlines()]
    return {row.pop("id"): row for row in rows}


def test_each_lattice_becomes_a_row_with_what_the_table_says_of_it(demur: Demur, lattices: Path) -> None:
    done = demur("import", "slf", "lattices", "--references", "meant.csv", "-o", "cnets.jsonl")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.endswith("wrote cnets.jsonl: 2 confusion networks\n")
    rows = decoded((lattices / "cnets.jsonl").read_text())
    first, second = rows["u1"].pop("cnet")
    assert rows["u1"] == {"reference": "inform(food=thai)", "dialogue": "d1"}
    assert rows["u2"]["noise"] == "loud"
    assert {arc["word"]: arc["confidence"] for arc in first} == pytest.approx({"thai": SURE, "tie": 1 - SURE})
    assert {arc["word"]: arc["confidence"] for arc in second} == pytest.approx({"food": FOOD, "": 1 - FOOD})


def test_lattices_go_all_the_way_to_the_ice_of_their_acts(demur: Demur, lattices: Path) -> None:
    """Each utterance means two items, inform and its food, both with the probability of the one word that says so."""
    (lattices / "g.toml").write_text(GRAMMAR)
    assert demur("import", "slf", "lattices", "--references", "meant.csv", "-o", "cnets.jsonl").returncode == 0
    done = demur("nbest", "cnets.jsonl", "--scorer", "infev", "--grammar", "g.toml", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["n"], document["reference_items"]) == (2, 4)
    assert document["measures"]["weighted_recall"]["value"] == pytest.approx((2 * SURE + 2 * (1 - SURE)) / 4)
    assert document["measures"]["oracle"]["value"] == 0
    assert document["measures"]["ser"]["value"] == 0.5


@pytest.mark.usefixtures("lattices")
def test_scales_and_pruning_can_be_named(demur: Demur) -> None:
    done = demur("import", "slf", "lattices/u1.lat", "--acscale", "2", "--prune", "0.2", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first, second = decoded(done.stdout)["u1"]["cnet"]
    likely = 1 / (1 + exp(-2.0))
    assert {arc["word"]: arc["confidence"] for arc in first} == pytest.approx({"thai": likely, "": 1 - likely})
    assert second[0]["word"] == "food"


@pytest.mark.usefixtures("lattices")
def test_without_references_the_rows_are_written_and_it_is_said(demur: Demur) -> None:
    done = demur("import", "slf", "lattices/*.lat", "--json", "-o", "cnets.jsonl.gz")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert (document["rows"], document["out"]) == (1, "cnets.jsonl.gz")
    assert any("there are no references" in note for note in document["notes"])


def test_an_utterance_in_which_no_word_is_said_has_a_network_without_slots(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "still.lat").write_text("N=2 L=1\nI=0\nI=1\nJ=0 S=0 E=1 W=!NULL a=-1\n")
    (tmp_path / "meant.jsonl").write_text('{"id": "still", "reference": []}\n')
    done = demur("import", "slf", "still.lat", "--references", "meant.jsonl", "-o", "cnets.jsonl")
    assert done.returncode == 0, done.stderr
    assert decoded((tmp_path / "cnets.jsonl").read_text()) == {"still": {"reference": [], "cnet": []}}
    assert demur("nbest", "cnets.jsonl", "--scorer", "infev", "-q").returncode == 0


HEAD = "N=3 L=3\nI=0\nI=1\nI=2\nJ=0 S=0 E=1 W=a a=-1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}J=1 S=1 E=2 W=b a=-1\nJ=2 S=2 E=1 W=c a=-1\n", "bad.lat must not have a cycle; got"),
        (f"start=2 end=0\n{HEAD}J=1 S=1 E=2 W=b\nJ=2 S=1 E=2 W=c\n", "bad.lat must lead from node 2 to node 0"),
        (f"{HEAD}J=1 S=1 E=7 W=b\nJ=2 S=1 E=2\n", "bad.lat:6: E must be a node of the lattice; got 7"),
        (f"{HEAD}J=1 S=1 E=2 W=b a=loud\nJ=2 S=1 E=2\n", "bad.lat:6: a must be a number"),
        (HEAD, "bad.lat must have L=3 arcs; got 1 (is the file cut off?)"),
        ("hello there\n", "bad.lat:1 must be fields name=value"),
        ("", "bad.lat must have arcs"),
    ],
    ids=["cycle", "unreachable end", "no such node", "no number", "cut off", "no lattice", "empty"],
)
def test_a_broken_lattice_is_refused_and_nothing_written(demur: Demur, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.lat").write_text(text)
    done = demur("import", "slf", "bad.lat", "-o", "cnets.jsonl")
    assert done.returncode == 2, done.stderr
    assert f"error: {message}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "cnets.jsonl").exists()


def test_a_compressed_lattice_that_is_cut_off_is_refused(demur: Demur, lattices: Path) -> None:
    path = lattices / "lattices" / "later" / "u2.slf.gz"
    path.write_bytes(path.read_bytes()[:40])
    done = demur("import", "slf", "lattices")
    assert done.returncode == 2
    assert "u2.slf.gz is cut off or damaged" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.lat"], "nowhere.lat does not exist"),
        (["empty"], "empty holds no lattices"),
        (["lattices", "--acscale", "nan"], "--acscale takes a finite number; got nan"),
        (["lattices", "--json"], "--json: the rows need a file of their own"),
        (["lattices", "-o", "cnets.csv"], "the name must end in one of .jsonl"),
    ],
)
def test_what_cannot_be_done_as_asked_is_refused(
    demur: Demur, lattices: Path, arguments: list[str], message: str
) -> None:
    (lattices / "empty").mkdir()
    done = demur("import", "slf", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("id,reference\nu1,bye()\n", r'meant.csv: there is a lattice \("u2"\) without a reference'),
        ("id,reference\nu1,\nu2,\nu3,\nu4,\n", r'meant.csv: there are 2 references \("u3", "u4"\) without a lattice'),
        ("id,reference\nu1,bye()\nu1,bye()\n", r'meant.csv:3: the id "u1" is there already'),
        ("id,reference\n,bye()\n", r"meant.csv:2: there is no id"),
        ("name,reference\nu1,bye()\n", r'meant.csv: there is no column id; there are "name", "reference"'),
        ("id,answer\nu1,bye()\n", r"meant.csv: there is no column reference"),
        ("id,ref,cnet\nu1,bye(),[]\n", r'meant.csv: there must be no column "cnet" beside the lattices'),
    ],
)
def test_references_that_do_not_fit_the_lattices_are_refused_by_name(
    lattices: Path, table: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lattices)
    Path("meant.csv").write_text(table)
    with pytest.raises(DataError, match=message):
        References.read(Path("meant.csv")).check(lattice_files(["lattices"]))


def test_many_names_are_not_all_listed() -> None:
    with pytest.raises(DataError, match=r'12 lattices \("u0", "u1", "u2", "u3", "u4" and 7 more\) without'):
        References("meant.csv", {}).check([f"u{k}" for k in range(12)])


def test_two_lattices_of_one_name_are_refused(lattices: Path) -> None:
    lattice(lattices / "lattices" / "later" / "u1.lat", "a", "b")
    with pytest.raises(DataError, match=r'u1.lat: the id "u1" belongs to .*u1.lat already'):
        lattice_files([lattices / "lattices"])
    assert list(lattice_files([lattices / "lattices" / "u1.lat"] * 2)) == ["u1"]


def test_one_table_of_references_is_read(lattices: Path) -> None:
    (lattices / "meant2.csv").write_text("id,reference\nu2,bye()\n")
    with pytest.raises(DataError, match="stands for several files"):
        References.read(lattices / "meant*.csv")
