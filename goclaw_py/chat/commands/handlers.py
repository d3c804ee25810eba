"""Handlers of chat commands (SPEC CMD-1, CMD-5)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.access.access_requests import AccessRequests
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.commands.heartbeat import HeartbeatCommands
from goclaw_py.chat.commands.help_text import help_text
from goclaw_py.chat.commands.jobs import JobCommands
from goclaw_py.chat.inbound.approvals import ToolApprovals
from goclaw_py.chat.outbound import approval_texts, texts
from goclaw_py.chat.stop.answer import author_of, names_of, with_unread
from goclaw_py.chat.stop.execute import StopExecutor
from goclaw_py.core.actors import acts
from goclaw_py.core.chat_commands import (
    AccessButton,
    ApprovalButton,
    Command,
    Misspelt,
    Pressed,
    PressedCommand,
    RetryPressed,
    StopCommand,
    TypedCommand,
    our_command_of,
)
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import ButtonsUsed, PressAnswered
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.operations.jobs import JobService
from goclaw_py.records import ApprovalQuery, InboxRow, Place, RunQuery, Store
from goclaw_py.runs.budget_tracker import BudgetAccount, BudgetTracker
from goclaw_py.runs.session_settings import SessionSettings
from goclaw_py.scheduler.models import Mode

log = logging.getLogger(__name__)

_LATELY = 10
"""The number of runs in which ``/status`` searches the model that answered last."""

_MODES: Mapping[str, Mode | None] = {**{mode.value: mode for mode in Mode}, "default": None}
"""The arguments of ``/queue``."""


@dataclass(frozen=True, slots=True)
class CommandServices:
    """The dependencies of chat commands. ``heartbeats``: None if heartbeats are off."""

    stops: StopExecutor
    policies: SessionSettings
    access_control: AccessControl
    requests: AccessRequests
    budget_tracker: BudgetTracker
    jobs: JobService
    approvals: ToolApprovals
    heartbeats: HeartbeatService | None = None


class CommandHandlers:
    """Carries out commands."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[Place, Channel],
        node: Callable[[], NodeId],
        services: CommandServices,
    ) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._channels = channels
        self._stops = services.stops.local
        self._rights = services.stops.rights
        self._policies = services.policies
        self._access_control = services.access_control
        self._requests = services.requests
        self._approvals = services.approvals
        self._budget_tracker = services.budget_tracker
        self._jobs = JobCommands(services.jobs, store)
        self._heartbeats = HeartbeatCommands(
            services.heartbeats, services.policies, services.access_control, store.zone_of
        )
        self._typed: Mapping[str, Callable[[InboxRow, TypedCommand], Awaitable[str]]] = {
            "start": self._greet,
            "help": self._help,
            "status": self._status,
            "usage": self._usage,
            "new": self._new,
            "undo": self._undo,
            "whoami": self._who,
            "queue": self._queue,
            "approve": services.approvals.answer,
            "deny": services.approvals.answer,
            "jobs": self._jobs.answer,
            "timezone": self._jobs.answer,
            "heartbeat": self._heartbeats.answer,
            "mute": self._heartbeats.answer,
        }

    async def execute(self, row: InboxRow) -> None:
        """Execute a committed command; its row ends with the answer in the outbox.

        A stop has been executed before: only its row ends. A row without text gets a polite line.
        Raises ``StoreUnavailable``: the row is pending then, to be executed again.
        """
        message = row.message
        # Only commands for us become such rows; after a restart our name may not be known yet.
        command = our_command_of(message)
        answer: str | OutboundMessage
        if command is None and not message.addressed:
            answer = ""  # people of a group among themselves
        elif command is None and message.unsupported:
            answer = texts.unsupported(message.unsupported)
        elif command is None:
            answer = texts.EMPTY_MESSAGE
        else:
            with acts(author_of(message)):
                answer = await self._do(command, row)
        if isinstance(answer, str):
            text = with_unread(answer, message) if answer else ""
            answer = OutboundMessage(message.target, text)
        await self._settle(row, Outcome.COMPLETED, say=[answer] if answer.text else [])

    async def cover(self, row: InboxRow, reason: Reason) -> None:
        """End a message that a stop cancelled during its commit.

        Raises ``StoreUnavailable``.
        """
        await self._settle(row, Outcome.CANCELLED, reason=reason)

    async def fail(self, row: InboxRow) -> None:
        """End a row after a bug, with a text for its sender. Raises ``StoreUnavailable``."""
        # One short sentence, sent as it is: the bug may lie in the channel's cutting.
        say = [OutboundMessage(row.message.target, texts.FAILED)]
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

    async def _do(self, command: Command, row: InboxRow) -> str | OutboundMessage:
        match command:
            case StopCommand():
                return ""
            case Misspelt(meant):
                return f"Did you mean /{meant}?"
            case TypedCommand(name):
                return await self._typed[name](row, command)
            case _:
                return await self._press(row, command)

    async def _greet(self, _row: InboxRow, _command: TypedCommand) -> str:
        return texts.GREETING

    async def _help(self, _row: InboxRow, _command: TypedCommand) -> str:
        return help_text()

    async def _usage(self, row: InboxRow, _command: TypedCommand) -> str:
        today = await self._budget_tracker.today(BudgetAccount(row.session, row.agent))
        return texts.usage(row.agent, *today)

    async def _new(self, row: InboxRow, _command: TypedCommand) -> str:
        """Start a new history, unless that would stop what its sender may not (SPEC CMD-6)."""
        by = self._rights.limit(row.message)
        others = () if by is None else self._stops.of_others(row.session, by)
        if others and not await self._rights.is_admin_after_all(row.message):
            return texts.not_yours(names_of(others))
        await self._stops.start_new_session(row.session, before=row)
        return texts.NEW_SESSION

    async def _undo(self, row: InboxRow, _command: TypedCommand) -> str:
        """Remove the last turn; the answer is stored in the same transaction (SPEC CMD-7)."""
        message, rights = row.message, self._rights
        if rights.limit(message) is not None and not await rights.is_admin_after_all(message):
            return texts.UNDO_REFUSED
        if self._stops.is_busy(row.session):
            return texts.UNDO_BUSY
        turn = await self._store.last_turn(row.session)
        if turn is None:
            return texts.NOTHING_TO_UNDO
        if turn.is_summarized:
            return texts.UNDO_SUMMARIZED
        did = [
            texts.did(call.name, call.arguments, ok=call.ok)
            for call in turn.calls
            if call.side_effects
        ]
        undone_text = with_unread(texts.undone(turn.prompt, did), message)
        answer = OutboundMessage(message.target, undone_text)
        now, node = self._clock.now(), self._node()
        undone = await self._store.undo_turn(
            row.session, turn.run, row=row.id, say=answer, now=now, node=node
        )
        # False: a run has started meanwhile.
        return "" if undone else texts.UNDO_BUSY

    async def _press(self, row: InboxRow, command: PressedCommand) -> str | OutboundMessage:
        match command:
            case ApprovalButton():
                pressed = await self._approvals.press(row, command)
            case AccessButton():
                pressed = await self._requests.press(row, command)
            case RetryPressed(ids):
                pressed = await self._retry(row, ids)
            case _:
                pressed = await self._jobs.press(row, command)
        target, below = row.message.target, row.message.reply_to
        channel = self._channels[target.channel, target.account]
        if pressed.toast:
            channel.signal(PressAnswered(target, row.message.external_id, pressed.toast))
        if pressed.is_used and below is not None:
            channel.signal(ButtonsUsed(target, below))
        if pressed.buttons:
            return OutboundMessage(target, pressed.answer, draft=below, buttons=pressed.buttons)
        return pressed.answer

    async def _retry(self, row: InboxRow, ids: Sequence[int]) -> Pressed:
        """Retry failed messages of this chat; the data of a press can be forged."""
        letters = [await self._store.dead_letter(id_) for id_ in ids]
        mine = [
            letter.row.id
            for letter in letters
            if letter is not None
            and letter.session == row.session
            and letter.row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST)
        ]
        tried = await self._store.retry_dead_letters(mine, now=self._clock.now()) if mine else 0
        return Pressed("" if tried else texts.NOT_RETRIED, is_used=True)

    async def _status(self, row: InboxRow, _command: TypedCommand) -> str:
        key = row.session
        session = await self._store.session(key)
        history = texts.SessionMemory(
            0 if session is None else session.entries,
            self._policies.contexts.used(key),
            0 if session is None else session.summaries,
            0 if session is None else len(session.pinned),
        )
        # One that runs may not have heard of its model yet.
        lately = await self._store.runs(RunQuery(limit=_LATELY, session=key))
        now = texts.status(
            self._stops.runs(key),
            history,
            agent=row.agent,
            model=next((run.model for run in lately if run.model), ""),
            works=self._stops.activity(key),
        )
        asked = await self._store.approvals(ApprovalQuery(key, asked_in=row.message.target))
        waiting = [approval_texts.waiting(one) for one in reversed(asked)]
        return "\n".join([now, *waiting, *await self._jobs.coming(row)])

    async def _who(self, row: InboxRow, _command: TypedCommand) -> str:
        message = row.message
        rules = self._policies.rules(message.target).access
        owner = self._access_control.is_owner(message.target, message.sender.id, rules)
        return texts.who(message, owner=owner, session=row.session)

    async def _queue(self, row: InboxRow, command: TypedCommand) -> str:
        """Show or change the queue mode of a chat. Everybody with access may see it."""
        word, session = command.action, row.session
        message, policies = row.message, self._policies
        if not word:
            return texts.queue(
                policies.policy(session, message),
                self._stops.runs(session),
                chosen=policies.chosen(session) is not None,
                full=policies.contexts.is_full(session),
            )
        if word not in _MODES:
            return texts.unknown_mode(word)
        rules = policies.rules(message.target).access
        if not self._access_control.is_owner(message.target, message.sender.id, rules):
            return texts.NOT_AN_OWNER
        mode = _MODES[word]
        await self._store.choose_mode(session, mode)
        policies.choose(session, mode)
        now = policies.policy(session, message).mode
        log.info("queue_mode_changed", extra={"session": session, "mode": word})
        return texts.queue_changed(now, chosen=mode is not None)
