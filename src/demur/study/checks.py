"""Whether a study was what it should be: constancy of inputs, conditions, times; and how far it has come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil
from pathlib import Path
from statistics import mean, median
from typing import Any

from demur.core.show.results import Step, silent
from demur.errors import DemurError
from demur.study.export import StudyRecord, read_study_trials, trials_of
from demur.study.state import digest_of
from demur.study.views import training_view

MOST_EXAMPLES = 3
NOTICED = 0.1
"""Seconds that people notice: times are rounded to these before they are compared."""
ADVANTAGE, SURELY = 0.1, 0.01
"""Times give a performer away where their distributions are further apart than this, and significantly so."""
LEAST_TRIALS = 12
"""Trials of each performer from which on a plan is simulated."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: how many were looked at, how many were wrong, and the first of these."""

    rule: str
    checked: int
    wrong: tuple[str, ...] = ()
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing was wrong."""
        return not self.wrong

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain values; `holds` is null where nothing was checked."""
        first = list(self.wrong[:MOST_EXAMPLES])
        return {
            "rule": self.rule,
            "holds": self.holds if self.checked else None,
            "checked": self.checked,
            "wrong": len(self.wrong),
            "first": first,
            "note": self.note,
        }


@dataclass(frozen=True)
class StudyCheck:
    """What was found."""

    folder: Path
    findings: tuple[Finding, ...]
    violations: dict[str, int]
    error_rates: tuple[tuple[str, float, int, float], ...]
    """Performer, level, words, and the share of them that was wrong."""
    warnings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything is as it should be."""
        return all(one.holds for one in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The check as plain values."""
        names = ("performer", "level", "words", "wer")
        return {
            "study": str(self.folder),
            "holds": self.holds if any(one.checked for one in self.findings) else None,
            "checks": [one.to_dict() for one in self.findings],
            "violations": self.violations,
            "error_rates": [dict(zip(names, one, strict=True)) for one in self.error_rates],
            "notes": [],
            "warnings": list(self.warnings),
        }


def check_study(folder: Path, step: Step = silent) -> StudyCheck:
    """Check a study, also while it is being served."""
    record = StudyRecord.of(folder)
    checks: list[Callable[[StudyRecord], Finding]] = [
        _same_input,
        _same_noise,
        _met_once,
        _balanced,
        _times,
        _alike_in_answering,
        _alike_in_waiting,
        _same_design,
    ]
    findings, warnings = [], []
    for place, check in enumerate(checks):
        step("checking", place, len(checks))
        try:
            findings.append(check(record))
        except DemurError as fault:
            warnings.append(f"not checked: {fault}")
    violations = Counter(event.body["rule"] for event in record.of_kind("violated"))
    return StudyCheck(folder, tuple(findings), dict(violations), tuple(_error_rates(record)), tuple(warnings))


def _same_input(record: StudyRecord) -> Finding:
    """Whoever answered had exactly what the channel gave."""
    digests: dict[tuple[str, int], str] = {}
    wrong = []
    count = 0
    for event in record.events:
        if event.kind == "heard":
            key = event.dialogue, event.body["turn"]
            digests[key] = digest_of(event.body["heard"])
            if digests[key] != event.body["digest"]:
                wrong.append(f"{event.dialogue} turn {key[1]}: the digest is not that of the input")
        elif event.kind in ("passed", "answered", "understood", "shadowed"):
            count += 1
            given = event.body.get("digest") or event.body.get("given")
            who = event.body.get("to") or event.body.get("by") or event.body.get("system") or event.person
            if given != digests.get((event.dialogue, event.body["turn"])):
                wrong.append(f"{event.dialogue} turn {event.body['turn']}: {who} had another input")
    return Finding("wizards and systems had the same input, by digest", count, tuple(wrong))


def _same_noise(record: StudyRecord) -> Finding:
    """The channel gives the same again, so it cannot have depended on who answered."""
    rule = "inputs follow from seed, dialogue, turn and text alone"
    said = {(event.dialogue, event.body["turn"]): event.body["text"] for event in record.of_kind("said")}
    if record.design.input.by == "speech":
        return Finding(rule, 0, note="not checked: recognisers may differ from run to run")
    from demur.study.input import NoisyInput
    from demur.study.systems import systems_of, texts_of_models

    systems = systems_of(record.design, record.folder)
    for one in systems.values():
        one.close()
    noise = NoisyInput(record.design, texts_of_models(systems))
    levels = {talk.id: talk.level for talk in record.state.talks.values()}
    wrong = []
    heard = record.of_kind("heard")
    for event in heard:
        turn = event.body["turn"]
        again, _ = noise.hear(said[event.dialogue, turn], levels[event.dialogue], event.dialogue, turn)
        if again != event.body["heard"]:
            wrong.append(f"{event.dialogue} turn {turn}")
    return Finding(rule, len(heard), tuple(wrong))


def _met_once(record: StudyRecord) -> Finding:
    met: dict[str, Counter[tuple[str, float]]] = defaultdict(Counter)
    for talk in record.state.talks.values():
        if talk.started:
            met[talk.participant][talk.performer, talk.level] += 1
    wrong = [
        f"{person}: {performer} at {level:g}"
        for person, conditions in met.items()
        for (performer, level), times in conditions.items()
        if times > 1
    ]
    return Finding("no participant met a condition twice", len(met), tuple(wrong))


def _balanced(record: StudyRecord) -> Finding:
    counts = Counter((talk.performer, talk.level) for talk in record.counted)
    times = [counts[one] for one in record.design.conditions]
    allowed = 1 + ceil(mean(times) / 4)
    wrong = []
    if max(times) - min(times) > allowed:
        least = min(record.design.conditions, key=lambda one: counts[one])
        most = max(record.design.conditions, key=lambda one: counts[one])
        wrong = [f"{most[0]} at {most[1]:g} {counts[most]} times, {least[0]} at {least[1]:g} {counts[least]} times"]
    note = f"each condition {min(times)} to {max(times)} times"
    return Finding("conditions are balanced", sum(times), tuple(wrong), note if sum(times) else "")


def _times(record: StudyRecord) -> Finding:
    wrong, count = [], 0
    for talk in record.counted:
        for one in talk.exchanges:
            count += 1
            last = one is talk.exchanges[-1]
            if one.shown is None:
                if not last:
                    wrong.append(f"{talk.id} turn {one.number}: was never answered")
            elif not one.said <= one.heard_at <= one.answered <= one.shown or one.shown < one.due:
                wrong.append(f"{talk.id} turn {one.number}: times are not in order")
    return Finding("times are complete and in order", count, tuple(wrong))


def _alike_in_answering(record: StudyRecord) -> Finding:
    """Participants waited as long for the answers of wizards as for those of systems."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for talk in record.counted:
        seconds[talk.performer] += [one.shown - one.said for one in talk.exchanges if one.shown is not None]
    return _alike("answers take as long with every performer", record, seconds)


def _alike_in_waiting(record: StudyRecord) -> Finding:
    """Participants were as long in the waiting room before wizards as before systems."""
    seconds: dict[str, list[float]] = defaultdict(list)
    opened = {event.dialogue: event.at for event in record.of_kind("opened")}
    for talk in record.counted:
        seconds[talk.performer].append(talk.started - opened[talk.id])
    return _alike("the waiting room takes as long with every performer", record, seconds)


def _alike(rule: str, record: StudyRecord, seconds: Mapping[str, Sequence[float]]) -> Finding:
    """Whether times could give any two performers away: by the Kolmogorov-Smirnov distance of what people notice."""
    from scipy.stats import ks_2samp

    known = {name: [round(one / NOTICED) for one in times] for name, times in seconds.items() if times}
    note = ", ".join(f"{name} {median(seconds[name]):.1f} s" for name in known)
    wrong = []
    for one, two in combinations(known, 2) if record.design.interface.latency != "none" else ():
        found = ks_2samp(known[one], known[two], method="asymp")
        if found.statistic > ADVANTAGE and found.pvalue < SURELY:
            wrong.append(f"{one} and {two}: distributions are {found.statistic:.2f} apart (p = {found.pvalue:.2g})")
    return Finding(rule, sum(map(len, known.values())), tuple(wrong), f"median {note}" if note else "")


def _same_design(record: StudyRecord) -> Finding:
    digests = [event.body["design"] for event in record.of_kind("started")]
    different = sorted(set(digests) - {record.design.digest})
    wrong = [f"it was served as {digest}, and is {record.design.digest} now" for digest in different]
    return Finding("the design was never changed", len(digests), tuple(wrong))


def _error_rates(record: StudyRecord) -> Iterator[tuple[str, float, int, float]]:
    """Word error rates that there were, by performer and level."""
    talks = {talk.id: talk for talk in record.kept}
    sums: dict[tuple[str, float], list[int]] = defaultdict(lambda: [0, 0])
    for event in record.of_kind("heard"):
        talk = talks.get(event.dialogue)
        if talk is not None and event.body.get("words"):
            total = sums[talk.performer, talk.level]
            total[0] += event.body["errors"]
            total[1] += event.body["words"]
    for performer, level in record.design.conditions:
        errors, words = sums[performer, level]
        if words:
            yield performer, level, words, errors / words


@dataclass(frozen=True)
class StudyStatus:
    """How far a study has come, and how many more subjects it needs."""

    folder: Path
    design: dict[str, Any]
    people: dict[str, int]
    conditions: tuple[tuple[str, float, int, int], ...]
    """Performer, level, dialogues begun, trials."""
    wizards: tuple[dict[str, Any], ...]
    trials: int
    plan: str
    """How many more subjects are needed, in words."""
    plan_document: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The status as plain values."""
        names = ("performer", "level", "begun", "trials")
        return {
            "study": str(self.folder),
            **self.design,
            "participants": self.people,
            "conditions": [dict(zip(names, one, strict=True)) for one in self.conditions],
            "wizards": list(self.wizards),
            "trials": self.trials,
            "how_many_more": self.plan_document,
            "notes": [self.plan],
            "warnings": list(self.warnings),
        }


def status_of(
    folder: Path, *, half_width: float = 0.1, studies: int = 60, seed: int = 0, step: Step = silent
) -> StudyStatus:
    """How far a study has come, also while it is being served."""
    record = StudyRecord.of(folder)
    state, design = record.state, record.design
    counted = Counter((talk.performer, talk.level) for talk in record.counted)
    conditions = tuple((*one, state.met[one], counted[one]) for one in design.conditions)
    people: Counter[str] = Counter(one.stage for one in state.participants.values())
    wizards = []
    for one in state.wizards.values():
        training = training_view(design, one)
        rounds = len(training["shown"])
        known = {"wizard": one.name, "dialogues": one.dialogues, "trained": training["finished"], "rounds": rounds}
        wizards.append({**known, "settled": training["settled"] if rounds > 1 else None})
    plan, document = _how_many_more(record, half_width, studies, seed, step)
    about = {"name": design.name, "digest": design.digest}
    return StudyStatus(folder, about, dict(people), conditions, tuple(wizards), len(record.counted), plan, document)


def _how_many_more(
    record: StudyRecord, half_width: float, studies: int, seed: int, step: Step
) -> tuple[str, dict[str, Any]]:
    """What `demur plan` says of the trials so far, less the subjects that there are."""
    trials = trials_of(record)
    by_performer = Counter(trials["performer"])
    roles = set(trials["role"])
    if roles != {"gold", "system"} or min(by_performer.values()) < LEAST_TRIALS:
        return f"How many more: a plan needs {LEAST_TRIALS} trials of wizards and of each system first.", {}
    from demur.gold_standard.jobs import plan_gold

    each = max(1, round(len(trials) / max(1, trials["subject"].n_unique())))
    subjects = {role: trials.filter(role=role)["subject"].n_unique() for role in ("gold", "system")}
    if record.lone:  # their trials have participants for subjects
        subjects["gold"] = len({talk.wizard for talk in record.counted if talk.wizard})
    try:
        found = plan_gold(
            *read_study_trials([record]),
            subjects=(8, 16, 32, 64),
            trials_each=tuple(sorted({each, 2 * each, 4 * each})),
            half_width=half_width,
            studies=studies,
            seed=seed,
            step=step,
        )
    except DemurError as fault:
        return f"How many more: no plan can be made yet ({fault}).", {}
    if found.needed is not None:
        wanted, with_each = found.needed.subjects, found.needed.trials
    else:
        wanted, with_each = found.would_do or (0, 0)
    more = {role: max(0, wanted - have) for role, have in subjects.items()}
    document = {
        "half_width": half_width,
        "subjects": wanted,
        "trials_each": with_each,
        "wizards": subjects["gold"],
        "more_wizards": more["gold"],
        "participants": subjects["system"],
        "more_participants": more["system"],
    }
    goal = (
        f"bands of {found.width_text(found.target)} need about {wanted} wizards and {wanted} participants with "
        f"{with_each} trials each"
    )
    have = f"there are {subjects['gold']} and {subjects['system']}"
    if not any(more.values()):
        return f"How many more: none; {goal}, and {have}.", document
    return f"How many more: {more['gold']} wizards and {more['system']} participants; {goal}, and {have}.", document
