"""Jobs as JSON and back: how they are stored and logged, and what programs read of them.

Instants are ISO 8601 in UTC. A key that this release does not know is ignored, and one that is
missing has its default: another release may have written it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeVar

from goclaw_py.jobs.models import (
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
from goclaw_py.jobs.schedule import schedule_json, schedule_of
from goclaw_py.model.errors import BadJob
from goclaw_py.model.ids import MAIN_AGENT, AgentName, JobId, OccurrenceId, Owner
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.model.owners import Maker

Kind = TypeVar("Kind", bound=StrEnum)
Value = TypeVar("Value")


def spec_json(spec: JobSpec) -> dict[str, object]:
    """A definition, with every key of ``JobSpec``.

    A target is ``{"channel", "account", "chat", "thread"}``, or the name of a ``TargetKind``. A
    payload has a ``kind``: ``prompt``, ``message`` or ``command``.
    """
    return {
        "slug": spec.slug,
        "name": spec.name,
        "agent": spec.agent,
        "schedule": schedule_json(spec.schedule),
        "zone": spec.zone,
        "payload": _payload_json(spec.payload),
        "target": _target_json(spec.target),
        "peer": spec.peer.value,
        "notify": spec.notify.value,
        "session": spec.session,
        "policy": {key: _plain(value) for key, value in spec.policy.items()},
        "max_runs": spec.max_runs,
        "not_after": _iso(spec.not_after),
        "wake_heartbeat": spec.wake_heartbeat,
        "source": spec.source,
    }


def spec_of(given: Mapping[str, object]) -> JobSpec:
    """Read what ``spec_json`` wrote. Raises ``BadJob`` naming the key, and ``BadSchedule``."""
    return JobSpec(
        slug=_text(given, "slug"),
        schedule=schedule_of(_object(given, "schedule")),
        zone=_text(given, "zone"),
        payload=_payload_of(_object(given, "payload")),
        name=_text(given, "name", ""),
        agent=AgentName(_text(given, "agent", MAIN_AGENT)),
        target=_target_of(given.get("target", TargetKind.LAST)),
        peer=_member(given, "peer", PeerKind.DIRECT),
        notify=_member(given, "notify", Notify.ALWAYS),
        session=_text(given, "session", ""),
        policy={key: _value(value) for key, value in _object(given, "policy", {}).items()},
        max_runs=_optional(given, "max_runs", _number),
        not_after=_optional(given, "not_after", _instant),
        wake_heartbeat=given.get("wake_heartbeat", False) is True,
        source=_text(given, "source", ""),
    )


def job_json(job: Job) -> dict[str, object]:
    """A job: every key of ``Job``, its definition as ``spec``."""
    return {
        "id": job.id,
        "owner": job.owner,
        "maker": job.maker.value,
        "creator": job.creator,
        "spec": spec_json(job.spec),
        "created_at": _iso(job.created_at),
        "updated_at": _iso(job.updated_at),
        "state": job.state.value,
        "revision": job.revision,
        "next_run_at": _iso(job.next_run_at),
        "running": job.running,
        "last_run_at": _iso(job.last_run_at),
        "last_status": job.last_status,
        "last_error": job.last_error,
        "failures": job.failures,
        "runs": job.runs,
        "coalesced": job.coalesced,
    }


def job_of(given: Mapping[str, object]) -> Job:
    """Read what ``job_json`` wrote. Raises as ``spec_of``."""
    running = _optional(given, "running", _text)
    return Job(
        id=JobId(_text(given, "id")),
        owner=Owner(_text(given, "owner")),
        maker=_member(given, "maker", Maker.OPERATOR),
        creator=_text(given, "creator", ""),
        spec=spec_of(_object(given, "spec")),
        created_at=_instant(given, "created_at"),
        updated_at=_instant(given, "updated_at"),
        state=_member(given, "state", JobState.ACTIVE),
        revision=_number(given, "revision", 1),
        next_run_at=_optional(given, "next_run_at", _instant),
        running=None if running is None else OccurrenceId(running),
        last_run_at=_optional(given, "last_run_at", _instant),
        last_status=_text(given, "last_status", ""),
        last_error=_text(given, "last_error", ""),
        failures=_number(given, "failures", 0),
        runs=_number(given, "runs", 0),
        coalesced=_number(given, "coalesced", 0),
    )


def _payload_json(payload: Payload) -> dict[str, object]:
    match payload:
        case Prompt(text, model):
            return {"kind": "prompt", "text": text, "model": model}
        case FixedMessage(text):
            return {"kind": "message", "text": text}
        case Program(argv):
            return {"kind": "command", "argv": list(argv)}


def _payload_of(given: Mapping[str, object]) -> Payload:
    match given.get("kind"):
        case "prompt":
            return Prompt(_text(given, "text"), _text(given, "model", ""))
        case "message":
            return FixedMessage(_text(given, "text"))
        case "command":
            argv = given.get("argv")
            if isinstance(argv, list | tuple) and all(isinstance(each, str) for each in argv):
                return Program(tuple(argv))
            raise BadJob("argv", "must be a list of texts")
        case _:
            raise BadJob("payload", "its kind must be prompt, message or command")


def _target_json(target: JobTarget) -> object:
    if isinstance(target, TargetKind):
        return target.value
    return {
        "channel": target.channel,
        "account": target.account,
        "chat": target.chat,
        "thread": target.thread,
    }


def _target_of(given: object) -> JobTarget:
    if isinstance(given, Mapping):
        return Target(
            channel=_text(given, "channel"),
            account=_text(given, "account"),
            chat=_text(given, "chat"),
            thread=_optional(given, "thread", _text),
        )
    return _member({"target": given}, "target", TargetKind.LAST)


def _plain(value: object) -> object:
    """A value of a policy in JSON. Money is a text: it has no exact number there."""
    if isinstance(value, Decimal):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _value(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


def _iso(instant: datetime | None) -> str | None:
    if instant is None:
        return None
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _text(given: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = given.get(key, default)
    if not isinstance(value, str):
        raise BadJob(key, "must be a text")
    return value


def _number(given: Mapping[str, object], key: str, default: int | None = None) -> int:
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadJob(key, "must be a whole number")
    return value


def _instant(given: Mapping[str, object], key: str) -> datetime:
    try:
        instant = datetime.fromisoformat(_text(given, key))
    except ValueError:
        raise BadJob(key, "must be a time as in ISO 8601") from None
    if instant.tzinfo is None:
        raise BadJob(key, "needs an offset from UTC")
    return instant.astimezone(UTC)


def _object(
    given: Mapping[str, object], key: str, default: Mapping[str, object] | None = None
) -> Mapping[str, object]:
    value = given.get(key, default)
    if not isinstance(value, Mapping):
        raise BadJob(key, "must be an object")
    return value


def _member(given: Mapping[str, object], key: str, default: Kind) -> Kind:
    kind = type(default)
    try:
        return kind(str(given.get(key, default)))
    except ValueError:
        names = ", ".join(member.value for member in kind)
        raise BadJob(key, f"must be one of {names}") from None


def _optional(
    given: Mapping[str, object], key: str, read: Callable[[Mapping[str, object], str], Value]
) -> Value | None:
    return None if given.get(key) is None else read(given, key)
