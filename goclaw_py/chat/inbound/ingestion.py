"""Ingestion: messages become inbox rows, rows become requests.

Channels call ``accept``. Commands that stop something are executed before the commit, in the order
of the batch; everything else only after it (SPEC IO-1, CMD-1).

A message goes through ``accept`` (admit and commit), ``_process_committed`` (in the order of its
session, or after a ``reload``), ``_process`` (a bug or a lost database ends here),
``_start_turn_or_command``, ``_start_turn`` and ``submit``.

The rules of SPEC IO-1:

An inbound message is committed to `inbox` *before* the channel is told that it was received
(Telegram: a batch is one transaction, then the offset moves). External id =
`<chat>:<bot>:<message>[:<edit date>]`, `press:<bot>:<callback id>` for presses; duplicates are
dropped. Each bot counts its messages by itself, so the bot's id is part of every id of a message
(also of drafts, and of what is replied to or pressed). After another bot's token was put behind an
account, nothing replies to, edits or searches messages of the former bot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Final

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.commands.handlers import CommandHandlers
from goclaw_py.chat.inbound.chat_run import ChatRunExecutor
from goclaw_py.chat.inbound.ingress_filter import IngressFilter, with_new_apart
from goclaw_py.chat.inbound.mailbox_entry import MailboxEntry, MessageState
from goclaw_py.chat.inbound.provider_outage import ProviderOutageBuffer
from goclaw_py.chat.stop.answer import StopAnswers
from goclaw_py.chat.stop.arrival import ArrivingStops
from goclaw_py.chat.stop.execute import StopExecutor
from goclaw_py.core.chat_commands import (
    StopCommand,
    addresses_another_bot,
    command_of,
    is_stop_word,
    our_command_of,
)
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import (
    ExternalId,
    HistoryEntry,
    Inbound,
    InboundMessage,
    PeerKind,
    Role,
    Target,
    external_id,
)
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.session_keys import chat_session
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_run_id
from goclaw_py.records import AcceptedMessages, InboxKind, InboxRow, NewInbox, Place
from goclaw_py.records.approvals import ApprovalQuery
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs import speakers
from goclaw_py.runs.session_settings import SessionSettings, as_it_stands
from goclaw_py.runs.turn import Turn, as_they_ran, goes_on
from goclaw_py.runs.turn_state import DROPPED, HELD
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy, Request

log = logging.getLogger(__name__)

_REST: Final = 50.0
_LONGEST_REST_S: Final = 30.0
"""A periodic reload waits for so many times as long as the last one took, at most so long."""


class MessageIngestor:
    """Stores incoming messages and submits them to the dispatcher."""

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        policies: SessionSettings,
        channels: Mapping[Place, Channel],
        ingress: IngressFilter,
        *,
        dispatcher: Dispatcher,
        runner: ChatRunExecutor,
        commands: CommandHandlers,
        outages: ProviderOutageBuffer,
        stops: StopExecutor,
        stop_answers: StopAnswers,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._channels = channels
        self._ingress = ingress
        self._reloading = asyncio.Lock()
        self._rest_until = 0.0

        self._dispatcher, self._runner = dispatcher, runner
        self._mailboxes, self._turns = runner.mailboxes, runner.turns
        self._commands, self._outages = commands, outages
        self._local_stops, self._rights = stops.local, stops.rights
        self._stops = ArrivingStops(
            self._mailboxes, self._policies, stop_answers, stops, self._meant, self._is_here
        )

    # ------------------------------------------------------------------ arriving

    async def accept(self, batch: Sequence[Inbound]) -> None:
        sorted_batch = self._ingress.sort(with_new_apart(batch, self._channels))
        entries: list[MailboxEntry] = []
        for message, rules in sorted_batch.admitted:
            self._rights.request_admins(message)
            chosen = message.agent if rules.access.trusted else None
            if (entry := self._entry(message, chosen or rules.agent)) is not None:
                entry = self._mailboxes.enter(entry)
                entries.append(entry)
                self._stops.act_at_once(entry)
        epoch, committed = self._mailboxes.epoch, False
        try:
            await self._local_stops.database.store_as_former()
            await self._ingress.enter(sorted_batch)
            if entries or sorted_batch.pairings:
                rows = [entry.new_row() for entry in entries]
                node, now = self._store.node(), self._clock.now()
                accepted = await self._store.accept(
                    rows, node=node, now=now, pairings=sorted_batch.pairings
                )
                committed = True
                self._mailboxes.committed(entries, rows, accepted)
                self._ingress.committed(rows, accepted.duplicates)
                if epoch == self._mailboxes.epoch:
                    # A stop that has acted before the commit is done.
                    done = {external_id(row.message) for row in rows if row.outcome is not None}
                    await self._process_committed(accepted, done)
            self._ingress.entered(sorted_batch)
        finally:
            self._mailboxes.leave(entries, committed=committed)

    def forget_title(self, chat: Target) -> None:
        """Let the next message of a deleted conversation give it a title again."""
        self._ingress.forget_title(chat)

    async def deliver(self, rows: Sequence[NewInbox]) -> list[RunId]:
        """Store messages that no channel delivered, such as the result of a subagent.

        Duplicates are ignored. Returns the runs that answer them here. Raises ``StoreUnavailable``.
        """
        boxes, epoch, committed = self._mailboxes, self._mailboxes.epoch, False
        # As for messages of people: a stop that comes during the commit finds them.
        entries = [boxes.enter(MailboxEntry(r.message, r.session, r.agent)) for r in rows]
        try:
            rows = [entry.new_row() for entry in entries]
            node, now = self._store.node(), self._clock.now()
            accepted = await self._store.accept(rows, node=node, now=now)
            committed = True
            boxes.committed(entries, rows, accepted)
            if epoch == boxes.epoch:
                done = {external_id(row.message) for row in rows if row.outcome is not None}
                await self._process_committed(accepted, done)
        finally:
            boxes.leave(entries, committed=committed)
        new = {row.id for row in accepted.rows}
        mine = (entry for entry in entries if entry.row is not None and entry.row.id in new)
        return [entry.run for entry in mine if entry.run is not None]

    def _entry(self, message: InboundMessage, agent: AgentName) -> MailboxEntry | None:
        handle = self._channels[message.target.channel, message.target.account].handle
        if addresses_another_bot(message.text, handle):
            return None
        session = chat_session(agent, message.target, message.peer)
        command = command_of(message, handle)
        if command is None and self._is_stop(session, message):
            command = StopCommand(everything=False)
        return MailboxEntry(message, session, agent, command)

    def _is_stop(self, session: SessionKey, message: InboundMessage) -> bool:
        """Return whether a message is a stop word, and there is something to stop (CMD-2)."""
        if not self._may_stop(message):
            return False
        box = self._mailboxes.find(session)
        return (
            self._dispatcher.has_session(session)
            or self._turns.has_held(session)
            or self._local_stops.has_subagents(session)
            or self._mailboxes.has_acted(session, message)
            or bool(self._mailboxes.left_of(session))
            or (box is not None and bool(box.arrived()))
        )

    def _may_stop(self, message: InboundMessage) -> bool:
        return is_stop_word(message) and self._policies.rules(message.target).stop_words

    def _meant(
        self, session: SessionKey, message: InboundMessage, stop: StopCommand
    ) -> RunId | None:
        """Return the run that a ``/stop`` names, if it names one (SPEC CMD-2)."""
        replied = message.reply_to
        if stop.run is not None or replied is None:
            return stop.run
        live = (run.id for run in self._dispatcher.runs() if run.session == session)
        return next((run_id for run_id in live if self._runner.answers(run_id, replied)), None)

    def _is_here(self, session: SessionKey) -> bool:
        """Return whether this process has requests of a session, so that no other node owns it."""
        box = self._mailboxes.find(session)
        return (
            (box is not None and box.owned)
            or bool(self._mailboxes.left_of(session))
            or self._dispatcher.has_session(session)
            or self._turns.has_held(session)
        )

    # ------------------------------------------------------------------ committed

    async def _process_committed(
        self, accepted: AcceptedMessages, done: Set[ExternalId] = frozenset()
    ) -> None:
        """Process rows that were just committed, in order.

        Older rows that this process does not know go first: another node has accepted them, or the
        response to their commit was lost (SPEC NODE-1).
        """
        is_older = not self._mailboxes.has_all(accepted.before)
        rows = [row for row in accepted.rows if external_id(row.message) not in done]
        entries = [self._mailboxes.add(row) for row in rows]
        boxes = {row.session: self._mailboxes.of(row.session) for row in rows}
        if is_older or any(box.stale for box in boxes.values()):
            for box in boxes.values():
                box.mark_stale()
            if not self._dispatcher.draining:
                # What this cannot reach is found by the next reload.
                with suppress(StoreUnavailable):
                    await self.reload()
            return
        for entry in entries:
            if not boxes[entry.session].stale:
                await self._process(entry)

    async def reload(self) -> None:
        """Reload: claim rows that no live process has, in the order of their sessions.

        After a crash, from another node, or because a mailbox is stale. Raises
        ``StoreUnavailable``.
        """
        loop = asyncio.get_running_loop()
        async with self._reloading:  # what one has found another must not forget as done
            self._rest_until, began = 0.0, loop.time()
            await self._claim_pending()
            rest_s = min((loop.time() - began) * _REST, _LONGEST_REST_S)
            self._rest_until = loop.time() + rest_s

    def must_reload(self) -> bool:
        """Return whether a reload is due: a backlog makes it rarer, a stale mailbox never waits."""
        is_resting = asyncio.get_running_loop().time() < self._rest_until
        return not is_resting or self._mailboxes.has_stale()

    async def _claim_pending(self) -> None:
        mailboxes, epoch, node = self._mailboxes, self._mailboxes.epoch, self._store.node()
        await self._local_stops.database.store()
        mailboxes.forget_done(await self._store.ended(mailboxes.rows()))
        if not self._dispatcher.draining:  # what it gives back stays there until the restart
            mailboxes.forget_done((), open_rows=self._turns.rows())
        versions = mailboxes.versions()
        rows = await self._store.claim_pending(
            node, now=self._clock.now(), places=self._policies.places, known=mailboxes.begun()
        )
        met = self._stops.cancelled_among(rows)
        for row in as_they_ran(rows):
            if mailboxes.epoch != epoch:
                return  # declared dead meanwhile: what was found belongs to others
            entry, box = mailboxes.add(row), mailboxes.of(row.session)
            if row.id in met:
                entry.cancelled = Reason.STOPPED_ALL
            if box.version == versions.get(row.session, 0):
                await self._process(entry)
        mailboxes.reloaded(versions)

    async def _process(self, entry: MailboxEntry) -> None:
        """Process the next message of a session; without the database, its mailbox becomes stale.

        A new conversation must not start in the middle of what follows the message. A boundary: a
        bug ends only this message, with a text for its sender.
        """
        row = entry.row
        if row is None or entry.state is not MessageState.WAITING:
            return
        box = self._mailboxes.of(entry.session)
        entry.state, box.owned = MessageState.STARTING, True
        facts = {"inbox": row.id, "session": row.session, "kind": row.kind}
        try:
            try:
                self._policies.ensure_stored(row)
                await self._start_turn_or_command(entry, row)
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("inbox_message_failed", extra=facts)
                await self._commands.fail(row)
            entry.state = MessageState.TAKEN
        except StoreUnavailable:
            entry.state = MessageState.WAITING
            box.mark_stale()
        except Exception:
            log.exception("inbox_failure_not_stored", extra=facts)
        finally:
            if entry.state is MessageState.STARTING:
                self._mailboxes.remove(entry)

    async def _start_turn_or_command(self, entry: MailboxEntry, row: InboxRow) -> None:
        message, box = row.message, self._mailboxes.of(row.session)
        version = box.version
        if await self._end_cancelled(entry, row):
            return
        if row.dropped is not None:
            self._runner.notices.resume(row, row.dropped)
        elif message.edits is not None and (
            await self._edit(row) or await self._end_cancelled(entry, row)
        ):
            return
        elif box.version != version:
            raise StoreUnavailable("released messages must be claimed first")
        elif await self._is_command(row):
            command = our_command_of(message)
            if isinstance(command, StopCommand):  # only once
                await self._stops.carry_out(entry, command)
            await self._commands.execute(row)
        elif not self._rejoin(row):
            policy = self._policies.policy(row.session, message)
            late = not entry.accepting or bool(message.source)  # a program waits for no burst
            policy = as_it_stands(policy) if late else policy
            entry.run = self._start_turn(row, policy, late=late)

    async def _end_cancelled(self, entry: MailboxEntry, row: InboxRow) -> bool:
        """End a message that a later stop has cancelled; return whether one has."""
        if entry.cancelled is None:
            return False
        await self._commands.end_cancelled(row, entry.cancelled)
        return True

    async def _is_command(self, row: InboxRow) -> bool:
        """Return whether a row is a command; another node may not have recognised a stop word.

        That an approval waits is known only to the database. Raises ``StoreUnavailable``.
        """
        message, waiting = row.message, ApprovalQuery(row.session)
        is_command = row.kind is InboxKind.COMMAND or speakers.is_empty(message)
        if is_command or self._is_stop(row.session, message):
            return True
        return self._may_stop(message) and bool(await self._store.approvals(waiting))

    async def _edit(self, row: InboxRow) -> bool:
        """Apply or record an edit; False if the edited message is not stored."""
        message = row.message
        assert message.edits is not None
        # Change the waiting turn first: if the database's response is lost, the row has ended and
        # is not read again.
        self._amend(message, begun=False)
        if not self._is_in_run(message) and await self._store.amend(row):
            self._amend(message, begun=True)
            return True
        name = message.target.channel, message.target.account, message.edits
        before, now = await self._store.last_version(*name, before=row.id), self._clock.now()
        if before is not None and message.is_same_content(before):
            # Channels report edits also for what people do not see, such as a link preview.
            await self._store.settle([row.id], Outcome.COMPLETED, now=now)
            return True
        if not await self._store.is_known(*name):
            return False
        entry = HistoryEntry(Role.USER, speakers.edited(message))
        await self._store.note(row.session, entry, rows=[row.id], now=now)
        return True

    def _is_in_run(self, edit: InboundMessage) -> bool:
        """Return whether a run has taken the edited message, which is stored as waiting."""
        return any(
            row.message.is_edited_by(edit)
            for turn in self._turns.all()
            if turn.run is not None
            for row in turn.rows
            if row.id in turn.steered_rows
        )

    def _amend(self, edit: InboundMessage, *, begun: bool) -> None:
        """Apply an edit to the turn that waits or is about to start."""
        for turn in self._turns.all():
            if turn.run is not None and not begun:
                continue
            for place, row in enumerate(turn.rows):
                if row.message.is_edited_by(edit):
                    turn.rows[place] = replace(row, message=row.message.amended_by(edit))

    def _rejoin(self, row: InboxRow) -> bool:
        """Add a message to the turn whose interrupted run had it, also taken in (QUEUE-4, IO-2)."""
        if row.joined is not None:
            turn = self._turns.of_row(row.joined)
        else:
            turn = self._mailboxes.turn_of_run(row)
            if turn is not None and turn.run is not None:
                return False  # it has begun without this one
        if turn is None or turn.state is DROPPED:
            return False
        self._turns.append(row, turn)
        self._dispatcher.set_senders(turn.id, turn.senders)
        return True

    def _start_turn(self, row: InboxRow, policy: QueuePolicy, *, late: bool) -> RunId:
        run_id = new_run_id(self._clock)
        turn = Turn(run_id, row.session, row.agent, [row], policy, late)
        rules = self._policies.rules(row.message.target)
        if rules.access.mention and turn.peer is PeerKind.GROUP and not row.message.source:
            turn.context_messages = rules.context_messages
        if not self._outages.keeps(turn):
            self.submit(turn)
        return run_id

    def submit(self, turn: Turn) -> None:
        """Submit a turn."""
        message = turn.rows[0].message
        rules = self._policies.rules(message.target)
        policy, deadline_s = turn.policy, rules.deadline_s
        if turn.kept_since is not None:
            # A sender who was told that the message is held must not lose it; its burst is over.
            policy = as_it_stands(policy)
            if deadline_s is not None:
                kept_s = asyncio.get_running_loop().time() - turn.kept_since
                deadline_s = max(deadline_s - kept_s, 0.0)
        self._runner.add(turn)
        request = Request(
            id=turn.id,
            session=turn.session,
            agent=turn.agent,
            sender=message.sender.id,
            policy=self._policies.contexts.throttled(turn.session, policy),
            cut=goes_on(message),
            deadline_s=deadline_s,
            run_timeout_s=rules.run_timeout_s,
            pieces=len(turn.rows),
            chars=sum(row.message.chars for row in turn.rows),
            senders=turn.senders,
        )
        self._dispatcher.submit(request)
        if request.overflowed:
            self._runner.notices.overflowed(turn)

    # ------------------------------------------------------------------ sessions of this node

    async def release_idle(self) -> None:
        """Release the sessions that are idle.

        A process that shuts down starts nothing more and releases sessions with waiting messages
        too. None is released while the end of a held turn is being stored: it would run elsewhere.
        """
        ending = self._dispatcher.draining
        held = [turn for turn in self._turns.all() if not self._runner.owns(turn.id)]
        busy = self._runner.notices.sessions()
        busy |= {turn.session for turn in held if not (ending and turn.state is HELD)}
        idle = {
            key
            for key in self._mailboxes.idle(ending=ending)
            if key not in busy and not self._dispatcher.has_session(key)
        }
        if idle:
            # Before the call: one that becomes busy during it is entered again.
            self._mailboxes.close(idle)
            self._policies.forget(idle)
            try:
                await self._store.release_sessions(self._store.node(), idle, waiting=ending)
            except BaseException:
                for session in idle:
                    self._mailboxes.release_later(session)
                raise

    def forget_everything(self, node: NodeId) -> None:
        """Forget all messages: this ``node`` has expired, and they belong to other nodes."""
        self._mailboxes.clear(node)
        self._policies.forget()
        self._runner.notices.forget()
        self._outages.forget()
        self._turns.release_all()
