import pytest

from demur.errors import DataError
from demur.study.design import parse_design, read_design
from demur.study.folder import new_folder
from study.designs import SMALL, small


def test_a_new_study_reads_back_and_says_its_name(tmp_path):
    design = new_folder(tmp_path / "mine", "mine")
    assert design.name == "mine"
    assert len(design.conditions) == 8
    assert read_design(tmp_path / "mine" / "study.toml").digest == design.digest
    with pytest.raises(Exception, match="is not empty; name a new folder"):
        new_folder(tmp_path / "mine")


def test_all_faults_are_told_at_once_with_their_lines():
    text = SMALL.replace("levels = [0.0, 0.4]", 'levels = [0.0, "x"]').replace("seed = 3", "sede = 3")
    text = text.replace('kind = "wizard"', 'kind = "wizzard"').replace("turns = 3", "turns = 0")
    with pytest.raises(DataError) as caught:
        parse_design(text)
    faults = [str(one) for one in caught.value.faults]
    lines = text.splitlines()
    assert len(faults) == 4
    assert any('sede is not known (did you mean "seed"?)' in one for one in faults)
    assert f"study.toml:{lines.index('turns = 0') + 1}: interface.turns" in "\n".join(faults)
    assert "performers[1].kind must be wizard or relevance or command or python or http" in "\n".join(faults)


def test_faults_of_fields_do_not_hide_those_of_rules():
    text = SMALL.replace("wait = 30.0", 'order = "random"').replace("turns = 3", "turns = 0")
    text = text.replace("[0.0, 0.4]", "[0.0, 1.8]").replace('["free"]', '["free"]\nchoices = ["12 euros", "none"]')
    with pytest.raises(DataError) as caught:
        parse_design(text)
    told = "\n".join(map(str, caught.value.faults))
    assert len(caught.value.faults) == 4
    assert "interface.turns must be a whole number of at least 1; got 0" in told
    for place in ("pairing.order", "input.levels", "tasks[2].answers"):
        assert f"{place} must" in told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("levels = [0.0, 0.4]", 'levels = ["x"]'),
        ('kind = "relevance"', 'kind = "relevant"'),
        ('name = "guide"', ""),
        ('id = "hours"', 'id = "two words"'),
        ('id = "easy"', "id = 3"),
        ('text = "Did you ask about {topic}?"', "text = 3"),
        ('names = ["anna", "ben"]', "names = 3"),
        ('topic = ["hours", "price"]', "topic = 3"),
        ("[input]", "[metric]\nname = 3\n[input]"),
    ],
)
def test_a_field_that_cannot_be_read_is_the_only_fault_it_makes(old, new):
    with pytest.raises(DataError) as caught:
        parse_design(SMALL.replace(old, new, 1))
    assert len(caught.value.faults or [caught.value]) == 1


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ('names = ["anna", "ben"]', "names = []", "a performer is a wizard"),
        ('pairs = "pairs.jsonl"', "", "kind is relevance"),
        ('id = "price"', 'id = "hours"', "is given twice"),
        ("{topic}", "{subject}", "has a slot without values: subject"),
        ('answers = ["free"]', "", "the metric compares answers"),
        ("levels = [0.0, 0.4]", "levels = [0.0, 3.0]", "must lie between 0 and 1"),
        ('kind = "relevance"', 'kind = "http"\naddress = "http://example.org/"', "must be http on this machine"),
        ("wait = 30.0", "dialogues = 5", "more than there are conditions"),
        ('text = "Anything?"\nkind = "text"', 'text = "Anything?"\nkind = "choice"', "two choices or more"),
        ('names = ["anna", "ben"]', 'names = ["anna", "ben"]\nrounds = 2', "there is no [[training]]"),
        ("nbest = 2", 'nbest = 2\nname = "subject"', "another column"),
        ('id = "easy"', 'id = "turns"', "another column"),
        ('id = "easy"', 'id = "completed"', "another column"),
        ('id = "easy"', 'id = "after_remarks"', "another column"),
        ("nbest = 2", 'by = "speech"\nrecogniser = ["r", "{wav}"]\nmeasured = "realised"', "needs typed input"),
    ],
)
def test_rules_that_no_field_shows(old, new, rule):
    assert old in SMALL
    with pytest.raises(DataError) as caught:
        parse_design(SMALL.replace(old, new, 1))
    assert rule in str(caught.value)


def test_slots_hold_only_what_is_listed():
    design = small()
    assert design.filled("confirm", {"topic": "price"}) == "Did you ask about price?"
    for slots in ({}, {"topic": "weather"}, {"topic": "price", "other": "x"}):
        assert design.filled("confirm", slots) is None
    assert design.filled("nothing", {}) is None
