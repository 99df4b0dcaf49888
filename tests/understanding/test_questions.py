import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.lab.corpora import domains, museum
from demur.understanding.questions import MOST, VERBS, WORDS, make_pairs, questions, sentences, table_of_pairs
from demur.understanding.tokens import words

PLAIN = st.lists(
    st.sampled_from(sorted(VERBS)[::9] + sorted(WORDS["determiners"] | WORDS["prepositions"] | WORDS["no_subject"]))
    | st.sampled_from(
        ("Bees", "bread", "is", "are", "called", "because", "in 1804", "two", ",", ".", "?", "Ada", "been")
    ),
    max_size=12,
).map(" ".join)


@pytest.mark.parametrize(
    ("sentence", "made"),
    [
        ("Rye is a grass.", {"what": "What is rye?"}),
        ("Drones are males.", {"what": "What are drones?"}),
        ("The crust is harder than the crumb.", {"what like": "What is the crust like?"}),
        ("Mount Fuji is 3,776 metres high.", {"how large": "How high is Mount Fuji?"}),
        ("A bee has four wings and six legs.", {"how many": "How many wings does a bee have?"}),
        ("A queen can lay 1,500 eggs in a day.", {"how many": "How many eggs can a queen lay in a day?"}),
        (
            "Strong flour contains about 13 per cent protein.",
            {"how much": "How much protein does strong flour contain?"},
        ),
        ("Dried yeast keeps for many months.", {"how long": "How long does dried yeast keep?"}),
        ("Tambora erupted in 1815.", {"when": "When did tambora erupt?"}),
        ("In 1825 the line was opened.", {"when": "When was the line opened?"}),
        ("Swarms fly in late spring.", {"when": "When do swarms fly?"}),
        ("Bumblebees live in small nests.", {"where": "Where do bumblebees live?"}),
        ("Honey is stored in cells of wax.", {"where": "Where is honey stored?"}),
        ("Dough rises because yeast fills it with gas.", {"why": "Why does dough rise?"}),
        ("The summer was cold because ash dimmed the sun.", {"why": "Why was the summer cold?"}),
        ("The rails are made of steel.", {"what": "What are the rails made of?"}),
        ("Bees smell with their antennae.", {"what": "What do bees smell with?"}),
        ("There are over 400 ships in the hall.", {"how many": "How many ships are there in the hall?"}),
        ("There is a lake in the crater.", {"what": "What is there in the crater?"}),
        ("Bees make honey from nectar.", {"which": "What makes honey from nectar?"}),
        ("The rails are made of steel.", {"which": "What is made of steel?"}),
        ("Visitors have given us many photographs.", {"which": "What has given us many photographs?"}),
        ("The town, which is old, lies on a hill.", {"where": "Where does the town lie?"}),
        ("During the war, ships carried coal.", {"what": "What did ships carry?"}),
        ("On Sundays the café closes at four.", {"which": "What closes at four on Sundays?"}),
        ("Glass is not a liquid.", {"whether": "Is glass a liquid?"}),
        ("Bees cannot see pure red.", {"whether": "Can bees see pure red?"}),
        ("Whales have been hunted.", {"which": "What has been hunted?"}),
    ],
)
def test_a_plain_sentence_gives_the_question_it_answers(sentence, made):
    assert {rule: question for rule, question in questions(sentence) if rule in made} == made


def test_a_sentence_answers_who_when_where_and_what():
    assert questions("Ada Lovelace showed a machine in London in 1843.") == [
        ("when", "When did Ada Lovelace show a machine in London?"),
        ("who", "Who showed a machine in London in 1843?"),
        ("where", "Where did Ada Lovelace show a machine?"),
        ("what", "What did Ada Lovelace show in 1843?"),
    ]


def test_a_name_is_asked_for_and_explained():
    assert questions("A person who keeps bees is called a beekeeper.") == [
        ("called", "What is a person who keeps bees called?"),
        ("what", "What is a beekeeper?"),
    ]
    assert questions("Molten rock is called lava.")[1] == ("what", "What is meant by lava?")


def test_who_did_what_was_done_is_asked_without_the_name():
    assert ("who", "Who was the clock made by?") in questions("The clock was made by John Harrison in 1761.")


def test_a_purpose_is_asked_for_but_not_a_direction():
    assert ("what for", "What does a baker wear an apron for?") in questions("A baker wears an apron to stay clean.")
    assert [rule for rule, _ in questions("Rivers carry mud to the sea.")] == ["what", "which"]


@pytest.mark.parametrize(
    "sentence",
    [
        "It is a grass.",
        "When rye is ripe it falls.",
        "Who is the queen?",
        "Bees never sleep.",
        "Snow!",
        "Mount",
        "",
    ],
)
def test_no_question_is_made_where_the_rules_do_not_reach(sentence):
    assert questions(sentence) == []


def test_a_noun_that_looks_like_a_verb_does_not_agree_with_what_is_before_it():
    assert questions("The waggle dance shows the way.")[0] == ("what", "What does the waggle dance show?")


def test_names_keep_their_capitals_where_the_text_shows_them():
    pairs = make_pairs("Etna lies in Sicily. Farmers live near Etna. Wheat is a grass.")
    assert [pair.question for pair in pairs if pair.rule != "which"] == [
        *("Where does Etna lie?", "Where do farmers live?", "What is wheat?"),
    ]


def test_abbreviations_and_initials_end_no_sentence():
    assert sentences("Dr. A. Lee bakes.  She said no. Mills turn\nslowly.\n\nA heading\n\nEnd") == [
        *("Dr. A. Lee bakes.", "She said no.", "Mills turn slowly.", "A heading", "End"),
    ]


def test_a_question_that_two_sentences_answer_belongs_to_the_first():
    pairs = make_pairs("Rye is a grass. Rye is a crop.")
    assert [(pair.question, pair.answer) for pair in pairs] == [("What is rye?", "Rye is a grass.")]


def test_every_pair_says_by_which_rule_it_was_made():
    assert {pair.rule for pair in make_pairs("Rye is a grass.")} == {"what"}


@example("A was in in 1804")
@given(st.text() | PLAIN)
def test_any_text_gives_the_same_few_questions_every_time(text):
    pairs = make_pairs(text)
    assert pairs == make_pairs(text)
    assert len({pair.question.lower() for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.question.endswith("?")
        assert pair.answer in sentences(text)
        assert f" {' '.join(words(pair.answer))} " not in f" {' '.join(words(pair.question))} "


@given(PLAIN)
def test_no_sentence_gives_more_than_four(sentence):
    assert len(questions(sentence)) <= MOST


@pytest.mark.parametrize("name", list(domains()))
def test_most_sentences_of_a_domain_give_a_question(name):
    every, asked = table_of_pairs({name: domains()[name]}).reached
    assert asked >= every - 1


def test_pairs_are_numbered_by_sentence_and_say_how_far_the_rules_reach():
    made = table_of_pairs({"rye": "Rye is a grass. It is grey. Mills grind rye."})
    assert made.table.select("input", "target").rows() == [
        *[("What is rye?", "rye 1"), ("What do mills grind?", "rye 3")],
    ]
    assert made.to_dict()["texts"] == [{"text": "rye", "sentences": 3, "asked": 2}]
    assert made.rules == {"what": 2}
    with pytest.raises(DataError, match="no rule makes a question of shout"):
        table_of_pairs({"shout": "Snow!"})


def test_no_question_of_a_domain_is_one_of_the_museums():
    asked = {" ".join(words(question)) for question in museum().questions["input"]}
    made = {" ".join(words(pair.question)) for text in domains().values() for pair in make_pairs(text)}
    assert not asked & made
