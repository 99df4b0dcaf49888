"""Names that try to be more than text: one list for every command, page and format."""

import json
from pathlib import Path

PAYLOADS = {
    "clears the screen": "\x1b[2J\x1b]0;title\x07",
    "a control of eight bits": "red \x9b31m",
    "turns the text around": "\u202egnp.exe",
    "a form feed": "a\x0cb",
    "a line of its own": "x\nPASS forged",
    "an order to a build": "::error::x",
    "an order to another build": "##vso[task.complete result=Failed]",
    "a script": "<script>window.harmed = 1</script>",
    "an image": '"><img src=x onerror="window.harmed = 1">',
    "a link": "[a](javascript:window.harmed=1)",
    "a formula": "=cmd|'/c calc'!A1",
    "a backslash at the end": "ends in \\",
    "a tab at the end": "ends in\t",
    "an end of data": "]]> --> </script>",
    "a pattern": "^.*$",
    "a star": "*",
    "no character": "\ufffe",
}
NAMES = list(PAYLOADS.values())

COMMANDS = {
    "score": ("score", "answers.jsonl", "--by", NAMES[-1]),
    "compare": ("compare", "answers.jsonl"),
    "threshold": ("threshold", "answers.jsonl", "--system", "one " + "".join(NAMES), "--max-nonreturn", "0.2"),
    "classes": ("classes", "answers.jsonl"),
    "validate": ("validate", "answers.jsonl"),
    "nbest": ("nbest", "lists.jsonl"),
    "gold": ("gold", "trials.jsonl", "--x", "noise", "--y", "done", "--gold", f"wizards {NAMES[7]}", "--no-checks"),
    "report": ("report", "answers.jsonl", "lists.jsonl"),
}
"""A command of every question, on the logs of `write_logs`."""


def write_logs(folder: Path) -> Path:
    """Writes logs of every question in which all that is named is a payload."""
    answers = [
        {
            "id": f"{name}{k}",
            "system": ("one " if system else "two ") + "".join(NAMES),
            "target": name,
            "prediction": name if (k + system) % 3 else NAMES[0],
            "confidence": round((7 * k + place + system) % 29 / 29, 3),
            NAMES[-1]: NAMES[place % 3],
        }
        for system in (0, 1)
        for place, name in enumerate(NAMES)
        for k in range(3)
    ]
    lists = [
        {
            "id": name,
            "system": "".join(NAMES),
            "dialogue": NAMES[place // 3],
            "reference": [f"say={name}"],
            "hypotheses": [
                {"items": [f"say={name}"], "confidence": 0.6},
                {"items": [f"say={NAMES[0]}"], "confidence": 0.3},
            ],
        }
        for place, name in enumerate(NAMES)
    ]
    trials = [
        {"performer": name, "subject": f"{name}{who}", "noise": k / 5, "done": int(k / 5 < least)}
        for name, least in ((f"wizards {NAMES[7]}", 0.95), ("".join(NAMES), 0.55))
        for who in range(4)
        for k in range(6)
    ]
    for kind, rows in (("answers", answers), ("lists", lists), ("trials", trials)):
        (folder / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
