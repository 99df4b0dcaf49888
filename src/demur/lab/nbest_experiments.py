"""The experiments of Thomson et al. (2008): scorers by measure, noise and list length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.notebook import drawn, presented
from demur.core.show.presentation import Presentation, Table, drawing
from demur.core.show.results import Shown, Step, register, silent
from demur.errors import DataError
from demur.nbest_lists.asr.networks import Sentence
from demur.nbest_lists.asr.scorers import SENTENCES, Ear, Heard, Hypothesiser, Parse, ScoredActs, parse_each, scored_all
from demur.nbest_lists.evaluate import NBestEvaluations, NBestSettings, evaluate_nbest
from demur.nbest_lists.presentation import AS_PERCENT, NAMES, measure_table, part_table, parts_frame, shown
from demur.nbest_lists.registry import NBEST
from demur.nbest_lists.table import NBest, NBestReading, Recording, joined, renamed


@dataclass(slots=True)
class Listener:
    """Remembers the sentences of every utterance and the acts of every sentence, so that each is found once."""

    parse: Parse
    ear: Ear = "auto"
    sentences: int = SENTENCES
    _heard: dict[str, list[Sentence]] = field(default_factory=dict)
    _acts: dict[str, str] = field(default_factory=dict)

    def by(self, scorer: str, *, kept: int | None = None) -> Scoring:
        """What makes lists by a scorer from the first sentences of each utterance."""
        return Scoring(self, scorer, self.sentences if kept is None else kept)

    def heard(self, scorer: str, utterances: Sequence[Heard]) -> list[list[Sentence]]:
        """The sentences of utterances."""
        ear = Hypothesiser(scorer, self.parse, self.sentences, self.ear)
        for where, asr, cnet in utterances:
            if where not in self._heard:
                self._heard[where] = ear.sentences_of(where, asr, cnet)
        return [self._heard[where] for where, _, _ in utterances]

    def understood(self, lists: Sequence[Sequence[Sentence]]) -> dict[str, str]:
        """The acts of all sentences, of which only new ones are parsed."""
        texts = dict.fromkeys(sentence.text for one in lists for sentence in one)
        self._acts |= parse_each(self.parse, [text for text in texts if text not in self._acts])
        return self._acts


@dataclass(frozen=True, slots=True)
class Scoring:
    """One scorer over so many sentences of each utterance."""

    listener: Listener
    scorer: str
    kept: int

    def __call__(self, utterances: Sequence[Heard]) -> list[ScoredActs]:
        """The acts of each utterance with their confidences, best first."""
        lists = [one[: self.kept] for one in self.listener.heard(self.scorer, utterances)]
        acts = self.listener.understood(lists)
        names = [where for where, _, _ in utterances]
        return scored_all(lists, scorer=self.scorer, parse=acts.__getitem__, where=names)


PAPER_SCORERS = ("const", "avgword", "infev", "infev-tp1")
"""The scorers of Table 3."""

KEPT = (1, 2, 3, 5, 10, 20, 50, 100)
"""Numbers of sentences of figure 1."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Recorded utterances, what turns them into lists, and how the lists are read and evaluated."""

    recording: Recording
    listener: Listener
    reading: NBestReading
    settings: NBestSettings

    def lists(self, scorer: str, *, kept: int | None = None) -> NBest:
        """The lists that a scorer makes of so many sentences."""
        made = replace(self.reading, hypothesise=self.listener.by(scorer, kept=kept))
        table = self.recording.lists(made)
        _refuse_shared_ids(table)
        return renamed(table, scorer)


def _refuse_shared_ids(table: NBest) -> None:
    """Refuse utterances that several systems have: all are one system here, and each counts once."""
    named = table.frame.filter(pl.col("id").is_not_null() & pl.col("id").is_duplicated())
    if named.height:
        raise DataError(
            f'the utterance "{named["id"][0]}" is in several systems: {", ".join(table.systems)}',
            fix="--where system=NAME keeps one, or give the files of one",
        )


@dataclass(frozen=True, eq=False)
class ScorerTable(Shown):
    """Scorers by measures (Table 3), all from the same sentences."""

    evaluations: NBestEvaluations
    sentences: int

    def frame(self) -> pl.DataFrame:
        """A row per scorer and measure."""
        return self.evaluations.frame().rename({"system": "scorer"}).drop("slice")

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
        return {"sentences": self.sentences, "systems": [one.to_dict() for one in self.evaluations]}


@dataclass(frozen=True, eq=False)
class LengthSweep(Shown):
    """Measures by condition and number of sentences kept (figure 1): `condition`, `kept`, `measure`, value, ends."""

    rows: pl.DataFrame
    scorer: str
    by: str | None
    level: float

    def of(self, measure: str) -> pl.DataFrame:
        """The rows of one measure, for its figure."""
        return self.rows.filter(pl.col("measure") == measure).select("condition", "kept", "value", "low", "high")

    def frame(self) -> pl.DataFrame:
        """A row per condition, number of sentences and measure."""
        return self.rows

    def to_dict(self) -> dict[str, Any]:
        """The sweep as plain values."""
        return {"scorer": self.scorer, "by": self.by, "rows": self.rows.to_dicts()}


def scorer_table(
    trial: Trial, *, scorers: Sequence[str] = PAPER_SCORERS, kept: int = 5, step: Step = silent
) -> ScorerTable:
    """Every measure of the lists that scorers make of the same sentences."""
    tables = []
    for done, scorer in enumerate(scorers):
        step(f"scoring by {scorer}", done, 2 * len(scorers))
        tables.append(trial.lists(scorer, kept=kept))
    return ScorerTable(evaluate_nbest(joined(tables), settings=trial.settings, step=step), kept)


def length_sweep(
    trial: Trial,
    *,
    by: str | None,
    scorer: str = "infev",
    kept: Sequence[int] = KEPT,
    step: Step = silent,
) -> LengthSweep:
    """Every measure for each number of sentences kept, in each condition."""
    rows: list[dict[str, Any]] = []
    for done, most in enumerate(kept):
        step(f"keeping {most} sentences", done, len(kept))
        lists = trial.lists(scorer, kept=most)
        for one in evaluate_nbest(lists, by=by, settings=trial.settings):
            if (one.part is None) != (by is None):
                continue
            condition = "all" if one.part is None else one.part.partition("=")[2]
            rows += [
                {"condition": condition, "kept": most, "measure": key, "value": f.value, "low": f.low, "high": f.high}
                for key, f in one.figures.items()
            ]
    rows.sort(key=_ice_of_longest(rows, max(kept)))
    return LengthSweep(pl.DataFrame(rows, infer_schema_length=None), scorer, by, trial.settings.level)


def _ice_of_longest(rows: list[dict[str, Any]], longest: int) -> Callable[[dict[str, Any]], float]:
    """Orders conditions from the easiest to the hardest, by the ICE of the longest lists."""
    ice = {row["condition"]: row["value"] for row in rows if row["measure"] == "ice" and row["kept"] == longest}
    return lambda row: float(np.nan_to_num(ice[row["condition"]], nan=np.inf))


TABLE_3 = ("wser", "oracle", "nce", "ice")
"""Measures that the figures of experiments show."""


def of_scorers(table: ScorerTable) -> Presentation:
    """Scorers by measures, as in Table 3."""
    systems = table.evaluations
    return Presentation(
        title="Confidence scorers",
        sentences=tuple(_scorer_sentences(table)),
        tables=(measure_table(systems), part_table(systems)),
        figures=(
            drawing("nbest_lists.charts.scorer_chart", scorer_rows(table), level=systems[0].settings.level),
            drawing("nbest_lists.charts.parts_chart", parts_frame(systems), level=systems[0].settings.level),
        ),
        data=table.frame,
        document=table.to_dict(),
        notes=(f"every scorer has the same {table.sentences} best sentences of each utterance",),
        signatures=tuple(one.signature for one in systems),
    )


def _scorer_sentences(table: ScorerTable) -> list[str]:
    told = []
    for key in TABLE_3:
        defined = [one for one in table.evaluations if one.figures[key].defined]
        if not defined:
            continue
        sign = 1 if NBEST[key].better == "lower" else -1
        best = min(defined, key=lambda one: sign * one.figures[key].value)
        same = [one.system for one in defined if one.figures[key].value == best.figures[key].value]
        whom = best.system if len(same) == 1 else f"{', '.join(same[:-1])} and {same[-1]} alike"
        end = "lowest" if NBEST[key].better == "lower" else "highest"
        told.append(f"{NAMES[key]} is {end} for {whom} ({shown(key, best.figures[key].value)}).")
    return told


def scorer_rows(table: ScorerTable) -> pl.DataFrame:
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
        tables=tuple(_length_table(sweep, key) for key in ("ice", "wser", "oracle", "nce")),
        figures=tuple(
            drawing("nbest_lists.charts.sweep_chart", sweep_rows(sweep, key), **sweep_titles(sweep, key))
            for key in ("ice", "wser", "oracle", "nce")
        ),
        data=sweep.frame,
        document=sweep.to_dict(),
        notes=(f"lists made by {sweep.scorer} from the best sentences of each utterance",),
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
    }


def _length_sentences(sweep: LengthSweep) -> list[str]:
    """For each measure, whether longer lists make it better or worse; nothing where all lists are equally long."""
    lengths = sorted(sweep.rows["kept"].unique())
    if len(lengths) < 2:
        return []
    ends = f"From {lengths[0]} to {lengths[-1]} sentences"
    return [
        f"{ends} {NAMES[key].partition(',')[0]} {_way(_changes(sweep, key))}."
        for key in ("ice", "wser", "oracle", "nce")
    ]


def _changes(sweep: LengthSweep, key: str) -> list[float]:
    """By how much a measure gets worse from the shortest lists to the longest, in each condition; NaN if undefined."""
    sign = 1 if NBEST[key].better == "lower" else -1
    parts = sweep.of(key).sort("kept").partition_by("condition", maintain_order=True)
    return [sign * (float(part["value"][-1]) - float(part["value"][0])) for part in parts]


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


def _length_table(sweep: LengthSweep, key: str) -> Table:
    rows = sweep.of(key)
    lengths = sorted(rows["kept"].unique())
    cells = []
    for part in rows.partition_by("condition", maintain_order=True):
        values = dict(part.select("kept", "value").iter_rows())
        cells.append((str(part["condition"][0]), *(shown(key, values[length]) for length in lengths)))
    return Table(
        f"{NAMES[key].partition(',')[0]} by number of sentences",
        ((sweep.by or "condition").replace("_", " "), *map(str, lengths)),
        tuple(cells),
    )


register(
    ScorerTable,
    chart=drawn(
        "nbest_lists.charts.scorer_chart", scorer_rows, lambda table: {"level": table.evaluations[0].settings.level}
    ),
    page=presented(of_scorers),
)
register(
    LengthSweep,
    chart=drawn("nbest_lists.charts.sweep_chart", lambda sweep: sweep.of("ice"), sweep_titles),
    page=presented(of_lengths),
)
