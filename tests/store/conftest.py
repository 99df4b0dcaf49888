from collections.abc import Iterator
from pathlib import Path

import pytest

from demur.store.runs import Store
from store.tables import write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with Store.open(root) as opened:
        yield opened


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of six answers."""
    return write(tmp_path / "guide.jsonl")
