"""What simulated dialogues show: a row for each condition, sentences on managers, and the figure of rewards."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from demur.core.arrays import Array
from demur.core.show.html import drawn
from demur.core.show.numbers import percent, short, signed, with_interval
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import register
from demur.core.stats.intervals import Figure, student, wilson
from demur.lab.dialogue.simulate import Simulation

KEYS = ("manager", "noise", "confidences", "threshold")
"""The columns of a table of dialogues that define a condition."""


def mean_figure(values: Array | pl.Series, level: float) -> Figure:
    """A mean with Student's interval.

    >>> mean_figure(pl.Series([1.0, 2.0, 3.0]), 0.95).high.__round__(2)
    4.48
    """
    column = pl.Series("value", values).drop_nulls().drop_nans()
    if column.is_empty():
        return Figure(math.nan, why="there are no values")
    mean = float(column.mean())  # type: ignore[arg-type]  # of numbers
    if len(column) < 2:
        return Figure(mean)
    reach = student(level, len(column) - 1) * float(column.std() or 0.0) / math.sqrt(len(column))  # type: ignore[arg-type]
    return Figure(mean, mean - reach, mean + reach)


def paired_rows(dialogues: pl.DataFrame, level: float) -> list[dict[str, Any]]:
    """By how much each manager earns more than the first, on the same users, at each noise and with the same knobs."""
    rows = []
    others = [key for key in KEYS if key != "manager"]
    for key, part in dialogues.partition_by(others, as_dict=True, maintain_order=True).items():
        first, *rest = part["manager"].unique(maintain_order=True)
        base = part.filter(pl.col("manager") == first).select("user", base="reward")
        for manager in rest:
            own = part.filter(pl.col("manager") == manager).join(base, on="user", maintain_order="left")
            figure = mean_figure(own["reward"] - own["base"], level)
            rows.append(
                {**dict(zip(others, key, strict=True)), "manager": manager, "beside": first, **figure.to_dict()}
            )
    return rows


def condition_rows(dialogues: pl.DataFrame, level: float) -> list[dict[str, Any]]:
    """How the dialogues of each condition ended, with intervals."""
    rows = []
    for key, part in dialogues.partition_by(KEYS, as_dict=True, maintain_order=True).items():
        rate = float(part["success"].mean())  # type: ignore[arg-type]  # of flags
        low, high = wilson(rate, part.height, level)
        words = part["words"].sum() if part["words"].null_count() < part.height else 0
        rows.append(
            {
                **dict(zip(KEYS, key, strict=True)),
                "dialogues": part.height,
                "success": Figure(rate, low, high).to_dict(),
                "turns": mean_figure(part["turns"], level).to_dict(),
                "reward": mean_figure(part["reward"], level).to_dict(),
                "concept_efficiency": mean_figure(part["concept_efficiency"], level).to_dict(),
                "seconds": mean_figure(part["seconds"], level).to_dict(),
                "wrong": int(part["wrong"].sum()) / max(int(part["turns"].sum()), 1),
                "wer": int(part["word_errors"].sum()) / words if words else None,
            }
        )
    return rows


def reward_rows(dialogues: pl.DataFrame, level: float) -> pl.DataFrame:
    """The mean reward of each manager at each noise, for the figure."""
    rows = [{"group": row["manager"], "x": row["noise"], **row["reward"]} for row in condition_rows(dialogues, level)]
    return pl.DataFrame(rows, infer_schema_length=None).select("group", "x", "value", "low", "high")


def of_simulation(simulation: Simulation) -> Presentation:
    """The conditions of a simulation."""
    rows = condition_rows(simulation.dialogues, simulation.level)
    return Presentation(
        title="Simulated dialogues",
        sentences=(*condition_sentences(rows), *paired_sentences(simulation)),
        tables=(condition_table(rows),),
        figures=(drawing("lab.dialogue.charts.band_chart", *chart_rows(simulation), **chart_titles(simulation)),),
        data=simulation.frame,
        document=simulation.to_dict(),
        notes=simulation.notes,
    )


def chart_rows(simulation: Simulation) -> tuple[pl.DataFrame]:
    """What the figure shows."""
    return (reward_rows(simulation.dialogues, simulation.level),)


def chart_titles(simulation: Simulation) -> dict[str, Any]:
    """The titles of the figure."""
    by = simulation.plan.conditions[0].channel.by
    return {
        "x_title": "noise: share of turns whose best hypothesis is wrong" if by == "acts" else "noise: word error rate",
        "y_title": "mean reward (20 for success, less 1 a turn)",
        "title": "Reward of simulated dialogues by noise",
        "level": simulation.level,
    }


def condition_sentences(rows: list[dict[str, Any]]) -> list[str]:
    """For each noise, the rewards of the managers, best first."""
    sentences = []
    for noise in dict.fromkeys(row["noise"] for row in rows):
        own = sorted((row for row in rows if row["noise"] == noise), key=lambda row: -row["reward"]["value"])
        parts = [f"{_name(row, rows)} {_figure_cell(row['reward'])}" for row in own]
        sentences.append(f"Mean reward at noise {noise:g}: {', '.join(parts)}.")
    return sentences


def paired_sentences(simulation: Simulation) -> list[str]:
    """Which managers earn significantly more or less than the first."""
    rows = paired_rows(simulation.dialogues, simulation.level)
    sentences = []
    for manager in dict.fromkeys(row["manager"] for row in rows):
        own = [row for row in rows if row["manager"] == manager and row["low"] is not None]
        parts = [f"{_figure_cell(row, write=signed)} at noise {row['noise']:g}" for row in own]
        sentences.append(f"{manager} beside {own[0]['beside']}, on the same users: {', '.join(parts)}.")
    return sentences


def _name(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """A manager, with what tells its condition from others at the same noise."""
    several = [key for key in KEYS[2:] if len({other[key] for other in rows}) > 1]
    return " ".join([row["manager"], *(f"{key} {row[key]}" for key in several)])


def _figure_cell(figure: dict[str, Any], **write: Any) -> str:
    value, low, high = (math.nan if figure[key] is None else figure[key] for key in ("value", "low", "high"))
    return with_interval(value, low, high, **write)


def condition_table(rows: list[dict[str, Any]]) -> ResultTable:
    """A row for each condition."""
    cells = [
        (
            _name(row, rows),
            f"{row['noise']:g}",
            f"{row['dialogues']:,}",
            _figure_cell(row["success"], write=percent),
            _figure_cell(row["turns"]),
            _figure_cell(row["reward"]),
            short(row["concept_efficiency"]["value"] or math.nan),
            short(row["seconds"]["value"] or math.nan),
            percent(row["wrong"]),
            "–" if row["wer"] is None else percent(row["wer"]),
        )
        for row in rows
    ]
    head = ("manager", "noise", "dialogues", "success", "turns", "reward")
    more = ("concept efficiency", "seconds", "best hypothesis wrong", "word error rate")
    brief = ResultTable("Dialogues by condition", head, tuple(row[:6] for row in cells))
    return ResultTable("Dialogues by condition", (*head, *more), tuple(cells), brief=brief)


register(
    Simulation,
    chart=drawn("lab.dialogue.charts.band_chart", lambda one: chart_rows(one)[0], chart_titles),
    present=of_simulation,
)
