import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.acts import Act, Slot, dstc_items, parse_acts, print_acts
from demur.errors import DataError
from demur.nbest_lists.asr.grammar import Grammar, bundled

REAL = Path(__file__).parents[3] / "shared" / "data" / "dstc2" / "dstc2_train_nbest.jsonl.gz"

SMALL = {
    "ignore": ["um"],
    "slots": {
        "food": {"values": ["thai", "indian", "north african"], "after": ["food"], "names": ["food", "kind of food"]},
        "area": {"values": ["north", "south"], "synonyms": {"north": ["northern"]}, "names": ["area"]},
    },
    "patterns": [
        {"say": ["not"], "values_as": "deny", "values": 1},
        {"say": ["anything but"], "values_as": "inform", "values": 1, "negated": True},
        {"say": ["is it"], "values_as": "confirm"},
        {"say": ["any {slot}"], "gives": "inform({slot}=dontcare)"},
        {"say": ["how about {value}"], "gives": "reqalts()&inform({value})"},
        {"say": ["{food} in the {area}"], "gives": "find({food}, {area})"},
        {"say": ["bye"], "gives": "bye()"},
        {"say": ["okay"], "gives": "ack()", "alone": True},
    ],
}


def small(**changes):
    return Grammar.of({**SMALL, **changes}, "g.toml")


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("thai", "inform(food=thai)"),
        ("Northern, um, Thai food!", "inform(area=north, food=thai)"),
        ("north african", "inform(food=north african)"),
        ("north thai", "inform(area=north, food=thai)"),
        ("not thai indian", "deny(food=thai)&inform(food=indian)"),
        ("anything but thai", "inform(food!=thai)"),
        ("anything but thai in north", "inform(food!=thai, area=north)"),
        ("is it thai and north", "confirm(food=thai, area=north)"),
        ("is it thai how about indian south", "confirm(food=thai)&reqalts()&inform(food=indian, area=south)"),
        ("any area", "inform(area=dontcare)"),
        ("any kind of food", "inform(food=dontcare)"),
        ("thai food in the south", "find(food=thai, area=south)"),
        ("okay", "ack()"),
        ("okay bye okay", "bye()"),
        ("thai thai", "inform(food=thai)"),
        ("", ""),
        ("what", ""),
    ],
)
def test_a_sentence_means(text, acts):
    assert small().parse(text) == small()(text) == acts


def test_nothing_recognised_gives_what_the_file_says():
    assert small(otherwise="null").parse("what") == "null()"


def test_a_value_alone_is_read_under_the_default_act():
    assert small(default_act="want").parse("thai") == "want(food=thai)"


def test_of_two_patterns_with_the_same_words_the_higher_priority_wins():
    patterns = [{"say": ["more"], "gives": "reqmore()"}, {"say": ["[some] more"], "gives": "again()", "priority": 1}]
    assert Grammar.of({"patterns": patterns}).parse("more") == "again()"
    assert Grammar.of({"patterns": patterns[::-1]}).parse("more") == "again()"


@given(
    st.lists(
        st.sampled_from(
            [
                "um",
                "not",
                "is",
                "it",
                "any",
                "area",
                "thai",
                "north",
                "african",
                "food",
                "how",
                "about",
                "bye",
                "okay",
                "in",
                "the",
            ]
        )
    )
)
def test_whatever_is_said_comes_out_as_acts(words):
    said = small().parse(" ".join(words))
    assert print_acts(parse_acts(said)) == said


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"slot": {}}, r'g.toml: slot is no key of a grammar \(did you mean "slots"\?\)'),
        (
            {"slots": {"food": {"value": []}}},
            r'g.toml: slots.food: value is no key of a grammar \(did you mean "values"',
        ),
        ({"patterns": [{"says": ["a"]}]}, r'g.toml: pattern 1: says is no key of a grammar \(did you mean "say"'),
        ({"xyz": 1}, r'xyz is no key of a grammar \(there are "title", '),
        ({"slots": {"food": {"values": "thai"}}}, r"g.toml: slots.*values does not fit: Expected `array`, got `str`"),
        ({"slots": 3}, "g.toml: slots does not fit: Expected `object`, got `int`"),
        ({"patterns": [{"gives": "bye()"}]}, "does not fit: Object missing required field `say`"),
        ({"patterns": [{"say": ["hi"]}]}, "g.toml: pattern 1: gives must have acts"),
        ({"patterns": [{"say": ["hi"], "gives": "hello("}]}, "g.toml: pattern 1: gives must be acts: the act does not"),
        ({"otherwise": "null("}, "g.toml: otherwise must be acts"),
        ({"patterns": [{"say": ["[hi"], "gives": "hello()"}]}, r'g.toml: pattern 1: say must be a phrase, but "\["'),
        ({"patterns": [{"say": ["any {fod}"], "gives": "a()"}]}, r'say is no slot; got "{fod}" \(did you mean "food"'),
        ({"patterns": [{"say": ["any"], "gives": "a({food})"}]}, 'must be in every phrase of `say`; got "{food}"'),
        ({"patterns": [{"say": ["any"], "gives": "a({slot})"}]}, 'must be in every phrase of `say`; got "{slot}"'),
        ({"patterns": [{"say": ["{food} {food}"], "gives": "a()"}]}, "must have placeholders that differ"),
        ({"patterns": [{"say": ["{value} {food}"], "gives": "a()"}]}, "{value} alone"),
        (
            {"patterns": [{"say": ["so north"], "gives": "a()"}]},
            r'spell out a value; got "north" \(write {area} for it',
        ),
        (
            {"patterns": [{"say": ["a"], "gives": "a()"}, {"say": ["[b] a"], "gives": "b()"}]},
            'g.toml: pattern 2: say must not be that of pattern 1 too; got "a"',
        ),
        (
            {"slots": {"food": {"values": ["thai"], "synonyms": {"tai": ["x"]}}}},
            r'g.toml: slots.food.synonyms: tai is no value \(did you mean "thai"',
        ),
        (
            {"slots": {"a": {"values": ["x"]}, "b": {"values": ["x"]}}},
            'slots.b must not stand for both a=x and b=x; got "x"',
        ),
    ],
)
def test_a_fault_in_the_file_is_named(changes, fault):
    with pytest.raises(DataError, match=fault):
        Grammar.of({"slots": SMALL["slots"], **changes}, "g.toml")


def test_a_grammar_is_read_from_a_file(tmp_path):
    path = tmp_path / "g.toml"
    path.write_text('[slots.food]\nvalues = ["thai"]\n', encoding="utf-8")
    assert Grammar.read(path).parse("thai") == "inform(food=thai)"


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "g.toml"
    path.write_text("[slots\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"g.toml cannot be read as TOML: .*line 1"):
        Grammar.read(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"g\.toml does not exist"):
        Grammar.read(tmp_path / "g.toml")


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        (
            "I'm looking for a moderately priced restaurant in the south part of town",
            "inform(pricerange=moderate, area=south)",
        ),
        ("South African food", "inform(food=south african)"),
        ("what's the phone number and address", "request(phone, addr)"),
        ("what kind of food do they serve", "request(food)"),
        ("how about Sri Lankan", "reqalts()&inform(food=sri lankan)"),
        ("any part of town", "inform(area=dontcare)"),
        ("i don't care about the price range", "inform(pricerange=dontcare)"),
        ("i don't care", "inform(this=dontcare)"),
        ("I don't want Chinese, I want Thai", "deny(food=chinese)&inform(food=thai)"),
        ("is it in the centre of town", "confirm(area=centre)"),
        ("is there anything else", "reqalts()"),
        ("yes", "affirm()"),
        ("no, Korean food", "negate()&inform(food=korean)"),
        ("thank you good bye", "thankyou()&bye()"),
        ("okay", "ack()"),
        ("okay the post code please", "request(postcode)"),
        ("can you repeat that", "repeat()"),
        ("more", "reqmore()"),
        ("hello", "hello()"),
        ("start over", "restart()"),
        ("noise", ""),
    ],
)
def test_the_restaurant_guide_understands(text, acts):
    assert bundled().parse(text) == acts


@pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/dstc2 beside the project")
def test_the_restaurant_guide_understands_what_real_callers_said():
    slots = frozenset({"food", "area", "pricerange", "name"})
    both = hypothesised = wanted = 0
    with gzip.open(REAL, "rt", encoding="utf-8") as file:
        for turn in (turn for line in file for turn in json.loads(line)["turns"]):
            acts = [Act(act["act"], tuple(Slot(*slot) for slot in act["slots"])) for act in turn["ref"]]
            reference, found = (
                dstc_items(acts, slots),
                dstc_items(parse_acts(bundled().parse(turn["transcription"])), slots),
            )
            both, hypothesised, wanted = (
                both + len(reference & found),
                hypothesised + len(found),
                wanted + len(reference),
            )
    assert 2 * both / (hypothesised + wanted) > 0.98


def test_patterns_that_are_no_list_and_placeholders_for_values_are_refused():
    with pytest.raises(DataError, match="patterns"):
        Grammar.of({"patterns": 3})
    slots = {"type": {"values": ["bar"]}}
    with pytest.raises(DataError, match=r"must not be a placeholder; got .type=\{type\}"):
        Grammar.of({"slots": slots, "patterns": [{"say": ["x {type}"], "gives": "inform(type={type})"}]})
