from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.lab.nbest_experiments import SentenceCache
from demur.nbest_lists.asr.scorers import NAMES, Hypothesiser

CNET = [
    [{"word": "thai", "confidence": 0.5}, {"word": "tie", "confidence": 0.3}, {"word": "", "confidence": 0.2}],
    [{"word": "food", "confidence": 0.7}, {"word": "please", "confidence": 0.3}],
]


def parse(text):
    return "inform(food=thai)" if "thai" in text else "ack()" if "food" in text else ""


@given(scorer=st.sampled_from(NAMES), kept=st.integers(1, 8))
def test_the_first_sentences_of_a_longer_list_give_what_a_shorter_list_gives(scorer, kept):
    utterances = [("u1", None, CNET), ("u2", [{"text": "thai", "words": [{"word": "thai", "confidence": 0.5}]}], CNET)]
    cache = SentenceCache(parse, "network", 8)
    assert cache.score(scorer, kept, 1.0, utterances) == Hypothesiser(scorer, parse, kept, "network")(utterances)


def test_sentences_are_found_and_parsed_once_for_all_scorers():
    asked = []

    def counting(text):
        asked.append(text)
        return parse(text)

    cache = SentenceCache(counting, "network", 4)
    utterances = [("u1", None, CNET), ("u2", None, CNET)]
    for scorer in NAMES:
        for kept in (1, 4):
            assert len(cache.score(scorer, kept, 1.0, utterances)) == 2
    assert len(asked) == len(set(asked)) == 4


def test_an_utterance_of_which_nothing_was_heard_has_no_acts():
    assert SentenceCache(parse).score("infev", 3, 1.0, [("u2", [], None)]) == [[]]


def test_a_fault_names_the_utterance():
    scorer = partial(SentenceCache(parse, "auto", 3).score, "infev", 3, 1.0)
    with pytest.raises(DataError, match='u7: sentence "thai": infev needs a logprob'):
        scorer([("u7", [{"text": "thai"}], None)])
