"""Builds wheel and sdist, and tries both in clean environments: every Python there is, lowest and newest dependencies.

`python tools/environments.py` needs uv, which `make release-check` installs. A Python that uv neither finds nor can
fetch is skipped, and named at the end.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections import Counter
from itertools import product
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = ("lowest-direct", "highest")
EXTRAS = ("all", "duckdb")
SOURCES = ("gruut", "gruut-lang-en")
"""Packages that are published as source only; all others are taken as wheels, or not at all."""

CORPUS_LIMIT = 2e6
"""Bytes that a file inside the wheel may have."""

ROW = '{"id": %d, "target": "yes", "prediction": "%s", "confidence": 0.%d}\n'
LOG = ROW % (1, "yes", 9) + ROW % (2, "no", 4)
BASE = ("doctor", "score log.jsonl --json", "compare log.jsonl other.jsonl -o page.md", "verify-engine --rows 300")
WITH_EXTRAS = (
    "demo --quiet --logs logs -o demo/index.html",
    "report logs/words-noisy.jsonl logs/mixed-noisy.jsonl --replicates 50 -o report.html",
    "score logs/phones-noisy.jsonl -o plot.png",
    "recalibrate fit logs/words-noisy.jsonl -o map.json",
)
"""Commands that need figures, scikit-learn and phones; `verify-engine` needs DuckDB where it is."""


def run(*command: str | Path, **options: object) -> str:
    """What a command prints; ends the script where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, made in a folder."""
    run("uv", "build", "--quiet", "--out-dir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    large = [one for one in zipfile.ZipFile(wheel).infolist() if one.file_size > CORPUS_LIMIT]
    if large:
        sys.exit(f"too large for the wheel: {', '.join(one.filename for one in large)}")
    return wheel, sdist


def is_there(python: str) -> bool:
    """Whether a version of Python is here, or uv can fetch it."""
    found = subprocess.run(["uv", "python", "find", python], capture_output=True).returncode == 0
    return found or subprocess.run(["uv", "python", "install", python], capture_output=True).returncode == 0


def size_of(folder: Path) -> str:
    """Megabytes of the packages in a folder, and the three largest; without compiled files, made at the first start."""
    sizes: Counter[str] = Counter()
    for one in folder.rglob("*"):
        if one.is_file() and one.suffix != ".pyc":
            package = one.relative_to(folder).parts[0].partition(".")[0]
            sizes[package] += one.stat().st_size
    largest = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in sizes.most_common(3))
    return f"{sizes.total() / 1e6:.0f} MB ({largest})"


def lower_bounds() -> dict[str, str]:
    """The lowest version that demur allows of each package it asks for, in the base or an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *(text for texts in project["optional-dependencies"].values() for text in texts)]
    return dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(texts), re.MULTILINE))


def above(installed: str, bounds: dict[str, str]) -> list[str]:
    """Packages, as `uv pip freeze` prints them, whose version is not their lower bound.

    >>> above("numpy==2.1.0\\nscipy==1.13.0\\nclick==8.1", {"numpy": "2.0", "scipy": "1.13"})
    ['numpy 2.1.0 for 2.0']
    """
    pairs = [line.split("==") for line in installed.splitlines() if "==" in line]
    known = [(name, version, bounds[name]) for name, version in pairs if name in bounds]
    return [f"{name} {now} for {low}" for name, now, low in known if not re.fullmatch(rf"{re.escape(low)}(\.0)*", now)]


def install(package: Path, home: Path, resolution: str, extras: tuple[str, ...]) -> None:
    """Installs a package; what it asks for is named too, as the lowest versions are taken of what is named only."""
    wheels = [flag for name in lower_bounds() if name not in SOURCES for flag in ("--only-binary", name)]
    wanted = f"{package}[{','.join(extras)}]" if extras else package
    named = [flag for extra in extras for flag in ("--extra", extra)]
    options = ["--quiet", "--python", home, "--resolution", resolution, *wheels]
    run("uv", "pip", "install", *options, wanted, "--requirement", ROOT / "pyproject.toml", *named)


def serve(home: Path, python: Path) -> None:
    """Starts the workbench, asks for its first page, and ends it."""
    command = [python, "-m", "demur", "serve", "--port", "0", "--no-token", "--store", home / "store"]
    with subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            said = ""
            while (address := re.search(r"http://[\w.:]+/", said)) is None:
                if not (line := server.stdout.readline()):  # type: ignore[union-attr]
                    sys.exit(f"demur serve ended:\n{said}")
                said += line
            with urlopen(address[0]) as page:
                if b"demur" not in page.read():
                    sys.exit("the workbench has no first page")
        finally:
            server.terminate()


def attempt(package: Path, python: str, resolution: str, folder: Path, extras: tuple[str, ...]) -> tuple[str, str]:
    """Installs a package into a clean environment, runs commands there; gives its size, and the versions in it."""
    home = folder / f"{package.suffix[1:]}-{python}-{resolution}{'-extras' if extras else ''}"
    run("uv", "venv", "--quiet", "--python", python, home)
    binary = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    install(package, home, resolution, extras)
    for name in ("log.jsonl", "other.jsonl"):
        (home / name).write_text(LOG, encoding="utf-8")
    for command in (*BASE, *(WITH_EXTRAS if extras else ())):
        run(binary, "-m", "demur", *command.split(), cwd=home)
    if extras:
        serve(home, binary)
    versions = run("uv", "pip", "freeze", "--quiet", "--exclude", "demur", "--python", home)
    return size_of(next(home.glob("[Ll]ib*/**/site-packages"))), versions


def main() -> None:
    """Tries every combination; ends with 1 at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", help="may be repeated; all supported ones unless given")
    parser.add_argument("--extras", action="store_true", help=f"try demur[{','.join(EXTRAS)}] as well")
    asked = parser.parse_args()
    if shutil.which("uv") is None:
        sys.exit("uv is not on the path: pip install uv, or run make release-check, which installs it")
    with tempfile.TemporaryDirectory(prefix="demur-environments-") as work:
        folder = Path(work)
        wheel, sdist = build(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB; {sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB")
        tried = {python: is_there(python) for python in asked.python or PYTHONS}
        packages = [(wheel, ()), (sdist, ()), *([(wheel, EXTRAS)] if asked.extras else [])]
        combinations = product((python for python, there in tried.items() if there), RESOLUTIONS, packages)
        for python, resolution, (package, extras) in combinations:
            size, installed = attempt(package, python, resolution, folder, extras)
            what = f"{package.suffix[1:]}{list(extras) or ''} on Python {python}, {resolution} dependencies"
            print(f"ok  {what}: {size}", flush=True)
            if resolution != "highest" and (higher := above(installed, lower_bounds())):
                print(f"    above the lower bound, of which there is no wheel: {', '.join(higher)}", flush=True)
        for python, there in tried.items():
            if not there:
                print(f"SKIPPED Python {python}: not here, and uv cannot fetch it")


if __name__ == "__main__":
    main()
