"""What agents are told by files of their workspaces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goclaw_py.model.errors import AgentError
from goclaw_py.model.ids import AgentName
from goclaw_py.runs.instructions import Instructions

MAIN, HELPER = AgentName("main"), AgentName("helper")


def of(folder: Path, *files: str, max_chars: int = 20_000) -> Instructions:
    return Instructions({MAIN: folder}, {MAIN: files} if files else {}, max_chars)


async def test_only_agents_md_is_read_if_it_is_there(tmp_path: Path) -> None:
    """SPEC AGENT-7: checklists are user content."""
    instructions = of(tmp_path)
    (tmp_path / "HEARTBEAT.md").write_text("- [ ] water the plants")
    (tmp_path / "SOUL.md").write_text("be curious")
    assert await instructions.read(MAIN) == ()
    (tmp_path / "AGENTS.md").write_text("\n# Be kind\n\nAlways.\n\n", "utf-8")
    assert await instructions.read(MAIN) == ("# Be kind\n\nAlways.",)
    assert await of(tmp_path / "not there").read(MAIN) == ()


async def test_configured_files_are_read_in_their_order_without_blank_ones(tmp_path: Path) -> None:
    (tmp_path / "about").mkdir()
    (tmp_path / "about/SOUL.md").write_text("be curious")
    (tmp_path / "AGENTS.md").write_text("be kind")
    (tmp_path / "EMPTY.md").write_text(" \n")
    instructions = of(tmp_path, "about/SOUL.md", "EMPTY.md", "AGENTS.md")
    assert await instructions.read(MAIN) == ("be curious", "be kind")
    assert await Instructions({MAIN: tmp_path}, {MAIN: ()}).read(MAIN) == ()
    assert await Instructions({MAIN: tmp_path}, {MAIN: None}).read(MAIN) == ("be kind",)


async def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("one")
    instructions = of(tmp_path)
    assert await instructions.read(MAIN) == ("one",)
    # The same size and time: what is known of it is told.
    info = file.stat()
    file.write_text("two")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert await instructions.read(MAIN) == ("one",)
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns + 1))
    assert await instructions.read(MAIN) == ("two",)
    file.unlink()
    assert await instructions.read(MAIN) == ()


async def test_each_agent_has_its_own(tmp_path: Path) -> None:
    for name in (MAIN, HELPER):
        (tmp_path / name).mkdir()
        (tmp_path / name / "AGENTS.md").write_text(f"I am {name}")
    instructions = Instructions({name: tmp_path / name for name in (MAIN, HELPER)}, {})
    assert await instructions.read(HELPER) == ("I am helper",)
    assert await instructions.read(MAIN) == ("I am main",)


async def test_a_configured_file_that_is_missing_is_named_in_the_log_only(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("be kind")
    with pytest.raises(AgentError) as caught:
        await of(tmp_path, "AGENTS.md", "SOUL.md").read(MAIN)
    friendly = "My instructions cannot be read. The operator can find the cause in the log."
    cause = "agent main: instructions: SOUL.md: there is no such file or folder"
    assert (caught.value.friendly, str(caught.value)) == (friendly, cause)
    assert not caught.value.retryable


@pytest.mark.parametrize("configured", [(), ("AGENTS.md",)])
async def test_instructions_cannot_come_from_outside_of_the_workspace(
    tmp_path: Path, configured: tuple[str, ...]
) -> None:
    """SPEC SEC-4."""
    (tmp_path / "secret").write_text("the secret")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/AGENTS.md").symlink_to("../secret")
    with pytest.raises(AgentError, match=r"AGENTS.md: is a link, which is never followed"):
        await of(tmp_path / "ws", *configured).read(MAIN)
    with pytest.raises(AgentError, match=r"must not have \.\. in it"):
        await of(tmp_path / "ws", "../secret").read(MAIN)


async def test_a_folder_or_a_pipe_is_no_instruction(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    with pytest.raises(AgentError, match="a device, a pipe or a socket, not a file"):
        await of(tmp_path).read(MAIN)
    (tmp_path / "SOUL.md").mkdir()
    with pytest.raises(AgentError, match="is a folder, not a file"):
        await of(tmp_path, "SOUL.md").read(MAIN)


async def test_what_is_too_long_is_cut_over_all_files_and_says_so(tmp_path: Path) -> None:
    for name, text in (("A.md", "a" * 6), ("B.md", "b" * 6), ("C.md", "c")):
        (tmp_path / name).write_text(text)
    assert await of(tmp_path, "A.md", "B.md", "C.md", max_chars=10).read(MAIN) == (
        "aaaaaa",
        "bbb…\n[B.md is cut here: instructions are at most 10 characters]",
        "[C.md is omitted: instructions are at most 10 characters]",
    )
    assert await of(tmp_path, "A.md", "C.md", max_chars=7).read(MAIN) == ("aaaaaa", "c")


@pytest.mark.parametrize("text", ["ä" * 50, "😀" * 50, "x" * 1_000, " " * 900 + "x"])
async def test_of_a_huge_file_only_the_beginning_is_read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(text, "utf-8-sig")
    os.truncate(file, 1 << 40)  # takes no space
    (read,) = await of(tmp_path, max_chars=10).read(MAIN) or ("[cut here]",)
    assert "cut here" in read
    assert "\ufffd" not in read
    assert len(read) < 100


async def test_wrong_bytes_become_replacement_characters(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\xef\xbb\xbfcaf\xe9 \xff")
    assert await of(tmp_path).read(MAIN) == ("caf\ufffd \ufffd",)
