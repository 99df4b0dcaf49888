"""Tables to add, and a store to add them to."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROWS = (
    {"id": "q1", "input": "Where is it?", "target": "place", "prediction": "place", "confidence": 0.9, "domain": "a"},
    {"id": "q2", "input": "Who are you?", "target": "name", "prediction": "place", "confidence": 0.8, "domain": "b"},
    {"id": "q3", "input": "Sing!", "target": None, "prediction": "song", "confidence": 0.7, "domain": "a"},
    {"id": "q4", "input": "When?", "target": "time", "prediction": "time", "confidence": 0.4, "domain": "b"},
    {"id": "q5", "input": "Hm", "target": "time", "prediction": None, "confidence": None, "domain": "a"},
    {"id": "q6", "input": "What?", "target": "name", "prediction": "time", "confidence": 0.2, "domain": None},
)
"""At 0.5: q1 is right, q2 wrong, q3 out of scope and returned, q4 missed, q5 and q6 withheld."""

LISTS = (
    {
        "id": "u1",
        "dialogue": "d1",
        "reference": "inform(food=thai)",
        "hypotheses": [{"act": "inform(food=thai)", "confidence": 0.7}, {"act": "bye()", "confidence": 0.2}],
    },
    {
        "id": "u2",
        "dialogue": "d1",
        "reference": ["bye", "food=thai"],
        "hypotheses": [{"items": ["bye"], "confidence": 0.25}],
    },
)

DIALOGUES = ({"dialogue": "d1", "pre": 0.5, "post": 0.75, "turns": 4}, {"dialogue": "d2", "pre": 0.2, "post": 1.0})

TRIALS = tuple(
    {"performer": who, "wer": x / 10, "done": int(x < limit)}
    for who, limit in (("wizard", 8), ("A", 5), ("B", 3))
    for x in range(10)
)


def write(path: Path, rows: Iterable[dict[str, Any]] = ROWS) -> Path:
    """Rows as lines of JSON."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answers(seed: int, n: int = 30) -> Sequence[dict[str, Any]]:
    """Rows that differ from those of every other seed."""
    return [
        {"id": k, "target": "yes", "prediction": "yes" if (k + seed) % 3 else "no", "confidence": (k + seed % 97) / 200}
        for k in range(n)
    ] + [{"id": f"s{seed}", "target": "no", "prediction": "no", "confidence": 0.5}]


def folders(root: Path) -> list[str]:
    """The runs that lie in a store."""
    return sorted(entry.name for entry in (root / "runs").iterdir())


def left_over(root: Path) -> list[Path]:
    """What lies under staging."""
    return list((root / "staging").iterdir())
