"""Executes a run of an agent, from its request to its result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from goclaw_py.core.budget import Budget, BudgetScope, Limit
from goclaw_py.core.concurrency import in_thread_if_long
from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import MAIN_LANE, AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import PeerKind, Role, Target
from goclaw_py.core.metrics import NO_METER, MetricsRecorder
from goclaw_py.core.outcomes import Ending, Trigger
from goclaw_py.core.run_events import RunNote, RunNoted, TextDelta, Usage
from goclaw_py.core.run_steps import NewMessagesStep
from goclaw_py.core.storable import storable
from goclaw_py.core.text import first_words, split_half
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.values import value
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.records import NewRun
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.agent_loop import (
    AgentLoop,
    AgentResult,
    LoopEvent,
    MessagePart,
    ModelStep,
    RequestSent,
    RunRequest,
    TakeMessages,
    TextPart,
    no_messages,
)
from goclaw_py.runs.budget_tracker import BudgetAccount, BudgetTracker, over
from goclaw_py.runs.events.broker import RunEventBroker
from goclaw_py.runs.instructions import Instructions
from goclaw_py.runs.replies.wait_line import HeardEvent
from goclaw_py.runs.run_journal import Journal, interrupted_calls_prompt
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.thoughts import ThoughtFilter, separate
from goclaw_py.runs.tool_services import SessionFacts, ToolMessenger
from goclaw_py.runs.toolbox import Children, Toolbox, ToolboxFactory, ToolContext
from goclaw_py.runs.tracing_port import NO_SPANS, Tracer
from goclaw_py.runs.turn import Turn

if TYPE_CHECKING:
    # Their modules know what is stored, which knows agents, which know this.
    from goclaw_py.operations.heartbeats.operations import HeartbeatService
    from goclaw_py.operations.jobs.operations import JobService

_PROMPT_CHARS = 120
"""How much of its prompt a run shows to operators."""

_MOST_USED = 10**12
"""The most tokens or dollars of a run that can be."""

MOST_CHARS = 1_000_000
"""The length of a reply; formatting a longer one would take minutes."""

_ASK_S = 0.5
"""How often a run checks whether its node's lease is valid again, in seconds."""

Hear = Callable[[HeardEvent], None]
"""Receives the events of an agent loop, while its run may speak."""


@value(frozen=True, slots=True)
class AgentTask:
    """The task of a run.

    Args:
        target: The chat that it answers, None if there is none.
        system: Additions to the agent's prompt and instructions.
        budget: Its budget, in place of that of the settings.
        model: The model to use in place of the agent's own; "" is the agent's own.
        loop: The loop to use in place of the agent's own.
        jobs: The job service for its tools, None if it may not use it.
        asker: The requester for ``jobs``.
        heartbeat_run_done: See ``ToolContext``.
        can_ask: Whether it may wait for a person, and be continued by another run.
    """

    run: NewRun
    parts: tuple[MessagePart, ...]
    children: Children
    target: Target | None = None
    system: tuple[str, ...] = ()
    budget: Budget | None = None
    model: str = ""
    loop: AgentLoop | None = None
    jobs: JobService | None = None
    asker: Requester | None = None
    take_messages: TakeMessages = no_messages
    heartbeat_run_done: Callable[[bool, str], None] | None = None
    can_ask: bool = False


@dataclass(slots=True)
class _ReplyLimit:
    """Ends the work of an agent that says too much, whatever kind of agent it is."""

    clock: asyncio.Timeout
    chars: int = 0

    def has_room(self, text: str) -> bool:
        """Count more text; return whether it is still part of the reply."""
        self.chars += len(text)
        if self.chars <= MOST_CHARS:
            return True
        with suppress(RuntimeError):  # the agent has ended already
            self.clock.reschedule(0)
        return False


@dataclass(kw_only=True, eq=False)
class AgentExecutor:
    """Builds the request of a run and records the events of its agent loop.

    Args:
        workspace: Returns the folder of an agent, which exists. Raises ``OSError``.
        may_speak: Returns whether a run is running and not stopped.
        on_success: Called after a run with the agent's own model, unless it answers messages, with
            the time of the loop at which the agent was called.
        heartbeats: None if there are no heartbeats.
        hide: Masks secrets in a text.
        is_owner: Returns whether a person (``person_at``) is an owner.
    """

    store: BoundStore
    clock: Clock
    agents: Mapping[AgentName, AgentLoop]
    tool_factory: ToolboxFactory
    instructions: Instructions
    budget_tracker: BudgetTracker
    feed: RunEventBroker
    mail: ToolMessenger
    pins: Callable[[NewRun], SessionFacts]
    workspace: Callable[[AgentName], Path]
    may_speak: Callable[[RunId], bool]
    on_success: Callable[[AgentName, SessionKey, float], None]
    spans: Tracer = NO_SPANS
    heartbeats: HeartbeatService | None = None
    meter: MetricsRecorder = NO_METER
    hide: Callable[[str], str] = str
    is_owner: Callable[[str], bool] = lambda _: False
    estimated: dict[AgentName, str] = field(default_factory=dict, init=False)
    """Agents whose last run was not told its usage by its provider, with the model."""

    async def work(
        self,
        job: AgentTask,
        progress: RunRecorder,
        on_event: Hear,
        until_due: Callable[[], Awaitable[None]] | None = None,
    ) -> AgentResult:
        """Run the agent until its reply is complete; ``progress`` has its start.

        ``until_due`` returns when the agent may be called: what does not depend on the time is
        prepared before, because hundreds of runs may be due at once.

        Raises ``BudgetReached`` and the errors of the agent loop. The budget account of the run
        stays open: close it when the end of the run is stored.
        """
        run = job.run
        progress.hide = self.hide
        said = (part.text for part in job.parts if isinstance(part, TextPart))
        progress.prompt = prompt_words(next(said, ""))
        workspace = self.workspace(run.agent)
        tools = self.tool_factory.toolbox(self._context(job, progress, workspace))
        system = (*await self.instructions.read(run.agent), *job.system)
        if until_due is not None:
            await until_due()
        with self.spans.work(run):
            return await self._call(job, progress, on_event, (workspace, tools, system))

    def ended(
        self, run: NewRun | Turn, ended: Ending, progress: RunRecorder, error: BaseException | None
    ) -> None:
        """Handle that the end of a run is stored, or never will be."""
        self.spans.ended(ended, progress, error)
        if isinstance(run, Turn):
            self.meter.run_ended(MAIN_LANE, Trigger.CHAT, ended.outcome)
        else:
            self.meter.run_ended(run.lane, run.trigger, ended.outcome)
        if RunNote.USAGE_ESTIMATED in progress.notes:
            self.estimated[run.agent] = progress.model
        elif progress.usage is not None and progress.usage.requests:
            self.estimated.pop(run.agent, None)
        if (usage := progress.usage) is not None:
            self.meter.used(run.agent, usage)

    async def _call(
        self,
        job: AgentTask,
        progress: RunRecorder,
        on_event: Hear,
        prepared: tuple[Path, Toolbox, tuple[str, ...]],
    ) -> AgentResult:
        """Call the agent loop with its workspace, its tools and its system texts."""
        run = job.run
        workspace, tools, system = prepared
        # Not earlier: daily budgets are those of the day on which it is called.
        budget = await self._open_budget(job, progress)
        journal = Journal(self.store, run.id, await self._live_node(), progress)
        request = RunRequest(
            run_id=run.id,
            session=run.session,
            agent=run.agent,
            trigger=run.trigger,
            parts=job.parts,
            history=progress.begun.history,
            system=system,
            take_messages=job.take_messages,
            workspace=workspace,
            summary=progress.begun.summary,
            pinned=progress.begun.pinned,
            tools=tools,
            model=job.model,
            budget=budget,
            recorded=journal.recorded,
            call_key=journal.call_key,
            steps=progress.begun.steps or (),
            interrupted=interrupted_calls_prompt(progress.begun.cut_calls),
            can_ask=job.can_ask,
            is_granted=partial(self._is_granted, run),
        )
        limit = _ReplyLimit(asyncio.timeout(budget.seconds))
        emit = partial(self._on_event, run, progress, journal, on_event, limit)
        asked_at = asyncio.get_running_loop().time()
        try:
            work = (job.loop or self.agents[run.agent]).run(request, emit)
            result = await self._within(budget, limit, work)
            if (rest := progress.thoughts.end()) and self.may_speak(run.id):
                self._publish(run, progress, journal, on_event, TextDelta(rest))
        finally:
            journal.close()
        result = await in_thread_if_long(len(result.text), partial(_readable, result))
        if (usage := _possible(result.usage)) is not result.usage:
            result = replace(result, usage=usage)
        if progress.files:
            result = replace(result, files=(*result.files, *progress.files))
        progress.result = result
        self.budget_tracker.note(run.id, result.usage, done=True)
        if run.trigger is not Trigger.CHAT and job.loop is None and not job.model:
            self.on_success(run.agent, run.session, asked_at)
        return result

    def _context(self, job: AgentTask, progress: RunRecorder, workspace: Path) -> ToolContext:
        run = job.run
        return ToolContext(
            run_id=run.id,
            session=run.session,
            agent=run.agent,
            trigger=run.trigger,
            target=job.target,
            workspace=workspace,
            children=job.children,
            post=self.mail.of(run),
            pins=self.pins(run),
            attach=progress.files.append,
            jobs=job.jobs,
            asker=job.asker,
            heartbeats=self.heartbeats,
            may_change_checklist=self._may_change_checklist(job),
            heartbeat_run_done=job.heartbeat_run_done,
        )

    def _may_change_checklist(self, job: AgentTask) -> bool:
        """Return whether a run works for owners alone (SPEC HB-3).

        In a group everybody's words are in the conversation, and a child run has no requester.
        """
        if job.heartbeat_run_done is not None:
            return True
        asker = job.asker
        if asker is None or not asker.creator:
            return asker is not None  # the job of an operator
        return asker.peer is PeerKind.DIRECT and self.is_owner(asker.creator)

    async def _is_granted(self, run: NewRun, tool: str) -> bool:
        session = run.payer or run.session
        return await self.store.retried.is_granted(run.agent, session, tool)

    async def _open_budget(self, job: AgentTask, progress: RunRecorder) -> Budget:
        run = job.run
        payer = BudgetAccount(run.payer or run.session, run.agent)
        before = progress.begun.uncounted
        return await self.budget_tracker.open(run.id, payer, budget=job.budget, before=before)

    async def _live_node(self) -> NodeId:
        """Wait until this node's lease is valid, and return it.

        If other nodes have taken over its runs, the wait is cancelled.
        """
        while (node := self.store.live()) is None:  # noqa: ASYNC110 - time ends it, and renewals do
            await asyncio.sleep(_ASK_S)
        return node

    async def _within(
        self, budget: Budget, limit: _ReplyLimit, work: Awaitable[AgentResult]
    ) -> AgentResult:
        try:
            async with limit.clock:
                result = await work
        except TimeoutError:
            if limit.chars > MOST_CHARS:
                raise _too_long() from None
            if limit.clock.expired():
                raise over(BudgetScope.RUN, Limit.SECONDS, budget) from None
            raise
        _check_types(result.text, result.usage)
        if max(limit.chars, len(result.text)) > MOST_CHARS:
            raise _too_long()
        return result

    def _on_event(
        self,
        run: NewRun,
        progress: RunRecorder,
        journal: Journal,
        on_event: Hear,
        limit: _ReplyLimit,
        event: LoopEvent,
    ) -> None:
        # A run that swallows its cancellation must not speak afterwards.
        if not self.may_speak(run.id):
            return
        # Whatever an agent, its model and its tools say comes in here.
        if isinstance(event, TextDelta):
            text = event.text
            if not limit.has_room(text):
                return
            if progress.half or not text.isascii():
                text, progress.half = split_half(progress.half + text)
            if not (text := progress.thoughts.feed(text)):
                return
            event = TextDelta(text)
        elif isinstance(event, RequestSent):
            # A block of thoughts ends with its response, also if it has no closing tag.
            rest, progress.thoughts = progress.thoughts.end(), ThoughtFilter()
            if rest:
                self._publish(run, progress, journal, on_event, TextDelta(rest))
        elif not isinstance(event, ModelStep):
            event = storable(event)
        elif (usage := _possible(event.usage)) is not event.usage:
            event = replace(event, usage=usage)
        self._publish(run, progress, journal, on_event, event)

    def _publish(
        self, run: NewRun, progress: RunRecorder, journal: Journal, on_event: Hear, event: LoopEvent
    ) -> None:
        progress.on_event(event, self.clock)
        journal.on_event(event)
        if self.feed.is_watched:
            self.feed.on_event(run, event)
        self.spans.on_event(run.id, event)
        if isinstance(event, ModelStep):
            self.budget_tracker.note(run.id, event.usage, done=event.done)
        elif not isinstance(event, RunNoted | NewMessagesStep):
            on_event(event)


def prompt_words(text: str) -> str:
    """Return how a prompt begins, as operators see it."""
    return first_words(text[: 4 * _PROMPT_CHARS], _PROMPT_CHARS)


def _check_types(text: object, usage: object) -> None:
    """Raise ``TypeError`` for a result of somebody else's code on which nothing can be built."""
    if not (isinstance(text, str) and isinstance(usage, Usage)):
        raise TypeError(f"the agent gave back {type(text)} as text and {type(usage)} as usage")


def _possible(usage: Usage) -> Usage:
    """Return usage with zero in place of impossible numbers, which somebody else's code may report.

    They could not be stored, and the answer would be lost for them.
    """
    counts = (usage.requests, usage.input_tokens, usage.output_tokens, usage.cached_tokens)
    cost = usage.cost_usd
    is_cost = isinstance(cost, Decimal) and cost.is_finite() and 0 <= cost <= _MOST_USED
    if {*map(type, counts)} == {int} and min(counts) >= 0 and max(counts) <= _MOST_USED:
        return usage if is_cost or cost is None else replace(usage, cost_usd=None)
    asked, read, said, cached = [
        count if type(count) is int and 0 <= count <= _MOST_USED else 0 for count in counts
    ]
    return Usage(asked, read, said, cached, cost if is_cost else None)


def _too_long() -> AgentError:
    return AgentError(
        "The agent said far too much, so I stopped it.",
        f"a reply of more than {MOST_CHARS:,} characters",
    )


def _readable(result: AgentResult) -> AgentResult:
    """Return a result without thoughts and halves of surrogate pairs in its text.

    The entries of model agents have their thoughts as parts of their own.
    """
    text = separate(storable(result.text)).text
    if text is result.text:
        return result
    entries = tuple(
        replace(entry, text=separate(entry.text).text) if entry.role is Role.ASSISTANT else entry
        for entry in result.entries
    )
    return replace(result, text=text, entries=entries)
