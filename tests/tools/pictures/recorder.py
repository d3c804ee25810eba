"""Records commands in a pseudo-terminal, as a person would type them at a prompt."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyte
from pyte.screens import Char

PATIENCE_S: Final = 60.0
TYPE_S: Final = 0.07
LONGEST_S: Final = 2.5
"""A pause that lasted longer in reality is shortened to this."""

Line = tuple[Char, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What the terminal showed from ``at_s`` on, line by line."""

    at_s: float
    lines: tuple[Line, ...]


class _Screen(pyte.Screen):
    """A screen that answers questions of programs, such as where the cursor is."""

    keys: int | None = None

    def write_process_input(self, data: str) -> None:
        if self.keys is not None:
            os.write(self.keys, data.encode())


class Recorder:
    """A terminal with a prompt. ``frames`` is what it showed, ``length_s`` how long that takes."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        columns: int = 92,
        rows: int = 26,
        shown: Mapping[str, str],
    ) -> None:
        """``shown`` has texts that are shown in place of others, such as names of folders."""
        self.columns, self.rows = columns, rows
        self.frames: list[Frame] = []
        self.length_s = 0.0
        self._shown = {a.encode(): b.encode() for a, b in shown.items()}
        self._env = {**env, "TERM": "xterm-256color", "COLORTERM": "", "LANG": "C.UTF-8"}
        self._cells = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._cells)
        self._process: subprocess.Popen[bytes] | None = None
        self._last_s = time.monotonic()
        self._save_frame()

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._cells.display)

    # ------------------------------------------------------------------ what the person does

    def begins(self, command: str) -> None:
        """Type a command at the prompt and start it; ``goclaw`` is that of this checkout."""
        self._show("\x1b[32m$\x1b[0m ")
        self.pauses(0.8)
        for char in command:
            self._show(char)
            self.pauses(TYPE_S)
        self._show("\r\n")
        self._cells.keys, theirs = pty.openpty()
        size = struct.pack("HHHH", self.rows, self.columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        words = command.split()
        assert words[0] == "goclaw"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "goclaw_py", *words[1:]],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self._env,
            start_new_session=True,
        )
        os.close(theirs)

    def types(self, text: str) -> None:
        """Type a text, and Enter."""
        for char in text:
            self._press(char)
            self._watch(TYPE_S)
        self._watch(0.4)
        self._press("\r")

    def pastes(self, text: str) -> None:
        """Enter a text at once, and Enter."""
        self._press(text)
        self._watch(0.6)
        self._press("\r")

    def presses(self, key: str) -> None:
        """Press a key, such as Ctrl-D."""
        self._press(key)

    def sees(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} does not come:\n{self.text}"
            assert self._watch(0.05), f"it ended before {text!r} came:\n{self.text}"

    def watches(self, seconds: float) -> None:
        """Look for a while at what the program shows."""
        self._watch(seconds)

    def ends(self) -> None:
        """Wait for the end of the program."""
        assert self._process is not None
        end = time.monotonic() + PATIENCE_S
        while self._watch(0.05):
            assert time.monotonic() < end, f"it does not end:\n{self.text}"
        self.close()

    def pauses(self, seconds: float) -> None:
        """Let time pass in the recording only, while no program runs."""
        self.length_s += seconds
        self._last_s = time.monotonic()

    def close(self) -> None:
        """End the program, if it still runs."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait(30)
        self._process = None
        assert self._cells.keys is not None
        os.close(self._cells.keys)
        self._cells.keys = None
        self._last_s = time.monotonic()

    # ------------------------------------------------------------------ what the terminal does

    def _press(self, key: str) -> None:
        assert self._cells.keys is not None
        os.write(self._cells.keys, key.encode())

    def _watch(self, seconds: float) -> bool:
        """Show what the program writes for so long; return False when it has ended."""
        keys = self._cells.keys
        assert keys is not None
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0:
            if select.select([keys], [], [], left_s)[0]:
                try:
                    data = os.read(keys, 65536)
                except OSError:  # all its other ends are closed
                    return False
                self._pass()
                for hidden, text in self._shown.items():
                    data = data.replace(hidden, text)
                self._stream.feed(data)
                self._save_frame()
        self._pass()
        return True

    def _pass(self) -> None:
        now = time.monotonic()
        self.length_s += min(now - self._last_s, LONGEST_S)
        self._last_s = now

    def _show(self, text: str) -> None:
        self._stream.feed(text.encode())
        self._save_frame()

    def _save_frame(self) -> None:
        buffer = self._cells.buffer
        columns = range(self.columns)
        lines = tuple(tuple(buffer[y][x] for x in columns) for y in range(self.rows))
        if not self.frames or self.frames[-1].lines != lines:
            self.frames.append(Frame(self.length_s, lines))
