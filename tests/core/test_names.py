from hypothesis import given
from hypothesis import strategies as st

from demur.core.show.numbers import middle_cut, shorten


@given(st.lists(st.text("ab-", max_size=40), max_size=12), st.integers(8, 30))
def test_short_names_fit_and_never_coincide(names, most):
    short = shorten(names, most)
    assert set(short) == set(names)
    assert len(set(short.values())) == len(short)
    assert all(len(label) <= most for label in short.values())


@given(st.text("abc", max_size=40), st.integers(4, 30))
def test_a_cut_name_keeps_both_ends(name, most):
    cut = middle_cut(name, most)
    assert cut == name or (len(cut) == most and name.startswith(cut.split("…")[0]) and name.endswith(cut.split("…")[1]))


def test_names_that_differ_only_in_the_middle_stay_apart():
    names = [f"{'x' * 30}{place}{'y' * 30}" for place in range(3)]
    assert len(set(shorten(names, 20).values())) == 3


def test_names_that_a_cut_in_the_middle_leaves_alike_are_cut_to_where_they_differ():
    names = ["claude-3-5-haiku-20241022", "claude-3-5-sonnet-20240620", "claude-3-5-sonnet-20241022", "gpt-4o"]
    short = shorten(names, 12)
    assert short["gpt-4o"] == "gpt-4o"
    assert all("haiku" in short[name] or "sonnet" in short[name] for name in names[:3:2])
    assert len(set(short.values())) == 4
    assert all(len(name) <= 12 for name in short.values())
