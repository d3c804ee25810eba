"""One run from its start to its stored outcome.

The task of a run calls the agent loop and writes nothing at its end: it may be cancelled at any
moment. Whoever owns the run records its outcome afterwards, in one transaction (SPEC CMD-4).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial

from goclaw_py.core import wording
from goclaw_py.core.errors import AgentError, Fenced, NeverBegan
from goclaw_py.core.events import AgentEvent, RunEnded, RunSignal, RunStarted, RunText, TextDelta
from goclaw_py.core.ids import MAIN_LANE, AgentName, NodeId, RunId
from goclaw_py.core.messages import OutboundMessage, PeerKind
from goclaw_py.core.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.ports.agent import (
    AgentLoop,
    AgentResult,
    HistoryEntry,
    MessagePart,
    Role,
    RunRequest,
    TextPart,
)
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import InboxRow, NewRun, Place, RunEnd, Store
from goclaw_py.runtime.contexts import Contexts
from goclaw_py.runtime.dispatcher import Dispatcher
from goclaw_py.runtime.notices import Notices
from goclaw_py.runtime.retry import until_available, until_stored
from goclaw_py.runtime.turn import Turn

log = logging.getLogger(__name__)

current_run: ContextVar[RunId | None] = ContextVar("current_run", default=None)
"""The run that this task works for; readable in clean-up code after a cancellation too."""


class Runner:
    """The host of the dispatcher for turns of a chat.

    Args:
        node: The node that this process is now.
    """

    def __init__(
        self,
        store: Store,
        agents: Mapping[AgentName, AgentLoop],
        channels: Mapping[Place, Channel],
        clock: Clock,
        node: Callable[[], NodeId],
        contexts: Contexts,
    ) -> None:
        self._node = node
        self._store = store
        self._agents = agents
        self._channels = channels
        self._clock = clock
        self._turns: dict[RunId, Turn] = {}
        self._contexts = contexts
        self.notices = Notices(store, clock)

    def connect(self, dispatcher: Dispatcher) -> None:
        """Give it the dispatcher that it is the host of. Call it once, before anything runs."""
        self._dispatcher = dispatcher

    def add(self, turn: Turn) -> None:
        """Know a turn before it is submitted."""
        self._turns[turn.id] = turn

    # ------------------------------------------------------------------ the dispatcher's host

    def joined(self, request_id: RunId, into: RunId) -> None:
        """Make one turn of two; the older one answers both."""
        younger = self._turns.pop(request_id)
        self._turns[into].rows += younger.rows

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """Let a run know about a message that it may take in."""
        self._turns[run_id].offers.append(request_id)

    async def work(self, run_id: RunId) -> None:
        """Run the agent loop."""
        turn = self._turns[run_id]
        current_run.set(run_id)
        self._signal(turn, RunStarted(run_id, turn.target))
        # Known before it is stored: a cancellation can hit between the commit and the answer.
        turn.run = run = NewRun(
            id=run_id,
            session=turn.session,
            agent=turn.agent,
            trigger=Trigger.CHAT,
            lane=MAIN_LANE,
            inbox=tuple(row.id for row in turn.rows),
            target=turn.target,
            started_at=self._clock.now(),
        )
        history = await until_available(lambda: self._store.begin_run(run, node=self._node()))
        request = RunRequest(
            run_id=run_id,
            session=turn.session,
            agent=turn.agent,
            trigger=Trigger.CHAT,
            parts=_parts(turn, turn.rows),
            history=tuple(history),
            take_messages=partial(self._take_messages, turn),
        )
        turn.result = await self._agents[turn.agent].run(request, partial(self._emit, turn))
        self._note_context(turn, turn.result)

    def _take_messages(self, turn: Turn) -> tuple[MessagePart, ...]:
        """Take in what was offered to a run and still waits (SPEC QUEUE-4)."""
        if turn.result is not None:
            # Something that the agent has left behind asks; nothing could answer a message now.
            return ()
        known = len(turn.rows)
        offers, turn.offers = turn.offers, []
        for request_id in offers:
            self._dispatcher.take_in(request_id, turn.id)
        return _parts(turn, turn.rows[known:])

    def _note_context(self, turn: Turn, result: AgentResult) -> None:
        """Let a session slow down or speed up if its context tells so (SPEC QUEUE-7)."""
        tokens = result.context_tokens
        # One that was stopped may belong to a conversation that is no more.
        if tokens is None or not self._dispatcher.is_running(turn.id):
            return
        if self._contexts.note(turn.session, turn.agent, tokens):
            policy = self._contexts.throttled(turn.session, turn.policy)
            self._dispatcher.set_concurrency(turn.session, policy.concurrency)

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        """Store how a turn ended, with what it says.

        Returns when that is done, or another node owns the session. What cannot be stored because
        of a bug is stored as a failure: a run without an end would keep its messages for ever.
        """
        turn = self._turns[ended.run_id]
        if ended.outcome is Outcome.ABANDONED and ended.reason is Reason.SHUTDOWN:
            # It ignores the shutdown too, but the process ends: its messages run after the restart.
            ended = Ending(ended.run_id, Outcome.INTERRUPTED, ended.reason)
        if turn.run is not None or ended.outcome is Outcome.CANCELLED:
            self._signal(turn, RunEnded(turn.id, turn.target, ended.outcome))
        if error is not None:
            _log_failure(turn, error)
        facts = {"run_id": turn.id, "session": turn.session}
        try:
            await self._store_end(turn, ended, error, facts)
        except Fenced:
            log.warning(
                "another node took this session over; the run's result is discarded", extra=facts
            )
        finally:
            del self._turns[ended.run_id]

    # ------------------------------------------------------------------ inside

    async def _store_end(
        self, turn: Turn, ended: Ending, error: BaseException | None, facts: Mapping[str, object]
    ) -> None:
        try:
            if turn.run is not None:
                await self._record_run(turn.run, self._end_of(turn, ended, error))
            else:
                await self._record_unbegun(turn, ended)
        except Fenced:
            raise
        except Exception as bug:
            # A boundary: the bug may be the channel's or lie in what the agent gave back.
            log.exception("an outcome was not stored; storing it without the reply", extra=facts)
            if ended.outcome is Outcome.COMPLETED:
                ended = Ending(ended.run_id, Outcome.FAILED)
            await until_stored(partial(self._store_bare_end, turn, ended, bug), facts)

    async def _store_bare_end(self, turn: Turn, ended: Ending, bug: Exception) -> None:
        """Store an end with nothing in it that came from outside."""
        text = self._reply(turn, ended, None)
        say = (OutboundMessage(turn.target, text, run_id=turn.id),) if text else ()
        now = self._clock.now()
        if turn.run is None:
            rows = [row.id for row in turn.rows]
            await self._store.settle(rows, ended.outcome, now=now, reason=ended.reason, say=say)
            return
        error = f"not stored: {type(bug).__name__}: {bug}"
        end = RunEnd(
            id=turn.id,
            outcome=ended.outcome,
            finished_at=now,
            reason=ended.reason,
            error=error,
            say=say,
            taken_in=turn.taken_in,
        )
        await self._record_run(turn.run, end)

    async def _record_run(self, run: NewRun, end: RunEnd) -> None:
        try:
            await until_available(lambda: self._store.finish_run(end, node=self._node()))
        except NeverBegan:
            # It was stopped before its begin was stored. It leaves a trace all the same, but one
            # that a shutdown cut is as if it had never been.
            if end.outcome is not Outcome.INTERRUPTED:
                await until_available(lambda: self._store.begin_run(run, node=self._node()))
                await until_available(lambda: self._store.finish_run(end, node=self._node()))

    async def _record_unbegun(self, turn: Turn, ended: Ending) -> None:
        if ended.outcome is Outcome.INTERRUPTED or ended.reason is Reason.DRAINING:
            return  # its rows stay as they are and run after the restart
        rows = [row.id for row in turn.rows]
        if ended.outcome in (Outcome.DROPPED, Outcome.REJECTED):
            self.notices.add(turn.session, turn.target, ended, rows, turn.texts)
            return
        say = self._messages(turn, self._reply(turn, ended, None))
        now = self._clock.now()
        await until_available(
            lambda: self._store.settle(rows, ended.outcome, now=now, reason=ended.reason, say=say)
        )

    def _end_of(self, turn: Turn, ended: Ending, error: BaseException | None) -> RunEnd:
        return RunEnd(
            id=turn.id,
            outcome=ended.outcome,
            finished_at=self._clock.now(),
            reason=ended.reason,
            error=None if error is None else f"{type(error).__name__}: {error}",
            history=_history(turn, ended.outcome),
            say=self._messages(turn, self._reply(turn, ended, error)),
            usage=None if turn.result is None else turn.result.usage,
            taken_in=turn.taken_in,
        )

    def _reply(self, turn: Turn, ended: Ending, error: BaseException | None) -> str:
        match ended.outcome:
            case Outcome.COMPLETED if turn.result is not None:
                return turn.result.text
            case Outcome.FAILED:
                return error.friendly if isinstance(error, AgentError) else wording.FAILED
            case Outcome.TIMED_OUT:
                return wording.timed_out(ended.reason)
            case Outcome.ABANDONED if ended.reason in (Reason.DEADLINE, Reason.RUN_TIMEOUT):
                return wording.timed_out(ended.reason)
            case _:
                return ""

    def _messages(self, turn: Turn, text: str) -> tuple[OutboundMessage, ...]:
        """Cut a reply into messages; only the first one is a reply to the question."""
        channel = self._channels.get((turn.target.channel, turn.target.account))
        parts = [text] if channel is None else channel.parts(text)
        asked = turn.rows[-1].message
        in_group = asked.peer is PeerKind.GROUP
        return tuple(
            OutboundMessage(
                target=turn.target,
                text=part,
                reply_to=asked.message_id if in_group and number == 0 else None,
                run_id=turn.id,
            )
            for number, part in enumerate(parts)
        )

    def _emit(self, turn: Turn, event: AgentEvent) -> None:
        # A run that swallows its cancellation must not speak afterwards.
        if not self._dispatcher.is_running(turn.id):
            return
        if isinstance(event, TextDelta):
            turn.said.append(event.text)
            self._signal(turn, RunText(turn.id, turn.target, event.text))

    def _signal(self, turn: Turn, signal: RunSignal) -> None:
        channel = self._channels.get((turn.target.channel, turn.target.account))
        if channel is None:
            return
        try:
            channel.signal(signal)
        except Exception:
            # A channel is a boundary: what it fails to show must not cost the answer.
            log.exception("a channel broke on a signal", extra={"run_id": signal.run_id})


def _parts(turn: Turn, rows: Sequence[InboxRow]) -> tuple[MessagePart, ...]:
    return tuple(TextPart(text) for text in turn.prompts(rows))


def _history(turn: Turn, outcome: Outcome) -> tuple[HistoryEntry, ...]:
    """What the session remembers of a turn. A run that was cut short leaves readable entries."""
    asked = HistoryEntry(Role.USER, "\n".join(turn.prompts(turn.rows)))
    result = turn.result
    if outcome is Outcome.COMPLETED and result is not None:
        return result.entries or (asked, HistoryEntry(Role.ASSISTANT, result.text))
    if outcome is Outcome.INTERRUPTED:
        return ()
    said = "" if outcome is Outcome.ABANDONED else "".join(turn.said)
    return asked, HistoryEntry(Role.ASSISTANT, wording.cut_reply(said, outcome))


def _log_failure(turn: Turn, error: BaseException) -> None:
    facts = {"run_id": turn.id, "session": turn.session, "agent": turn.agent}
    if isinstance(error, AgentError | Fenced):
        log.warning("run failed: %s", error, extra=facts)
    else:
        log.error("run failed", extra=facts, exc_info=error)
