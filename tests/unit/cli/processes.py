"""Commands as processes of their own: before a person at a terminal, and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

import pyte

GOCLAW = [sys.executable, "-m", "goclaw_py"]
PATIENCE_S = 60
PRESS_AGAIN_S = 10


class Person:
    """Sits at a pseudo-terminal at which ``goclaw …`` runs."""

    def __init__(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        self.keys, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.process = subprocess.Popen(
            [*GOCLAW, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=env,
            start_new_session=True,
        )
        os.close(theirs)
        self._screen = ""

    def types(self, text: str) -> None:
        os.write(self.keys, text.encode())

    def presses(self, key: signal.Signals) -> None:
        os.kill(self.process.pid, key)

    def interrupts(self) -> None:
        """Press Ctrl-C at a question. Python misses it between its prompt and its read: repeat."""
        for _ in range(PATIENCE_S // PRESS_AGAIN_S):
            self.presses(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PRESS_AGAIN_S)
                return

    def sees(self, text: str) -> str:
        """Wait for a text. Returns what was shown before it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self._screen:
            ready, _, _ = select.select([self.keys], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} does not come after {self._screen!r}"
            self._screen += os.read(self.keys, 65536).decode()
        before, _, self._screen = self._screen.partition(text)
        return before

    def sees_it_end(self) -> tuple[int, str]:
        """The exit code, and what was shown besides."""
        code = self.process.wait(PATIENCE_S)
        with suppress(OSError):  # a terminal whose other end is closed
            while shown := os.read(self.keys, 65536):
                self._screen += shown.decode()
        return code, self._screen

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.keys)


class Viewer(Person):
    """Sits at a terminal that understands escape sequences, and sees what they make of it."""

    def __init__(self, *words: str, rows: int = 24, columns: int = 80) -> None:
        super().__init__(*words, env={**os.environ, "TERM": "xterm-256color"})
        self._cells = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._cells)
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def lines(self) -> list[str]:
        """The lines of the screen down to the last one with text."""
        return "\n".join(map(str.rstrip, self._cells.display)).rstrip().split("\n")

    @property
    def cursor(self) -> tuple[int, int]:
        return self._cells.cursor.y, self._cells.cursor.x

    def waits_until(self, seen: Callable[[], object]) -> None:
        """Wait until something holds for the screen."""
        deadline = time.monotonic() + PATIENCE_S
        while not seen():
            ready, _, _ = select.select([self.keys], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the screen stays like this:\n" + "\n".join(self.lines)
            self._stream.feed(os.read(self.keys, 65536))

    def resizes(self, *, rows: int, columns: int) -> None:
        """Give the terminal another size; the program is told as by a real one."""
        self._cells.resize(rows, columns)
        self._cells.reset()
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.presses(signal.SIGWINCH)

    def sees_lines(self, *lines: str) -> None:
        """Wait until the screen ends with these lines."""
        self.waits_until(lambda: self.lines[-len(lines) :] == list(lines))


@contextmanager
def viewer_at(*words: str, rows: int = 24, columns: int = 80) -> Iterator[Viewer]:
    made = Viewer(*words, rows=rows, columns=columns)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def person_at(*words: str, env: Mapping[str, str] | None = None) -> Iterator[Person]:
    made = Person(*words, env=env)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def piped(*words: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A command and its output, in a pipe. It must end by itself, without a word of error."""
    with subprocess.Popen(
        [*GOCLAW, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process, process.stdout
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == ""
