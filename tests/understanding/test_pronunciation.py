import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.understanding import tokens
from demur.understanding.tokens import available, folded, phones_of, pronounced, spoken

pytestmark = pytest.mark.skipif(not available(), reason="demur[phones] is not installed")


@pytest.fixture
def nothing_read():
    """Neither dictionary nor earlier answers in memory, before and after."""
    kept = (tokens._lexicon, tokens._guesser, tokens.phones_of, tokens.pronounced)
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


def said(word):
    return " ".join(pronounced(word))


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("hello", "h ɛ l oʊ"),
        ("museum", "m j u z i ə m"),
        ("church", "t͡ʃ ɚ t͡ʃ"),
        ("a", "ə"),
        ("what's", "w ʌ t s"),
        ("i'm", "aɪ m"),
        ("o'clock", "oʊ k l ɑ k"),
        ("p.m.", "p i ɛ m"),
    ],
)
def test_words_of_the_dictionary_have_its_first_pronunciation_without_stress(word, phones):
    assert said(word) == phones


@pytest.mark.parametrize("word", ["HELLO", "Hello", "ｈｅｌｌｏ", "hello!", "“hello”"])
def test_case_width_and_punctuation_change_nothing(word):
    assert pronounced(word) == pronounced("hello")


def test_curled_apostrophes_are_apostrophes():
    assert pronounced("what’s") == pronounced("what's")


def test_accents_that_the_dictionary_does_not_have_are_left_out():
    assert said("café") == said("cafe") == "k æ f eɪ"
    assert said("cafe\u0301") == said("cafe")


def test_unknown_words_are_guessed_from_their_spelling():
    assert said("blorpish") == "b l ɔ ɹ p ɪ ʃ"


@pytest.mark.parametrize(
    ("owner", "ending"), [("blorp", "s"), ("blorf", "s"), ("blorg", "z"), ("blorpish", "ɪ z"), ("zabble", "z")]
)
def test_possessives_of_unknown_words_end_as_their_last_phone_asks(owner, ending):
    assert said(f"{owner}'s") == f"{said(owner)} {ending}"


def test_a_bare_apostrophe_at_the_end_is_silent():
    assert said("gates'") == said("gates")


def test_unknown_words_without_a_vowel_are_said_letter_by_letter():
    assert spoken("gps") == ("g", "p", "s")
    assert said("gps") == "d͡ʒ i p i ɛ s"
    assert said("gps's") == "d͡ʒ i p i ɛ s ɪ z"


def test_known_words_without_a_vowel_are_words():
    assert spoken("hmm") == ("hmm",)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("235", "two hundred thirty five"),
        ("2pm", "two pm"),
        ("401k", "four hundred one k"),
        ("$20", "twenty"),
        ("0", "zero"),
        ("007", "zero zero seven"),
        ("1,250,000", "one million two hundred fifty thousand"),
        ("1999", "nineteen ninety nine"),
        ("1905", "nineteen oh five"),
        ("2000", "two thousand"),
        ("3500", "three thousand five hundred"),
        ("1,999", "one thousand nine hundred ninety nine"),
        ("1st", "first"),
        ("22nd", "twenty second"),
        ("3.05", "three point zero five"),
        ("1234567890", "one two three four five six seven eight nine zero"),
        ("٣", "three"),
        ("②", "two"),
    ],
)
def test_numbers_are_said_in_words(written, words):
    assert spoken(written) == tuple(words.split())
    assert pronounced(written) == tuple(phone for word in words.split() for phone in pronounced(word))


@pytest.mark.parametrize("word", ["", " ", "?!", "'", "—", "😀", "\u0301", "\ud800", "_", "$"])
def test_what_has_no_letter_or_digit_has_no_phones(word):
    assert pronounced(word) == ()


@pytest.mark.parametrize("word", ["日本", "привет", "हिन्दी", "한국"])
def test_words_of_other_scripts_have_no_phones(word):
    assert pronounced(word) == ()


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_anything_can_be_asked_and_no_phone_is_empty_or_stressed(text):
    assert all(phone and not set(phone) & set("ˈˌ #") for phone in pronounced(text))


@given(st.integers(0, 10**12))
def test_every_number_is_said_in_words_of_the_dictionary(number):
    words = spoken(str(number))
    assert words
    assert all(word in tokens._lexicon() for word in words)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz'", max_size=12))
def test_the_spoken_words_are_said_as_the_written_one(word):
    assert pronounced(word) == pronounced(" ".join(spoken(word)))


@given(st.text(alphabet=st.characters(max_codepoint=0x24F)))
def test_a_folded_text_stays_as_it_is(text):
    assert folded(folded(text)) == folded(text)


@pytest.mark.usefixtures("nothing_read")
def test_the_dictionary_is_read_once(monkeypatch):
    opened = []
    connect = tokens.sqlite3.connect
    monkeypatch.setattr(tokens.sqlite3, "connect", lambda *a, **k: opened.append(a) or connect(*a, **k))
    assert all(said(word) for word in ("two", "words", "blorpish", "two"))
    assert len(opened) == 1


@pytest.mark.usefixtures("nothing_read")
def test_each_word_is_guessed_once(monkeypatch):
    asked = []
    monkeypatch.setattr(tokens, "_guesser", lambda: lambda word: asked.append(word) or ["ˈɛ"])
    assert [phones_of(word) for word in ("blorpish", "zabble", "blorpish")] == [("ɛ",)] * 3
    assert asked == ["blorpish", "zabble"]


def test_known_words_do_not_load_what_guesses_and_guessing_loads_little():
    code = (
        "import sys; from demur.understanding.tokens import pronounced\n"
        "pronounced('hello'); assert 'pycrfsuite' not in sys.modules\n"
        "pronounced('blorpish'); assert 'pycrfsuite' in sys.modules and 'dateparser' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("nothing_read")
@pytest.mark.parametrize("package", ["gruut", "gruut_lang_en"])
def test_without_the_packages_it_says_what_to_install(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert not available()
    with pytest.raises(UsageError, match=r"pip install 'demur\[phones\]'"):
        pronounced("hello")
