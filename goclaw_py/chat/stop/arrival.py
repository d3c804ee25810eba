"""Execution of ``/stop`` in chats: when it arrives, before it is committed (SPEC CMD-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.inbound.mailbox_entry import MailboxEntry
from goclaw_py.chat.stop.answer import StopAnswers
from goclaw_py.chat.stop.execute import StopExecutor
from goclaw_py.chat.stop.local import Stopped
from goclaw_py.chat.stop.plan import Burst, Stop, Work, WorkKind
from goclaw_py.core.chat_commands import StopCommand, our_command_of
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage
from goclaw_py.records import InboxKind, InboxRow, Stops
from goclaw_py.runs.session_settings import SessionSettings
from goclaw_py.runs.turn import goes_on
from goclaw_py.scheduler.models import Mode


class ArrivingStops:
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
        executor: StopExecutor,
        meant: Callable[[SessionKey, InboundMessage, StopCommand], RunId | None],
        is_here: Callable[[SessionKey], bool],
    ) -> None:
        self._mailboxes = mailboxes
        self._policies = policies
        self._answers = answers
        self._local = executor.local
        self._rights = executor.rights
        self._meant = meant
        self._is_here = is_here

    def act_at_once(self, entry: MailboxEntry) -> None:
        """Execute a ``/stop`` that arrives: cancel runs, and messages that came before it."""
        command, session, message = entry.command, entry.session, entry.message
        if not isinstance(command, StopCommand) or entry.acted or message.redelivered:
            return
        is_here, box = self._is_here(session), self._mailboxes.of(session)
        waiting = [*self._mailboxes.left_of(session), *box.waiting(), *box.arrived()]
        if not is_here and not waiting:
            return  # The commit tells who works on it, if anybody does (SPEC NODE-1).
        entry.acted = True
        lost = self._mailboxes.returning(session)
        stopped = self._local.stop(
            self._stop(entry, command),
            [
                *(self._work(WorkKind.MAILBOX, one) for one in waiting),
                *(self._work(WorkKind.UNCONFIRMED, one) for one in lost),
            ],
        )
        reason = stopped.stop.reason
        cancelled = {work.id for work in stopped.messages}
        for other in (*waiting, *lost):
            if other.message.external_id in cancelled:
                other.cancelled = reason
        entry.tried = asyncio.Event()
        for turn in (*stopped.running, *stopped.waiting):
            turn.stop_tried = entry.tried
        # Some of those are in transactions that are under way, so their names are needed too.
        if (names := stopped.message_ids) or command.everything:
            dropped = self._local.database.dropped(session) if command.everything else ()
            entry.stops = Stops(
                names,
                reason,
                everything=command.everything,
                by=stopped.stop.by,
                dropped=dropped,
            )
        entry.announce = partial(self._announce, message, stopped)
        if is_here:
            entry.announce_now()

    def cancelled_among(self, rows: Sequence[InboxRow]) -> set[int]:
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
            by = self._rights.limit(stop)
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
        stop = self._stop(entry, command)
        if entry.acted:
            await self._local.database.store()
        else:
            self._mailboxes.act(entry)
            stopped = self._local.stop(stop)
            self._announce(entry.message, stopped)
            await self._local.store(stopped)
        if command.everything:
            store_session = self._local.database.store_session
            await store_session(entry.session, before=entry.row, by=stop.by)

    def _stop(self, entry: MailboxEntry, command: StopCommand) -> Stop:
        session, message = entry.session, entry.message
        run = None if command.everything else self._meant(session, message, command)
        return Stop(session, command.everything, run, self._rights.limit(message))

    def _work(self, kind: WorkKind, entry: MailboxEntry) -> Work:
        message = entry.message
        policy = self._policies.policy(entry.session, message)
        return Work(
            kind,
            message.external_id,
            frozenset((message.of_whom,)),
            messages=(message,),
            burst=Burst(
                message.sender.id,
                replaces=policy.mode is Mode.INTERRUPT,
                collects=policy.debounce_s > 0,
                continues=goes_on(message),
            ),
        )

    def _announce(self, message: InboundMessage, stopped: Stopped) -> None:
        """Stop subagents and jobs after the chat's own messages, and announce what was stopped."""
        self._answers.announce(message, self._local.stop_background(message.target, stopped))


def _is_for_everything(message: InboundMessage) -> bool:
    command = our_command_of(message)
    return isinstance(command, StopCommand) and command.everything
