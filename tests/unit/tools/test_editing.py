"""Writing and changing files of the workspace."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from goclaw_py.model.errors import ToolFailed
from goclaw_py.tools.files import MAX_WRITTEN_BYTES
from goclaw_py.workspace import Version, Workspace, WorkspaceError
from tests.support.tools import Desk


async def test_a_file_is_written_with_the_folders_that_it_needs(service: Desk) -> None:
    said = await service.call("write_file", path="notes/2026/a.md", text="größe\n")
    assert said == "Wrote notes/2026/a.md, 8 bytes."
    assert (service.workspace / "notes/2026/a.md").read_bytes() == "größe\n".encode()


async def test_a_file_is_replaced_and_keeps_its_permissions(service: Desk) -> None:
    file = service.workspace / "run.sh"
    file.write_text("old and longer")
    file.chmod(0o750)
    assert (
        await service.call("write_file", path="run.sh", text="new") == "Replaced run.sh, 3 bytes."
    )
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o750)


async def test_a_write_protected_file_stays(service: Desk) -> None:
    """Also for root, whom the system itself would let through."""
    file = service.workspace / "AGENTS.md"
    file.write_text("be kind")
    file.chmod(0o444)
    with pytest.raises(ToolFailed, match=r"AGENTS.md: is write-protected"):
        await service.call("write_file", path="AGENTS.md", text="be rude")
    assert file.read_text() == "be kind"


async def test_a_text_may_have_a_million_bytes_and_no_more(service: Desk) -> None:
    await service.call("write_file", path="a", text="x" * MAX_WRITTEN_BYTES)
    with pytest.raises(ToolFailed, match="at most 1000000 characters"):
        await service.call("write_file", path="b", text="x" * (MAX_WRITTEN_BYTES + 1))
    with pytest.raises(ToolFailed, match="b: would have 1,200,000 bytes; the maximum is 1,000,000"):
        await service.call("write_file", path="b", text="ä" * 600_000)
    assert [file.name for file in service.workspace.iterdir()] == ["a"]


@pytest.mark.parametrize("path", ["", ".", "notes/", "/", "a/."])
async def test_a_folder_is_not_written(service: Desk, path: str) -> None:
    (service.workspace / "notes").mkdir()
    with pytest.raises(ToolFailed, match="must"):
        await service.call("write_file", path=path, text="x")
    with pytest.raises(ToolFailed, match="is a folder, not a file"):
        await service.call("write_file", path="notes", text="x")


async def test_a_file_is_no_folder_to_write_into(service: Desk) -> None:
    (service.workspace / "a").touch()
    with pytest.raises(ToolFailed, match="a/b: a is a file, not a folder"):
        await service.call("write_file", path="a/b", text="x")


async def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    service: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (service.workspace / "a").write_text("old")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolFailed, match="a: no space left on device"):
        await service.call("write_file", path="a", text="new")
    assert [(file.name, file.read_text()) for file in service.workspace.iterdir()] == [("a", "old")]


async def test_a_passage_is_replaced_where_it_is_there_once(service: Desk) -> None:
    file = service.workspace / "a.md"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    said = await service.call("edit_file", path="a.md", old="two", new="zwei\n")
    assert said == "Changed a.md at line 2; the file now has 22 bytes."
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\nzwei\n\r\nthree\r\n"


@pytest.mark.parametrize(
    ("text", "old", "reason"),
    [
        ("a b a", "a", "old occurs 2 times"),
        ("aaa", "aa", "old occurs 2 times"),
        ("a b", "c", "old was not found"),
        ("a b", "A", "old was not found"),
        ("z", "z", "old and new are the same"),
        ("a", "", "must have at least 1 character"),
    ],
)
async def test_else_nothing_is_changed_and_the_model_hears_why(
    service: Desk, text: str, old: str, reason: str
) -> None:
    file = service.workspace / "a"
    file.write_text(text)
    with pytest.raises(ToolFailed, match=reason):
        await service.call("edit_file", path="a", old=old, new="z")
    assert file.read_text() == text


async def test_binary_and_missing_files_are_not_edited(service: Desk) -> None:
    (service.workspace / "a").write_bytes(b"a\0")
    with pytest.raises(ToolFailed, match="is a binary file, not text"):
        await service.call("edit_file", path="a", old="a", new="b")
    with pytest.raises(ToolFailed, match="there is no such file"):
        await service.call("edit_file", path="b", old="a", new="b")
    assert not (service.workspace / "b").exists()


async def test_an_edit_cannot_make_a_file_too_big(service: Desk) -> None:
    file = service.workspace / "a"
    file.write_text("x" * 999_999)
    with pytest.raises(ToolFailed, match="the maximum is 1,000,000"):
        await service.call(
            "edit_file", path="a", old="x" * 999_999, new="y" * 999_999 + "zz"[:0] + "ä"
        )
    assert file.stat().st_size == 999_999


async def test_edits_at_the_same_time_all_count(service: Desk) -> None:
    """Models ask for several at once; none of them may undo another one."""
    file = service.workspace / "a"
    file.write_text("".join(f"[{number}]" for number in range(20)))
    await asyncio.gather(
        *(
            service.call("edit_file", path="a", old=f"[{number}]", new=f"<{number}>")
            for number in range(20)
        )
    )
    assert file.read_text() == "".join(f"<{number}>" for number in range(20))


def test_a_file_that_somebody_else_has_changed_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    workspace, file = Workspace(tmp_path), tmp_path / "a"
    file.write_text("one")
    version = workspace.read("a", 10).version
    file.write_text("another")
    with pytest.raises(WorkspaceError, match="changed by somebody else meanwhile"):
        workspace.write("a", b"mine", expected=version)
    file.unlink()
    with pytest.raises(WorkspaceError, match="changed by somebody else meanwhile"):
        workspace.write("a", b"mine", expected=Version(1, 2, 3))
    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_written_any_more_once_a_cancelled_call_has_ended(
    service: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC QUEUE-2: the end of a run is the end of its work."""
    begun, go_on = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(number: int) -> None:
        begun.set()
        assert go_on.wait(30)
        fsync(number)

    monkeypatch.setattr(os, "fsync", slow)
    call = asyncio.create_task(service.call("write_file", path="a", text="x"))
    await asyncio.to_thread(begun.wait, 30)
    call.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not call.done()
    go_on.set()
    await asyncio.wait([call])
    assert call.cancelled()
    assert (service.workspace / "a").read_text() == "x"


async def test_a_second_cancellation_gives_a_hanging_disk_up(
    service: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hangs(number: int) -> None:
        begun.set()
        assert go_on.wait(30)

    monkeypatch.setattr(os, "fsync", hangs)
    call = asyncio.create_task(service.call("write_file", path="a", text="x"))
    await asyncio.to_thread(begun.wait, 30)
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert call.cancelled()
    go_on.set()
