"""HEARTBEAT.md on a disk: whatever lies there, a run gets a list or a reason (SPEC HB-3, HB-9)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from goclaw_py.core.errors import BadChecklist, ChecklistChanged, UnknownAgent
from goclaw_py.core.ids import AgentName
from goclaw_py.core.workspace import files
from goclaw_py.schedule.heartbeat import checklist_files as module
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse
from goclaw_py.schedule.heartbeat.checklist_files import MAX_BYTES, ChecklistFiles, ChecklistProblem
from goclaw_py.schedule.heartbeat.models import Skip

MAIN, HELPER = AgentName("main"), AgentName("helper")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the checklist of an agent is, with a secret beside the workspace."""
    (tmp_path / "secret").write_text("- the secret")
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws" / "HEARTBEAT.md"


def of(file: Path) -> ChecklistFiles:
    return ChecklistFiles({MAIN: file.parent})


async def listed(checklists: ChecklistFiles, agent: AgentName = MAIN) -> list[str]:
    found = await checklists.read(agent)
    assert isinstance(found, Checklist), found
    return [item.text for item in found.items]


def left_over(file: Path) -> list[str]:
    """What lies beside the list."""
    return [each.name for each in file.parent.iterdir() if each != file]


# ---------------------------------------------------------------------------- reading
async def test_the_list_is_that_of_the_agents_workspace(tmp_path: Path) -> None:
    for name in (MAIN, HELPER):
        (tmp_path / name).mkdir()
        (tmp_path / name / "HEARTBEAT.md").write_text(f"- [ ] of {name}")
    checklists = ChecklistFiles({name: tmp_path / name for name in (MAIN, HELPER)})
    assert await listed(checklists, HELPER) == ["of helper"]
    assert await listed(checklists) == ["of main"]


async def test_a_workspace_without_the_file_or_that_is_not_there_has_no_list(file: Path) -> None:
    for folder in (file.parent, file.parent / "nowhere"):
        assert await ChecklistFiles({MAIN: folder}).read(MAIN) == ChecklistProblem(
            Skip.NO_FILE, "HEARTBEAT.md: there is no such file or folder"
        )


async def test_an_agent_without_a_workspace_is_unknown(file: Path) -> None:
    lists, stranger = of(file), AgentName("stranger")
    calls = (lists.read(stranger), lists.add(stranger, "a"), lists.complete(stranger, 1))
    for call in (*calls, lists.write(stranger, "")):
        with pytest.raises(UnknownAgent, match="no agent 'stranger'"):
            await call


def as_large(file: Path) -> None:
    file.write_text("- a\n")
    os.truncate(file, 10 * 1024 * 1024)


def as_link_inside(file: Path) -> None:
    (file.parent / "list.md").write_text("- a")
    file.symlink_to("list.md")


def as_file_in_the_place_of_the_workspace(file: Path) -> None:
    file.parent.rmdir()
    file.parent.write_text("- a")


LINK = "is a link, which is never followed, not a file"
NO_TEXT = "is no text in UTF-8"
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (Path.mkdir, "is a folder, not a file"),
    "10 MB": (as_large, "10,485,760 bytes are too many; the most that can be taken is 262,144"),
    "link out": (lambda file: file.symlink_to("../secret"), LINK),
    "link inside": (as_link_inside, LINK),
    "loop": (lambda file: file.symlink_to(file.name), LINK),
    "dangling": (lambda file: file.symlink_to("nowhere"), LINK),
    "pipe": (os.mkfifo, "is a device, a pipe or a socket, not a file"),
    "binary": (lambda file: file.write_bytes(bytes(range(256))), NO_TEXT),
    "latin-1": (lambda file: file.write_bytes(b"- caf\xe9"), NO_TEXT),
    "utf-16": (lambda file: file.write_text("- a", "utf-16"), NO_TEXT),
    "nul": (lambda file: file.write_bytes(b"- a\0b"), "is no text: there is a NUL in it"),
    "no folder": (as_file_in_the_place_of_the_workspace, "not a directory"),
}


@pytest.mark.parametrize(("make", "detail"), BAD.values(), ids=BAD)
async def test_what_cannot_be_read_is_a_reason_and_is_never_replaced(
    file: Path, make: Callable[[Path], object], detail: str
) -> None:
    """SPEC HB-9, SEC-4: no crash, no hang, and nothing from outside."""
    make(file)
    kept = os.lstat(file) if os.path.lexists(file) else None
    checklists = of(file)
    for _ in range(2):
        found = await checklists.read(MAIN)
        assert found == ChecklistProblem(Skip.UNREADABLE, f"HEARTBEAT.md: {detail}")
    changes = (checklists.add(MAIN, "b"), checklists.complete(MAIN, 1))
    for change in (*changes, checklists.write(MAIN, "- b")):
        with pytest.raises(BadChecklist, match=r"^HEARTBEAT\.md: "):
            await change
    assert (file.parent.parent / "secret").read_text() == "- the secret"
    assert kept is None or os.lstat(file).st_ino == kept.st_ino


async def test_a_forbidden_file_is_a_reason(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open any file, so the refusal is made here."""
    file.write_text("- a")
    refuse = os.open

    def refusing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == file.name:
            raise PermissionError(13, "Permission denied")
        return refuse(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    found = await of(file).read(MAIN)
    assert found == ChecklistProblem(Skip.UNREADABLE, "HEARTBEAT.md: permission denied")
    with pytest.raises(BadChecklist, match="permission denied"):
        await of(file).add(MAIN, "b")


async def test_of_a_huge_file_nothing_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_large(file)
    monkeypatch.setattr(files.Workspace, "read", lambda *_: pytest.fail("it was read"))
    assert isinstance(await of(file).read(MAIN), ChecklistProblem)


@pytest.mark.parametrize(("meanwhile", "skip", "detail"), [
    (lambda file: os.truncate(file, 1 << 40), Skip.UNREADABLE, "can be taken is 262,144"),
    (Path.unlink, Skip.NO_FILE, ""),
], ids=["grows, and takes no space", "is deleted"])  # fmt: skip
async def test_a_file_that_changes_while_it_is_read_is_a_reason(
    file: Path,
    meanwhile: Callable[[Path], object],
    skip: Skip,
    detail: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file.write_text("- a\n")
    read = files.Workspace.read

    def changed(self: files.Workspace, path: str, most_bytes: int) -> files.FileContent:
        meanwhile(file)
        return read(self, path, most_bytes)

    monkeypatch.setattr(files.Workspace, "read", changed)
    found = await of(file).read(MAIN)
    assert isinstance(found, ChecklistProblem)
    assert found.skip is skip
    assert detail in found.detail


async def test_a_file_of_the_greatest_size_is_read(file: Path) -> None:
    file.write_text("- a\n" + "#" * (MAX_BYTES - 4))
    assert await listed(of(file)) == ["a"]
    file.write_text("- a\n" + "#" * (MAX_BYTES - 3))
    assert isinstance(await of(file).read(MAIN), ChecklistProblem)


async def test_an_unchanged_file_is_not_read_again_and_a_changed_one_is(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def counted(text: str) -> Checklist:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(module, "parse", counted)
    file.write_text("- a")
    checklists = of(file)
    assert await checklists.read(MAIN) is await checklists.read(MAIN)
    assert parsed == ["- a"]
    info = file.stat()
    file.write_text("- b")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns + 1))
    assert await listed(checklists) == ["b"]
    file.unlink()
    assert isinstance(await checklists.read(MAIN), ChecklistProblem)
    file.write_text("- [x] b")
    assert await listed(checklists) == []


async def test_what_became_readable_again_is_read(file: Path) -> None:
    checklists = of(file)
    file.write_bytes(b"\xff")
    assert isinstance(await checklists.read(MAIN), ChecklistProblem)
    file.write_text("- a")
    assert await listed(checklists) == ["a"]


# ---------------------------------------------------------------------------- changes
async def test_an_item_is_added_ticked_off_and_the_file_written_again(file: Path) -> None:
    checklists = of(file)
    added = await checklists.add(MAIN, "water\nthe plants")
    assert [item.text for item in added.items] == ["water the plants"]
    assert file.read_text() == "- [ ] water the plants\n"
    assert added == await checklists.read(MAIN)
    done = await checklists.complete(MAIN, 1)
    assert done.is_empty
    assert file.read_text() == "- [x] water the plants\n"
    assert done == await checklists.read(MAIN)
    written = await checklists.write(MAIN, "# Mine\r\n- every 2h: a\r\n")
    assert file.read_bytes() == b"# Mine\r\n- every 2h: a\r\n"
    assert written == await checklists.read(MAIN)
    assert (await checklists.write(MAIN, "")).is_empty
    assert file.read_bytes() == b""
    assert left_over(file) == []


async def test_an_edit_keeps_the_permissions_and_every_other_byte(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf# Caf\xc3\xa9\r\n\t- [ ] a \r\n<!-- x -->\r\n")
    file.chmod(0o640)
    await of(file).add(MAIN, "b")
    await of(file).complete(MAIN, 1)
    edited = b"\xef\xbb\xbf# Caf\xc3\xa9\r\n\t- [x] a \r\n<!-- x -->\r\n- [ ] b\r\n"
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (edited, 0o640)


async def test_the_first_item_makes_the_workspace_too(tmp_path: Path) -> None:
    checklists = ChecklistFiles({MAIN: tmp_path / "new" / "ws"})
    assert len((await checklists.add(MAIN, "a")).items) == 1
    assert await listed(checklists) == ["a"]


async def test_of_two_who_have_read_the_same_version_the_second_changes_nothing(file: Path) -> None:
    checklists = of(file)
    # What is not there has the version of an empty file.
    await checklists.write(MAIN, "- [ ] a\n- [ ] b\n", parse("").version)
    seen = parse("- [ ] a\n- [ ] b\n").version
    first = await checklists.complete(MAIN, 1, seen)
    for late in (
        checklists.complete(MAIN, 1, seen),
        checklists.write(MAIN, "- [ ] mine\n", seen),
        checklists.write(MAIN, "- [ ] mine\n", ""),
        checklists.write(MAIN, "- [ ] mine\n", parse("").version),
    ):
        with pytest.raises(ChecklistChanged):
            await late
    assert file.read_text("utf-8") == "- [x] a\n- [ ] b\n"
    await checklists.write(MAIN, "- [ ] mine\n", first.version)
    assert file.read_text("utf-8") == "- [ ] mine\n"


async def test_edits_that_come_at_once_are_all_kept(file: Path) -> None:
    """From two processes too many, so from one the more."""
    checklists = of(file)
    await asyncio.gather(*(checklists.add(MAIN, f"item {number}") for number in range(20)))
    assert sorted(await listed(checklists)) == sorted(f"item {number}" for number in range(20))
    await asyncio.gather(*(checklists.complete(MAIN, 1) for _ in range(20)))
    assert await listed(checklists) == []
    assert left_over(file) == []


async def test_an_edit_whose_asker_has_gone_loses_no_other(file: Path) -> None:
    checklists = of(file)
    gone = asyncio.create_task(checklists.add(MAIN, "one"))
    await asyncio.sleep(0)
    gone.cancel()
    with suppress(asyncio.CancelledError):
        await gone
    await checklists.add(MAIN, "two")
    assert (await listed(checklists))[-1] == "two"
    # The thread may have been too late to begin, but nothing is there in part.
    assert set(await listed(checklists)) <= {"one", "two"}


async def test_a_change_by_somebody_else_meanwhile_is_not_overwritten(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("- a\n")

    def meanwhile(text: str, item: str) -> str:
        file.write_text("- somebody else's\n")
        return f"{text}- {item}\n"

    monkeypatch.setattr(module, "with_item", meanwhile)
    with pytest.raises(BadChecklist, match="was changed by somebody else meanwhile"):
        await of(file).add(MAIN, "b")
    assert file.read_text() == "- somebody else's\n"


@pytest.mark.parametrize(("call", "why"), [
    (lambda lists: lists.write(MAIN, "x" * (MAX_BYTES + 1)), "262,145 bytes are too many"),
    (lambda lists: lists.write(MAIN, "ä" * (MAX_BYTES // 2) + "x"), "262,145 bytes"),
    (lambda lists: lists.write(MAIN, "- a\0"), "there is a NUL in it"),
    (lambda lists: lists.add(MAIN, " "), "says nothing"),
    (lambda lists: lists.complete(MAIN, 2), "there is no item 2: there are 1 to 1"),
])  # fmt: skip
async def test_a_change_that_cannot_be_made_changes_nothing(
    file: Path, call: Callable[[ChecklistFiles], Awaitable[object]], why: str
) -> None:
    file.write_text("- a\n")
    with pytest.raises(BadChecklist, match=why):
        await call(of(file))
    assert file.read_text() == "- a\n"


async def test_an_item_that_makes_the_file_too_large_is_refused(file: Path) -> None:
    file.write_text("#" * (MAX_BYTES - 5))
    with pytest.raises(BadChecklist, match="bytes are too many"):
        await of(file).add(MAIN, "a")
    assert file.stat().st_size == MAX_BYTES - 5


async def test_halves_of_characters_are_written_as_what_can_be_written(file: Path) -> None:
    await of(file).write(MAIN, "- \ud83d\ude00 \ud800")
    assert await listed(of(file)) == ["\U0001f600 \ufffd"]


async def test_a_write_protected_file_and_a_full_disk_are_reasons(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("- a\n")
    file.chmod(0o444)
    with pytest.raises(BadChecklist, match="is write-protected"):
        await of(file).add(MAIN, "b")
    file.chmod(0o644)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadChecklist, match="no space left on device"):
        await of(file).add(MAIN, "b")
    assert file.read_text() == "- a\n"
    assert left_over(file) == []
