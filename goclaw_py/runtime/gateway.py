"""The way in: messages become inbox rows, rows become requests.

``accept`` is what channels call. Commands that stop something act before the commit, in the order
of the batch; everything else is worked on only after the commit (SPEC IO-1, CMD-1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from goclaw_py.core.commands import (
    Command,
    Stop,
    addresses_another_bot,
    our_command,
    parse_command,
)
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.requests import Mode, QueuePolicy, Request
from goclaw_py.core.routing import Access, access, chat_session
from goclaw_py.core.text import is_blank
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Accepted, InboxKind, InboxRow, NewInbox, NewPairing, Place, Store
from goclaw_py.runtime.clock import new_run_id
from goclaw_py.runtime.commands import Commands
from goclaw_py.runtime.dispatcher import Dispatcher
from goclaw_py.runtime.doorkeeper import Doorkeeper
from goclaw_py.runtime.policies import Policies, as_it_stands
from goclaw_py.runtime.recent import Recent
from goclaw_py.runtime.runner import Runner
from goclaw_py.runtime.turn import Turn

log = logging.getLogger(__name__)

_REMEMBERED = 100_000

ExternalId = tuple[str, str, str]
"""Channel, account, external id: what makes a message the same message."""


@dataclass(slots=True, eq=False)
class _Arrival:
    """A permitted message between its arrival and its commit."""

    message: InboundMessage
    session: SessionKey
    agent: AgentName
    command: Command | None
    covered: Reason | None = None
    """The ``/stop`` that came after it, if one did."""
    acted: bool = False
    taken_up: bool = False


class Gateway:
    """Takes messages in and hands them to the dispatcher."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policies: Policies,
        channels: Mapping[Place, Channel],
        doorkeeper: Doorkeeper,
        node: Callable[[], NodeId],
    ) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._policies = policies
        self._channels = channels
        self._doorkeeper = doorkeeper
        self._arriving: list[_Arrival] = []
        self._covered: Recent[ExternalId, Reason] = Recent(_REMEMBERED)
        self._acted: Recent[ExternalId, None] = Recent(_REMEMBERED)
        self._taken: dict[int, Turn | None] = {}
        """Rows in hand, until a look shows that they are done; messages with their turns."""
        self._sessions: set[SessionKey] = set()
        self._held_up: dict[SessionKey, dict[int, None]] = {}
        """Rows that wait for one before them, which itself waits for the database. In order."""

    def connect(self, dispatcher: Dispatcher, runner: Runner, commands: Commands) -> None:
        """Give it those to whom it hands over. Call it once, before anything arrives."""
        self._dispatcher = dispatcher
        self._runner = runner
        self._commands = commands

    # ------------------------------------------------------------------ arriving

    async def accept(self, batch: Sequence[InboundMessage]) -> None:
        """See ``ports.channel.Intake``."""
        arrivals: list[_Arrival] = []
        pairings: list[NewPairing] = []
        for message in batch:
            rules = self._policies.rules(message.target)
            match access(message, rules.access, self._doorkeeper.known(message.target)):
                case Access.ALLOWED:
                    arrival = self._arrive(message, rules.agent)
                    if arrival is not None:
                        arrivals.append(arrival)
                        self._arriving.append(arrival)
                        self._act_at_once(arrival)
                case Access.PAIR:
                    pairings.append(self._doorkeeper.introduce(message))
                case Access.IGNORED:
                    log.debug("message ignored", extra={"channel": message.target.channel})
        try:
            if not arrivals and not pairings:
                return
            accepted = await self._store.accept(
                [_row(arrival) for arrival in arrivals],
                node=self._node(),
                now=self._clock.now(),
                pairings=pairings,
            )
            await self._take_up(accepted, {_external_id(a.message): a for a in arrivals})
        finally:
            for arrival in arrivals:
                self._arriving.remove(arrival)

    def _arrive(self, message: InboundMessage, agent: AgentName) -> _Arrival | None:
        channel = self._channels[message.target.channel, message.target.account]
        if addresses_another_bot(message.text, channel.handle):
            return None
        command = parse_command(message.text, channel.handle)
        session = chat_session(agent, message.target, message.peer)
        arrival = _Arrival(message, session, agent, command)
        # The same message again after a failed commit: a stop that covered it still does.
        arrival.covered = self._covered.get(_external_id(message))
        arrival.acted = _external_id(message) in self._acted
        return arrival

    def _act_at_once(self, arrival: _Arrival) -> None:
        """Let a ``/stop`` take effect now, on what runs and on what came before it."""
        command = arrival.command
        if not isinstance(command, Stop) or arrival.acted or arrival.message.redelivered:
            return
        arrival.acted = True
        self._acted[_external_id(arrival.message)] = None
        report = self._commands.stop(arrival.session, everything=command.everything)
        covered: list[_Arrival] = []
        if command.everything:
            covered = self._uncommitted_in(arrival.session)
        elif not (report.stopped or report.dropped or report.already_stopping):
            covered = self._oldest_turn(self._uncommitted_in(arrival.session))
        reason = Reason.STOPPED_ALL if command.everything else Reason.STOPPED
        for other in covered:
            other.covered = reason
            self._covered[_external_id(other.message)] = reason
        dropped = self._messages_in(report.dropped) + _messages_among(covered)
        self._commands.answer_stop(arrival.message, report, dropped)

    def _uncommitted_in(self, session: SessionKey) -> list[_Arrival]:
        """Messages of a session that have arrived, but that the dispatcher does not know yet."""
        return [
            arrival
            for arrival in self._arriving
            if arrival.session == session
            and arrival.command is None
            and arrival.covered is None
            and not arrival.taken_up
        ]

    def _oldest_turn(self, waiting: Sequence[_Arrival]) -> list[_Arrival]:
        """Those of a session's messages that would be its first turn."""
        turn = list(waiting[:1])
        for arrival in waiting[1:]:
            policy = self._policies.policy(arrival.session, arrival.message)
            same_sender = arrival.message.sender.id == turn[0].message.sender.id
            joins = policy.debounce_s > 0 or turn[-1].message.cut
            if policy.mode is Mode.INTERRUPT or (same_sender and joins):
                turn.append(arrival)
        return turn

    # ------------------------------------------------------------------ committed

    async def _take_up(self, accepted: Accepted, arrivals: Mapping[ExternalId, _Arrival]) -> None:
        """Work on rows that were just committed, in their order."""
        for row in accepted.rows:
            arrival = arrivals[_external_id(row.message)]
            arrival.taken_up = True
            # A stop that has acted before the commit is done.
            if not (arrival.acted and row.kind is InboxKind.COMMAND):
                await self._take(row)

    async def take_pending(self) -> None:
        """Take up rows that no live process works on: after a crash, or from another node.

        One call at a time. Raises ``StoreUnavailable``.
        """
        node = self._node()
        known = set(self._taken).union(*self._held_up.values())
        rows = await self._store.claim_pending(
            node, now=self._clock.now(), places=self._policies.places
        )
        # All that is pending is in the answer. One that ended during the call may be in it too:
        # that one is known until the next look.
        done = known - {row.id for row in rows}
        self._hold_up_no_more(done)
        for row_id in done:
            self._taken.pop(row_id, None)
        # One that is being accepted right now is taken up by ``accept``.
        arriving = {_external_id(arrival.message) for arrival in self._arriving}
        for row in rows:
            if self._node() != node:
                return  # declared dead meanwhile: what this look found belongs to others
            if _external_id(row.message) not in arriving:
                await self._take(row, late=True)

    async def _take(self, row: InboxRow, *, late: bool = False) -> None:
        """Work on a row, unless that is done already or the time for it has not come.

        Args:
            row: A pending row of this node.
            late: It waited in the database for somebody to take it up.
        """
        if row.id in self._taken or self._must_wait(row):
            return
        self._taken[row.id] = None
        self._sessions.add(row.session)
        self._policies.meet(row)
        done = False
        try:
            done = await self._work_on_or_fail(row, late=late)
            self._hold_up_no_more({row.id})
        except StoreUnavailable:
            # It is still pending in the database. The next look takes it up again, and what came
            # after it: a fresh conversation must not begin in the middle of what follows it.
            self._held_up.setdefault(row.session, {})[row.id] = None
        finally:
            if not done:
                self._taken.pop(row.id, None)

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
            log.exception("an inbox row met a bug; it fails", extra=facts)
        else:
            return True
        try:
            await self._commands.fail(row)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("an inbox row cannot fail either; trying it again", extra=facts)
            return False
        return True

    async def _work_on(self, row: InboxRow, *, late: bool) -> None:
        covered = self._covered.get(_external_id(row.message))
        if covered is not None:
            await self._commands.cover(row, covered)
        elif row.kind is InboxKind.COMMAND or is_blank(row.message.text):
            await self._execute(row)
        else:
            policy = self._policies.policy(row.session, row.message)
            self._submit(row, as_it_stands(policy) if late else policy)

    async def _execute(self, row: InboxRow) -> None:
        """Carry out a command, but a stop only once."""
        key = _external_id(row.message)
        command = our_command(row.message.text)
        if isinstance(command, Stop) and key not in self._acted:
            self._acted[key] = None
            report = self._commands.stop(row.session, everything=command.everything)
            self._commands.answer_stop(row.message, report, self._messages_in(report.dropped))
        await self._commands.execute(row)

    def _submit(self, row: InboxRow, policy: QueuePolicy) -> None:
        message = row.message
        rules = self._policies.rules(message.target)
        turn = Turn(new_run_id(self._clock), row.session, row.agent, [row], policy)
        self._taken[row.id] = turn
        self._runner.add(turn)
        self._dispatcher.submit(
            Request(
                id=turn.id,
                session=row.session,
                agent=row.agent,
                sender=message.sender.id,
                policy=self._policies.contexts.throttled(row.session, policy),
                cut=message.cut,
                deadline_s=rules.deadline_s,
                run_timeout_s=rules.run_timeout_s,
            )
        )

    # ------------------------------------------------------------------ in hand

    def _messages_in(self, requests: Collection[RunId]) -> int:
        """How many messages the requests answer: a burst is one request."""
        turns = {turn.id: turn for turn in self._taken.values() if turn is not None}
        return sum(len(turns[run_id].texts) for run_id in requests if run_id in turns)

    def _must_wait(self, row: InboxRow) -> bool:
        """Whether a row before this one in its session waits for the database; then both do."""
        waiting = self._held_up.get(row.session)
        if waiting is None or row.id == next(iter(waiting)):
            return False
        waiting[row.id] = None
        return True

    def _hold_up_no_more(self, rows: Collection[int]) -> None:
        for session, waiting in list(self._held_up.items()):
            left = {row_id: None for row_id in waiting if row_id not in rows}
            if left:
                self._held_up[session] = left
            else:
                del self._held_up[session]

    async def release_idle(self) -> None:
        """Let other nodes have the sessions in which nothing is left to do."""
        busy = {arrival.session for arrival in self._arriving}
        idle = {
            key
            for key in self._sessions
            if key not in busy and not self._dispatcher.has_session(key)
        }
        if idle:
            # Before the call: one that becomes busy during it is entered again.
            self._sessions -= idle
            self._policies.forget(idle)
            try:
                await self._store.release_sessions(self._node(), idle)
            except StoreUnavailable:
                self._sessions |= idle
                raise

    def forget_everything(self) -> None:
        """This node was declared dead: what it had in hand belongs to others."""
        self._taken.clear()
        self._held_up.clear()
        self._sessions.clear()
        self._policies.forget()
        self._runner.notices.forget()


def _external_id(message: InboundMessage) -> ExternalId:
    return message.target.channel, message.target.account, message.external_id


def _messages_among(arrivals: Sequence[_Arrival]) -> int:
    """How many messages people wrote; the pieces of a text that the channel cut are one."""
    whole = sum(not arrival.message.cut for arrival in arrivals)
    return max(whole, 1) if arrivals else 0


def _row(arrival: _Arrival) -> NewInbox:
    is_stop = isinstance(arrival.command, Stop)
    outcome, reason = None, None
    if arrival.covered is not None:
        outcome, reason = Outcome.CANCELLED, arrival.covered
    elif is_stop and arrival.acted:
        outcome = Outcome.COMPLETED
    return NewInbox(
        message=arrival.message,
        session=arrival.session,
        agent=arrival.agent,
        kind=InboxKind.MESSAGE if arrival.command is None else InboxKind.COMMAND,
        outcome=outcome,
        reason=reason,
    )
