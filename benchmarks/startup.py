"""What it costs to import the package, to ask the command for help, and to score a small log."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import Line, answer, cheapest

BAR = 0.3
SCORE_BAR = 2.5
"""Most CPU of scoring a log of 500 rows, in units of importing NumPy and Polars."""
HEAVY = ("numpy", "polars", "scipy", "narwhals", "pandas", "pyarrow", "sklearn", "altair", "vl_convert", "duckdb")
COMMAND = str(Path(sys.executable).with_name("demur"))
HELP = """
import sys
from demur.apps.cli.main import run
sys.argv = ["demur", "--help"]
try:
    run()
except SystemExit:
    pass
"""


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    commands = {
        "nothing": [sys.executable, "-c", "pass"],
        "import demur": [sys.executable, "-c", "import demur"],
        "demur --help": [COMMAND, "--help"],
    }
    took = cheapest(commands, repeats=9)
    bare = f"a bare Python takes {took['nothing'].wall:.3f} s"
    for name in ("import demur", "demur --help"):
        yield Line(f"{name}: CPU", took[name].cpu, "s", BAR, bare)
        yield Line(f"{name}: wall clock", took[name].wall, "s", BAR, bare)
    yield _score_line()
    yield Line("import demur: heavy modules loaded", _heavy_after("import demur"), "modules", 0, ", ".join(HEAVY))
    yield Line("demur --help: heavy modules loaded", _heavy_after(HELP), "modules", 0, ", ".join(HEAVY))


def _score_line() -> Line:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        rows = [{"id": k, "target": "a", "prediction": "aaab"[k % 4], "confidence": k % 97 / 97} for k in range(500)]
        log.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        commands = {
            "bare": [sys.executable, "-c", "import numpy, polars"],
            "score": [COMMAND, "score", str(log), "--json"],
        }
        took = cheapest(commands, repeats=9)
    ratio, bare = took["score"].cpu / took["bare"].cpu, f"importing NumPy and Polars takes {took['bare'].cpu:.3f} s"
    return Line("demur score of 500 rows: CPU over NumPy and Polars", ratio, "x", SCORE_BAR, bare)


def _heavy_after(code: str) -> int:
    printed = answer(f"{code}\nimport sys\nprint('\\n' + ' '.join(sys.modules))")
    return len(set(HEAVY) & set(printed.splitlines()[-1].split()))
