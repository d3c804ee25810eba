"""Create the heartbeat configuration of a gateway from the settings."""

from __future__ import annotations

from goclaw_py.config.models import Settings
from goclaw_py.config.policies import heartbeat_policy, plans
from goclaw_py.heartbeat.module import HeartbeatSetup
from goclaw_py.model.ids import AgentName


def heartbeat_setup(settings: Settings) -> HeartbeatSetup:
    """Return what a gateway needs to run heartbeats."""
    names = [AgentName(name) for name in settings.agents]
    return HeartbeatSetup(
        policies={name: heartbeat_policy(settings, name) for name in names},
        plans={plan.agent: plan for plan in plans(settings)},
        workspaces={name: settings.workspace(name) for name in names},
        run_timeout_s=settings.runs.timeout_s,
    )
