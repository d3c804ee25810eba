"""Messages between their arrival and their commit; a ``/stop`` among them acts at once (CMD-1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from goclaw_py.chats.session_settings import SessionSettings
from goclaw_py.common.lru import LruCache
from goclaw_py.common.text import is_blank
from goclaw_py.messages.cancellation import CancelResult, RunCanceller
from goclaw_py.messages.stop_answers import StopAnswers
from goclaw_py.model.chat_commands import Command, StopCommand
from goclaw_py.model.ids import AgentName, RunId, SessionKey
from goclaw_py.model.messages import ExternalId, InboundMessage, external_id
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.store import AcceptedMessages, InboxKind, InboxRow, NewInbox, Stops
from goclaw_py.runs.turn import goes_on
from goclaw_py.scheduler.models import Mode

_REMEMBERED = 100_000


def is_edited_by(message: InboundMessage, edit: InboundMessage) -> bool:
    """Whether one message is the new version of another one."""
    return external_id(message) == (edit.target.channel, edit.target.account, edit.edits)


def says_nothing(message: InboundMessage) -> bool:
    """Whether there is nothing in a message that an agent could be given."""
    return is_blank(message.text) and not message.attachments


@dataclass(frozen=True, slots=True)
class LocalSessionState:
    """What this process holds of a session.

    Attributes:
        is_here: Whether something of it is in hand, so that nobody else has it.
        on_their_way: Messages that are committed and that the dispatcher does not know yet, in
            their order: the next look takes them up, or they wait for the database.
    """

    is_here: bool
    on_their_way: Sequence[InboundMessage] = ()


@dataclass(slots=True, eq=False)
class UncommittedMessage:
    """A permitted message between its arrival and its commit."""

    message: InboundMessage
    session: SessionKey
    agent: AgentName
    command: Command | None
    covered: Reason | None = None
    """The ``/stop`` that came after it, if one did."""
    acted: bool = False
    stops: Stops | None = None
    """What it has stopped."""
    rest: Callable[[], None] | None = None
    """What a stop does when it is known that no other node works on its session."""
    taken_up: bool = False

    def row(self) -> NewInbox:
        """What is committed of it."""
        outcome, reason = None, None
        if self.covered is not None:
            outcome, reason = Outcome.CANCELLED, self.covered
        elif isinstance(self.command, StopCommand) and self.acted:
            outcome = Outcome.COMPLETED
        return NewInbox(
            message=self.message,
            session=self.session,
            agent=self.agent,
            kind=InboxKind.MESSAGE if self.command is None else InboxKind.COMMAND,
            outcome=outcome,
            reason=reason,
            stops=self.stops,
        )


class UncommittedMessages:
    """Messages that arrived and are not committed, and which of them stops have cancelled.

    Args:
        meant: The run that a ``/stop`` means, if it is a reply or the press of a button.
        hold: What this process has of a session.
        is_known: Whether a message that has arrived once more is in hand already.
    """

    def __init__(
        self,
        policies: SessionSettings,
        answers: StopAnswers,
        canceller: RunCanceller,
        meant: Callable[[SessionKey, InboundMessage, StopCommand], RunId | None],
        hold: Callable[[SessionKey], LocalSessionState],
        is_known: Callable[[InboundMessage], bool],
    ) -> None:
        self._hold = hold
        self._is_known = is_known
        self._policies = policies
        self._answers = answers
        self._stopper = canceller
        self._meant = meant
        self._here: list[UncommittedMessage] = []
        self._covered: LruCache[ExternalId, Reason] = LruCache(_REMEMBERED)
        self._met: LruCache[ExternalId, None] = LruCache(_REMEMBERED)
        """What a stop has covered: the next one does not find it again before a look does."""
        self._acted: LruCache[ExternalId, Stops | None] = LruCache(_REMEMBERED)

    def __iter__(self) -> Iterator[UncommittedMessage]:
        return iter(self._here)

    def enter(self, arrival: UncommittedMessage) -> None:
        """A message has arrived; a stop acts before this returns."""
        # The same message again after a failed commit: a stop that covered it still does.
        key = external_id(arrival.message)
        arrival.covered = self._covered.get(key)
        arrival.acted = key in self._acted
        arrival.stops = self._acted.get(key)
        self._here.append(arrival)
        self._act_at_once(arrival)

    def follows(self, session: SessionKey, message: InboundMessage) -> bool:
        """Whether a bare stop word has something to stop in what arrives, or has acted before."""
        return external_id(message) in self._acted or bool(self._uncommitted_in(session))

    def forget(self) -> None:
        """What stops have met belongs to others now: those that are not committed act again."""
        for arrival in self._here:
            arrival.acted, arrival.stops, arrival.rest = False, None, None
        self._met.clear()
        for key in [key for key, stops in self._acted.items() if stops is not None]:
            self._acted.pop(key, None)

    def leave(self, arrivals: Sequence[UncommittedMessage]) -> None:
        """These are committed, or will come again."""
        for arrival in arrivals:
            self._here.remove(arrival)
            _finish(arrival)  # while the database is away: it is not told twice

    def without(
        self, arrivals: Sequence[UncommittedMessage], known: Collection[str]
    ) -> list[UncommittedMessage]:
        """Those that are new; others are in the database already, and are not taken up here."""
        self.leave([one for one in arrivals if one.message.external_id in known])
        return [one for one in arrivals if one.message.external_id not in known]

    def found(self, rows: Sequence[InboxRow], committed: Collection[int]) -> Iterator[InboxRow]:
        """Which of the rows that a look has found are to be taken up by it, in their order.

        One that is just being accepted is left to ``accept``, unless it is among ``committed``, or
        another one behind it in its session is taken up: then ``accept`` leaves it alone.
        """
        left: dict[SessionKey, list[InboxRow]] = {}
        for row in rows:
            mine = left.setdefault(row.session, [])
            mine.append(row)
            if row.id in committed or not self._coming(row):
                for one in mine:
                    for arrival in self._coming(one):
                        arrival.taken_up = True
                    yield one
                mine.clear()

    def _coming(self, row: InboxRow) -> list[UncommittedMessage]:
        key = external_id(row.message)
        return [arrival for arrival in self._here if external_id(arrival.message) == key]

    def committed(
        self,
        arrivals: Sequence[UncommittedMessage],
        rows: Sequence[NewInbox],
        accepted: AcceptedMessages,
    ) -> None:
        """What was decided about these is stored; if an operator undoes it, it stays undone.

        In a session that another node owns nothing was decided: that one does it (SPEC NODE-1).
        """
        listed = {external_id(row.message) for row in accepted.rows}
        for arrival in arrivals:
            key = external_id(arrival.message)
            if arrival.rest is None or key in listed or key[-1] in accepted.duplicates:
                _finish(arrival)
            else:
                arrival.acted, arrival.rest = False, None
                self._acted.pop(key, None)
                self._met.clear()
        for row in rows:
            key = external_id(row.message)
            if row.outcome is Outcome.CANCELLED and key[-1] not in accepted.duplicates:
                self._covered.pop(key, None)
            if row.stops is not None:
                self._acted[key] = None
                self._stored(row, row.stops, arrivals)

    def _stored(self, stop: NewInbox, stops: Stops, with_it: Sequence[UncommittedMessage]) -> None:
        """The commit of a stop ends what it covers, but not what others are just committing."""
        coming = {external_id(one.message) for one in self._here if one not in with_it}
        channel, account, _ = external_id(stop.message)
        for name in stops.messages:
            if (channel, account, name) not in coming:
                self._covered.pop((channel, account, name), None)

    def covered(self, message: InboundMessage) -> Reason | None:
        """The stop that came after a message and before its commit."""
        key = external_id(message)
        # It may have been committed again meanwhile, and done with there.
        here = (one.covered for one in self._here if external_id(one.message) == key)
        return self._covered.get(key) or next(filter(None, here), None)

    def uncover(self, message: InboundMessage) -> None:
        """It has ended as covered; if an operator lets it run again, it is not stopped again."""
        self._covered.pop(external_id(message), None)

    async def stop(
        self, session: SessionKey, message: InboundMessage, command: StopCommand
    ) -> None:
        """Carry out a stop that has been committed, but only once. Raises ``StoreUnavailable``."""
        key = external_id(message)
        if key in self._acted:
            await self._stopper.keep()  # if it could not store before what it has stopped
            return
        self._acted[key] = None
        run, by = self._meant(session, message, command), self._stopper.rights.limit(message)
        stopped = self._stopper.stop(session, everything=command.everything, run=run, by=by)
        stopped = self._stopper.stop_jobs(
            message.target, stopped, everything=command.everything, run=run
        )
        self._answers.tell(message, stopped, command)
        await self._stopper.keep(stopped)

    def _act_at_once(self, arrival: UncommittedMessage) -> None:
        """Let a ``/stop`` take effect now, on what runs and on what came before it."""
        command, session = arrival.command, arrival.session
        if not isinstance(command, StopCommand) or arrival.acted or arrival.message.redelivered:
            return
        hold, arriving = self._hold(session), self._uncommitted_in(session)
        unmet = (one for one in hold.on_their_way if external_id(one) not in self._met)
        messages = (*unmet, *(one.message for one in arriving))
        waiting = list({external_id(one): one for one in messages}.values())
        if not hold.is_here and not waiting:
            return  # The commit tells who works on it, if anybody does (SPEC NODE-1).
        arrival.acted = True
        run = self._meant(session, arrival.message, command)
        by = self._stopper.rights.limit(arrival.message)
        stopped = self._stopper.stop(session, everything=command.everything, run=run, by=by)
        mine = [message for message in waiting if by in (None, message.of_whom)]
        covered: Sequence[InboundMessage] = ()
        if command.everything:
            covered = mine
        elif run is None and stopped.nothing:
            covered = self._oldest_turn(session, mine)
        stopped = _with_others(stopped, command, covered, waiting)
        keys = {external_id(message) for message in covered}
        for key in keys:
            self._covered[key], self._met[key] = stopped.reason, None
        for other in arriving:
            if external_id(other.message) in keys:
                other.covered = stopped.reason
        # Some of those are in transactions that are under way, so their names are needed too.
        names = (*stopped.messages, *(message.external_id for message in covered))
        arrival.stops = Stops(names, stopped.reason) if names else None
        self._acted[external_id(arrival.message)] = arrival.stops
        count = _messages_among(covered)
        arrival.rest = partial(self._tell, arrival.message, command, run, stopped, count)
        if hold.is_here:
            _finish(arrival)

    def _tell(
        self,
        message: InboundMessage,
        command: StopCommand,
        run: RunId | None,
        stopped: CancelResult,
        covered: int,
    ) -> None:
        """Stop jobs too, and say what was stopped."""
        # After the chat's own messages, also those that nothing but this knows of yet.
        if command.everything or not covered:
            stopped = self._stopper.stop_jobs(
                message.target, stopped, everything=command.everything, run=run
            )
        self._answers.tell(message, stopped, command, covered=covered)

    def _uncommitted_in(self, session: SessionKey) -> list[UncommittedMessage]:
        """Messages of a session that have arrived, but that the dispatcher does not know yet.

        One whose answer is just being stored may come again: it is too late to stop that.
        """
        return [
            arrival
            for arrival in self._here
            if arrival.session == session
            and arrival.command is None
            and arrival.covered is None
            and not arrival.taken_up
            and not self._is_known(arrival.message)
        ]

    def _oldest_turn(
        self, session: SessionKey, waiting: Sequence[InboundMessage]
    ) -> list[InboundMessage]:
        """Those of a session's messages that would be its first turn."""
        turn = list(waiting[:1])
        for message in waiting[1:]:
            policy = self._policies.policy(session, message)
            same_sender = message.sender.id == turn[0].sender.id
            joins = policy.debounce_s > 0 or goes_on(turn[-1])
            if policy.mode is Mode.INTERRUPT or (same_sender and joins):
                turn.append(message)
        return turn


def _with_others(
    stopped: CancelResult,
    command: StopCommand,
    covered: Sequence[InboundMessage],
    waiting: Sequence[InboundMessage],
) -> CancelResult:
    """Note whose messages, not known to anything else yet, a stop has spared."""
    if not command.everything and covered:
        return replace(stopped, spared=(), of_others=())  # it has met something of its sender
    if command.everything or (stopped.run is None and stopped.nothing):
        others = [one for one in waiting if stopped.by not in (None, one.of_whom)]
        return replace(stopped, of_others=(*stopped.of_others, *others))
    return stopped


def _finish(arrival: UncommittedMessage) -> None:
    rest, arrival.rest = arrival.rest, None
    if rest is not None:
        rest()


def _messages_among(messages: Sequence[InboundMessage]) -> int:
    """How many messages people wrote; the pieces of a text that the channel cut are one."""
    whole = sum(not goes_on(message) for message in messages)
    return max(whole, 1) if messages else 0
