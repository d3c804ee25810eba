"""Child runs: subagents and delegates (SPEC AGENT-6, LANE-8).

A child has its own session. Its parent waits for it within a tool call, or continues; then the
child's result comes into the parent's chat as a message. That message is stored in the inbox before
the child's run is stored as ended, under an id that is unique for the child: so it comes exactly
once, also after a crash. Such a child continues after an interruption, also without its parent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from goclaw_py.chat.outbound import texts
from goclaw_py.cluster.membership import MAX_ATTEMPTS
from goclaw_py.core.errors import (
    AgentError,
    ApprovalNeeded,
    Fenced,
    RunNotStarted,
    StoreError,
    ToolFailed,
)
from goclaw_py.core.ids import AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.messages import SUBAGENT, InboundMessage, Sender, Target
from goclaw_py.core.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.session_keys import announcement_id, child_session, first_run, peer_of
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_run_id
from goclaw_py.records import (
    InterruptedSubagent,
    NewInbox,
    NewRun,
    RunEnd,
    RunStartResult,
    SubagentTask,
)
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.agent_executor import AgentExecutor, AgentTask
from goclaw_py.runs.agent_loop import TextPart
from goclaw_py.runs.approval_port import ApprovalChat, Ask, Questions
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.runs.events.broker import RunEventBroker, ended_elsewhere
from goclaw_py.runs.run_persistence import stored_or_logged
from goclaw_py.runs.run_recorder import RunRecorder, without_success
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import Request
from goclaw_py.scheduler.views import RunState

log = logging.getLogger(__name__)

_LANES: Mapping[Trigger, LaneName] = {
    Trigger.SUBAGENT: LaneName("subagent"),
    Trigger.DELEGATE: LaneName("delegate"),
}

_UNTOLD = (Outcome.CANCELLED, Outcome.REJECTED, Outcome.INTERRUPTED)
"""Ends of a background subagent that are not announced; after the last one it continues."""

Deliver = Callable[[Sequence[NewInbox]], Awaitable[Sequence[RunId]]]
"""Stores messages that no person sent in the inbox; returns the runs that will answer them."""


@dataclass(frozen=True, slots=True)
class ParentRun:
    """The run that starts children.

    Args:
        payer: The session whose daily budget they use.
        chat: The target of results that the parent does not wait for; None: there is none.
        sender: The person who requested the run, "" if there is none.
        asks: How people are asked about tool calls; None: no questions are asked.
    """

    run_id: RunId
    agent: AgentName
    payer: SessionKey
    chat: Target | None
    sender: str = ""
    asks: ApprovalChat | None = None


@dataclass(slots=True, eq=False)
class Child:
    """A run requested by another run."""

    run: NewRun
    prompt: str
    asker: ParentRun
    done: asyncio.Future[ChildResult]
    beginning: asyncio.Task[RunStartResult] | None = None
    """The task that stores its start."""
    progress: RunRecorder = field(default_factory=RunRecorder)
    is_silenced: bool = False
    """A stop of everything came: its result begins no turn, even if it has ended before."""

    @property
    def id(self) -> RunId:
        """The id of its run."""
        return self.run.id

    @property
    def asks(self) -> ApprovalChat | None:
        """How it asks people: only if it can be continued."""
        return self.asker.asks if self.run.call_key or self.run.task is not None else None


@dataclass(frozen=True, slots=True)
class ChildResult:
    """The end of a child; ``text`` is its reply, or why there is none.

    ``waits``: it needs the answer of a person, and continues when its call is repeated.
    """

    outcome: Outcome
    text: str
    waits: bool = False


class ChildRuns:
    """The run handler for child runs.

    Args:
        deliver: Stores results of background subagents as messages of their chats.
        ask: Asks people about tool calls.
        run_timeout_s: The time limit of a child in seconds.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        *,
        dispatcher: Dispatcher,
        agent_executor: AgentExecutor,
        budget_tracker: BudgetTracker,
        feed: RunEventBroker,
        deliver: Deliver,
        ask: Ask,
        run_timeout_s: float | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._budget_tracker = budget_tracker
        self._feed = feed
        self._run_timeout_s = run_timeout_s
        self._dispatcher = dispatcher
        self._agent_executor = agent_executor
        self._deliver = deliver
        self._ask = ask
        self._children: dict[RunId, Child] = {}

    def of(self, asker: ParentRun) -> RunChildren:
        """Return the interface through which a run starts children."""
        return RunChildren(self, asker)

    def owns(self, run_id: RunId) -> bool:
        """Return whether it is a child without a stored end."""
        return run_id in self._children

    def progress(self, run_id: RunId) -> RunRecorder | None:
        """Return the recorder of a child."""
        child = self._children.get(run_id)
        return None if child is None else child.progress

    def in_background(self, session: SessionKey) -> list[RunId]:
        """Return the background subagents that a session pays for, the first one first."""
        children = self._children.values()
        return [c.id for c in children if c.run.task is not None and c.asker.payer == session]

    def tasks(self, session: SessionKey) -> dict[RunId, str]:
        """Return the children that a session pays for, with what each does, for people."""
        mine = (child for child in self._children.values() if child.asker.payer == session)
        return {
            child.id: child.run.task.label if child.run.task else child.prompt for child in mine
        }

    def silence(self, session: SessionKey, by: str | None) -> list[RunId]:
        """Let no result of background subagents come into a session any more; return their runs.

        ``by`` limits it to those that this sender has requested.
        """
        mine = self.in_background(session)
        mine = [run_id for run_id in mine if by in (None, self._children[run_id].asker.sender)]
        for run_id in mine:
            self._children[run_id].is_silenced = True
        return mine

    def payer(self, run_id: RunId) -> SessionKey | None:
        """Return the session to which a child is charged, None for other runs."""
        child = self._children.get(run_id)
        return None if child is None else child.asker.payer

    # ------------------------------------------------------------------ asking

    async def ask(
        self,
        asker: ParentRun,
        trigger: Trigger,
        agent: AgentName,
        prompt: str,
        *,
        label: str | None = None,
        key: str = "",
    ) -> Child:
        """Submit a child; with a ``label`` its parent does not wait. Raises ``ToolFailed``."""
        run_id, now = new_run_id(self._clock), self._clock.now()
        run = NewRun(
            id=run_id,
            session=child_session(agent, trigger, run_id),
            agent=agent,
            trigger=trigger,
            lane=_LANES[trigger],
            inbox=(),
            target=None if label is None else asker.chat,
            started_at=now,
            parent=asker.run_id,
            payer=asker.payer,
            submitted_at=now,
            call_key=key,
            task=None if label is None else SubagentTask(prompt, label, asker.sender),
        )
        done: asyncio.Future[ChildResult] = asyncio.get_running_loop().create_future()
        awaited = label is None
        child = Child(run, prompt, asker, done)
        self._budget_tracker.bind(run_id, asker.run_id)
        self._submit(child, parent=asker.run_id, awaited=awaited)
        if self._dispatcher.state(run_id) is RunState.DONE:
            raise ToolFailed((await done).text)
        if not awaited:
            # Before its start is reported, so that it is known after a crash.
            try:
                await asyncio.shield(self._begin(child))
            except StoreError as error:
                raise ToolFailed("the request could not be stored; try again later") from error
        return child

    async def resume(self, found: Sequence[InterruptedSubagent]) -> None:
        """Continue interrupted background subagents. Raises ``StoreUnavailable``.

        One that crashes interrupt repeatedly is announced as lost.
        """
        for one in found:
            run, target = one.run, one.run.target
            if target is None:
                continue
            sender = one.task.sender
            asks = ApprovalChat(
                target, peer_of(run.payer), sender, run.payer, request=one.task.prompt
            )
            asker = ParentRun(run.parent or run.id, run.agent, run.payer, target, sender, asks)
            if one.crashes >= MAX_ATTEMPTS:
                text = texts.subagent_lost(one.task.label, one.calls)
                await self._deliver([self._message(run.session, asker, target, text)])
            elif not self._dispatcher.has_session(run.session):
                await self._resume(one, asker)

    async def _resume(self, one: InterruptedSubagent, asker: ParentRun) -> None:
        run, now = one.run, self._clock.now()
        again = NewRun(
            id=new_run_id(self._clock),
            session=run.session,
            agent=run.agent,
            trigger=run.trigger,
            lane=run.lane,
            inbox=(),
            target=run.target,
            started_at=now,
            parent=run.parent,
            payer=run.payer,
            submitted_at=now,
            task=one.task,
        )
        child = Child(again, one.task.prompt, asker, asyncio.get_running_loop().create_future())
        try:
            # Before it is submitted: of several nodes one continues it.
            await asyncio.shield(self._begin(child))
        except Fenced:
            return
        log.info("subagent_continued", extra={"run_id": again.id, "session": again.session})
        # Its parent may run, but under another id.
        self._submit(child)

    def _submit(self, child: Child, *, parent: RunId | None = None, awaited: bool = False) -> None:
        run = child.run
        self._children[run.id] = child
        self._feed.on_requested(run)
        self._dispatcher.submit(
            Request(
                id=run.id,
                session=run.session,
                lane=run.lane,
                agent=run.agent,
                run_timeout_s=self._run_timeout_s,
                parent=parent,
                awaited=awaited,
                senders={child.asker.sender},
            )
        )

    async def spawned(self, key: str) -> RunId | None:
        """Return the background subagent that a tool call has started before, if any."""
        return await self._store.retried.spawned(key)

    def _begin(self, child: Child) -> asyncio.Task[RunStartResult]:
        """Store its start, once."""
        if child.beginning is None:
            node = self._store.node()  # as another one this process has no part in it
            begin = self._store.retried.begin_run(child.run, node=node)
            child.beginning = asyncio.ensure_future(begin)
        return child.beginning

    async def wait(self, child: Child) -> str:
        """Return the reply of a child. Raises ``ToolFailed`` if it has none."""
        try:
            done = await asyncio.shield(child.done)
        except asyncio.CancelledError:
            # Its parent no longer waits: it may have failed without being stopped.
            self._dispatcher.stop_one(child.id)
            raise
        if done.waits:
            raise ApprovalNeeded
        if done.outcome is not Outcome.COMPLETED:
            raise ToolFailed(done.text)
        return done.text

    # ------------------------------------------------------------------ the dispatcher's host

    async def work(self, run_id: RunId) -> None:
        """Run the agent loop."""
        child = self._children[run_id]
        run = child.run
        self._feed.started(run)
        child.progress.begun = await asyncio.shield(self._begin(child))
        job = AgentTask(
            run=run,
            parts=(TextPart(child.prompt),),
            # In a conversation that ends with its run nothing can be announced later.
            children=self.of(
                ParentRun(run_id, run.agent, child.asker.payer, chat=None, asks=child.asks)
            ),
            system=(texts.child_task(run.trigger, child.asker.agent),),
            can_ask=child.asks is not None,
        )
        await self._agent_executor.work(job, child.progress, lambda _: None)

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        """Store how a child ended, and report it to its parent or chat."""
        child = self._children[ended.run_id]
        progress = child.progress
        ended, error = progress.judge(ended, error)
        if ended.reason is Reason.DRAINING:  # it was about to be continued
            ended = Ending(ended.run_id, Outcome.INTERRUPTED, Reason.SHUTDOWN)
        done = ChildResult(Outcome.FAILED, texts.FAILED)
        facts = {"run_id": child.id, "session": child.run.session, "parent": child.asker.run_id}
        try:
            try:
                done = _done(child, ended, error)
                await self._store_end(child, ended, error, done, facts)
            except (Fenced, RunNotStarted):
                raise
            except Exception as bug:
                # A boundary: what met the bug may be what the agent gave back.
                log.exception("run_end_not_stored", extra=facts)
                done = ChildResult(Outcome.FAILED, texts.FAILED)
                ended, now = without_success(ended), self._clock.now()
                bare = progress.bare_end(ended, bug, now, prompt=child.prompt)
                if child.beginning is not None:
                    await stored_or_logged(lambda: self._finish(bare), facts)
        except RunNotStarted:
            pass
        except Fenced:
            log.warning("session_taken_over", extra=facts)
            ended = ended_elsewhere(child.id)
        finally:
            if not child.done.done():
                child.done.set_result(done)
            self._feed.ended(child.run, ended, progress)
            self._agent_executor.ended(child.run, ended, progress, error)
            self._budget_tracker.close(child.id)
            del self._children[child.id]

    def joined(self, request_id: RunId, into: RunId) -> None:
        """Never called: children do not join other runs."""
        raise AssertionError(f"child {request_id} joined {into}")

    def restarted(self, run_id: RunId, into: RunId) -> None:
        """Never called: children do not join other runs."""
        raise AssertionError(f"run {run_id} restarted in {into}")

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """Never called: there are no messages in the session of a child."""
        raise AssertionError(f"{request_id} was offered to child {run_id}")

    # ------------------------------------------------------------------ telling

    async def _announce(
        self, child: Child, ended: Ending, done: ChildResult, facts: Mapping[str, object]
    ) -> None:
        run = child.run
        # A stopped run is not announced; it may have ignored the stop for long.
        if child.is_silenced or ended.reason in (Reason.STOPPED, Reason.STOPPED_ALL):
            return
        if run.task is None or run.target is None or done.outcome in _UNTOLD:
            return
        text = texts.subagent_result(run.task.label, done.outcome, done.text)
        row = self._message(run.session, child.asker, run.target, text)

        async def deliver() -> None:
            # Silenced before, or while its message was committed.
            runs = () if child.is_silenced else await self._deliver([row])
            for run_id in runs if child.is_silenced else ():
                self._dispatcher.stop_one(run_id)

        await stored_or_logged(deliver, facts)

    def _message(
        self, session: SessionKey, asker: ParentRun, target: Target, text: str
    ) -> NewInbox:
        """Return the message with a subagent's result for its parent's chat."""
        message = InboundMessage(
            external_id=announcement_id(first_run(session)),
            target=target,
            peer=peer_of(asker.payer),
            sender=Sender(SUBAGENT, "Subagent"),
            text=text,
            sent_at=self._clock.now(),
            source=SUBAGENT,
            asker=asker.sender,
        )
        return NewInbox(message, asker.payer, asker.agent)

    async def _store_end(
        self,
        child: Child,
        ended: Ending,
        error: BaseException | None,
        done: ChildResult,
        facts: Mapping[str, object],
    ) -> None:
        """Announce and store the end of a child."""
        progress, questions = child.progress, Questions()
        if isinstance(error, ApprovalNeeded) and ended.reason is Reason.APPROVAL:
            questions, error = await self._ask(error, child.run.agent, child.asks), None
        if error is not None:
            log.warning("run_failed", extra={**facts, "error": progress.stored_text(error)})
        now = self._clock.now()
        end = progress.run_end(ended, error, now, prompt=child.prompt, asks=questions)
        await self._announce(child, ended, done, facts)
        if child.beginning is not None:
            await asyncio.shield(child.beginning)
            await self._finish(end)

    async def _finish(self, end: RunEnd) -> None:
        store, session = self._store, {self._children[end.id].run.session}
        await retry_until_available(lambda: store.finish_run(end, node=store.node()))
        await retry_until_available(lambda: store.release_sessions(store.node(), session))


class RunChildren:
    """Implements ``runs.toolbox.Children`` for one run."""

    def __init__(self, runs: ChildRuns, asker: ParentRun) -> None:
        self._runs = runs
        self._asker = asker

    async def subagent(self, prompt: str, key: str = "") -> str:
        """Start a subagent and wait for it."""
        asker, trigger = self._asker, Trigger.SUBAGENT
        child = await self._runs.ask(asker, trigger, asker.agent, prompt, key=key)
        return await self._runs.wait(child)

    async def spawn(self, prompt: str, label: str, key: str = "") -> RunId | None:
        """Start a subagent whose result comes into the chat."""
        asker, trigger = self._asker, Trigger.SUBAGENT
        if asker.chat is None:
            return None
        if key and (earlier := await self._runs.spawned(key)) is not None:
            return earlier  # the call is repeated: that one continues by itself
        child = await self._runs.ask(asker, trigger, asker.agent, prompt, label=label, key=key)
        return child.id

    async def delegate(self, agent: AgentName, prompt: str, key: str = "") -> str:
        """Start a run of another agent and wait for it."""
        child = await self._runs.ask(self._asker, Trigger.DELEGATE, agent, prompt, key=key)
        return await self._runs.wait(child)


def _done(child: Child, ended: Ending, error: BaseException | None) -> ChildResult:
    result = child.progress.result
    if ended.reason is Reason.APPROVAL:
        return ChildResult(ended.outcome, "", waits=True)
    if ended.outcome is Outcome.COMPLETED and result is not None:
        files = [file.path for file in result.files]
        return ChildResult(ended.outcome, texts.with_files(result.text, files))
    friendly = error.friendly if isinstance(error, AgentError) else ""
    return ChildResult(ended.outcome, texts.child_failed(ended, friendly, child.progress.text))
