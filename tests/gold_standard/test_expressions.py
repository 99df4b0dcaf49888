from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.gold_standard.cost import evaluate_expression, parsed

P = np.array([0.25, 0.5, 1.0])


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("p", [0.25, 0.5, 1.0]),
        ("1000", [1000, 1000, 1000]),
        ("  1000 * p ** 2 ", [62.5, 250, 1000]),
        ("-p + 1", [0.75, 0.5, 0.0]),
        ("+p / 2 - 1e-1", [0.025, 0.15, 0.4]),
        ("2 ** -p ** 2", [2**-0.0625, 2**-0.25, 0.5]),
        ("exp(log(p))", [0.25, 0.5, 1.0]),
        ("sqrt(p) * abs(p - 1)", [0.375, 0.5**1.5, 0.0]),
        ("min(p, 0.5, 0.3)", [0.25, 0.3, 0.3]),
        ("maximum(p, 0.5)", [0.5, 0.5, 1.0]),
        ("clip(p, 0.3, 0.6)", [0.3, 0.5, 0.6]),
        ("where(p < 0.5, 0, 10)", [0, 10, 10]),
        ("where(0.3 <= p < 1, p, -p)", [-0.25, 0.5, -1.0]),
        ("where(p >= 1, log(0), 2)", [2, 2, -np.inf]),
    ],
)
def test_an_expression_has_the_values_one_reads_in_it(expression, values):
    assert evaluate_expression(expression, P).tolist() == pytest.approx(values)


@given(st.floats(0, 1), st.integers(1, 3), st.integers(1, 3))
def test_values_have_the_shape_of_the_performances(p, rows, columns):
    assert evaluate_expression("3", np.full((rows, columns), p)).shape == (rows, columns)


@pytest.mark.parametrize(
    ("expression", "offending", "hint"),
    [
        ("1000 * x", r'"x" in "1000 \* x"', "the performance is called p"),
        ("p ^ 2", r'"p \^ 2"', r"a power is written \*\*"),
        ("1 + 20 % p", '"20 % p"', "as a fraction"),
        ("p.real", '"p.real"', "there are numbers"),
        ("p[0]", r'"p\[0\]"', "there are numbers"),
        ("__import__('os').system('ls')", "__import__", "there are numbers"),
        ("open('x')", "open", "there are numbers"),
        ("(lambda: 1)()", "lambda", "there are numbers"),
        ("exp(p, out=p)", "out=p", "there are numbers"),
        ("exp(*p)", r"\*p", "there are numbers"),
        ("[p for p in p]", "for p in p", "there are numbers"),
        ("p if p else 1", "if p else", "there are numbers"),
        ("p and 1", "p and 1", "there are numbers"),
        ("not p", "not p", "there are numbers"),
        ("p // 2", "p // 2", "there are numbers"),
        ("'p'", "'p'", "there are numbers"),
        ("True * p", "True", "there are numbers"),
        ("1j * p", "1j", "there are numbers"),
        ("p < 0.5", '"p < 0.5"', r"stands first in where\(\)"),
        ("max(p < 0.5, 1)", '"p < 0.5"', r"stands first in where\(\)"),
        ("f'{p}'", "f'", "there are numbers"),
        ("(p := 3)", "p := 3", "there are numbers"),
    ],
)
def test_what_is_not_known_is_named_and_refused(expression, offending, hint):
    with pytest.raises(UsageError, match=f"cannot use .*{offending}.*{hint}"):
        parsed(expression)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("exp(p, 2)", r"exp\(\) takes 1 value; got 2"),
        ("min(p)", r"min\(\) takes 2 to 20 values; got 1"),
        ("clip(p, 1)", r"clip\(\) takes 3 values; got 2"),
        ("where(p, 0, 1)", "where starts with a comparison"),
        ("where(p == 1, 0, 1)", "where starts with a comparison"),
    ],
)
def test_functions_take_what_they_need(expression, words):
    with pytest.raises(UsageError, match=words):
        parsed(expression)


@pytest.mark.parametrize("expression", ["", "   ", "p +", "1000 p", "(p", "p\n1", "p\0", "import os", "p = 1", "1if p"])
def test_what_is_no_expression_is_refused(expression):
    with pytest.raises(UsageError, match="cannot be read"):
        parsed(expression)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("p" + "+p" * 400, "at most 500 characters; got 801"),
        ("-" * 400 + "p", "nested more than 50 deep"),
        ("(" * 240 + "p" + ")" * 240, "cannot be read"),
        ("1" * 400, "too large"),
    ],
)
def test_expressions_have_bounds(expression, words):
    with pytest.raises(UsageError, match=words):
        parsed(expression)


@pytest.mark.parametrize("expression", ["9**9**9**9", "exp(exp(exp(10 * p)))", "10 ** 400", "1e308 * 10"])
def test_what_outgrows_every_number_is_infinite_at_once_and_silently(expression):
    assert evaluate_expression(expression, np.ones(1)).tolist() == [np.inf]


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    with suppress(UsageError):
        assert evaluate_expression(text, P).shape == P.shape


@given(st.text("p0129.+-*/()<>=, whereminclp", max_size=30))
def test_any_text_of_the_right_letters_is_read_or_refused(text):
    with suppress(UsageError):
        assert evaluate_expression(text, P).shape == P.shape
