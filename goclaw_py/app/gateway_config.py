"""Create the dependencies of a gateway from settings and parts."""

from __future__ import annotations

import os

from goclaw_py.app.jobs import agent_limits
from goclaw_py.app.parts import Parts
from goclaw_py.common.redaction import Redactor
from goclaw_py.config.agents import DayBudget
from goclaw_py.config.models import Settings
from goclaw_py.config.secrets import known_secrets
from goclaw_py.gateway.container import GatewayDependencies
from goclaw_py.model.budget import Budget
from goclaw_py.model.ids import AgentName
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.scheduler.child_runs import NestingLimits
from goclaw_py.scheduler.scheduler import RunScheduler


def surroundings(settings: Settings, parts: Parts) -> GatewayDependencies:
    """Return the dependencies of a gateway."""
    agents = {AgentName(name): agent for name, agent in settings.agents.items()}
    return GatewayDependencies(
        channels=parts.channels,
        rules=parts.rules,
        agents=parts.agents,
        workspaces={name: settings.workspace(name) for name in agents},
        context_windows={name: agent.context_window for name, agent in agents.items()},
        toolmaker=parts.toolmaker,
        instructions={
            name: agent.instructions
            for name, agent in agents.items()
            if agent.instructions is not None
        },
        limits={
            name: Limits(
                run=_budget(agent.budget, agent.budget.time),
                session_day=_budget(agent.budget.session_day),
                agent_day=_budget(agent.budget.day),
            )
            for name, agent in agents.items()
        },
        outage_hold_s=settings.runs.outage_hold_s,
        run_timeout_s=settings.runs.timeout_s,
        hide=Redactor(known_secrets(settings, os.environ)),
    )


def _budget(section: DayBudget, seconds: float | None = None) -> Budget:
    return Budget(section.turns, section.tokens, section.usd, seconds)


def scheduler(settings: Settings) -> RunScheduler:
    """Create the run scheduler with the lanes of the settings."""
    return RunScheduler(
        settings.lane_sizes,
        agents=agent_limits(settings),
        cancel_grace_s=settings.runs.cancel_grace_s,
        nesting=NestingLimits(settings.runs.max_depth, settings.runs.max_children),
        shared=settings.shared_lanes,
    )
