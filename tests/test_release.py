"""What is installed for development is pinned and hashed, and what runs at a user's is listed."""

import json
import re
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
    extras = [text for name in project["optional-dependencies"] for text in project["optional-dependencies"][name]]
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
    assert not {"pytest", "ruff", "mypy", "mkdocs", "demur"} & set(scopes)
