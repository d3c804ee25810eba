"""A gateway as a process: signals, the socket, the database, and an exit code."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from functools import partial

from goclaw_py.app.database import Database
from goclaw_py.app.listeners import listen_web
from goclaw_py.app.logs import configure, mark_names
from goclaw_py.app.loop import unless
from goclaw_py.app.parts import build_parts
from goclaw_py.app.progress import OnProgress, ProgressStep, ignore_progress
from goclaw_py.app.service import RELEASE, Front, Service
from goclaw_py.app.systemd import managed
from goclaw_py.app.tracing import tracing
from goclaw_py.app.warm_up import WarmUp
from goclaw_py.chat.terminals import Terminals
from goclaw_py.config.models import Settings
from goclaw_py.core.actors import acting, acts
from goclaw_py.operations.control import Control
from goclaw_py.web.sockets import listen_unix, socket_path

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Signal handling: the first signal starts a graceful shutdown, the second ends its waiting.

    SIGHUP, which is sent when the terminal is closed, does the same.
    """

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()

    def on_signal(self) -> None:
        """Handle a signal."""
        if self.stop.is_set():
            self.hurry.set()
        self.stop.set()

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Install the signal handlers, and remove them afterwards."""
        loop = asyncio.get_running_loop()
        self._catch(loop)
        try:
            yield
        finally:
            for number in _NUMBERS:
                loop.remove_signal_handler(number)

    def behind(self, front: Front) -> Front:
        """Wrap ``front``, which may handle SIGINT itself; our handlers are restored at its end.

        Who has started the gateway is who acts in the foreground.
        """
        starter = acting()

        async def fronted(control: Control, terminals: Terminals) -> None:
            try:
                with acts(starter):
                    if await front(control, terminals):
                        self.hurry.set()
            finally:
                # The shutdown has begun: the next signal ends its waiting.
                self.stop.set()
                self._catch(asyncio.get_running_loop())

        return fronted

    def _catch(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in _NUMBERS:
            loop.add_signal_handler(number, self.on_signal)


async def run_gateway(
    settings: Settings,
    *,
    say: Callable[[str], None],
    on_progress: OnProgress = ignore_progress,
    greet: Callable[[Iterable[str]], None] | None = None,
    front: Front | None = None,
    may_migrate: bool = True,
) -> int:
    """Run a gateway until it is stopped; return the exit code.

    ``say`` prints a line for the person who started it. ``on_progress`` gets the progress of the
    start. When it is ready, ``greet`` is called once with lines to print; by default it says them.
    ``front`` runs in the foreground, such as a chat in the terminal: the gateway ends when it
    returns, without waiting for runs if it returns True, and log lines go to a file in the state
    folder. Without it the gateway ends on SIGINT or SIGTERM. With ``may_migrate`` False, a database
    whose schema is not up to date is an error.

    Raises ``SettingError``, ``HookConflict``, ``AlreadyRunning``, ``CannotListen`` and
    ``StoreError`` before it is ready.
    """
    parts = build_parts(settings)
    hooks = parts.hooks
    folder = settings.state_folder
    file = None if front is None else folder / "goclaw.log"
    configure(settings, file=file, ring=parts.logs, in_thread=True)
    signals = Signals()
    database = Database(settings, say, on_progress=on_progress)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        spans = await stack.enter_async_context(tracing(RELEASE))
        manager = await stack.enter_async_context(managed(os.environ))
        listener = stack.enter_context(closing(listen_unix(socket_path(folder))))
        # Before opening the database, so that an address in use is reported immediately.
        web = listen_web(settings, hooks, os.environ, say)
        if web is not None:
            stack.enter_context(closing(web))
        stack.enter_context(signals.caught())
        warm_up = stack.enter_context(WarmUp(parts))
        opening = database.open(wait=True, may_migrate=may_migrate)
        store = await unless(signals.stop, opening)
        if store is None:
            return 0
        stack.push_async_callback(store.close)
        on_progress(ProgressStep("starting the channels"))
        if not await unless(signals.stop, warm_up.until_channels_are_ready()):
            return 0
        service = Service(settings, parts, database, store, spans, manager)
        mark_names(service.name_of)
        shown = None if front is None else signals.behind(front)
        greet = greet or partial(_say_all, say)
        # What the gateway does from now on, it does for others than who has started it.
        with acts(None):
            await service.run(listener, signals.stop, signals.hurry, greet, shown, web)
        return 0


def _say_all(say: Callable[[str], None], lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
