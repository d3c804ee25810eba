"""The input line of a chat on a real terminal: editing, history, completion (SPEC CHAN-9).

It runs in a thread with an event loop of its own, because it writes without waiting: a terminal
that stands still must not block the event loop of a gateway.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session, run_in_terminal
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import CompleteStyle

from goclaw_py.cli.chats.markdown import draft_lines
from goclaw_py.cli.chats.transcript import PROMPT
from goclaw_py.cli.output import plain
from goclaw_py.core.chat_commands import MENU

HISTORY_FILE: Final = "chat_history"
MAX_HISTORY: Final = 1000
"""How many inputs are kept for the next chat."""

_LONGEST_KEPT: Final = 10_000
_INDENT: Final = "  "
_REDRAW_S: Final = 0.05
_CLOSE_S: Final = 2.0


class ChatHistory(FileHistory):
    """The last inputs, in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        path.touch(mode=0o600)
        path.chmod(0o600)
        newest = list(self.load_history_strings())
        if len(newest) > MAX_HISTORY:
            shorter = path.with_name(f"{path.name}.{os.getpid()}")
            shorter.touch(mode=0o600)
            kept = FileHistory(shorter)
            for text in reversed(newest[:MAX_HISTORY]):
                kept.store_string(text)
            shorter.replace(path)

    def store_string(self, string: str) -> None:
        """Add an input. A full disk must not end the chat."""
        if len(string) <= _LONGEST_KEPT:
            with suppress(OSError):
                super().store_string(string)


def open_history(path: Path) -> History:
    """Return the history in a file, or an empty one if the file cannot be used."""
    try:
        return ChatHistory(path)
    except OSError:
        return InMemoryHistory()


class EditorTerminal:
    """A ``Terminal`` with an input line below all output. Create it in the running event loop."""

    interactive = True

    def __init__(self, source: int, sink: int, history: History) -> None:
        self._source = source
        self._sink = sink
        self._history = history
        self._caller = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._draft = ""
        self._ready = threading.Event()
        with suppress(RuntimeError, ValueError):  # not the main thread
            self._caller.add_signal_handler(signal.SIGCONT, self._in_editor, self._resume)
        self._thread = threading.Thread(target=self._run, name="terminal-editor", daemon=True)
        self._thread.start()
        self._ready.wait()

    async def read(self) -> str | None:
        """Return the next input, which may have several lines; None after Ctrl-D."""
        return await self._lines.get()

    async def write(self, text: str) -> None:
        """Write above the input line; return when it is written."""
        if not text:
            return
        done: asyncio.Future[None] = self._caller.create_future()
        if not self._in_editor(lambda: self._output.put_nowait((text, done))):
            raise BrokenPipeError("the terminal is closed")
        await done

    def show_draft(self, text: str) -> None:
        """Show the end of an unfinished answer between output and input line; "" removes it."""
        self._draft = text
        self._session.app.invalidate()

    def close(self) -> None:
        """Remove the input line and restore the modes of the terminal."""
        with suppress(RuntimeError, ValueError):
            self._caller.remove_signal_handler(signal.SIGCONT)
        self._in_editor(self._work.cancel)
        # A terminal that stands still cannot be restored.
        self._thread.join(_CLOSE_S)

    # ------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        try:
            # A terminal that was closed cannot be restored, either.
            with suppress(asyncio.CancelledError, OSError):
                asyncio.run(self._main())
        finally:
            self._ready.set()
            self._in_loop(lambda: self._lines.put_nowait(None))

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        # For example the terminal was closed while it was written to.
        self._loop.set_exception_handler(lambda _loop, _context: self._work.cancel())
        task = asyncio.current_task()
        assert task is not None
        self._work = task
        self._output: asyncio.Queue[tuple[str, asyncio.Future[None]]] = asyncio.Queue()
        # Not sys.stdout: its lock, held by a waiting daemon thread, makes the interpreter abort.
        with (
            os.fdopen(os.dup(self._source)) as keys,
            os.fdopen(os.dup(self._sink), "w", encoding="utf-8", errors="replace") as screen,
        ):
            sized = Vt100_Output.from_pty(screen, os.environ.get("TERM"))
            # The answer to a question for the position of the cursor could come too late, and would
            # then be input of the next program.
            output = Vt100_Output(screen, sized.get_size, sized.term, enable_cpr=False)
            source = create_input(keys)
            # Raw mode all the time: in line mode, as between two inputs, the system itself would
            # take Ctrl-D.
            source.cooked_mode = nullcontext  # type: ignore[method-assign]
            self._cooked = termios.tcgetattr(self._source)
            with (
                source.raw_mode(),
                create_app_session(source, output),
                patch_stdout(raw=True),
            ):
                self._raw = termios.tcgetattr(self._source)
                self._session = self._new_session()
                writing = asyncio.ensure_future(self._write_all(output))
                self._ready.set()
                try:
                    await self._edit_all(output)
                    await writing
                finally:
                    writing.cancel()

    def _new_session(self) -> PromptSession[str]:
        commands = [f"/{name}" for name, _ in MENU]
        session: PromptSession[str] = PromptSession(
            lambda: ANSI(self._shown_draft() + PROMPT),
            history=self._history,
            completer=WordCompleter(commands, sentence=True),
            complete_style=CompleteStyle.READLINE_LIKE,
            complete_while_typing=False,
            reserve_space_for_menu=0,
            prompt_continuation=_INDENT,
            key_bindings=_keys(self._suspend),
            erase_when_done=True,
        )
        session.app.min_redraw_interval = _REDRAW_S
        return session

    def _suspend(self) -> None:
        """Stop as after Ctrl-Z in line mode, with the modes that the shell expects."""
        termios.tcsetattr(self._source, termios.TCSADRAIN, self._cooked)
        os.kill(os.getpid(), signal.SIGSTOP)

    def _resume(self) -> None:
        """Go on after ``fg``: the shell has left its own modes."""
        with suppress(termios.error):
            termios.tcsetattr(self._source, termios.TCSADRAIN, self._raw)
        self._session.app.invalidate()

    def _shown_draft(self) -> str:
        size = self._session.output.get_size()
        lines = draft_lines(self._draft, size.columns)[-max(size.rows // 2, 1) :]
        return "".join(f"{line}\n" for line in lines)

    async def _edit_all(self, output: Vt100_Output) -> None:
        with suppress(EOFError):
            while True:
                text = await self._session.prompt_async(
                    set_exception_handler=False, handle_sigint=False
                )
                if text.strip():
                    _print(output, PROMPT + plain(text).replace("\n", f"\n{_INDENT}") + "\n")
                self._in_loop(lambda text=text: self._lines.put_nowait(text))  # type: ignore[misc]
        self._in_loop(lambda: self._lines.put_nowait(None))

    async def _write_all(self, output: Vt100_Output) -> None:
        while True:
            text, done = await self._output.get()
            try:
                await run_in_terminal(lambda text=text: _print(output, text))  # type: ignore[misc]
            except OSError as error:
                self._in_loop(lambda done=done, e=error: done.done() or done.set_exception(e))  # type: ignore[misc]
            else:
                self._in_loop(lambda done=done: done.done() or done.set_result(None))  # type: ignore[misc]

    def _in_loop(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            self._caller.call_soon_threadsafe(what)

    def _in_editor(self, what: Callable[[], object]) -> bool:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            return False  # the event loop is closed
        return True


def _print(output: Vt100_Output, text: str) -> None:
    output.write_raw(text)
    output.flush()


def _keys(suspend: Callable[[], None]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-z")
    async def _(event: KeyPressEvent) -> None:
        del event
        await run_in_terminal(suspend)

    @keys.add("c-@")
    def _(event: KeyPressEvent) -> None:
        """Do nothing, instead of beginning a selection: the next key would replace the text."""
        del event

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        del event
        # The terminal itself sends no signal while lines are edited.
        os.kill(os.getpid(), signal.SIGINT)

    return keys


@contextmanager
def editor_terminal(history: Path) -> Iterator[EditorTerminal]:
    """Open the terminal of this process for editing."""
    sys.stdout.flush()
    terminal = EditorTerminal(0, 1, open_history(history))
    try:
        yield terminal
    finally:
        terminal.close()
