"""What each role sees of a study: built only from what is listed here, so that it does not give the condition away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from demur.study.design import QuestionSpec, WozDesign
from demur.study.protocol import is_trained, rounds_of, trained_for, training_item
from demur.study.state import ENDED, StudyEvent, StudyState, Talk, WizardPerson

UNSEEN: Mapping[str, frozenset[str]] = {
    "participant": frozenset(("heard", "passed", "understood", "answered", "shadowed", "clicked", "violated")),
    "wizard": frozenset(("said", "passed", "shadowed", "shown", "clicked", "violated")),
}
"""Events after which the page of a role shows what it showed before."""


def audience(state: StudyState, events: Iterable[StudyEvent]) -> dict[tuple[str, str], None]:
    """Whose pages may show something else after events: roles and names, each once."""
    found: dict[tuple[str, str], None] = {}
    for event in events:
        if event.kind == "started":  # nobody is connected then
            found |= {("participant", name): None for name in state.participants}
            found |= {("wizard", name): None for name in state.wizards}
        wizard, participant = state.wizards.get(event.person), state.participants.get(event.person)
        one = participant or wizard
        talk = state.talks.get(event.dialogue or (one.dialogue if one is not None else ""))
        names = {
            "participant": (participant and participant.id, talk and talk.participant),
            "wizard": (wizard and wizard.name, talk and talk.wizard),
        }
        for role, people in names.items():
            if event.kind not in UNSEEN[role]:
                found |= {(role, name): None for name in people if name}
    return found


def participant_view(state: StudyState, person: str, code: Callable[[str], str] = str) -> dict[str, Any]:
    """All that a participant's page shows; it changes with what they do and with what is shown to them, only.

    `code` gives the completion code of a participant.
    """
    design, one = state.design, state.participants[person]
    view: dict[str, Any] = {"stage": one.stage}
    if one.stage in ("briefing", "waiting", "talking", "report"):
        view["progress"] = {"number": min(one.position + 1, len(one.plan)), "of": len(one.plan)}
    if one.stage == "consent":
        view["consent"] = unwrapped(design.consent)
    elif one.stage in ("before", "after"):
        view["questions"] = [question_view(item) for item in design.questions(one.stage)]
    elif one.stage == "briefing":
        view["goal"] = design.task(one.plan[one.position][2]).goal
    elif one.stage == "done":
        view |= {"thanks": unwrapped(design.thanks), "code": code(person)}
    talk = state.talk_of(person)
    if talk is not None and one.stage in ("waiting", "talking", "report"):
        view |= _talk_view(state, talk, one.stage)
    return view


def unwrapped(text: str) -> str:
    """A longer text of the design with one line for each paragraph, however it is wrapped there.

    >>> unwrapped("Wrapped in\\nthe file.\\n\\nAnother.\\n")
    'Wrapped in the file.\\n\\nAnother.'
    """
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))


def _talk_view(state: StudyState, talk: Talk, stage: str) -> dict[str, Any]:
    design = state.design
    task = design.task(talk.task)
    view: dict[str, Any] = {"goal": task.goal}
    if stage == "talking":
        lines = [{"who": "guide", "text": design.interface.opening}] if design.interface.opening else []
        for one in talk.exchanges:
            lines.append({"who": "you", "text": one.typed})
            if one.shown is not None:
                lines.append({"who": "guide", "text": one.text or ""})
        left = design.interface.turns - len(talk.exchanges)
        view |= {"lines": lines, "waiting": talk.open_exchange is not None, "left": left}
    if stage == "report":
        view["questions"] = [question_view(item) for item in design.dialogue]
        view["ended"] = talk.why if talk.why in ("finished", "turns", "minutes") else "ended"
        if design.metric.source == "said":
            view["asked"] = {"kind": "said", "text": "Did you achieve the goal?"}
        elif design.metric.source == "answer":
            text = task.question or "What did you find out?"
            view["asked"] = {"kind": "choice" if task.choices else "text", "text": text, "choices": task.choices}
    return view


def question_view(item: QuestionSpec) -> dict[str, Any]:
    """An item of a questionnaire as pages show it."""
    return {
        "id": item.id,
        "text": item.text,
        "kind": item.kind,
        "low": item.low,
        "high": item.high,
        "labels": item.labels,
        "required": item.required,
    }


def wizard_constants(design: WozDesign, labels: dict[str, dict[str, str]]) -> dict[str, Any]:
    """What a wizard's page knows from the beginning; `labels` are what systems can carry out, with their texts."""
    return {
        "title": design.title,
        "instructions": unwrapped(design.wizard.instructions),
        "free_text": design.wizard.free_text,
        "longest": design.interface.longest,
        "responses": [
            {"id": one.id, "text": one.text, "key": one.key, "group": one.group, "slots": one.slots}
            for one in design.responses
        ],
        "slots": design.slots,
        "labels": labels,
        "delay": design.interface.delay if design.interface.latency == "fixed" else None,
        "confidences": design.input.confidences,
    }


def wizard_view(state: StudyState, name: str) -> dict[str, Any]:
    """All that a wizard sees: what the system would see, and never the words that were typed, the level or the goal."""
    wizard, design = state.wizards[name], state.design
    view: dict[str, Any] = {"stage": "ready", "available": wizard.available, "dialogues": wizard.dialogues}
    item = training_item(design, wizard)
    if item is not None or wizard.trained:
        view["training"] = training_view(design, wizard)
    if item is not None:
        one = design.training[item]
        nbest = [{"text": text} for text in (one.nbest or [one.heard])]
        view |= {"stage": "training", "item": item, "heard": {"text": one.heard, "nbest": nbest}}
        view["system"] = trained_for(design)
    talk = state.live.get(wizard.dialogue)
    if talk is not None:
        spec = design.performer(talk.performer)
        view |= {"stage": "talking", "dialogue": talk.id, "lines": _heard_lines(state, talk)}
        view["system"] = spec.system if spec.component == "understanding" else ""
        view["away"] = not state.participants[talk.participant].connected
        one_open = talk.open_exchange
        if one_open is not None and one_open.heard is not None and one_open.text is one_open.understood is None:
            asked = {"turn": one_open.number, "given": one_open.digest, "heard": one_open.heard}
            view["open"] = {**asked, "said": one_open.said}
    return view


def _heard_lines(state: StudyState, talk: Talk) -> list[dict[str, Any]]:
    opening = state.design.interface.opening
    lines: list[dict[str, Any]] = [{"who": "guide", "text": opening}] if opening else []
    for one in talk.exchanges:
        if one.heard is not None:
            lines.append({"who": "user", "text": one.heard["text"]})
        if one.text is not None:
            lines.append({"who": "guide", "text": one.text})
    return lines


def training_view(design: WozDesign, wizard: WizardPerson) -> dict[str, Any]:
    """How far a wizard's training is, and whether answers still change from round to round."""
    items = len(design.training)
    rounds = [wizard.trained[start : start + items] for start in range(0, len(wizard.trained), items)] if items else []
    shown = []
    before: dict[int, str] = {}
    for answers in rounds:
        chosen = {one["item"]: one["choice"] for one in answers}
        whole = len(answers) == items
        changed = sum(before[item] != choice for item, choice in chosen.items()) if before and whole else None
        right = sum(choice == design.training[item].best for item, choice in chosen.items())
        shown.append(
            {
                "answers": len(answers),
                "changed": None if changed is None else changed / items,
                "right": right / len(answers),
                "seconds": round(median(one["seconds"] for one in answers), 1),
            }
        )
        before = chosen
    last = shown[-1]["changed"] if shown else None
    settled = last is not None and last <= design.wizard.settled
    return {
        "items": items,
        "done": len(wizard.trained),
        "of": items * rounds_of(design, wizard),
        "shown": shown,
        "settled": settled,
        "finished": is_trained(design, wizard),
    }


def experimenter_view(state: StudyState, violations: Counter[str], code: Callable[[str], str]) -> dict[str, Any]:
    """The state of the whole study, for the experimenter alone."""
    design = state.design
    people = [
        {
            "id": one.id,
            "stage": one.stage,
            "connected": one.connected,
            "dialogue": one.position + 1 if one.plan and one.stage not in ENDED else None,
            "of": len(one.plan),
            "code": code(one.id) if one.stage == "done" else "",
        }
        for one in state.participants.values()
    ]
    wizards = [
        {
            "name": one.name,
            "connected": one.connected,
            "available": one.available,
            "dialogue": one.dialogue,
            "dialogues": one.dialogues,
            "training": training_view(design, one) if design.wizard.rounds else None,
        }
        for one in state.wizards.values()
    ]
    ended = Counter((talk.performer, talk.level) for talk in state.talks.values() if talk.state == "ended")
    conditions = [
        {
            "performer": performer,
            "level": level,
            "opened": state.met[performer, level],
            "ended": ended[performer, level],
        }
        for performer, level in design.conditions
    ]
    live = [
        {
            "id": talk.id,
            "participant": talk.participant,
            "performer": talk.performer,
            "wizard": talk.wizard,
            "level": talk.level,
            "state": talk.state,
            "turns": len(talk.exchanges),
        }
        for talk in state.live.values()
    ]
    return {
        "paused": state.paused,
        "people": people,
        "wizards": wizards,
        "conditions": conditions,
        "live": live,
        "violations": dict(violations),
        "dialogues": sum(ended.values()),
    }
