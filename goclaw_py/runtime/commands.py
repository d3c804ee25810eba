"""What the commands of a chat do (SPEC CMD-1, CMD-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import assert_never

from goclaw_py.core import wording
from goclaw_py.core.commands import (
    Command,
    Greet,
    Help,
    NewSession,
    ShowStatus,
    Stop,
    our_command,
)
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.control import StopReport
from goclaw_py.ports.store import InboxRow, Place, Store
from goclaw_py.runtime.dispatcher import Dispatcher

log = logging.getLogger(__name__)

_ANSWER_TRIES = 3
_ANSWER_APART_S = 1.0


class Commands:
    """Carries out commands."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        dispatcher: Dispatcher,
        channels: Mapping[Place, Channel],
    ) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher = dispatcher
        self._channels = channels
        self._answers: set[asyncio.Task[None]] = set()

    def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        """Stop one thing or everything of a session, at once."""
        stop = self._dispatcher.stop_all if everything else self._dispatcher.stop_oldest
        done = stop(session)
        log.info(
            "stopped on request",
            extra={"session": session, "runs": len(done.stopped), "dropped": len(done.dropped)},
        )
        return StopReport(tuple(done.stopped), tuple(done.dropped), done.already_stopping)

    def answer_stop(self, message: InboundMessage, report: StopReport, dropped: int) -> None:
        """Say what was stopped, straight through the channel, past outbox and pacing."""
        text = wording.stopped(len(report.stopped), dropped, already=report.already_stopping)
        task = asyncio.create_task(self._send_directly(OutboundMessage(message.target, text)))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def execute(self, row: InboxRow) -> None:
        """Carry out a committed command; the row is done with its answer in the outbox.

        A stop has acted before: only its row is ended. A row without any text gets a polite line.
        Raises ``StoreUnavailable``: the row is pending then, to be executed again.
        """
        message = row.message
        channel = self._channels[message.target.channel, message.target.account]
        # Only commands for us become such rows; after a restart our name may not be known yet.
        command = our_command(message.text)
        if command is None:
            answer = wording.EMPTY_MESSAGE
        else:
            answer = await self._do(command, row)
        say = [OutboundMessage(message.target, part) for part in channel.parts(answer)]
        await self._store.settle([row.id], Outcome.COMPLETED, now=self._clock.now(), say=say)

    async def cover(self, row: InboxRow, reason: Reason) -> None:
        """End a message that a stop covered while it was being committed.

        Raises ``StoreUnavailable``.
        """
        now = self._clock.now()
        await self._store.settle([row.id], Outcome.CANCELLED, now=now, reason=reason)

    async def fail(self, row: InboxRow) -> None:
        """End a row that a bug met, with words for its sender. Raises ``StoreUnavailable``."""
        # One short sentence, sent as it is: the bug may lie in the channel's cutting.
        say = [OutboundMessage(row.message.target, wording.FAILED)]
        await self._store.settle([row.id], Outcome.FAILED, now=self._clock.now(), say=say)

    async def close(self) -> None:
        """Let the last answers leave, for a moment."""
        if self._answers:
            await asyncio.wait(self._answers, timeout=2.0)
        for task in self._answers:
            task.cancel()

    async def _do(self, command: Command, row: InboxRow) -> str:
        match command:
            case Stop():
                return ""
            case Greet():
                return wording.GREETING
            case Help():
                return wording.help_text()
            case ShowStatus():
                session = await self._store.session(row.session)
                runs = [run for run in self._dispatcher.runs() if run.session == row.session]
                return wording.status(runs, 0 if session is None else session.entries)
            case NewSession():
                self._dispatcher.stop_all(row.session)
                await self._store.reset_session(row.session, now=self._clock.now())
                return wording.NEW_SESSION
            case _:
                assert_never(command)

    async def _send_directly(self, message: OutboundMessage) -> None:
        channel = self._channels[message.target.channel, message.target.account]
        for _ in range(_ANSWER_TRIES):
            try:
                await channel.send(message)
            except ChannelError as error:
                log.warning("the answer to a stop was not sent: %s", error)
                if not error.retryable:
                    return
                await asyncio.sleep(error.retry_after_s or _ANSWER_APART_S)
            else:
                return
