"""A simulated study of a tutor with known truth, and the logs of the BEETLE II tutor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Sized
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from demur.core.io.columns import ALIASES, mapping_of, nearest, resolve
from demur.core.io.files import table_of
from demur.core.io.tables import FALSE, TRUE, Cells, Request, first
from demur.errors import DataError, UsageError

LABELS = ("correct", "pc_incomplete", "contradictory", "irrelevant", "non_content")
SPEECH_ACTS = ("answer", "help request", "social", "uninterpretable")

DIAGNOSIS = ("matched", "contradictory", "extra", "not_mentioned")
_KEPT = ("id", "target", "system", "dialogue", "weight")
COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "speech_act": ("speech-act", "speech act", "act"),
        "consistency": ("consistent",),
        "matched": (),
        "contradictory": (),
        "extra": (),
        "not_mentioned": ("not-mentioned", "not mentioned"),
        **{part: ALIASES[part] for part in _KEPT},
        "target": ("gold", "label"),
    }
)
"""The canonical columns of a log, each with the other names it may go by."""

_CONSISTENCY = {
    **dict.fromkeys(("consistent", *TRUE), True),
    **dict.fromkeys(("inconsistent", *FALSE), False),
}
_NOTHING = ("", "[]", "{}", "null", "none", *FALSE)
_joint = re.compile(r"[\s_-]+")


def beetle_label(
    speech_act: str,
    *,
    consistent: bool = True,
    matched: Sized | bool = False,
    contradictory: Sized | bool = False,
    extra: Sized | bool = False,  # noqa: ARG001  # logged with the others, but no rule asks for it
    not_mentioned: Sized | bool = False,
) -> str | None:
    """The label for what the tutor logged, or None where it is unclassified.

    A field of the diagnosis is a list or text of the parts found, or whether there were any. The rules, of which the
    first that fits decides:

    1. an uninterpretable utterance is unclassified;
    2. a help request or a social act is `non_content`;
    3. an answer that is inconsistent, or has something contradictory, is `contradictory`;
    4. an answer with nothing matched is `irrelevant`;
    5. an answer with something not mentioned is `pc_incomplete`;
    6. what is left, with something matched and nothing missing, is `correct`.

    The paper leaves open: the order of the rules, except that it names them in the order 3, 5, 4, and that 4 and 5
    exclude each other; rule 6, which it does not spell out; and what extra parts do, which here is nothing. It takes
    "nothing matched" to mean that the whole expected answer is in not-mentioned, so it does not say what becomes of an
    answer where both are empty; by its words it is `irrelevant`. In rules 1 and 2 the diagnosis does not count.

    >>> beetle_label("answer", matched=["closed path"], not_mentioned=["battery"])
    'pc_incomplete'
    >>> beetle_label("help request"), beetle_label("uninterpretable")
    ('non_content', None)
    """
    act = _act(speech_act)
    if act is None:
        fix = "the speech acts are " + ", ".join(SPEECH_ACTS)
        raise DataError("must be a speech act of BEETLE II", where="speech_act", got=speech_act, fix=fix)
    if act == "uninterpretable":
        return None
    if act != "answer":
        return "non_content"
    if not consistent or contradictory:
        return "contradictory"
    if not matched:
        return "irrelevant"
    return "pc_incomplete" if not_mentioned else "correct"


def beetle_responses(data: object, *, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """A table of responses from a table of logs, in a frame, in columns or in rows; null is a rejected utterance.

    The logs need `speech_act`, `matched`, `contradictory` and `not_mentioned`; `consistency` and `extra` are read where
    they are there. Fields of the diagnosis hold lists or texts of the parts found, counts, or yes and no; an empty cell
    is nothing found. `consistency` is consistent or inconsistent, or yes or no; an empty cell is consistent. An
    answer in whose diagnosis everything is empty is refused, as it cannot be told from one whose diagnosis was lost.
    The columns id, target, system, dialogue and weight are carried along. `columns` maps canonical
    columns to those of the data.

    >>> log = {"id": 1, "target": "correct", "speech_act": "answer", "matched": 2, "contradictory": 0}
    >>> beetle_responses([{**log, "not_mentioned": 1}]).row(0, named=True)
    {'id': '1', 'target': 'correct', 'prediction': 'pc_incomplete'}
    """
    table = table_of(data, Request())
    found = resolve(table.columns, dict(columns or {}), where=f"{table.name}:", aliases=COLUMNS).columns
    for part in ("speech_act", "matched", "contradictory", "not_mentioned"):
        if part not in found:
            fix = f"{nearest(part, table.columns)}; {mapping_of(part, '...')}"
            raise DataError(f'there is no column "{part}"', where=f"{table.name}:", fix=fix)
    cells = Cells(table, found)
    written = cells.text("speech_act")
    act = pl.Series([None if text is None else _act(text) for text in written], dtype=pl.String)
    place = first(act.is_null())
    if place is not None:
        fix = nearest(written[place] or "", SPEECH_ACTS)
        raise cells.fault("speech_act", place, "must be a speech act of BEETLE II", got=written[place], fix=fix)
    text = cells.text("consistency").str.strip_chars().str.to_lowercase().replace({"": None})
    consistent = text.replace_strict(_CONSISTENCY, default=None, return_dtype=pl.Boolean)
    place = first(text.is_not_null() & consistent.is_null())
    if place is not None:
        raise cells.fault("consistency", place, "must be consistent or inconsistent", got=text[place])
    consistent = consistent.fill_null(True)
    parts = pl.DataFrame([cells.text(part).str.strip_chars().str.to_lowercase().alias(part) for part in DIAGNOSIS])
    diagnosis = parts.select(pl.all().is_not_null() & ~pl.all().is_in(_NOTHING).fill_null(True))
    place = first((act == "answer") & consistent & ~diagnosis.select(pl.any_horizontal(pl.all())).to_series())
    if place is not None:
        rule = "an answer must have something in its diagnosis"
        raise DataError(rule, where=f"{cells.place(place)}:", fix="what was expected is matched or not mentioned")
    rows = zip(act, consistent, diagnosis.iter_rows(named=True), strict=True)
    labels = [beetle_label(act, consistent=consistent, **parts) for act, consistent, parts in rows]
    kept = [cells.text(part) for part in _KEPT if part in found]
    return pl.DataFrame([*kept, pl.Series("prediction", labels, dtype=pl.String)])


def _act(text: str) -> str | None:
    """The speech act that a text names, in whatever case and however its words are joined."""
    act = _joint.sub(" ", text.strip().casefold())
    return act if act in SPEECH_ACTS else None


Row = dict[str, Any]

TRUTH: Mapping[str, float] = {
    "(Intercept)": 0.5,
    "predicted-pc_incomplete-actual-contradictory": -0.6,
    "recall.correct": 0.4,
}
"""What the gain follows from, by the names that features have in models of outcomes."""

NOISE = 0.06
"""The standard deviation of the chance in a gain."""

SHARES: Mapping[str, float] = dict(zip(LABELS, (0.43, 0.24, 0.24, 0.03, 0.06), strict=True))
"""How often students' answers are of each label."""

INTERPRETERS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "tutor": {
        "correct": (0.55, 0.20, 0.05, 0.01, 0.00, 0.19),
        "pc_incomplete": (0.04, 0.54, 0.05, 0.03, 0.00, 0.34),
        "contradictory": (0.03, 0.25, 0.30, 0.03, 0.00, 0.39),
        "irrelevant": (0.01, 0.35, 0.03, 0.20, 0.02, 0.39),
        "non_content": (0.02, 0.12, 0.00, 0.02, 0.45, 0.39),
    },
    "cautious": {
        "correct": (0.55, 0.17, 0.04, 0.01, 0.00, 0.23),
        "pc_incomplete": (0.04, 0.50, 0.05, 0.03, 0.00, 0.38),
        "contradictory": (0.03, 0.12, 0.30, 0.03, 0.00, 0.52),
        "irrelevant": (0.01, 0.30, 0.03, 0.20, 0.02, 0.44),
        "non_content": (0.02, 0.08, 0.00, 0.02, 0.45, 0.43),
    },
    "eager": {
        "correct": (0.64, 0.25, 0.08, 0.02, 0.01, 0.00),
        "pc_incomplete": (0.08, 0.72, 0.15, 0.05, 0.00, 0.00),
        "contradictory": (0.06, 0.44, 0.45, 0.05, 0.00, 0.00),
        "irrelevant": (0.05, 0.50, 0.10, 0.32, 0.03, 0.00),
        "non_content": (0.05, 0.20, 0.02, 0.05, 0.68, 0.00),
    },
    "majority": dict.fromkeys(LABELS, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
}
"""For each label of an answer, how often an interpreter takes it for each of `LABELS`, and how often it rejects it."""

_ANSWERS = 90
_SECOND_VISITS = 5
_STUDENTS_DIFFER = 0.45


def study(seed: int = 0, dialogues: int = 60) -> tuple[list[Row], list[Row]]:
    """The rows of the turns, as the tutor took them, and of the dialogues; every fifth student comes a second time.

    >>> turns, held = study(dialogues=6)
    >>> list(turns[0]), [row["student"] for row in held]
    (['id', 'dialogue', 'target', 'prediction'], ['s01', 's02', 's03', 's04', 's05', 's05'])
    >>> sorted(held[0])
    ['dialogue', 'post', 'pre', 'student']
    """
    turns: list[Row] = []
    held: list[Row] = []
    every = _SECOND_VISITS + 1
    for number in range(dialogues):
        # of six dialogues the last two are of one student
        student = number - number // every - (number % every == _SECOND_VISITS) + 1
        name = f"d{number + 1:02}"
        rng = np.random.default_rng([seed, number])
        targets = rng.choice(LABELS, size=int(rng.poisson(_ANSWERS)) + 1, p=list(SHARES.values())).tolist()
        predictions = interpret(targets, "tutor", rng)
        turns += rows_of(name, targets, predictions)
        gain = expected_gain(targets, predictions) + NOISE * rng.standard_normal()
        pre = float(np.round(rng.uniform(0.2, 0.6), 2))
        post = float(np.clip(np.round(pre + gain * (1 - pre), 4), 0.0, 1.0))
        held.append({"dialogue": name, "student": f"s{student:02}", "pre": pre, "post": post})
    return turns, held


def answers(turns: Sequence[Row], interpreter: str, seed: int = 0) -> list[Row]:
    """What another interpreter would have taken the same answers for."""
    if interpreter not in INTERPRETERS:
        raise UsageError(f'there is no interpreter "{interpreter}"; there are {", ".join(INTERPRETERS)}')
    dialogues: dict[str, list[str]] = {}
    for turn in turns:
        dialogues.setdefault(turn["dialogue"], []).append(turn["target"])
    rows: list[Row] = []
    for number, (name, targets) in enumerate(dialogues.items()):
        rows += rows_of(name, targets, interpret(targets, interpreter, np.random.default_rng([seed, 1, number])))
    return rows


def interpret(targets: Sequence[str], interpreter: str, rng: np.random.Generator) -> list[str | None]:
    """What an interpreter takes the answers of one student for; None is a rejection.

    It errs differently with each student: the chances of every label are multiplied by a random factor, once.
    """
    chances = {}
    for label, usual in INTERPRETERS[interpreter].items():
        weights = np.array(usual) * np.exp(_STUDENTS_DIFFER * rng.standard_normal(len(usual)))
        sums = (weights / weights.sum()).cumsum()
        chances[label] = sums / sums[-1]
    options = [*LABELS, None]
    drawn = rng.random(len(targets))
    return [options[chances[label].searchsorted(one, "right")] for label, one in zip(targets, drawn, strict=True)]


def expected_gain(targets: Sequence[str], predictions: Sequence[str | None]) -> float:
    """The gain that `TRUTH` gives for one dialogue, before chance; a feature it does not have counts as 0.

    >>> round(expected_gain(["correct", "contradictory", "correct"], ["correct", "pc_incomplete", None]), 3)
    0.1
    """
    pairs = list(zip(predictions, targets, strict=True))
    wrong = sum(one is not None and one != right for one, right in pairs)
    right = targets.count("correct")
    share = pairs.count(("pc_incomplete", "contradictory")) / wrong if wrong else 0.0
    recall = pairs.count(("correct", "correct")) / right if right else 0.0
    intercept, price, worth = TRUTH.values()
    return intercept + price * share + worth * recall


def rows_of(dialogue: str, targets: Sequence[str], predictions: Sequence[str | None]) -> list[Row]:
    """The turns of a dialogue as a table of responses."""
    return [
        {"id": f"{dialogue}/{place}", "dialogue": dialogue, "target": target, "prediction": prediction}
        for place, (target, prediction) in enumerate(zip(targets, predictions, strict=True))
    ]
