"""Detects that the reader of our output is gone, as in ``goclaw runs follow | head -1``."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def cut_without_a_reader() -> Iterator[None]:
    """Raise ``BrokenPipeError`` in the block as soon as the reader of standard output is gone.

    The block is cancelled wherever it waits. Files and terminals have no such event; and where the
    system does not report it, the next write fails instead.
    """
    number = _pipe()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    is_gone = False

    def cut() -> None:
        nonlocal is_gone
        is_gone = True
        # Otherwise the event loop would call this again and again.
        loop.remove_reader(number)
        task.cancel()

    # The write end of a pipe becomes readable only when the read end is closed.
    is_watched = number >= 0 and _is_told(loop, number, cut)
    try:
        yield
    except asyncio.CancelledError:
        if not is_gone:
            raise
        task.uncancel()
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None
    finally:
        if is_watched:
            loop.remove_reader(number)


def forget_output() -> None:
    """Discard further output. Otherwise Python reports an error when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _pipe() -> int:
    """Return the file descriptor of standard output if it is a pipe, else -1."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else -1
    except (OSError, ValueError):
        # It is closed, or not a real file.
        return -1


def _is_told(loop: asyncio.AbstractEventLoop, number: int, cut: Callable[[], None]) -> bool:
    try:
        loop.add_reader(number, cut)
    except (OSError, NotImplementedError):
        return False
    return True
