"""Messages held while the provider of their agent is unavailable (SPEC AGENT-8).

A run that fails with an error of its provider that may pass is undone: its messages are pending
again, and are held here with later messages of the session. Some providers always answer such an
error to one message, so only failures of two sessions without a success are an outage: then the
messages of all sessions for the agent are held. From time to time one of them is tried, sessions in
turn and the oldest message first; after a success, the others follow. A message that fails again
although another session's later run has succeeded fails by itself. Each sender is notified once.

Which turns are held, or will be once the end of their run is stored, are the states HELD and
UNDOING in ``turns``. Here are only facts about providers: which sessions failed, which were
answered, and which turn is tried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from goclaw_py.chat.inbound.drop_notices import DropNotices
from goclaw_py.chat.inbound.turns import first_row
from goclaw_py.chat.outbound import texts
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import AgentError, ProviderUnavailable
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_run_id
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.turn import Turn, goes_on
from goclaw_py.runs.turn_state import HELD, RELEASED, STOPPED, UNDOING
from goclaw_py.scheduler.loop_timer import LoopTimer
from goclaw_py.scheduler.models import Drop

log = logging.getLogger(__name__)

FIRST_TRY_S = 5.0
LAST_TRY_S = 60.0
"""The delay in seconds before the next try: at first, and at most."""

_REMEMBERED = 10_000
_IN_OUTAGE = 2
"""The number of sessions without a success whose failures are an outage."""


@dataclass(slots=True, eq=False)
class _Outage:
    """An agent whose provider is, or may be, down. Times are those of the event loop."""

    agent: AgentName
    since: float
    error: AgentError
    alarm: LoopTimer
    failed: set[SessionKey] = field(default_factory=set)
    """The sessions whose runs have failed."""
    failed_at: float = 0.0
    due: float = float("inf")
    """When the next turn is tried."""
    tried_at: dict[SessionKey, float] = field(default_factory=dict)
    trying: Turn | None = None
    wait_s: float = FIRST_TRY_S

    @property
    def is_certain(self) -> bool:
        """Return whether the messages of all sessions are held."""
        return len(self.failed) >= _IN_OUTAGE


@dataclass(frozen=True, slots=True)
class OutageView:
    """An agent whose provider is unavailable, for people."""

    agent: AgentName
    for_s: float
    kept: int
    cause: str


class ProviderOutageBuffer:
    """Holds chat turns until the provider is available.

    Args:
        hold_s: How many seconds a message is held before it fails; 0: it is not held.
        submit: Submits a turn.
        notices: Drops a turn for which there is no room (SPEC QUEUE-5).
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        hold_s: float,
        submit: Callable[[Turn], None],
        notices: DropNotices,
    ) -> None:
        self._notices, self._turns = notices, notices.turns
        self._store = store
        self._clock = clock
        self._hold_s = hold_s
        self._submit = submit
        self._loop = asyncio.get_running_loop()
        self._outages: dict[AgentName, _Outage] = {}
        self._notified_at: LruCache[SessionKey, float] = LruCache(_REMEMBERED)
        self._answered: dict[AgentName, LruCache[SessionKey, float]] = {}
        """When the last answered runs of the two latest sessions began."""
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ what runs tell

    def check(self, turn: Turn) -> None:
        """Raise ``ProviderUnavailable`` for a turn about to run, unless it is to be tried."""
        outage = self._outages.get(turn.agent)
        is_tried = outage is not None and outage.trying is not None and outage.trying.id == turn.id
        if outage is not None and not is_tried and self._must_wait(outage, turn):
            raise ProviderUnavailable(f"the provider of agent {turn.agent} is unavailable")
        turn.asked_at = self._loop.time()

    def judge(self, turn: Turn, ended: Ending, error: BaseException | None) -> Ending:
        """Return the end of a run after a possible outage: interrupted if its messages are held."""
        is_over = ended.reason is not None or turn.state is RELEASED
        if is_over or ended.outcome is not Outcome.FAILED:
            return ended
        if not isinstance(error, ProviderUnavailable) and not self._is_outage(turn, error):
            return ended
        self._turns.undo(turn)
        if turn.kept_since is None:
            turn.kept_since = self._loop.time()
        return replace(ended, outcome=Outcome.INTERRUPTED, reason=Reason.OUTAGE)

    def _is_outage(self, turn: Turn, error: BaseException | None) -> bool:
        if not isinstance(error, AgentError) or not error.retryable or turn.run is None:
            return False
        progress = turn.progress
        if progress.has_side_effects and not (progress.can_continue or progress.begun.steps):
            return False  # what it has done already must not be done again
        now = self._loop.time()
        first = now if turn.kept_since is None else turn.kept_since
        if now - first >= self._hold_s:
            return False
        if turn.failed_at is None:
            turn.failed_at = now
        elif self._others_are_answered(turn, since=turn.failed_at):
            return False  # its provider is not down
        outage = self._outages.get(turn.agent)
        if outage is None:
            outage = self._begin(turn.agent, error)
        outage.error, outage.failed_at = error, now
        was_certain = outage.is_certain
        outage.failed.add(turn.session)
        if outage.is_certain and not was_certain:
            facts = {"agent": turn.agent, "error": str(error)}
            log.warning("provider_outage_started", extra=facts)
        return True

    def _others_are_answered(self, turn: Turn, *, since: float) -> bool:
        """Return whether a run of another session that began later has succeeded."""
        answered = self._answered.get(turn.agent)
        if answered is None:
            return False
        return any(at > since for session, at in answered.items() if session != turn.session)

    def recorded(
        self,
        turn: Turn,
        ended: Ending,
        error: BaseException | None,
        behind: Collection[Turn] = (),
    ) -> None:
        """Handle that the end of a run is stored.

        ``behind`` are withdrawn turns of its session: its messages go first when they run again.
        """
        outage = self._outages.get(turn.agent)
        is_back = ended.outcome is Outcome.COMPLETED
        if is_back and turn.asked_at is not None:
            self._note_answer(turn.agent, turn.session, turn.asked_at)
        is_undone = turn.state is UNDOING
        if turn.state is STOPPED:
            self._start(self._settle(turn, Outcome.CANCELLED, Reason.STOPPED))
        again = [self._again(turn), *map(self._withdrawn, behind)] if is_undone else []
        if outage is None:
            for one in again:
                self._submit(one)
            return
        for one in again:
            self._turns.hold(one)
            self._notify(one)
        if outage.trying is not None and outage.trying.id == turn.id:
            outage.trying = None
            failed = ended.outcome is Outcome.FAILED
            is_back |= failed and not (isinstance(error, AgentError) and error.retryable)
        if is_back:
            self._end(outage)
        else:
            self._go_on(outage)

    def answered(self, agent: AgentName, session: SessionKey, requested_at: float) -> None:
        """Handle that a run has succeeded that answers no message, such as that of a job."""
        self._note_answer(agent, session, requested_at)
        outage = self._outages.get(agent)
        if outage is not None and requested_at > outage.failed_at:
            self._end(outage)

    def _note_answer(self, agent: AgentName, session: SessionKey, requested_at: float) -> None:
        answered = self._answered.setdefault(agent, LruCache(_IN_OUTAGE))
        answered.pop(session, None)
        answered[session] = requested_at

    def lost(self, turn: Turn, into: Turn | None = None) -> None:
        """Try another turn if this one belongs to another process or became part of another."""
        for outage in list(self._outages.values()):
            if outage.trying is turn:
                outage.trying = into
                if into is None:
                    self._go_on(outage)

    # ------------------------------------------------------------------ what arrives

    def keeps(self, turn: Turn) -> bool:
        """Hold a new turn if its agent's provider is down; return whether it is held."""
        outage = self._outages.get(turn.agent)
        if outage is None or not self._must_wait(outage, turn):
            return False
        if _goes_on_from(outage.trying, turn):
            return False
        held = self._turns.held(turn.agent)
        before = sorted((one for one in held if one.session == turn.session), key=first_row)
        if before and _goes_on_from(before[-1], turn):
            self._turns.merge(turn, before[-1])
            return True
        if len(before) >= turn.policy.capacity:
            if turn.policy.drop is Drop.NEW:
                self._notices.drop(turn, Ending(turn.id, Outcome.REJECTED, Reason.QUEUE_FULL))
                return True
            oldest = before[0]
            self._notices.drop(oldest, Ending(oldest.id, Outcome.DROPPED, Reason.QUEUE_DROPPED))
        turn.kept_since = self._loop.time()
        self._turns.hold(turn)
        self._notify(turn)
        soon = max(self._loop.time(), outage.failed_at + FIRST_TRY_S)
        if turn.session not in outage.failed and outage.trying is None and soon < outage.due:
            # Those that failed may be at fault, and this session need not wait as long as they do.
            self._try_at(outage, soon)
        return True

    def remove(self, turns: Collection[Turn]) -> None:
        """Remove turns that were stopped.

        Messages of a turn whose run is ending end with that.
        """
        for turn in turns:
            was_held = turn.state is HELD
            self._turns.stop(turn)
            outage = self._outages.get(turn.agent)
            if was_held and outage is not None:
                self._go_on(outage)

    def views(self) -> tuple[OutageView, ...]:
        """Return the outages, for people."""
        now = self._loop.time()
        return tuple(
            OutageView(
                one.agent,
                now - one.since,
                len(self._turns.held(one.agent)) + (one.trying is not None),
                str(one.error),
            )
            for one in self._outages.values()
        )

    def forget(self) -> None:
        """Forget all turns: they belong to another process."""
        for outage in self._outages.values():
            outage.alarm.set(None)
        self._outages.clear()
        self._turns.release_held()

    # ------------------------------------------------------------------ inside

    def _must_wait(self, outage: _Outage, turn: Turn) -> bool:
        """Return whether a turn must wait, unless it is the one that is tried."""
        if outage.is_certain:
            return True
        before = [*self._turns.held(turn.agent), *filter(None, [outage.trying])]
        return any(other.session == turn.session for other in before)

    def _begin(self, agent: AgentName, error: AgentError) -> _Outage:
        alarm = LoopTimer(self._loop, lambda: self._on_alarm(agent))
        outage = _Outage(agent, self._loop.time(), error, alarm)
        self._outages[agent] = outage
        return outage

    def _again(self, turn: Turn) -> Turn:
        """Return the same messages for another run; the list is shared for edits."""
        self._turns.replace(turn)
        return Turn(
            new_run_id(self._clock),
            turn.session,
            turn.agent,
            turn.rows,
            turn.policy,
            late=True,
            kept_since=turn.kept_since,
            failed_at=turn.failed_at,
            former=turn.id,
            context_messages=turn.context_messages,
        )

    def _withdrawn(self, turn: Turn) -> Turn:
        """Return the messages of a turn that has not run for another run."""
        turn.kept_since = self._loop.time() if turn.kept_since is None else turn.kept_since
        self._turns.undo(turn)
        return self._again(turn)

    def _go_on(self, outage: _Outage) -> None:
        """Schedule the next try, if any turn is left."""
        if outage.trying is not None:
            return
        held = self._turns.held(outage.agent)
        if not held and not self._turns.is_undoing(outage.agent):
            self._end(outage)
            return
        # A session that has not failed may show that it is the fault of those that have.
        has_new = any(turn.session not in outage.failed for turn in held)
        self._try_at(outage, self._loop.time() + (FIRST_TRY_S if has_new else outage.wait_s))

    def _try_at(self, outage: _Outage, due: float) -> None:
        outage.due = due
        outage.alarm.set(due)

    def _on_alarm(self, agent: AgentName) -> None:
        outage = self._outages.get(agent)
        if outage is None or outage.trying is not None:
            return
        outage.wait_s = min(outage.wait_s * 2, LAST_TRY_S)
        now = self._loop.time()
        for turn in self._turns.held(agent):
            if turn.kept_since is not None and now - turn.kept_since >= self._hold_s:
                self._turns.expire(turn)
                log.warning("held_message_expired", extra={"session": turn.session})
                say = OutboundMessage(turn.target, outage.error.friendly, reply_to=turn.reply_to)
                self._start(self._settle(turn, Outcome.FAILED, Reason.OUTAGE, say))
        # The oldest turn of the session that has not been tried for longest.
        trying = min(
            self._turns.held(agent),
            key=lambda turn: (outage.tried_at.get(turn.session, float("-inf")), first_row(turn)),
            default=None,
        )
        if trying is None:
            self._go_on(outage)
            return
        outage.tried_at[trying.session] = now
        outage.trying = trying
        self._submit(trying)

    def _end(self, outage: _Outage) -> None:
        """End an outage: the provider responds again, or no turn is left."""
        held = self._turns.held(outage.agent)
        if outage.is_certain:
            facts = {"agent": outage.agent, "held": len(held)}
            log.info("provider_outage_ended", extra=facts)
        outage.alarm.set(None)
        del self._outages[outage.agent]
        for turn in sorted(held, key=first_row):
            self._submit(turn)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _notify(self, turn: Turn) -> None:
        """Notify the sender of a turn that it is held, once."""
        now = self._loop.time()
        notified_at = self._notified_at.get(turn.session)
        if notified_at is None or now - notified_at >= self._hold_s:
            self._notified_at.pop(turn.session, None)
            self._notified_at[turn.session] = now
            self._start(self._say(OutboundMessage(turn.target, texts.KEPT, turn.reply_to)))

    async def _say(self, message: OutboundMessage) -> None:
        now, say = self._clock.now(), [message]
        await self._store.retried.settle([], Outcome.COMPLETED, now=now, say=say)

    async def _settle(
        self, turn: Turn, outcome: Outcome, reason: Reason, *say: OutboundMessage
    ) -> None:
        rows, now, node = [row.id for row in turn.rows], self._clock.now(), self._store.node()
        try:
            await self._store.retried.settle(
                rows, outcome, now=now, reason=reason, say=say, node=node
            )
        finally:
            self._turns.close(turn)


def _goes_on_from(before: Turn | None, turn: Turn) -> bool:
    """Return whether a message continues a text that the channel split (SPEC QUEUE-6)."""
    if before is None or before.session != turn.session:
        return False
    last = before.rows[-1].message
    return last.sender.id == turn.rows[0].message.sender.id and goes_on(last)
