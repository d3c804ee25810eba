"""Executes chat turns, from the start of a run to its stored outcome.

The task of a run calls the agent loop and stores nothing at its end, because it may be cancelled at
any moment. Its owner then stores the outcome in one transaction (SPEC CMD-4).

The dispatcher reports what happens to a request; here each report becomes an event of its turn (see
``turns``): ``work`` starts it, ``joined`` merges it, ``restarted`` gives its rows to the next one,
and ``record`` ends it: decide the end and the reply (``_write``), store both (``_store_end``), then
hold, release or forget the turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial

from goclaw_py.chat.inbound.attachments import AttachmentDownloader
from goclaw_py.chat.inbound.chained_turns import ChainLimit
from goclaw_py.chat.inbound.drop_notices import DropNotices
from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.inbound.provider_outage import ProviderOutageBuffer
from goclaw_py.core.errors import ApprovalNeeded, Fenced
from goclaw_py.core.ids import MAIN_LANE, RunId, SessionKey
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.core.retry import retry_until_available, until_stored
from goclaw_py.core.run_events import (
    NOT_MADE,
    RunStarted,
    RunText,
    RunTool,
    RunWaits,
    TextDelta,
    ToolEnded,
    ToolStarted,
)
from goclaw_py.core.run_steps import NewMessagesStep, ValueStep
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import NewRun, RunEnd
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs import speakers
from goclaw_py.runs.agent_executor import AgentExecutor, AgentTask
from goclaw_py.runs.agent_loop import AgentResult, MessagePart
from goclaw_py.runs.approval_port import ApprovalChat, Ask, Questions
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.runs.events.broker import RunEventBroker, ended_elsewhere
from goclaw_py.runs.replies.draft import OrphanedReply
from goclaw_py.runs.replies.replies import Replies, TurnEnd, log_failure, signal_of
from goclaw_py.runs.replies.streaming import StreamingReplies
from goclaw_py.runs.replies.wait_line import HeardEvent
from goclaw_py.runs.run_persistence import store_run
from goclaw_py.runs.run_recorder import RunRecorder, without_success
from goclaw_py.runs.subagents import ChildRuns, ParentRun
from goclaw_py.runs.turn import Turn, maker_in
from goclaw_py.runs.turn_state import RELEASED, UNDOING
from goclaw_py.scheduler.dispatcher import Dispatcher

log = logging.getLogger(__name__)

_RUNS_AGAIN = (Reason.SHUTDOWN, Reason.MERGED)
"""Why a run is cancelled whose messages another run will answer."""

_STOP_SHOWN_S = 1.0
"""How long the answer to a stop waits until the draft shows the stop."""


class ChatRunExecutor:
    """The run handler for chat turns.

    Args:
        ask: Asks people about tool calls.
        jobs: The job service for agents; None: they have none.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        *,
        dispatcher: Dispatcher,
        agent_executor: AgentExecutor,
        mailboxes: Mailboxes,
        notices: DropNotices,
        outages: ProviderOutageBuffer,
        chains: ChainLimit,
        children: ChildRuns,
        contexts: ContextUsage,
        budget_tracker: BudgetTracker,
        feed: RunEventBroker,
        drafts: StreamingReplies,
        replies: Replies,
        received: AttachmentDownloader,
        ask: Ask,
        jobs: JobService | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher, self._agent_executor = dispatcher, agent_executor
        self.turns = notices.turns
        """The turns of all chats, for the other parts of ``chat.inbound``."""
        self.mailboxes, self.notices, self._outages = mailboxes, notices, outages
        self.chains, self._children, self._contexts = chains, children, contexts
        self._budget_tracker, self._feed = budget_tracker, feed
        self._drafts, self._replies, self._received = drafts, replies, received
        self._ask, self._jobs = ask, jobs

    def owns(self, run_id: RunId) -> bool:
        """Return whether it is a chat turn without a stored end."""
        return run_id in self.turns.by_run

    def progress(self, run_id: RunId) -> RunRecorder | None:
        """Return the recorder of a turn's run."""
        turn = self.turns.by_run.get(run_id)
        return None if turn is None else turn.progress

    def add(self, turn: Turn) -> None:
        """Add a turn, before it is submitted."""
        turn.queued_at = self._clock.now()
        self.turns.queue(turn)
        self._feed.on_requested(turn)
        self._drafts.signal(turn, RunWaits(turn.id, turn.target, turn.message_ids, turn.late))

    def answers(self, run_id: RunId, message_id: str) -> bool:
        """Return whether a turn answers this message, or this is its draft (SPEC CMD-2)."""
        turn = self.turns.by_run.get(run_id)
        if turn is None:
            return False
        draft_id = None if turn.draft is None else turn.draft.id
        return message_id in turn.message_ids or message_id == draft_id

    async def shows_stop(self, run_id: RunId) -> bool:
        """Wait a moment; return whether the draft of a stopped run shows the stop."""
        turn = self.turns.by_run.get(run_id)
        if turn is None or turn.draft is None or turn.draft.id is None:
            return False
        shown = turn.stop_shown = turn.stop_shown or asyncio.Event()
        try:
            async with asyncio.timeout(_STOP_SHOWN_S):
                await shown.wait()
        except TimeoutError:
            return False
        finally:
            turn.stop_shown = None
        return True

    # ------------------------------------------------------------------ the dispatcher's host

    def joined(self, request_id: RunId, into: RunId) -> None:
        """Merge two turns into one; the older one answers both."""
        younger, turn = self.turns.by_run[request_id], self.turns.by_run[into]
        self.turns.merge(younger, turn)
        self._outages.lost(younger, turn)
        self._feed.joined(younger, into)

    def restarted(self, run_id: RunId, into: RunId) -> None:
        """Let a waiting turn answer the messages of a run that ends without an effect."""
        before, turn = self.turns.by_run[run_id], self.turns.by_run[into]
        self._drafts.stop(before)
        self.turns.restart(before, turn)
        self._feed.joined(before, into)

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """Offer a message to a run."""
        # Files are downloaded at the begin of a run, so a message with files needs its own.
        if not self.turns.by_run[request_id].has_files:
            self.turns.by_run[run_id].offers.append(request_id)

    async def work(self, run_id: RunId) -> None:
        """Run the agent loop."""
        turn = self.turns.start(run_id)
        self._outages.check(turn)
        for abandoned in self.turns.abandoned(turn.session):
            await abandoned.wait()  # otherwise a crash would repeat its run
        if turn.after is not None:
            await turn.after.wait()
        self._drafts.signal(turn, RunStarted(run_id, turn.target, turn.message_ids))
        self._feed.started(turn)
        run = NewRun(
            id=run_id,
            session=turn.session,
            agent=turn.agent,
            trigger=Trigger.CHAT,
            lane=MAIN_LANE,
            inbox=tuple(row.id for row in turn.own_rows),
            target=turn.chat,
            started_at=self._clock.now(),
            submitted_at=turn.queued_at,
            dropped=self.turns.dropped(turn.session),
            durable=turn.starts_durably,
        )
        # Known before it is stored: a cancellation can hit between the commit and the answer. And
        # however long that takes: as another node this process has nothing of what it had.
        turn.begun = run, (node := self._store.node())
        begun = await self._store.retried.begin_run(run, node=node)
        turn.progress.begun = begun
        # Stopped in the meantime by its owner, or a reload has found it before that.
        self.turns.shrink(turn, begun.ended)
        chained = await self.chains.check(turn)
        self._drafts.begin(turn, begun, node)
        await self._add_background(turn)
        steps = [step.rows for step in begun.steps or () if isinstance(step, NewMessagesStep)]
        rows = [row for row in turn.rows if not any(row.id in replayed for replayed in steps)]
        files = turn.progress.pop_files(await self._received.fetch(rows))
        chat, sender, asks = turn.chat, turn.rows[0].message.of_whom, _approval_chat(turn)
        asker = ParentRun(run_id, turn.agent, turn.session, chat, sender, asks if chat else None)
        job = AgentTask(
            run=run,
            parts=(*turn.context, *turn.parts(rows, files)),
            children=self._children.of(asker),
            target=chat,
            system=(speakers.GUIDE,) if turn.peer is PeerKind.GROUP else (),
            # Jobs created here would belong to no chat, and could not be delivered.
            jobs=None if chat is None else self._jobs,
            asker=replace(maker_in(turn), chained=chained),
            take_messages=partial(self._steer_in, turn),
            can_ask=True,
        )
        result = await self._agent_executor.work(job, turn.progress, partial(self._on_event, turn))
        self._note_context(turn, result)

    async def _add_background(self, turn: Turn) -> None:
        """Give a turn the messages of its group since the last one (SPEC CHAN-12)."""
        if not turn.context_messages:
            return
        until, now = max(row.message.sent_at for row in turn.rows), self._clock.now()
        said = await self._store.retried.claim_unmentioned(
            turn.session, turn.id, until=until, now=now
        )
        # A message whose edit addresses the agent is not its own context.
        mine = {row.message.edits for row in turn.rows}
        turn.prepend([message for message in said if message.external_id not in mine])

    def _steer_in(self, turn: Turn) -> tuple[MessagePart, ...]:
        """Return the waiting messages that were offered to a run (SPEC QUEUE-4)."""
        if turn.progress.result is not None:
            # Something that the agent has left behind asks; nothing could answer a message now.
            return ()
        known, offers, turn.offers = len(turn.rows), turn.offers, []
        for request_id in offers:
            self._dispatcher.steer_in(request_id, turn.id)
        return turn.parts(turn.rows[known:], {})

    def _note_context(self, turn: Turn, result: AgentResult) -> None:
        """Reduce or restore a session's concurrency by the size of its context (SPEC QUEUE-7)."""
        tokens = result.context_tokens
        # One that was stopped may belong to a conversation that is no more.
        if tokens is None or not self._dispatcher.is_running(turn.id):
            return
        if self._contexts.note(turn.session, turn.agent, tokens):
            policy = self._contexts.throttled(turn.session, turn.policy)
            self._dispatcher.set_concurrency(turn.session, policy.concurrency)

    def record(self, ended: Ending, error: BaseException | None) -> Coroutine[None, None, None]:
        """Store the end of a turn, with its reply, when awaited.

        That returns when it is done, or another node owns the session. An end that cannot be stored
        because of a bug is stored as a failure; otherwise its messages would never end.
        """
        if ended.is_dropped:
            turn = self.turns.by_run[ended.run_id]
            self.notices.drop(turn, ended)  # immediately: a stop in the same batch must know of it
        else:
            turn = self.turns.end(ended.run_id)
            if ended.outcome is Outcome.ABANDONED:
                self.turns.abandon(turn)
        return self._record_in_order(turn, ended, error)

    # ------------------------------------------------------------------ inside

    async def _record_in_order(
        self, turn: Turn, ended: Ending, error: BaseException | None
    ) -> None:
        try:
            await self._record(turn, ended, error)
        finally:
            if turn.abandoned is not None:
                turn.abandoned.set()
            turn.ended.set()

    async def _record(self, turn: Turn, ended: Ending, error: BaseException | None) -> None:
        end = TurnEnd(turn, ended, error, OrphanedReply())
        try:
            await self._write(end)
        except Exception as bug:
            # A boundary: the bug may be the channel's or lie in what the agent gave back.
            log.exception("reply_failed", extra=turn.facts)
            end.ended, end.error = without_success(end.ended), bug
            end.say = self._replies.bare(end)
        self._drafts.signal(turn, signal_of(end))
        if turn.stop_shown is not None:
            turn.stop_shown.set()
        log_failure(turn, end.error)
        facts, told = turn.facts, end.ended
        if turn.stop_tried is not None:
            # Should this node die in between, the stop acts again: on this turn, not the next one.
            await turn.stop_tried.wait()
        try:
            told = await self._store_end(end, facts)
        except Fenced:
            log.warning("session_taken_over", extra=facts)
            told = ended_elsewhere(turn.id)
            self._outages.lost(turn)
            self._release(turn)
        else:
            behind = self._withdraw(turn.session) if turn.state is UNDOING else ()
            self._outages.recorded(turn, end.ended, end.error, behind)
        finally:
            if turn.abandoned is not None:
                turn.abandoned.set()
            self._feed.ended(turn, told, turn.progress)
            self._agent_executor.ended(turn, told, turn.progress, end.error)
            await self._leave_draft(end, told)
            self._budget_tracker.close(turn.id)
            self.turns.leave(turn)

    async def _write(self, end: TurnEnd) -> None:
        """Decide how a turn has ended, take over its draft, and create the outgoing messages."""
        turn, ended, error = end.turn, end.ended, end.error
        if ended.outcome is Outcome.ABANDONED and ended.reason in _RUNS_AGAIN:
            # It ignores its cancellation, but its messages run again.
            ended = Ending(ended.run_id, Outcome.INTERRUPTED, ended.reason)
        if turn.after is not None:
            await turn.after.wait()
        ended, error = turn.progress.judge(ended, error)
        end.ended, end.error = self._outages.judge(turn, ended, error), error
        if isinstance(error, ApprovalNeeded) and end.ended.reason is Reason.APPROVAL:
            chat = replace(_approval_chat(turn), said=turn.progress.text)
            end.questions = await self._ask(error, turn.agent, chat)
            end.error = None
        end.left = self._drafts.stop(turn)
        if not end.is_silent:
            end.left = await self._drafts.end(turn)
        end.say = await self._replies.messages(end)

    def _release(self, fenced: Turn) -> None:
        """Return a turn to its mailbox, so that a reload reads its messages in order."""
        if fenced.state is RELEASED:
            return  # this node has expired, and has nothing of it any more
        if self._dispatcher.draining:
            self.turns.release([fenced])  # it stays as it is until the restart
        else:
            self.mailboxes.release([fenced, *self._withdraw(fenced.session)])

    def _withdraw(self, session: SessionKey) -> list[Turn]:
        """Return the turns of a session that waited for their runs, which are interrupted now."""
        there = {turn.id for turn in self.turns.by_run.values() if turn.session == session}
        return self.turns.of_runs(self._dispatcher.give_back(there))

    async def _leave_draft(self, end: TurnEnd, ending: Ending) -> None:
        """Hand over a draft, or close one that was posted while its run stopped.

        The end is stored before, so that typing and the next message do not wait for the request.
        """
        if ending.reason is Reason.CRASHED:
            await self._drafts.hand_over(end.turn)
        elif end.is_silent:  # else that was waited for before
            late = await self._drafts.end(end.turn)
            if end.left.id is None and late.id is not None:
                self._drafts.signal(end.turn, signal_of(replace(end, left=late)))
            elif end.left.lost is None and late.lost is not None:
                await self._drafts.remove_lost(end.turn)
        end.turn.draft = end.turn.wait = None

    async def _store_end(self, end: TurnEnd, facts: Mapping[str, object]) -> Ending:
        """Store the end; return it as stored. Raises ``Fenced``."""
        if isinstance(end.error, Fenced):
            # It could not even begin; as another node this process would be let in.
            raise end.error
        try:
            if end.turn.begun is not None:
                await store_run(self._store, end.turn.begun, self._end_of(end))
            else:
                await self._record_unbegun(end)
        except Fenced:
            raise
        except Exception as bug:
            # A boundary: the bug may lie in what the agent gave back.
            log.exception("run_end_not_stored", extra=facts)
            end = replace(end, ended=without_success(end.ended))
            await until_stored(self._bare_ends(end, bug), facts)
        return end.ended

    def _bare_ends(self, end: TurnEnd, bug: Exception) -> Callable[[], Awaitable[None]]:
        """Return what stores an end without any external content; again, without its prompt."""
        turn, ended, node = end.turn, end.ended, self._store.node
        say, now = self._replies.bare(end), self._clock.now()
        bare = turn.progress.bare_end(ended, bug, now, prompt=turn.prompt())
        bare = replace(bare, say=say, taken_in=turn.steered_rows, asked_at=turn.rows[0].received_at)

        async def store() -> None:
            nonlocal bare
            if turn.begun is None:
                rows = [row.id for row in turn.rows]
                await self._store.settle(
                    rows, ended.outcome, now=now, reason=ended.reason, say=say, node=node()
                )
                return
            this, bare = bare, replace(bare, history=())
            await store_run(self._store, turn.begun, this)

        return store

    async def _record_unbegun(self, end: TurnEnd) -> None:
        """Store the end of a turn whose run has not started. Raises ``Fenced``."""
        turn, ended = end.turn, end.ended
        if ended.outcome is Outcome.INTERRUPTED or ended.reason is Reason.DRAINING:
            return  # its rows stay as they are and run after the restart
        if ended.is_dropped:
            return  # its rows end with their notice
        rows, say, now = [row.id for row in turn.rows], end.say, self._clock.now()

        async def settle() -> None:
            if turn.state is RELEASED:
                # Stored by the next node of this process, it would end a message that waits again.
                raise Fenced(f"the node that claimed the messages of {turn.id} has expired")
            await self._store.settle(
                rows, ended.outcome, now=now, reason=ended.reason, say=say, node=self._store.node()
            )

        await retry_until_available(settle)

    def _end_of(self, end: TurnEnd) -> RunEnd:
        turn, questions = end.turn, end.questions
        run_end = turn.progress.run_end(
            end.ended,
            end.error,
            self._clock.now(),
            prompt=turn.prompt(),
            asks=Questions(questions.approvals, (*end.say, *questions.say)),
            joined_rows=turn.steered_rows,
        )
        return replace(run_end, asked_at=turn.rows[0].received_at)

    def _on_event(self, turn: Turn, event: HeardEvent) -> None:
        """Show an event of an agent."""
        match event:
            case TextDelta(text):
                if not self._drafts.add(turn, text):
                    # A channel without drafts may show it at once.
                    self._dispatcher.had_effect(turn.id)
                self._drafts.signal(turn, RunText(turn.id, turn.target, text))
            case ToolStarted():
                self._dispatcher.had_effect(turn.id)
                self._drafts.signal(turn, RunTool(turn.id, turn.target, event.name))
            case ToolEnded():
                denied = not event.ok and event.result.startswith(NOT_MADE)
                tool = RunTool(turn.id, turn.target, event.name, event.ok, denied)
                self._drafts.signal(turn, tool)
            case ValueStep():
                self._dispatcher.had_effect(turn.id)
            case _:
                pass  # what concerns the history, and what the run waits for
        if turn.wait is not None:
            turn.wait.on_event(event)


def _approval_chat(turn: Turn) -> ApprovalChat:
    """Return the chat in which people are asked about the tool calls of a turn."""
    sender = turn.rows[0].message.of_whom
    return ApprovalChat(turn.chat, turn.peer, sender, turn.session, rows=turn.rows)
