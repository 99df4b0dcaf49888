"""The experiments of Thomson et al. (2008): scorers by measure, noise and list length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.io.columns import nearest
from demur.core.options import Sampling
from demur.core.show.html import drawn
from demur.core.show.numbers import listed
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import Shown, Step, register, silent
from demur.errors import DataError
from demur.importers import importer_of
from demur.importers.kinds import columns_of
from demur.importers.reading import read_table
from demur.lab.corpora import restaurant, restaurant_folder
from demur.nbest_lists.asr.networks import Sentence
from demur.nbest_lists.asr.scorers import SENTENCES, Ear, Heard, Hypothesiser, Parse, ScoredActs, parse_each, scored_all
from demur.nbest_lists.evaluate import NONE, NBestEvaluations, NBestSettings, evaluate_nbest
from demur.nbest_lists.floors import floor_figure, floor_table
from demur.nbest_lists.measures import NBEST
from demur.nbest_lists.presentation import (
    AS_PERCENT,
    NAMES,
    chart_facts,
    measure_table,
    part_table,
    parts_frame,
    show_value,
)
from demur.nbest_lists.reward import Smooths, of_smooths, oracle_curves, reward_curves
from demur.nbest_lists.scales import SCALES, tuned
from demur.nbest_lists.table import NBest, NBestReading, Recording, join_tables, read_nbest, recorded, rename_system

BUNDLED = "the bundled study: a simulated restaurant guide, 650 dialogues (demur.lab.corpora)"


@dataclass(slots=True)
class SentenceCache:
    """Remembers the sentences of every utterance and the acts of every sentence, so that each is found once."""

    parse: Parse
    ear: Ear = "auto"
    sentences: int = SENTENCES
    _sentences: dict[str, list[Sentence]] = field(default_factory=dict)
    _acts: dict[str, str] = field(default_factory=dict)

    def score(self, scorer: str, kept: int, scale: float, utterances: Sequence[Heard]) -> list[ScoredActs]:
        """The acts of each utterance with their confidences, best first, by a scorer over so many sentences."""
        ear = Hypothesiser(scorer, self.parse, self.sentences, self.ear)
        names = [where for where, _, _ in utterances]
        for where, asr, cnet in utterances:
            if where not in self._sentences:
                self._sentences[where] = ear.sentences_of(where, asr, cnet)
        lists = [self._sentences[where][:kept] for where in names]
        texts = dict.fromkeys(sentence.text for one in lists for sentence in one)
        self._acts |= parse_each(self.parse, [text for text in texts if text not in self._acts])
        return scored_all(lists, scorer=scorer, parse=self._acts.__getitem__, where=names, scale=scale)


@dataclass(frozen=True, slots=True)
class RecordedStudy:
    """Recorded utterances, what turns them into lists, and how the lists are read and evaluated."""

    recording: Recording
    cache: SentenceCache
    reading: NBestReading
    settings: NBestSettings
    notes: tuple[str, ...] = ()
    """What to say of the data."""
    scale: float | Literal["tuned"] = 1.0
    """What log posteriors are multiplied by."""

    @classmethod
    def read(
        cls, files: Sequence[Any], reading: NBestReading, parse: Parse, settings: NBestSettings, sentences: int
    ) -> RecordedStudy:
        """The utterances of files, or of the bundled study where there are none."""
        reading = replace(reading, hypothesise=Hypothesiser("const", parse))
        recording = recorded(*study_files(files), reading=reading)
        notes = () if files else (BUNDLED,)
        return cls(recording, SentenceCache(parse, "network", sentences), reading, settings, notes)

    @property
    def method_notes(self) -> tuple[str, ...]:
        """The floor, and how uncertainty is computed."""
        how = self.settings
        scaled = () if self.scale in (1, "tuned") else (f"acoustic scale {self.scale:g}",)
        return (*scaled, how.note, Sampling(how.level, how.replicates, how.seed).note)

    def lists(self, scorer: str, *, kept: int) -> NBest:
        """The lists that a scorer makes of so many sentences, at the study's scale or at one tuned for them."""
        if self.scale != "tuned":
            return self._lists_at(self.scale, scorer, kept)
        by_scale = {scale: self._lists_at(scale, scorer, kept) for scale in SCALES}
        lists, found = tuned(by_scale, floor=self.settings.least, seed=self.settings.seed)
        return replace(lists, notes=(*lists.notes, found.note))

    def _lists_at(self, scale: float, scorer: str, kept: int) -> NBest:
        """All systems are one, so that each utterance counts once."""
        score = partial(self.cache.score, scorer, kept, scale)
        table = self.recording.lists(replace(self.reading, hypothesise=score))
        several = table.frame.filter(pl.col("id").is_not_null() & pl.col("id").is_duplicated())
        if several.height:
            raise DataError(
                f'the utterance "{several["id"][0]}" is in several systems: {", ".join(table.systems)}',
                fix="--where system=NAME keeps one, or give the files of one",
            )
        return rename_system(table, scorer)


def study_files(files: Sequence[Any]) -> tuple[Any, ...]:
    """The files of a user, or those of the bundled study."""
    return tuple(files) or (restaurant_folder() / "turns.jsonl.gz",)


@dataclass(frozen=True, eq=False, repr=False)
class ScorerTable(Shown):
    """Scorers by measures (Table 3), all from the same sentences."""

    evaluations: NBestEvaluations
    sentences: int
    notes: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row per scorer and measure."""
        return self.evaluations.frame().rename({"system": "scorer"}).drop("slice")

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
        systems = [one.to_dict() for one in self.evaluations]
        how = {"sentences": self.sentences, "floor": self.evaluations[0].settings.least}
        return {**how, "systems": systems, "notes": list(self.notes), "warnings": []}


@dataclass(frozen=True, eq=False, repr=False)
class LengthSweep(Shown):
    """Measures by condition and number of sentences kept (figure 1): `condition`, `kept`, `measure`, value, ends."""

    rows: pl.DataFrame
    scorer: str
    by: str | None
    level: float
    floor: float
    notes: tuple[str, ...] = ()

    def of(self, measure: str) -> pl.DataFrame:
        """The rows of one measure, for its figure."""
        return self.rows.filter(pl.col("measure") == measure).select("condition", "kept", "value", "low", "high")

    def frame(self) -> pl.DataFrame:
        """A row per condition, number of sentences and measure."""
        return self.rows

    def to_dict(self) -> dict[str, Any]:
        """The sweep as plain values."""
        rows = self.rows.to_dicts()
        how = {"scorer": self.scorer, "by": self.by, "floor": self.floor}
        return {**how, "rows": rows, "notes": list(self.notes), "warnings": []}


@dataclass(frozen=True, eq=False, repr=False)
class CurveExperiment(Shown):
    """One quantity of dialogues against another (figures 2 and 3)."""

    smooths: Smooths
    data_notes: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the curves and of the data."""
        return (*of_smooths(self.smooths).notes, *self.data_notes)

    def frame(self) -> pl.DataFrame:
        """The curves, a row per group and place."""
        return self.smooths.frame()

    def to_dict(self) -> dict[str, Any]:
        """The curves as plain values."""
        return {**self.smooths.to_dict(), "notes": list(self.notes), "warnings": []}


def scorer_table(study: RecordedStudy, *, scorers: Sequence[str], kept: int = 5, step: Step = silent) -> ScorerTable:
    """Every measure of the lists that scorers make of the same sentences."""
    tables = []
    for done, scorer in enumerate(scorers):
        step(f"scoring by {scorer}", done, 2 * len(scorers))
        tables.append(study.lists(scorer, kept=kept))
    lists = join_tables(tables)
    found = evaluate_nbest(lists, settings=study.settings, step=step)
    same = f"every scorer has the same {kept} best sentences of each utterance"
    return ScorerTable(found, kept, (same, *study.notes, *lists.notes, *study.method_notes))


@dataclass(frozen=True, eq=False, repr=False)
class ConditionTable(Shown):
    """Four conditions, each better than the one before, by measures (Table 2)."""

    evaluations: NBestEvaluations
    """One for each condition, from the worst to the best."""
    notes: tuple[str, ...] = ()

    def orders(self, key: str) -> bool:
        """Whether a measure gets better from each condition to the next."""
        values = np.array([one.figures[key].value for one in self.evaluations])
        steps = np.diff(values)
        return bool((steps < 0).all() if NBEST[key].better == "lower" else (steps > 0).all())

    def frame(self) -> pl.DataFrame:
        """A row per condition and measure."""
        return self.evaluations.frame().rename({"system": "condition"}).drop("slice")

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
        conditions = [one.to_dict() for one in self.evaluations]
        orders = {key: self.orders(key) for key in TABLE_3}
        how = {"floor": self.evaluations[0].settings.least, "orders_all_conditions": orders}
        return {**how, "systems": conditions, "notes": list(self.notes), "warnings": []}


def condition_table(
    study: RecordedStudy, *, by: str, few: int, many: int, values: tuple[str, str] | None, step: Step = silent
) -> ConditionTable:
    """Every measure under noise, with a poor scorer, with few sentences, and with none of these faults.

    `values` are those of the noisy and of the clean condition in the column `by`; the conditions of highest and lowest
    ICE where they are not given.
    """
    step("scoring", 0, 3)
    whole = study.lists("infev", kept=many)
    known = whole.frame[by].cast(pl.String).fill_null(NONE)
    noisy, clean = values or _extremes(whole, by, study.settings)
    for name in (noisy, clean):
        if name not in known.unique():
            raise DataError(f'no utterance has "{name}" in {by}', fix=nearest(name, sorted(known.unique())))
    parts = [(noisy, "infev", many), (clean, "const-tp1", many), (clean, "infev", few), (clean, "infev", many)]
    tables = []
    for done, (condition, scorer, kept) in enumerate(parts):
        step(f"scoring by {scorer}", done, 2 * len(parts))
        lists = whole if (scorer, kept) == ("infev", many) else study.lists(scorer, kept=kept)
        rows = (lists.frame[by].cast(pl.String).fill_null(NONE) == condition).to_numpy()
        tables.append(rename_system(lists.taken(rows), f"{condition} {scorer} {kept}"))
    together = join_tables(tables)
    found = evaluate_nbest(together, settings=study.settings, step=step)
    return ConditionTable(found, (*study.notes, *together.notes, *study.method_notes))


def _extremes(lists: NBest, by: str, settings: NBestSettings) -> tuple[str, str]:
    """The conditions of highest and of lowest ICE."""
    parts = evaluate_nbest(lists, by=by, settings=replace(settings, replicates=50))
    ice = {one.part.partition("=")[2]: one.figures["ice"].value for one in parts if one.part is not None}
    ordered = sorted((name for name in ice if not math.isnan(ice[name])), key=lambda name: ice[name])
    if len(ordered) < 2:
        raise DataError(f"two conditions are needed, and {by} has {len(ordered)}", fix="name another column with `by`")
    return ordered[-1], ordered[0]


def length_sweep(
    study: RecordedStudy, *, by: str | None, scorer: str, kept: Sequence[int], step: Step = silent
) -> LengthSweep:
    """Every measure for each number of sentences kept, in each condition."""
    rows: list[dict[str, Any]] = []
    for done, most in enumerate(kept):
        step(f"keeping {most} sentences", done, len(kept))
        lists = study.lists(scorer, kept=most)
        for one in evaluate_nbest(lists, by=by, settings=study.settings):
            if (one.part is None) != (by is None):
                continue
            condition = "all" if one.part is None else one.part.partition("=")[2]
            rows += [
                {"condition": condition, "kept": most, "measure": key, "value": f.value, "low": f.low, "high": f.high}
                for key, f in one.figures.items()
            ]
    # conditions from the easiest to the hardest, by the ICE of the longest lists
    ice = {row["condition"]: row["value"] for row in rows if row["measure"] == "ice" and row["kept"] == max(kept)}
    rows.sort(key=lambda row: float(np.nan_to_num(ice[row["condition"]], nan=np.inf)))
    recording = study.recording
    notes = (
        f"lists made by {scorer} from the best sentences of each utterance",
        *study.notes,
        *recording.notes,
        *(note for part, _ in recording.sources for note in part.layout.notes),
        *study.method_notes,
    )
    return LengthSweep(
        pl.DataFrame(rows, infer_schema_length=None), scorer, by, study.settings.level, study.settings.least, notes
    )


def oracle_experiment(
    study: RecordedStudy, *, scorers: Sequence[str], kept: int, step: Step = silent
) -> CurveExperiment:
    """ICE of dialogues against the oracle error of their lists, by scorer."""
    lists = join_tables([study.lists(scorer, kept=kept) for scorer in scorers])
    found = evaluate_nbest(lists, settings=replace(study.settings, replicates=50), step=step)
    return CurveExperiment(oracle_curves(found), (*study.notes, *lists.notes, *study.method_notes))


def reward_experiment(
    files: Sequence[Any],
    reading: NBestReading,
    *,
    dialogues: str | Path | None,
    group: str | None,
    measure: str,
    settings: NBestSettings,
    step: Step = silent,
) -> CurveExperiment:
    """Reward of dialogues against a measure of their lists, by group."""
    apart = dialogues is not None or not files
    keep = () if apart else ("success", "turns", *(() if group is None else (group,)))
    try:
        table = read_nbest(*study_files(files), reading=replace(reading, keep=keep))
    except DataError as fault:
        lacking = [name for name in ("success", "turns") if keep and f'no column "{name}"' in str(fault)]
        if lacking:
            fix = "`dialogues` names a table with dialogue, success and turns"
            there = ", ".join(columns_there(files))
            rule = f"the lists have no column {listed(lacking)}{there and f'; there are {there}'}"
            raise DataError(rule, fix=fix) from None
        raise
    if dialogues is not None:
        outcomes = read_table(dialogues)
    else:
        outcomes = dialogues_in(table.frame, group) if files else restaurant().dialogues
    found = evaluate_nbest(table, settings=replace(settings, replicates=50), step=step)
    step("fitting curves", 1, 2)
    curves = reward_curves(found, outcomes, group=group, measure=measure)
    return CurveExperiment(curves, (*(() if files else (BUNDLED,)), *table.notes, settings.note))


def columns_there(files: Sequence[Any]) -> list[str]:
    """The columns of files that say more of utterances than their lists do; of corpora those of the first row."""
    names: dict[str, None] = {}
    for file in files:
        importer = importer_of(file) if isinstance(file, str | Path) else None
        if importer is not None:
            names.update(dict.fromkeys(next(iter(importer.read(Path(file), ontology=None)), {})))
        elif isinstance(file, str | Path):
            names.update(dict.fromkeys(columns_of(file)))
    return [
        name for name in names if name not in ("id", "dialogue", "reference", "hypotheses", "asr", "cnet", "weight")
    ]


def dialogues_in(frame: pl.DataFrame, group: str | None) -> pl.DataFrame:
    """What the lists say of each dialogue; refuse what differs within one."""
    columns = [name for name in frame.columns if name == group or name not in ("id", "system", "weight")]
    rows = frame[columns].filter(pl.col("dialogue").is_not_null()).unique(maintain_order=True)
    unlike = rows.filter(pl.col("dialogue").is_duplicated())
    if unlike.height:
        first = unlike.filter(pl.col("dialogue") == unlike["dialogue"][0])
        name = next(column for column in columns if first[column].n_unique() > 1)
        values = ", ".join(f'"{value}"' for value in first[name].unique(maintain_order=True).head(3))
        raise DataError(
            f"{name} must be the same in all utterances of a dialogue; there are {values}",
            where=f'dialogue "{unlike["dialogue"][0]}":',
            fix="`dialogues` names a table with a row for each dialogue",
        )
    return rows


TABLE_3 = ("wser", "oracle", "nce", "ice")
FIGURE_1 = ("ice", "wser", "oracle", "nce")
"""Measures that the figures of experiments show."""


def of_scorers(table: ScorerTable) -> Presentation:
    """Scorers by measures, as in Table 3."""
    systems = table.evaluations
    return Presentation(
        title="Confidence scorers",
        sentences=tuple(_scorer_sentences(table)),
        tables=(measure_table(systems), part_table(systems), floor_table(systems)),
        figures=(
            drawing("nbest_lists.charts.scorer_chart", scorer_rows(table), **chart_facts(systems)),
            drawing("nbest_lists.charts.parts_chart", parts_frame(systems), **chart_facts(systems)),
            floor_figure(systems),
        ),
        data=table.frame,
        document=table.to_dict(),
        notes=table.notes,
        signatures=tuple(one.signature for one in systems),
    )


def of_conditions(table: ConditionTable) -> Presentation:
    """Conditions by measures, as in Table 2."""
    systems = table.evaluations
    return Presentation(
        title="Measures in four conditions, each better than the one before",
        sentences=(_condition_sentence(table),),
        tables=(_condition_rows(table), measure_table(systems), floor_table(systems)),
        figures=(
            drawing("nbest_lists.charts.scorer_chart", scorer_rows(table), **_condition_facts(table)),
            floor_figure(systems),
        ),
        data=table.frame,
        document=table.to_dict(),
        notes=table.notes,
        signatures=tuple(one.signature for one in systems),
    )


def _condition_facts(table: ConditionTable) -> dict[str, Any]:
    return {**chart_facts(table.evaluations), "title": _condition_sentence(table).rstrip(".")}


def _condition_sentence(table: ConditionTable) -> str:
    right = [NAMES[key].partition(",")[0] for key in TABLE_3 if table.orders(key)]
    wrong = [NAMES[key].partition(",")[0] for key in TABLE_3 if not table.orders(key)]
    if not right:
        return "No measure gets better from each condition to the next."
    end = f"; {listed(wrong)} {'does' if len(wrong) == 1 else 'do'} not" if wrong else ""
    return f"{listed(right)} {'gets' if len(right) == 1 else 'get'} better from each condition to the next{end}."


def _condition_rows(table: ConditionTable) -> ResultTable:
    """The table as the paper prints it: a row per condition, a column per measure."""
    rows = tuple(
        (one.system, *(show_value(key, one.figures[key].value) for key in TABLE_3)) for one in table.evaluations
    )
    last = ("better at every step", *("yes" if table.orders(key) else "no" for key in TABLE_3))
    return ResultTable(
        "From the worst condition to the best",
        ("condition, scorer, sentences", *(NAMES[key].partition(",")[0] for key in TABLE_3)),
        (*rows, last),
    )


def _scorer_sentences(table: ScorerTable) -> list[str]:
    sentences = []
    for key in TABLE_3:
        defined = [one for one in table.evaluations if one.figures[key].defined]
        if not defined:
            continue
        sign = 1 if NBEST[key].better == "lower" else -1
        best = min(defined, key=lambda one: sign * one.figures[key].value)
        same = [one.system for one in defined if one.figures[key].value == best.figures[key].value]
        whom = best.system if len(same) == 1 else f"{', '.join(same[:-1])} and {same[-1]} alike"
        end = "lowest" if NBEST[key].better == "lower" else "highest"
        sentences.append(f"{NAMES[key]} is {end} for {whom} ({show_value(key, best.figures[key].value)}).")
    return sentences


def scorer_rows(table: ScorerTable | ConditionTable) -> pl.DataFrame:
    """What the figure of scorers shows, a row per scorer and measure."""
    return pl.DataFrame(
        [
            {
                "scorer": one.system,
                "measure": NAMES[key].partition(",")[0],
                "value": one.figures[key].value,
                "low": one.figures[key].low,
                "high": one.figures[key].high,
                "better": NBEST[key].better,
                "percent": key in AS_PERCENT,
            }
            for one in table.evaluations
            for key in TABLE_3
        ]
    )


def of_lengths(sweep: LengthSweep) -> Presentation:
    """Measures by condition and number of sentences, as in figure 1."""
    return Presentation(
        title="Measures by number of sentences",
        sentences=tuple(_length_sentences(sweep)),
        tables=tuple(_length_table(sweep, key) for key in FIGURE_1),
        figures=tuple(
            drawing("nbest_lists.charts.sweep_chart", sweep_rows(sweep, key), **sweep_titles(sweep, key)).named(key)
            for key in FIGURE_1
        ),
        data=sweep.frame,
        document=sweep.to_dict(),
        notes=sweep.notes,
    )


def sweep_rows(sweep: LengthSweep, key: str) -> pl.DataFrame:
    """The rows of one measure as its figure shows them, in percent where tables do."""
    scale = 100.0 if key in AS_PERCENT else 1.0
    return sweep.of(key).with_columns(pl.col("value", "low", "high") * scale)


def sweep_titles(sweep: LengthSweep, key: str = "ice") -> dict[str, Any]:
    """What the figure of one measure is told beside its rows."""
    return {
        "what": "sentences",
        "measure_title": NAMES[key].partition(",")[0] + (", %" if key in AS_PERCENT else ""),
        "condition_title": (sweep.by or "").replace("_", " "),
        "level": sweep.level,
        "floor": None if key in AS_PERCENT else sweep.floor,
    }


def _length_sentences(sweep: LengthSweep) -> list[str]:
    """For each measure, whether longer lists make it better or worse; nothing where all lists are equally long."""
    lengths = sorted(sweep.rows["kept"].unique())
    if len(lengths) < 2:
        return []
    sentences = []
    for key in FIGURE_1:
        sign = 1 if NBEST[key].better == "lower" else -1
        parts = sweep.of(key).sort("kept").partition_by("condition", maintain_order=True)
        # by how much the measure gets worse in each condition; NaN where it is undefined
        changes = [sign * (float(part["value"][-1]) - float(part["value"][0])) for part in parts]
        name = NAMES[key].partition(",")[0]
        sentences.append(f"From {lengths[0]} to {lengths[-1]} sentences {name} {_way(changes)}.")
    return sentences


def _way(changes: Sequence[float]) -> str:
    """Which way a measure goes.

    >>> _way([-0.5, -0.1]), _way([0.0]), _way([-0.5, 0.1])
    ('gets better', 'stays as it is', 'gets better in 1 of 2 conditions, worse in 1')
    """
    if any(math.isnan(change) for change in changes):
        return "cannot be followed: somewhere it is undefined"
    better, worse = sum(change < 0 for change in changes), sum(change > 0 for change in changes)
    if not better and not worse:
        return "stays as it is"
    if max(better, worse) == len(changes):
        return "gets better" if better else "gets worse"
    return f"gets better in {better} of {len(changes)} conditions, worse in {worse}"


def _length_table(sweep: LengthSweep, key: str) -> ResultTable:
    rows = sweep.of(key)
    lengths = sorted(rows["kept"].unique())
    cells = []
    for part in rows.partition_by("condition", maintain_order=True):
        values = dict(part.select("kept", "value").iter_rows())
        cells.append((str(part["condition"][0]), *(show_value(key, values[length]) for length in lengths)))
    return ResultTable(
        f"{NAMES[key].partition(',')[0]} by number of sentences",
        ((sweep.by or "condition").replace("_", " "), *map(str, lengths)),
        tuple(cells),
    )


def of_curves(found: CurveExperiment) -> Presentation:
    """One quantity of dialogues against another, as in figures 2 and 3."""
    return replace(of_smooths(found.smooths), document=found.to_dict(), notes=found.notes)


register(
    CurveExperiment,
    chart=lambda found, **options: found.smooths.chart(**options),
    present=of_curves,
)
register(
    ScorerTable,
    chart=drawn("nbest_lists.charts.scorer_chart", scorer_rows, lambda table: chart_facts(table.evaluations)),
    present=of_scorers,
)
register(
    ConditionTable,
    chart=drawn("nbest_lists.charts.scorer_chart", scorer_rows, _condition_facts),
    present=of_conditions,
)
register(
    LengthSweep,
    chart=drawn("nbest_lists.charts.sweep_chart", lambda sweep: sweep.of("ice"), sweep_titles),
    present=of_lengths,
)
