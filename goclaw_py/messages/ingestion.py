"""Ingestion: messages become inbox rows, rows become requests.

``accept`` is what channels call. Commands that stop something act before the commit, in the order
of the batch; everything else is worked on only after the commit (SPEC IO-1, CMD-1).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace

from goclaw_py.chats.session_settings import SessionSettings, as_it_stands
from goclaw_py.common.clock import new_run_id
from goclaw_py.messages.blocked_messages import BlockedMessages
from goclaw_py.messages.cancellation import RunCanceller
from goclaw_py.messages.chat_run import ChatRunExecutor
from goclaw_py.messages.command_handlers import CommandHandlers
from goclaw_py.messages.ingress_filter import IngressFilter
from goclaw_py.messages.provider_outage import ProviderOutageBuffer
from goclaw_py.messages.uncommitted_messages import (
    LocalSessionState,
    UncommittedMessage,
    UncommittedMessages,
    is_edited_by,
    says_nothing,
)
from goclaw_py.model.chat_commands import (
    StopCommand,
    addresses_another_bot,
    command_of,
    is_stop_word,
    our_command_of,
)
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.model.messages import ExternalId, Inbound, InboundMessage, PeerKind, external_id
from goclaw_py.model.session_keys import chat_session
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import AcceptedMessages, InboxKind, InboxRow, NewInbox, Place, Store
from goclaw_py.runs import speakers
from goclaw_py.runs.turn import Turn, goes_on
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy, Request

log = logging.getLogger(__name__)


class MessageIngestor:
    """Stores incoming messages and submits them to the dispatcher."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policies: SessionSettings,
        channels: Mapping[Place, Channel],
        ingress: IngressFilter,
        node: Callable[[], NodeId],
    ) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._policies = policies
        self._channels = channels
        self._ingress = ingress
        self._looking = asyncio.Lock()
        self._sessions: set[SessionKey] = set()
        self._held_up = BlockedMessages()

    def connect(
        self,
        dispatcher: Dispatcher,
        runner: ChatRunExecutor,
        commands: CommandHandlers,
        canceller: RunCanceller,
        outages: ProviderOutageBuffer,
    ) -> None:
        """Give it those to whom it hands over. Call it once, before anything arrives."""
        self._dispatcher, self._runner = dispatcher, runner
        self._in_hand = runner.in_hand
        self._commands, self._stopper = commands, canceller
        self._outages = outages
        self._arrivals = UncommittedMessages(
            self._policies,
            commands.stop_answers,
            canceller,
            self._meant,
            self._hold,
            runner.has,
        )

    # ------------------------------------------------------------------ arriving

    async def accept(self, batch: Sequence[Inbound]) -> None:
        """See ``ports.channel.Intake``."""
        sorted_batch = self._ingress.sort(batch)
        arrivals: list[UncommittedMessage] = []
        for message, rules in sorted_batch.admitted:
            self._stopper.rights.look(message)
            if (arrival := self._arrive(message, rules.agent)) is not None:
                arrivals.append(arrival)
                self._arrivals.enter(arrival)
        life = self._in_hand.life
        try:
            await self._ingress.enter(sorted_batch)
            if arrivals or sorted_batch.pairings:
                rows = [arrival.row() for arrival in arrivals]
                node, now = self._node(), self._clock.now()
                accepted = await self._store.accept(
                    rows, node=node, now=now, pairings=sorted_batch.pairings
                )
                self._arrivals.committed(arrivals, rows, accepted)
                self._ingress.committed(rows, accepted.duplicates)
                arrivals = self._arrivals.without(arrivals, accepted.duplicates)
                if life == self._in_hand.life:
                    await self._take_up(accepted, {external_id(a.message): a for a in arrivals})
            self._ingress.entered(sorted_batch)
        finally:
            self._arrivals.leave(arrivals)

    async def bring(self, rows: Sequence[NewInbox]) -> list[RunId]:
        """Let messages in that nobody has sent, such as the result of a subagent.

        One that is known falls out. Returns the runs that are to answer those that this process
        works on. Raises ``StoreUnavailable``.
        """
        life = self._in_hand.life
        accepted = await self._store.accept(rows, node=self._node(), now=self._clock.now())
        if life == self._in_hand.life:
            await self._take_up(accepted, {})
        turns = (self._in_hand.turn(row.id) for row in accepted.rows)
        return [turn.id for turn in turns if turn is not None]

    def _arrive(self, message: InboundMessage, agent: AgentName) -> UncommittedMessage | None:
        handle = self._channels[message.target.channel, message.target.account].handle
        if addresses_another_bot(message.text, handle):
            return None
        session = chat_session(agent, message.target, message.peer)
        command = command_of(message, handle)
        if command is None and self._stops(session, message):
            command = StopCommand(everything=False)
        return UncommittedMessage(message, session, agent, command)

    def _stops(self, session: SessionKey, message: InboundMessage) -> bool:
        """Whether a message is a bare stop word and there is something to stop (SPEC CMD-2)."""
        return (
            is_stop_word(message)
            and self._policies.rules(message.target).stop_words
            and (
                self._dispatcher.has_session(session)
                or self._outages.has_session(session)
                or self._arrivals.follows(session, message)
            )
        )

    def _meant(
        self, session: SessionKey, message: InboundMessage, stop: StopCommand
    ) -> RunId | None:
        """The run of a session that a ``/stop`` means, if it means one (SPEC CMD-2)."""
        replied = message.reply_to
        if stop.run is not None or replied is None:
            return stop.run
        live = (run.id for run in self._dispatcher.runs() if run.session == session)
        return next((run_id for run_id in live if self._runner.answers(run_id, replied)), None)

    def _hold(self, session: SessionKey) -> LocalSessionState:
        is_here = (
            session in self._sessions
            or self._dispatcher.has_session(session)
            or self._outages.has_session(session)
        )
        held_up = (row for row in self._held_up.of(session) if row.id not in self._in_hand)
        rows = {row.id: row for row in (*held_up, *self._in_hand.on_their_way(session))}
        messages = [
            rows[id_].message for id_ in sorted(rows) if rows[id_].kind is InboxKind.MESSAGE
        ]
        return LocalSessionState(is_here, messages)

    # ------------------------------------------------------------------ committed

    async def _take_up(
        self, accepted: AcceptedMessages, arrivals: Mapping[ExternalId, UncommittedMessage]
    ) -> None:
        """Work on rows that were just committed, in their order.

        What waits before them goes first, though nobody here has heard of it: another node has
        accepted it, or the answer of its commit was lost (SPEC NODE-1).
        """
        older = accepted.before.difference(self._in_hand, self._held_up)
        given_back = any(self._in_hand.was_released(row.session) for row in accepted.rows)
        if (older or given_back) and not self._dispatcher.draining:
            # A look finds all of them in their order. What it cannot reach is found by the next.
            new = {row.id for row in accepted.rows if external_id(row.message) in arrivals}
            with suppress(StoreUnavailable):
                await self.take_pending(new)
            return
        for row in accepted.rows:
            arrival = arrivals.get(external_id(row.message))
            if arrival is None:
                await self._take(row, late=True)
            elif not arrival.taken_up:  # by such a look
                arrival.taken_up = True
                # A stop that has acted before the commit is done.
                if not (arrival.acted and row.kind is InboxKind.COMMAND):
                    await self._take(row)

    async def take_pending(self, new: Set[int] = frozenset()) -> None:
        """Take up rows that no live process works on: after a crash, or from another node.

        ``new`` were just committed behind such rows. Raises ``StoreUnavailable``.
        """
        async with self._looking:  # what one look has found another must not forget as done
            await self._look(new)

    async def _look(self, new: Set[int]) -> None:
        node, life = self._node(), self._in_hand.life
        await self._stopper.keep()
        done = await self._store.ended(set(self._in_hand).union(self._held_up))
        self._forget_done()
        with self._in_hand.look():
            rows = await self._store.claim_pending(
                node, now=self._clock.now(), places=self._policies.places, known=set(self._in_hand)
            )
            self._held_up.no_more(done)
            self._in_hand.forget(done)
            for row in self._arrivals.found(rows, new):
                if self._in_hand.life != life:
                    return  # declared dead meanwhile: what this look found belongs to others
                self._in_hand.found(row)
                await self._take(row, late=row.id not in new)

    def _forget_done(self) -> None:
        """Forget rows whose end is stored: one that is pending again is to be tried again."""
        if not self._dispatcher.draining:  # what it gives back stays there until the restart
            self._in_hand.keep(self._runner.rows_in_hand() | self._stopper.rows())

    async def _take(self, row: InboxRow, *, late: bool = False) -> None:
        """Work on a row, unless that is done already or the time for it has not come.

        Args:
            row: A pending row of this node.
            late: It waited in the database for somebody to take it up.
        """
        if row.id in self._in_hand or self._held_up.must_wait(row):
            return
        if self._in_hand.comes_later(row):
            self._held_up.add(row)
            return
        self._in_hand.begin(row)
        self.release_later(row.session)
        self._policies.meet(row)
        done = False
        try:
            done = await self._work_on_or_fail(row, late=late)
            self._held_up.no_more({row.id})
        except StoreUnavailable:
            # It is still pending in the database. The next look takes it up again, and what came
            # after it: a fresh conversation must not begin in the middle of what follows it.
            self._held_up.add(row)
        finally:
            self._in_hand.end(row.id, keep=done)

    async def _work_on_or_fail(self, row: InboxRow, *, late: bool) -> bool:
        """Whether the row is done with, or the dispatcher has it. Raises ``StoreUnavailable``.

        A boundary: a bug that one row meets ends that row with words and stops no other.
        """
        facts = {"inbox": row.id, "session": row.session, "kind": row.kind}
        try:
            await self._work_on(row, late=late)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("inbox_message_failed", extra=facts)
        else:
            return True
        try:
            await self._commands.fail(row)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("inbox_failure_not_stored", extra=facts)
            return False
        return True

    async def _work_on(self, row: InboxRow, *, late: bool) -> None:
        message = row.message
        if await self._cover(row):
            return
        if row.dropped is not None:
            self._runner.notices.take_up(row, row.dropped)
        elif message.edits is not None and (await self._edit(row) or await self._cover(row)):
            return
        elif self._in_hand.comes_later(row):
            raise StoreUnavailable("released messages must be claimed first")
        elif self._is_command(row):
            await self._execute(row)
        else:
            policy = self._policies.policy(row.session, message)
            self._submit(row, as_it_stands(policy) if late else policy, late=late)

    def _is_command(self, row: InboxRow) -> bool:
        """Another node may have taken in a stop word without knowing what runs here."""
        message = row.message
        is_command = row.kind is InboxKind.COMMAND or says_nothing(message)
        return is_command or self._stops(row.session, message)

    async def _cover(self, row: InboxRow) -> bool:
        """End a message that a stop behind it has met; whether one has."""
        covered = self._arrivals.covered(row.message)
        if covered is None:
            return False
        await self._commands.cover(row, covered)
        self._arrivals.uncover(row.message)
        return True

    async def _execute(self, row: InboxRow) -> None:
        """Carry out a command, but a stop only once."""
        command = our_command_of(row.message)
        if isinstance(command, StopCommand):
            await self._arrivals.stop(row.session, row.message, command)
        await self._commands.execute(row)

    async def _edit(self, row: InboxRow) -> bool:
        """Let an edit change the message that it edits, or be noted; False if that is not known."""
        message = row.message
        assert message.edits is not None
        # What has not begun is changed first: should the database's answer be lost, the row has
        # ended and nobody would come back to it.
        self._amend(message, begun=False)
        if not self._is_taken_in(message) and await self._store.amend(row):
            self._amend(message, begun=True)
            return True
        target = message.target
        if not await self._store.is_known(target.channel, target.account, message.edits):
            return False
        entry = HistoryEntry(Role.USER, speakers.edited(message))
        await self._store.note(row.session, entry, rows=[row.id], now=self._clock.now())
        return True

    def _is_taken_in(self, edit: InboundMessage) -> bool:
        """Whether a run has taken in the message that is edited; for the database it waits."""
        return any(
            is_edited_by(row.message, edit)
            for turn in self._in_hand.turns()
            if turn.run is not None
            for row in turn.rows
            if row.id in turn.taken_in
        )

    def _amend(self, edit: InboundMessage, *, begun: bool) -> None:
        """The same change for the turn that waits here, or for one that is about to begin."""
        for turn in self._in_hand.turns():
            if turn.run is not None and not begun:
                continue
            for place, row in enumerate(turn.rows):
                if is_edited_by(row.message, edit):
                    changed = replace(
                        row.message,
                        text=edit.text,
                        attachments=edit.attachments,
                        quote=edit.quote,
                    )
                    turn.rows[place] = replace(row, message=changed)

    def _submit(self, row: InboxRow, policy: QueuePolicy, *, late: bool) -> None:
        run_id, life = new_run_id(self._clock), self._in_hand.life
        turn = Turn(run_id, row.session, row.agent, [row], policy, late, life)
        rules = self._policies.rules(row.message.target)
        if rules.access.mention and turn.peer is PeerKind.GROUP and not row.message.source:
            turn.context_messages = rules.context_messages
        self._in_hand.assign([row.id], turn)
        if not self._outages.keeps(turn):
            self.submit(turn)

    def submit(self, turn: Turn) -> None:
        """Let a turn run that is in hand."""
        message = turn.rows[0].message
        rules = self._policies.rules(message.target)
        policy, deadline_s = turn.policy, rules.deadline_s
        if turn.kept_since is not None:
            # Whoever was told that it is kept is not dropped now, and its burst is over.
            policy = as_it_stands(policy)
            if deadline_s is not None:
                kept_s = asyncio.get_running_loop().time() - turn.kept_since
                deadline_s = max(deadline_s - kept_s, 0.0)
        self._in_hand.assign((row.id for row in turn.rows), turn)
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
            chars=sum(len(row.message.text) + len(row.message.quote) for row in turn.rows),
            senders=turn.senders,
        )
        self._dispatcher.submit(request)
        if request.overflowed:
            self._runner.notices.overflowed(turn.session, turn.target, turn.texts)

    # ------------------------------------------------------------------ in hand

    def release_later(self, session: SessionKey) -> None:
        """This node owns a session in which it has done something; others may have it when idle."""
        self._sessions.add(session)

    async def release_idle(self) -> None:
        """Let other nodes have the sessions in which nothing is left to do.

        A process that ends starts nothing more: what waits in the others goes with them.
        """
        ending = self._dispatcher.draining
        busy = {one.session for one in self._arrivals} | self._runner.notices.sessions()
        idle = {
            key
            for key in self._sessions
            if key not in busy
            and not self._dispatcher.has_session(key)
            and (ending or not self._outages.has_session(key))
        }
        if idle:
            # Before the call: one that becomes busy during it is entered again.
            self._sessions -= idle
            self._policies.forget(idle)
            try:
                await self._store.release_sessions(self._node(), idle, waiting=ending)
            except BaseException:
                self._sessions |= idle
                raise

    def forget_everything(self) -> None:
        """This node was declared dead: what it had in hand belongs to others."""
        self._in_hand.clear()
        self._held_up.clear()
        self._sessions.clear()
        self._policies.forget()
        self._runner.notices.forget()
        self._outages.forget()
        self._stopper.forget()
        self._arrivals.forget()
