"""What is installed for development is pinned and hashed, and what runs at a user's is listed."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
HASH = r"--hash=sha256:[0-9a-f]{64}"


def locked() -> dict[str, list[Requirement]]:
    """Each locked package with its versions, of which markers choose one."""
    found: dict[str, list[Requirement]] = {}
    for entry in re.split(r"\n(?=\S)", LOCK.strip()):
        one = Requirement(entry.partition(" \\\n")[0])
        found.setdefault(canonicalize_name(one.name), []).append(one)
    return found


def wanted() -> list[Requirement]:
    """What `make` installs by the ranges of pyproject.toml."""
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    optional = {
        name: texts for name, texts in project["optional-dependencies"].items() if name not in ("inspect", "speech")
    }
    extras = [text for texts in optional.values() for text in texts]
    texts = [*project["dependencies"], *extras, *groups["dev"], *groups["docs"], *groups["build"]]
    return [one for one in map(Requirement, texts) if one.name != "demur"]


def test_every_locked_package_has_one_version_and_hashes():
    for entry in re.split(r"\n(?=\S)", LOCK.strip()):
        assert re.fullmatch(rf"[\w.\[\],-]+==[\w.!+]+( ; .+)? \\\n(    {HASH}( \\\n)?)+", entry), entry[:80]


def test_the_lock_names_no_registry():
    assert not re.search(r"https?:|file:|--index-url|--find-links|@ ", LOCK)


@pytest.mark.parametrize("one", wanted(), ids=str)
def test_the_lock_fits_the_ranges_of_pyproject(one):
    versions = [str(pinned.specifier).removeprefix("==") for pinned in locked()[canonicalize_name(one.name)]]
    assert versions
    assert all(one.specifier.contains(version, prereleases=True) for version in versions), "make lock"


@pytest.fixture(scope="module")
def bill(tmp_path_factory):
    path = tmp_path_factory.mktemp("sbom") / "sbom.json"
    subprocess.run([sys.executable, ROOT / "tools" / "sbom.py", path], check=True, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_bill_of_materials_has_the_fields_of_cyclonedx(bill):
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["component"]["name"] == "demur"
    for one in bill["components"]:
        assert one["type"] == "library"
        assert one["scope"] in ("required", "optional")
        assert one["purl"] == one["bom-ref"] == f"pkg:pypi/{one['name']}@{one['version']}"
        assert one["licenses"]
    references = [one["bom-ref"] for one in (bill["metadata"]["component"], *bill["components"])]
    assert len(set(references)) == len(references)
    assert [one["ref"] for one in bill["dependencies"]] == references
    assert {ref for one in bill["dependencies"] for ref in one["dependsOn"]} <= set(references)


def test_the_bill_of_materials_holds_what_is_needed_and_nothing_else(bill):
    scopes = {one["name"]: one["scope"] for one in bill["components"]}
    needed = {canonicalize_name(Requirement(text).name) for text in PROJECT["project"]["dependencies"]}
    assert needed <= {name for name, scope in scopes.items() if scope == "required"}
    assert {scopes[name] for name in ("starlette", "duckdb", "scikit-learn")} == {"optional"}
    assert not {"pytest", "ruff", "mypy", "zensical", "demur"} & set(scopes)


UV = """#!/bin/sh
echo "$@" >> calls
case "$1" in venv) mkdir -p .venv;; esac
case "$*" in *{failing}*) echo "{said}" >&2; exit 1;; esac
"""
NEVER, LOCKED, OURS, RANGES = "never", "--require-hashes", "--no-deps", "--group dev"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("failing", "said", "ends_with", "code"),
    [
        pytest.param(NEVER, "", OURS, 0, id="all is there"),
        pytest.param(LOCKED, "Because there is no version of a==1: No solution found", RANGES, 0, id="uv lacks one"),
        pytest.param(LOCKED, "ERROR: No matching distribution found for a==1", RANGES, 0, id="pip lacks one"),
        pytest.param(LOCKED, "Hash mismatch for a==1", LOCKED, 2, id="another hash in uv"),
        pytest.param(LOCKED, "THESE PACKAGES DO NOT MATCH THE HASHES", LOCKED, 2, id="another hash in pip"),
        pytest.param(LOCKED, "No space left on device", LOCKED, 2, id="another fault"),
        pytest.param(OURS, "Failed to build demur", OURS, 2, id="a fault of our own"),
    ],
)
def test_only_where_an_index_lacks_a_version_the_ranges_are_installed(
    tmp_path: Path, failing: str, said: str, ends_with: str, code: int
) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements-dev.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "uv").write_text(UV.format(failing=failing, said=said))
    (tmp_path / "uv").chmod(0o755)
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    command = ["make", "setup", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=tmp_path, env={**outside, "PATH": path}, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / ".venv" / ".installed").exists()) == (code, code == 0)
    assert ends_with in (tmp_path / "calls").read_text().splitlines()[-1]
    assert said in done.stderr
