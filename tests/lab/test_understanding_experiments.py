import json
import math
from dataclasses import dataclass, replace

import polars as pl
import pytest

from demur.core.options import Sampling
from demur.core.show.numbers import percent
from demur.core.show.results import plain
from demur.errors import DataError, UsageError
from demur.lab.corpora import domains, museum
from demur.lab.noise import read_recorded
from demur.lab.understanding_experiments import (
    BOTH,
    GATE,
    INTERPRETER,
    QuestionSet,
    accuracy,
    divided_pairs,
    gate_experiment,
    growth_experiment,
    of_experiment,
    response_table,
    scope_auroc,
    split_corpus,
    tokenizer_experiment,
)
from demur.understanding.noise import FLATTERS, Recognition, WordChannel
from demur.understanding.questions import MADE_BY_RULE
from demur.understanding.relevance import RelevanceClassifier

QUICK = {"sampling": Sampling(replicates=50)}


@pytest.fixture(scope="module")
def guide():
    """Every answer of the museum guide, tested on fewer questions."""
    whole = split_corpus(museum())
    return QuestionSet("museum", whole.train, whole.test.gather_every(3))


@pytest.fixture(scope="module")
def heard(guide):
    channel = WordChannel(guide.texts, wer=0.4)
    return tokenizer_experiment(guide, tokens=("words", "phones2", "mixed"), channel=channel, **QUICK)


@pytest.fixture(scope="module")
def grown(guide):
    return growth_experiment(guide.in_scope(), domains(), **QUICK)


@pytest.fixture(scope="module")
def gated():
    return gate_experiment(split_corpus(museum()), **QUICK)


def small():
    train = {"input": ["when do you open", "what does it cost"], "target": ["hours", "price"]}
    test = {
        "id": ["1", "2", "3"],
        "input": ["do you open", "it cost what", "xyzzy"],
        "target": ["hours", "hours", None],
    }
    return QuestionSet("small", pl.DataFrame(train), pl.DataFrame(test))


def test_a_model_answers_every_question_but_those_it_knows_nothing_of():
    material = small()
    model = RelevanceClassifier().fit(material.texts, material.labels)
    table = response_table("guide", model, material.test)
    assert table["prediction"].to_list() == ["hours", "price", None]
    assert table["confidence"].is_null().to_list() == [False, False, True]
    assert set(table["system"]) == {"guide"}
    assert accuracy(table) == 0.5
    assert scope_auroc(table) == 1.0


def test_a_forced_model_answers_every_question_with_the_prior_at_least():
    material = small()
    model = RelevanceClassifier().fit([*material.texts, "how much is it"], [*material.labels, "price"])
    table = response_table("guide", model, material.test, forced=True)
    assert table["prediction"].to_list() == ["hours", "price", "price"]
    assert table["confidence"][2] == pytest.approx(2 / 3)  # two of three questions have that answer
    assert scope_auroc(table) == 1.0


def test_accuracy_and_scope_are_undefined_without_questions_of_the_kind():
    table = pl.DataFrame({"target": [None], "prediction": ["a"], "confidence": [0.4]}, schema_overrides={"target": str})
    assert math.isnan(accuracy(table))
    assert math.isnan(scope_auroc(table))


def test_tokenizers_are_tested_on_the_same_questions_at_the_word_error_rate_asked_for(heard, guide):
    assert heard.wer == pytest.approx(0.4, abs=0.01)
    parts = heard.responses.partition_by("system", maintain_order=True)
    assert [part["system"][0] for part in parts] == ["words", "phones2", "mixed"]
    assert all(part["input"].equals(parts[0]["input"]) for part in parts)
    assert parts[0]["asked"].to_list() == guide.test["input"].to_list() != parts[0]["input"].to_list()
    assert all(pair.paired for pair in heard.comparison.pairs)


def test_noise_costs_words_more_than_the_mixture(heard):
    words, _, mixed = heard.summaries
    assert all(one.accuracy < one.asked for one in heard.summaries)
    assert mixed.accuracy > words.accuracy
    assert mixed.asked - mixed.accuracy < words.asked - words.accuracy


def test_without_noise_questions_are_as_asked(gated):
    assert gated.wer == 0
    assert [one.accuracy for one in gated.summaries] == [one.asked for one in gated.summaries]
    assert gated.responses["input"].equals(gated.responses["asked"])


@dataclass
class DropFirst:
    """A channel that loses the first word of each text."""

    snr_db = 20.0
    description = "a bad line"
    caution = ""

    def recognise(self, texts, ids=None):
        return Recognition(tuple(ids or texts), list(texts), [text.partition(" ")[2] for text in texts])


def test_any_channel_may_be_asked_for(guide):
    few = replace(guide, test=guide.test.head(40))
    found = tokenizer_experiment(few, tokens=("words", "words+phones1"), channel=DropFirst(), **QUICK)
    words = [len(text.split()) for text in few.test["input"]]
    assert found.wer == pytest.approx(len(words) / sum(words))
    assert found.to_dict()["spoken_at_db"] == 20
    sentences = of_experiment(found).sentences
    assert any("through a bad line with" in sentence for sentence in sentences)
    assert FLATTERS not in sentences


def test_a_character_grows_by_one_domain_a_step_and_loses_little_of_its_own(grown, guide):
    assert [one.system for one in grown.summaries] == ["museum", "+1 bees", "+2 bread", "+3 railways", "+4 volcanoes"]
    for smaller, larger in zip(grown.summaries, grown.summaries[1:], strict=False):
        assert larger.pairs > smaller.pairs
        assert larger.labels > smaller.labels
    assert grown.summaries[0].pairs == guide.train.height
    assert grown.responses["prediction"].null_count() == 0


def test_what_growing_gains_is_measured_on_questions_that_were_not_learnt(grown):
    gains = [one.gain for one in grown.summaries]
    assert gains[0] == 0
    assert gains == sorted(gains)
    assert gains[-1] > 0.3
    learnt, kept = divided_pairs("bees", domains()["bees"])
    assert not {question for question, _ in learnt} & {question for question, _ in kept}
    assert {answer for _, answer in kept} <= {answer for _, answer in learnt}
    assert grown.new.evaluations[0].figures["forced_error"].value == 1


def test_what_a_recogniser_wrote_can_be_given(guide):
    few = replace(guide, test=guide.test.head(20))
    rows = [{"id": one, "heard": f"{said} please"} for one, said in few.test.select("id", "input").head(15).iter_rows()]
    channel = read_recorded(rows)
    found = tokenizer_experiment(few.only(channel.texts), tokens=("words", "words+phones1"), channel=channel, **QUICK)
    assert found.questions.test.height == 15
    assert "5 test questions are left out, as nothing is recorded for them" in found.notes
    assert all(text.endswith(" please") for text in found.responses["input"])
    with pytest.raises(UsageError, match='nothing is recorded for "x"'):
        channel.recognise(["hello"], ["x"])
    with pytest.raises(DataError, match="there is no heard"):
        read_recorded([{"id": "1", "text": "hello"}])


def test_an_answer_of_another_domain_is_wrong_for_a_question_of_the_first(grown):
    strange = grown.responses.filter(pl.col("prediction").str.starts_with("bees: "))
    assert strange.filter(pl.col("prediction") == pl.col("target")).is_empty()


def test_the_gate_gives_the_same_answers_with_confidences_of_its_own(gated):
    alone, gate, both = gated.responses.partition_by("system", maintain_order=True)
    assert [part["system"][0] for part in (alone, gate, both)] == [INTERPRETER, GATE, BOTH]
    assert alone["prediction"].equals(gate["prediction"])
    assert alone["prediction"].equals(both["prediction"])
    product = (alone["confidence"] * gate["confidence"]).to_list()
    assert both["confidence"].to_list() == pytest.approx(product, nan_ok=True)


def test_the_gate_learns_from_half_of_the_off_topic_questions_and_none_of_these_is_tested(gated):
    assert len(gated.questions.off_topic) == museum().offtopic.height // 2
    assert not set(gated.questions.off_topic) & set(gated.responses["asked"])


def test_the_gate_tells_scope_better_and_yet_lets_more_errors_through(gated):
    """It knows what is off topic, but nothing of which answer is wrong; both together err least."""
    scope = {one.system: one.scope for one in gated.summaries}
    area = {one.system: one.figures["augrc"].value for one in gated.comparison.evaluations}
    assert scope[GATE] > scope[INTERPRETER]
    assert area[BOTH] < area[INTERPRETER] < area[GATE]


def test_an_experiment_is_plain_values_and_draws_itself(heard):
    document = heard.to_dict()
    assert json.loads(json.dumps(plain(document), allow_nan=False)) == plain(document)
    assert document["experiment"] == "tokenizers"
    assert document["off_topic_learnt"] == 0
    assert [part["system"] for part in document["systems"]] == ["words", "phones2", "mixed"]
    assert heard.chart().to_dict()["title"]
    assert "Lowest curve" in heard._repr_html_()


def test_sentences_say_what_was_trained_and_tested_and_that_the_noise_flatters(heard, guide):
    told = of_experiment(heard).sentences
    assert told[0].startswith("Lowest curve: ")
    learnt = f"Each of the 3 models learnt from {guide.train.height:,} questions to 47 answers; tested on"
    assert told[1].startswith(f"{learnt} {guide.test.height} other questions, {guide.out_of_scope} of them without")
    assert f"an answer, through a simulated recogniser with {percent(heard.wer)} word errors." in told[1]
    assert told[-1] == FLATTERS
    assert not any("phones2 and mixed" in sentence for sentence in told[2:])


def test_clean_questions_bring_no_caution_about_noise(grown, gated):
    for experiment in (grown, gated):
        assert FLATTERS not in of_experiment(experiment).sentences
    assert MADE_BY_RULE in of_experiment(grown).notes
    assert "tokens: words" in of_experiment(gated).notes


def test_of_more_than_four_systems_the_first_and_the_best_are_drawn_with_their_bands(grown, heard):
    assert len(of_experiment(grown).figures) == 3 + len(grown.comparison.pairs)
    assert len(of_experiment(heard).figures) == 1 + len(heard.comparison.pairs)
    drawn = json.dumps(of_experiment(grown).figure("error_return")().to_dict())
    assert "95 % band" in drawn


def test_the_table_has_columns_for_noise_and_scope_only_where_there_are_any(heard, grown, gated):
    ends = [of_experiment(one).tables[0].columns[-2:] for one in (heard, grown, gated)]
    assert ends[0] == ("right, as heard", "AUROC of scope")
    assert ends[1] == ("right, as asked", "right, new domains")
    assert ends[2] == ("right, as asked", "AUROC of scope")


def test_copies_of_training_questions_among_the_tested_ones_are_counted():
    material = small()
    again = pl.DataFrame({"id": ["4"], "input": ["when do you open"], "target": ["hours"]})
    both = QuestionSet("small", material.train, pl.concat([material.test, again]))
    found = tokenizer_experiment(both, tokens=("words", "words+phones1"), **QUICK)
    assert "1 test question is also in training, word for word" in of_experiment(found).notes


REFUSED = {
    "one": (
        lambda guide: tokenizer_experiment(guide, tokens=("words",)),
        "two or more tokenizers, each once; got words",
    ),
    "twice": (lambda guide: tokenizer_experiment(guide, tokens=("words", "words")), "each once; got words, words"),
    "unknown": (lambda guide: tokenizer_experiment(guide, tokens=("words", "letters")), '"letters" has "letters"'),
    "no domain": (lambda guide: growth_experiment(guide, {}), "needs at least one text of another domain"),
    "no sentence": (lambda guide: growth_experiment(guide, {"x": "Ah. Oh!"}), 'no question could be made .* "x"'),
}


@pytest.mark.parametrize(("run", "said"), REFUSED.values(), ids=REFUSED)
def test_wrong_use_is_refused(guide, run, said):
    with pytest.raises(UsageError, match=said):
        run(guide)
