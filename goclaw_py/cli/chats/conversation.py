"""A chat between a user at a terminal and an agent (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

from goclaw_py.chat.terminals import ChatEvent, TerminalMessage, Terminals
from goclaw_py.cli.chats.transcript import ChatDisplay, Transcript
from goclaw_py.cli.terminal import Terminal
from goclaw_py.core.chat_commands import StopCommand, our_command
from goclaw_py.core.errors import NoGateway, NotFound, StoreUnavailable
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import LineReceived, RunEnded, RunStarted
from goclaw_py.core.session_keys import CONSOLE
from goclaw_py.core.text import count
from goclaw_py.operations.control import Control
from goclaw_py.records import OutboxQuery, OutboxState, Session, SessionQuery
from goclaw_py.scheduler.operator_warnings import shell_command

LEAVE_WITHIN_S: Final = 2.0
"""A second Ctrl-C within this time quits."""

SHOWN_AT_START: Final = 20
"""How many of the messages that no terminal has shown a new one shows."""

SEEN_ROWS: Final = 1000
"""How many unsent messages ``settled`` checks, which is the largest page of the API."""

_LOOK_S: Final = 0.3
_RETRY_S: Final = (0.5, 1.0, 2.0, 5.0)
_KEPT: Final = "Not sent yet: your message is kept, and sent as soon as the gateway takes it."
"""Said at the second failure: without a gateway nothing else would."""

_ANSWERED: Final = (Outcome.COMPLETED, Outcome.INTERRUPTED)
_UNSENT: Final = (OutboxState.WAITING, OutboxState.SENDING)


class TerminalConversation:
    """One terminal in one chat, from the first prompt until the user quits.

    Args:
        outlives: Whether the conversation of a person goes on when another gateway has started;
            otherwise it ends with the gateway.
    """

    def __init__(
        self,
        terminals: Terminals,
        terminal: Terminal,
        chat: str,
        transcript: ChatDisplay | None = None,
        agent: AgentName | None = None,
        *,
        outlives: bool = False,
    ) -> None:
        self._terminals = terminals
        self._terminal = terminal
        self._chat = chat
        self._agent = agent
        self._outlives = outlives and terminal.interactive
        self._transcript = transcript or Transcript(interactive=terminal.interactive)
        self._prefix = uuid4().hex[:12]
        self._count = 0
        self._interrupted_at: float | None = None
        self._leave = asyncio.Event()
        self._side: set[asyncio.Task[None]] = set()
        self.failed: Outcome | None = None
        """How the last run with piped messages ended, if it has not answered them."""
        self._own_runs: set[RunId] = set()
        self._shown: set[str] = set()
        """Receipts of messages that were written; without a confirmation they come again."""
        self._skipped = 0

    async def run(
        self, settled: Callable[[], Awaitable[bool]], wait_s: float, missed: int = 0
    ) -> bool:
        """Chat until the user quits, input ends or output is closed.

        Of ``missed`` messages that no terminal has shown, a person sees the newest.

        At the end of piped input, wait at most ``wait_s`` seconds until ``settled`` returns True,
        which means that every answer was shown; return False if that was not enough. Raises
        ``NoGateway`` when the gateway shuts down, unless it is waited for.
        """
        if self._terminal.interactive:
            self._skipped = max(0, missed - SHOWN_AT_START)
        # Handle Ctrl-C before the first prompt invites to press it.
        with self._interrupts():
            events = asyncio.ensure_future(self._show_events())
            # Attach the terminal before the first line is sent.
            await asyncio.sleep(0)
            typing = asyncio.ensure_future(self._read_lines(settled, wait_s))
            leaving = asyncio.ensure_future(self._left())
            tasks = [events, typing, leaving]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                return next(task.result() for task in tasks if task.done())
            except OSError:
                return True  # the other end of a pipe was closed
            finally:
                await _end([*tasks, *self._side])
                await self._say_goodbye()

    async def _left(self) -> bool:
        await self._leave.wait()
        return True

    async def _say_goodbye(self) -> None:
        try:
            await self._terminal.write(self._transcript.leave())
        except OSError:
            return  # output is closed

    async def _show_events(self) -> bool:
        if self._skipped:
            where = shell_command("deliveries", "list", "--chat", f"{CONSOLE}/default/{self._chat}")
            earlier = f"{count(self._skipped, 'earlier message')}, not shown: {where}"
            await self._terminal.write(self._transcript.note(earlier))
        await self._terminal.write(self._transcript.prompt())
        is_noted = False
        while True:
            events = self._terminals.attach(self._chat)
            try:
                async for event in events:
                    is_noted = False
                    await self._show(event)
            except NoGateway:
                if not self._outlives:
                    raise
                if not is_noted:
                    # What it was saying comes again, from its beginning.
                    gone = "The gateway has ended. This chat goes on when it is back; Ctrl-D quits."
                    await self._terminal.write(self._transcript.leave())
                    await self._terminal.write(self._transcript.note(gone))
                is_noted = True
                await asyncio.sleep(_LOOK_S)
            else:
                return True
            finally:
                await _close(events)

    def _is_own(self, message_id: str) -> bool:
        return message_id.startswith(self._prefix)

    async def _show(self, event: ChatEvent) -> None:
        match event:
            case LineReceived() if self._is_own(event.message_id):
                return  # it was typed here
            case RunStarted() if any(map(self._is_own, event.messages)):
                self._own_runs.add(event.run_id)
            case RunEnded() if event.run_id in self._own_runs and event.outcome not in _ANSWERED:
                self.failed = None if self._terminal.interactive else event.outcome
        receipt = event.receipt if isinstance(event, TerminalMessage) else ""
        if self._skipped and isinstance(event, TerminalMessage) and not event.buttons:
            self._skipped -= 1
        elif receipt not in self._shown:
            await self._terminal.write(self._transcript.show(event))
        # Confirm only what was written: otherwise a crash here would lose the message.
        if receipt:
            self._shown.add(receipt)
            self._terminals.confirm(receipt)

    async def _read_lines(self, settled: Callable[[], Awaitable[bool]], wait_s: float) -> bool:
        """Send what is typed at once; of a pipe each line after the answer to the one before.

        Otherwise lines that come fast would be collected into one message, and answers to commands
        would stand between the words of others. Only stops never wait.
        """
        answers: asyncio.Task[bool] | None = None
        try:
            while (line := await self._terminal.read()) is not None:
                self._transcript.entered()
                if not line.strip():
                    await self._terminal.write(self._transcript.prompt())
                    continue
                if answers is not None and not isinstance(our_command(line), StopCommand):
                    await answers
                await self._say(line)
                if not self._terminal.interactive:
                    if answers is not None:
                        await _end([answers])
                    answers = asyncio.ensure_future(_wait_for(settled, wait_s))
            if self._terminal.interactive:
                return True
            return await (_wait_for(settled, wait_s) if answers is None else answers)
        finally:
            if answers is not None:
                await _end([answers])

    async def _say(self, text: str) -> None:
        self._count += 1
        message_id = f"{self._prefix}-{self._count}"
        for attempt in range(1_000_000):
            try:
                await self._terminals.say(self._chat, message_id, text, agent=self._agent)
            except (StoreUnavailable, NoGateway) as error:
                if isinstance(error, NoGateway) and not self._outlives:
                    raise
                if attempt == 1:
                    await self._terminal.write(self._transcript.note(_KEPT))
                await asyncio.sleep(_RETRY_S[min(attempt, len(_RETRY_S) - 1)])
            else:
                return

    def interrupt(self) -> None:
        """Handle Ctrl-C: stop the run; a second time within two seconds: quit."""
        now = asyncio.get_running_loop().time()
        last, self._interrupted_at = self._interrupted_at, now
        if last is not None and now - last <= LEAVE_WITHIN_S:
            self._leave.set()
            return
        task = asyncio.ensure_future(self._stop())
        self._side.add(task)
        task.add_done_callback(self._side_done)

    async def _stop(self) -> None:
        self._transcript.entered()
        await self._terminal.write(self._transcript.note("\nCtrl-C again quits"))
        await self._say("/stop")

    def _side_done(self, task: asyncio.Task[None]) -> None:
        self._side.discard(task)
        if not task.cancelled() and task.exception() is not None:
            # The gateway or the terminal is gone, which the event stream reports.
            self._leave.set()

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGINT, self.interrupt)
        except (RuntimeError, ValueError):
            yield  # not the main thread: the caller handles signals
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)


async def agent_for(control: Control, chat: str, wanted: str | None) -> AgentName | None:
    """Return the agent of a console chat: it keeps the one that it has; None: the default.

    Raises ``NotFound`` if another one is wanted.
    """
    ending = f":console:direct:{chat}"
    found: list[Session] = []
    with suppress(StoreUnavailable):  # what is typed waits for the database, as ever
        found = await control.sessions.list(SessionQuery(search=ending, limit=SEEN_ROWS))
    present = next((one.agent for one in found if one.key.endswith(ending)), None)
    if wanted is not None and present not in (None, wanted):
        raise NotFound(
            f"chat {chat} is a conversation with agent {present}; "
            f"choose another name with --chat to talk to {wanted}"
        )
    return present if wanted is None else AgentName(wanted)


async def settled(control: Control, chat: str) -> bool:
    """Return whether all messages in a console chat were answered and shown.

    It checks the newest ``SEEN_ROWS`` unsent messages of all chats in each state, so it misses an
    answer if that many newer messages are waiting.
    """
    status = await control.lanes.status()
    ending = f":console:direct:{chat}"
    if any(run.session.endswith(ending) for run in status.runs):
        return False
    return not await unsent(control, chat)


async def unsent(control: Control, chat: str) -> int:
    """Return the number of messages to a console chat that no terminal has shown."""
    found = 0
    for state in _UNSENT:
        for row in await control.deliveries.outbox(OutboxQuery(limit=SEEN_ROWS, state=state)):
            target = row.message.target
            found += (target.channel, target.chat) == (CONSOLE, chat)
    return found


async def _wait_for(settled: Callable[[], Awaitable[bool]], wait_s: float) -> bool:
    # Require it twice in a row: a message may be moving from one table to another meanwhile.
    seen = 0
    try:
        async with asyncio.timeout(wait_s):
            while seen < 2:
                await asyncio.sleep(_LOOK_S)
                seen = seen + 1 if await settled() else 0
    except TimeoutError:
        return False
    return True


async def _end(tasks: Sequence[asyncio.Task[bool] | asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _close(events: AsyncIterator[ChatEvent]) -> None:
    # ``Terminals`` promises only an iterator, but generators need to be closed.
    if close := getattr(events, "aclose", None):
        await close()
