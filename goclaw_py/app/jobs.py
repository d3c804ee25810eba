"""Create the job configuration of a gateway from the settings."""

from __future__ import annotations

import os

from goclaw_py.agents import program_loop
from goclaw_py.app.parts import CONSOLE
from goclaw_py.app.work import build_sources
from goclaw_py.config import accounts
from goclaw_py.config.models import Settings
from goclaw_py.config.policies import job_profile
from goclaw_py.jobs.creation import JobCreationRules
from goclaw_py.jobs.module import JobSetup
from goclaw_py.model.ids import AgentName
from goclaw_py.model.session_keys import DEFAULT_ACCOUNT
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Place, WorkStore


def job_rules(settings: Settings) -> JobCreationRules:
    """Return the rules for creating jobs."""
    profile = job_profile(settings)
    return JobCreationRules(
        profile=profile,
        enabled=profile.enabled,
        most=settings.scheduler.max_jobs,
        agents=tuple(AgentName(name) for name in settings.agents),
        sources=tuple(settings.sources),
        places=account_places(settings),
    )


def account_places(settings: Settings) -> tuple[Place, ...]:
    """Return the channel accounts of a gateway."""
    return ((CONSOLE, DEFAULT_ACCOUNT), *((a.channel, a.name) for a in accounts(settings)))


def job_setup(settings: Settings, store: WorkStore, clock: Clock) -> JobSetup:
    """Return what a gateway needs to run jobs. Raises ``SettingError``."""
    return JobSetup(
        rules=job_rules(settings),
        sources=build_sources(settings, store, clock, os.environ),
        program=program_loop,
        limits=agent_limits(settings),
    )


def agent_limits(settings: Settings) -> dict[AgentName, int]:
    """Return the maximum number of concurrent runs of agents that have one (SPEC AGENT-3)."""
    return {
        AgentName(name): agent.max_concurrent
        for name, agent in settings.agents.items()
        if agent.max_concurrent is not None
    }
