"""A real terminal, real pipes: as a person and as a script use them (SPEC CHAN-9, OPS-1)."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.cli.chats.transcript import PROMPT
from goclaw_py.cli.terminal import MAX_WAITING_LINES, StandardTerminal, standard_terminal
from tests.unit.cli.conftest import ThreadGateway
from tests.unit.cli.processes import GOCLAW, PATIENCE_S, Person, person_at
from tests.unit.web import fakes

pytestmark = pytest.mark.real_time

CHAT = [*GOCLAW, "chat"]
LEAVES = "Ctrl-C again quits"


def idle(gateway: ThreadGateway) -> None:
    """Nothing runs and nothing waits: what is said has been answered."""
    gateway.control.messages.rows = []
    gateway.control.snapshot = replace(fakes.STATUS, runs=())


@pytest.fixture
def person(gateway: ThreadGateway) -> Iterator[Person]:
    with person_at("chat", env={**os.environ, "TERM": "dumb"}) as made:
        made.sees(PROMPT)
        yield made


def test_a_person_chats_and_leaves_with_ctrl_d(person: Person, gateway: ThreadGateway) -> None:
    for words in ("hello Ä", "again"):
        person.types(f"{words}\n")
        person.sees(f"you said: {words}\r\n{PROMPT}")
    person.types("\x04")
    assert person.process.wait(PATIENCE_S) == 0
    assert gateway.terminals.texts == ["hello Ä", "again"]
    assert len(gateway.terminals.confirmed) == 2


@pytest.mark.slow
def test_ctrl_c_stops_and_again_leaves(person: Person) -> None:
    person.presses(signal.SIGINT)
    person.sees(LEAVES)
    person.sees("you said: /stop")
    # A press that comes too late to leave, on a slow machine, is answered like the first one.
    # Every press is answered in one of the two ways, so nothing here depends on time.
    while person.process.poll() is None:
        person.presses(signal.SIGINT)
        with suppress(OSError):  # a terminal whose other end is closed
            person.sees(LEAVES)
            continue
        person.process.wait(PATIENCE_S)
    assert person.process.returncode == 0


@pytest.mark.slow
def test_a_terminal_whose_gateway_ends_says_so(person: Person, gateway: ThreadGateway) -> None:
    person.types("hello\n")
    person.sees("you said: hello")
    gateway.stop()
    person.sees("This chat goes on when it is back; Ctrl-D quits.")
    person.types("\x04")
    assert person.process.wait(PATIENCE_S) == 0


@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_the_chat(person: Person) -> None:
    keys, person.keys = person.keys, os.open(os.devnull, os.O_RDWR)
    os.close(keys)
    assert person.process.wait(PATIENCE_S) == 0


@pytest.mark.slow
def test_a_pipe_gets_the_replies_and_may_end(gateway: ThreadGateway) -> None:
    command = [*CHAT, "--wait", "0.1"]
    got = subprocess.run(command, input=b"one\n", capture_output=True, check=False)
    assert got.returncode == 1
    assert got.stderr == b"goclaw: some messages got no answer within 0.1 s (see --wait)\n"
    idle(gateway)
    got = subprocess.run(
        CHAT, input=b"one\r\ntwo", capture_output=True, timeout=PATIENCE_S, check=True
    )
    assert (got.stdout, got.stderr) == (b"you said: one\nyou said: two\n", b"")
    # A reader that leaves ends the chat quietly.
    idle(gateway)
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(CHAT, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    _, err = process.communicate(b"one\n", timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, b"")


async def read_all(terminal: StandardTerminal) -> list[str]:
    lines = []
    while (line := await terminal.read()) is not None:
        lines.append(line)
    return lines


@pytest.mark.parametrize(("raw", "lines"), [
    (b"", []),
    (b"a\nb\n", ["a", "b"]),
    (b"a\r\n\nb", ["a", "", "b"]),
    ("ä\u2028ö\n".encode(), ["ä\u2028ö"]),
    (b"\xff\n", ["\ufffd"]),
    (b"\xc3", ["\ufffd"]),
])  # fmt: skip
async def test_lines_come_as_they_are(tmp_path: Path, raw: bytes, lines: list[str]) -> None:
    file = tmp_path / "input"
    file.write_bytes(raw)
    source = os.open(file, os.O_RDONLY)
    sink = os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT)
    terminal = StandardTerminal(source, sink)
    assert not terminal.interactive
    assert await read_all(terminal) == lines
    await terminal.write("")
    await terminal.write("Grüße\ud800\n")
    assert (tmp_path / "output").read_text("utf-8") == "Grüße?\n"
    terminal.close()
    os.close(source)
    os.close(sink)


async def test_a_long_file_is_read_ahead_only_in_part(tmp_path: Path) -> None:
    file = tmp_path / "input"
    count = 10 * MAX_WAITING_LINES
    line = "x" * 9_999
    file.write_text(f"{line}\n" * count)
    source = os.open(file, os.O_RDONLY)
    terminal = StandardTerminal(source, 1)
    assert await terminal.read() == line
    # Without a limit the whole file would be in memory by now.
    await asyncio.sleep(0.2)
    assert os.lseek(source, 0, os.SEEK_CUR) < 2 * MAX_WAITING_LINES * len(line)
    assert len(await read_all(terminal)) == count - 1
    terminal.close()
    os.close(source)


async def test_a_character_that_arrives_in_two_pieces_stays_whole() -> None:
    source, keys = os.pipe()
    terminal = StandardTerminal(source, 1)
    reading = asyncio.ensure_future(terminal.read())
    os.write(keys, "Ä".encode()[:1])
    await asyncio.sleep(0.01)
    os.write(keys, "Ä".encode()[1:] + b"\n")
    assert await reading == "Ä"
    os.close(keys)
    assert await terminal.read() is None
    terminal.close()
    os.close(source)


async def test_a_screen_that_stands_still_does_not_hold_up_the_loop() -> None:
    """Ctrl-S at the terminal of ``goclaw run`` must not stop the gateway."""
    screen, theirs = pty.openpty()
    terminal = StandardTerminal(theirs, theirs)
    assert terminal.interactive
    termios.tcflow(theirs, termios.TCOOFF)
    writing = asyncio.ensure_future(terminal.write("hello"))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not writing.done()
    termios.tcflow(theirs, termios.TCOON)
    async with asyncio.timeout(PATIENCE_S):
        await writing
    assert os.read(screen, 100) == b"hello"
    terminal.close()
    os.close(screen)
    os.close(theirs)


async def test_a_broken_screen_is_an_error_of_the_write_alone() -> None:
    reader, sink = os.pipe()
    os.close(reader)
    terminal = StandardTerminal(0, sink)
    for _ in range(2):
        with pytest.raises(BrokenPipeError):
            await terminal.write("x")
    terminal.close()
    os.close(sink)


async def test_a_write_that_was_given_up_does_no_harm() -> None:
    reader, sink = os.pipe()
    terminal = StandardTerminal(0, sink)
    for _ in range(50):
        writing = asyncio.ensure_future(terminal.write("x"))
        await asyncio.sleep(0)
        writing.cancel()
    await terminal.write("y")
    assert os.read(reader, 100).endswith(b"y")
    os.close(reader)
    writing = asyncio.ensure_future(terminal.write("x"))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(BrokenPipeError):
        await terminal.write("z")
    terminal.close()
    os.close(sink)


def test_a_thread_whose_loop_has_ended_ends_too() -> None:
    source, keys = os.pipe()
    before = set(threading.enumerate())

    async def begin() -> None:
        terminal = StandardTerminal(source, 1)
        terminal.close()
        reading = asyncio.ensure_future(terminal.read())
        await asyncio.sleep(0.01)
        reading.cancel()

    asyncio.run(begin())
    (reader,) = (t for t in set(threading.enumerate()) - before if t.name == "terminal-in")
    os.write(keys, b"late\n")
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    os.close(keys)
    os.close(source)


async def test_the_terminal_of_this_process_is_standard_input_and_output() -> None:
    with standard_terminal() as terminal:
        assert terminal.interactive == (os.isatty(0) and os.isatty(1))
