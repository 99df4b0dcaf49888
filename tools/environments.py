"""Builds wheel and sdist, and tries both in clean environments: every Python there is, lowest and newest dependencies.

`python tools/environments.py` needs uv. A Python that uv neither finds nor can fetch is skipped, and named at the end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = ("lowest-direct", "highest")
CORPUS_LIMIT = 2e6
"""Bytes that a file inside the wheel may have."""

ROW = '{"id": %d, "target": "yes", "prediction": "%s", "confidence": 0.%d}\n'
LOG = ROW % (1, "yes", 9) + ROW % (2, "no", 4)


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


def attempt(package: Path, python: str, resolution: str, folder: Path, extras: str) -> tuple[str, str]:
    """Installs a package into a clean environment, runs the command there; gives its size, and the versions in it."""
    home = folder / f"{package.suffix[1:]}-{python}-{resolution}{'-all' if extras else ''}"
    run("uv", "venv", "--quiet", "--python", python, home)
    binaries = home / ("Scripts" if os.name == "nt" else "bin")
    wanted = f"{package}{extras}"
    run("uv", "pip", "install", "--quiet", "--python", home, "--resolution", resolution, wanted)
    (home / "log.jsonl").write_text(LOG, encoding="utf-8")
    for command in (["doctor"], ["score", "log.jsonl", "--json"], *([["demo", "--quiet"]] if extras else [])):
        run(binaries / "python", "-m", "demur", *command, cwd=home)
    versions = run("uv", "pip", "freeze", "--quiet", "--exclude", "demur", "--python", home)
    return size_of(next(home.glob("[Ll]ib*/**/site-packages"))), versions


def main() -> None:
    """Tries every combination; ends with 1 at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", help="may be repeated; all supported ones unless given")
    parser.add_argument("--extras", action="store_true", help="try demur[all] as well, with the demo")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="demur-environments-") as work:
        folder = Path(work)
        wheel, sdist = build(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB; {sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB")
        tried = {python: is_there(python) for python in asked.python or PYTHONS}
        versions: dict[tuple[str, str], set[str]] = {}
        for python, resolution in product((python for python, there in tried.items() if there), RESOLUTIONS):
            for package, extras in ((wheel, ""), (sdist, ""), *([(wheel, "[all]")] if asked.extras else [])):
                size, installed = attempt(package, python, resolution, folder, extras)
                versions.setdefault((python, extras), set()).add(installed)
                what = f"{package.suffix[1:]}{extras} on Python {python}, {resolution} dependencies"
                print(f"ok  {what}: {size}", flush=True)
        for (python, extras), different in versions.items():
            if len(different) == 1:
                print(f"NOT SHOWN on Python {python}{extras}: this index has one version of each, lowest is highest")
        for python, there in tried.items():
            if not there:
                print(f"SKIPPED Python {python}: not here, and uv cannot fetch it")


if __name__ == "__main__":
    main()
