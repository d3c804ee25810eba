"""Where a backup goes, and what is said when it cannot go there (SPEC DB-5)."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from goclaw_py.app.backup.backup import _new_file
from goclaw_py.model.errors import BackupError


def test_a_file_that_cannot_be_made_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "b.tar.gz"
    with pytest.raises(BackupError) as refused, _new_file(file):
        pass
    assert str(refused.value) == f"{file}: cannot be written: No such file or directory"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_disk_that_is_full_is_told_and_nothing_is_left(tmp_path: Path, number: int) -> None:
    file = tmp_path / "b.tar.gz"
    with pytest.raises(BackupError, match="cannot be written"), _new_file(file):
        raise OSError(number, os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_another_error_of_the_system_is_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), _new_file(tmp_path / "b.tar.gz"):
        raise PermissionError(errno.EACCES, "denied", "/elsewhere")
    assert list(tmp_path.iterdir()) == []
