import itertools
from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from demur.study.design import parse_design
from demur.study.messages import (
    Available,
    Begin,
    Consent,
    EndTalk,
    Finish,
    Pause,
    Questionnaire,
    Reply,
    Say,
    TaskReport,
    Train,
    TrainAgain,
    Withdraw,
)
from demur.study.pairing import latin_square, plan_for, replacement
from demur.study.protocol import Connect, Heard, Join, Protocol, Refused, Started, SystemReply, Tick
from demur.study.state import StudyState
from demur.study.views import audience, participant_view, wizard_view
from study.designs import SMALL, small

ID = "abcdefgh"


class Play:
    """A protocol driven by hand, with all its events."""

    def __init__(self, design=None):
        self.design = design or small()
        self.protocol = Protocol(self.design)
        self.state = self.protocol.state
        self.events, self.now = [], 1000.0

    def send(self, command, person="", after=0.0):
        self.now += after
        events = self.protocol.decide(command, person, self.now)
        self.events += events
        return [event.kind for event in events]

    def participant(self):
        self.send(Join(f"t{len(self.state.participants)}"))
        person = list(self.state.participants)[-1]
        self.send(Connect(True), person)
        self.send(Consent(id=ID, agree=True), person)
        return person

    def wizard(self, name="anna"):
        self.send(Connect(True, "wizard"), name)
        self.send(Available(id=ID, on=True), name)

    def until(self, person, performer):
        """Go through dialogues until the next one is with this performer."""
        one = self.state.participants[person]
        while one.plan[one.position][0] != performer:
            self.send(Begin(id=ID), person)
            self.send(Tick(), after=self.design.pairing.wait + 1)
            if one.stage == "talking":
                if self.state.talks[one.dialogue].performer == performer:
                    return self.state.talks[one.dialogue]
                self.send(Finish(id=ID), person)
                self.send(TaskReport(id=ID, answer="?", answers={"easy": 3}), person)
        self.send(Begin(id=ID), person)
        self.send(Tick(), after=self.design.interface.connect)
        return self.state.talks[one.dialogue]

    def hear(self, talk, text="open"):
        turn = len(talk.exchanges)
        return self.send(Heard(talk.id, turn, {"text": text, "nbest": [{"text": text}]}, {"errors": 0, "words": 1}))


def reply(talk, **more):
    one = talk.exchanges[-1]
    return Reply(id=ID, dialogue=talk.id, turn=one.number, given=one.digest, **({"response": "hours"} | more))


def test_a_wizards_dialogue_from_consent_to_report():
    play = Play()
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    assert (talk.state, talk.wizard) == ("talking", "anna")
    assert play.send(Say(id=ID, text=" when  open "), person) == ["said"]
    assert wizard_view(play.state, "anna").get("open") is None, "nothing is seen before the channel"
    assert play.hear(talk, "hope and") == ["heard", "passed"]
    seen = wizard_view(play.state, "anna")
    assert seen["open"]["heard"]["text"] == "hope and"
    assert "when open" not in str(seen)
    assert play.send(reply(talk), "anna", after=1) == ["answered"]
    assert participant_view(play.state, person)["waiting"], "the answer is held back until the delay is over"
    assert play.protocol.deadline() == talk.exchanges[0].said + 4
    assert play.send(Tick(), after=3) == ["shown"]
    assert participant_view(play.state, person)["lines"][-1] == {"who": "guide", "text": "We open at 10 am."}
    assert play.send(Finish(id=ID), person) == ["ended"]
    play.send(TaskReport(id=ID, answer="10 A.M.", answers={"easy": 5}), person)
    assert play.events[-1].body["value"] == float(talk.task == "hours")
    assert StudyState.replay(play.design, play.events).__dict__.keys() == play.state.__dict__.keys()


def test_a_system_is_shown_at_the_same_time_as_a_wizard():
    play = Play()
    person = play.participant()
    talk = play.until(person, "guide")
    play.send(Say(id=ID, text="when open"), person)
    play.hear(talk)
    given = talk.exchanges[0].digest
    assert play.send(SystemReply(talk.id, 1, "guide", given, None), after=0.1) == ["answered"]
    assert play.send(Tick(), after=3) == []
    assert play.send(Tick(), after=0.9) == ["shown"]
    assert participant_view(play.state, person)["lines"][-1]["text"] == play.design.interface.no_answer


def test_latency_can_match_that_of_wizards():
    play = Play(small(latency='"matched"', turns="9"))
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    for _ in range(5):
        play.send(Say(id=ID, text="open"), person)
        play.hear(talk)
        assert play.send(reply(talk), "anna", after=7.5) == ["answered", "shown"]
    play.send(Finish(id=ID), person)
    play.send(TaskReport(id=ID, answers={"easy": 1}), person)
    play.send(Available(id=ID, on=False), "anna")
    other = play.until(person, "guide")
    play.send(Say(id=ID, text="open"), person)
    play.hear(other)
    play.send(SystemReply(other.id, 1, "guide", other.exchanges[0].digest, "Yes."))
    assert other.exchanges[0].due == pytest.approx(other.exchanges[0].said + 7.5)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"response": None, "text": "Buy now!"}, "free text"),
        ({"response": "nothing"}, "unknown response"),
        ({"response": "confirm", "slots": {"topic": "weather"}}, "unknown response"),
        ({"given": "0" * 32}, "another input"),
        ({"turn": 2}, "out of turn"),
        ({"dialogue": "d99999"}, "not their dialogue"),
    ],
)
def test_wizards_say_only_what_the_system_could_say(changes, rule):
    play = Play()
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    play.send(Say(id=ID, text="open"), person)
    play.hear(talk)
    one = talk.exchanges[-1]
    fields = {"dialogue": talk.id, "turn": 1, "given": one.digest, "response": "hours"} | changes
    with pytest.raises(Refused) as caught:
        play.send(Reply(id=ID, **fields), "anna")
    assert caught.value.rule == rule
    assert one.text is None


def test_systems_keep_people_waiting_as_long_as_wizards_do():
    play = Play()
    person = play.participant()
    play.state.participants[person].plan.sort()  # a system first
    play.state.wizard_waits[:] = [11.0] * 5
    play.send(Begin(id=ID), person)
    assert play.send(Tick(), after=10) == []
    assert play.send(Tick(), after=1) == ["paired"]


def test_wizards_who_still_change_train_another_round():
    text = SMALL.replace('names = ["anna", "ben"]', 'names = ["anna"]\nrounds = 1')
    play = Play(parse_design(f'{text}\n[[training]]\nheard = "hope and"\nbest = "hours"\n'))
    play.send(Connect(True, "wizard"), "anna")
    with pytest.raises(Refused, match="Another round"):
        play.send(TrainAgain(id=ID), "anna")
    play.send(Train(id=ID, item=0, response="confirm", seconds=1.0), "anna")
    assert play.send(TrainAgain(id=ID), "anna") == ["trained_again"]
    with pytest.raises(Refused, match="finish the training"):
        play.send(Available(id=ID, on=True), "anna")
    play.send(Train(id=ID, item=0, response="hours", seconds=1.0), "anna")
    assert [one["changed"] for one in wizard_view(play.state, "anna")["training"]["shown"]] == [None, 1.0]


def test_a_wizard_who_only_understands_picks_what_the_system_can_carry_out():
    text = SMALL.replace('kind = "wizard"', 'kind = "wizard"\ncomponent = "understanding"\nsystem = "guide"', 1)
    play = Play(parse_design(text))
    play.protocol.labels = {"guide": {"price": "It is free."}}
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    play.send(Say(id=ID, text="how much"), person)
    play.hear(talk)
    with pytest.raises(Refused, match="cannot carry this out"):
        play.send(reply(talk, response="hours"), "anna")
    assert play.send(reply(talk, response="price"), "anna") == ["understood"]
    (work,) = play.protocol.unfinished()
    assert (work.work, work.system) == ("complete", "guide")
    play.send(SystemReply(talk.id, 1, "guide", talk.exchanges[0].digest, "It is free.", "price"), after=4)
    assert participant_view(play.state, person)["lines"][-1]["text"] == "It is free."


def test_a_late_wizard_is_noted():
    play = Play()
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    play.send(Say(id=ID, text="open"), person)
    play.hear(talk)
    assert play.send(reply(talk), "anna", after=6) == ["violated", "answered", "shown"]
    late = next(event for event in play.events if event.kind == "violated")
    assert late.body == {"rule": "late", "turn": 1, "seconds": 2.0}


def test_without_a_wizard_a_system_takes_the_place_and_no_condition_comes_twice():
    play = Play()
    person = play.participant()
    one = play.state.participants[person]
    seen = []
    while one.stage == "briefing":
        play.send(Begin(id=ID), person)
        play.send(Tick(), after=2)
        play.send(Tick(), after=40)
        talk = play.state.talks[one.dialogue] if one.dialogue else None
        if talk is not None:
            seen.append((talk.performer, talk.level))
            play.send(Finish(id=ID), person)
            play.send(TaskReport(id=ID, answers={"easy": 3}), person)
    assert sorted(seen) == [("guide", 0.0), ("guide", 0.4)]
    assert [talk.why for talk in play.state.talks.values()].count("no wizard") == 2
    assert one.stage == "after"


@pytest.mark.parametrize(("who", "why"), [("anna", "wizard left"), ("p0001", "participant left")])
def test_a_dialogue_ends_when_somebody_stays_away(who, why):
    play = Play()
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    play.send(Connect(False), who)
    assert play.send(Tick(), after=19) == []
    play.send(Connect(True), who)
    assert play.send(Tick(), after=19) == []
    play.send(Connect(False), who)
    assert play.send(Tick(), after=20) == ["ended"]
    assert talk.why == why
    assert play.state.participants[person].stage == "report"
    assert play.state.wizards["anna"].dialogue == ""


def test_a_restart_gives_everybody_the_whole_time_again_and_clocks_may_jump():
    play = Play()
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    state = StudyState.replay(play.design, play.events)
    restarted = Protocol(play.design, state)
    later = play.now + 1e6
    assert [event.kind for event in restarted.decide(Started({}), "", later)] == ["started", "ended"]
    assert state.talks[talk.id].why == "minutes"
    state = StudyState.replay(play.design, play.events)
    restarted = Protocol(play.design, state)
    restarted.decide(Started({}), "", play.now - 500)
    assert state.last == play.now, "a clock that was set back does not count"
    assert [event.kind for event in restarted.decide(Tick(), "", play.now + 19)] == []
    assert [event.kind for event in restarted.decide(Tick(), "", play.now + 20)] == ["ended"]


def test_a_cut_of_half_a_minute_ends_no_dialogue():
    play = Play(small(away="60.0"))
    person = play.participant()
    play.wizard()
    talk = play.until(person, "wizard")
    play.send(Say(id=ID, text="open"), person)
    for who, role in ((person, "participant"), ("anna", "wizard")):
        play.send(Connect(False, role), who)
    play.hear(talk)
    assert play.send(Tick(), after=30) == []
    for who, role in ((person, "participant"), ("anna", "wizard")):
        play.send(Connect(True, role), who)
    assert "answered" in play.send(reply(talk), "anna")
    assert (talk.state, participant_view(play.state, person)["stage"]) == ("talking", "talking")


def test_whoever_withdraws_is_gone():
    play = Play()
    person = play.participant()
    talk = play.until(person, "guide")
    assert play.send(Withdraw(id=ID), person) == ["withdrew", "ended"]
    assert (play.state.participants[person].stage, talk.why) == ("withdrawn", "withdrew")
    with pytest.raises(Refused):
        play.send(Say(id=ID, text="hello"), person)


def test_an_experimenter_pauses_and_ends():
    play = Play()
    person = play.participant()
    talk = play.until(person, "guide")
    play.send(Pause(id=ID, on=True))
    with pytest.raises(Refused, match="no new participants"):
        play.send(Join("x"))
    play.send(EndTalk(id=ID, dialogue=talk.id))
    assert talk.why == "experimenter"


@given(st.integers(2, 9))
def test_in_a_latin_square_each_is_once_in_every_place_and_follows_each_equally_often(n):
    rows = latin_square(n)
    times = len(rows) // n
    for place in range(n):
        assert Counter(row[place] for row in rows) == dict.fromkeys(range(n), times)
    pairs = Counter(pair for row in rows for pair in itertools.pairwise(row))
    assert set(pairs.values()) == {times}
    assert len(pairs) == n * (n - 1)


@pytest.mark.parametrize("order", ['"latin square"', '"balanced"'])
def test_plans_are_balanced_and_never_repeat_a_condition(order):
    design = small(wait=f"30.0\norder = {order}\ndialogues = 3")
    met: Counter[tuple[str, float]] = Counter()
    for number in range(8):
        plan = plan_for(design, number, met)
        conditions = [one[:2] for one in plan]
        assert len(set(conditions)) == 3
        met.update(conditions)
    assert set(met.values()) == {6}


def test_a_replacement_swaps_with_a_later_dialogue():
    design = small()
    plan = [("wizard", 0.4, "a"), ("wizard", 0.0, "b"), ("guide", 0.0, "c"), ("guide", 0.4, "d")]
    assert replacement(design, plan, 0)[:3] == [("guide", 0.0, "a"), ("wizard", 0.0, "b"), ("wizard", 0.4, "c")]
    assert replacement(design, plan[:2], 0)[0] == ("guide", 0.4, "a")
    assert replacement(design, [plan[2], plan[3], plan[0]], 2) is None


PEOPLE = ("p0001", "p0002", "p0003")
WIZARDS = ("anna", "ben")


def commands(play):
    """Everything that anybody could send now, sensible or not."""
    talks = list(play.state.live.values())
    for person in PEOPLE:
        yield Consent(id=ID, agree=True), person
        yield Questionnaire(id=ID, stage="after", answers={}), person
        yield Begin(id=ID), person
        yield Say(id=ID, text="when do you open"), person
        yield Finish(id=ID), person
        yield TaskReport(id=ID, answer="10 am", answers={"easy": 4}), person
        if person in play.state.participants:
            yield Connect(True), person
            yield Connect(False), person
    yield Join(f"token {len(play.state.participants)}"), ""
    yield Withdraw(id=ID), PEOPLE[2]
    for name in WIZARDS:
        yield Connect(True, "wizard"), name
        yield Connect(False, "wizard"), name
        yield Available(id=ID, on=True), name
        for talk in talks:
            if talk.exchanges:
                yield reply(talk), name
    for talk in talks:
        turn = len(talk.exchanges)
        if turn:
            yield Heard(talk.id, turn, {"text": "x", "nbest": [{"text": "x"}]}, {}), ""
            yield SystemReply(talk.id, turn, "guide", talk.exchanges[-1].digest, "Yes."), ""
    yield Tick(), ""
    yield Started({}), ""


@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # to shrink a failing talk takes minutes
@given(st.data())
def test_whatever_is_sent_the_protocol_keeps_its_promises(data):
    play = Play()
    for _ in range(data.draw(st.integers(20, 120))):
        choices = list(commands(play))
        command, person = choices[data.draw(st.integers(0, len(choices) - 1))]
        before, pages = len(play.events), views_of(play)
        try:
            play.send(command, person, after=data.draw(st.sampled_from([0.0, 0.5, 3.0, 40.0])))
        except Refused:
            assert len(play.events) == before
        else:
            check_time(play)
            seeing = audience(play.state, play.events[before:])
            after = views_of(play)
            assert {key for key in pages if pages[key] != after[key]} <= seeing.keys(), "whose view changes is shown it"
        check_promises(play)
    replayed = StudyState.replay(play.design, play.events)
    for name in (
        "participants",
        "wizards",
        "talks",
        "live",
        "by_token",
        "met",
        "wizard_seconds",
        "wizard_waits",
        "highest",
    ):
        assert getattr(replayed, name) == getattr(play.state, name), "the journal is the whole state"


def views_of(play):
    """What every page shows."""
    people = {("participant", name): participant_view(play.state, name) for name in play.state.participants}
    return people | {("wizard", name): wizard_view(play.state, name) for name in play.state.wizards}


def check_time(play):
    """Against looking at every dialogue: nothing is left that is due, and the next deadline is the earliest of all."""
    protocol, live = play.protocol, play.state.live.values()
    assert not [event for talk in live for event in protocol._due_in(talk, play.now)]
    earliest = min((time for talk in live for time in protocol._times(talk, play.now)), default=None)
    assert protocol.deadline() == earliest
    assert earliest is None or earliest > play.now


def check_promises(play):
    state = play.state
    busy = Counter(talk.wizard for talk in state.live.values() if talk.wizard)
    assert all(count == 1 for count in busy.values()), "a wizard has one dialogue at a time"
    for person in state.participants:
        talks = [talk for talk in state.talks.values() if talk.participant == person and talk.why != "no wizard"]
        met = Counter((talk.performer, talk.level) for talk in talks)
        assert all(count == 1 for count in met.values()), "nobody meets a condition twice"
        shown = str(participant_view(state, person))
        assert not any(word in shown for word in ("wizard", "anna", "ben'", "0.4", "nbest", "'x'")), "the curtain"
    for talk in state.talks.values():
        for one in talk.exchanges:
            if one.shown is not None:
                assert one.said <= one.heard_at <= one.answered <= one.shown
                assert one.shown >= one.due
    assert [event.at for event in play.events] == sorted(event.at for event in play.events)
