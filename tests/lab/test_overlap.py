import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.understanding.grader import Overlap, overlap, words
from reference import overlap as slow

texts = st.lists(st.sampled_from("abcd"), max_size=12)
signs = st.text(alphabet="aB1_ '’-.,?\"=\n", max_size=20)


def shared(first: str, second: str) -> Overlap:
    return overlap(words(first), words(second))


def test_the_example_of_the_announcement_of_text_similarity_0_06_comes_out_as_printed_there():
    stop_words = {"was", "the", "of", "came", "for", "a", "that"}
    first = words("winston churchill was the prime minister of england", stop_words=stop_words)
    second = words(
        "prime minister of england winston churchill came for a visit that day",
        stop_words=stop_words,
    )
    found = overlap(first, second)
    assert (found.phrases, found.first, found.second) == ((3, 2), 5, 7)
    assert (found.raw, found.lesk) == (5, 13)
    assert found.f1 == pytest.approx(0.833333333333333)
    assert found.cosine == pytest.approx(0.845154254728517)
    assert found.normalised_lesk == pytest.approx(0.371428571428571)


def test_five_of_nine_words_are_shared_whatever_their_order():
    found = shared("this is test1 i am happy he is not", "this is test2 i am hungry she is sad")
    assert found.raw == 5
    assert found.f1 == pytest.approx(5 / 9)
    assert found.phrases == (2, 2, 1)


def test_scores_worked_by_hand():
    found = shared("the bulb is in a closed path", "a closed path with the battery")
    assert found == Overlap((3, 1), 7, 6)
    assert (found.raw, found.f1, found.lesk) == (4, pytest.approx(8 / 13), 10)
    assert found.cosine == pytest.approx(4 / 42**0.5)


def test_a_text_and_itself_are_as_like_as_can_be():
    found = shared("a b a", "a b a")
    assert (found.raw, found.f1, found.lesk, found.normalised_lesk, found.cosine) == (3, 1.0, 9, 1.0, 1.0)


@pytest.mark.parametrize("other", ["", "  ", "?!", "nothing alike"])
def test_where_nothing_is_shared_every_score_is_zero(other):
    found = shared("because it is open", other)
    assert (found.raw, found.f1, found.lesk, found.normalised_lesk, found.cosine) == (0, 0.0, 0, 0.0, 0.0)


def test_a_word_taken_by_a_longer_phrase_is_not_used_again():
    assert overlap(list("abxab"), list("xaba")).phrases == (3, 1)


def test_of_equal_phrases_the_first_is_taken_so_that_the_order_of_the_texts_may_matter():
    assert overlap(list("aaba"), list("baaa")).phrases == (2, 1, 1)
    assert overlap(list("baaa"), list("aaba")).phrases == (2, 2)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Because It's OPEN.", ["because", "it's", "open"]),
        ("'quoted' dogs'", ["quoted", "dogs"]),
        ("don’t", ["don't"]),
        ("closed--path two-way", ["closed", "path", "two-way"]),
        ("1.5 volts; X_1", ["1", "5", "volts", "x", "1"]),
        ("V=IR", ["v=ir"]),
        ("", []),
    ],
)
def test_words_are_cleaned_of_case_and_punctuation(text, found):
    assert words(text) == found


def test_stop_words_leave_no_gap_in_a_phrase():
    first, second = (words(text, stop_words=("of", "the")) for text in ("state of the terminal", "state terminal"))
    assert overlap(first, second).phrases == (2,)


@given(texts, texts)
def test_phrases_are_those_found_by_trying_everything(first, second):
    assert list(overlap(first, second).phrases) == slow.phrases(first, second)


@given(texts, texts)
def test_scores_follow_their_definitions(first, second):
    found = overlap(first, second)
    assert found.raw == slow.raw(first, second)
    assert found.f1 == pytest.approx(slow.f1(first, second))
    assert found.cosine == pytest.approx(slow.cosine(first, second))
    assert found.lesk == sum(length**2 for length in slow.phrases(first, second))


@given(texts, texts)
def test_without_repeated_words_cosine_is_that_of_the_word_counts(first, second):
    first, second = list(dict.fromkeys(first)), list(dict.fromkeys(second))
    assert overlap(first, second).cosine == pytest.approx(slow.cosine_of_counts(first, second))


@given(texts, texts)
def test_words_shared_and_what_follows_from_them_do_not_depend_on_the_order_of_the_texts(first, second):
    one, other = overlap(first, second), overlap(second, first)
    assert (one.raw, one.f1, one.cosine) == (other.raw, other.f1, other.cosine)


@given(texts, texts)
def test_scores_keep_to_their_bounds(first, second):
    found = overlap(first, second)
    assert 0 <= found.f1 <= found.cosine + 1e-12 <= 1 + 2e-12
    assert found.raw <= found.lesk <= found.raw**2
    assert 0 <= found.normalised_lesk <= 1


@given(signs)
def test_words_are_those_read_sign_by_sign(text):
    assert words(text) == slow.words(text)
