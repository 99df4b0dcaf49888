import copy
import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.understanding import tokens
from demur.understanding.tokens import NAMES, available, parts_of, pronounced, tokenizer, words

needs_phones = pytest.mark.skipif(not available(), reason="demur[phones] is not installed")
ALL_NAMES = [*NAMES, "words+phones2", "phones1+phones2+phones3"]
each_name = pytest.mark.parametrize("name", ALL_NAMES if available() else ["words"])
TEXTS = st.text(st.characters(exclude_categories=()), max_size=30)
LETTERS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("what’s up", ["what's", "up"]),
        ("dogs' 'quoted' rock 'n' roll", ["dogs", "quoted", "rock", "n", "roll"]),
        ("two-way snake_case a/b", ["two", "way", "snake", "case", "a", "b"]),
        ("2pm $20 3.5", ["2pm", "20", "3", "5"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("ﬁne ｗｉｄｅ", ["fine", "wide"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("co\u00adoperate zero\u200bwidth", ["cooperate", "zero", "width"]),
        ("I ❤️ U 👍🏽 1️⃣", ["i", "u", "1"]),
        ("\u0301x '\u0301 a'\u0301", ["x", "a"]),
        ("", []),
        (" \t\n?!…—'_", []),
    ],
)
def test_words_are_letters_and_digits_with_apostrophes_inside(text, found):
    assert words(text) == found
    assert tokenizer("words")(text) == found


@needs_phones
def test_single_phones_have_no_edges():
    assert tokenizer("phones1")("Hello you") == ["1:h", "1:ɛ", "1:l", "1:oʊ", "1:j", "1:u"]


@needs_phones
def test_pairs_of_phones_run_over_words_and_include_the_edges_of_the_text():
    assert tokenizer("phones2")("hello a") == ["2:# h", "2:h ɛ", "2:ɛ l", "2:l oʊ", "2:oʊ ə", "2:ə #"]


@needs_phones
def test_triples_of_phones_run_over_words_and_include_the_edges_of_the_text():
    assert tokenizer("phones3")("hello a") == ["3:# h ɛ", "3:h ɛ l", "3:ɛ l oʊ", "3:l oʊ ə", "3:oʊ ə #"]


@needs_phones
def test_where_words_end_does_not_matter_to_phones():
    assert tokenizer("phones2")("all together") == tokenizer("phones2")("altogether")


@needs_phones
def test_a_bag_has_the_tokens_of_its_parts_one_after_the_other():
    assert tokenizer("words+phones2")("a") == ["a", "2:# ə", "2:ə #"]


@needs_phones
def test_words_that_sound_alike_have_the_same_phones():
    assert tokenizer("phones2")("write") == tokenizer("phones2")("right")


@needs_phones
@pytest.mark.parametrize(
    ("written", "said"), [("2pm", "two pm"), ("235", "two hundred thirty five"), ("2nd", "second")]
)
def test_numbers_have_the_tokens_of_the_words_that_are_said(written, said):
    for name in ("phones1", "phones2", "phones3"):
        assert tokenizer(name)(written) == tokenizer(name)(said)


@needs_phones
def test_unknown_words_have_tokens_too():
    assert tokenizer("phones2")("blorpish")[:3] == ["2:# b", "2:b l", "2:l ɔ"]


@needs_phones
def test_a_word_without_phones_has_no_tokens():
    assert tokenizer("phones2")("日本 😀 a") == ["2:# ə", "2:ə #"]


@each_name
@given(text=TEXTS)
def test_any_text_has_tokens_none_of_them_empty(name, text):
    assert all(tokenizer(name)(text))


@each_name
def test_no_text_has_no_tokens(name):
    assert tokenizer(name)("") == tokenizer(name)("  ?! ") == []


@pytest.mark.parametrize("name", ["words", "phones1"] if available() else ["words"])
@given(first=TEXTS, second=TEXTS)
def test_the_tokens_of_two_texts_in_a_row_are_those_of_each(name, first, second):
    made = tokenizer(name)
    assert made(f"{first} {second}") == made(first) + made(second)


@needs_phones
@given(st.lists(LETTERS, max_size=4))
def test_runs_are_as_many_as_the_phones_and_edges_of_the_text_allow(parts):
    text, spoken = " ".join(parts), [said for part in parts for said in tokens.spoken(part)]
    phones = sum(len(pronounced(said)) for said in spoken)
    assert len(tokenizer("phones1")(text)) == phones
    assert len(tokenizer("phones2")(text)) == (phones + 1 if phones else 0)
    assert len(tokenizer("phones3")(text)) == phones


@needs_phones
@given(TEXTS)
def test_tokens_of_different_kinds_are_never_equal(text):
    sets = [set(tokenizer(name)(text)) for name in NAMES]
    assert len(set().union(*sets)) == sum(map(len, sets))


@each_name
def test_a_tokenizer_is_made_again_from_its_name(name):
    made = tokenizer(name)
    assert made.name == name
    assert tokenizer(made.name) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made


@needs_phones
def test_phones_alone_are_pairs():
    assert tokenizer("phones").name == "phones2"
    assert tokenizer(" words + phones ").name == "words+phones2"


@needs_phones
def test_each_word_is_pronounced_once(monkeypatch):
    asked = []
    spoken = tokens.spoken
    monkeypatch.setattr(tokens, "spoken", lambda word: asked.append(word) or spoken(word))
    tokens.pronounced.cache_clear()
    tokenizer("phones2")("the tide the tide")
    tokenizer("phones2")("The tide!")
    assert asked == ["the", "tide"]


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        ("words", ("words",)),
        ("phones", ("phones2",)),
        ("mixed", ("words", "phones2")),
        ("words|phones3", ("words", "phones3")),
        ("words | phones1+phones", ("words", "phones1+phones2")),
    ],
)
def test_the_parts_of_a_mixture_are_named_in_full(asked, parts):
    assert parts_of(asked) == parts


@pytest.mark.parametrize("make", [tokenizer, parts_of])
@pytest.mark.parametrize("name", ["phones4", "letters", "", "words+", "Words", "words,phones2", "words+mixed"])
def test_unknown_names_are_answered_with_the_names_there_are(make, name):
    with pytest.raises(UsageError, match="tokens are words, phones1, phones2, phones3, phones, mixed"):
        make(name)


@pytest.mark.parametrize("make", [tokenizer, parts_of])
def test_a_kind_is_in_a_bag_once(make):
    with pytest.raises(UsageError, match=r'each kind of tokens once; got "phones\+phones2"'):
        make("phones+phones2")


def test_a_mixture_is_not_one_tokenizer():
    with pytest.raises(UsageError, match='"mixed" is 2: words and phones2'):
        tokenizer("mixed")


def test_without_the_packages_words_work_and_phones_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gruut", None)
    assert tokenizer("words")("Hello you") == ["hello", "you"]
    assert parts_of("mixed") == ("words", "phones2")
    with pytest.raises(UsageError, match=r"pip install 'demur\[phones\]'"):
        tokenizer("words+phones2")
