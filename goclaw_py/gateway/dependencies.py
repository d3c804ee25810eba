"""What a gateway is built of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from goclaw_py.chat.channel import Channel
from goclaw_py.core.ids import AgentName
from goclaw_py.core.metrics import NO_METER, MetricsRecorder
from goclaw_py.records import Place as Account
from goclaw_py.runs.agent_loop import AgentLoop
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.runs.toolbox import ToolboxFactory
from goclaw_py.runs.tracing_port import NO_SPANS, Tracer
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.schedule.jobs.module import JobSetup


@dataclass(frozen=True, slots=True)
class GatewayDependencies:
    """The dependencies of a gateway; ``workspaces`` are the folders of the agents.

    Args:
        instructions: The instruction files of each agent; other agents may have the default file.
        limits: The budgets of each agent.
        models: The language model of each agent that has one, for people.
        outage_hold_s: How long messages wait for a provider that is down.
        max_chained_turns: How many turns in a row may begin without a person; 0: no limit.
        run_timeout_s: The timeout of a subagent or a delegate.
        hide: Masks secrets in errors of agents.
    """

    channels: Mapping[Account, Channel]
    rules: Mapping[Account, ChatRules]
    agents: Mapping[AgentName, AgentLoop]
    workspaces: Mapping[AgentName, Path]
    context_windows: Mapping[AgentName, int]
    tool_factory: ToolboxFactory
    instructions: Mapping[AgentName, tuple[str, ...]] = field(default_factory=dict)
    limits: Mapping[AgentName, Limits] = field(default_factory=dict)
    models: Mapping[AgentName, str] = field(default_factory=dict)
    outage_hold_s: float = 1800.0
    max_chained_turns: int = 10
    run_timeout_s: float | None = None
    spans: Tracer = NO_SPANS
    meter: MetricsRecorder = NO_METER
    jobs: JobSetup = field(default_factory=JobSetup)
    heartbeats: HeartbeatSetup = field(default_factory=HeartbeatSetup)
    hide: Callable[[str], str] = str
