"""Conversion of jobs to JSON and back, for the store, the log and the API.

Instants are ISO 8601 in UTC. Unknown keys are ignored and missing keys have their defaults, because
another release may have written them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from goclaw_py.core.errors import BadJob
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    Job,
    JobSpec,
    JobState,
    JobTarget,
    Notify,
    Payload,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.policy import FORMER_KEYS, normalized
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, schedule_json, schedule_of


def spec_json(spec: JobSpec) -> dict[str, object]:
    """Return a definition, with every key of ``JobSpec``.

    A target is ``{"channel", "account", "chat", "thread"}``, or the name of a ``TargetKind``. A
    payload has a ``kind``: ``prompt``, ``message`` or ``command``.
    """
    return _members(spec)


def job_json(job: Job) -> dict[str, object]:
    """Return a job: every key of ``Job``, its definition as ``spec``."""
    return _members(job)


def spec_of(given: Mapping[str, object]) -> JobSpec:
    """Parse the output of ``spec_json``. Raises ``BadJob`` with the key, and ``BadSchedule``."""
    return JobSpec(**read_fields(JobSpec, given))


def job_of(given: Mapping[str, object]) -> Job:
    """Parse the output of ``job_json``. Raises the errors of ``spec_of``."""
    usual = {"maker": Maker.OPERATOR.value, "chained": chained_in(given.get("spec"))}
    return Job(**read_fields(Job, {**usual, **given}))


def stored_spec(job: Job) -> dict[str, object]:
    """Return a definition for the database, with ``Job.chained``, for which it has no column.

    Its policy has the former keys, because a gateway of an earlier release may read it.
    """
    former = {key: name for name, key in FORMER_KEYS.items()}
    spec = replace(
        job.spec, policy={former.get(key, key): value for key, value in job.spec.policy.items()}
    )
    return spec_json(spec) | {"chained": job.chained}


def chained_in(stored: object) -> int:
    """Return the ``Job.chained`` of a ``stored_spec``, 0 if an older release has stored it."""
    count = stored.get("chained") if isinstance(stored, Mapping) else None
    return count if isinstance(count, int) else 0


def plain(value: object) -> object:
    """Return a part of a job as JSON. Money is a text, because JSON numbers are not exact."""
    found = value
    match value:
        case At() | Every() | Cron():
            found = schedule_json(value)
        case Prompt() | FixedMessage() | Program():
            found = {"kind": _KINDS[type(value)], **_members(value)}
        case JobSpec() | Target():
            found = _members(value)
        case datetime():
            found = value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case StrEnum() | Decimal():
            found = str(value)
        case Mapping():
            found = {key: plain(one) for key, one in value.items()}
        case tuple():
            found = list(value)
    return found


def _members(value: JobSpec | Job | Target | Payload) -> dict[str, object]:
    return {each.name: plain(getattr(value, each.name)) for each in fields(value)}


def read_fields(kind: type[Any], given: Mapping[str, object]) -> dict[str, Any]:
    """Parse the given fields of ``JobSpec``, or of a dataclass with the same field names.

    Raises the errors of ``spec_of``, also for a missing field without default.
    """
    read: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in given:
            value = given[each.name]
            is_none = value is None and each.name in _OPTIONAL
            read[each.name] = None if is_none else _READERS.get(each.name, _text)(each.name, value)
        elif _is_required(each):
            raise BadJob(each.name, "is required")
    return read


def _is_required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _payload(_key: str, value: object) -> Payload:
    given = _object("payload", value)
    match given.get("kind"):
        case "prompt":
            return Prompt(_text("text", given.get("text")), _text("model", given.get("model", "")))
        case "message":
            return FixedMessage(_text("text", given.get("text")))
        case "command":
            argv = given.get("argv")
            if isinstance(argv, list | tuple) and all(isinstance(each, str) for each in argv):
                return Program(tuple(argv))
            raise BadJob("argv", "must be a list of texts")
        case _:
            raise BadJob("payload", "its kind must be prompt, message or command")


def _target(key: str, value: object) -> JobTarget:
    if not isinstance(value, Mapping):
        kind: TargetKind = _member(TargetKind)(key, value)
        return kind
    thread = value.get("thread")
    channel, account, chat = (
        _text(part, value.get(part)) for part in ("channel", "account", "chat")
    )
    return Target(channel, account, chat, None if thread is None else _text("thread", thread))


def _policy(key: str, value: object) -> dict[str, object]:
    given = normalized(_object(key, value))
    return {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadJob(key, "must be a text")
    return value


def _number(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadJob(key, "must be a whole number")
    return value


def _flag(_key: str, value: object) -> bool:
    return value is True


def _instant(key: str, value: object) -> datetime:
    try:
        instant = datetime.fromisoformat(_text(key, value))
        if instant.tzinfo is None:
            raise BadJob(key, "needs an offset from UTC")
        return instant.astimezone(UTC)
    except ValueError:
        raise BadJob(key, "must be a time as in ISO 8601") from None
    except OverflowError:
        raise BadJob(key, "no calendar has this time in UTC") from None


def _object(key: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadJob(key, "must be an object")
    return value


def _member(kind: type[StrEnum]) -> Callable[[str, object], Any]:
    def read(key: str, value: object) -> StrEnum:
        try:
            return kind(str(value))
        except ValueError:
            raise BadJob(key, f"must be one of {', '.join(kind)}") from None

    return read


_KINDS: Final = {Prompt: "prompt", FixedMessage: "message", Program: "command"}
_OPTIONAL: Final = frozenset({"max_runs", "not_after", "next_run_at", "running", "last_run_at"})
_READERS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "spec": lambda key, value: spec_of(_object(key, value)),
    "schedule": lambda key, value: schedule_of(_object(key, value)),
    "payload": _payload,
    "target": _target,
    "policy": _policy,
    "peer": _member(PeerKind),
    "notify": _member(Notify),
    "maker": _member(Maker),
    "state": _member(JobState),
    **dict.fromkeys(("max_runs", "revision", "failures", "runs", "coalesced", "chained"), _number),
    **dict.fromkeys(("wake_heartbeat", "paused"), _flag),
    **dict.fromkeys(
        ("not_after", "created_at", "updated_at", "next_run_at", "last_run_at"), _instant
    ),
}
"""The parsers of fields; all others are texts."""
