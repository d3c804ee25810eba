"""What a stop cancels, and in which order (SPEC CMD-1, CMD-2, CMD-6).

Chat command, stop word, button, CLI, API, dashboard and ``/new`` ask this module; nothing else
decides it. ``execute`` reads what there is, and cancels what the plan lists.

**Kinds.** ``WorkKind`` lists what a stop can cancel, in the order in which a stop visits it. The
work of a kind up to ``JOBS`` is known to this process: all of it is among the facts, and ``plan``
selects. About the later kinds others are asked: other nodes, or one statement in the database,
select by the same rules, and ``goes_on`` says whether they are asked.

**Which work.**

1. ``/stop`` cancels one thing: the first that is live and belongs to its sender, of the first kind
   that has one. Its child runs, and the turn that would begin its messages again, go with it.
2. While a run of the sender is still stopping, ``/stop`` cancels nothing behind it: somebody who
   repeats a stop means the same run.
3. ``/stopall`` cancels all that belongs to its sender, of all kinds.
4. A stop that names a run (by button or reply) cancels that run or nothing: it may have ended, and
   the data of a button can be forged.

**Whose.** ``Stop.by`` is None for whoever may stop everything. For others, work belongs to the
senders of its messages, with all child runs, and a job run to the person who has asked for the job.
What a stop without this limit would have cancelled too is *spared*: the answer names whose it is,
and if the sender turns out to be an administrator, a second plan is made of what was spared.

**How it counts.** Each thing once, as what people know it. What answers a message is a task once it
runs, and its messages while it waits. Anything else, such as a background subagent, is a task also
while it waits. A job run is a job, but one in the session of the chat is a task there.

**When.** A stop cancels before it is committed. In a session of another node only that node decides
about the session; so subagents and jobs, which come after it, wait for the commit then. A plan is
executed once: it is made from what is there, and what it has cancelled is not live any more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from operator import attrgetter

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.outcomes import Reason, stop_reason
from goclaw_py.scheduler.views import RunState, StopCandidate


class WorkKind(IntEnum):
    """What a stop can cancel, in its order."""

    SESSION = 1
    """Running and waiting requests of the session, in the order of ``cancel_one`` (QUEUE-8)."""
    CHILDREN = 2
    """Their child runs. No stop begins with one of these."""
    PROVIDER = 3
    """Turns that wait for the provider of their agent (AGENT-8)."""
    MAILBOX = 4
    """Messages without a turn: not committed, or not processed yet."""
    UNCONFIRMED = 5
    """Messages whose commit has failed. They may never come again, so nobody is notified."""
    SUBAGENTS = 6
    """Background subagents, whose parents may have ended."""
    JOBS = 7
    """Job runs that deliver to the chat."""
    ELSEWHERE = 8
    """Subagents and job runs of other nodes, and occurrences that no node has claimed."""
    APPROVALS = 9
    """Turns, and jobs of the session, that wait for the answer of a person (AGENT-11)."""
    ANSWERS = 10
    """Unsent messages of answers that are complete."""


class StopOrigin(StrEnum):
    """Where a stop comes from."""

    CHAT = "chat"
    OUTSIDE = "outside"
    """CLI, API or dashboard: they name a session, not a chat."""
    NEW_SESSION = "new session"
    """``/new``, or a reset from outside."""


_OWN = (WorkKind.SESSION, WorkKind.CHILDREN, WorkKind.PROVIDER)
_KINDS = {
    StopOrigin.CHAT: tuple(WorkKind),
    StopOrigin.OUTSIDE: (*_OWN, WorkKind.SUBAGENTS, WorkKind.APPROVALS, WorkKind.ANSWERS),
    StopOrigin.NEW_SESSION: (*_OWN, WorkKind.SUBAGENTS, WorkKind.APPROVALS),
}
_NAMED = (*_OWN, WorkKind.JOBS, WorkKind.ELSEWHERE, WorkKind.ANSWERS)
"""The kinds of what can be named by a run."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A request to stop something in a session; ``session`` is None for one of jobs only.

    Args:
        run: The only run that is meant, if it is named.
        by: The sender whose work alone is cancelled; None: no limit.
    """

    session: SessionKey | None
    everything: bool
    run: RunId | None = None
    by: str | None = None
    origin: StopOrigin = StopOrigin.CHAT

    @property
    def reason(self) -> Reason:
        """The reason with which what it cancels ends."""
        return stop_reason(everything=self.everything)

    def visits(self, kind: WorkKind) -> bool:
        """Return whether it cancels anything in a kind at all."""
        if self.run is not None and kind not in _NAMED:
            return False
        if kind is WorkKind.SUBAGENTS and self.origin is not StopOrigin.CHAT:
            return self.everything
        if kind is WorkKind.UNCONFIRMED:
            return self.everything and self.origin is StopOrigin.CHAT
        return kind in _KINDS[self.origin]

    def goes_on(self, kind: WorkKind, *, found: bool) -> bool:
        """Return whether it visits a kind after those before it; ``found``: they had something."""
        return self.visits(kind) and (self.everything or not found)


@dataclass(frozen=True, slots=True)
class Burst:
    """How a message without a turn would join the turn before it.

    Args:
        sender: Who sent it, which decides about bursts.
        replaces: Its queue mode is ``interrupt``: it joins any turn.
        collects: Messages of one sender are collected.
        continues: It is a part, and the next message of its sender continues it.
    """

    sender: str
    replaces: bool = False
    collects: bool = False
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """Something that a stop can cancel.

    Args:
        id: The id of the run, or of the message in its channel.
        people: Those to whom it belongs.
        names: The ids of runs by which it can be named.
        ancestors: The runs that it belongs to.
        is_live: Whether there is anything to cancel.
        is_stopping: It was stopped before, and has not ended.
        state: The state of a request.
        messages: The messages that it answers, or is.
        burst: For a message without a turn.
    """

    kind: WorkKind
    id: str
    people: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    ancestors: tuple[str, ...] = ()
    is_live: bool = True
    is_stopping: bool = False
    state: RunState | None = None
    messages: tuple[InboundMessage, ...] = ()
    burst: Burst | None = None

    def belongs_to(self, sender: str | None) -> bool:
        """Return whether this sender may stop it; None: whoever may stop everything."""
        return sender is None or sender in self.people

    def shares_message_with(self, others: Sequence[Work]) -> bool:
        """Return whether it answers, or is, a message of one of these."""
        ids = {message.external_id for other in others for message in other.messages}
        return any(message.external_id in ids for message in self.messages)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to cancel, in this order.

    Args:
        again: Turns that would begin messages of ``cancel`` again; they count as the same turn.
        spared: What belongs to others, and would have been cancelled without the limit.
        already_stopping: A run of the sender is stopping.
    """

    cancel: tuple[Work, ...] = ()
    again: tuple[Work, ...] = ()
    spared: tuple[Work, ...] = ()
    already_stopping: bool = False

    def of_kind(self, *kinds: WorkKind) -> tuple[Work, ...]:
        """Return what is to be cancelled in some kinds."""
        return tuple(work for work in self.cancel if work.kind in kinds)

    @property
    def tasks(self) -> frozenset[str]:
        """The requests that count as tasks also while they wait."""
        return frozenset(
            work.id
            for work in self.cancel
            if work.state is not None and work.kind is not WorkKind.CHILDREN and not work.messages
        )

    def jobs(self, tasks: Collection[str]) -> frozenset[str]:
        """Return the job runs that count as jobs: not those among ``tasks`` that are stopped."""
        jobs = self.of_kind(WorkKind.JOBS)
        return frozenset(w.id for w in jobs if not w.is_stopping and w.id not in tasks)


def plan(facts: Sequence[Work], stop: Stop, kinds: Collection[WorkKind] = tuple(WorkKind)) -> Plan:
    """Return what a stop cancels of ``facts``, all work in the kinds that this process knows.

    Work of one kind is in the order in which it is to be cancelled. ``kinds`` are those that the
    stop visits now; what goes with a cancelled run may be in others.
    """
    works = [
        work
        for work in sorted(facts, key=attrgetter("kind"))
        if stop.run is None or stop.run in work.names
    ]
    visited = [work for work in works if work.kind in kinds and stop.visits(work.kind)]
    if stop.everything:
        return _all(visited, stop.by)
    if stop.run is not None:
        return _named(visited, facts, stop.by)
    return _first(visited, facts, stop.by)


def request_fact(
    one: StopCandidate,
    session: SessionKey,
    background: Collection[str] = (),
    messages: tuple[InboundMessage, ...] = (),
) -> Work:
    """Return a request of a session, or of its children, as a fact.

    ``background`` are the subagents for which nobody waits, ``messages`` those of its turn.
    """
    is_own = one.session == session
    kin = WorkKind.SUBAGENTS if one.id in background else WorkKind.CHILDREN
    return Work(
        WorkKind.SESSION if is_own else kin,
        one.id,
        one.people,
        one.names,
        one.ancestors,
        one.is_live,
        is_own and one.is_stopping,
        one.state,
        messages,
    )


def messages_among(works: Sequence[Work]) -> int:
    """Return the number of messages that people wrote; parts of a split text count once."""
    bursts = [work.burst for work in works if work.burst is not None]
    return max(sum(not one.continues for one in bursts), 1) if bursts else 0


def _all(visited: Sequence[Work], by: str | None) -> Plan:
    mine = [work for work in visited if work.belongs_to(by)]
    turns = [work for work in mine if work.burst is None]
    answered = {message.external_id for turn in turns for message in turn.messages}
    return Plan(
        # A message may still be in its mailbox although a turn answers it.
        tuple(
            w for w in mine if w.is_live and not (w.kind is WorkKind.MAILBOX and w.id in answered)
        ),
        spared=tuple(
            work
            for work in visited
            if work.is_live and work not in mine and work.kind is not WorkKind.UNCONFIRMED
        ),
        already_stopping=any(work.is_stopping for work in mine),
    )


def _first(visited: Sequence[Work], facts: Sequence[Work], by: str | None) -> Plan:
    targets = [work for work in visited if work.kind is not WorkKind.CHILDREN]
    mine = [work for work in targets if work.belongs_to(by)]
    for target in mine:
        if target.is_live:
            return _with_family(target, [work for work in facts if work.belongs_to(by)])
        if target.is_stopping and target.kind is WorkKind.SESSION:
            return Plan(already_stopping=True)
    session = [work for work in targets if work.kind is WorkKind.SESSION]
    # Of requests the first one counts, unless that is stopping; of the rest all that is live.
    first = [work for work in session if work.is_live or work.is_stopping][:1]
    rest = [work for work in targets if work.kind is not WorkKind.SESSION]
    return Plan(
        spared=tuple(work for work in (*first, *rest) if work.is_live and work not in mine),
        already_stopping=any(work.is_stopping for work in mine),
    )


def _named(visited: Sequence[Work], facts: Sequence[Work], by: str | None) -> Plan:
    mine = [work for work in visited if work.belongs_to(by)]
    for target in mine:
        if target.is_live or target.state is RunState.FINISHING:  # its children may go on
            return _with_family(target, facts)
        if target.is_stopping or target.state in (RunState.STOPPING, RunState.ABANDONED):
            return Plan(already_stopping=True)
    return Plan(spared=tuple(work for work in visited if work not in mine))


def _with_family(target: Work, facts: Sequence[Work]) -> Plan:
    """Return the plan for a target, the first of its kind in ``facts``."""
    if target.kind is WorkKind.MAILBOX:
        return Plan(_first_turn([work for work in facts if work.kind is WorkKind.MAILBOX]))
    requests = [work for work in facts if work.state is not None and work is not target]
    family = [work for work in requests if target.id in work.ancestors]
    again = [
        work
        for work in requests
        if work.kind is WorkKind.SESSION
        and target.kind is WorkKind.SESSION
        and work.is_live
        and work.shares_message_with([target])
    ]
    return Plan((target, *family), tuple(again))


def _first_turn(waiting: Sequence[Work]) -> tuple[Work, ...]:
    """Return the first of these messages and those that would be one turn with it."""
    first, *rest = [(work, work.burst) for work in waiting if work.burst is not None]
    turn = [first]
    for work, burst in rest:
        joins = burst.collects or turn[-1][1].continues
        if burst.replaces or (burst.sender == first[1].sender and joins):
            turn.append((work, burst))
    return tuple(work for work, _ in turn)
