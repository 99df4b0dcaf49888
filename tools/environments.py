"""Builds wheel and sdist, and tries both in clean environments: every Python there is, lowest and newest dependencies.

`python tools/environments.py` needs uv. A Python that uv neither finds nor can fetch is skipped, and named at the end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
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


def pythons(asked: list[str]) -> Iterator[str]:
    """Those of the versions that are here, or that uv can fetch."""
    for version in asked:
        done = subprocess.run(["uv", "python", "find", version], capture_output=True)
        if done.returncode and subprocess.run(["uv", "python", "install", version], capture_output=True).returncode:
            print(f"SKIPPED Python {version}: not here, and it could not be fetched")
        else:
            yield version


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder, but for compiled ones, which come with the first start."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file() and one.suffix != ".pyc")


def attempt(package: Path, python: str, resolution: str, folder: Path, extras: str) -> str:
    """Installs a package into a clean environment, runs the command there, and says how large it is."""
    home = folder / f"{package.suffix[1:]}-{python}-{resolution}{'-all' if extras else ''}"
    run("uv", "venv", "--quiet", "--python", python, home)
    binaries = home / ("Scripts" if os.name == "nt" else "bin")
    wanted = f"{package}{extras}"
    run("uv", "pip", "install", "--quiet", "--python", home, "--resolution", resolution, wanted)
    (home / "log.jsonl").write_text(LOG, encoding="utf-8")
    for command in (["doctor"], ["score", "log.jsonl", "--json"], *([["demo", "--quiet"]] if extras else [])):
        run(binaries / "python", "-m", "demur", *command, cwd=home)
    size = size_of(next(home.glob("[Ll]ib*/**/site-packages")))
    return f"{size / 1e6:.0f} MB"


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
        for python, resolution in product(pythons(asked.python or list(PYTHONS)), RESOLUTIONS):
            for package, extras in ((wheel, ""), (sdist, ""), *([(wheel, "[all]")] if asked.extras else [])):
                size = attempt(package, python, resolution, folder, extras)
                print(
                    f"ok  {package.suffix[1:]}{extras} on Python {python}, {resolution} dependencies: {size}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
