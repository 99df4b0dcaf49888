"""`demur doctor`: what is installed, and which extras, engines and programs work here."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from itertools import groupby
from typing import Annotated, Any

import typer

from demur import __version__
from demur.core.jobs import Job, Option
from demur.core.options import NoSeed
from demur.core.show.safe import document_text

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "firefox")
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?\s*([^;]*?)\s*(?:;.*extra == ['\"]([\w-]+)['\"].*)?")
BOUND = re.compile(r"(>=|<)\s*([\d.]+)")


@dataclass(frozen=True, slots=True)
class Check:
    """Something that demur can use: whether it works here, what there is of it, and how to get it."""

    part: str
    name: str
    works: bool
    detail: str
    fix: str = ""


def doctor(
    *,
    json: Annotated[bool, Option("One JSON document on standard output, nothing else.")] = False,
    seed: NoSeed = 0,  # noqa: ARG001
) -> None:
    """Show what is installed and which extras, engines and programs work here. Exits with 1 if the base does not."""
    checks = [*base_checks(), *extra_checks(), *engine_checks(), *program_checks(), store_check()]
    works = all(one.works for one in checks if one.part == "base")
    if json:
        typer.echo(document_text({"demur": __version__, "works": works, "checks": [asdict(one) for one in checks]}))
    else:
        typer.echo("\n".join(_lines(checks)))
    if not works:
        raise typer.Exit(1)


def _lines(checks: Sequence[Check]) -> Iterator[str]:
    """A line for each check under the name of its part, and then how to get what is missing."""
    yield f"demur {__version__}"
    for part, members in groupby(checks, key=lambda one: one.part):
        yield f"\n{part}"
        for one in members:
            yield f"  {'ok' if one.works else '--'}  {one.name:<14} {one.detail}"
    lacking = [one for one in checks if one.fix and not one.works]
    fixes = dict.fromkeys(f"  {one.name + ':':<14} {one.fix}" for one in lacking)  # an engine is an extra too
    if fixes:
        yield "\nto add what is missing"
        yield from fixes


def base_checks() -> Iterator[Check]:
    """Python, the system, the encoding of output, and the packages that every command needs."""
    yield Check(
        "base", "Python", sys.version_info >= (3, 11), platform.python_version(), "install Python 3.11 or newer"
    )
    yield Check("base", "system", True, f"{platform.system()} {platform.machine()}, output as {sys.stdout.encoding}")
    for name, wanted, extra in requirements():
        if not extra:
            version = version_of(name)
            works = version is not None and fits(version, wanted)
            yield Check("base", name, works, version or f"missing, needs {wanted}", f"pip install '{name}{wanted}'")


def extra_checks() -> Iterator[Check]:
    """Each extra: installed as a whole, or what it lacks."""
    members: dict[str, list[tuple[str, str]]] = {}
    for name, wanted, extra in requirements():
        if extra and name != "demur":
            members.setdefault(extra, []).append((name, wanted))
    for extra, packages in members.items():
        versions = {name: version_of(name) for name, _ in packages}
        lacks = [name for name, wanted in packages if not fits(versions[name] or "", wanted)]
        have = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        detail = f"lacks {', '.join(lacks)}" if lacks else have
        yield Check("extra", extra, not lacks, detail, f"pip install 'demur[{extra}]'")


def engine_checks() -> Iterator[Check]:
    """Each engine that can hold rows; Spark also needs Java."""
    from demur.core.engines.engine import ENGINES

    for name, entry in ENGINES.items():
        version = version_of(entry.package)
        java = _first_line("java", "-version") if name == "spark" else ""
        lacks = "missing" if version is None else "no Java found" if name == "spark" and not java else ""
        detail = lacks or ", ".join(filter(None, (str(version), java)))
        fix = f"pip install 'demur[{name}]'" if version is None else "install Java 17 or newer"
        yield Check("engine", name, not lacks, detail, fix)


def program_checks() -> Iterator[Check]:
    """Programs beside Python: a browser for the pages, speech for the experiment with real sound."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    yield Check("program", "browser", browser is not None, browser or "none found", "install Chromium or Firefox")
    for name in ("espeak-ng", "pocketsphinx"):
        path = shutil.which(name)
        yield Check("program", name, path is not None, path or "missing; only for experiments with speech")


def store_check() -> Check:
    """Whether runs can be stored."""
    from demur.store.records import usual_root

    folder = usual_root()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    writable = nearest.is_dir() and os.access(nearest, os.W_OK)
    return Check("store", "runs", writable, str(folder), "set DEMUR_STORE to a folder that you may write to")


def requirements() -> Iterator[tuple[str, str, str]]:
    """What this package declares: name, range, and the extra it belongs to, empty for the base.

    >>> sorted(name for name, _, extra in requirements() if not extra)[:3]
    ['msgspec', 'narwhals', 'numpy']
    """
    for text in metadata.requires("demur") or ():
        if match := REQUIREMENT.fullmatch(text):
            yield match[1], match[2], match[3] or ""


def version_of(package: str) -> str | None:
    """The version that is installed, if any."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def fits(version: str, wanted: str) -> bool:
    """Whether a version lies in a range such as ">=2.0,<3", by its leading numbers.

    >>> fits("2.10.1", "<3,>=2.9"), fits("2.8", ">=2.9"), fits("", ">=1")
    (True, False, False)
    """
    number = _numbers(version)
    compare: dict[str, Callable[[Any, Any], bool]] = {">=": lambda a, b: a >= b, "<": lambda a, b: a < b}
    return bool(number) and all(compare[sign](number, _numbers(bound)) for sign, bound in BOUND.findall(wanted))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match(r"[\d.]*", version)[0].split(".") if part)  # type: ignore[index]


def _first_line(*command: str) -> str:
    """The first line that a program prints, or nothing where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stderr or done.stdout).partition("\n")[0]


DOCTOR = Job("doctor", doctor, present="", example="demur doctor")
