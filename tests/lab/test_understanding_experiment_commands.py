"""`demur experiment tokenizers|growth|gate`, and the demo that is made of them."""

import json
import textwrap
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur, run_in
from demur.lab.corpora import museum
from demur.understanding import noise, tokens

QUICK = ("--replicates", "50")


def found(demur: Demur, *arguments: str) -> dict[str, Any]:
    done = demur("experiment", *arguments, "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return read


def own(path: Path, *, off: int = 20, split: bool = False) -> Path:
    """A few answers of the museum guide as a table of a user's own."""
    corpus = museum()
    few = corpus.answers["answer"].to_list()[:6]
    asked = corpus.questions.filter(pl.col("target").is_in(few)).drop("id")
    lost = corpus.offtopic.head(off).select("input", target=pl.lit("oos"))
    rows = pl.concat([asked, lost]).rename({"input": "utterance", "target": "intent"})
    if split:
        rows = rows.with_columns(
            split=pl.Series([("train", "test", "train", "valid")[k % 4] for k in range(rows.height)])
        )
    rows.write_ndjson(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the experiment with tokenizers, on a few answers, and the demo were run once."""
    folder = tmp_path_factory.mktemp("museum")
    few = own(folder / "few.jsonl", off=0).name
    told = run_in(folder, "experiment", "tokenizers", few, "-o", "f.svg", "-o", "answers.csv", "--json", *QUICK)
    assert told.returncode == 0, told.stderr
    (folder / "tokenizers.json").write_text(told.stdout)
    shown = run_in(folder, "demo", *QUICK, "-o", "page.html", "--logs", "logs", columns=80)
    assert shown.returncode == 0, shown.stderr
    (folder / "demo.txt").write_text(shown.stdout)
    (folder / "notes.txt").write_text(shown.stderr)
    return folder


def document_of(folder: Path) -> dict[str, Any]:
    text = (folder / "tokenizers.json").read_text()
    read: dict[str, Any] = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return read


def test_tokenizers_have_a_verdict_on_each_pair_a_figure_and_a_table_of_answers(folder: Path) -> None:
    """What they give on the whole museum guide is recorded in `golden`."""
    document = document_of(folder)
    systems = ["words", "phones1", "phones2", "phones3", "mixed"]
    assert [one["system"] for one in document["standings"]] == systems
    assert [(pair["a"], pair["b"]) for pair in document["pairs"]] == list(combinations(systems, 2))
    assert (folder / "f.svg").read_text().startswith("<svg")
    answers = pl.read_csv(folder / "answers.csv")
    assert answers["system"].unique(maintain_order=True).to_list() == systems
    assert answers.height == 5 * document["tested"]


def test_the_answers_of_an_experiment_can_be_compared_again(folder: Path) -> None:
    done = run_in(folder, "compare", "answers.csv", "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pairs"] == document_of(folder)["pairs"]


def test_growth_is_told_step_by_step(demur: Demur, tmp_path: Path) -> None:
    shown = demur("experiment", "growth", *QUICK, "-o", "f.md")
    assert shown.returncode == 0, shown.stderr
    assert "museum learnt from 1,129 questions to 47 answers, +4 volcanoes from" in shown.stdout
    assert "tested on 376 other questions." in shown.stdout
    assert "made by rule from plain sentences; nobody asked them" in shown.stderr
    assert "A character that grows by other domains" in (tmp_path / "f.md").read_text()


def test_a_character_grows_by_texts_of_ones_own(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "rye.txt").write_text("Rye is a grass. Rye bread is dark. Farmers sow rye in autumn.")
    document = found(demur, "growth", "--text", "rye.txt")
    assert [one["system"] for one in document["standings"]] == ["museum", "+1 rye"]
    assert document["standings"][1]["pairs"] > document["standings"][0]["pairs"]


def test_the_gate_is_held_against_the_interpreter(demur: Demur) -> None:
    document = found(demur, "gate", "--wer", "0.2")
    assert [one["system"] for one in document["standings"]] == ["own confidence", "gate", "both"]
    assert (document["off_topic_learnt"], document["out_of_scope"]) == (60, 60)
    assert document["word_error_rate"] == pytest.approx(0.2, abs=0.01)
    assert len({one["accuracy"] for one in document["standings"]}) == 1


def test_own_questions_are_divided_by_their_split_or_by_chance(demur: Demur, tmp_path: Path) -> None:
    own(tmp_path / "own.jsonl")
    own(tmp_path / "split.jsonl", split=True)
    chance = found(demur, "tokenizers", "own.jsonl", "--tokens", "words,phones", "--wer", "0")
    assert chance["data"] == "own"
    assert chance["out_of_scope"] == 0
    assert (
        found(demur, "tokenizers", "own.jsonl", "--tokens", "words,phones", "--wer", "0", "--off-topic")["out_of_scope"]
        == 20
    )
    assert "input <- utterance" in chance["notes"]
    assert any("no column split" in note for note in chance["notes"])
    assert not any("bundled" in note for note in chance["notes"])
    split = found(demur, "gate", "split.jsonl")
    assert any("left out, neither train nor test" in note for note in split["notes"])
    assert split["off_topic_learnt"] == 10


def test_a_verdict_can_fail_a_build(demur: Demur) -> None:
    command = ("experiment", "tokenizers", "--tokens", "words,phones1", *QUICK, "--fail-if")
    assert demur(*command, "b is significantly worse").returncode == 1
    own_gate = ("experiment", "gate", "--wer", "0", *QUICK, "--fail-if", "both is significantly worse")
    assert demur(*own_gate).returncode == 0


REFUSED = {
    "tokens": (["tokenizers", "--tokens", "words,letters"], "tokens are words, phones1, phones2, phones3"),
    "one": (["tokenizers", "--tokens", "words"], "two or more tokenizers, each once; got words"),
    "wer": (["gate", "--wer", "30"], "--wer must be at least 0 and at most 1; got 30"),
    "file": (["gate", "nowhere.jsonl"], "nowhere.jsonl does not exist"),
    "column": (["gate", "odd.csv"], "odd.csv: needs a column target"),
    "map": (["gate", "odd.csv", "--map", "target=sorrt"], 'there is no column "sorrt" to map target from'),
    "map alone": (["gate", "--map", "target=sort"], "--map names columns of a file of your own; name the file too"),
    "no off-topic": (["gate", "few.jsonl"], "few: the gate needs questions without an answer"),
    "text": (["growth", "--text", "nowhere.txt"], "nowhere.txt does not exist"),
    "other bytes": (["growth", "--text", "latin.txt"], "latin.txt cannot be read as UTF-8 text"),
    "no sentences": (["growth", "--text", "empty.txt"], 'no question could be made by rule of the text "empty"'),
    "output": (["growth", "-o", "f.txt"], "-o f.txt: the extension must be one of"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_wrong_use_is_refused_in_a_sentence_and_nothing_is_written(
    demur: Demur, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "odd.csv").write_text("text,sort\nhello,a\n")
    own(tmp_path / "few.jsonl", off=1)
    (tmp_path / "latin.txt").write_bytes("Das Café ist alt.".encode("latin-1"))
    (tmp_path / "empty.txt").write_text("")
    before = {path.name for path in tmp_path.iterdir()}
    more = [] if "-o" in arguments else ["-o", "f.svg"]
    done = demur("experiment", *arguments, *more, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before


def test_the_demo_tells_its_story_and_writes_a_page_and_logs(folder: Path) -> None:
    shown = (folder / "demo.txt").read_text()
    assert shown.startswith("Through a noisy recogniser mixed is significantly better than words")
    assert "Recommended threshold for mixed: " in shown
    assert "flatters tokens made of phones" in (folder / "notes.txt").read_text()
    names = {
        f"{tokens}-{condition}.jsonl" for tokens in ("words", "phones", "mixed") for condition in ("clean", "noisy")
    }
    assert {path.name for path in (folder / "logs").iterdir()} == names
    page = (folder / "page.html").read_text()
    assert "A museum guide that may say it does not understand" in page
    assert page.count(">ranking skill</th>") == 2, "a leaderboard for each condition"


def test_the_demo_prints_at_most_forty_lines_of_eighty_characters(folder: Path) -> None:
    printed = [*(folder / "demo.txt").read_text().splitlines(), *(folder / "notes.txt").read_text().splitlines()]
    wrapped = [part for line in printed for part in textwrap.wrap(line, 80) or [""]]
    assert len(wrapped) <= 40


def test_the_logs_of_the_demo_show_that_the_mixture_hears_better(folder: Path) -> None:
    done = run_in(folder, "compare", "logs/words-noisy.jsonl", "logs/mixed-noisy.jsonl", "--json", *QUICK)
    (pair,) = json.loads(done.stdout)["pairs"]
    assert (pair["verdict"], pair["n"]) == ("b dominates", 496)


@pytest.mark.parametrize(("module", "extra"), [("gruut", "phones"), ("rapidfuzz", "noise")])
def test_without_an_extra_the_demo_says_what_to_install(
    demur: Demur, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    for part in (tokens, noise):
        monkeypatch.setattr(part, "find_spec", lambda name: None if name == module else find_spec(name))
    done = demur("demo", *QUICK)
    assert done.returncode == 2
    assert f"pip install 'demur[{extra}]'" in done.stderr
