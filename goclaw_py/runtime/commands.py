"""What the commands of a chat do (SPEC CMD-1, CMD-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from goclaw_py.core import wording
from goclaw_py.core.commands import (
    AccessButton,
    Command,
    Greet,
    HeartbeatCommand,
    Help,
    JobButton,
    Jobs,
    Misspelt,
    Mute,
    NewSession,
    QueueMode,
    Retry,
    ShowStatus,
    ShowUsage,
    Stop,
    Timezone,
    WhoAmI,
    our_command_of,
)
from goclaw_py.core.errors import ChannelError, StoreUnavailable, TopicGone
from goclaw_py.core.events import ButtonsUsed, PressAnswered
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.requests import Mode
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.heartbeat import HeartbeatDesk
from goclaw_py.ports.jobs import JobDesk
from goclaw_py.ports.store import InboxRow, Place, Store
from goclaw_py.runtime.access_requests import AccessRequests
from goclaw_py.runtime.doorkeeper import Doorkeeper
from goclaw_py.runtime.elsewhere import Elsewhere
from goclaw_py.runtime.heartbeat_commands import HeartbeatCommands
from goclaw_py.runtime.job_commands import JobCommands, Pressed
from goclaw_py.runtime.ledger import Ledger, Payer
from goclaw_py.runtime.policies import Policies
from goclaw_py.runtime.stopper import Stopped, Stopper

log = logging.getLogger(__name__)

_LATELY = 10
"""Among how many runs ``/status`` looks for the model that has answered last."""

_ANSWER_TRIES = 3
_ANSWER_APART_S = 1.0

_MODES: Mapping[str, Mode | None] = {**{mode.value: mode for mode in Mode}, "default": None}
"""What may follow ``/queue``."""


@dataclass(frozen=True, slots=True)
class Means:
    """What commands ask, and act on. ``heartbeats``: None if there are none here."""

    stopper: Stopper
    policies: Policies
    doorkeeper: Doorkeeper
    requests: AccessRequests
    ledger: Ledger
    jobs: JobDesk
    elsewhere: Elsewhere
    heartbeats: HeartbeatDesk | None = None


class Commands:
    """Carries out commands."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[Place, Channel],
        node: Callable[[], NodeId],
        means: Means,
    ) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._channels = channels
        self._stopper = means.stopper
        self._elsewhere = means.elsewhere
        self._policies = means.policies
        self._doorkeeper = means.doorkeeper
        self._requests = means.requests
        self._ledger = means.ledger
        self._jobs = JobCommands(means.jobs, store)
        self._heartbeats = HeartbeatCommands(
            means.heartbeats, means.policies, means.doorkeeper, store.zone_of
        )
        self._answers: set[asyncio.Task[None]] = set()

    def connect(self, shows_stop: Callable[[RunId], Awaitable[bool]]) -> None:
        """Give it who knows whether a growing reply shows that its run was stopped."""
        self._shows_stop = shows_stop

    def answer_stop(
        self, message: InboundMessage, stopped: Stopped, command: Stop, *, covered: int = 0
    ) -> None:
        """Say what was stopped, straight through the channel, past outbox and pacing.

        If ``command`` means more than was found here, other nodes are asked before. ``covered``: so
        many messages were stopped before anything knew of them.
        """
        asks = command.everything or (stopped.nothing and not covered)
        answer = self._answer_stop(message, stopped, command, covered, asks=asks)
        task = asyncio.create_task(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer_stop(
        self, message: InboundMessage, stopped: Stopped, command: Stop, covered: int, *, asks: bool
    ) -> None:
        chat, jobs = message.target, len(stopped.jobs)
        if asks:
            try:
                jobs += await self._elsewhere.stop_jobs(chat, command)
            except StoreUnavailable as error:
                log.warning("remote_jobs_not_stopped", extra={"error": str(error)})
        report = stopped.report
        only = report.stopped[0] if len(report.stopped) == 1 else None
        is_all = not (stopped.dropped or covered or jobs)
        if only is not None and is_all and await self._shows_stop(only):
            return  # its growing reply says so
        nothing = stopped.nothing and not (covered or jobs)
        if nothing and command.run is not None and message.reply_to is not None:
            await self._remove_button(chat, message.reply_to)
        parts = await self._cut_answers(chat, stopped, command) if nothing or asks else 0
        text = wording.stopped(
            len(report.stopped),
            stopped.dropped + covered,
            already=report.already_stopping,
            jobs=jobs,
            parts=parts,
        )
        await self._send_directly(OutboundMessage(chat, text))

    async def _remove_button(self, chat: Target, below: str) -> None:
        """Remove a stop button that stops nothing: that of a draft whose id nobody knew."""
        try:
            known = await self._store.own_messages(chat)
        except StoreUnavailable as error:
            log.warning("stop_button_not_removed", extra={"error": str(error)})
            return
        if below not in known:
            self._channels[chat.channel, chat.account].signal(ButtonsUsed(chat, below))

    async def _cut_answers(self, chat: Target, stopped: Stopped, command: Stop) -> int:
        """Give up what waits to be sent of an answer that is written already (SPEC CMD-2)."""
        if stopped.session is None:
            return 0
        everything, now = command.everything, self._clock.now()
        try:
            return await self._store.cut_answers(
                stopped.session, chat, everything=everything, run=stopped.run, now=now
            )
        except StoreUnavailable as error:
            log.warning("queued_answers_not_cancelled", extra={"error": str(error)})
            return 0

    async def begin_anew_anywhere(self, session: SessionKey) -> None:
        """The same where the session is worked on. Raises ``NodeSilent`` too."""
        if not await self._elsewhere.reset(session):
            await self.begin_anew(session)

    async def begin_anew(self, session: SessionKey) -> None:
        """Stop what runs and waits in a session and begin a fresh history.

        Raises ``StoreUnavailable``; then it has stopped, and the history is as it was.
        """
        await self._stopper.keep(self._stopper.stop(session, everything=True))
        await self._store.reset_session(session, now=self._clock.now())
        self._policies.contexts.forget(session)

    async def execute(self, row: InboxRow) -> None:
        """Carry out a committed command; the row is done with its answer in the outbox.

        A stop has acted before: only its row is ended. A row without any text gets a polite line.
        Raises ``StoreUnavailable``: the row is pending then, to be executed again.
        """
        message = row.message
        # Only commands for us become such rows; after a restart our name may not be known yet.
        command = our_command_of(message)
        if command is None and not message.addressed:
            answer = ""  # people of a group among themselves
        elif command is None and message.unsupported:
            answer = wording.unsupported(message.unsupported)
        elif command is None:
            answer = wording.EMPTY_MESSAGE
        else:
            answer = await self._do(command, row)
        say = [OutboundMessage(message.target, answer)] if answer else []
        await self._settle(row, Outcome.COMPLETED, say=say)

    async def cover(self, row: InboxRow, reason: Reason) -> None:
        """End a message that a stop covered while it was being committed.

        Raises ``StoreUnavailable``.
        """
        await self._settle(row, Outcome.CANCELLED, reason=reason)

    async def fail(self, row: InboxRow) -> None:
        """End a row that a bug met, with words for its sender. Raises ``StoreUnavailable``."""
        # One short sentence, sent as it is: the bug may lie in the channel's cutting.
        say = [OutboundMessage(row.message.target, wording.FAILED)]
        await self._settle(row, Outcome.FAILED, say=say)

    async def _settle(
        self,
        row: InboxRow,
        outcome: Outcome,
        *,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        now, node = self._clock.now(), self._node()
        await self._store.settle([row.id], outcome, now=now, reason=reason, say=say, node=node)

    async def close(self) -> None:
        """Let the last answers leave, for a moment."""
        if self._answers:
            await asyncio.wait(self._answers, timeout=2.0)
        for task in self._answers:
            task.cancel()

    async def _do(self, command: Command, row: InboxRow) -> str:
        match command:
            case Stop():
                answer = ""
            case Greet() | Help() | Misspelt():
                answer = wording.told(command)
            case ShowStatus():
                answer = await self._status(row)
            case ShowUsage():
                today = await self._ledger.today(Payer(row.session, row.agent))
                answer = wording.usage(row.agent, *today)
            case NewSession():
                await self.begin_anew(row.session)
                answer = wording.NEW_SESSION
            case WhoAmI():
                answer = self._who(row)
            case QueueMode(word):
                answer = await self._queue(row, word)
            case Jobs() | Timezone() | JobButton() | Retry() | AccessButton():
                answer = await self._press(row, command)
            case HeartbeatCommand() | Mute():
                answer = await self._heartbeats.answer(row, command)
            case _:
                assert_never(command)
        return answer

    async def _press(
        self, row: InboxRow, command: Jobs | Timezone | JobButton | Retry | AccessButton
    ) -> str:
        match command:
            case AccessButton():
                pressed = await self._requests.press(row, command)
            case Retry(ids):
                pressed = await self._retry(row, ids)
            case JobButton():
                pressed = await self._jobs.press(row, command)
            case _:
                return await self._jobs.answer(row, command)
        target, below = row.message.target, row.message.reply_to
        channel = self._channels[target.channel, target.account]
        if pressed.toast:
            channel.signal(PressAnswered(target, row.message.external_id, pressed.toast))
        if pressed.is_used and below is not None:
            channel.signal(ButtonsUsed(target, below))
        return pressed.answer

    async def _retry(self, row: InboxRow, ids: Sequence[int]) -> Pressed:
        """Let messages of this chat run again that failed. What a press brings can be made up."""
        letters = [await self._store.letter(id_) for id_ in ids]
        mine = [
            letter.row.id
            for letter in letters
            if letter is not None
            and letter.session == row.session
            and letter.row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
        ]
        tried = await self._store.retry_letters(mine, now=self._clock.now()) if mine else 0
        return Pressed("" if tried else wording.NOT_RETRIED, is_used=True)

    async def _status(self, row: InboxRow) -> str:
        key = row.session
        session = await self._store.session(key)
        history = wording.Conversation(
            0 if session is None else session.entries,
            self._policies.contexts.used(key),
            0 if session is None else session.summaries,
            0 if session is None else len(session.pinned),
        )
        # One that runs may not have heard of its model yet.
        lately = await self._store.runs(limit=_LATELY, session=key)
        now = wording.status(
            self._stopper.runs(key),
            history,
            agent=row.agent,
            model=next((run.model for run in lately if run.model), ""),
            works=self._stopper.works(key),
        )
        return "\n".join([now, *await self._jobs.coming(row)])

    def _who(self, row: InboxRow) -> str:
        message = row.message
        rules = self._policies.rules(message.target).access
        owner = self._doorkeeper.is_owner(message.target, message.sender.id, rules)
        return wording.who(message, owner=owner, session=row.session)

    async def _queue(self, row: InboxRow, word: str) -> str:
        """Tell how a chat queues, or change it. Anybody who may talk may ask."""
        session, message, policies = row.session, row.message, self._policies
        if not word:
            return wording.queue(
                policies.policy(session, message),
                self._stopper.runs(session),
                chosen=policies.chosen(session) is not None,
                full=policies.contexts.is_full(session),
            )
        if word not in _MODES:
            return wording.unknown_mode(word)
        rules = policies.rules(message.target).access
        if not self._doorkeeper.is_owner(message.target, message.sender.id, rules):
            return wording.NOT_AN_OWNER
        mode = _MODES[word]
        await self._store.choose_mode(session, mode)
        policies.choose(session, mode)
        now = policies.policy(session, message).mode
        log.info("queue_mode_changed", extra={"session": session, "mode": word})
        return wording.queue_changed(now, chosen=mode is not None)

    async def _send_directly(self, message: OutboundMessage) -> None:
        channel = self._channels[message.target.channel, message.target.account]
        for _ in range(_ANSWER_TRIES):
            try:
                await channel.send(message)
            except TopicGone as error:
                log.info("stop_answer_redirected", extra={"error": str(error)})
                if message.target.thread is None:
                    return
                message = message.in_general
            except ChannelError as error:
                log.warning("stop_answer_failed", extra={"error": str(error)})
                if not error.retryable:
                    return
                await asyncio.sleep(error.retry_after_s or _ANSWER_APART_S)
            else:
                return
