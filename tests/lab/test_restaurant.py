"""The trial of a restaurant guide that comes with the package."""

from collections import Counter
from functools import cache
from math import log
from statistics import fmean

import numpy as np
import pytest

from demur.core.acts import parse_acts, print_acts, thomson_items
from demur.lab.corpora import restaurant
from demur.nbest_lists.asr.grammar import bundled
from demur.nbest_lists.asr.networks import nbest, network_of
from demur.nbest_lists.asr.scorers import scored_all
from demur.understanding.noise import word_errors

LEVELS = ("WER 11 %", "WER 26 %", "WER 39 %")


@cache
def items_of(acts):
    return frozenset(thomson_items(parse_acts(acts)))


def cost_of_items(rows):
    """ICE as the definition says: sums over utterances and items, then one division; floor 1e-3."""
    cost, items = 0.0, 0
    for row in rows:
        reference = items_of(row["reference"])
        confidence = Counter()
        for hypothesis in row["hypotheses"]:
            for item in items_of(hypothesis["act"]):
                confidence[item] += hypothesis["confidence"]
        right = [
            confidence[item] if item in reference else 1 - confidence[item] for item in reference | set(confidence)
        ]
        cost -= sum(log(max(chance, 1e-3)) for chance in right)
        items += len(reference)
    return cost / items


def reward(dialogues):
    return fmean(20 * each["success"] - each["turns"] for each in dialogues)


def at(rows, **where):
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


@pytest.fixture(scope="module")
def corpus():
    return restaurant()


@pytest.fixture(scope="module")
def shipped(corpus):
    """The shipped study, without what was heard."""
    return corpus.turns.drop("asr", "cnet").to_dicts(), corpus.dialogues.to_dicts()


def test_rows_are_in_the_nbest_format(corpus):
    for row in corpus.turns.gather_every(20).to_dicts():
        confidences = [hypothesis["confidence"] for hypothesis in row["hypotheses"]]
        assert len(confidences) <= 10
        assert sum(confidences) <= 1 + 1e-9
        assert confidences == sorted(confidences, reverse=True)
        assert len(row["asr"]) <= 10
        assert print_acts(parse_acts(row["reference"])) == row["reference"]
        assert all(sentence["text"].split() == [each["word"] for each in sentence["words"]] for sentence in row["asr"])


def test_dialogues_are_counted_in_both_tables_alike(shipped):
    turns, dialogues = shipped
    counted = Counter(row["dialogue"] for row in turns)
    assert {each["dialogue"]: each["turns"] for each in dialogues} == counted


def test_levels_of_noise_are_named_after_the_words_that_were_wrong(corpus):
    for (level,), rows in corpus.turns.group_by("noise"):
        said = [text.split() for text in rows["text"]]
        best = [asr[0]["text"].split() if len(asr) else [] for asr in rows["asr"]]
        errors = sum(word_errors(one, other) for one, other in zip(said, best, strict=True))
        assert level == f"WER {100 * errors / sum(map(len, said)):.0f} %"


def test_more_noise_makes_ice_worse(shipped):
    costs = [cost_of_items(at(shipped[0], noise=level)) for level in LEVELS]
    assert costs == sorted(costs)
    assert costs[-1] > 1.3 * costs[0]


def test_belief_earns_more_than_first_best_where_it_is_noisy(shipped):
    lead = {
        level: reward(at(shipped[1], noise=level, manager="belief"))
        - reward(at(shipped[1], noise=level, manager="first-best"))
        for level in LEVELS
    }
    assert lead["WER 26 %"] > 0.5
    assert lead["WER 39 %"] > 0.5
    assert lead["WER 39 %"] > lead["WER 11 %"]


def test_reward_falls_as_the_ice_of_a_dialogue_rises(shipped):
    turns, dialogues = shipped
    by_dialogue = {}
    for row in turns:
        by_dialogue.setdefault(row["dialogue"], []).append(row)
    costs = [cost_of_items(by_dialogue[each["dialogue"]]) for each in dialogues]
    rewards = [20 * each["success"] - each["turns"] for each in dialogues]
    assert np.corrcoef(costs, rewards)[0, 1] < -0.3


@pytest.fixture(scope="module")
def sample(corpus):
    """Every twentieth turn of the shipped study with the sentences of its network."""
    return [(row, nbest(network_of(row["cnet"], row["id"]), 100)) for row in corpus.turns.gather_every(20).to_dicts()]


@cache
def parsed(text):
    return bundled().parse(text)


def rescored(sample, scorer, n):
    lists = scored_all([sentences for _, sentences in sample], scorer=scorer, parse=parsed, n=n)
    return [
        {**row, "hypotheses": [{"act": act, "confidence": confidence} for act, confidence in acts]}
        for (row, _), acts in zip(sample, lists, strict=True)
    ]


def test_the_shipped_hypotheses_are_what_the_shipped_grammar_makes_of_the_shipped_networks(sample):
    for row, sentences in sample[::3]:
        afresh = dict(scored_all([sentences], scorer="infev", parse=parsed, n=100)[0][:10])
        afresh = {act: confidence for act, confidence in afresh.items() if confidence >= 1e-4}
        assert {each["act"]: each["confidence"] for each in row["hypotheses"]} == pytest.approx(afresh, abs=2e-4)


def test_ice_falls_as_more_sentences_are_kept(sample):
    costs = [cost_of_items(rescored(sample, "infev", n)) for n in (1, 5, 100)]
    assert costs == sorted(costs, reverse=True)


def test_scorers_rank_as_in_table_3(sample):
    costs = [cost_of_items(rescored(sample, scorer, 5)) for scorer in ("const", "avgword", "infev")]
    assert costs == sorted(costs, reverse=True)
    assert cost_of_items(rescored(sample, "infev-tp1", 5)) > costs[-1]
