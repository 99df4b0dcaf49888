import re

import pytest

from demur.core.io.columns import ALIASES, DIALOGUE_ALIASES, NBEST_ALIASES, TRIAL_ALIASES, candidates, nearest, resolve
from demur.errors import DataError
from pages import read_page


def test_the_canonical_name_wins_over_an_alias():
    assert resolve(["gold", "target"], {}).columns == {"target": "target"}


def test_an_alias_is_used_and_noted():
    found = resolve(["gold", "score"], {})
    assert found.columns == {"target": "gold", "confidence": "score"}
    assert found.notes == ("target <- gold", "confidence <- score")


@pytest.mark.parametrize(("part", "alias"), [(part, alias) for part, names in ALIASES.items() for alias in names])
def test_every_alias_leads_to_its_part(part, alias):
    assert resolve([alias], {}).columns == {part: alias}


@pytest.mark.parametrize(
    ("title", "aliases"),
    [
        ("Answers", ALIASES),
        ("N-best lists", NBEST_ALIASES),
        ("Dialogues", DIALOGUE_ALIASES),
        ("Trials", TRIAL_ALIASES),
    ],
)
def test_the_page_on_tables_has_every_alias(title, aliases):
    table = read_page("tables").partition(f"## {title}\n")[2].partition("\n## ")[0]
    named = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    also = {part: set(re.findall(r"\w+", names.partition(" where ")[0])) for part, names in named.items()}
    spelled = {part: {name.replace(" ", "_") for name in names} for part, names in aliases.items() if names}
    assert {part: also.get(part) for part in spelled} == spelled


def test_two_aliases_of_one_part_are_refused_with_both_named():
    with pytest.raises(
        DataError,
        match=r'"gold", "expected" \(choose one, for example --map target=gold, or columns={"target": "gold"}\)',
    ):
        resolve(["gold", "expected"], {})


@pytest.mark.parametrize("weak", ["label", "intent"])
def test_a_label_or_an_intent_beside_a_better_name_is_not_the_target(weak):
    assert resolve(["expected_intent", weak], {}).columns == {"target": "expected_intent"}


def test_an_explicit_mapping_settles_an_ambiguity():
    assert resolve(["gold", "label"], {"target": "label"}).columns == {"target": "label"}


def test_an_explicit_mapping_wins_over_the_namesake_and_is_not_noted():
    found = resolve(["target", "mine"], {"target": "mine"})
    assert found.columns == {"target": "mine"}
    assert found.notes == ()


def test_a_column_mapped_to_one_part_is_no_candidate_for_another():
    assert resolve(["label", "gold"], {"prediction": "label"}).columns == {
        "prediction": "label",
        "target": "gold",
    }


def test_a_mapping_from_a_column_that_is_not_there_names_the_nearest():
    with pytest.raises(DataError, match=r'no column "golden" to map target from \(did you mean "gold"\?\)'):
        resolve(["gold", "id"], {"target": "golden"})


def test_a_mapping_of_an_unknown_part_names_the_nearest():
    with pytest.raises(DataError, match=r'"targit".*did you mean "target"'):
        resolve(["gold"], {"targit": "gold"})


def test_names_in_another_case_are_a_guess():
    found = resolve(["Target", "SCORE"], {})
    assert found.columns == {"target": "Target", "confidence": "SCORE"}
    assert "target <- Target" in found.notes


def test_ambiguity_of_a_part_that_is_not_wanted_does_not_matter():
    assert resolve(["text", "question"], {}, parts=("target",)).columns == {}


def test_the_place_is_part_of_the_fault():
    with pytest.raises(DataError, match=r"^run.csv: target may be"):
        resolve(["gold", "expected"], {}, where="run.csv:")


def test_candidates_are_all_spellings_until_one_is_there():
    assert candidates([], "system", {}) == ("system", "run", "model")
    assert candidates(["run"], "system", {}) == ("run",)
    assert candidates(["run", "system"], "system", {}) == ("system",)
    assert candidates(["run"], "system", {"system": "x"}) == ("x",)


def test_nearest_lists_what_there_is_when_nothing_is_like_it():
    assert nearest("zzz", ["id", "gold"]) == 'there are "id", "gold"'
    assert nearest("zzz", []) == ""
