import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.nbest_lists.asr.grammar import Finder, expanded, tokens

LETTERS = st.lists(st.sampled_from("abc"), max_size=12)
PHRASES = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), max_size=8)


def leftmost_longest(phrases, sentence):
    """By trying every phrase at every place."""
    found, at = [], 0
    while at < len(sentence):
        fits = [phrase for phrase in phrases if tuple(sentence[at : at + len(phrase)]) == phrase]
        if fits:
            longest = max(fits, key=len)
            found.append((at, at + len(longest), longest))
        at += len(longest) if fits else 1
    return found


@given(PHRASES, LETTERS)
def test_found_are_the_leftmost_longest_phrases(phrases, sentence):
    finder = Finder({phrase: phrase for phrase in phrases})
    assert list(finder.found(sentence)) == leftmost_longest(phrases, sentence)


def test_a_longer_phrase_that_comes_to_nothing_leaves_the_shorter_one_inside_it():
    finder = Finder({("a", "b", "c", "d"): 1, ("b", "c"): 2, ("c",): 3})
    assert [found.meaning for found in finder.found(["a", "b", "c", "c"])] == [2, 3]


@pytest.mark.parametrize(
    ("phrase", "ways"),
    [
        ("thai food", ["thai food"]),
        ("[the] area", ["the area", "area"]),
        ("(post|zip) code", ["post code", "zip code"]),
        ("[a|the] (b [c]|d)", ["a b c", "a b", "a d", "the b c", "the b", "the d", "b c", "b", "d"]),
        ("Don't-care {food}", ["dont care {food}"]),
        ("[a] [a]  b", ["a a b", "a b", "b"]),
    ],
)
def test_a_phrase_stands_for_every_choice(phrase, ways):
    assert [" ".join(way) for way in expanded(phrase, "here")] == ways


@pytest.mark.parametrize(
    ("phrase", "fault"),
    [
        ("[the area", r'here must be a phrase, but "\[" has no "\]"; got "\[the area"'),
        ("(a|b] c", r'"\(" has no "\)"'),
        ("a) b", r'"\)" closes nothing'),
        ("a | b", r'"\|" closes nothing'),
        ("{food", r'"\{" does not go with a name'),
        ("[a] [b]", "must not be a phrase without words"),
        ("", "must not be a phrase without words"),
        ("(a|b) " * 20, "stands for more than 10,000 phrases"),
    ],
)
def test_a_phrase_that_is_none_is_refused(phrase, fault):
    with pytest.raises(DataError, match=fault):
        expanded(phrase, "here")


def test_case_apostrophes_and_punctuation_do_not_matter():
    assert tokens("What’s the café's post-code?!") == ["whats", "the", "cafés", "post", "code"]
