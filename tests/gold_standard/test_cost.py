import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.gold_standard.cost import CostFunction, check_covers, cost_points, read_cost
from demur.gold_standard.integrals import integral

POINTS = st.dictionaries(st.integers(0, 100), st.floats(0, 1e6), min_size=2, max_size=8)


def table(folder, text, name="cost.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestPoints:
    def test_are_joined_by_straight_lines(self):
        cost = cost_points([(0.9, 1000), (0.5, 0), (0.7, 100)])
        assert cost.points == ((0.5, 0.0), (0.7, 100.0), (0.9, 1000.0))
        assert cost(np.array([[0.5, 0.6], [0.8, 0.9]])) == pytest.approx(np.array([[0, 50], [550, 1000]]))
        assert (cost.low, cost.high, cost.breaks) == (0.5, 0.9, (0.5, 0.7, 0.9))

    def test_amounts_may_fall(self):
        assert cost_points([(0, 100), (1, 0)])(np.array([0.25])) == pytest.approx([75])

    @given(POINTS, st.randoms())
    def test_keep_their_amounts_in_whatever_order_they_come(self, amounts, random):
        pairs = [(place / 100, amount) for place, amount in amounts.items()]
        mixed = random.sample(pairs, len(pairs))
        cost = cost_points(mixed)
        assert cost == cost_points(pairs)
        assert cost(np.array([rate for rate, _ in pairs])) == pytest.approx([amount for _, amount in pairs])

    @given(POINTS)
    def test_the_area_below_is_the_sum_of_trapezoids(self, amounts):
        rates, worth = zip(*sorted((place / 100, amount) for place, amount in amounts.items()), strict=True)
        cost = cost_points(zip(rates, worth, strict=True))
        area = integral(cost, cost.low, cost.high, cost.breaks)
        assert area == pytest.approx(np.trapezoid(worth, rates), rel=1e-9, abs=1e-9)

    def test_nothing_is_stated_beyond_them(self):
        amounts = cost_points([(0.5, 1), (0.9, 2)])(np.array([0.49, 0.5 - 1e-12, 0.9 + 1e-12, 0.91]))
        assert amounts == pytest.approx([np.nan, 1, 2, np.nan], nan_ok=True)

    def test_the_same_point_twice_is_one_point(self):
        assert cost_points([(0, 1), (1, 2), (0, 1)]).points == ((0.0, 1.0), (1.0, 2.0))

    def test_two_amounts_for_one_performance_are_refused(self):
        with pytest.raises(DataError, match=r"has two amounts for the performance 0\.5: 1 and 2 \(keep one"):
            cost_points([(0.5, 2), (0.9, 3), (0.5, 1)])

    @pytest.mark.parametrize(
        ("pairs", "told"), [([], "are none"), ([(0.5, 1)], "is one"), ([(1, 1), (1, 1)], "is one")]
    )
    def test_there_must_be_two(self, pairs, told):
        with pytest.raises(DataError, match=f"at least two performances; there {told}"):
            cost_points(pairs)

    @pytest.mark.parametrize("pair", [(np.nan, 1), (0.5, np.inf)])
    def test_must_be_finite(self, pair):
        with pytest.raises(DataError, match="must be finite numbers"):
            cost_points([(0, 0), pair])

    @pytest.mark.parametrize("pair", [3, (1,), (1, 2, 3), ("a", 1), None])
    def test_must_be_pairs(self, pair):
        with pytest.raises(DataError, match="must be pairs of a performance and an amount"):
            cost_points([(0, 0), pair])

    @pytest.mark.parametrize("rates", [(50, 70, 100), (0, 50), (1, 100)])
    def test_percent_where_the_metric_ends_at_1_is_to_be_divided(self, rates):
        with pytest.raises(DataError, match=r"between 0 and 1, as the metric is; got .* divide them by 100"):
            cost_points([(rate, rate) for rate in rates], upper=1.0)

    def test_a_performance_out_of_bounds_that_is_no_percentage_is_refused_without_that_advice(self):
        with pytest.raises(DataError, match=r"between 0 and 1, .*got 1\.2 \(correct it or leave it out"):
            cost_points([(0.5, 1), (1.2, 2)], upper=1.0)
        with pytest.raises(DataError, match=r"between 1 and 7, .*got 0\.5 \(correct it"):
            cost_points([(0.5, 1), (6, 2)], lower=1.0, upper=7.0)
        with pytest.raises(DataError, match=r"at least 0, as the metric is; got -1\.0"):
            cost_points([(-1, 1), (6, 2)])

    def test_performances_up_to_100_are_fine_where_the_metric_goes_there(self):
        assert cost_points([(50, 1), (90, 2)], upper=100.0).high == 90
        assert cost_points([(50, 1), (90, 2)]).high == 90


class TestTables:
    def test_columns_have_their_names(self, tmp_path):
        path = table(tmp_path, "performance,amount\n0.5,0\n0.9,1000\n")
        cost = read_cost(path, upper=1.0)
        assert cost.points == ((0.5, 0.0), (0.9, 1000.0))
        assert cost.notes == ()
        assert read_cost(str(path)) == cost

    def test_or_other_names_which_are_told(self, tmp_path):
        path = table(tmp_path, '{"Rate": 0.5, "worth": 0}\n{"Rate": 1, "worth": 2}\n', "cost.jsonl")
        cost = read_cost(path)
        assert cost.points == ((0.5, 0.0), (1.0, 2.0))
        assert cost.notes == ("performance <- Rate", "amount <- worth")

    def test_or_the_names_one_says(self, tmp_path):
        path = table(tmp_path, "tcr,usd,price\n0.5,0,9\n0.9,1000,9\n")
        cost = read_cost(path, columns={"performance": "tcr", "amount": "usd"})
        assert cost.points == ((0.5, 0.0), (0.9, 1000.0))
        assert cost.notes == ()

    def test_a_missing_column_is_told_with_those_there_are(self, tmp_path):
        with pytest.raises(DataError, match=r"cost\.csv: needs a column amount; there are rate, usd"):
            read_cost(table(tmp_path, "rate,usd\n0,1\n1,2\n"))

    def test_two_candidates_are_told(self, tmp_path):
        with pytest.raises(DataError, match=r"amount may be any of the columns cost, price .*name the one that counts"):
            read_cost(table(tmp_path, "rate,cost,price\n0,1,1\n1,2,2\n"))

    @pytest.mark.parametrize(
        ("cell", "fault"),
        [("much", 'amount must be a number; got "much"'), ("", 'amount must be a finite number; got "nothing"')],
    )
    def test_a_bad_cell_is_named_with_its_line(self, tmp_path, cell, fault):
        with pytest.raises(DataError, match=rf"cost\.csv:3: {fault}"):
            read_cost(table(tmp_path, f"performance,amount\n0,1\n0.5,{cell}\n1,3\n"))

    def test_a_fault_of_the_points_names_the_file(self, tmp_path):
        with pytest.raises(DataError, match=r"cost\.csv: has two amounts"):
            read_cost(table(tmp_path, "performance,amount\n0,1\n0,2\n1,3\n"))
        with pytest.raises(DataError, match=r"cost\.csv: the performance must be .* divide them by 100"):
            read_cost(table(tmp_path, "performance,amount\n50,1\n90,3\n"), upper=1.0)

    def test_a_file_that_is_not_there_is_not_taken_for_an_expression(self, tmp_path):
        with pytest.raises(DataError, match=r"nowhere\.csv does not exist"):
            read_cost(str(tmp_path / "nowhere.csv"))
        with pytest.raises(DataError, match=r"nowhere\.csv\.gz does not exist"):
            read_cost(str(tmp_path / "nowhere.csv.gz"))


class TestExpressions:
    def test_give_amounts_for_every_performance(self):
        cost = read_cost(" 1000 * p ** 2 ", upper=1.0)
        assert cost.expression == "1000 * p ** 2"
        assert cost(np.array([0.5, 1.0])) == pytest.approx([250, 1000])
        assert (cost.low, cost.high, cost.breaks) == (-np.inf, np.inf, ())

    @pytest.mark.parametrize(
        ("expression", "place", "got"),
        [
            ("log(p)", "0", "-inf"),
            ("1 / (p - 0.3)", "0.3", "inf"),
            ("sqrt(p - 0.5)", "0", "nan"),
            ("9**9**9**9", "0", "inf"),
            ("exp(1000 * p)", "0.71", "inf"),
        ],
    )
    def test_without_a_finite_value_somewhere_are_refused_with_the_place(self, expression, place, got):
        with pytest.raises(DataError, match=rf"finite number .* from 0 to 1, and is not at p = {place}; got {got} "):
            read_cost(expression, upper=1.0)

    def test_of_a_metric_without_a_bound_are_checked_where_the_curves_go(self):
        cost = read_cost("log(p)")
        check_covers(cost, 0.5, 20.0)
        with pytest.raises(DataError, match="is not at p = 0"):
            check_covers(cost, 0.0, 20.0)

    def test_with_something_unknown_say_what_a_cost_function_may_be(self):
        with pytest.raises(UsageError, match=r'the cost function: cannot use "wer" .*a file with the columns'):
            read_cost("1000 * wer")
        with pytest.raises(UsageError, match=r'cannot use "cost\.xlsx".*a file with the columns'):
            read_cost("cost.xlsx")


class TestCovering:
    COST = cost_points([(0.5, 0), (0.9, 1000)])

    def test_curves_between_the_points_are_covered(self):
        check_covers(self.COST, 0.5, 0.9)
        check_covers(self.COST, 0.5 - 1e-12, 0.9 + 1e-12)

    @pytest.mark.parametrize(
        ("low", "high", "gap"),
        [
            (0.12, 0.8, r"the curves go down to 0\.12 "),
            (0.6, 0.97, r"the curves go up to 0\.97 "),
            (0.12, 0.97, r"the curves go down to 0\.12 and up to 0\.97 "),
            (0.49999, 0.8, r"the curves go down to 0\.49999 "),
        ],
    )
    def test_curves_beyond_them_are_told_how_far_they_go(self, low, high, gap):
        with pytest.raises(DataError, match=rf"^the cost function covers 0\.5 to 0\.9, but {gap}\(add points"):
            check_covers(self.COST, low, high)

    def test_it_says_whose_curve_it_is(self):
        with pytest.raises(DataError, match="but the curves of A go down to 0"):
            check_covers(self.COST, 0.0, 0.8, what="the curves of A")


class TestWords:
    def test_of_two_points_tell_a_line(self):
        assert cost_points([(0.5, 0), (1, 12500)]).words() == "0 at 0.5 to 12,500 at 1, a straight line"

    def test_of_an_expression_tell_it(self):
        assert read_cost("exp(p)").words() == "exp(p), with p the performance"

    @pytest.mark.parametrize("given_both", [{}, {"points": ((0.0, 1.0), (1.0, 2.0)), "expression": "p"}])
    def test_one_of_the_two_it_must_be(self, given_both):
        with pytest.raises(UsageError, match="by points or by an expression, one of the two"):
            CostFunction(**given_both)
