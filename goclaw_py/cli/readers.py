"""Whether anybody still reads what a command writes: ``goclaw runs follow | head -1``."""

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
    """Raise ``BrokenPipeError`` in the block as soon as nobody reads standard output any more.

    It is cancelled for that, wherever it waits. A file or a terminal always has a reader, and where
    the system does not tell, it is noticed with the next line.
    """
    number = _pipe()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    is_gone = False

    def cut() -> None:
        nonlocal is_gone
        is_gone = True
        # It would be told without end.
        loop.remove_reader(number)
        task.cancel()

    # Nothing can be read from this end of a pipe: what is told of it is that the other one is gone.
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
    """Nobody reads it any more. Python would complain of what is left at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _pipe() -> int:
    """The number of standard output if it is a pipe, else -1."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else -1
    except (OSError, ValueError):
        # It is closed, or no file at all.
        return -1


def _is_told(loop: asyncio.AbstractEventLoop, number: int, cut: Callable[[], None]) -> bool:
    try:
        loop.add_reader(number, cut)
    except (OSError, NotImplementedError):
        return False
    return True
