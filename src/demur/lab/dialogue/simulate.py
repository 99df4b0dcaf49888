"""Dialogues of simulated users with managers over noisy channels, as the project's own tables."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.acts import parse_acts, thomson_items
from demur.core.io.writing import write_atomically, write_rows
from demur.core.show.results import Shown, Step, silent
from demur.errors import DataError, UsageError
from demur.lab.dialogue.channel import Channel, ChannelSettings, Hypotheses, Perfect, acts_text
from demur.lab.dialogue.domain import WELCOME, TaskDomain, UserActs
from demur.lab.dialogue.managers import NAMES, Answer, MakeManager, Manager, Policy, close_managers, manager_maker
from demur.lab.dialogue.user import User, new_user
from demur.nbest_lists.reward import SUCCESS, TURN

LONGEST = 40
"""Turns after which a dialogue ends, whatever the patience of its user."""
BATCH = 50
"""Dialogues that are simulated and kept together."""
WRONG_VALUE, WRONG_SLOT = " (wrong value)", " (wrong slot)"
"""Behind the label of an act whose kind is right, and one of whose values or slots is not."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """One manager over one channel."""

    manager: str
    channel: ChannelSettings
    threshold: float = 0.0

    @property
    def name(self) -> str:
        """What its dialogues begin with: manager and noise, and what else is not as usual."""
        manager = self.manager if self.manager in (*NAMES, "own") else "command"
        line, usual = self.channel, ChannelSettings()
        quality = () if line.confidences == usual.confidences else (line.confidences,)
        length = () if line.nbest == usual.nbest else (f"best{line.nbest}",)
        cutoff = (f"from {self.threshold:g}",) if self.threshold else ()
        return "-".join((manager, f"{self.channel.noise:g}", *quality, *length, *cutoff)).replace(" ", "")


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """All that decides what is simulated: the same rows for the same plan, on any number of processes."""

    domain: str
    """A bundled domain, or the path of one."""
    conditions: tuple[Condition, ...]
    dialogues: int
    seed: int = 0
    policies: dict[str, Policy] = field(default_factory=dict)
    """Policies by manager, in place of the default ones."""
    own: Callable[[TaskDomain], Answer] | None = None
    """A manager of the user's own, which conditions call "own"."""
    batch: int = BATCH

    def batches(self) -> Iterator[tuple[Condition, range]]:
        """The work in pieces."""
        for condition in self.conditions:
            for start in range(0, self.dialogues, self.batch):
                yield condition, range(start, min(start + self.batch, self.dialogues))

    @property
    def key(self) -> str:
        """What tells this plan from others whose rows differ."""
        text = Path(self.domain).read_text("utf-8") if Path(self.domain).is_file() else self.domain
        policies = {name: policy.to_dict() for name, policy in self.policies.items()}
        parts = [text, [asdict(one) for one in self.conditions], self.dialogues, self.seed, self.batch, policies]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()

    def maker(self, condition: Condition, domain: TaskDomain) -> MakeManager:
        """What makes the manager of each dialogue of a condition."""
        chosen = self.own if self.own is not None and condition.manager == "own" else condition.manager
        policy = self.policies.get(condition.manager)
        return manager_maker(chosen, domain, policy=policy, threshold=condition.threshold)


def user_of(domain: TaskDomain, seed: int, number: int) -> User:
    """The user of a dialogue: the same in every condition."""
    return new_user(domain, chance(seed, number, 0))


def chance(seed: int, number: int, purpose: int) -> random.Random:
    """Chance for one dialogue and purpose, the same whatever else is drawn."""
    return random.Random((((seed << 40) + number) << 8) + purpose)


@dataclass(slots=True)
class Dialogue:
    """A dialogue as it went."""

    success: bool
    turns: list[Row]
    seconds: float

    @property
    def reward(self) -> float:
        """20 for success, less 1 for each turn."""
        return SUCCESS * self.success - TURN * len(self.turns)


def play(domain: TaskDomain, user: User, manager: Manager, channel: Channel, rng: random.Random) -> Dialogue:
    """One dialogue, a row for each turn of the user; either side may end it with a goodbye."""
    rows: list[Row] = []
    prompt, seconds = WELCOME, 0.0
    speech = domain.spec.user
    while prompt.kind != "bye" and len(rows) < LONGEST:
        acts = user.reply(prompt)
        text = domain.express(acts, rng)
        heard = channel.recognise(acts, text, rng)
        spoken = len(text.split()) + len(domain.prompt_text(prompt).split())
        seconds += 60 * spoken / speech.words_per_minute + speech.pause
        rows.append(_row(domain, prompt, acts, text, heard.hypotheses))
        rows[-1] |= {"words": heard.words, "word_errors": heard.word_errors}
        if any(act.name == "bye" for act in acts):
            break
        prompt = manager.answer(heard.hypotheses)
    return Dialogue(user.satisfied, rows, seconds)


def _row(domain: TaskDomain, prompt: Any, acts: UserActs, text: str, hypotheses: Hypotheses) -> Row:
    said, top = acts_text(acts), acts_text(hypotheses[0][0]) if hypotheses else ""
    target, prediction = label(said), label(top) or None
    if prediction == target and _items(said) != _items(top):
        prediction += WRONG_VALUE if _slots(said) == _slots(top) else WRONG_SLOT
    return {
        "prompt": acts_text(domain.acts_of(prompt)),
        "text": text,
        "reference": said,
        "hypotheses": [{"act": acts_text(one), "confidence": confidence} for one, confidence in hypotheses],
        "target": target,
        "prediction": prediction,
        "confidence": hypotheses[0][1] if hypotheses else None,
    }


@lru_cache(maxsize=1 << 16)
def label(acts: str) -> str:
    """The kind of what was said: the names of its acts, greetings and thanks apart where there is more.

    >>> label("hello()&inform(food=thai)"), label("thankyou()&bye()"), label("")
    ('inform', 'bye', '')
    """
    names = list(dict.fromkeys(act.name for act in parse_acts(acts)))
    return "+".join([name for name in names if name not in ("hello", "thankyou")] or names)


@lru_cache(maxsize=1 << 16)
def _items(acts: str) -> frozenset[str]:
    return thomson_items(parse_acts(acts))


@lru_cache(maxsize=1 << 16)
def _slots(acts: str) -> frozenset[str | None]:
    return frozenset(slot.name for act in parse_acts(acts) for slot in act.slots)


def concept_efficiency(turns: Sequence[Row]) -> float:
    """Distinct concepts that were understood, of all that were uttered (Glass et al. 2000); NaN where none was.

    A concept is a value of a slot or a field asked for; it is understood in the first turn whose best hypothesis
    has it too.

    >>> turn = {"reference": "inform(food=thai, area=north)", "hypotheses": [{"act": "inform(food=thai)"}]}
    >>> concept_efficiency([turn, turn])
    0.25
    """
    uttered, understood = 0, frozenset[str]()
    for turn in turns:
        concepts = _concepts(turn["reference"])
        uttered += len(concepts)
        if turn["hypotheses"]:
            understood |= concepts & _concepts(turn["hypotheses"][0]["act"])
    return len(understood) / uttered if uttered else math.nan


@lru_cache(maxsize=1 << 16)
def _concepts(acts: str) -> frozenset[str]:
    return frozenset(str(slot) for act in parse_acts(acts) for slot in act.slots)


TURNS: dict[str, Any] = {
    "id": pl.String,
    "dialogue": pl.String,
    "turn": pl.Int32,
    "manager": pl.String,
    "noise": pl.Float64,
    "prompt": pl.String,
    "text": pl.String,
    "reference": pl.String,
    "hypotheses": pl.List(pl.Struct({"act": pl.String, "confidence": pl.Float64})),
    "target": pl.String,
    "prediction": pl.String,
    "confidence": pl.Float64,
    "words": pl.Int32,
    "word_errors": pl.Int32,
    "success": pl.Boolean,
    "turns": pl.Int32,
}
"""The columns of the turns: N-best lists, answers, and how the dialogue ended."""
ANSWERS = ("id", "dialogue", "manager", "noise", "target", "prediction", "confidence")
"""The columns of the answers: the kind of what was said, and what it was taken for."""
DIALOGUES: dict[str, Any] = {
    "dialogue": pl.String,
    "manager": pl.String,
    "noise": pl.Float64,
    "confidences": pl.String,
    "threshold": pl.Float64,
    "user": pl.Int32,
    "success": pl.Boolean,
    "turns": pl.Int32,
    "reward": pl.Float64,
    "concept_efficiency": pl.Float64,
    "seconds": pl.Float64,
    "wrong": pl.Int32,
    "words": pl.Int32,
    "word_errors": pl.Int32,
}
"""The columns of the dialogues; `wrong` counts turns whose best hypothesis is not what was said."""


def batch_rows(plan: SimulationPlan, condition: Condition, numbers: range) -> tuple[list[Row], list[Row]]:
    """The turns and the dialogues of some users in one condition."""
    domain = TaskDomain.read(plan.domain)
    make = plan.maker(condition, domain)
    perfect = condition.manager == "perfect"
    channel: Channel = Perfect() if perfect else condition.channel.channel(domain, plan.seed)
    turns: list[Row] = []
    dialogues: list[Row] = []
    for number in numbers:
        manager, user = make(domain), user_of(domain, plan.seed, number)
        done = play(domain, user, manager, channel, chance(plan.seed, number, 1))
        name = f"{condition.name}-{number:05}"
        head = {"dialogue": name, "manager": condition.manager, "noise": condition.channel.noise}
        tail = {"success": done.success, "turns": len(done.turns)}
        turns += [
            {"id": f"{name}/{place}", "turn": place, **head, **row, **tail} for place, row in enumerate(done.turns, 1)
        ]
        dialogues.append({**head, "user": number, **tail, **_measured(done), **_knobs(condition)})
    close_managers(make)
    return turns, dialogues


def _knobs(condition: Condition) -> Row:
    return {"confidences": condition.channel.confidences, "threshold": condition.threshold}


def _measured(done: Dialogue) -> Row:
    spoken = [turn for turn in done.turns if turn["words"] is not None]
    return {
        "reward": done.reward,
        "concept_efficiency": concept_efficiency(done.turns),
        "seconds": round(done.seconds, 2),
        "wrong": sum(turn["prediction"] != turn["target"] for turn in done.turns),
        "words": sum(turn["words"] for turn in spoken) if spoken else None,
        "word_errors": sum(turn["word_errors"] for turn in spoken) if spoken else None,
    }


@dataclass(eq=False, repr=False)
class Simulation(Shown):
    """Simulated dialogues; `turns` and `dialogues` are the project's own tables."""

    plan: SimulationPlan
    folder: Path
    """Holds the turns in parts."""
    dialogues: pl.DataFrame
    level: float = 0.95
    notes: tuple[str, ...] = ()

    def scan(self) -> pl.LazyFrame:
        """The turns, read when they are collected."""
        return pl.scan_parquet([self.folder / part_name(*batch, "turns") for batch in self.plan.batches()])

    @property
    def turns(self) -> pl.DataFrame:
        """The N-best lists of all dialogues, which `demur nbest` reads."""
        return self.lists().collect()

    def lists(self) -> pl.LazyFrame:
        """The turns without what their best hypotheses stand for."""
        return self.scan().drop(ANSWERS[-3:])

    @property
    def answers(self) -> pl.DataFrame:
        """What the best hypotheses stand for, as answers that `demur score` and `demur outcome` read."""
        return self.scan().select(ANSWERS).collect()

    def frame(self) -> pl.DataFrame:
        """The dialogues, a row each."""
        return self.dialogues

    def to_dict(self) -> dict[str, Any]:
        """The conditions as plain values."""
        from demur.lab.dialogue.presentation import condition_rows, paired_rows

        return {
            "domain": self.plan.domain,
            "seed": self.plan.seed,
            "conditions": condition_rows(self.dialogues, self.level),
            "differences": paired_rows(self.dialogues, self.level),
            "notes": list(self.notes),
            "warnings": [],
        }


def part_name(condition: Condition, numbers: range, table: str) -> str:
    """The file of one batch."""
    return f"{condition.name}-{numbers.start:07}-{len(numbers)}.{table}.parquet".replace("/", "_")


def simulate_plan(
    plan: SimulationPlan,
    *,
    keep: Path | None = None,
    processes: int | None = None,
    level: float = 0.95,
    step: Step = silent,
) -> Simulation:
    """Simulate all dialogues of a plan, in several processes where that is quicker.

    With `keep`, finished batches stay in that folder, and a run with the same plan goes on from them.
    """
    folder = Path(tempfile.mkdtemp(prefix="demur-calls-")) if keep is None else keep
    _claim(folder, plan)
    total = plan.dialogues * len(plan.conditions)
    waiting = [one for one in plan.batches() if not (folder / part_name(*one, "dialogues")).exists()]
    done = total - sum(len(numbers) for _, numbers in waiting)
    step("simulating dialogues", done, total)
    for count in _work(plan, waiting, folder, processes):
        done += count
        step("simulating dialogues", done, total)
    parts = [pl.read_parquet(folder / part_name(*batch, "dialogues")) for batch in plan.batches()]
    notes = (f"domain {plan.domain}, seed {plan.seed}, {plan.dialogues:,} dialogues in each condition",)
    simulation = Simulation(plan, folder, pl.concat(parts), level, notes)
    if keep is None:
        weakref.finalize(simulation, shutil.rmtree, folder, ignore_errors=True)
    return simulation


def _claim(folder: Path, plan: SimulationPlan) -> None:
    """Make the folder this plan's; refuse one that keeps other dialogues."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise UsageError(f"`keep` {folder} cannot be made: {fault.strerror}") from None
    marker = folder / "plan.key"
    if marker.exists() and marker.read_text("utf-8") != plan.key:
        fix = "name another folder, or remove it"
        raise DataError("keeps dialogues that were simulated with other options", where=str(folder), fix=fix)
    if not marker.exists() and any(folder.iterdir()):
        raise DataError("is a folder with other files", where=str(folder), fix="name a folder of its own")
    marker.write_text(plan.key, "utf-8")


def _work(
    plan: SimulationPlan, waiting: Sequence[tuple[Condition, range]], folder: Path, processes: int | None
) -> Iterator[int]:
    """Simulates batches and says how many dialogues each had."""
    count = min(processes or min(os.cpu_count() or 1, 4), len(waiting))
    alone = plan.own is not None or sum(len(numbers) for _, numbers in waiting) <= QUICK
    if count < 2 or (processes is None and alone):
        for one in waiting:
            yield write_batch(plan, *one, folder)
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(write_batch, plan, *one, folder) for one in waiting]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


QUICK = 400
"""Dialogues for which it is not worth starting processes."""


def write_batch(plan: SimulationPlan, condition: Condition, numbers: range, folder: Path) -> int:
    """Simulate a batch and keep its tables; the dialogues are written last, so where they are, all is."""
    turns, dialogues = batch_rows(plan, condition, numbers)
    for rows, schema, table in ((turns, TURNS, "turns"), (dialogues, DIALOGUES, "dialogues")):
        with write_atomically(folder / part_name(condition, numbers, table)) as path:
            pl.DataFrame(rows, schema=schema).write_parquet(path)
    return len(numbers)


def file_beside(path: Path, table: str) -> Path:
    """The file of another table that goes with the N-best lists.

    >>> file_beside(Path("calls.jsonl.gz"), "dialogues").name
    'calls-dialogues.jsonl.gz'
    """
    name, dot, ending = path.name.partition(".")
    return path.with_name(f"{name}-{table}{dot}{ending}")


def write_calls(simulation: Simulation, path: Path) -> None:
    """Write the N-best lists to a file, and answers and dialogues to two beside it."""
    tables = {
        path: simulation.lists(),
        file_beside(path, "answers"): simulation.scan().select(ANSWERS),
        file_beside(path, "dialogues"): simulation.dialogues.lazy(),
    }
    for name, table in tables.items():
        if path.suffix == ".parquet":
            with write_atomically(name) as temporary:
                table.sink_parquet(temporary)
        else:
            write_rows(name, table.collect().iter_rows(named=True))
