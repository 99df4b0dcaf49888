import gzip
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

import demur
from demur.errors import DataError, UsageError
from demur.lab.corpora import museum
from demur.understanding.training import DomainGate, two_stage

CLINC = Path(__file__).parents[3] / "shared" / "data" / "clinc150" / "clinc150_full.jsonl.gz"


@pytest.fixture(scope="module")
def gate():
    return DomainGate().fit(["when do you open", "when do you close"], ["what is the capital of france"])


def separation(gate, inside, outside):
    """AUROC: the chance that a text of the domain has the higher confidence."""
    a, b = gate.confidence(inside), gate.confidence(outside)
    return mannwhitneyu(a, b).statistic / (len(a) * len(b))


def held_out(texts, *, fold):
    """Texts to learn from, and every fifth to test on."""
    return [text for n, text in enumerate(texts) if n % 5 != fold], texts[fold::5]


def test_log_odds_are_those_worked_by_hand():
    gate = DomainGate(smoothing=1.0).fit(["a a b"], ["b c"])
    # the vocabulary and the unseen: 4 tokens; a: 3/7 against 1/6, b: 2/7 against 2/6, unseen: 1/7 against 1/6
    a, b, unseen = math.log(3 / 7 * 6), math.log(6 / 7), math.log(6 / 7)
    expected = [a, (a + b) / 2, unseen, (a + unseen) / 2, 0]
    assert gate.decision_function(["a", "a b", "z", "A z", ""]) == pytest.approx(expected)


def test_the_prior_moves_every_text_alike():
    texts = ["a", "b", ""]
    even, rare = (DomainGate(prior=prior).fit(["a a b"], ["b c"]) for prior in (0.5, 0.2))
    assert rare.decision_function(texts) - even.decision_function(texts) == pytest.approx([math.log(0.25)] * 3)
    assert rare.confidence([""]) == pytest.approx([0.2])


def test_repeating_a_text_does_not_make_it_surer(gate):
    once, thrice = gate.confidence(["do you open", "do you open do you open do you open"])
    assert once == pytest.approx(thrice)


def test_a_text_without_tokens_is_neutral(gate):
    assert gate.confidence(["", "  ", "?!"]).tolist() == [0.5, 0.5, 0.5]
    assert gate.confidence([]).tolist() == []


def test_unknown_words_are_neutral_where_they_are_ignored():
    gate = DomainGate(unknown="ignored").fit(["when do you open", "when do you close"], ["capital of france"])
    assert gate.confidence(["xyzzy plugh"]).tolist() == [0.5]


def test_unknown_words_speak_against_the_domain_and_never_for_it():
    large, small = ["when do you open today"] * 5, ["capital of france"]
    assert DomainGate().fit(large, small).confidence(["xyzzy plugh"]) < 0.5
    assert DomainGate().fit(small, large).confidence(["xyzzy plugh"]) == 0.5


@pytest.mark.parametrize(("unknown", "least"), [("against", 0.82), ("ignored", 0.74)])
def test_museum_questions_are_told_from_off_topic_ones_never_seen(unknown, least):
    corpus = museum()
    areas = []
    for fold in range(5):
        inside, inside_test = held_out(corpus.questions["input"].to_list(), fold=fold)
        outside, outside_test = held_out(corpus.offtopic["input"].to_list(), fold=fold)
        areas.append(separation(DomainGate(unknown=unknown).fit(inside, outside), inside_test, outside_test))
    assert np.mean(areas) > least


@pytest.mark.skipif(not CLINC.is_file(), reason="no ../shared/data/clinc150 beside the project")
def test_clinc150_is_told_from_what_is_out_of_its_scope():
    rows = pl.read_ndjson(gzip.decompress(CLINC.read_bytes()))
    train, test = rows.filter(pl.col("split") != "test"), rows.filter(split="test")
    parts = [frame.filter(oos=out)["text"].to_list() for frame in (train, test) for out in (False, True)]
    assert separation(DomainGate().fit(*parts[:2]), *parts[2:]) > 0.89


def test_a_mixture_averages_what_its_parts_say():
    pytest.importorskip("gruut_lang_en", reason="no pronunciations without gruut")
    texts = ["when do you open"], ["what is the capital of france"]
    asked = ["open the capital", "do you"]
    parts = [DomainGate(tokens=tokens).fit(*texts).decision_function(asked) for tokens in ("words", "phones2")]
    mixed = DomainGate(tokens="mixed").fit(*texts)
    assert mixed.decision_function(asked) == pytest.approx(np.mean(parts, axis=0))


@pytest.mark.parametrize(
    ("inside", "outside", "name"),
    [([], ["a"], "in the domain"), (["a"], [], "out of the domain"), (["a"], ["", "?"], "out of the domain")],
)
def test_both_classes_need_texts(inside, outside, name):
    with pytest.raises(DataError, match=f"there is no text {name} that has words"):
        DomainGate().fit(inside, outside)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smoothing": 0}, "smoothing must be above 0; got 0"),
        ({"smoothing": math.nan}, "smoothing must be above 0; got nan"),
        ({"prior": 1}, "prior must be between 0 and 1, both excluded; got 1"),
        ({"unknown": "for"}, 'unknown must be one of against, ignored; got "for"'),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        DomainGate(**settings)


def test_a_gate_that_has_learnt_nothing_says_so():
    with pytest.raises(UsageError, match="the gate has learnt nothing yet"):
        DomainGate().confidence(["a"])


def test_a_single_text_is_no_list_of_letters(gate):
    with pytest.raises(UsageError, match='takes a list of texts; got the text "when"'):
        gate.confidence("when")


@given(st.lists(st.text(), max_size=4), st.sampled_from((1e-12, 0.1, 5.0, 1e9)))
def test_confidence_is_a_number_from_0_to_1_for_any_text(texts, smoothing):
    sure = DomainGate(smoothing=smoothing).fit(["a b c"] * 3, ["b z"]).confidence(texts)
    assert sure.shape == (len(texts),)
    assert ((sure >= 0) & (sure <= 1)).all()


def answers():
    return pl.DataFrame(
        {
            "id": ["1", "2", "3"],
            "input": ["when do you open", "the capital of france", "do you close"],
            "target": ["hours", None, "hours"],
            "prediction": ["hours", "hours", None],
            "confidence": [0.1, 0.9, 0.0],
        }
    )


def test_the_gate_withholds_what_it_does_not_trust(gate):
    rows = two_stage(gate, answers(), threshold=0.5)
    assert rows["prediction"].to_list() == ["hours", None, None]
    assert rows["confidence"].to_list() == gate.confidence(answers()["input"].to_list()).tolist()
    assert rows["system"].unique().to_list() == ["two-stage"]
    assert rows["target"].to_list() == ["hours", None, "hours"]


def test_what_is_as_sure_as_the_threshold_is_let_through(gate):
    first = float(gate.confidence(answers()["input"].to_list())[0])
    assert two_stage(gate, answers(), threshold=first)["prediction"].to_list() == ["hours", None, None]
    assert two_stage(gate, answers())["prediction"].to_list() == ["hours", "hours", None]


def test_both_curves_come_from_tables_of_responses(gate):
    rows = answers().with_columns(system=pl.lit("interpreter"))
    both = pl.concat([rows, two_stage(gate, rows)], how="diagonal")
    comparison = demur.compare(both, replicates=50)
    assert {one.curve.name for one in comparison.evaluations} == {"interpreter", "two-stage"}


def test_a_missing_input_is_a_text_without_tokens(gate):
    rows = pl.DataFrame({"input": [None], "prediction": ["hours"]})
    assert two_stage(gate, rows)["confidence"].to_list() == [0.5]


def test_faults_of_the_table_and_the_threshold_are_named(gate):
    with pytest.raises(DataError, match="the interpreter's answers needs the columns input and prediction"):
        two_stage(gate, pl.DataFrame({"text": ["a"]}))
    with pytest.raises(UsageError, match="threshold of the gate must be between 0 and 1; got 2"):
        two_stage(gate, answers(), threshold=2)
