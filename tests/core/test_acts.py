from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.acts import ITEMISERS, SHOWN, Act, Slot, dstc_items, parse_acts, print_acts, thomson_items
from demur.errors import DataError

awkward = st.text(st.sampled_from("ab !=,()&|\"'\\\n\t é"), max_size=8)
words = st.text(max_size=8) | awkward
named = st.builds(Slot, words, st.none() | words)
valued = st.builds(Slot, st.none() | words, words, st.booleans())
acts = st.lists(st.builds(Act, words, st.lists(named | valued, max_size=3).map(tuple)), max_size=3).map(tuple)


def slot(text: str) -> Slot:
    ((only,),) = (act.slots for act in parse_acts(f"inform({text})"))
    return only


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        (" \n", ()),
        ("bye", (Act("bye"),)),
        ("bye( )", (Act("bye"),)),
        ("thank-you_2()", (Act("thank-you_2"),)),
        ("inform(food=thai)", (Act("inform", (Slot("food", "thai"),)),)),
        (" inform ( food = thai , area ) ", (Act("inform", (Slot("food", "thai"), Slot("area", None))),)),
        ("thankyou()|bye()", (Act("thankyou"), Act("bye"))),
        ("hello & inform(food=thai)&bye", (Act("hello"), Act("inform", (Slot("food", "thai"),)), Act("bye"))),
        ('"thank you"("a b")', (Act("thank you", (Slot("a b", None),)),)),
    ],
)
def test_acts_are_read(text: str, expected: tuple[Act, ...]) -> None:
    assert parse_acts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("food=asian oriental", Slot("food", "asian oriental")),
        ("food!=thai", Slot("food", "thai", negated=True)),
        ("food != 'thai'", Slot("food", "thai", negated=True)),
        ("=dontcare", Slot(None, "dontcare")),
        ("!=thai", Slot(None, "thai", negated=True)),
        ("price range", Slot("price range", None)),
        ("name=mcdonald's", Slot("name", "mcdonald's")),
        ("name=yahoo!", Slot("name", "yahoo!")),
        ("name=fish & chips|pies", Slot("name", "fish & chips|pies")),
        ('name="Bits, (and) Bobs"', Slot("name", "Bits, (and) Bobs")),
        ("name='say \"hi\"'", Slot("name", 'say "hi"')),
        (r'name="say \"hi\" \\ it\'s"', Slot("name", 'say "hi" \\ it\'s')),
        (r'name="a\nb\tc\rd"', Slot("name", "a\nb\tc\rd")),
        ('name=""', Slot("name", "")),
        ("'a=b'=c", Slot("a=b", "c")),
    ],
)
def test_slots_are_read(text: str, expected: Slot) -> None:
    assert slot(text) == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("inform(food=thai", r'at character 17: expected "," or "\)", but the text ends; .*\(close the slots'),
        ("inform food=thai", r'at character 8: expected "&" or "\|" before another act, but found f; .* brackets\)'),
        ("inform(food=thai area=north)", r'at character 22: expected "," or "\)", but found =; .*separated by ","'),
        ("inform(food=)", r'at character 13: expected a value, but found \); .*an empty value as ""'),
        ("inform(!food)", r'at character 8: expected "=" after "!"'),
        ("inform(a!b)", r'at character 9: expected "," or "\)", but found !'),
        ("inform(name=\"it's)", r'at character 13: expected a second " that closes the quotes'),
        (r"inform(name='it\'", r"at character 13: expected a second ' that closes the quotes"),
        ("inform(name='it\\", r"at character 13: expected a second ' that closes the quotes"),
        ("inform('a' 'b')", r'at character 12: expected "," or "\)", but found \''),
        ("inform(a=b\\c)", r'at character 11: expected "," or "\)", but found \\; .*in quotes'),
        ("hello()&", r"at character 9: expected the name of an act, but the text ends"),
        ("hello() & ", r"at character 11: expected the name of an act, but the text ends"),
        ("|hello", r"at character 1: expected the name of an act, but found \|"),
        ("a()&&b()", r"at character 5: expected the name of an act, but found &"),
        ("hello()bye()", r'at character 8: expected "&" or "\|" before another act, but found b'),
        ("hello())", r'at character 8: expected "&" or "\|" before another act, but found \)'),
        ("inform(food,)", r"at character 13: expected a slot, but found \)"),
        ("inform((food))", r"at character 8: expected a slot, but found \("),
        ("inform(a=\x00)&&", r"at character 13: expected the name of an act, but found &"),
        ("inform(\n(", r"at character 9: expected a slot, but found \("),
        ("a=\x07", r'at character 2: expected "&" or "\|" before another act, but found ='),
        ("a\n\u200b\x00)(", r'at character 3: expected "&" or "\|" before another act, but found \'\\u200b\''),
    ],
)
def test_a_text_that_does_not_parse_is_refused_with_the_place(text: str, fault: str) -> None:
    with pytest.raises(DataError, match=rf"(?s)^the act does not parse {fault}"):
        parse_acts(text)


def test_a_fault_in_a_long_text_shows_the_text_around_it() -> None:
    with pytest.raises(DataError, match="at character 1009:") as fault:
        parse_acts("inform(" + "a" * 1000 + "=(" + "b" * 1000)
    assert len(str(fault.value.got)) == SHOWN + 2
    assert str(fault.value.got) == "…" + "a" * 29 + "=(" + "b" * 29 + "…"


@given(st.text() | st.text(st.sampled_from("ab =!,()&|\"'\\\n"), max_size=20))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        found = parse_acts(text)
    except DataError:
        return
    assert parse_acts(print_acts(found)) == found


@pytest.mark.parametrize("piece", ["(", " ", "a ", "a(", "a&", '"', "\\", "!", "=", ",", "a,", "a=", "'a' "])
@pytest.mark.parametrize("frame", ["{}", "{}!", "act({}", "act({}!)", "act(a={}\\)", 'act("{})'])
def test_a_text_of_twenty_thousand_signs_is_read_once_through(piece: str, frame: str) -> None:
    """A parser that calls itself, or tries all ways to share out the space, would not come back from these."""
    text = frame.format(piece * 20_000)
    try:
        assert isinstance(parse_acts(text), tuple)
    except DataError as fault:
        assert "does not parse at character" in fault.rule  # noqa: PT017  # either way out is right


@given(acts)
def test_printed_acts_parse_to_the_same_acts(acts: tuple[Act, ...]) -> None:
    assert parse_acts(print_acts(acts)) == acts


@given(acts)
def test_equal_acts_print_alike_however_they_were_written(acts: tuple[Act, ...]) -> None:
    spaced = print_acts(parse_acts(f"  {print_acts(acts)} \n"))
    assert spaced == print_acts(acts)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("bye", "bye()"),
        ("inform('food'=\"asian oriental\")", "inform(food=asian oriental)"),
        ("inform(a,b = c)|bye", "inform(a, b=c)&bye()"),
        ("inform(=dontcare,food!=thai)", "inform(=dontcare, food!=thai)"),
        ("inform(name='a,b')", 'inform(name="a,b")'),
        ("inform(name='fish & chips')", "inform(name=fish & chips)"),
        ("inform('a!'=b)", 'inform("a!"=b)'),
        ("inform(name=' x')", 'inform(name=" x")'),
        ("'thank you'", '"thank you"()'),
    ],
)
def test_quotes_are_written_only_where_they_are_needed(written: str, printed: str) -> None:
    assert print_acts(parse_acts(written)) == printed


@pytest.mark.parametrize(("name", "value", "negated"), [(None, None, False), (None, None, True), ("food", None, True)])
def test_a_slot_that_says_nothing_cannot_be_made(name: str | None, value: None, negated: bool) -> None:
    with pytest.raises(DataError, match=r"a slot must have a name or a value, and a value to be negated; got \"Slot\("):
        Slot(name, value, negated)


def test_acts_and_slots_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError, match="name"):
        parse_acts("bye")[0].name = "hello"  # type: ignore[misc]


def test_table_1_of_the_paper() -> None:
    reference = "inform(type=hotel, pricerange=expensive)"
    hypotheses = {reference: 0.9, "inform(type=hotel, pricerange=inexpensive)": 0.1}
    confidences: dict[str, float] = {}
    for act, confidence in hypotheses.items():
        for item in thomson_items(parse_acts(act)):
            confidences[item] = confidences.get(item, 0) + confidence
    assert thomson_items(parse_acts(reference)) == {"inform", "type=hotel", "pricerange=expensive"}
    assert confidences == {
        "inform": 1.0,
        "type=hotel": 1.0,
        "pricerange=expensive": 0.9,
        "pricerange=inexpensive": 0.1,
    }


def test_items_of_the_paper_keep_negation_and_slots_without_a_value_or_a_name() -> None:
    items = thomson_items(parse_acts("request(phone)&deny(food!=thai, =dontcare)"))
    assert items == {"request", "phone", "deny", "food!=thai", "=dontcare"}


def test_equal_items_are_equal_texts_however_they_were_quoted() -> None:
    plain, quoted = parse_acts("inform(food=asian oriental)"), parse_acts("inform('food' = \"asian oriental\")")
    for itemise in ITEMISERS.values():
        assert itemise(plain) == itemise(quoted)
    assert thomson_items(parse_acts("inform(name='a,b')")) == {"inform", 'name="a,b"'}


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", set()),
        ("affirm()", {"affirm"}),
        ("request(slot=addr)", {"request=addr"}),
        ("request(addr, phone)", {"request=addr", "request=phone"}),
        ("request(phone, food=thai)", {"request=phone", "request(food=thai)"}),
        ("request()", {"request"}),
        ("inform(food=thai, area=north)", {"inform(food=thai)", "inform(area=north)"}),
        ("inform(food=asian oriental)", {"inform(food=asian oriental)"}),
        ("inform(this=dontcare)", {"inform(this=dontcare)"}),
        ("inform(=dontcare)", {"inform(this=dontcare)"}),
        ("deny(food!=thai)", {"deny(food!=thai)"}),
        ("inform(area)", {"inform(area)"}),
        ("thankyou()|bye()", {"thankyou", "bye"}),
        ("inform(name='a)b')", {'inform(name="a)b")'}),
    ],
)
def test_items_of_the_challenge(text: str, items: set[str]) -> None:
    assert dstc_items(parse_acts(text)) == items


def test_the_challenge_counts_only_slots_that_can_have_several_values_and_this() -> None:
    acts = parse_acts("inform(food=thai, type=restaurant, this=dontcare, =dontcare)&request(slot=type)&bye")
    assert dstc_items(acts, frozenset({"food"})) == {
        "inform(food=thai)",
        "inform(this=dontcare)",
        "request=type",
        "bye",
    }
    assert dstc_items(acts, frozenset()) == {"inform(this=dontcare)", "request=type", "bye"}


@given(acts)
def test_items_do_not_depend_on_the_order_of_acts_and_slots(acts: tuple[Act, ...]) -> None:
    turned = [Act(act.name, act.slots[::-1]) for act in reversed(acts)]
    for itemise in ITEMISERS.values():
        assert itemise(turned) == itemise(acts)
