"""A small study for tests."""

from pathlib import Path

from demur.study.design import WozDesign, parse_design

SMALL = """
name = "small"
title = "A small study"
seed = 3
consent = "Do you agree?"

[input]
levels = [0.0, 0.4]
nbest = 2

[interface]
opening = "Hello."
latency = "fixed"
delay = 4.0
connect = 2.0
turns = 3
minutes = 5.0

[[performers]]
name = "wizard"
kind = "wizard"

[[performers]]
name = "guide"
kind = "relevance"
pairs = "pairs.jsonl"
components = ["gate"]

[pairing]
wait = 30.0
away = 20.0

[wizard]
names = ["anna", "ben"]

[[tasks]]
id = "hours"
goal = "Find out when they open."
answers = ["10 am"]

[[tasks]]
id = "price"
goal = "Find out what it costs."
answers = ["free"]

[[responses]]
id = "hours"
text = "We open at 10 am."
key = "1"

[[responses]]
id = "confirm"
text = "Did you ask about {topic}?"

[slots]
topic = ["hours", "price"]

[[dialogue]]
id = "easy"
text = "It was easy."

[[after]]
id = "remarks"
text = "Anything?"
kind = "text"
required = false
"""

PAIRS = "".join(
    f'{{"input": "{text}", "target": "{label}", "answer": "{label} it is"}}\n'
    for text, label in (
        ("when do you open", "hours"),
        ("are you open today", "hours"),
        ("what does it cost", "price"),
        ("how much is a ticket", "price"),
    )
)


def small(**changes: str) -> WozDesign:
    """The study, with lines replaced by others."""
    text = SMALL
    for old, new in changes.items():
        line = next(one for one in text.splitlines() if one.startswith(f"{old} = "))
        text = text.replace(line, f"{old} = {new}", 1)
    return parse_design(text)


def write_small(folder: Path, text: str = SMALL) -> Path:
    """The study in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    (folder / "pairs.jsonl").write_text(PAIRS, encoding="utf-8")
    return folder
