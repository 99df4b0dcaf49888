"""Results are kept by signature; what is damaged, gone or too much is simply not there."""

import os
from pathlib import Path

import pytest

from demur.store.records import Cache
from demur.store.runs import Store


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    (tmp_path / "cache").mkdir()
    return Cache(tmp_path / "cache", most_bytes=2000)


def test_what_was_kept_is_there_under_its_signature(store: Store) -> None:
    assert store.cached("forced_error|n=3") is None
    store.keep("forced_error|n=3", b'{"value": 0.5}')
    store.keep("forced_error|n=4", b"")
    assert store.cached("forced_error|n=3") == b'{"value": 0.5}'
    assert store.cached("forced_error|n=4") == b""
    with Store.open(store.root) as again:
        assert again.cached("forced_error|n=3") == b'{"value": 0.5}'
    assert store.clear_cache() == 2
    assert store.cached("forced_error|n=3") is None


@pytest.mark.parametrize("spoil", [lambda text: text[:-1], lambda _: b"", lambda text: text[:40] + b"x" + text[41:]])
def test_a_damaged_result_is_no_result_and_goes(cache: Cache, spoil: object) -> None:
    cache.keep("a", b"result" * 50)
    (path,) = cache.folder.iterdir()
    path.write_bytes(spoil(path.read_bytes()))  # type: ignore[operator]
    assert cache.cached("a") is None
    assert list(cache.folder.iterdir()) == []


def test_the_results_longest_unused_make_room(cache: Cache) -> None:
    for place, name in enumerate("abc"):
        cache.keep(name, os.urandom(600))
        os.utime(cache._path(name), (place, place))
    assert cache.cached("a") is not None, "which makes it the last one used"
    cache.keep("d", os.urandom(600))
    assert [name for name in "abcd" if cache._path(name).exists()] == ["a", "c", "d"]
    assert sum(path.stat().st_size for path in cache.folder.iterdir()) <= 2000


def test_a_full_disk_keeps_no_result_and_raises_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert not cache.keep("a", b"x")
    assert cache.cached("a") is None
    assert list(cache.folder.iterdir()) == []


def test_a_cache_folder_that_was_deleted_comes_back(cache: Cache) -> None:
    cache.folder.rmdir()
    assert cache.cached("a") is None
    cache.keep("a", b"x")
    assert cache.cached("a") == b"x"
