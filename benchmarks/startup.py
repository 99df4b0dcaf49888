"""What it costs to import the package and to ask the command for help."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Line, answer, cheapest

BAR = 0.3
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
    yield Line("import demur: heavy modules loaded", _heavy_after("import demur"), "modules", 0, ", ".join(HEAVY))
    yield Line("demur --help: heavy modules loaded", _heavy_after(HELP), "modules", 0, ", ".join(HEAVY))


def _heavy_after(code: str) -> int:
    printed = answer(f"{code}\nimport sys\nprint('\\n' + ' '.join(sys.modules))")
    return len(set(HEAVY) & set(printed.splitlines()[-1].split()))
