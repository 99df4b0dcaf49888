"""What `demur nbest` refuses: each in a sentence that names the option or the utterance, with nothing half-written."""

from pathlib import Path

import pytest

from commands import Demur, runner
from nbest_lists.test_commands import Row, made_up, row, write


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process."""
    return runner(tmp_path, monkeypatch, capsys)


WRONG_USE = {
    "by": (["a.jsonl", "--by", "nosie"], 'a.jsonl: there is no column "nosie"; did you mean "noise"?'),
    "where nothing": (["a.jsonl", "--where", "noise=loud"], "a.jsonl: no row is left where noise is loud"),
    "map part": (["a.jsonl", "--map", "target=noise"], '--map, or columns: no column is called "target" here'),
    "map column": (["a.jsonl", "--map", "reference=gold"], 'there is no column "gold" to map reference from'),
    "scorer": (["a.jsonl", "--scorer", "infef"], 'there is no scorer "infef"'),
    "no scorer": (["a.jsonl", "--scorer", " ,"], "--scorer takes a name"),
    "grammar alone": (
        ["a.jsonl", "--grammar", "g.toml"],
        "--grammar, --parser, --heard, --sentences and --acoustic-scale go with --scorer",
    ),
    "both": (["a.jsonl", "--scorer", "const", "--grammar", "g.toml", "--parser", "cat"], "not by both"),
    "no parser": (["a.jsonl", "--scorer", "const", "--parser", "no-such-program"], 'the parser "no-such-program"'),
    "no network": (["a.jsonl", "--scorer", "const", "--heard", "cnet"], 'utterance "d0/0": has no cnet (--heard asr'),
    "no words": (["a.jsonl", "--scorer", "avgword"], 'utterance "d0/0"'),
    "matched alone": (["a.jsonl", "--matched"], "--system, --matched and --unpaired go with --compare"),
    "one system": (["a.jsonl", "--compare"], 'a comparison needs two systems or more; got "a"'),
    "no such system": (["a.jsonl", "b.jsonl", "--compare", "--system", "a", "--system", "c"], 'there is no system "c"'),
    "two minds": (["a.jsonl", "b.jsonl", "--compare", "--matched", "--unpaired"], "--matched pairs utterances"),
    "compare by": (["a.jsonl", "b.jsonl", "--compare", "--by", "noise"], "leave out --by"),
    "twice": (["a.jsonl", "a.jsonl"], "a.jsonl is given twice"),
    "lists": (["a.jsonl", "--write-lists", "w.json"], "--write-lists w.json: the name must end in one of .jsonl"),
    "lists over input": (["a.jsonl", "--write-lists", "a.jsonl"], "--write-lists a.jsonl: this file is read here"),
    "fit on itself": (
        ["a.jsonl", "--recalibrate-on", "a.jsonl"],
        "--recalibrate-on a.jsonl: this file is evaluated too",
    ),
    "ontology": (["a.jsonl", "--ontology", "o.json"], "--ontology goes with dialogues of DSTC2"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_USE.values(), ids=WRONG_USE)
def test_wrong_use_is_refused_in_a_sentence_and_nothing_is_written(
    inside: Demur, tmp_path: Path, arguments: list[str], said: str
) -> None:
    before = write(tmp_path / "a.jsonl", made_up(20)).read_bytes()
    write(tmp_path / "b.jsonl", made_up(20, seed=1))
    more = [] if "-o" in arguments else ["-o", "r.html"]
    more += [] if "--write-lists" in arguments else ["--write-lists", "w.jsonl"]
    done = inside("nbest", *arguments, *more, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", "b.jsonl"}
    assert (tmp_path / "a.jsonl").read_bytes() == before


GOOD = row("u1", "inform(food=thai)", ("inform(food=thai)", 0.7))
BAD_INPUT = {
    "negative": (row("u2", "bye()", ("bye()", -0.1)), "a confidence must be a number of at least 0; got -0.1"),
    "above 1": (row("u2", "bye()", ("bye()", 1.5)), "a confidence must not exceed 1; got 1.5 (--normalise"),
    "not a number": (row("u2", "bye()", ("bye()", float("nan"))), "got no number"),
    "infinite": (row("u2", "bye()", ("bye()", float("inf"))), "at least 0; got"),
    "no confidence": (row("u2", "bye()", ("bye()", None)), 'each hypothesis needs "confidence": P'),
    "sum": (row("u2", "bye()", ("bye()", 0.7), ("hello()", 0.6)), "these sum to 1.3 (--normalise"),
    "act": (row("u2", "bye()", ("inform(food=thai", 0.7)), "does not parse at character 17"),
    "reference that does not parse": (row("u2", "inform(food=thai", ("bye()", 0.7)), "does not parse at character 17"),
    "null reference": (row("u2", None, ("bye()", 0.7)), "has no reference"),
    "no reference": ({"id": "u2", "hypotheses": []}, "has no reference"),
    "neither": ({"id": "u2", "reference": "bye()", "hypotheses": [{"confidence": 1}]}, "neither act nor items"),
    "text for a list": ({"id": "u2", "reference": "bye()", "hypotheses": "bye"}, "hypotheses must be a list, not text"),
}


@pytest.mark.parametrize(("bad", "said"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_refused_with_file_line_and_utterance(inside: Demur, tmp_path: Path, bad: Row, said: str) -> None:
    write(tmp_path / "log.jsonl", [GOOD, bad])
    done = inside("nbest", "log.jsonl", "-o", "r.json")
    assert done.returncode == 2
    assert done.stderr.startswith('error: log.jsonl:2: utterance "u2"')
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "r.json").exists()


def test_an_id_that_occurs_twice_is_refused_with_both_places(inside: Demur, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", [GOOD, row("u2", []), GOOD])
    done = inside("nbest", "log.jsonl")
    assert done.returncode == 2
    assert 'log.jsonl:3: the id "u1" occurs twice in system "log", first at log.jsonl:1' in done.stderr


def test_a_network_with_a_slot_that_sums_to_0_is_refused(inside: Demur, tmp_path: Path) -> None:
    slots = [[{"word": "thai", "confidence": 1.0}], [{"word": "food", "confidence": 0.0}]]
    write(tmp_path / "log.jsonl", [row("u1", "bye()", cnet=slots)])
    done = inside("nbest", "log.jsonl", "--scorer", "infev")
    assert done.returncode == 2
    assert 'utterance "u1": cnet slot 2 must have an arc of positive probability' in done.stderr


def test_a_parser_that_answers_nonsense_is_named(inside: Demur, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", made_up(5))
    done = inside("nbest", "a.jsonl", "--scorer", "const", "--parser", "cat")
    assert done.returncode == 2
    assert 'utterance "d0/0": the parser\'s answer must be acts' in done.stderr
