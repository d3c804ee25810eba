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


async def refused(service: Desk, tool: str, **arguments: object) -> str:
    with pytest.raises(ToolFailed) as caught:
        await service.call(tool, **arguments)
    return str(caught.value)


async def test_a_file_is_written_with_the_folders_that_it_needs(service: Desk) -> None:
    said = await service.call("write_file", path="notes/2026/a.md", text="größe\n")
    assert said == "Wrote notes/2026/a.md, 8 bytes."
    assert (service.workspace / "notes/2026/a.md").read_bytes() == "größe\n".encode()


async def test_a_file_is_replaced_and_keeps_its_permissions(service: Desk) -> None:
    file = service.workspace / "run.sh"
    file.write_text("old and longer")
    file.chmod(0o750)
    said = await service.call("write_file", path="run.sh", text="new")
    assert said == "Replaced run.sh, 3 bytes."
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o750)
    # A write-protected one stays, also for root, whom the system itself would let through.
    file.chmod(0o444)
    said = await refused(service, "write_file", path="run.sh", text="newer")
    assert "run.sh: is write-protected" in said
    assert file.read_text() == "new"


async def test_a_text_may_have_a_million_bytes_and_no_more(service: Desk) -> None:
    await service.call("write_file", path="a", text="x" * MAX_WRITTEN_BYTES)
    said = await refused(service, "write_file", path="b", text="x" * (MAX_WRITTEN_BYTES + 1))
    assert "at most 1000000 characters" in said
    said = await refused(service, "write_file", path="b", text="ä" * 600_000)
    assert "b: would have 1,200,000 bytes; the maximum is 1,000,000" in said
    assert [file.name for file in service.workspace.iterdir()] == ["a"]


@pytest.mark.parametrize(("path", "reason"), [
    *((path, "must") for path in ("", ".", "notes/", "/", "a/.")),
    ("notes", "is a folder, not a file"),
    ("a/b", "a/b: a is a file, not a folder"),
])  # fmt: skip
async def test_a_folder_is_not_written(service: Desk, path: str, reason: str) -> None:
    (service.workspace / "notes").mkdir()
    (service.workspace / "a").touch()
    assert reason in await refused(service, "write_file", path=path, text="x")


async def test_a_failed_write_changes_nothing(
    service: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (service.workspace / "a").write_text("old")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    said = await refused(service, "write_file", path="a", text="new")
    assert "a: no space left on device" in said
    assert [(file.name, file.read_text()) for file in service.workspace.iterdir()] == [("a", "old")]


async def test_a_passage_is_replaced_where_it_is_there_once(service: Desk) -> None:
    file = service.workspace / "a.md"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    said = await service.call("edit_file", path="a.md", old="two", new="zwei\n")
    assert said == "Changed a.md at line 2; the file now has 22 bytes."
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\nzwei\n\r\nthree\r\n"


@pytest.mark.parametrize(("text", "old", "reason"), [
    ("a b a", "a", "old occurs 2 times"),
    ("aaa", "aa", "old occurs 2 times"),
    ("a b", "c", "old was not found"),
    ("a b", "A", "old was not found"),
    ("z", "z", "old and new are the same"),
    ("a", "", "must have at least 1 character"),
])  # fmt: skip
async def test_else_nothing_is_changed(service: Desk, text: str, old: str, reason: str) -> None:
    file = service.workspace / "a"
    file.write_text(text)
    assert reason in await refused(service, "edit_file", path="a", old=old, new="z")
    assert file.read_text() == text


async def test_files_that_cannot_be_edited_stay(service: Desk) -> None:
    file = service.workspace / "a"
    file.write_bytes(b"a\0")
    said = await refused(service, "edit_file", path="a", old="a", new="b")
    assert "is a binary file, not text" in said
    said = await refused(service, "edit_file", path="b", old="a", new="b")
    assert "there is no such file" in said
    assert not (service.workspace / "b").exists()
    big = "x" * 999_999
    file.write_text(big)
    said = await refused(service, "edit_file", path="a", old=big, new="y" * 999_999 + "ä")
    assert "the maximum is 1,000,000" in said
    assert file.read_text() == big


async def test_edits_at_the_same_time_all_count(service: Desk) -> None:
    """Models ask for several at once; none of them may undo another one."""
    file = service.workspace / "a"
    file.write_text("".join(f"[{number}]" for number in range(20)))
    edits = [{"path": "a", "old": f"[{number}]", "new": f"<{number}>"} for number in range(20)]
    await asyncio.gather(*(service.call("edit_file", **edit) for edit in edits))
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


async def test_a_cancelled_write_ends_first(service: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_hanging_disk_is_given_up(service: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
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
