"""Standard input and output: lines of a chat, a reader that is gone.

In a chat daemon threads read and write. Ctrl-S in the terminal must not block the event loop of a
gateway, and a thread that waits for a key must not keep the process alive.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

MAX_WAITING_LINES = 100
"""How many lines of a file are read ahead."""

_CHUNK = 64 * 1024


class Terminal(Protocol):
    """Where a person types and reads."""

    @property
    def interactive(self) -> bool:
        """Whether it is a real terminal."""

    async def read(self) -> str | None:
        """Return the next line without its newline; None at the end of input."""

    async def write(self, text: str) -> None:
        """Write and flush; return when it is written. Raises ``OSError`` if output is closed."""


class StandardTerminal:
    """A ``Terminal`` on two file descriptors. Create it inside the running event loop."""

    def __init__(self, source: int, sink: int) -> None:
        self.interactive = os.isatty(source) and os.isatty(sink)
        self._source = source
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_WAITING_LINES)
        self._out: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = (
            queue.SimpleQueue()
        )
        self._reader: threading.Thread | None = None
        threading.Thread(target=self._write_all, name="terminal-out", daemon=True).start()

    async def read(self) -> str | None:
        """Return the next line."""
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_all, name="terminal-in", daemon=True)
            self._reader.start()
        line = await self._lines.get()
        self._room.release()
        return line

    async def write(self, text: str) -> None:
        """Write and flush."""
        if not text:
            return
        done: asyncio.Future[None] = self._loop.create_future()
        self._out.put((text.encode("utf-8", "replace"), done))
        await done

    def close(self) -> None:
        """End the writing thread. The reading one ends with its input or the process."""
        self._out.put(None)

    def _read_all(self) -> None:
        # Not sys.stdin: its lock, held by a waiting daemon thread, makes the interpreter abort.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        while chunk := self._chunk():
            *lines, rest = (rest + decoder.decode(chunk)).split("\n")
            for line in lines:
                if not self._offer(line.removesuffix("\r")):
                    return
        rest += decoder.decode(b"", final=True)
        if rest and not self._offer(rest):
            return
        self._offer(None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._source, _CHUNK)
        except OSError:
            # A closed terminal raises EIO, which is an ordinary end of input for the chat.
            return b""

    def _offer(self, line: str | None) -> bool:
        self._room.acquire()
        return self._in_loop(lambda: self._lines.put_nowait(line))

    def _write_all(self) -> None:
        while (job := self._out.get()) is not None:
            data, done = job
            try:
                while data:
                    data = data[os.write(self._sink, data) :]
            except OSError as error:
                failure = error
                ok = self._in_loop(lambda done=done, e=failure: _fail(done, e))  # type: ignore[misc]
            else:
                ok = self._in_loop(lambda done=done: _succeed(done))  # type: ignore[misc]
            if not ok:
                return

    def _in_loop(self, what: Callable[[], None]) -> bool:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            return False  # the event loop is closed
        return True


def _succeed(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _fail(done: asyncio.Future[None], error: OSError) -> None:
    if not done.done():
        done.set_exception(error)


def is_full_terminal() -> bool:
    """Return whether standard input and output are a terminal with a movable cursor."""
    return os.isatty(0) and os.isatty(1) and os.environ.get("TERM", "") not in ("", "dumb")


@contextmanager
def standard_terminal() -> Iterator[StandardTerminal]:
    """Open the terminal of this process."""
    sys.stdout.flush()
    terminal = StandardTerminal(0, 1)
    try:
        yield terminal
    finally:
        terminal.close()


@contextmanager
def fail_without_reader() -> Iterator[None]:
    """Raise ``BrokenPipeError`` in the block as soon as the reader of standard output is gone.

    The block is cancelled wherever it waits. Files and terminals have no such event; and where the
    system does not report it, the next write fails instead.
    """
    number = _pipe()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    is_gone = False

    def on_reader_gone() -> None:
        nonlocal is_gone
        is_gone = True
        # Otherwise the event loop would call this again and again.
        loop.remove_reader(number)
        task.cancel()

    # The write end of a pipe becomes readable only when the read end is closed.
    is_watched = number >= 0 and _is_watched(loop, number, on_reader_gone)
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


@contextmanager
def until_interrupted() -> Iterator[None]:
    """End the block quietly at Ctrl-C, or when the reader of standard output is gone."""
    try:
        yield
    except KeyboardInterrupt:
        # The usual way to quit. End the line, on which the terminal has shown ^C.
        if sys.stdout.isatty():
            sys.stdout.write("\n")
    except BrokenPipeError:
        # Discard further output. Otherwise Python reports an error when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _pipe() -> int:
    """Return the file descriptor of standard output if it is a pipe, else -1."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else -1
    except (OSError, ValueError):
        # It is closed, or not a real file.
        return -1


def _is_watched(
    loop: asyncio.AbstractEventLoop, number: int, on_reader_gone: Callable[[], None]
) -> bool:
    try:
        loop.add_reader(number, on_reader_gone)
    except (OSError, NotImplementedError):
        return False
    return True
