"""`demur nbest` as a user meets it: what it prints, what it writes, what it refuses and how it says so."""

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur, run_in, runner

QUICK = ("--replicates", "50")
FOODS = ("thai", "indian", "chinese", "italian")

Row = dict[str, Any]


def row(name: str, reference: Any, *hypotheses: tuple[Any, float | None], **others: Any) -> Row:
    """One utterance; a hypothesis is an act, or a list of items, with its confidence."""
    listed = [
        {"items" if isinstance(what, list) else "act": what, "confidence": confidence}
        for what, confidence in hypotheses
    ]
    return {"id": name, "reference": reference, "hypotheses": listed, **others}


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def made_up(n: int = 100, *, seed: int = 0, skill: float = 0.6) -> list[Row]:
    """Utterances of which the top hypothesis is right with a chance of `skill`; references are alike for any seed."""
    rng, meanings = random.Random(seed), random.Random(99)
    rows = []
    for k in range(n):
        meant = meanings.choice(FOODS)
        wrong = [food for food in FOODS if food != meant]
        top = meant if rng.random() < skill else rng.choice(wrong)
        other = rng.choice([food for food in FOODS if food != top])
        sure = round(rng.uniform(0.4, 0.8), 3)
        rows.append(
            row(
                f"d{k // 5}/{k % 5}",
                f"inform(food={meant})",
                (f"inform(food={top})", sure),
                (f"inform(food={other})", round(0.9 * (1 - sure), 3)),
                dialogue=f"d{k // 5}",
                noise=("low", "high")[k // 5 % 2],
                asr=[{"text": f"{top} food", "logprob": -0.3}, {"text": f"{other} food", "logprob": -1.5}],
            )
        )
    return rows


HAND = [
    row("u1", ["a"], (["a"], 0.5)),
    row("u2", ["a", "b"], (["a"], 0.25), (["b", "c"], 0.75)),
    row("u3", ["d"]),
    row("u4", [], (["e"], 0.5)),
]
"""Nw = 4. Top hypotheses {a}, {b c}, none, {e}: errors 0, 1, 1, 1; the best of each list: 0, 1, 1, 1.
WSER: .5 x 0 + .5 x 1 (mass given to none) = .5; .25 x 1 + .75 x 1 = 1; 1; .5 x 1 + .5 x 0 = .5: together 3 / 4."""


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process."""
    return runner(tmp_path, monkeypatch, capsys)


@pytest.fixture
def found(inside: Demur) -> Callable[..., dict[str, Any]]:
    """Runs `demur nbest --json` and reads what it prints, which must be strict JSON."""

    def run(*arguments: str) -> dict[str, Any]:
        done = inside("nbest", "--json", *QUICK, *arguments)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        assert "warning" not in done.stderr.lower()
        read: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        return read

    return run


def test_the_measures_of_a_case_worked_by_hand(found, tmp_path: Path) -> None:
    write(tmp_path / "hand.jsonl", HAND)
    values = {name: figure["value"] for name, figure in found("hand.jsonl")["measures"].items()}
    assert values["ser"] == 0.75
    assert values["oracle"] == 0.75
    assert values["wser"] == 0.75
    assert values["precision"] == 2 / 4
    assert values["recall"] == 2 / 4
    assert values["weighted_recall"] == pytest.approx((0.5 + 0.25 + 0.75) / 4)
    assert values["weighted_precision"] == pytest.approx(1.5 / (0.5 + 0.25 + 0.75 + 0.75 + 0.5))
    # a .5, a .25, b .75, not c .75, d at the floor, not e .5
    assert values["ice"] == pytest.approx((2 * 0.693147 + 2 * 1.386294 + 0.287682 + 6.907755) / 4, abs=1e-5)


def test_the_parts_sum_to_the_ice_to_the_last_digits(found, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", made_up())
    document = found("a.jsonl")
    parts = document["ice_parts"]
    total = parts["missing"] + parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"]
    assert document["measures"]["ice"]["value"] == pytest.approx(total, rel=1e-12)


def test_several_systems_and_slices_stand_under_systems(found, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", made_up())
    write(tmp_path / "b.jsonl", made_up(seed=1))
    assert [one["system"] for one in found("b.jsonl", "a.jsonl")["systems"]] == ["b", "a"]
    sliced = found("a.jsonl", "--by", "noise")["systems"]
    assert [(one.get("slice"), one["n"]) for one in sliced] == [(None, 100), ("noise=high", 50), ("noise=low", 50)]


def test_a_comparison_has_pairs_and_its_verdict_is_a_gate(inside: Demur, found, tmp_path: Path) -> None:
    write(tmp_path / "good.jsonl", made_up(skill=0.9))
    write(tmp_path / "poor.jsonl", made_up(seed=1, skill=0.2))
    pair = found("good.jsonl", "poor.jsonl", "--compare")["pairs"][0]
    assert (pair["a"], pair["b"], pair["paired"], pair["n"]) == ("good", "poor", True, 100)
    assert pair["verdict"] == "a better"
    ice = pair["differences"]["ice"]
    assert ice["high"] < 0 <= ice["p"] < 0.001
    command = ("nbest", "good.jsonl", "poor.jsonl", "--compare", "--quiet", *QUICK, "--fail-if")
    failed = inside(*command, "b is significantly worse")
    assert failed.returncode == 1
    assert "gate: poor is significantly worse than good" in failed.stderr
    assert inside(*command, "poor is significantly worse").returncode == 1
    assert inside(*command, "a is significantly better").returncode == 1
    assert inside(*command, "a is significantly worse").returncode == 0
    assert inside(*command, "ice_difference > 0").returncode == 0
    by_system = inside(*command, "ice > 2")
    assert by_system.returncode == 1
    assert by_system.stderr.startswith("gate: poor: ice > 2 holds")
    unknown = inside(*command, "icee > 3")
    assert unknown.returncode == 2
    assert 'knows no "icee"; did you mean "ice"?' in unknown.stderr
    nobody = inside(*command, "c is significantly worse")
    assert nobody.returncode == 2
    assert 'there is no system "c"; there are a, b, good, poor' in nobody.stderr


def test_a_gate_means_the_system_of_that_name_before_the_side(inside: Demur, tmp_path: Path) -> None:
    for name, skill in (("a", 0.9), ("b", 0.89), ("c", 0.1)):
        write(tmp_path / f"{name}.jsonl", made_up(skill=skill))
    done = inside(
        "nbest", "a.jsonl", "b.jsonl", "c.jsonl", "--compare", *QUICK, "--fail-if", "b is significantly worse"
    )
    assert done.returncode == 0, done.stderr


def test_a_gate_on_a_number_exits_with_one_and_says_what_it_was(inside: Demur, tmp_path: Path) -> None:
    write(tmp_path / "hand.jsonl", HAND)
    passed = inside("nbest", "hand.jsonl", *QUICK, "--fail-if", "ice > 4")
    assert passed.returncode == 0
    failed = inside("nbest", "hand.jsonl", *QUICK, "--fail-if", "ice > 2", "--fail-if", "ice_parts.missing > 1")
    assert failed.returncode == 1
    assert "gate: hand: ice > 2 holds: it is 2.83" in failed.stderr
    assert "gate: hand: ice_parts.missing > 1 holds: it is 1.72694" in failed.stderr
    elsewhere = inside("nbest", "hand.jsonl", *QUICK, "--fail-if", "hand is significantly worse")
    assert elsewhere.returncode == 2
    assert "is a gate for compare and nbest --compare" in elsewhere.stderr


def test_the_order_of_rows_changes_no_byte(inside: Demur, tmp_path: Path) -> None:
    rows = made_up()
    shuffled = random.Random(5).sample(rows, len(rows))
    for folder, one in (("x", rows), ("y", shuffled)):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "a.jsonl", one)
        write(tmp_path / folder / "b.jsonl", random.Random(6).sample(made_up(seed=1), len(rows)))
    for options in (["--compare"], ["--by", "noise", "--recalibrate-on", "other.jsonl"]):
        write(tmp_path / "other.jsonl", made_up(seed=2))
        printed = [
            inside("nbest", "--json", *QUICK, *options, f"{folder}/a.jsonl", f"{folder}/b.jsonl").stdout
            for folder in ("x", "y")
        ]
        assert printed[0]
        assert printed[0].replace("x/", "") == printed[1].replace("y/", "")


def test_every_format_is_written_and_says_the_same(inside: Demur, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", made_up())
    kinds = ("html", "svg", "json", "csv", "md", "parquet")
    done = inside("nbest", "a.jsonl", *QUICK, *(part for kind in kinds for part in ("-o", f"out/r.{kind}")))
    assert done.returncode == 0, done.stderr
    starts = {"html": b"<!doctype html>", "svg": b"<svg", "md": b"## N-best"}
    for kind, start in starts.items():
        assert (tmp_path / "out" / f"r.{kind}").read_bytes().lower().startswith(start.lower()), kind
    ice = json.loads((tmp_path / "out" / "r.json").read_text())["measures"]["ice"]["value"]
    for table in (pl.read_csv(tmp_path / "out" / "r.csv"), pl.read_parquet(tmp_path / "out" / "r.parquet")):
        assert table.filter(measure="ice")["value"].item() == pytest.approx(ice, rel=1e-12)


def test_tables_fit_the_terminal(inside: Demur, tmp_path: Path) -> None:
    names = [f"the_quite_long_name_of_system_{k}" for k in range(3)]
    for k, name in enumerate(names):
        write(tmp_path / f"{name}.jsonl", made_up(20, seed=k))
    done = inside("nbest", *(f"{name}.jsonl" for name in names), *QUICK, columns=80)
    tables = done.stdout.partition("\n\n")[2]
    assert max(map(len, tables.splitlines())) <= 80
    assert "–––" not in tables


def test_rows_are_kept_columns_are_named_and_items_are_made_as_asked(found, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", made_up())
    assert found("a.jsonl", "--where", "noise=low")["n"] == 50
    renamed = [{"utt" if key == "id" else key: value for key, value in one.items()} for one in made_up()]
    renamed = [{"gold" if key == "reference" else key: value for key, value in one.items()} for one in renamed]
    write(tmp_path / "r.jsonl", renamed)
    mapped = found("r.jsonl", "--map", "reference=gold", "--map", "id=utt")
    assert mapped["measures"] == found("a.jsonl")["measures"]
    # inform and food=x are two items, inform(food=x) one
    assert found("a.jsonl")["reference_items"] == 200
    assert found("a.jsonl", "--items", "dstc")["reference_items"] == 100


def test_one_floor_is_used_and_told_unless_the_nce_has_its_own(found, tmp_path: Path) -> None:
    write(tmp_path / "hand.jsonl", HAND)
    usual, high = found("hand.jsonl"), found("hand.jsonl", "--floor", "0.01", "--clip", "0.3")
    assert (high["ice_floor"], high["nce_clip"]) == (0.01, 0.3)
    assert usual["measures"]["ice"]["value"] - high["measures"]["ice"]["value"] == pytest.approx(2.302585 / 4, abs=1e-6)
    assert usual["measures"]["nce"]["value"] != high["measures"]["nce"]["value"]
    assert any("floor of 0.01" in note and "with a floor of 0.3" in note for note in high["notes"])
    assert (usual["ice_floor"], usual["nce_clip"]) == (0.001, 0.001)
    paper = found("hand.jsonl", "--floor", "paper")
    assert (paper["ice_floor"], paper["nce_clip"]) == (0.01, 0.01)


def test_lists_over_one_go_on_when_normalising_is_asked_for(inside: Demur, found, tmp_path: Path) -> None:
    write(tmp_path / "over.jsonl", [row("u1", ["a"], (["a"], 0.9), (["b"], 0.9)), row("u2", ["a"], (["a"], 1.0))])
    refused = inside("nbest", "over.jsonl")
    assert refused.returncode == 2
    assert 'utterance "u1"' in refused.stderr
    assert "--normalise" in refused.stderr
    document = found("over.jsonl", "--normalise")
    assert document["measures"]["weighted_recall"]["value"] == 0.75
    assert "1 list summed to over 1 and was normalised" in document["notes"]


HEARD = [
    row(
        "u1",
        "inform(food=thai)",
        asr=[{"text": "thai food", "logprob": -0.2231435513}, {"text": "chinese food", "logprob": -1.6094379124}],
        cnet=[[{"word": "indian", "confidence": 0.6}, {"word": "thai", "confidence": 0.4}], [["food", 0.0]]],
    )
]


@pytest.mark.parametrize(
    ("options", "recall"),
    [
        (["--scorer", "const"], 0.75),
        (["--scorer", "infev"], 0.9),
        (["--scorer", "infev-tp1"], 1.0),
        (["--scorer", "infev", "--sentences", "1"], 1.0),
        (["--scorer", "infev", "--heard", "cnet"], 0.7),
        (["--scorer", "infev", "--heard", "cnet", "--sentences", "1"], 0.5),
        (["--scorer", "avgword"], 0.5 + 0.5 * 0.7 / 1.5),
    ],
    ids=["const", "infev", "tp1", "one sentence", "network", "one of the network", "avgword hears the network"],
)
def test_scorers_make_the_lists(found, tmp_path: Path, options: list[str], recall: float) -> None:
    """The act inform is certain; food=thai is as sure as the sentences that say so. Sentences weigh .8 and .2."""
    write(tmp_path / "heard.jsonl", HEARD)
    assert found("heard.jsonl", *options)["measures"]["weighted_recall"]["value"] == pytest.approx(recall)


def test_several_scorers_are_systems_and_naming_one_twice_changes_nothing(found, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", made_up())
    write(tmp_path / "b.jsonl", made_up(seed=1))
    document = found("a.jsonl", "--scorer", "const, infev,const")
    assert any("bundled grammar of a restaurant guide" in note for note in document["notes"])
    assert [(one["system"], one["n"]) for one in document["systems"]] == [("const", 100), ("infev", 100)]
    four = found("a.jsonl", "b.jsonl", "--scorer", "const,infev")["systems"]
    assert [one["system"] for one in four] == ["a const", "b const", "a infev", "b infev"]
    pair = found("a.jsonl", "--scorer", "const,infev", "--compare")["pairs"][0]
    assert (pair["a"], pair["b"], pair["paired"]) == ("const", "infev", True)


def test_a_grammar_or_a_program_parses_the_sentences(found, tmp_path: Path) -> None:
    write(tmp_path / "heard.jsonl", HEARD)
    (tmp_path / "parse.py").write_text(
        "import sys\nfor line in sys.stdin: print('inform(food=thai)' if 'thai' in line else 'bye()')\n"
    )
    parsed = found("heard.jsonl", "--scorer", "infev", "--parser", f"{sys.executable} parse.py")
    # inform and food=thai are both as sure as the first sentence
    assert parsed["measures"]["weighted_recall"]["value"] == pytest.approx(0.8)
    (tmp_path / "siamese.toml").write_text('[slots.food]\nvalues = ["thai"]\nsynonyms = {thai = ["chinese"]}\n')
    asked = found("heard.jsonl", "--scorer", "infev", "--grammar", "siamese.toml")
    assert asked["measures"]["weighted_recall"]["value"] == pytest.approx(1.0)


def test_lists_that_were_written_give_the_same_numbers_when_read(found, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [*made_up(), *HAND])
    for name in ("w.jsonl", "w.jsonl.gz", "w.jsonl.zst"):
        first, again = found("a.jsonl", "--write-lists", name), found(name)
        assert again["system"] == first["system"] == "a"
        assert again["measures"] == first["measures"]
        assert again["signature"] == first["signature"]
    made = found("a.jsonl", "--where", "noise=low", "--scorer", "const,infev", "--write-lists", "s.jsonl")
    assert [one["measures"] for one in found("s.jsonl")["systems"]] == [one["measures"] for one in made["systems"]]


def test_recalibrating_on_another_file_is_shown_and_written(found, tmp_path: Path) -> None:
    """Confidences of .9 that are right half of the time cost (log 10 + log 10/9) / 2 each; recalibrated, log 2."""
    rows = [row(str(k), ["a"], (["a"] if k % 2 else ["b"], 0.9)) for k in range(40)]
    write(tmp_path / "a.jsonl", rows)
    write(tmp_path / "b.jsonl", rows)
    document = found("a.jsonl", "--recalibrate-on", "b.jsonl", "--write-lists", "better.jsonl")
    change = document["recalibrated"][0]
    assert change["fitted_on_items"] == 40
    assert change["before"]["ice"] == document["measures"]["ice"]["value"]
    assert change["before"]["ice"] - change["after"]["ice"] == pytest.approx(1.203973 - 0.693147, abs=1e-6)
    assert document["ice_parts"]["miscalibration"] == pytest.approx(1.203973 - 0.693147, abs=1e-6)
    assert found("better.jsonl")["measures"]["ice"]["value"] == pytest.approx(change["after"]["ice"])
    first = json.loads((tmp_path / "better.jsonl").read_text().splitlines()[0])
    assert first["item_confidences"] == {"b": 0.5}


def test_systems_with_other_utterances_are_matched_or_compared_unpaired_when_asked(
    inside: Demur, found, tmp_path: Path
) -> None:
    write(tmp_path / "a.jsonl", made_up(100))
    write(tmp_path / "b.jsonl", made_up(90, seed=1))
    write(tmp_path / "c.jsonl", made_up(100, seed=2))
    refused = inside("nbest", "a.jsonl", "b.jsonl", "--compare")
    assert refused.returncode == 2
    assert "--matched" in refused.stderr
    assert "--unpaired" in refused.stderr
    matched = found("a.jsonl", "b.jsonl", "--compare", "--matched")
    assert (matched["pairs"][0]["n"], matched["dropped"]) == (90, {"a": 10, "b": 0})
    assert found("a.jsonl", "b.jsonl", "--compare", "--unpaired")["pairs"][0]["paired"] is False
    chosen = found("a.jsonl", "b.jsonl", "c.jsonl", "--compare", "--system", "c", "--system", "a")
    assert [(pair["a"], pair["b"]) for pair in chosen["pairs"]] == [("c", "a")]


EMPTY = {
    "all references empty": ([row(str(k), [], (["a"], 0.3)) for k in range(4)], "no reference holds any item"),
    "one utterance of nothing": ([row("1", [])], "no reference"),
}


@pytest.mark.parametrize(("rows", "why"), EMPTY.values(), ids=EMPTY)
def test_where_nothing_is_meant_the_ice_is_undefined_and_says_why(
    inside: Demur, found, tmp_path: Path, rows: list[Row], why: str
) -> None:
    write(tmp_path / "log.jsonl", rows)
    document = found("log.jsonl", "-o", "r.html", "-o", "r.md", "-o", "r.csv", "-o", "r.parquet")
    for name in ("ice", "ser", "wser", "oracle"):
        assert document["measures"][name]["value"] is None
        assert why in document["measures"][name]["why"]
    assert set(document["ice_parts"].values()) == {None}
    assert document["ice_floored_share"] is None
    shown = inside("nbest", "log.jsonl", *QUICK)
    assert "is undefined (no reference" in shown.stdout
    gated = inside("nbest", "log.jsonl", *QUICK, "--fail-if", "ice > 9")
    assert gated.returncode == 1
    assert "ice is undefined, so the gate ice > 9 cannot be passed" in gated.stderr


def test_nothing_hypothesised_costs_every_item_the_floor(found, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", [row(str(k), ["a"]) for k in range(4)])
    document = found("log.jsonl", "-o", "r.svg")
    values = document["measures"]
    assert (values["ser"]["value"], values["wser"]["value"], values["oracle"]["value"]) == (1, 1, 1)
    assert values["ice"]["value"] == pytest.approx(6.907755, abs=1e-6)
    assert (document["ice_floored_share"], document["nothing_hypothesised"]) == (1, 4)
    for name in ("nce", "precision", "weighted_precision", "roc_auc"):
        assert values[name]["value"] is None
        assert values[name]["why"]


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([row("1", ["a"], (["a"], 0.3))], "html"),
        ([row(str(k), ["a"], (["a"] if k % 2 else ["b"], 0.3), dialogue="d") for k in range(6)], "svg"),
    ],
    ids=["one utterance", "one dialogue"],
)
def test_a_single_unit_gives_values_without_intervals(
    inside: Demur, found, tmp_path: Path, rows: list[Row], kind: str
) -> None:
    write(tmp_path / "a.jsonl", rows)
    write(tmp_path / "b.jsonl", [{**one, "hypotheses": []} for one in rows])
    ice = found("a.jsonl")["measures"]["ice"]
    assert ice["value"] > 0
    assert (ice["low"], ice["high"]) == (None, None)
    shown = inside("nbest", "a.jsonl", *QUICK)
    assert "(no interval)" in shown.stdout
    assert "nan" not in shown.stdout
    compared = inside("nbest", "a.jsonl", "b.jsonl", "--compare", *QUICK, "-o", f"c.{kind}")
    assert compared.returncode == 0, compared.stderr
    assert "no significant difference" in compared.stdout
    assert "not tested" in compared.stdout
    assert "nan" not in compared.stdout


def test_lists_that_are_written_survive_a_gate_but_not_a_fault(inside: Demur, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", HAND)
    held = inside("nbest", "log.jsonl", *QUICK, "--write-lists", "w.jsonl", "--fail-if", "ice > 1")
    assert held.returncode == 1
    assert (tmp_path / "w.jsonl").exists()
    write(tmp_path / "nothing.jsonl", [row("1", [])])
    refused = inside("nbest", "nothing.jsonl", *QUICK, "--write-lists", "v.jsonl", "-o", "r.svg")
    assert refused.returncode == 2
    assert "this result has no figure" in refused.stderr
    assert not (tmp_path / "v.jsonl").exists()


def test_lists_come_from_standard_input_and_from_csv(found, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", HAND)
    ice = found("a.jsonl")["measures"]["ice"]
    piped = run_in(tmp_path, "nbest", "-", "--json", *QUICK, piped=(tmp_path / "a.jsonl").read_text())
    assert json.loads(piped.stdout)["measures"]["ice"] == ice
    cells = [{key: value if key == "id" else json.dumps(value) for key, value in one.items()} for one in HAND]
    pl.DataFrame(cells).write_csv(tmp_path / "a.csv")
    assert found("a.csv")["measures"]["ice"] == ice
