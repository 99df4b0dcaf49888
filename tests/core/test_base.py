from math import inf, isnan, nan

import numpy as np
import pytest

from demur import __version__
from demur.core.stats.calibration import ECE, Brier, cell_totals
from demur.core.stats.measure import Score, parse_signature
from demur.core.stats.sweep import Sweep, ratio
from demur.errors import DataError
from demur.nbest_lists.measures import KINDS
from demur.returns.measures import AUGRC, AURC, ErrorAtNonreturn, QALDPrecision

SWEEP = Sweep.of([0.9, 0.4, 0.4], [True, False, True])


def test_a_signature_names_measure_rows_data_and_version():
    score = Score.of(AURC("mean"), SWEEP)
    assert score.signature == f"AURC(convention='mean') | n=3 | data={SWEEP.digest()} | demur {__version__}"


@pytest.mark.parametrize(
    "measure", [AURC("mean"), ErrorAtNonreturn(0.1, 0.3), QALDPrecision(), QALDPrecision(inf), ECE(7)]
)
def test_a_signature_parses_back_with_its_parameters(measure):
    totals = cell_totals(measure, SWEEP) if isinstance(measure, ECE) else SWEEP
    read = parse_signature(Score.of(measure, totals).signature, KINDS)
    assert (read.measure, read.n, read.version) == (measure, 3, __version__)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AUGRC",
        "Unknown() | n=3 | data=ab | demur 0.1.0",
        "AUGRC() | n=-3 | data=ab | demur 0.1.0",
        "AURC(kind='mean') | n=3 | data=ab | demur 0.1.0",
        "AURC('mean') | n=3 | data=ab | demur 0.1.0",
        "AURC(convention=) | n=3 | data=ab | demur 0.1.0",
        "AURC(convention=open('x')) | n=3 | data=ab | demur 0.1.0",
        "AURC() + f() | n=3 | data=ab | demur 0.1.0",
        "ECE(bins='many') | n=3 | data=ab | demur 0.1.0",
    ],
)
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(DataError, match=r"signature reads|takes the parameters"):
        parse_signature(text, KINDS)


def test_scores_of_two_measures_cannot_be_added():
    with pytest.raises(DataError, match="cannot be added; use one measure"):
        Score.of(AUGRC(), SWEEP) + Score.of(AURC(), SWEEP)
    with pytest.raises(DataError, match="cannot be added; use one measure"):
        Score.of(AURC("trapezoid"), SWEEP) + Score.of(AURC(), SWEEP)


def test_equal_scores_are_equal_whatever_their_totals():
    assert Score.of(AUGRC(), SWEEP) == Score.of(AUGRC(), SWEEP)
    assert Score.of(AUGRC(), SWEEP) != Score.of(AURC(), SWEEP)
    assert Score.of(Brier(), cell_totals(Brier(), SWEEP)) == Score.of(Brier(), cell_totals(Brier(), SWEEP))


def test_an_undefined_score_is_null_with_a_reason():
    shown = Score.of(QALDPrecision(threshold=2.0), SWEEP).to_dict()
    assert shown["value"] is None
    assert shown["why"] == "nothing is returned at the threshold 2"
    assert "why" not in Score.of(QALDPrecision(), SWEEP).to_dict()


def test_a_ratio_with_divisor_0_is_nan():
    assert ratio([1, 2], [2, 0]).tolist() == pytest.approx([0.5, nan], nan_ok=True)
    assert isnan(float(ratio(0, 0)))
    assert ratio(np.ones((2, 3)), np.ones((2, 1))).shape == (2, 3)
