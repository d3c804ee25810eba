"""Derive the profile of jobs and the heartbeat policies of agents from the settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Final

from goclaw_py.config.heartbeat import HeartbeatRunBudget, HeartbeatSettings, laid_over
from goclaw_py.config.models import Settings
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import BadHours
from goclaw_py.core.ids import CRON_LANE, AgentName, LaneName
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import CONSOLE, DEFAULT_ACCOUNT
from goclaw_py.core.time.machine_zone import machine_zone
from goclaw_py.core.web_links import WEB
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours, read_hours
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, HeartbeatTarget, LastChat
from goclaw_py.schedule.heartbeat.models import HeartbeatConfig
from goclaw_py.schedule.heartbeat.target import parse_heartbeat_target
from goclaw_py.schedule.jitter import heartbeat_offset
from goclaw_py.schedule.jobs.policy import PROFILES, Profile, policy_with

# ---------------------------------------------------------------------------- jobs

UTC: Final = "UTC"


def job_profile(settings: Settings, env: Mapping[str, str] | None = None) -> Profile:
    """Return the selected profile with all settings applied, and the name of its zone.

    ``env`` is used to find the zone of the machine, for profiles that use it.
    """
    scheduler = settings.scheduler
    profile = PROFILES[scheduler.profile]
    named = scheduler.timezone or profile.zone
    prompt = scheduler.default_prompt
    return replace(
        profile,
        policy=policy_with(profile.policy, scheduler.overrides()),
        enabled=profile.enabled if scheduler.enabled is None else scheduler.enabled,
        zone=named or machine_zone(os.environ if env is None else env),
        default_prompt=profile.default_prompt if prompt is None else prompt.strip(),
        lane=settings.lanes[CRON_LANE].size,
        shutdown_wait_s=settings.shutdown.wait_s,
    )


# ---------------------------------------------------------------------------- heartbeat


Path_ = tuple[str, ...]
Problem = tuple[Path_, object, str]
"""The path of a setting, its value, and what is allowed."""


def heartbeat_policy(
    settings: Settings, agent: AgentName, env: Mapping[str, str] | None = None
) -> HeartbeatPolicy:
    """Return the heartbeat policy of an agent, with the name of its time zone.

    ``env`` is used to find the zone of the machine, as in ``job_profile``.
    """
    section = _section(settings, agent)
    default = HeartbeatPolicy()
    zone = section.active_hours.timezone or job_profile(settings, env).zone
    most = section.ack_max_chars
    return HeartbeatPolicy(
        interval=_interval(section, default),
        hours=_hours(section, zone),
        zone=zone,
        target=default.target if section.target is None else _target(section.target),
        last_scope=section.last_scope or default.last_scope,
        ack_max_chars=default.ack_max_chars if most is None else most,
        ack_position=section.ack_position or default.ack_position,
        lane=LaneName(section.lane or default.lane),
        day=_day(section.budget, default.day),
        run=_run(section.budget, default.run),
        model=(section.model or default.model).strip(),
    )


def plans(settings: Settings) -> list[HeartbeatConfig]:
    """Return the heartbeat schedule of each agent, in the order of the settings (SPEC HB-1)."""
    found = []
    for name in map(AgentName, settings.agents):
        interval = _interval(_section(settings, name), HeartbeatPolicy())
        offset = timedelta() if interval is None else heartbeat_offset(name, interval)
        found.append(HeartbeatConfig(name, interval, offset))
    return found


def problems(settings: Settings) -> Iterator[Problem]:
    """Find errors across sections: unknown lanes and channels, and incomplete active hours."""
    yield from _of_section(settings, ("heartbeat",), settings.heartbeat)
    for name, agent in settings.agents.items():
        path = ("agents", name, "heartbeat")
        yield from _of_section(settings, path, agent.heartbeat)
        yield from _of_hours(settings, AgentName(name))


def switched_off(settings: Settings, target: HeartbeatTarget) -> str:
    """Return the key that would enable the channel of a target, "" if it is enabled."""
    if not isinstance(target, Target | LastChat) or target.channel not in settings.channels:
        return ""
    channel = settings.channels[target.channel]
    named = channel.by_name
    meant = [target.account] if target.account in named else list(named)
    if any(named[account].enabled for account in meant):
        return ""
    below = "" if named[meant[0]] is channel else f".accounts.{meant[0]}"
    return f"channels.{target.channel}{below}.enabled"


def _section(settings: Settings, agent: AgentName) -> HeartbeatSettings:
    return laid_over(settings.heartbeat, settings.agents[agent].heartbeat)


def _interval(section: HeartbeatSettings, default: HeartbeatPolicy) -> timedelta | None:
    if section.enabled is False or section.interval_s == 0:
        return None
    return default.interval if section.interval_s is None else timedelta(seconds=section.interval_s)


def _hours(section: HeartbeatSettings, zone: str) -> ActiveHours | None:
    hours = section.active_hours
    # If only one of them is set, ``problems`` reports it.
    return read_hours(hours.start, hours.end, zone) if hours.start and hours.end else None


def _target(text: str) -> HeartbeatTarget:
    # The format was checked when the settings were read.
    return parse_heartbeat_target(text) or LastChat()


def _day(budget: HeartbeatRunBudget, default: Budget) -> Budget:
    day = budget.day
    return Budget(tokens=_count(day.tokens, default.tokens), usd=_amount(day.usd, default.usd))


def _run(budget: HeartbeatRunBudget, default: Budget) -> Budget:
    return Budget(
        turns=_count(budget.turns, default.turns),
        tokens=_count(budget.tokens, default.tokens),
        usd=_amount(budget.usd, default.usd),
    )


def _count(given: int | None, default: int | None) -> int | None:
    # TOML has no null; 0 means no limit.
    return default if given is None else given or None


def _amount(given: float | None, default: Decimal | None) -> Decimal | None:
    if given is None:
        return default
    return Decimal(str(given)) if given else None


def _of_section(settings: Settings, path: Path_, section: HeartbeatSettings) -> Iterator[Problem]:
    lane, target = section.lane, section.target
    if lane is not None and lane not in settings.lanes:
        known = ", ".join(settings.lanes)
        yield (
            (*path, "lane"),
            lane,
            f"there is no such lane; use one of {known}, or define it in [lanes]",
        )
    if target is not None and not _is_there(settings, _target(target)):
        known = ", ".join(["last", "none", *_places(settings)])
        allowed = (
            f"this channel is not configured; use one of {known}, or a chat such as telegram:12345"
        )
        yield (*path, "target"), target, allowed


def _is_there(settings: Settings, target: HeartbeatTarget) -> bool:
    match target:
        case Target(channel, account):
            return account in _accounts(settings).get(channel, ())
        case LastChat(str(channel), account):
            accounts = _accounts(settings).get(channel, ())
            return bool(accounts) if account is None else account in accounts
        case _:
            return True


def _accounts(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return the accounts of each channel, including disabled ones."""
    found = {name: tuple(channel.by_name) for name, channel in settings.channels.items()}
    return {CONSOLE: (DEFAULT_ACCOUNT,), WEB: (DEFAULT_ACCOUNT,), **found}


def _places(settings: Settings) -> Iterator[str]:
    for channel, accounts in _accounts(settings).items():
        for account in accounts:
            yield channel if account == DEFAULT_ACCOUNT else f"{channel}.{account}"


def _of_hours(settings: Settings, agent: AgentName) -> Iterator[Problem]:
    hours = _section(settings, agent).active_hours
    own = settings.agents[agent].heartbeat.active_hours
    # Report the mistake in [heartbeat] if the agent has no active hours of its own.
    path = ("agents", agent, "heartbeat") if own.model_fields_set else ("heartbeat",)
    if not hours.model_fields_set:
        return
    if hours.start is None or hours.end is None:
        given = {key: getattr(hours, key) for key in hours.model_fields_set}
        allowed = 'must have start and end, such as { start = "08:00", end = "22:00" }'
        yield (*path, "active_hours"), given, allowed
        return
    try:
        read_hours(hours.start, hours.end, hours.timezone or "UTC")
    except BadHours as error:
        yield (*path, "active_hours", error.key), error.value, error.allowed
