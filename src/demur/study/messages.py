"""What pages may send, by role: each message is read into its type, and anything else is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

ClientId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{8,64}$")]
Typed = Annotated[str, Meta(max_length=4000)]
Key = Annotated[str, Meta(max_length=60)]
Replies = Annotated[dict[Key, Typed | float], Meta(max_length=200)]


class PageMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """A message from a page; the id is made by the page, so that what is sent again is not taken twice."""

    id: ClientId


class Consent(PageMessage, tag="consent", frozen=True, kw_only=True):
    """The participant agrees to take part, or does not."""

    agree: bool


class Questionnaire(PageMessage, tag="questionnaire", frozen=True, kw_only=True):
    """Answers to the questionnaire before or after all dialogues."""

    stage: Literal["before", "after"]
    answers: Replies


class Begin(PageMessage, tag="begin", frozen=True, kw_only=True):
    """The participant has read the task."""


class Say(PageMessage, tag="say", frozen=True, kw_only=True):
    """An utterance by keyboard."""

    text: Typed


class Finish(PageMessage, tag="finish", frozen=True, kw_only=True):
    """The participant ends the dialogue."""


class TaskReport(PageMessage, tag="report", frozen=True, kw_only=True):
    """What came of the task, and answers to the questionnaire after the dialogue."""

    answer: Typed = ""
    completed: bool | None = None
    answers: Replies = {}


class Withdraw(PageMessage, tag="withdraw", frozen=True, kw_only=True):
    """The participant leaves the study, whose data are then not exported."""


class Reply(PageMessage, tag="reply", frozen=True, kw_only=True):
    """A wizard's answer: a response with its slots, or free text."""

    dialogue: Key
    turn: int
    given: Key
    """The digest that came with the input that the wizard looks at."""
    response: Key | None = None
    slots: Annotated[dict[Key, Typed], Meta(max_length=20)] = {}
    text: Typed | None = None


class Click(PageMessage, tag="click", frozen=True, kw_only=True):
    """What a wizard does on the way to an answer."""

    what: Literal["search", "choose", "slot", "key", "clear", "hypothesis"]
    value: Annotated[str, Meta(max_length=200)] = ""


class Train(PageMessage, tag="train", frozen=True, kw_only=True):
    """A wizard's answer to an item of training."""

    item: int
    response: Key
    seconds: Annotated[float, Meta(ge=0, le=86_400)]


class TrainAgain(PageMessage, tag="train again", frozen=True, kw_only=True):
    """A wizard asks for another round of training."""


class Available(PageMessage, tag="available", frozen=True, kw_only=True):
    """A wizard takes dialogues, or does not."""

    on: bool


class Pause(PageMessage, tag="pause", frozen=True, kw_only=True):
    """The experimenter lets new participants in, or does not."""

    on: bool


class EndTalk(PageMessage, tag="end", frozen=True, kw_only=True):
    """The experimenter ends a dialogue."""

    dialogue: Key


ParticipantMessage = Consent | Questionnaire | Begin | Say | Finish | TaskReport | Withdraw
WizardMessage = Reply | Click | Train | TrainAgain | Available
ExperimenterMessage = Pause | EndTalk
MESSAGES: dict[str, Any] = {
    "participant": ParticipantMessage,
    "wizard": WizardMessage,
    "experimenter": ExperimenterMessage,
}
"""What each role may send."""
