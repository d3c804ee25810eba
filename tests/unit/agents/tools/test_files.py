"""Reading, listing, sending, writing and changing files of the workspace (SPEC CHAN-6, SEC-4)."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from pathlib import Path

import pytest

from goclaw_py.agents.tools.files import (
    MAX_LISTED,
    MAX_READ_BYTES,
    MAX_READ_CHARS,
    MAX_SENT_BYTES,
    MAX_WRITTEN_BYTES,
)
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.messages import FileKind, OutFile
from goclaw_py.core.workspace.files import Version, Workspace, WorkspaceError
from tests.support.tools import ToolHost


def put(service: ToolHost, path: str, content: str | bytes = "") -> Path:
    file = service.workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


async def refused(service: ToolHost, tool: str, **arguments: object) -> str:
    with pytest.raises(ToolFailed) as caught:
        await service.call(tool, **arguments)
    return str(caught.value)


@pytest.mark.parametrize(("text", "read"), [
    *((text, text) for text in ("one line", "two\nlines\n", "\n", "tab\r\n", "ä\u2028b")),
    ("", "[the file is empty]"),
])  # fmt: skip
async def test_a_file_is_read_as_it_stands(service: ToolHost, text: str, read: str) -> None:
    file = put(service, "notes/a.md", text)
    assert await service.call("read_file", path="notes/a.md") == read
    # SPEC CHAN-6: an agent is told the absolute path of files that people sent.
    assert await service.call("read_file", path=str(file)) == read


async def test_a_long_file_is_read_in_passages(service: ToolHost) -> None:
    put(service, "a", "".join(f"line {number}\n" for number in range(1, 11)))
    read = await service.call("read_file", path="a", offset_line=3, limit_lines=2)
    assert read == "line 3\nline 4\n[lines 3 to 4 of 10; continue with offset_line 5]"
    read = await service.call("read_file", path="a", offset_line=9, limit_lines=99)
    assert read == "line 9\nline 10\n[lines 9 to 10 of 10]"
    said = await refused(service, "read_file", path="a", offset_line=11)
    assert "a: has only 10 lines" in said
    # It is cut between lines and can be read on.
    lines = [f"{number:06}" + "x" * 1000 + "\n" for number in range(200)]
    put(service, "a", "".join(lines))
    got, start = "", 1
    for _ in range(10):
        read = await service.call("read_file", path="a", offset_line=start)
        assert len(read) <= MAX_READ_CHARS + 100
        text, _, note = read.rpartition("[")
        got += text
        if "continue with" not in note:
            break
        start = int(note.rpartition(" ")[2].rstrip("]"))
    assert got == "".join(lines)
    # An endless line is cut, and the note says how much is missing.
    put(service, "a", "x" * (MAX_READ_CHARS + 7) + "\nnext\n")
    read = await service.call("read_file", path="a")
    note = "[line 1 was cut: 7 more characters]\n[lines 1 to 1 of 2; continue with offset_line 2]"
    assert read.endswith(f"x\n{note}")


async def test_what_is_not_text_or_huge_is_not_read(service: ToolHost) -> None:
    for data in (b"\x89PNG\0\0", b"a\0b", b"\xff\xfe", b"caf\xe9"):
        put(service, "a.bin", data)
        said = await refused(service, "read_file", path="a.bin")
        assert f"a.bin: is a binary file, not text ({len(data)} bytes)" in said
    os.truncate(put(service, "huge"), 1 << 40)  # takes no space
    said = await refused(service, "read_file", path="huge")
    assert re.search(r"has 1,099,511,627,776 bytes; the most .* 10,000,000", said)
    assert MAX_READ_BYTES == 10_000_000


async def test_a_folder_is_listed_by_name_with_sizes(service: ToolHost) -> None:
    assert await service.call("list_files") == "[the folder is empty]"
    put(service, "b.md", "x" * 1234)
    put(service, "a/inner.md")
    put(service, ".hidden", "1")
    os.mkfifo(service.workspace / "pipe")
    (service.workspace / "link").symlink_to("b.md")
    assert await service.call("list_files") == (
        ".hidden  1 byte\na/\nb.md  1,234 bytes\n"
        "link  (a link; links are not followed)\npipe  (not a regular file)"
    )
    assert await service.call("list_files", path="a/") == "inner.md  0 bytes"
    assert "b.md is a file, not a folder" in await refused(service, "list_files", path="b.md")
    said = await refused(service, "list_files", path="b")
    assert said == "b: there is no such file or folder"


async def test_a_pattern_searches_in_all_folders_below(service: ToolHost) -> None:
    for path in ("a.md", "notes/b.md", "notes/deep/c.md", "notes/c.txt"):
        put(service, path)
    found = "a.md  0 bytes\nnotes/b.md  0 bytes\nnotes/deep/c.md  0 bytes"
    assert await service.call("list_files", pattern="*.md") == found
    found = "notes/b.md  0 bytes\nnotes/deep/c.md  0 bytes"
    assert await service.call("list_files", pattern="notes/*.md") == found
    assert await service.call("list_files", path="notes", pattern="?.txt") == "c.txt  0 bytes"


async def test_links_are_not_searched(service: ToolHost, tmp_path: Path) -> None:
    (service.workspace / "out").symlink_to(tmp_path)
    (service.workspace / "circle").symlink_to(".")
    assert await service.call("list_files", pattern="*") == "[no matching file]"


async def test_a_long_listing_is_cut_and_says_how_much_more_there_is(service: ToolHost) -> None:
    for number in range(MAX_LISTED + 5):
        put(service, f"file{number:04}")
    lines = (await service.call("list_files")).splitlines()
    assert len(lines) == MAX_LISTED + 1
    assert lines[0] == "file0000  0 bytes"
    assert lines[-1] == "[5 more; use a pattern or a subfolder]"


async def test_names_that_cannot_be_shown_are_quoted(service: ToolHost) -> None:
    put(service, "two\nlines")
    put(service, os.fsdecode(b"\xff"))
    assert await service.call("list_files") == "'two\\nlines'  0 bytes\n'\\udcff'  0 bytes"


@pytest.mark.parametrize(("name", "kind", "mime"), [
    ("a.jpg", FileKind.PHOTO, "image/jpeg"),
    ("A.PNG", FileKind.PHOTO, "image/png"),
    ("a.svg", FileKind.DOCUMENT, "image/svg+xml"),
    ("a.ogg", FileKind.VOICE, "audio/ogg"),
    ("a.mp3", FileKind.AUDIO, "audio/mpeg"),
    ("a.mp4", FileKind.VIDEO, "video/mp4"),
    ("a.txt", FileKind.DOCUMENT, "text/plain"),
    ("a", FileKind.DOCUMENT, ""),
    ("data:text,b", FileKind.DOCUMENT, ""),
])  # fmt: skip
async def test_files_go_with_a_reply(
    service: ToolHost, name: str, kind: FileKind, mime: str
) -> None:
    file = put(service, f"out/{name}", "x")
    said = await service.call("send_file", path=f"out/{name}")
    assert said == f"{name} will be sent with your answer."
    assert service.attached == [OutFile(kind, str(file), name, mime)]


async def test_files_that_a_model_sends_at_once_keep_their_order(service: ToolHost) -> None:
    """SPEC CHAN-6: people see them as an album."""
    names = [f"{number}.png" for number in range(40)]
    for name in names:
        put(service, name, "x")
    tools = service.tools()
    await asyncio.gather(*(tools.call("send_file", {"path": name}) for name in names))
    assert [file.name for file in service.attached] == names


async def test_a_file_is_sent_only_as_channels_take_it(service: ToolHost) -> None:
    os.truncate(put(service, "a.png"), 10_000_001)
    await service.call("send_file", path="./a.png", name="Über uns.png")
    # It is too big for a picture, and people may see another name.
    assert [(one.kind, one.name) for one in service.attached] == [
        (FileKind.DOCUMENT, "Über uns.png")
    ]
    for size, reason in ((0, "is empty"), (MAX_SENT_BYTES + 1, "the maximum is 50,000,000")):
        os.truncate(put(service, "a.zip"), size)
        assert reason in await refused(service, "send_file", path="a.zip")
    for name in ("", " ", "a/b", "..\n", "x" * 121):
        assert "name: must" in await refused(service, "send_file", path="a.png", name=name)
    assert len(service.attached) == 1


async def test_a_file_is_written_or_replaced(service: ToolHost) -> None:
    said = await service.call("write_file", path="notes/2026/a.md", text="größe\n")
    assert said == "Wrote notes/2026/a.md, 8 bytes."
    assert (service.workspace / "notes/2026/a.md").read_bytes() == "größe\n".encode()
    # One that is there keeps its permissions.
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


async def test_a_text_may_have_a_million_bytes_and_no_more(service: ToolHost) -> None:
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
async def test_a_folder_is_not_written(service: ToolHost, path: str, reason: str) -> None:
    (service.workspace / "notes").mkdir()
    (service.workspace / "a").touch()
    assert reason in await refused(service, "write_file", path=path, text="x")


async def test_a_failed_write_changes_nothing(
    service: ToolHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    (service.workspace / "a").write_text("old")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    said = await refused(service, "write_file", path="a", text="new")
    assert "a: no space left on device" in said
    assert [(file.name, file.read_text()) for file in service.workspace.iterdir()] == [("a", "old")]


async def test_a_passage_is_replaced_only_in_files_that_can_be_edited(service: ToolHost) -> None:
    file = service.workspace / "a.md"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    said = await service.call("edit_file", path="a.md", old="two", new="zwei\n")
    assert said == "Changed a.md at line 2; the file now has 22 bytes."
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\nzwei\n\r\nthree\r\n"
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


@pytest.mark.parametrize(("text", "old", "reason"), [
    ("a b a", "a", "old occurs 2 times"),
    ("aaa", "aa", "old occurs 2 times"),
    ("a b", "c", "old was not found"),
    ("a b", "A", "old was not found"),
    ("z", "z", "old and new are the same"),
    ("a", "", "must have at least 1 character"),
])  # fmt: skip
async def test_else_nothing_is_changed(service: ToolHost, text: str, old: str, reason: str) -> None:
    file = service.workspace / "a"
    file.write_text(text)
    assert reason in await refused(service, "edit_file", path="a", old=old, new="z")
    assert file.read_text() == text


async def test_edits_at_the_same_time_all_count(service: ToolHost) -> None:
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


async def test_a_cancelled_write_ends_first(
    service: ToolHost, monkeypatch: pytest.MonkeyPatch
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


async def test_a_hanging_disk_is_given_up(
    service: ToolHost, monkeypatch: pytest.MonkeyPatch
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
