from pathlib import Path

import polars as pl
import pytest

from demur.lab.corpora import domains, museum, restaurant, wizards


@pytest.fixture(scope="module")
def study():
    return restaurant()


def test_the_museum_has_a_question_for_every_answer():
    corpus = museum()
    assert set(corpus.questions["target"]) == set(corpus.answers["answer"])


def test_the_museum_has_enough_of_everything_and_nothing_twice():
    corpus = museum()
    assert corpus.answers.height >= 40
    assert corpus.questions["target"].value_counts()["count"].min() >= 12
    assert corpus.offtopic.height >= 100
    plain = pl.concat([corpus.questions["input"], corpus.offtopic["input"]]).str.to_lowercase()
    assert plain.str.replace_all(r"[^\w\s]", "").str.strip_chars().n_unique() == plain.len()
    assert pl.concat([corpus.questions["id"], corpus.offtopic["id"]]).is_unique().all()


def test_a_domain_is_a_text_of_some_sixty_sentences_that_all_end_in_a_full_stop():
    for text in domains().values():
        lines = [line for line in text.splitlines() if line]
        assert 60 <= len(lines) <= 70
        assert all(line.endswith(".") and line[0].isupper() for line in lines)
        assert len(set(lines)) == len(lines)


def test_the_trial_is_about_as_large_as_the_one_in_the_paper(study):
    assert study.dialogues.height == 650
    assert 5200 < study.turns.height < 6400


def test_managers_and_levels_share_the_dialogues_evenly(study):
    sizes = study.dialogues.group_by("manager", "noise").len()
    assert sizes.height == 6
    assert sizes["len"].max() - sizes["len"].min() <= 2


def test_every_turn_belongs_to_a_dialogue_and_has_its_own_id(study):
    assert study.turns["id"].is_unique().all()
    counted = study.turns.group_by("dialogue").len().sort("dialogue")["len"]
    assert counted.to_list() == study.dialogues.sort("dialogue")["turns"].to_list()


def test_every_turn_says_what_was_meant_said_and_heard(study):
    assert study.turns.columns == [
        *("id", "dialogue", "manager", "noise", "reference", "text", "hypotheses", "asr", "cnet"),
    ]
    assert study.turns.null_count().sum_horizontal().item() == 0
    assert study.turns["hypotheses"].list.len().is_between(1, 10).all()
    assert study.turns["asr"].list.len().is_between(1, 10).all()


def test_confidences_sum_to_at_most_one(study):
    confidences = study.turns.select(pl.col("hypotheses").list.eval(pl.element().struct.field("confidence")).list.sum())
    assert confidences.to_series().is_between(0.3, 1 + 1e-9).all()


def test_the_files_lie_together_and_are_small(study):
    names = {path.name for path in Path(study.folder).iterdir()}
    assert {"turns.jsonl.gz", "dialogues.jsonl", "grammar.toml"} <= names
    assert sum(path.stat().st_size for path in study.folder.iterdir()) < 2_600_000


def test_the_wizard_study_has_a_gold_standard_and_two_systems_over_the_whole_range():
    trials = wizards().trials
    assert trials.columns == ["performer", "role", "subject", "components", "wer", "completed", "order"]
    assert trials.group_by("performer", "role").len().sort("performer").rows() == [
        *(("A", "system", 480), ("B", "system", 480), ("wizards", "gold", 480)),
    ]
    assert trials["wer"].min() < 0.01
    assert trials["wer"].max() > 0.99


def test_the_lesion_study_switches_each_component_on_and_off():
    lesions = wizards().lesions.filter(role="system")
    assert lesions["components"].value_counts().sort("components").rows() == [
        *(("confirm", 320), ("confirm+spell", 320), ("none", 320), ("spell", 320)),
    ]
