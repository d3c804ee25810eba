"""Heartbeat runs as agent runs (SPEC HB-5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.session_keys import heartbeat_session
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_run_id
from goclaw_py.records import NewRun
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.agent_executor import AgentTask
from goclaw_py.runs.agent_loop import TextPart
from goclaw_py.runs.subagents import ParentRun
from goclaw_py.schedule.agent_runs import ScheduledAgentRuns, ScheduledRunServices
from goclaw_py.schedule.heartbeat import texts
from goclaw_py.schedule.heartbeat.alerts import Alerts
from goclaw_py.schedule.heartbeat.execution import HeartbeatExecution
from goclaw_py.schedule.heartbeat.executions import HeartbeatExecutions
from goclaw_py.schedule.heartbeat.models import HeartbeatClaim, HeartbeatRunEnd
from goclaw_py.schedule.heartbeat.preconditions import Checks
from goclaw_py.scheduler.models import QueuePolicy


class HeartbeatRunExecutor(ScheduledAgentRuns[HeartbeatExecution]):
    """Asks agents.

    Args:
        freed: Called with each heartbeat run that has ended.
        on_end: Called with each stored end.
        run_timeout_s: The timeout of a run; None: none.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        shared: ScheduledRunServices,
        *,
        checks: Checks,
        alerts: Alerts,
        freed: Callable[[HeartbeatClaim], None],
        on_end: Callable[[HeartbeatRunEnd], None],
        run_timeout_s: float | None,
    ) -> None:
        self.heartbeat_runs = HeartbeatExecutions(
            store,
            clock,
            checks,
            ask=self.ask,
            alerts=alerts,
            freed=freed,
            on_end=on_end,
            meter=shared.meter,
        )
        super().__init__(store, clock, shared, self.heartbeat_runs)
        self._run_timeout_s = run_timeout_s

    def ask(self, execution: HeartbeatExecution) -> None:
        """Start an attempt."""
        agent, run_id, now = execution.claimed.agent, new_run_id(self._clock), self._clock.now()
        run = NewRun(
            id=run_id,
            session=heartbeat_session(agent, run_id),
            agent=agent,
            trigger=Trigger.HEARTBEAT,
            lane=execution.policy.lane,
            inbox=(),
            target=None,
            started_at=now,
            submitted_at=now,
            heartbeat_run=execution.id,
        )
        execution.done = None
        self.submit(execution, run, QueuePolicy(), self._run_timeout_s)

    def prompt(self, execution: HeartbeatExecution) -> str:
        assert execution.go is not None, "it was decided that it comes to its agent"
        return texts.heartbeat_prompt(
            execution.go.due.text, execution.go.events, execution.policy.zone
        )

    def task(self, execution: HeartbeatExecution, run: NewRun) -> AgentTask:
        budget = execution.budget
        if budget is not None and execution.usage is not None:
            # What an attempt may use, after those before it.
            budget = budget.less(execution.usage)
        return AgentTask(
            run=run,
            parts=(TextPart(self.prompt(execution)),),
            # It could not be announced later: its session is not a chat.
            children=self._shared.children.of(ParentRun(run.id, run.agent, run.session, None)),
            system=(texts.heartbeat_guide(self._clock.now(), execution.policy.zone),),
            budget=budget,
            model=execution.policy.model,
            heartbeat_run_done=partial(_note_done, execution),
        )


def _note_done(execution: HeartbeatExecution, notify: bool, text: str) -> None:  # noqa: FBT001 - as ``Here`` calls it
    """Store what the agent reports about its heartbeat; the last report counts."""
    execution.done = notify, text
