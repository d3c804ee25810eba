"""Create what a gateway needs from the settings: dependencies, scheduler, jobs, heartbeats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial

from goclaw_py.agents import is_model, program_loop
from goclaw_py.app.parts import Parts, model_problem
from goclaw_py.config import accounts, heartbeat_policy, job_profile, plans, source_token
from goclaw_py.config.agents import DEFAULT_DAY_USD, DayBudget
from goclaw_py.config.models import Settings
from goclaw_py.config.secrets import known_secrets
from goclaw_py.config.work_sources import WorkSourceSettings
from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import AgentName
from goclaw_py.core.redaction import Redactor
from goclaw_py.core.session_keys import CONSOLE, DEFAULT_ACCOUNT
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.web_links import OWN_CHANNELS
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.records import FixedAccounts, Place, WorkStore
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.schedule.forecast_models import ForecastRules
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.schedule.jobs.work_items import WorkSource
from goclaw_py.schedule.sources import TableSource
from goclaw_py.scheduler.child_runs import NestingLimits
from goclaw_py.scheduler.scheduler import RunScheduler


def gateway_config(
    settings: Settings, parts: Parts, store: WorkStore | None, clock: Clock
) -> tuple[RunScheduler, GatewayDependencies]:
    """Return all that the settings say of a gateway. Raises ``SettingError``.

    ``goclaw run`` builds its gateway from it; ``goclaw config check`` only builds it, without a
    store.
    """
    return scheduler(settings), replace(
        gateway_dependencies(settings, parts),
        jobs=job_setup(settings, store, clock),
        heartbeats=heartbeat_setup(settings),
    )


def gateway_dependencies(settings: Settings, parts: Parts) -> GatewayDependencies:
    """Return the dependencies of a gateway."""
    agents = {AgentName(name): agent for name, agent in settings.agents.items()}
    return GatewayDependencies(
        channels=parts.channels,
        rules=parts.rules,
        agents=parts.agents,
        workspaces={name: settings.workspace(name) for name in agents},
        context_windows={name: agent.context_window for name, agent in agents.items()},
        tool_factory=parts.tool_factory,
        instructions={
            name: agent.instructions
            for name, agent in agents.items()
            if agent.instructions is not None
        },
        limits=budgets(settings),
        models=language_models(settings),
        outage_hold_s=settings.runs.outage_hold_s,
        max_chained_turns=settings.runs.max_chained_turns,
        run_timeout_s=settings.runs.timeout_s,
        hide=Redactor(known_secrets(settings, os.environ)),
    )


def language_models(settings: Settings) -> dict[AgentName, str]:
    """Return the model of each agent that is no program, function or offline agent."""
    return {
        AgentName(name): agent.model
        for name, agent in settings.agents.items()
        if is_model(agent.model)
    }


def budgets(settings: Settings) -> dict[AgentName, Limits]:
    """Return the budgets of each agent."""
    return {
        AgentName(name): Limits(
            run=_budget(agent.budget, agent.budget.time),
            session_day=_budget(agent.budget.session_day),
            agent_day=Budget(usd=DEFAULT_DAY_USD)
            if agent.has_default_day
            else _budget(agent.budget.day),
            is_default_day=agent.has_default_day,
        )
        for name, agent in settings.agents.items()
    }


def _budget(section: DayBudget, seconds: float | None = None) -> Budget:
    return Budget(section.turns, section.tokens, section.usd or None, seconds)  # 0: no limit


def scheduler(settings: Settings) -> RunScheduler:
    """Create the run scheduler with the lanes of the settings."""
    return RunScheduler(
        settings.lane_sizes,
        agents={AgentName(name): one.max_concurrent for name, one in settings.agents.items()},
        cancel_grace_s=settings.runs.cancel_grace_s,
        nesting=NestingLimits(settings.runs.max_depth, settings.runs.max_children),
        shared=settings.shared_lanes,
    )


# ---------------------------------------------------------------------------- jobs


def job_rules(settings: Settings) -> JobCreationRules:
    """Return the rules for creating jobs."""
    profile, known = job_profile(settings), chat_accounts(settings)
    return JobCreationRules(
        profile=profile,
        enabled=profile.enabled,
        most=settings.scheduler.max_jobs,
        agents=tuple(AgentName(name) for name in settings.agents),
        sources=tuple(settings.sources),
        places=known.places,
        owners=lambda: known.owners,
        model_problem=partial(model_problem, settings),
    )


def account_places(settings: Settings) -> tuple[Place, ...]:
    """Return the channel accounts of a gateway."""
    own = [(name, DEFAULT_ACCOUNT) for name in OWN_CHANNELS]
    return *own, *((a.channel, a.name) for a in accounts(settings) if a.channel not in OWN_CHANNELS)


def chat_accounts(settings: Settings) -> FixedAccounts:
    """Return the channel accounts of a gateway with their owners by the settings."""
    listed = [
        (a.channel, a.name, person) for a in accounts(settings) for person in a.settings.allow
    ]
    return FixedAccounts(account_places(settings), [(CONSOLE, DEFAULT_ACCOUNT, None), *listed])


def job_setup(settings: Settings, store: WorkStore | None, clock: Clock) -> JobSetup:
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


def build_sources(
    settings: Settings, store: WorkStore | None, clock: Clock, env: Mapping[str, str]
) -> dict[str, WorkSource]:
    """Create all sources, by name; without a store those that are not in it.

    Raises ``SettingError`` for a missing token.
    """
    found: dict[str, WorkSource] = {}
    for name, section in settings.sources.items():
        if section.kind == "github":
            found[name] = _github(settings, name, section, clock, env)
        elif store is not None:
            forgotten_after = timedelta(seconds=section.forgotten_after_s)
            queue = section.queue or name
            found[name] = TableSource(store, clock, queue, forgotten_after=forgotten_after)
    return found


def _github(
    settings: Settings,
    name: str,
    section: WorkSourceSettings,
    clock: Clock,
    env: Mapping[str, str],
) -> WorkSource:
    # Imported here, so that the HTTP client is loaded only if it is used.
    from goclaw_py.schedule.sources.github import GitHubSource, IssueRules  # noqa: PLC0415
    from goclaw_py.schedule.sources.github_http import RepositoryAddress  # noqa: PLC0415

    token = source_token(settings, name, env)
    assert token is not None
    assert section.repo is not None
    place = RepositoryAddress(section.repo, token.get_secret_value(), section.base_url.rstrip("/"))
    rules = IssueRules(
        label=section.label,
        claim_label=section.claim_label,
        failed_label=section.failed_label,
        close=section.close,
        forgotten_after=timedelta(seconds=section.forgotten_after_s),
    )
    return GitHubSource(place, rules, clock)


# ---------------------------------------------------------------------------- heartbeats


def heartbeat_setup(settings: Settings) -> HeartbeatSetup:
    """Return what a gateway needs to run heartbeats."""
    names = [AgentName(name) for name in settings.agents]
    return HeartbeatSetup(
        policies={name: heartbeat_policy(settings, name) for name in names},
        plans={plan.agent: plan for plan in plans(settings)},
        workspaces={name: settings.workspace(name) for name in names},
        run_timeout_s=settings.runs.timeout_s,
    )


def forecast_rules(settings: Settings) -> ForecastRules:
    """Return what a forecast of jobs and heartbeats needs of the settings."""
    heartbeats = heartbeat_setup(settings)
    return ForecastRules(
        base=job_rules(settings).base,
        lanes=settings.lane_sizes,
        limits=agent_limits(settings),
        policies=heartbeats.policies,
        plans=heartbeats.plans,
        heartbeat_timeout_s=heartbeats.run_timeout_s,
    )
