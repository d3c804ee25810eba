"""Executes stored runs again for debugging, without effects (SPEC OPS-8)."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import AgentError, NotFound, NotRewindable, ToolFailed
from goclaw_py.core.ids import AgentName, Owner, RunId
from goclaw_py.core.messages import OutFile, Target
from goclaw_py.core.run_events import NO_USAGE, ToolEnded, ToolStarted
from goclaw_py.core.run_steps import ResponseStep, RunStep, TakenStep
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.operations.jobs import JobService, Requester
from goclaw_py.records import RewindStore, StoredRun, StoredStep
from goclaw_py.runs.agent_executor import AgentExecutorDeps
from goclaw_py.runs.agent_loop import (
    LoopEvent,
    ModelStep,
    ReplayableLoop,
    ReplayMode,
    RunRequest,
    TextPart,
)
from goclaw_py.runs.budget_tracker import BudgetAccount
from goclaw_py.runs.step_views import RunReplay, StepView, step_view
from goclaw_py.runs.toolbox import Toolbox, ToolContext, ToolSpec


class RunReplayer:
    """Replays runs.

    Args:
        jobs: The job service of agents, None if they have none.
    """

    def __init__(
        self, use: AgentExecutorDeps, store: RewindStore, clock: Clock, jobs: JobService | None
    ) -> None:
        self._use = use
        self._store = store
        self._clock = clock
        self._jobs = jobs

    async def replay(self, run: StoredRun, *, from_step: int | None, dry_run: bool) -> RunReplay:
        """See ``Control.replay``."""
        stored = await self._store.run_steps(run.id)
        steps = _readable(run, stored)
        own = sum(one.run == run.id for one in stored)
        if from_step is not None and not 1 <= from_step <= own + 1:
            raise NotFound(f"run {run.id} has no step {from_step}; it has steps 1 to {own}")
        kept = steps if from_step is None else _before(steps, len(steps) - own + from_step - 1)
        loop = self._loop(run)
        basis = await self._store.run_basis(run.id)
        if basis.prompt is None:
            raise NotRewindable(
                f"the prompt of run {run.id} is not stored, so it cannot be replayed"
            )
        plan = RunReplay(
            run.id,
            tuple(step_view(number, step) for number, step in enumerate(kept, 1)),
            requests_model=from_step is not None,
            dry_run=dry_run,
        )
        if dry_run:
            return plan
        here = self._context(run)
        request = RunRequest(
            run_id=run.id,
            session=run.session,
            agent=run.agent,
            trigger=run.trigger,
            parts=(TextPart(basis.prompt),),
            history=basis.history,
            workspace=here.workspace,
            summary=basis.summary,
            pinned=basis.pinned,
            tools=self._use.tool_factory.toolbox(here),
            budget=Budget(turns=len(steps) + 1),
            steps=tuple(kept),
        )
        answers = _Answers(steps)
        mode = ReplayMode(lambda box: _JournalTools(box, answers), from_step is not None)
        return await self._execute(run, loop, request, mode, plan)

    async def _execute(
        self,
        run: StoredRun,
        loop: ReplayableLoop,
        request: RunRequest,
        mode: ReplayMode,
        plan: RunReplay,
    ) -> RunReplay:
        heard, own_id = _Heard(request.steps), RunId(new_id(self._clock))
        tracker = self._use.budget_tracker
        text = error = ""
        try:
            request = replace(request, system=await self._use.instructions.read(run.agent))
            if mode.may_request:
                account = BudgetAccount(run.payer, run.agent)
                request = replace(request, budget=await tracker.open(own_id, account))
            text = (await loop.replay(request, heard, mode)).text
        except AgentError as failure:
            error = self._use.hide(str(failure))
        finally:
            tracker.close(own_id)
        return replace(
            plan,
            steps=tuple(heard.steps),
            new_from=heard.new_from,
            text=text,
            error=error,
            usage=heard.usage,
        )

    def _loop(self, run: StoredRun) -> ReplayableLoop:
        """Return the loop of a run's agent. Raises ``NotRewindable``."""
        if run.outcome is None:
            raise NotRewindable(
                f"run {run.id} is in progress; it can be replayed when it has ended"
            )
        loop = self._use.agents.get(run.agent)
        if loop is None:
            raise NotRewindable(f"agent {run.agent!r} of run {run.id} no longer exists")
        if not isinstance(loop, ReplayableLoop):
            raise NotRewindable(
                f"agent {run.agent!r} of run {run.id} is no language model, and only runs of "
                "language models can be replayed"
            )
        return loop

    def _context(self, run: StoredRun) -> ToolContext:
        """Return the context for the descriptions of tools, which are all that is used of them."""
        return ToolContext(
            run_id=run.id,
            session=run.session,
            agent=run.agent,
            trigger=run.trigger,
            target=run.target,
            workspace=self._use.workspace(run.agent),
            children=_NO_EFFECTS,
            post=_NO_EFFECTS,
            pins=_NO_EFFECTS,
            attach=_NO_EFFECTS.attach,
            jobs=None if run.target is None else self._jobs,
            asker=Requester(Owner(""), Maker.MODEL, run.agent, run.target),
            heartbeats=self._use.heartbeats,
        )


def _readable(run: StoredRun, stored: Sequence[StoredStep]) -> list[RunStep]:
    """Return the steps of a run. Raises ``NotRewindable`` if it cannot be replayed from them."""
    if not stored:
        raise NotRewindable(
            f"run {run.id} has no stored steps; only those of language models have, and not for "
            "longer than the run itself is kept"
        )
    for one in stored:
        if one.step is None:
            raise NotRewindable(
                f"step {one.number} of run {one.run} is damaged, or of another release"
            )
    steps = [one.step for one in stored if one.step is not None]
    if not isinstance(steps[0], ResponseStep):
        raise NotRewindable(f"run {run.id} was not that of a language model")
    return steps


def _before(steps: Sequence[RunStep], count: int) -> list[RunStep]:
    """Return the first steps, with the results of the calls in them."""
    kept = list(steps[:count])
    calls = {step.call_id for step in kept if isinstance(step, ToolStarted)}
    later = [step for step in steps[count:] if isinstance(step, ToolEnded)]
    return [*kept, *(step for step in later if step.call_id in calls)]


class _Answers:
    """The results of tool calls in a journal, by name and arguments, in order."""

    def __init__(self, steps: Sequence[RunStep]) -> None:
        self._results: defaultdict[tuple[str, str], deque[ToolEnded]] = defaultdict(deque)
        ended = {step.call_id: step for step in steps if isinstance(step, ToolEnded)}
        for step in steps:
            if isinstance(step, ToolStarted) and step.call_id in ended:
                key = step.name, _canonical(step.arguments)
                self._results[key].append(ended[step.call_id])

    def of(self, name: str, arguments: Mapping[str, object]) -> ToolEnded | None:
        """Return the next result; the last one is returned again."""
        results = self._results.get((name, _canonical(json.dumps(arguments))))
        if not results:
            return None
        return results.popleft() if len(results) > 1 else results[0]


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


class _JournalTools:
    """A toolbox whose calls are answered from a journal. No tool is ever called."""

    def __init__(self, box: Toolbox, answers: _Answers) -> None:
        self._box = box
        self._answers = answers

    @property
    def guidance(self) -> tuple[str, ...]:
        return self._box.guidance

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._box.specs

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        del key
        found = self._answers.of(name, arguments)
        if found is None:
            raise ToolFailed(
                "this call is not in the journal of the run, so it was not made (this is a replay)"
            )
        if not found.ok:
            raise ToolFailed(found.result)
        return found.result


class _Heard:
    """Collects the events of a replayed run as steps. Call it with each event.

    Args:
        stored: The steps that are replayed.
    """

    def __init__(self, stored: Sequence[RunStep]) -> None:
        self.steps: list[StepView] = []
        self.new_from: int | None = None
        self.usage = NO_USAGE
        self._ahead = deque(step for step in stored if isinstance(step, ResponseStep))
        self._has_begun = False

    def __call__(self, event: LoopEvent) -> None:
        match event:
            case ModelStep():
                self._hear_response(event)
            case ToolStarted() | ToolEnded() | TakenStep():
                self._add(event)
            case _:
                pass  # texts and summaries are in the responses

    def _hear_response(self, event: ModelStep) -> None:
        """Add a new response, or else the next stored one, after the summaries before it.

        The first event only reports that the run has begun.
        """
        if event.response is not None:
            self.usage = event.usage
            self.new_from = self.new_from or len(self.steps) + 1
            self._add(event.response)
        while self._has_begun and event.response is None and self._ahead:
            stored = self._ahead.popleft()
            self._add(stored)
            if not stored.is_summary:
                break
        self._has_begun = True

    def _add(self, step: RunStep) -> None:
        self.steps.append(step_view(len(self.steps) + 1, step))


class _NoEffects:
    """Stands for the services of tools: a replayed run uses only the descriptions of its tools."""

    async def subagent(self, prompt: str, key: str = "") -> str:
        raise self._refusal(prompt, key)

    async def spawn(self, prompt: str, label: str, key: str = "") -> RunId | None:
        raise self._refusal(prompt, label, key)

    async def delegate(self, agent: AgentName, prompt: str, key: str = "") -> str:
        raise self._refusal(agent, prompt, key)

    async def send(self, target: Target, text: str) -> None:
        raise self._refusal(target, text)

    async def change(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> tuple[str, ...]:
        raise self._refusal(change)

    def attach(self, file: OutFile) -> None:
        raise self._refusal(file)

    @staticmethod
    def _refusal(*given: object) -> ToolFailed:
        del given
        return ToolFailed("a replayed run has no effects")


_NO_EFFECTS: Final = _NoEffects()
