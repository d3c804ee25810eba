"""What holds where a setting is not set: an inherited value or a default (SPEC OPS-11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from typing import Final

from goclaw_py.config.agents import DEFAULT_DAY_USD
from goclaw_py.config.models import Settings
from goclaw_py.config.origins import KeyPath
from goclaw_py.config.policies import job_profile
from goclaw_py.config.resolve import queue_policy
from goclaw_py.config.types import duration_text
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT
from goclaw_py.operations.settings.models import Setting, value_text
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.jobs.policy import DURATIONS

PathSetting = tuple[KeyPath, Setting]
"""A setting, and its path as separate keys."""

_NO_LIMIT: Final = "no limit"
_NONE: Final = "none"
_OF_PROVIDER: Final = "the provider's"
_TEXTS: Final[Mapping[str, str]] = {
    "temperature": _OF_PROVIDER,
    "thinking": _OF_PROVIDER,
    "base_url": _OF_PROVIDER,
    "api_key": "the provider's variable",
    "max_concurrent": _NO_LIMIT,
    "instructions": "AGENTS.md, if it exists",
    "tools.allow": "the default tools",
    "database.url": "an embedded server",
    "log.file": "standard error",
    "client_secret": "none: a public client",
    "default_role": "refused",
    "web.api": "true with a token, or for this machine only",
}
"""What happens without a setting, by its last keys."""


def with_values_in_force(
    settings: Settings, shown: Iterable[tuple[KeyPath, Setting]]
) -> list[Setting]:
    """Return the settings, those that are not set with what holds in their place."""
    by_path = dict(shown)
    found = []
    for path, one in by_path.items():
        if one.value is not None:
            found.append(one)
            continue
        for above in _inherits_from(settings, path):
            base = by_path.get(above)
            if base is not None and base.value is not None:
                text, origin = value_text(base), f"inherited from {base.path}"
                break
        else:
            text, origin = _default(settings, path), one.origin
            if path[0] == "scheduler" and settings.scheduler.profile != "goclaw":
                origin = f"default of profile {settings.scheduler.profile}"
        found.append(replace(one, in_force=text, origin=origin))
    return found


def _inherits_from(settings: Settings, path: KeyPath) -> Iterator[KeyPath]:
    """Return the settings from which one inherits, the nearest first."""
    match path:
        case ("agents", _, "heartbeat" | "queue", *_):
            yield path[2:]
        case ("channels", *_):
            size = 2 if path[-2] == "queue" else 1
            place, key = path[:-size], path[-size:]
            while len(place) > 2:
                place = place[:-2]
                yield (*place, *key)
            if size == 2:
                yield ("agents", _agent(settings, path), *key)
                yield key
        case ("heartbeat", "active_hours", "timezone"):
            yield ("scheduler", "timezone")
        case ("agents", _, "command", "timeout"):
            yield ("runs", "timeout")


def _agent(settings: Settings, path: KeyPath) -> str:
    """Return the agent that answers in an account, chat or topic."""
    section = settings.channels[path[1]]
    rest = list(path[2:])
    agent = section.by_name.get(DEFAULT_ACCOUNT, section).agent
    place: object = section
    while len(rest) >= 2 and rest[0] in ("accounts", "chats", "threads"):
        place = getattr(place, rest.pop(0))[rest.pop(0)]
        agent = getattr(place, "agent", None) or agent
    return str(agent)


def _default(settings: Settings, path: KeyPath) -> str:
    text = _TEXTS.get(".".join(path[-2:])) or _TEXTS.get(path[-1]) or _NONE
    match path:
        case ("queue", *_) | (*_, "queue", _):
            text = _of_queue(settings, path)
        case ("heartbeat", *keys) | ("agents", _, "heartbeat", *keys):
            text = _of_heartbeat(settings, keys)
        case ("scheduler", key):
            text = _of_jobs(settings, key)
        case ("agents", name, "workspace"):
            text = str(settings.workspace(AgentName(name)))
        case ("agents", name, "budget", "day", "usd") if settings.agents[name].has_default_day:
            text = str(DEFAULT_DAY_USD)
        case ("agents", _, "budget", *_):
            text = _NO_LIMIT
        case ("state", "folder"):
            text = str(settings.state_folder)
        case _:
            pass
    return text


def _of_queue(settings: Settings, path: KeyPath) -> str:
    agent = ""
    if path[0] != "queue":
        agent = path[1] if path[0] == "agents" else _agent(settings, path)
    policy = queue_policy(settings, AgentName(agent), peer=PeerKind.DIRECT)
    match path[-1]:
        case "max_concurrent":
            return "1 in direct chats, 3 in groups"
        case "debounce" if not agent:
            return "speculative for language models, fixed for other agents"
        case "debounce_ms":
            return str(round(policy.debounce_s * 1000))
        case "stop_words":
            return "true"
        case key:
            return _text(getattr(policy, key))


def _of_heartbeat(settings: Settings, keys: Sequence[str]) -> str:
    default = HeartbeatPolicy()
    words = {"enabled": "true", "target": "last", "model": "the agent's"}
    match keys:
        case ["interval"]:
            return _text(default.interval and default.interval.total_seconds(), timed=True)
        case ["active_hours", key]:
            return job_profile(settings).zone if key == "timezone" else "always"
        case ["budget", "day", key]:
            return _text(getattr(default.day, key), _NO_LIMIT)
        case ["budget", key]:
            return _text(getattr(default.run, key), _NO_LIMIT)
        case [key, *_]:
            return words.get(key) or _text(getattr(default, key))
        case _:
            return _NONE


def _of_jobs(settings: Settings, key: str) -> str:
    profile = job_profile(settings)
    policy = profile.policy
    match key:
        case "enabled":
            return _text(profile.enabled)
        case "timezone":
            return profile.zone
        case "default_prompt":
            return profile.default_prompt or "none: every job needs a prompt"
        case "backoff":
            return ", ".join(map(duration_text, policy.backoff)) or "no delay"
        case "jitter":
            return _text(policy.jitter * 100)
        case _ if key in DURATIONS:
            return _text(getattr(policy, key), timed=True)
        case _:
            return _text(getattr(policy, key), _NO_LIMIT)


def _text(value: object, nothing: str = _NONE, *, timed: bool = False) -> str:
    """Write a value as in a settings file; ``nothing`` for None."""
    match value:
        case None:
            return nothing
        case float() if timed:
            return duration_text(value)
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.value)
        case float() | Decimal():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case _:
            return str(value)
