"""The input line of ``goclaw chat`` on a real terminal (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import stat
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from prompt_toolkit.history import InMemoryHistory

from goclaw_py.chat.terminals import ChatEvent, TerminalMessage
from goclaw_py.cli.chats.editor import (
    HISTORY_FILE,
    MAX_HISTORY,
    ChatHistory,
    EditorTerminal,
    open_history,
)
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunEnded, RunStarted, RunText
from tests.unit.cli.conftest import ThreadGateway
from tests.unit.cli.processes import PATIENCE_S, Viewer, viewer_at
from tests.unit.web import fakes

pytestmark = pytest.mark.real_time

LEFT, HOME, UP, ALT_ENTER, CTRL_C, CTRL_D = "\x1b[D", "\x01", "\x1b[A", "\x1b\r", "\x03", "\x04"
SIGN = "›"  # noqa: RUF001
PASTE, PASTED = "\x1b[200~", "\x1b[201~"


@pytest.fixture
def viewer(gateway: ThreadGateway) -> Iterator[Viewer]:
    with viewer_at("chat") as made:
        made.sees_lines(SIGN)
        yield made


def happens(gateway: ThreadGateway, *events: ChatEvent) -> None:
    for event in events:
        gateway.tell_chat(event)


LINES = (
    (f"helo{LEFT}l\r", "hello"),
    (f"world{HOME}hello \r", "hello world"),
    (f"one{ALT_ENTER}two\r", "one\ntwo"),
    ("one\\\rtwo\r", "one\ntwo"),
    (f"one\\{HOME}\r", "one\\"),
    (f"{PASTE}one\rtwo{PASTED}\r", "one\ntwo"),
    ("/stopa\t\r", "/stopall"),
    ("/hel\t\r", "/help"),
    # Ctrl-Space begins no selection, which the next key would replace.
    ("abc\x00def\r", "abcdef"),
    ("Grüße 日本\r", "Grüße 日本"),
)


def test_lines_are_edited_and_sent(gateway: ThreadGateway) -> None:
    with viewer_at("chat", rows=60) as viewer:
        viewer.sees_lines(SIGN)
        shown: list[str] = []
        for keys, said in LINES:
            viewer.types(keys)
            first, *others = said.split("\n")
            shown += [f"{SIGN} {first}", *(f"  {each}" for each in others)]
            shown += [f"you said: {first}", *others]
            viewer.sees_lines(*shown, SIGN)
        assert gateway.terminals.texts == [said for _, said in LINES]


@pytest.mark.slow
def test_an_answer_that_arrives_while_somebody_types_leaves_the_typed_text_whole(
    viewer: Viewer, gateway: ThreadGateway
) -> None:
    viewer.types(f"half a line{LEFT}")
    viewer.sees_lines(f"{SIGN} half a line")
    happens(
        gateway,
        RunStarted(fakes.RUN_ID, fakes.LOCAL),
        RunText(fakes.RUN_ID, fakes.LOCAL, "# Plan\n\n- **one**"),
    )
    # The unfinished answer is above the input line …
    viewer.waits_until(lambda: "one" in "\n".join(viewer.lines))
    viewer.waits_until(lambda: viewer.lines[-1] == f"{SIGN} half a line")
    viewer.types("!")
    viewer.waits_until(lambda: viewer.lines[-1] == f"{SIGN} half a lin!e")
    # … and replaced by its message.
    happens(
        gateway,
        RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.COMPLETED),
        TerminalMessage("r1", "# Plan\n\n- **one**\n- `two`\n\nend", fakes.RUN_ID),
        TerminalMessage("r2", "a note\nof **two** lines\x1b[2J", None),
    )
    viewer.waits_until(lambda: "of **two** lines[2J" in viewer.lines)
    viewer.waits_until(lambda: viewer.lines[-1] == f"{SIGN} half a lin!e")
    _, title, *rest = [line.strip() for line in viewer.lines if line]
    assert "Plan" in title
    assert rest == [
        "• one", "• two", "end", "a note", "of **two** lines[2J", f"{SIGN} half a lin!e",
    ]  # fmt: skip
    row, column = viewer.cursor
    assert (viewer.lines[row], column) == (f"{SIGN} half a lin!e", 13)


@pytest.mark.slow
def test_a_long_unfinished_answer_shows_its_end_and_a_cut_one_stays(
    viewer: Viewer, gateway: ThreadGateway
) -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    viewer.types("abc")
    happens(gateway, RunText(fakes.RUN_ID, fakes.LOCAL, text))
    viewer.sees_lines(*(f"line {number}" for number in range(88, 100)), f"{SIGN} abc")
    happens(gateway, RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.TIMED_OUT))
    viewer.sees_lines("line 98", "line 99", "timed out", f"{SIGN} abc")


@pytest.mark.slow
def test_inputs_of_earlier_chats_are_offered(home: Path, gateway: ThreadGateway) -> None:
    for keys, said in ("first\r", "first"), (f"second{ALT_ENTER}line\r", "second\nline"):
        with viewer_at("chat") as viewer:
            viewer.sees_lines(SIGN)
            viewer.types(keys)
            viewer.waits_until(lambda: "you said:" in "\n".join(viewer.lines))
            viewer.types(CTRL_D)
            assert viewer.process.wait(PATIENCE_S) == 0
        assert gateway.terminals.texts[-1] == said
    with viewer_at("chat") as viewer:
        viewer.sees_lines(SIGN)
        viewer.types(UP)
        viewer.sees_lines(f"{SIGN} second", "  line")
        viewer.types(UP + UP)
        viewer.sees_lines(f"{SIGN} first")
    file = home / "state" / HISTORY_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_history_is_capped_and_private(tmp_path: Path) -> None:
    path = tmp_path / HISTORY_FILE
    history = ChatHistory(path)
    for number in range(MAX_HISTORY + 5):
        history.store_string(f"{number}\nmore")
    history.store_string("x" * 1_000_000)
    path.chmod(0o644)
    kept = list(ChatHistory(path).load_history_strings())
    assert kept == [f"{number}\nmore" for number in range(MAX_HISTORY + 4, 4, -1)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [HISTORY_FILE]


@pytest.mark.slow
def test_ctrl_c_stops_and_again_leaves_and_what_was_typed_stays(
    viewer: Viewer, gateway: ThreadGateway
) -> None:
    viewer.types(f"abc{CTRL_C}")
    viewer.waits_until(lambda: "you said: /stop" in viewer.lines)
    assert "Ctrl-C again quits" in viewer.lines
    viewer.waits_until(lambda: viewer.lines[-1] == f"{SIGN} abc")
    presses = 1
    # A press that comes too late to leave, on a slow machine, is answered like the first one.
    while viewer.process.poll() is None:
        presses += 1
        viewer.types(CTRL_C)
        try:
            viewer.waits_until(
                lambda: (
                    len(gateway.terminals.texts) == presses  # noqa: B023
                    and viewer.lines[-1] == f"{SIGN} abc"
                )
            )
        except OSError:  # a terminal whose other end is closed
            viewer.process.wait(PATIENCE_S)
    assert viewer.process.returncode == 0


@pytest.mark.slow
def test_after_a_suspension_lines_are_edited_again(viewer: Viewer) -> None:
    viewer.types("abc\x1a")
    _, status = os.waitpid(viewer.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert termios.tcgetattr(viewer.keys)[3] & termios.ICANON
    viewer.presses(signal.SIGCONT)
    viewer.waits_until(lambda: not termios.tcgetattr(viewer.keys)[3] & termios.ICANON)
    viewer.types(f"{LEFT}X\r")
    viewer.sees_lines(f"{SIGN} abXc", "you said: abXc", SIGN)


@pytest.mark.slow
def test_what_is_typed_outlives_the_gateway_and_the_terminal_is_as_before(
    viewer: Viewer, gateway: ThreadGateway
) -> None:
    viewer.types("hello\r")
    viewer.waits_until(lambda: "you said: hello" in viewer.lines)
    viewer.types("abc")
    gateway.stop()
    viewer.waits_until(lambda: "This chat goes on when it is back" in "\n".join(viewer.lines))
    viewer.waits_until(lambda: viewer.lines[-1] == f"{SIGN} abc")
    viewer.types("\b\b\b" + CTRL_D)
    viewer.waits_until(lambda: not any(line.startswith(SIGN) for line in viewer.lines[2:]))
    assert viewer.process.wait(PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["closed", "terminated"])
def test_a_closed_terminal_and_a_signal_end_the_chat(viewer: Viewer, ending: str) -> None:
    if ending == "closed":
        keys, viewer.keys = viewer.keys, os.open(os.devnull, os.O_RDWR)
        os.close(keys)
    else:
        viewer.presses(signal.SIGTERM)
    assert viewer.process.wait(PATIENCE_S) == (0 if ending == "closed" else 143)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a pseudo-terminal: the screen, and what a program has."""
    screen, theirs = pty.openpty()
    os.set_blocking(screen, False)
    yield screen, theirs
    os.close(screen)
    os.close(theirs)


async def seen(screen: int, text: str) -> None:
    """Wait until the screen gets a text."""
    loop, shown = asyncio.get_running_loop(), ""
    more = asyncio.Event()
    loop.add_reader(screen, more.set)
    while text not in shown:
        more.clear()
        await more.wait()
        with suppress(BlockingIOError):
            shown += os.read(screen, 65536).decode(errors="replace")
    loop.remove_reader(screen)


async def test_a_screen_that_stands_still_does_not_hold_up_the_loop(
    terminal: tuple[int, int],
) -> None:
    """Ctrl-S at the terminal of ``goclaw run`` must not stop the gateway."""
    screen, theirs = terminal
    editor = EditorTerminal(theirs, theirs, InMemoryHistory())
    async with asyncio.timeout(PATIENCE_S):
        await seen(screen, SIGN)
        termios.tcflow(theirs, termios.TCOOFF)
        writing = asyncio.ensure_future(editor.write("hello\n"))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not writing.done()
        termios.tcflow(theirs, termios.TCOON)
        await asyncio.gather(writing, seen(screen, "hello\r\n"))
        # What others print while the input line is there does not mix with it either.
        print("a warning", file=sys.stderr)
        await seen(screen, "a warning\r\n")
    editor.close()
    assert termios.tcgetattr(theirs)[3] & termios.ECHO
    with pytest.raises(BrokenPipeError):
        await editor.write("late")
    assert await editor.read() is None


def test_a_history_that_cannot_be_kept_does_no_harm(tmp_path: Path) -> None:
    history = open_history(tmp_path / "missing" / HISTORY_FILE)
    history.append_string("hello")
    assert history.get_strings() == ["hello"]
