"""Judging as it stands: who judges what in which order, what was said, what is open, and the judged log.

Everything follows from the plan that judging was begun with and from the events of the journal.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Literal, Self, get_args
from zlib import crc32

import msgspec
import numpy as np

from demur import __version__
from demur.core.links import role_token
from demur.errors import DataError, UsageError
from demur.judges.agreement import Ratings
from demur.judges.answers import AnswerLog
from demur.judges.journal import Event, Journal, KeptItem, KeptRow, Kind, RepeatedRequest
from demur.judges.labels import LabelSet
from demur.judges.sampling import Weights, draw, weigh

LEAD = "lead"
"""The role of who sees how far judging is and settles what judges disagree on; no judge is called so."""

LONGEST_NOTE = 2000
MOST_JUDGES = 50

State = Literal["agreed", "settled", "open", "pending"]
"""The judges of an item agree; the lead settled it; its judges disagree; it lacks judgements."""

STATES: tuple[State, ...] = get_args(State)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What judging was begun with."""

    digest: str
    files: tuple[str, ...]
    judges: tuple[str, ...]
    labels: LabelSet
    correct: str = "correct"
    sample: int | None = None
    overlap: float = 0.0
    seed: int = 0
    show: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    inputs: int = 0
    sizes: tuple[int, ...] = ()
    """Inputs in each stratum of confidence, drawn or not."""
    demur: str = __version__


@dataclass(frozen=True, slots=True)
class JudgeState:
    """What one judge sees next: an item, or none where all are done."""

    judge: str
    item: int | None
    shown: tuple[tuple[str, str | None], ...]
    done: int
    total: int
    last: str | None
    """The label that the judge gave last, which undoing takes back."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """An item that its judges disagree on: what they said, without names, and how it was settled."""

    item: int
    shown: tuple[tuple[str, str | None], ...]
    labels: tuple[tuple[str, int], ...]
    settled: str | None
    note: str


class NotYours(UsageError):
    """Something was judged that is not this judge's, or judged already."""


def begin(
    folder: Path,
    log: AnswerLog,
    labels: LabelSet,
    *,
    judges: Sequence[str],
    sample: int | None,
    overlap: float,
    seed: int,
    show: Sequence[str] = (),
) -> Judging:
    """Draw what is judged, deal it to judges, and keep both in a folder."""
    plan, items, rows = make_plan(log, labels, judges=judges, sample=sample, overlap=overlap, seed=seed, show=show)
    about = {"plan": msgspec.json.encode(plan).decode(), "secret": secrets.token_hex(32)}
    return Judging(Journal.begin(folder, about, items, rows))


def make_plan(
    log: AnswerLog,
    labels: LabelSet,
    *,
    judges: Sequence[str],
    sample: int | None,
    overlap: float,
    seed: int,
    show: Sequence[str] = (),
) -> tuple[Plan, list[KeptItem], list[KeptRow]]:
    """What would be judged by whom; equal answers to equal inputs are one item, whichever system gave them."""
    check_judges(judges)
    drawn = draw(log.score, log.known, sample, np.random.default_rng([seed, 0]))
    rows, texts = [], log.frame["shown"].to_list()
    still_open = log.frame["open"].to_list()
    kept = [place for place, one in enumerate(log.input.tolist()) if drawn.chosen[one]]
    different = sorted({texts[place] for place in kept if still_open[place]})
    order = np.random.default_rng([seed, 1]).permutation(len(different))
    item_of = {different[place]: number for number, place in enumerate(order.tolist(), 1)}
    for place in kept:
        input_, item = int(log.input[place]), item_of[texts[place]] if still_open[place] else None
        document = json.dumps(log.rows[place], ensure_ascii=False, default=str)
        rows.append(KeptRow(place, input_, int(drawn.stratum[input_]), item, document))
    shared = round(overlap * len(different)) if len(judges) > 1 else 0
    dealt = np.random.default_rng([seed, 3]).permutation(len(different)).tolist()  # no number tells who else judges it
    items = []
    for text, number in sorted(item_of.items(), key=lambda one: one[1]):
        turn = dealt[number - 1]
        own = judges if turn < shared else (judges[turn % len(judges)],)
        items.append(KeptItem(number, text, json.dumps(list(own))))
    plan = Plan(
        digest=log.digest,
        files=log.files,
        judges=tuple(judges),
        labels=labels,
        correct=log.correct,
        sample=sample,
        overlap=overlap if len(judges) > 1 else 0.0,
        seed=seed,
        show=tuple(show),
        systems=log.systems,
        inputs=log.inputs,
        sizes=tuple(map(int, drawn.sizes)),
    )
    return plan, items, rows


def check_judges(judges: Sequence[str]) -> None:
    """Refuse names of judges that are no names, or that two of them share."""
    if not 1 <= len(judges) <= MOST_JUDGES:
        raise UsageError(f"`judges` takes 1 to {MOST_JUDGES} names; got {len(judges)}")
    for place, name in enumerate(judges):
        if not name.strip() or len(name) > 60 or not name.isprintable():
            raise UsageError(f"`judges` takes names of 1 to 60 printable characters; got {name!r}")
        if name.casefold() == LEAD:
            raise UsageError(f'no judge is called "{name}": that is who settles what judges disagree on')
        if name.casefold() in {other.casefold() for other in judges[:place]}:
            raise UsageError(f'two judges are called "{name}"')


class Judging:
    """A judging under way; what is said is kept in the journal before it counts here."""

    def __init__(self, journal: Journal) -> None:
        """Read the plan and everything that happened."""
        self.journal = journal
        about = journal.about()
        try:
            self.plan = msgspec.json.decode(about["plan"], type=Plan)
            kept = journal.items()
            self.shown = {one.item: tuple(map(tuple, json.loads(one.shown))) for one in kept}
            self.judges_of = {one.item: tuple(json.loads(one.judges)) for one in kept}
        except (KeyError, msgspec.MsgspecError, json.JSONDecodeError, TypeError):
            raise DataError("does not hold together", where=str(journal.folder)) from None
        self._secret = about.get("secret", "")
        self._alone = RLock()
        self.given: dict[tuple[str, int], Event] = {}
        """The judgement that stands of each judge and item."""
        self.settled: dict[int, Event] = {}
        self._past: dict[str, list[Event]] = {name: [] for name in (*self.plan.judges, LEAD)}
        self._requests: set[str] = set()
        self.events = 0
        """How much has happened so far."""
        for event in journal.events():
            self._take(event)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The judging in a folder."""
        return cls(Journal(folder))

    def close(self) -> None:
        """Let go of the folder."""
        self.journal.close()

    def token(self, role: str) -> str:
        """What lets a judge, or the lead, in; the same whenever the folder is served."""
        return role_token(bytes.fromhex(self._secret), role)

    def _take(self, event: Event) -> None:
        past = self._past.setdefault(event.judge, [])
        self.events += 1
        if event.request:
            self._requests.add(event.request)
        if event.kind == "judge":
            self.given[event.judge, event.item] = event
            past.append(event)
        elif event.kind == "undo":
            self.given.pop((event.judge, event.item), None)
            past[:] = [one for one in past if one.item != event.item]
        elif event.kind == "adjudicate":
            self.settled[event.item] = event
            past[:] = [one for one in past if one.item != event.item]
            past.append(event)
        else:
            self.settled.pop(event.item, None)
            past[:] = [one for one in past if one.item != event.item]

    def _add(self, kind: Kind, judge: str, item: int, label: str | None, note: str, request: str | None) -> None:
        try:
            self._take(self.journal.add(kind, judge, item, label, note, request))
        except RepeatedRequest:
            return

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Keep everything as it is for a moment."""
        with self._alone:
            yield

    def order(self, judge: str) -> list[int]:
        """The items of a judge in an order of the judge's own, which the seed decides."""
        own = [item for item, judges in self.judges_of.items() if judge in judges]
        rng = np.random.default_rng([self.plan.seed, 2, crc32(judge.encode())])
        return [own[place] for place in rng.permutation(len(own)).tolist()]

    @cached_property
    def _orders(self) -> dict[str, list[int]]:
        return {judge: self.order(judge) for judge in self.plan.judges}

    def state_of(self, judge: str) -> JudgeState:
        """What a judge sees next, and how far the judge is."""
        with self._alone:
            own = self._orders[judge]
            left = [item for item in own if (judge, item) not in self.given]
            item = left[0] if left else None
            done, last = len(own) - len(left), self.last_label(judge)
            return JudgeState(judge, item, self.shown.get(item or 0, ()), done, len(own), last)

    def last_label(self, role: str) -> str | None:
        """The label that a judge, or the lead, gave last, which undoing takes back."""
        past = self._past[role]
        return past[-1].label if past else None

    def judge(self, judge: str, item: int, label: str, request: str | None = None) -> JudgeState:
        """Keep what a judge says of an item; the answer is what comes next."""
        with self._alone:
            if request is None or request not in self._requests:
                self._check_label(label)
                if judge not in self.judges_of.get(item, ()):
                    raise NotYours("this answer is not yours to judge")
                if (judge, item) in self.given:
                    said = self.given[judge, item].label
                    raise NotYours(f'you judged this answer already, as "{said}"; undo takes the last judgement back')
                self._add("judge", judge, item, label, "", request)
            return self.state_of(judge)

    def undo(self, judge: str, request: str | None = None) -> JudgeState:
        """Take the last judgement of a judge back; it stays in the journal."""
        with self._alone:
            if request is None or request not in self._requests:
                if not self._past[judge]:
                    raise NotYours("there is nothing to undo")
                self._add("undo", judge, self._past[judge][-1].item, None, "", request)
            return self.state_of(judge)

    def settle(self, item: int, label: str, note: str = "", request: str | None = None) -> None:
        """Keep how the lead settles an item that judges disagree on."""
        with self._alone:
            if request is not None and request in self._requests:
                return
            self._check_label(label)
            if self.state(item) not in ("open", "settled"):
                raise NotYours("its judges do not disagree on this answer")
            if len(note) > LONGEST_NOTE:
                raise UsageError(f"a note has at most {LONGEST_NOTE:,} characters")
            self._add("adjudicate", LEAD, item, label, note, request)

    def reopen(self, request: str | None = None) -> None:
        """Take back what the lead settled last."""
        with self._alone:
            if request is not None and request in self._requests:
                return
            if not self._past[LEAD]:
                raise NotYours("there is nothing to undo")
            self._add("reopen", LEAD, self._past[LEAD][-1].item, None, "", request)

    def _check_label(self, label: str) -> None:
        if self.plan.labels.label(label) is None:
            raise UsageError(f'there is no label "{label}"; there are {", ".join(self.plan.labels.names)}')

    def labels_of(self, item: int) -> list[str]:
        """The labels that judges gave an item."""
        found = (self.given.get((judge, item)) for judge in self.judges_of.get(item, ()))
        return [event.label or "" for event in found if event is not None]

    def state(self, item: int) -> State:
        """How far an item is."""
        if item in self.settled:
            return "settled"
        labels = self.labels_of(item)
        if item not in self.judges_of or len(labels) < len(self.judges_of[item]):
            return "pending"
        return "agreed" if len(set(labels)) == 1 else "open"

    def final(self, item: int) -> str | None:
        """The label that counts: the one that was settled on, or that all judges gave; None where there is none."""
        if item in self.settled:
            return self.settled[item].label
        return self.labels_of(item)[0] if self.state(item) == "agreed" else None

    def conflicts(self) -> list[Conflict]:
        """The items that judges disagree on, those still open first."""
        with self._alone:
            found = [item for item in self.shown if self.state(item) in ("open", "settled")]
            return [self._conflict(item) for item in sorted(found, key=lambda item: (item in self.settled, item))]

    def _conflict(self, item: int) -> Conflict:
        counts = Counter(self.labels_of(item))
        labels = tuple((name, counts[name]) for name in self.plan.labels.names if counts[name])
        settled = self.settled.get(item)
        return Conflict(
            item, self.shown[item], labels, settled.label if settled else None, settled.note if settled else ""
        )

    def ratings(self) -> Ratings:
        """What every judge said of every item, before anything was settled."""
        with self._alone:
            judges, names = self.plan.judges, self.plan.labels.names
            found = ([self.given.get((judge, item)) for judge in judges] for item in self.shown)
            rows = [[None if event is None else event.label for event in row] for row in found]
        return Ratings.of(rows, judges, names)

    def states(self) -> Counter[State]:
        """How many items are how far."""
        with self._alone:
            return Counter(self.state(item) for item in self.shown)

    def progress(self) -> list[tuple[str, int, int, Counter[str]]]:
        """Of each judge how many items are judged, of how many, and which labels were given how often."""
        with self._alone:
            return [
                (
                    judge,
                    state.done,
                    state.total,
                    Counter(e.label or "" for (name, _), e in self.given.items() if name == judge),
                )
                for judge, state in ((judge, self.state_of(judge)) for judge in self.plan.judges)
            ]

    def outcomes(self) -> Counter[str]:
        """How many items have each label in the end."""
        with self._alone:
            return Counter(label for item in self.shown if (label := self.final(item)) is not None)

    @cached_property
    def rows(self) -> list[KeptRow]:
        """The rows of the judged log, as they were read."""
        return self.journal.rows()

    def weights(self) -> tuple[Weights, list[int]]:
        """What each input that was drawn stands for, and the number of each; pending ones stand for none."""
        inputs = {row.input: row.stratum for row in self.rows}
        pending = {row.input for row in self.rows if row.item is not None and self.state(row.item) == "pending"}
        numbers = sorted(inputs)
        stratum = np.array([inputs[one] for one in numbers], np.int64)
        judged = np.array([one not in pending for one in numbers], np.bool_)
        return weigh(stratum, np.array(self.plan.sizes, np.int64), judged), numbers

    def judged_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of the judged log: `correct`, the label as `judgement`, who said what and when, and the weights.

        A row that judges left open has no `correct`. Rows of inputs that are not judged yet weigh nothing.
        """
        with self._alone:
            weights, numbers = self.weights()
            places = {number: place for place, number in enumerate(numbers)}
            for row in self.rows:
                place = places[row.input]
                ready = bool(weights.weight[place] > 0)
                if row.item is None and not ready:  # of an input whose other answers are still to be judged
                    continue
                sampled: dict[str, Any] = {}
                if not weights.alike:
                    sampled = {"weight": float(weights.weight[place]), "stratum": weights.stratum[place]}
                yield {**json.loads(row.document), **self._verdict(row.item, ready), **sampled}

    def _verdict(self, item: int | None, ready: bool) -> dict[str, Any]:
        if item is None:
            return {"judgement": None, "judgements": []}
        label = self.plan.labels.label(self.final(item) or "") if ready else None
        said = [event for judge in self.judges_of[item] if (event := self.given.get((judge, item)))]
        said += [self.settled[item]] if item in self.settled else []
        kept = [{"judge": one.judge, "label": one.label, "at": one.at} for one in said]
        verdict: dict[str, Any] = {"judgement": None if label is None else label.name, "judgements": kept}
        means = None if label is None else label.means
        if self.plan.labels.tells_right:
            verdict[self.plan.correct] = means == "right" if means in ("right", "wrong") else None
        return {**verdict, "abstained": True} if means == "withheld" else verdict

    def differences(self, asked: dict[str, Any]) -> list[str]:
        """What was asked for that judging was begun without: options by name, with what they were."""
        return [
            f"`{name}` was {_text_of(getattr(self.plan, name))}"
            for name, value in asked.items()
            if value is not None and getattr(self.plan, name) != value
        ]


def _text_of(value: Any) -> str:
    if isinstance(value, LabelSet):
        return ", ".join(value.names)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "not given" if value is None else f"{value}"


def folder_of(output: Path) -> Path:
    """The folder in which judgements are kept, beside the log that is made of them.

    >>> str(folder_of(Path("runs/judged.jsonl.gz")))
    'runs/judged.judging'
    """
    name = output.name
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    stem = name.rpartition(".")[0] or name
    return output.with_name(f"{stem}.judging")
