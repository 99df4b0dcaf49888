import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.outcome.stepwise import ScaledRows, SearchEnd, Selection, confirm_search, search_samples, search_terms
from outcome.oracle import TABLES, WAYS, Oracle
from reference import stepwise as plain

KINDS = (("own", "own", "own", "constant", "copy", "sum"), ("own", "own", "own", "constant", "close", "closest"))
"""Columns that are equal on paper, or all but collinear; where both meet, rounding alone decides, in R as well."""


@st.composite
def tables(draw):
    """Rows with columns that may be constant, copies, sums of others or nearly collinear, and of other sizes."""
    n, p = draw(st.integers(3, 30)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    x = rng.normal(size=(n, p)).round(draw(st.sampled_from([0, 1, 12])))
    kinds = draw(st.sampled_from(KINDS))
    for column in range(1, p):
        match draw(st.sampled_from(kinds)):
            case "constant":
                x[:, column] = 0.1
            case "copy":
                x[:, column] = -3 * x[:, draw(st.integers(0, column - 1))]
            case "sum":
                x[:, column] = 1 - x[:, :column].sum(axis=1)
            case "close":
                x[:, column] = x[:, column - 1] + 1e-2 * x[:, column]
            case "closest":
                x[:, column] = x[:, column - 1] + 1e-4 * x[:, column]
    x = (x + rng.choice([0, 0, 0, 20], size=p)) * rng.choice([1, 1, 1e6, 1e-3], size=p)
    shape = rng.normal(size=p) * (rng.random(p) < 0.5) / np.maximum(1, np.abs(x).max(axis=0))
    y = x @ shape + rng.normal(size=n) * draw(st.sampled_from([0.01, 0.5, 2.0])) + draw(st.sampled_from([0, 10]))
    return x, y


WAYS_TO_GO = st.sampled_from(list(WAYS.values()))


def spelled(x):
    return [f"x{place}" for place in range(x.shape[1])]


def by_hand(x, y, direction, start, k=2.0):
    first = [] if start == "null" or (start is None and direction == "forward") else range(x.shape[1])
    return plain.step(x, y, backward=direction != "forward", forward=direction != "backward", start=first, k=k)


@given(tables(), WAYS_TO_GO, st.sampled_from([2.0, 0.5, 5.0]))
def test_the_search_takes_the_moves_of_one_that_fits_every_candidate(table, way, k):
    x, y = table
    direction, start = way
    names = spelled(x)
    try:
        terms, moves = by_hand(x, y, direction, start, k)
    except plain.Saturated:
        with pytest.raises(DataError, match=r"exactly|the same in every row"):
            search_terms(x, y, names, direction=direction, start=start, k=k)
        return
    found = search_terms(x, y, names, direction=direction, start=start, k=k)
    assert [move.step for move in found.trace] == [f"{sign} x{term}" if sign else "" for sign, term, _ in moves]
    assert found.terms == tuple(names[term] for term in terms)
    assert [move.aic for move in found.trace] == pytest.approx([aic for _, _, aic in moves], rel=1e-7, abs=1e-7)


@given(tables(), WAYS_TO_GO, st.integers(0, 1000))
def test_searches_on_samples_end_as_searches_on_the_rows_of_each(table, way, seed):
    x, y = table
    plan = Selection(*way).plan(spelled(x))
    counts = np.random.default_rng(seed).multinomial(y.size, np.full(y.size, 1 / y.size), size=5)
    counts[0] = 1
    counts[1] = np.arange(y.size) > 0
    for count, found in zip(counts, search_samples(ScaledRows.of(x, y), counts.astype(np.float64), plan), strict=True):
        rows = np.repeat(np.arange(y.size), count)
        try:
            terms, _ = by_hand(x[rows], y[rows], *way)
        except plain.Saturated:
            with pytest.raises(DataError, match=r"exactly|the same in every row"):
                confirm_search(x, y, rows, found, plan)
            continue
        assert list(confirm_search(x, y, rows, found, plan)[0]) == terms


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", TABLES)
def test_terms_moves_and_figures_are_those_of_r(table, way):
    oracle = Oracle(table)
    direction, start = WAYS[way]
    found, said = search_terms(oracle.x, oracle.y, oracle.names, direction=direction, start=start), oracle.of(way)
    assert list(found.terms) == said["terms"]
    assert [(move.step, move.df) for move in found.trace] == [(move["step"], move["df"]) for move in said["trace"]]
    assert [move.aic for move in found.trace] == pytest.approx([move["aic"] for move in said["trace"]], rel=1e-12)
    assert list(found.coefficients) == list(said["coefficients"])
    assert found.coefficients == pytest.approx(said["coefficients"], rel=1e-11)
    assert found.aic == pytest.approx(said["extractAIC"], rel=1e-12)
    assert found.r2 == pytest.approx(said["r_squared"], rel=1e-12)
    if "resid_dev" in said["trace"][0]:
        assert [move.rss for move in found.trace] == pytest.approx([move["resid_dev"] for move in said["trace"]])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", ["mtcars", "swiss"])
def test_a_price_of_log_n_gives_the_terms_that_r_gives_for_bic(table, way):
    oracle = Oracle(table)
    direction, start = WAYS[way]
    found = search_terms(oracle.x, oracle.y, oracle.names, direction=direction, start=start, k=np.log(oracle.y.size))
    assert list(found.terms) == oracle.of(way)["bic_terms"]


X = np.array([[0, 1, 1], [1, 0, 2], [2, 0, 5], [3, 1, 6], [4, 1, 10.0]])
Y = np.array([0.1, 0.9, 2.2, 2.9, 4.1])


def test_a_search_worked_by_hand():
    # y on a: Sxx = 10, Sxy = 10 and Syy = 10.072, so the slope is 1 and RSS = 10.072 - 10²/10 = 0.072.
    found = search_terms(X[:, :2], Y, ["a", "b"], direction="forward")
    assert found.terms == ("a",)
    assert found.coefficients == pytest.approx({"(Intercept)": 0.04, "a": 1.0})
    assert found.fit.rss == pytest.approx(0.072)
    assert found.aic == pytest.approx(5 * np.log(0.0144) + 4)
    assert found.r2 == pytest.approx(1 - 0.072 / 10.072)
    assert found.mse == pytest.approx(0.0144)
    assert [move.df for move in found.trace] == [None, -1]
    assert found.predict(X[:, :2]) == pytest.approx([0.04, 1.04, 2.04, 3.04, 4.04])


def test_of_two_copies_the_first_enters_and_the_last_leaves():
    twice = X[:, [0, 0, 1]]
    assert search_terms(twice, Y, ["a", "again", "b"], direction="forward").terms == ("a",)
    backward = search_terms(twice, Y, ["a", "again", "b"])
    assert [(move.step, move.df) for move in backward.trace] == [("", None), ("- again", 0), ("- b", 1)]
    assert backward.aliased == ("again",)


def test_an_aliased_term_that_must_stay_makes_another_go():
    names, scope = ["a", "again", "b"], (["again"], ["a", "again", "b"])
    found = search_terms(X[:, [0, 0, 1]], Y, names, scope=scope)
    assert [(move.step, move.df) for move in found.trace] == [("", None), ("- a", 0), ("- b", 1)]
    assert found.coefficients == pytest.approx({"(Intercept)": 0.04, "again": 1.0})


def test_aliased_terms_of_a_forward_start_stay_without_a_coefficient():
    found = search_terms(X[:, [0, 0, 1]], Y, ["a", "again", "b"], direction="forward", start=["a", "again"])
    assert found.terms == ("a", "again")
    assert np.isnan(found.coefficients["again"])
    assert found.to_dict()["coefficients"]["again"] is None
    assert found.predict(X[:, [0, 0, 1]])[1] == pytest.approx(1.04)


def test_lower_scope_stays_and_upper_scope_bounds():
    names = ["a", "b", "c"]
    assert search_terms(X, Y, names, start=["b"], scope=(["b"], ["b", "c"]), direction="both").terms[0] == "b"
    assert "a" not in search_terms(X, Y, names, start="null", scope=([], ["b", "c"]), direction="both").terms
    assert search_terms(X, Y, names, start="null", direction="backward").terms == ()


def test_the_limit_ends_the_search():
    x = np.random.default_rng(1).normal(size=(40, 5))
    y = np.random.default_rng(2).normal(size=40)
    assert len(search_terms(x, y, list("abcde"), limit=2).trace) == 3


def test_no_candidates_leave_the_mean():
    found = search_terms(np.empty((3, 0)), [1.0, 2.0, 6.0], [])
    assert found.coefficients == pytest.approx({"(Intercept)": 3.0})
    assert found.aic == pytest.approx(3 * np.log(14 / 3) + 2)


@pytest.mark.parametrize("direction", ["backward", "forward", "both"])
@pytest.mark.parametrize("seed", range(4))
def test_long_tables_are_searched_to_the_same_end(direction, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(250, 8))
    x[:, 5] = 1 - x[:, :3].sum(axis=1)
    x[:, 7] = x[:, 6] + 10.0 ** -(2 * seed) * x[:, 7]
    y = x[:, 1] - 0.2 * x[:, 5] + 0.1 * x[:, 7] + rng.normal(size=250)
    terms, moves = by_hand(x, y, direction, None)
    found = search_terms(x, y, spelled(x), direction=direction)
    assert list(found.columns) == terms
    assert [move.aic for move in found.trace] == pytest.approx([aic for _, _, aic in moves], rel=1e-9)


def test_nearly_collinear_columns_are_left_to_the_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    x[:, 1] = x[:, 0] + 1e-5 * x[:, 1]
    y = x[:, 0] + rng.normal(size=30)
    assert not search_samples(ScaledRows.of(x, y), np.ones((1, 30)), Selection().plan(["a", "b"]))[0].clear
    assert len(search_terms(x, y, ["a", "b"]).terms) == 1


def test_rows_that_disagree_with_the_search_are_believed():
    plan = Selection().plan(["a", "b"])
    wrong = SearchEnd((0,), (1,), -999.0, clear=True)
    assert confirm_search(X[:, :2], Y, np.arange(5), wrong, plan)[0] == (0,)


@pytest.mark.parametrize("direction", ["backward", "forward", "both"])
def test_a_model_that_fits_exactly_is_refused(direction):
    x = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(DataError, match="fits the 12 rows exactly: its AIC is minus infinity"):
        search_terms(x, x @ [1.0, 2.0, 0.0] + 1, ["a", "b", "c"], direction=direction)


def test_as_many_predictors_as_rows_are_refused():
    x = np.random.default_rng(0).normal(size=(5, 6))
    with pytest.raises(DataError, match="offer fewer predictors or more rows"):
        search_terms(x, np.arange(5) ** 2, list("abcdef"))


def test_a_constant_outcome_is_refused():
    with pytest.raises(DataError, match=r"the outcome must not be the same in every row; got 0\.3"):
        search_terms(X, np.full(5, 0.3), ["a", "b", "c"], direction="forward")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"direction": "sideways"}, 'direction must be "backward"'),
        ({"start": "empty"}, 'start must be "full", "null" or a list'),
        ({"start": ["d"]}, 'there is no predictor "d"; there are: a, b, c'),
        ({"start": ["a"], "scope": (["b"], ["a", "b"])}, "lower scope must lie within the start"),
        ({"start": ["a"], "scope": ([], ["b"])}, "start within the upper scope"),
    ],
)
def test_a_search_that_cannot_be_is_refused(options, said):
    with pytest.raises(UsageError, match=said):
        search_terms(X, Y, ["a", "b", "c"], **options)


def test_names_must_fit_the_columns():
    with pytest.raises(UsageError, match="3 columns need as many names; got 2"):
        search_terms(X, Y, ["a", "b"])
    with pytest.raises(UsageError, match="predictors must have different names"):
        search_terms(X, Y, ["a", "b", "b"])
