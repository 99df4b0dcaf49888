import math

import pytest

from demur.errors import DataError, UsageError
from demur.nbest_lists.asr.scorers import SENTENCES, Hypothesiser, command_parser, remembering

ASR = [{"text": "thai", "logprob": math.log(0.8)}, {"text": "bye", "logprob": math.log(0.2)}]
SURE = [
    {"text": "thai", "logprob": math.log(0.8), "words": [{"word": "thai", "confidence": 0.9}]},
    {"text": "bye", "logprob": math.log(0.2), "words": [{"word": "bye", "confidence": 0.3}]},
]
CNET = [[{"word": "thai", "confidence": 0.6}, {"word": "tie", "confidence": 0.3}, {"word": "", "confidence": 0.1}]]


def parse(text):
    return "inform(food=thai)" if "thai" in text else "bye()" if "bye" in text else ""


def acts(scorer, asr=None, cnet=None, **options):
    (found,) = Hypothesiser(scorer, parse, **options)([("u1", asr, cnet)])
    return {act: pytest.approx(confidence) for act, confidence in found}


def test_the_list_is_heard_before_the_network():
    assert acts("infev", ASR, CNET) == {"inform(food=thai)": 0.8, "bye()": 0.2}
    assert acts("infev", None, CNET) == {"inform(food=thai)": 0.6, "": 0.4}


def test_avgword_hears_the_network_where_words_of_the_list_have_no_confidence():
    assert acts("avgword", SURE, CNET) == {"inform(food=thai)": 0.75, "bye()": 0.25}
    assert acts("avgword", ASR, CNET) == {"inform(food=thai)": 0.6 / 0.9, "": 0.3 / 0.9}
    assert acts("avgword-tp1", ASR, CNET) == {"inform(food=thai)": 1.0, "": 0.0}


def test_an_ear_that_is_asked_for_is_used():
    assert acts("infev", ASR, CNET, ear="cnet") == acts("infev", None, CNET)
    assert acts("infev", ASR, CNET, ear="asr") == acts("infev", ASR)
    assert acts("infev", ASR, CNET, ear="network") == acts("infev", None, CNET)
    assert acts("infev", ASR, None, ear="network") == acts("infev", ASR)


@pytest.mark.parametrize(
    ("ear", "asr", "cnet", "said"),
    [("asr", None, CNET, "u1: has no asr list .`heard` cnet"), ("cnet", ASR, None, "u1: has no cnet .`heard` asr")],
)
def test_an_ear_that_hears_nothing_names_the_utterance_and_the_other(ear, asr, cnet, said):
    with pytest.raises(DataError, match=said):
        acts("infev", asr, cnet, ear=ear)


def test_an_utterance_of_which_nothing_was_heard_has_no_acts():
    assert acts("infev", []) == {}
    with pytest.raises(DataError, match="has neither asr nor cnet"):
        acts("infev")


def test_sentences_and_acts_are_cut_to_the_number_asked_for():
    assert acts("infev", ASR, sentences=1) == {"inform(food=thai)": 1.0}
    assert acts("infev", None, CNET, sentences=2) == {"inform(food=thai)": 0.6 / 0.9, "": 0.3 / 0.9}
    assert acts("infev", ASR, acts=1) == {"inform(food=thai)": 0.8}
    with pytest.raises(UsageError, match="at least one sentence; asked for 0"):
        acts("infev", ASR, sentences=0)


def test_a_network_gives_a_hundred_sentences_where_nobody_says_how_many():
    slot = [{"word": word, "confidence": 0.25} for word in "abcd"]
    heard = Hypothesiser("const", parse).sentences_of("u1", None, [slot] * 5)
    assert len(heard) == SENTENCES == 100


def test_many_utterances_are_answered_in_order_and_faults_name_theirs():
    hypothesise = Hypothesiser("const", parse)
    found = hypothesise([("u1", [{"text": "bye"}], None), ("u2", [{"text": "thai"}], None)])
    assert found == [[("bye()", 1.0)], [("inform(food=thai)", 1.0)]]
    with pytest.raises(DataError, match="u2: asr sentence 1 must have a text"):
        hypothesise([("u1", [{"text": "bye"}], None), ("u2", [{"score": 1}], None)])


def test_a_sentence_is_parsed_once_however_often_it_is_heard():
    asked = []

    def counting(text):
        asked.append(text)
        return parse(text)

    careful = remembering(counting)
    for _ in range(2):
        Hypothesiser("const", careful)([("u1", ASR, None), ("u2", ASR, None)])
    assert asked == ["thai", "bye"]


def test_a_program_is_left_to_be_asked_in_batches():
    program = command_parser("cat")
    assert remembering(program) is program
