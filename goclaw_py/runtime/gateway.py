"""The way in: messages become inbox rows, rows become requests.

``accept`` is what channels call. Commands that stop something act before the commit, in the order
of the batch; everything else is worked on only after the commit (SPEC IO-1, CMD-1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from goclaw_py.core.commands import Command, Stop, addresses_another_bot, parse_command
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName, NodeId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.requests import Mode, QueuePolicy, Request
from goclaw_py.core.routing import Access, AccessRules, access, chat_session
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Accepted, InboxKind, InboxRow, NewInbox, NewPairing, Place, Store
from goclaw_py.runtime.clock import new_run_id
from goclaw_py.runtime.commands import Commands
from goclaw_py.runtime.dispatcher import Dispatcher
from goclaw_py.runtime.doorkeeper import Doorkeeper
from goclaw_py.runtime.recent import Recent
from goclaw_py.runtime.runner import Runner, Turn

log = logging.getLogger(__name__)

_REMEMBERED = 100_000

ExternalId = tuple[str, str, str]
"""Channel, account, external id: what makes a message the same message."""


@dataclass(frozen=True, slots=True)
class ChatRules:
    """What the settings say about one account of a channel."""

    agent: AgentName
    access: AccessRules
    direct: QueuePolicy
    group: QueuePolicy
    run_timeout_s: float | None = None
    deadline_s: float | None = None


@dataclass(slots=True)
class _Arrival:
    """A permitted message between its arrival and its commit."""

    message: InboundMessage
    session: SessionKey
    agent: AgentName
    command: Command | None
    covered: Reason | None = None
    """The ``/stop`` that came after it, if one did."""
    acted: bool = False


class Gateway:
    """Takes messages in and hands them to the dispatcher."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rules: Mapping[Place, ChatRules],
        channels: Mapping[Place, Channel],
        doorkeeper: Doorkeeper,
        node: Callable[[], NodeId],
    ) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._rules = rules
        self._channels = channels
        self._doorkeeper = doorkeeper
        self._arriving: list[_Arrival] = []
        self._covered: Recent[ExternalId, Reason] = Recent(_REMEMBERED)
        self._acted: Recent[ExternalId, None] = Recent(_REMEMBERED)
        self._taken: Recent[int, None] = Recent(_REMEMBERED)
        self._sessions: set[SessionKey] = set()

    def connect(self, dispatcher: Dispatcher, runner: Runner, commands: Commands) -> None:
        """Give it those who need it themselves. Call it once, before anything arrives."""
        self._dispatcher = dispatcher
        self._runner = runner
        self._commands = commands

    # ------------------------------------------------------------------ arriving

    async def accept(self, batch: Sequence[InboundMessage]) -> None:
        """See ``ports.channel.Intake``."""
        arrivals: list[_Arrival] = []
        pairings: list[NewPairing] = []
        for message in batch:
            rules = self._rules_of(message)
            match access(message, rules.access, self._doorkeeper.known(message.target)):
                case Access.ALLOWED:
                    arrival = self._arrive(message, rules)
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

    def _arrive(self, message: InboundMessage, rules: ChatRules) -> _Arrival | None:
        channel = self._channels[message.target.channel, message.target.account]
        if addresses_another_bot(message.text, channel.handle):
            return None
        command = parse_command(message.text, channel.handle)
        session = chat_session(rules.agent, message.target, message.peer)
        arrival = _Arrival(message, session, rules.agent, command)
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
        earlier = self._uncommitted_before(arrival)
        report = self._commands.stop(arrival.session, everything=command.everything)
        dropped = len(report.dropped)
        if command.everything or not (report.stopped or report.dropped or report.already_stopping):
            reason = Reason.STOPPED_ALL if command.everything else Reason.STOPPED
            for other in earlier:
                other.covered = reason
                self._covered[_external_id(other.message)] = reason
            dropped += len(earlier)
        self._commands.answer_stop(arrival.message, report, dropped)

    def _uncommitted_before(self, arrival: _Arrival) -> list[_Arrival]:
        """Messages of the session that came before and would wait by now.

        They are one burst of one sender, or none: that is what a debouncing turn would be.
        """
        return [
            other
            for other in self._arriving
            if other is not arrival
            and other.session == arrival.session
            and other.command is None
            and other.covered is None
        ]

    # ------------------------------------------------------------------ committed

    async def _take_up(self, accepted: Accepted, arrivals: Mapping[ExternalId, _Arrival]) -> None:
        """Work on rows that were just committed, in their order."""
        for row in accepted.rows:
            arrival = arrivals[_external_id(row.message)]
            if row.id in self._taken or self._dispatcher.draining:
                continue
            if arrival.covered is not None and arrival.command is None:
                # A stop came while this was being committed.
                self._taken[row.id] = None
                await self._commands.cover(row, arrival.covered)
            elif not arrival.acted:
                await self._take(row, self._rules_of(row.message))

    async def take_pending(self) -> None:
        """Take up rows that no live process works on: after a crash, or from another node."""
        rows = await self._store.claim_pending(self._node(), now=self._clock.now())
        # One that is being accepted right now is taken up by ``accept``.
        arriving = {_external_id(arrival.message) for arrival in self._arriving}
        for row in rows:
            place = (row.message.target.channel, row.message.target.account)
            known = row.id in self._taken or _external_id(row.message) in arriving
            if known or place not in self._rules or self._dispatcher.draining:
                continue
            # What was cut by a crash runs again as it stands: no burst, and it interrupts nobody.
            await self._take(row, _as_it_stands(self._rules_of(row.message)))

    async def _take(self, row: InboxRow, rules: ChatRules) -> None:
        self._taken[row.id] = None
        self._sessions.add(row.session)
        if row.kind is InboxKind.MESSAGE and row.message.text.strip():
            self._submit(row, rules)
            return
        try:
            await self._commands.execute(row)
        except StoreUnavailable:
            # It is still pending in the database; the next look takes it up again.
            self._taken.pop(row.id, None)

    def _submit(self, row: InboxRow, rules: ChatRules) -> None:
        message = row.message
        turn = Turn(new_run_id(self._clock), row.session, row.agent, [row])
        self._runner.add(turn)
        self._dispatcher.submit(
            Request(
                id=turn.id,
                session=row.session,
                agent=row.agent,
                sender=message.sender.id,
                policy=rules.direct if message.peer is PeerKind.DIRECT else rules.group,
                cut=message.cut,
                deadline_s=rules.deadline_s,
                run_timeout_s=rules.run_timeout_s,
            )
        )

    def _rules_of(self, message: InboundMessage) -> ChatRules:
        return self._rules[message.target.channel, message.target.account]

    async def release_idle(self) -> None:
        """Let other nodes have the sessions in which nothing is left to do."""
        busy = {arrival.session for arrival in self._arriving}
        idle = {
            key
            for key in self._sessions
            if key not in busy and not self._dispatcher.has_session(key)
        }
        if idle:
            await self._store.release_sessions(self._node(), idle)
            self._sessions -= idle

    def forget_everything(self) -> None:
        """This node was declared dead: what it had in hand belongs to others."""
        self._taken.clear()
        self._sessions.clear()


def _external_id(message: InboundMessage) -> ExternalId:
    return message.target.channel, message.target.account, message.external_id


def _as_it_stands(rules: ChatRules) -> ChatRules:
    return replace(
        rules,
        direct=replace(rules.direct, debounce_s=0.0, mode=Mode.QUEUE),
        group=replace(rules.group, debounce_s=0.0, mode=Mode.QUEUE),
    )


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
