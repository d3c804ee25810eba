"""Execution of ``/stop`` in chats: when it arrives, before it is committed (SPEC CMD-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.inbound.mailbox_entry import MailboxEntry
from goclaw_py.chat.stop.answers import StopAnswers
from goclaw_py.chat.stop.cancellation import CancelResult, RunCanceller
from goclaw_py.core.chat_commands import StopCommand, our_command_of
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage
from goclaw_py.records import InboxKind, InboxRow, Stops
from goclaw_py.runs.session_settings import SessionSettings
from goclaw_py.runs.turn import goes_on
from goclaw_py.scheduler.models import Mode


class StopCommands:
    """Executes the stops of chats, each once.

    Args:
        meant: Returns the run that a ``/stop`` names by a reply or button.
        is_here: Returns whether this process has requests of a session, so that no other node does.
    """

    def __init__(
        self,
        mailboxes: Mailboxes,
        policies: SessionSettings,
        answers: StopAnswers,
        canceller: RunCanceller,
        meant: Callable[[SessionKey, InboundMessage, StopCommand], RunId | None],
        is_here: Callable[[SessionKey], bool],
    ) -> None:
        self._mailboxes = mailboxes
        self._policies = policies
        self._answers = answers
        self._canceller = canceller
        self._meant = meant
        self._is_here = is_here

    def act_at_once(self, entry: MailboxEntry) -> None:
        """Execute a ``/stop`` that arrives: cancel runs, and messages that came before it."""
        command, session, message = entry.command, entry.session, entry.message
        if not isinstance(command, StopCommand) or entry.acted or message.redelivered:
            return
        is_here, box = self._is_here(session), self._mailboxes.of(session)
        left = self._mailboxes.left_of(session)
        waiting = [*left, *box.waiting(), *box.arrived()]
        if not is_here and not waiting:
            return  # The commit tells who works on it, if anybody does (SPEC NODE-1).
        entry.acted = True
        run, by = self._meant(session, message, command), self._canceller.rights.limit(message)
        stopped = self._canceller.stop(session, everything=command.everything, run=run, by=by)
        mine = [
            one
            for one in waiting
            if by in (None, one.message.of_whom) and one.message.external_id not in stopped.messages
        ]
        met: Sequence[MailboxEntry] = ()
        if command.everything:
            met = mine
        elif run is None and stopped.nothing:
            met = self._oldest_turn(session, mine)
        stopped = _with_others(stopped, command, met, waiting)
        # These may never come again, so nobody is told of them.
        lost = self._mailboxes.returning(session) if command.everything else []
        silent = [one for one in lost if by in (None, one.message.of_whom)]
        for other in (*met, *silent):
            other.cancelled = stopped.reason
        entry.tried = asyncio.Event()
        for turn in (*stopped.running, *stopped.waiting):
            turn.stop_tried = entry.tried
        # Some of those are in transactions that are under way, so their names are needed too.
        named = (other.message.external_id for other in (*met, *silent))
        names = (*stopped.messages, *named)
        if names or command.everything:
            dropped = self._canceller.dropped(session) if command.everything else ()
            entry.stops = Stops(
                names, stopped.reason, everything=command.everything, by=by, dropped=dropped
            )
        count = _messages_among(met)
        entry.announce = partial(self._announce, message, command, run, stopped, count)
        if is_here:
            entry.announce_now()

    def met(self, rows: Sequence[InboxRow]) -> set[int]:
        """Return the messages that an answered stop of everything has met, among claimed rows.

        They have come here since: they were stored without its decision, such as in a session that
        another node had. A stop that is not stored yet will be stored behind them.
        """
        stops: list[tuple[SessionKey, InboundMessage, InboxRow | None]] = [
            (row.session, row.message, row)
            for row in rows
            if row.kind is InboxKind.COMMAND and self._mailboxes.has_acted(row.session, row.message)
        ]
        arriving = self._mailboxes.arriving_stops()
        stops += [(entry.session, entry.message, None) for entry in arriving]
        found: set[int] = set()
        for session, stop, stored in stops:
            if not _is_for_everything(stop):
                continue
            by = self._canceller.rights.limit(stop)
            found |= {
                row.id
                for row in rows
                if row.session == session
                and row.kind is InboxKind.MESSAGE
                and row.dropped is None
                and by in (None, row.message.of_whom)
                and (stored.is_behind(row) if stored else row.message.sent_at < stop.sent_at)
            }
        return found

    async def carry_out(self, entry: MailboxEntry, command: StopCommand) -> None:
        """Execute a committed stop, but only once. Raises ``StoreUnavailable``."""
        session, message, stopped = entry.session, entry.message, None
        run, by = self._meant(session, message, command), self._canceller.rights.limit(message)
        if not entry.acted:
            self._mailboxes.act(entry)
            stopped = self._canceller.stop(session, everything=command.everything, run=run, by=by)
            stopped = self._canceller.stop_jobs(
                message.target, stopped, everything=command.everything, run=run
            )
            self._answers.tell(message, stopped, command)
        await self._canceller.keep(stopped)
        if command.everything:
            await self._canceller.store_stop_of_session(session, before=entry.row, by=by)

    def _announce(
        self,
        message: InboundMessage,
        command: StopCommand,
        run: RunId | None,
        stopped: CancelResult,
        covered: int,
    ) -> None:
        """Stop jobs too, and announce what was stopped."""
        # After the chat's own messages, also those that nothing but this knows of yet.
        if command.everything or not covered:
            stopped = self._canceller.stop_jobs(
                message.target, stopped, everything=command.everything, run=run
            )
        self._answers.tell(message, stopped, command, covered=covered)

    def _oldest_turn(
        self, session: SessionKey, waiting: Sequence[MailboxEntry]
    ) -> list[MailboxEntry]:
        """Return the waiting messages of a session that would be its first turn."""
        turn = list(waiting[:1])
        for entry in waiting[1:]:
            message = entry.message
            policy = self._policies.policy(session, message)
            same_sender = message.sender.id == turn[0].message.sender.id
            joins = policy.debounce_s > 0 or goes_on(turn[-1].message)
            if policy.mode is Mode.INTERRUPT or (same_sender and joins):
                turn.append(entry)
        return turn


def _is_for_everything(message: InboundMessage) -> bool:
    command = our_command_of(message)
    return isinstance(command, StopCommand) and command.everything


def _with_others(
    stopped: CancelResult,
    command: StopCommand,
    met: Sequence[MailboxEntry],
    waiting: Sequence[MailboxEntry],
) -> CancelResult:
    """Add the senders of uncommitted messages that a stop has spared."""
    if not command.everything and met:
        return replace(stopped, spared=(), of_others=())  # it has met something of its sender
    if command.everything or (stopped.run is None and stopped.nothing):
        messages = [entry.message for entry in waiting]
        others = [one for one in messages if stopped.by not in (None, one.of_whom)]
        return replace(stopped, of_others=(*stopped.of_others, *others))
    return stopped


def _messages_among(entries: Sequence[MailboxEntry]) -> int:
    """Return the number of messages that people wrote; parts of a split text count once."""
    whole = sum(not goes_on(entry.message) for entry in entries)
    return max(whole, 1) if entries else 0
