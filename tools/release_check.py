"""The end of `make release-check`: the README in a clean clone, speed against the last figures, fresh coverage."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOWER = 1.25
"""From how many times its published figure on a measurement counts as slower."""

ROW = re.compile(r"^\| (.+?) \| ([\d.e+-]+) \|", re.MULTILINE)
COVERAGE = {
    "docs/coverage.md": (
        "src/demur/core/stats",
        "src/demur/returns/measures.py",
        "src/demur/returns/comparison/compare.py",
        "src/demur/returns/comparison/contrasts.py",
    ),
    "docs/gold_coverage.md": ("src/demur/gold_standard/curves.py", "src/demur/gold_standard/fitting.py"),
}
"""Each page of simulated coverage with the code whose changes can make it untrue."""


def readme_problems() -> list[str]:
    """Commands and Python of the README that fail in a clean clone with a clean home."""
    with tempfile.TemporaryDirectory(prefix="demur-clone-") as work:
        clone, home = Path(work, "demur"), Path(work, "home")
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = {**os.environ, "HOME": str(home)}
        readme = (clone / "README.md").read_text(encoding="utf-8")
        (lists,) = re.findall(r"^```json\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        (clone / "lists.jsonl").write_text(lists, encoding="utf-8")
        typed = re.findall(r"^(?:\$ demur (.*)|demur (add .*?)(?: *#.*)?)$", readme, re.MULTILINE)
        lines = ["make demo", *(f".venv/bin/demur {shown or added}" for shown, added in typed)]
        for place, code in enumerate(re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)):
            (clone / f"block{place}.py").write_text(code, encoding="utf-8")
            lines.append(f".venv/bin/python block{place}.py")
        failed = []
        for line in lines:
            done = subprocess.run(line, shell=True, cwd=clone, env=environment, capture_output=True, text=True)
            print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {line}", flush=True)
            failed += [] if done.returncode == 0 else [f"README, {line}: {done.stderr.strip()}"]
        return failed


def slower_figures() -> list[str]:
    """Figures of `make bench` that are well above those published in benchmarks/README.md."""
    published = {name: float(value) for name, value in ROW.findall((ROOT / "benchmarks" / "README.md").read_text())}
    subprocess.run([sys.executable, "-m", "benchmarks"], cwd=ROOT, check=True)
    measured = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    pairs = [(line["name"], line["value"], published.get(line["name"])) for line in measured]
    return [
        f"slower: {name}, {now:.3g} against {then:.3g}" for name, now, then in pairs if then and now > SLOWER * then > 0
    ]


def stale_pages() -> list[str]:
    """Coverage pages that are older than the code they are about."""

    def changed(*paths: str) -> int:
        done = subprocess.run(
            ["git", "log", "-1", "--format=%ct", "--", *paths], cwd=ROOT, capture_output=True, text=True
        )
        return int(done.stdout or 0)

    return [
        f"{page} is older than {', '.join(code)}" for page, code in COVERAGE.items() if changed(page) < changed(*code)
    ]


def main() -> None:
    """Prints what was found; a README command that fails ends with 1, the other findings are to be looked at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-bench", action="store_true", help="leave out the benchmarks, which take about 20 minutes")
    asked = parser.parse_args()
    problems = readme_problems()
    remarks = [*stale_pages(), *([] if asked.no_bench else slower_figures())]
    print("\n".join(["", *(f"look at: {one}" for one in remarks), *problems]) or "nothing to look at")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
