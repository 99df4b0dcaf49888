from hypothesis import given
from hypothesis import strategies as st

from demur.systems.typing_noise import mistyped

TEXTS = st.text(alphabet="abc xyz?", min_size=1, max_size=40).filter(str.strip)


@given(TEXTS, st.integers(0, 5))
def test_the_same_text_key_and_seed_are_mistyped_alike(text, seed):
    assert mistyped(text, key="k", seed=seed) == mistyped(text, key="k", seed=seed)


@given(TEXTS)
def test_something_is_always_left(text):
    assert mistyped(text, key="k", letter_rate=1.0, word_rate=1.0).strip()


@given(TEXTS)
def test_without_slips_only_spaces_are_tidied(text):
    assert mistyped(text, key="k", letter_rate=0.0, word_rate=0.0) == " ".join(text.split())


def test_more_haste_makes_more_slips():
    text = "how does the tide machine work and who built it"
    changed = [
        sum(mistyped(text, key=str(k), letter_rate=rate, word_rate=0.0) != text for k in range(100))
        for rate in (0.0, 0.01, 0.1)
    ]
    assert changed[0] == 0 < changed[1] < changed[2]


def test_another_key_or_seed_slips_elsewhere():
    text = "how does the tide machine work and who built it"
    assert len({mistyped(text, key=key, seed=seed) for key in "ab" for seed in (0, 1)}) > 1
