"""What is told of a run in lists of runs, so that nobody has to read its rows for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import polars as pl

from demur.data.dialogues import Dialogues
from demur.data.nbest import NBest
from demur.data.selection import JUDGED, MOST_SLICES
from demur.data.trials import Trials

BULKY = ("input", "nbest")
"""Columns of responses that are shown with a row, and never sliced by."""


def of_responses(frame: pl.DataFrame) -> dict[str, Any]:
    """How many were answered, right and so on, and by which columns rows can be sliced."""
    weight = frame["weight"].to_numpy()
    wrong = (frame["answered"] & ~frame["right"]).to_numpy()
    total = float(weight.sum())
    return {
        **{name: int(frame[name].sum()) for name in ("answered", "right", "failed", "out_of_scope")},
        "forced_error": float(weight[wrong].sum()) / total if total else None,
        "has_input": "input" in frame.columns,
        "has_nbest": "nbest" in frame.columns,
        "has_ids": frame["id"].null_count() < frame.height,
        "weighted": bool((weight != 1).any()),
        "dialogues": frame["dialogue"].drop_nulls().n_unique(),
        "slices": slices_in(frame),
    }


def slices_in(frame: pl.DataFrame) -> list[str]:
    """The columns of at most 200 values, of those that were kept along."""
    others = [name for name in frame.columns if name not in (*JUDGED, *BULKY)]
    return [name for name in others if 0 < frame[name].drop_nulls().n_unique() <= MOST_SLICES]


def of_lists(found: NBest, columns: Collection[str]) -> dict[str, Any]:
    """How many utterances and hypotheses there are, and of whom."""
    return {
        "utterances": len(found),
        "hypotheses": int(found.act.size),
        "systems": list(found.systems),
        "dialogues": found.frame["dialogue"].drop_nulls().n_unique(),
        "has_asr": any(name in columns for name in ("asr", "asr_hyps")),
        "has_cnet": any(name in columns for name in ("cnet", "confusion_network")),
    }


def of_dialogues(found: Dialogues) -> dict[str, Any]:
    """What the outcome is, and how it came out on average."""
    return {
        "outcome": found.outcome,
        "dialogues": len(found),
        "mean": float(np.mean(found.frame["outcome"].to_numpy())),
        "grouped": found.grouped,
    }


def of_trials(found: Sequence[Trials]) -> dict[str, Any]:
    """What was measured, in which studies, and who performed."""
    performers = dict.fromkeys(name for one in found for name in one.performers)
    return {
        "x": found[0].x_name,
        "y": found[0].y_name,
        "trials": sum(map(len, found)),
        "studies": [one.study for one in found],
        "performers": list(performers),
    }
