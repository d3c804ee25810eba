"""Writes log lines in a thread: a full pipe, a stopped terminal and a lost disk block writers."""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from queue import Empty, SimpleQueue
from typing import Final

log = logging.getLogger(__name__)

MOST_BYTES: Final = 4_000_000
"""How much may wait while nothing can be written; further lines are dropped and counted."""
_GATHER_S: Final = 0.02
"""Lines of this time are written together: waking the thread costs more than a line."""
_END_S: Final = 2.0
"""Seconds that the end of the process waits for lines to be written."""
_LOOK_S: Final = 0.005


class LogWriter:
    """Writes lines to a copy of a file descriptor."""

    def __init__(self, descriptor: int, write: Callable[[int, bytes], int] = os.write) -> None:
        self._write_some = write
        self._descriptor = os.dup(descriptor)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        # Each number is changed by one side only, so that they need no lock.
        self._added = self._overflowed = 0
        self._ended = self._unwritten = self._reported = 0
        self._is_failing = self._is_torn = False
        # A daemon: while it is blocked it must not keep the process alive.
        threading.Thread(target=self._run, name="log writer", daemon=True).start()

    def add(self, line: bytes) -> None:
        """Write a line soon, without ever blocking. One thread at a time may call it."""
        if self._added - self._ended > MOST_BYTES:
            self._overflowed += 1
            return
        self._added += len(line)
        self._lines.put(line)

    def flush(self) -> None:
        """Wait until all lines are written, for two seconds at most."""
        deadline = time.monotonic() + _END_S
        while self._ended != self._added and time.monotonic() < deadline:
            _pause(_LOOK_S)

    def close(self) -> None:
        """End the thread when it has written all lines."""
        self._lines.put(b"")

    def _run(self) -> None:
        is_open = True
        while is_open:
            lines = [self._lines.get()]
            _pause(_GATHER_S)
            with suppress(Empty):
                while True:
                    lines.append(self._lines.get_nowait())
            is_open = b"" not in lines
            if any(lines):
                self._write(lines)
            self._ended += sum(map(len, lines))
            missing = self._overflowed + self._unwritten - self._reported
            has_room = self._added - self._ended < MOST_BYTES // 2
            if missing and has_room and not self._is_failing:
                self._reported += missing
                log.warning("log_lines_dropped", extra={"lines": missing})
        os.close(self._descriptor)

    def _write(self, lines: list[bytes]) -> None:
        text = b"".join((b"\n" if self._is_torn else b"", *lines))
        begin = len(text) - sum(map(len, lines))
        done = 0
        try:
            while done < len(text):
                done += self._write_some(self._descriptor, text[done:])
        except OSError as error:
            ends = [begin + end for end in accumulate(map(len, lines))]
            self._unwritten += sum(end > done for end in ends)
            self._is_torn = done not in (begin, *ends) if done else self._is_torn
            if not self._is_failing:
                report_unwritten(error)
            self._is_failing = True
        else:
            self._is_failing = self._is_torn = False


def _pause(seconds: float) -> None:
    """Wait for a time, not until an instant, as ``time.sleep`` does: libfaketime moves that."""
    select.select((), (), (), seconds)


def report_unwritten(error: BaseException | None) -> None:
    """Report on standard error that a log line is lost, without its text."""
    words = "a log line could not be written" if error is None else type(error).__name__
    with suppress(OSError, ValueError, AttributeError):
        os.write(sys.stderr.fileno(), f"goclaw: not logged: {words}\n".encode())
