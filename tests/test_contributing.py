"""The map, the recipes and the page on internals name files and names that are there."""

import re
from pathlib import Path

import pytest

from pages import ROOT, read_page

PACKAGE = ROOT / "src" / "demur"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^\| (an? .*?|the .*?) \| (.*) \|$", CONTRIBUTING, re.MULTILINE)
FILE = re.compile(r"`([\w/]+(?:\.py|/))`")
NAME = re.compile(r"`([A-Za-z_]\w*)`")


def place_of(name: str) -> Path | None:
    return next((home / name for home in (PACKAGE, ROOT) if (home / name).exists()), None)


def test_there_are_fifteen_recipes() -> None:
    assert len(RECIPES) == 15


@pytest.mark.parametrize("touched", [pytest.param(touched, id=change) for change, touched in RECIPES])
def test_a_recipe_names_what_is_there(touched: str) -> None:
    files = [name for name in FILE.findall(touched) if not name.startswith("tests/")]
    homes = {name: place_of(name) or next(iter(PACKAGE.rglob(f"*/{name}")), None) for name in files}
    assert all(homes.values()), homes
    parts = [[home] if home.is_file() else [*home.rglob("*.py")] for home in homes.values() if home is not None]
    texts = [file.read_text(encoding="utf-8") for part in parts for file in part]
    missing = [name for name in NAME.findall(touched) if not any(re.search(rf"\b{name}\b", text) for text in texts)]
    assert not missing, missing


def test_the_walk_of_a_row_names_modules_that_are_there_and_no_more_than_25() -> None:
    walk = read_page("internals").partition("## From a row to a number")[2].partition("\n## ")[0]
    named, folder = [], ""
    for name in re.findall(r"`([\w/]+\.py)`", walk):
        folder = name.rpartition("/")[0] or folder
        named.append(name if "/" in name else f"{folder}/{name}")
    assert len(set(named)) <= 25
    assert not [name for name in named if not (PACKAGE / name).exists()]
