"""The map, the recipes and the page on internals name files and names that are there."""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from demur import score
from pages import ROOT, read_page

PACKAGE = ROOT / "src" / "demur"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^\| (an? .*?|the .*?) \| (.*) \|$", CONTRIBUTING, re.MULTILINE)
FILE = re.compile(r"`([\w/]+(?:\.py|/))`")
NAME = re.compile(r"`([A-Za-z_]\w*)`")


def place_of(name: str) -> Path | None:
    return next((home / name for home in (PACKAGE, ROOT) if (home / name).exists()), None)


def test_there_are_fifteen_recipes_or_more() -> None:
    assert len(RECIPES) >= 15


@pytest.mark.parametrize("touched", [pytest.param(touched, id=change) for change, touched in RECIPES])
def test_a_recipe_names_what_is_there(touched: str) -> None:
    files = FILE.findall(touched)
    homes = {name: place_of(name) or next(iter(PACKAGE.rglob(f"*/{name}")), None) for name in files}
    assert all(homes.values()), homes
    parts = [[home] if home.is_file() else [*home.rglob("*.py")] for home in homes.values() if home is not None]
    texts = [file.read_text(encoding="utf-8") for part in parts for file in part]
    missing = [name for name in NAME.findall(touched) if not any(re.search(rf"\b{name}\b", text) for text in texts)]
    assert not missing, missing


def named_in_the_walk() -> set[str]:
    walk = read_page("internals").partition("## From a row to a number")[2].partition("\n## ")[0]
    return set(re.findall(r"`([\w/]+\.py)`", walk))


def test_the_walk_of_a_row_names_modules_that_are_there_and_no_more_than_25() -> None:
    assert len(named_in_the_walk()) <= 25
    assert not [name for name in named_in_the_walk() if not (PACKAGE / name).exists()]


def holds_rows(value: Any, depth: int = 2) -> bool:
    """Whether this is a table, an array or bytes, or holds one."""
    if isinstance(value, pl.DataFrame | pl.LazyFrame | pl.Series | np.ndarray | bytes):
        return True
    parts: Iterable[Any] = ()
    if isinstance(value, list | tuple):
        parts = value[:3]
    elif isinstance(value, nw.DataFrame | nw.LazyFrame):
        parts = [value.to_native()]
    elif type(value).__module__.startswith("demur.") and is_dataclass(value):
        parts = [getattr(value, one.name, None) for one in fields(value)]
    return depth > 0 and any(holds_rows(part, depth - 1) for part in parts)


def test_the_walk_of_a_row_names_every_module_that_is_handed_rows(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [{"target": "ab"[k % 2], "prediction": "ab"[k % 3 % 2], "confidence": k / 60} for k in range(60)]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    handed, inside = set(), str(PACKAGE)

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside):
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if holds_rows([frame.f_locals.get(name) for name in arguments][:3], 3):
                handed.add(Path(code.co_filename).relative_to(PACKAGE).as_posix())

    sys.setprofile(watch)
    try:
        score(log, replicates=50).to_dict()
    finally:
        sys.setprofile(None)
    assert len(handed) > 10
    assert not handed - named_in_the_walk()
