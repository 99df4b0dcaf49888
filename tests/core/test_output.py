import os
import stat

import pytest

from demur.core.io.writing import write_atomically, write_whole
from demur.errors import UsageError


def test_a_file_appears_with_its_content_and_nothing_beside_it(tmp_path):
    write_whole(tmp_path / "a.txt", "whole")
    assert (tmp_path / "a.txt").read_text() == "whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_missing_folders_are_created(tmp_path):
    write_whole(tmp_path / "deep" / "er" / "a.bin", b"\x00")
    assert (tmp_path / "deep" / "er" / "a.bin").read_bytes() == b"\x00"


def interrupt(target, fault):
    with write_atomically(target) as temporary:
        temporary.write_text("half")
        raise fault


@pytest.mark.parametrize("fault", [RuntimeError, KeyboardInterrupt])
def test_a_fault_leaves_the_old_file_and_no_other(tmp_path, fault):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(fault, match="stop"):
        interrupt(target, fault("stop"))
    assert target.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_the_temporary_path_keeps_the_ending(tmp_path):
    with write_atomically(tmp_path / "chart.svg") as temporary:
        assert temporary.suffix == ".svg"
        assert temporary.parent == tmp_path


def test_a_folder_is_no_target(tmp_path):
    with pytest.raises(UsageError, match="is a folder; name a file"):
        write_whole(tmp_path, "x")


def test_a_folder_that_is_a_file_cannot_be_written_into(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        write_whole(tmp_path / "file" / "a.txt", "x")


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_the_file_has_the_permissions_any_new_file_has(tmp_path):
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "a.txt", "x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "a.txt")}
    assert len(modes) == 1
