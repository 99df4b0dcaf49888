"""The tables of a study: trials, dialogues, responses, turns and participants, from its journal."""

from __future__ import annotations

import hmac
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from demur.core.jobs import Job
from demur.errors import DataError, UsageError
from demur.gold_standard.jobs import read_trials
from demur.gold_standard.trials import Trials
from demur.study.design import FILE, WozDesign, read_design
from demur.study.folder import is_study, study_key
from demur.study.journal import each_row
from demur.study.state import ON_PURPOSE, StudyEvent, StudyState, Talk

Identifiers = Literal["keep", "hash", "drop"]
OUT_OF_SCOPE = "out_of_scope"
"""The target of an utterance at which a wizard asked back."""
TABLES = {
    "trials": "trials.csv",
    "dialogues": "dialogues.csv",
    "responses": "responses.jsonl",
    "turns": "turns.jsonl",
    "participants": "participants.csv",
    "actions": "actions.jsonl",
}
"""The tables, and the files that they are written to."""


@dataclass(frozen=True)
class StudyRecord:
    """A study as its journal has it."""

    folder: Path
    design: WozDesign
    events: tuple[StudyEvent, ...]
    state: StudyState
    damage: str = ""
    """What is wrong with the journal behind these events, where the rest was left out."""

    @classmethod
    def of(cls, folder: str | Path, *, salvage: bool = False) -> StudyRecord:
        """Read a study, also while it is being served; to `salvage` is to stop where its journal is damaged."""
        place = Path(folder)
        design = read_design(place)
        events: list[StudyEvent] = []
        state = StudyState(design)
        try:
            for event, _ in each_row(place):
                state.follow(event, len(events) + 1)
                events.append(event)
        except DataError as fault:
            if not salvage:
                raise
            state = StudyState.replay(design, events)  # without what the damaged event changed
            return cls(place, design, tuple(events), state, f"{fault.where} {fault.rule}")
        return cls(place, design, tuple(events), state)

    def of_kind(self, kind: str) -> list[StudyEvent]:
        """The events of a kind."""
        return [event for event in self.events if event.kind == kind]

    @property
    def kept(self) -> list[Talk]:
        """The dialogues of everybody who has not withdrawn."""
        people = self.state.participants
        talks = self.state.talks.values()
        return [talk for talk in talks if people[talk.participant].stage != "withdrawn"]

    @property
    def reports(self) -> dict[str, dict[str, Any]]:
        """What was reported of each dialogue."""
        return {event.dialogue: event.body for event in self.of_kind("reported")}

    @property
    def counted(self) -> list[Talk]:
        """The dialogues that are trials: they began, ended on purpose, and were reported on."""
        reports = self.reports
        return [talk for talk in self.kept if talk.why in ON_PURPOSE and talk.started and talk.id in reports]

    @property
    def lone(self) -> dict[str, str]:
        """The wizard of each performer for whom only one has answered so far."""
        names: dict[str, set[str]] = defaultdict(set)
        for talk in self.counted:
            if talk.wizard:
                names[talk.performer].add(talk.wizard)
        return {performer: next(iter(people)) for performer, people in names.items() if len(people) == 1}


def trials_of(record: StudyRecord) -> pl.DataFrame:
    """A row for each trial, as `demur gold` reads it.

    The subject of a wizard's trial is the wizard; where there is one only, it is the participant, as it is of a
    system's trials. `order` counts dialogues as they were begun.
    """
    design, reports, lone = record.design, record.reports, record.lone
    words = _word_counts(record)
    x, y = design.input.name, design.metric.name
    rows = []
    for talk in record.counted:
        spec = design.performer(talk.performer)
        errors, total = words[talk.id]
        realised = errors / total if total else None
        rows.append(
            {
                "study": design.name,
                "performer": talk.performer,
                "role": "gold" if spec.is_wizard else "system",
                "subject": talk.wizard if spec.is_wizard and talk.performer not in lone else talk.participant,
                "components": "+".join(spec.components) or "none",
                "order": int(talk.id[1:]),
                x: talk.level if design.input.measured == "level" else realised,
                y: reports[talk.id]["value"],
            }
        )
    names = ("study", "performer", "role", "subject", "components")
    return pl.DataFrame(
        rows, schema={**dict.fromkeys(names, pl.String), "order": pl.Int64, x: pl.Float64, y: pl.Float64}
    )


def _word_counts(record: StudyRecord) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for event in record.of_kind("heard"):
        errors, words = counts[event.dialogue]
        counts[event.dialogue] = errors + event.body.get("errors", 0), words + event.body.get("words", 0)
    return counts


def dialogues_of(record: StudyRecord) -> pl.DataFrame:
    """A row for each dialogue that was a trial, as `demur outcome` reads it: with answers to all questionnaires."""
    design, words, reports = record.design, _word_counts(record), record.reports
    ends = {event.dialogue: event.at for event in record.of_kind("ended")}
    replaced = {event.dialogue for event in record.of_kind("fell_back")}
    asked: dict[str, dict[str, Any]] = defaultdict(dict)
    for event in record.of_kind("questioned"):
        answers = event.body["answers"]
        asked[event.person] |= {f"{event.body['stage']}_{name}": value for name, value in answers.items()}
    rows = []
    for talk in record.counted:
        errors, total = words[talk.id]
        report = reports[talk.id]
        rows.append(
            {
                "dialogue": talk.id,
                "group": talk.participant,
                "performer": talk.performer,
                "wizard": talk.wizard or None,
                "task": talk.task,
                "level": talk.level,
                "wer": errors / total if total else None,
                "turns": len(talk.exchanges),
                "seconds": round(ends[talk.id] - talk.started, 3),
                "end": talk.why,
                "fallback": talk.id in replaced,
                design.metric.name: report["value"],
                "answer": report["answer"],
                **report["answers"],
                **asked[talk.participant],
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def turns_of(record: StudyRecord) -> pl.DataFrame:
    """A row for each utterance and its answer: what was typed or recorded, passed on and said, and when."""
    answers = {(event.dialogue, event.body["turn"]): event.body for event in record.of_kind("answered")}
    rates = {(event.dialogue, event.body["turn"]): event.body.get("wer") for event in record.of_kind("heard")}
    audio = {(event.dialogue, event.body["turn"]): event.body.get("audio") for event in record.of_kind("said")}
    spoken = record.design.input.by == "speech"
    rows = []
    for talk in record.kept:
        for one in talk.exchanges:
            answer = answers.get((talk.id, one.number), {})
            rows.append(
                {
                    "id": f"{talk.id}/{one.number}",
                    "dialogue": talk.id,
                    "turn": one.number,
                    "participant": talk.participant,
                    "performer": talk.performer,
                    "wizard": talk.wizard or None,
                    "level": talk.level,
                    **({"audio": audio[talk.id, one.number]} if spoken else {"typed": one.typed}),
                    "input": None if one.heard is None else one.heard["text"],
                    "nbest": [] if one.heard is None else one.heard["nbest"],
                    "wer": rates.get((talk.id, one.number)),
                    "label": one.label,
                    "confidence": answer.get("confidence"),
                    "returned": answer.get("returned"),
                    "response": one.text,
                    "digest": one.digest,
                    "said_at": one.said,
                    "heard_at": one.heard_at or None,
                    "answered_at": one.answered or None,
                    "shown_at": one.shown,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def responses_of(record: StudyRecord) -> pl.DataFrame:
    """What systems would have answered wizards' participants, as `demur score` reads it; the wizard's is the target.

    Where the wizard asked back, the target is out of scope: a system that withholds its answer there is right.
    """
    design = record.design
    repairs = {one.id for one in design.responses if one.repair}
    kept = {talk.id: talk for talk in record.kept}
    rows = []
    for event in record.of_kind("shadowed"):
        talk = kept.get(event.dialogue)
        one = None if talk is None else talk.exchanges[event.body["turn"] - 1]
        label = None if one is None else one.understood or one.label
        if talk is None or one is None or one.heard is None or label is None or event.body["failed"]:
            continue
        rows.append(
            {
                "id": f"{talk.id}/{one.number}",
                "dialogue": talk.id,
                "system": event.body["system"],
                "input": one.heard["text"],
                "target": OUT_OF_SCOPE if label in repairs else label,
                "prediction": event.body["label"],
                "confidence": event.body["confidence"],
                "wizard": talk.wizard,
                "level": talk.level,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def participants_of(record: StudyRecord) -> pl.DataFrame:
    """A row for each participant who has not withdrawn."""
    joined = {event.person: event for event in record.of_kind("joined")}
    rows = [
        {
            "participant": one.id,
            "external": joined[one.id].body.get("external"),
            "stage": one.stage,
            "dialogues": sum(talk.participant == one.id for talk in record.counted),
            "joined_at": joined[one.id].at,
        }
        for one in record.state.participants.values()
        if one.stage != "withdrawn" and one.id in joined
    ]
    schema = {"participant": pl.String, "external": pl.String, "stage": pl.String, "dialogues": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "joined_at": pl.Float64})


def actions_of(record: StudyRecord) -> pl.DataFrame:
    """Every click of a wizard and every violation of the protocol."""
    kept = {"", *(talk.id for talk in record.kept)}
    gone = {one.id for one in record.state.participants.values() if one.stage == "withdrawn"}
    rows = [
        {
            "at": event.at,
            "kind": event.kind,
            "person": event.person,
            "dialogue": event.dialogue,
            "what": event.body.get("what") or event.body.get("rule"),
            "value": event.body.get("value"),
        }
        for event in record.events
        if event.kind in ("clicked", "violated") and event.dialogue in kept and event.person not in gone
    ]
    names = ("kind", "person", "dialogue", "what", "value")
    return pl.DataFrame(rows, schema={"at": pl.Float64, **dict.fromkeys(names, pl.String)})


MAKERS: Mapping[str, Callable[[StudyRecord], pl.DataFrame]] = {
    "trials": trials_of,
    "dialogues": dialogues_of,
    "responses": responses_of,
    "turns": turns_of,
    "participants": participants_of,
    "actions": actions_of,
}

_PEOPLE = ("participant", "group", "subject", "wizard", "person")
_TIMES = ("at", "said_at", "heard_at", "answered_at", "shown_at", "joined_at")


def study_tables(record: StudyRecord, identifiers: Identifiers = "keep") -> dict[str, pl.DataFrame]:
    """All tables, with people named as asked."""
    tables = {name: make(record) for name, make in MAKERS.items()}
    if identifiers == "keep":
        return tables
    names = _pseudonyms(record, identifiers)
    return {name: _rename(table, names, identifiers, record) for name, table in tables.items()}


def _pseudonyms(record: StudyRecord, identifiers: Identifiers) -> dict[str, str]:
    """Other names for everybody: digests that only the study's secret can make, or numbers in an order of chance."""
    people = [*record.state.participants, *record.state.wizards]
    if identifiers == "hash":
        key = study_key(record.folder)
        return {one: hmac.digest(key, f"export:{one}".encode(), "sha256").hex()[:12] for one in people}
    order = list(people)
    random.SystemRandom().shuffle(order)
    return {one: f"s{place + 1:04}" for place, one in enumerate(order)}


def _rename(
    table: pl.DataFrame, names: Mapping[str, str], identifiers: Identifiers, record: StudyRecord
) -> pl.DataFrame:
    found = table.with_columns(
        pl.col(column).replace_strict(names, default=pl.col(column), return_dtype=pl.String)
        for column in _PEOPLE
        if column in table.columns and not table.is_empty()
    )
    if "external" in found.columns:
        key = study_key(record.folder)
        hashed = [
            None if one is None else hmac.digest(key, f"external:{one}".encode(), "sha256").hex()[:12]
            for one in found["external"]
        ]
        made = pl.Series("external", hashed, dtype=pl.String)
        found = found.with_columns(made) if identifiers == "hash" else found.drop("external")
    if identifiers == "drop" and not found.is_empty():
        start = min((event.at for event in record.events), default=0.0)
        found = found.with_columns((pl.col(one) - start).round(3) for one in _TIMES if one in found.columns)
        if "participant" in found.columns and "turn" not in found.columns:
            found = found.sort("participant")
    return found


def write_tables(folder: Path, tables: Mapping[str, pl.DataFrame], design_file: Path) -> tuple[Path, ...]:
    """Write the tables and the design to a folder; those without a row are left out."""
    from demur.core.io.writing import write_table, write_whole

    written = []
    for name, table in tables.items():
        if not table.is_empty():
            write_table(folder / TABLES[name], table)
            written.append(folder / TABLES[name])
    write_whole(folder / FILE, design_file.read_bytes())
    return (*written, folder / FILE)


def with_studies(positional: Sequence[Any], options: dict[str, Any], job: Job) -> tuple[list[Any], dict[str, Any]]:
    """Arguments and options of a job with tables in place of folders of studies."""
    question = job.function.__module__.split(".")[1]
    kind = {"gold_standard": "trials", "returns": "responses", "outcome": "responses"}.get(question)
    if job.name == "outcome regress":
        kind = "dialogues"
    named = [one for one in (*positional, *options.values()) if is_study(one)]
    if kind is None:
        taken = "gold, plan, score, outcome and the other commands on answers take it"
        raise UsageError(f"{named[0]}: this is the folder of a study; {taken}, or export its tables first")
    if kind == "trials":
        return _with_trials(positional, options)
    tables = [_table(one, kind) if is_study(one) else one for one in positional]
    changed = {name: _table(one, "dialogues") if is_study(one) else one for name, one in options.items()}
    if is_study(options.get("outcomes")) and is_study(positional[0]):  # only wizards' dialogues have answers to judge
        changed["outcomes"] = changed["outcomes"].filter(pl.col("dialogue").is_in(tables[0]["dialogue"].implode()))
    return tables, changed


def _with_trials(folders: Sequence[Any], options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The trials of studies, read as options say; what is left of these is for the analysis."""
    if not all(map(is_study, folders)):
        raise UsageError("folders of studies and files cannot be read together; export the studies first")
    reading = {name: options[name] for name in READING if name in options}
    found = read_study_trials([StudyRecord.of(one) for one in folders], **reading)
    return list(found), {name: value for name, value in options.items() if name not in READING}


READING = ("x", "y", "gold", "upper", "lower", "columns", "where")
"""Options of `demur gold` and `demur plan` that say how trials are read."""


def read_study_trials(records: Sequence[StudyRecord], **options: Any) -> tuple[Trials, ...]:
    """The trials of studies, with x, y and bounds as the first is designed where options do not say otherwise.

    Warns where one wizard only has answered: then the band says how participants differ, not how wizards do.
    """
    frame = pl.concat([_table(one.folder, "trials", one) for one in records])
    found = read_trials(frame, **(reading_of(records[0].design) | options))
    lone = {one.design.name: one.lone for one in records if one.lone}
    return tuple(
        replace(one, warnings=(*one.warnings, *(LONE.format(*both) for both in lone.get(one.study, {}).items())))
        for one in found
    )


LONE = "{}: {} is the only wizard so far; subjects are participants, and the band says nothing of other wizards"


def _table(folder: str | Path, name: str, record: StudyRecord | None = None) -> pl.DataFrame:
    table = MAKERS[name](record or StudyRecord.of(folder))
    if table.is_empty():
        missing = {
            "trials": "no dialogue has ended and been reported on",
            "dialogues": "no dialogue has ended and been reported on",
            "responses": "no wizard has answered anything that systems answered too (pairing.shadow)",
        }
        raise DataError(f"has no {name} yet: {missing[name]}", where=f"{folder}:")
    return table


def reading_of(design: WozDesign) -> dict[str, Any]:
    """How the trials of a study are read: its x, its y, and the bounds of a score."""
    named: dict[str, Any] = {"x": design.input.name, "y": design.metric.name}
    if design.metric.source == "item":
        named |= {"lower": design.metric.lower, "upper": design.metric.upper}
    return named


def benchmark_svg(folder: Path) -> bytes:
    """The benchmark graph of a study so far."""
    from demur.core.show.page import figure_file
    from demur.core.show.papers import FigureLook
    from demur.gold_standard.jobs import gold

    found = gold(*read_study_trials([StudyRecord.of(folder)]), checks=False, replicates=200)
    content = figure_file(found.chart, "benchmark.svg", FigureLook.of(None))
    return content.encode() if isinstance(content, str) else content


def find_person(record: StudyRecord, name: str) -> tuple[str, bool]:
    """The participant of this name or whom another site calls so, or the wizard; and whether it is a wizard.

    A wizard whom the design still names is refused, as the design would keep the name.
    """
    if name in record.state.participants:
        return name, False
    for event in record.of_kind("joined"):
        if event.body.get("external") == name:
            return event.person, False
    if name in record.design.wizard.names:
        where = f"{record.folder / FILE}"
        raise UsageError(f"{where} still names {name}: remove the name from [wizard], or replace it, and then erase")
    if name in record.state.wizards:
        return name, True
    raise UsageError(f'there is no participant or wizard "{name}" in {record.folder}')
