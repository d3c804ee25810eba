"""The fields of the job form: conversion of jobs to texts and back.

``Typed`` is the input by field names, with all fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeVar

from goclaw_py.core.errors import BadJob, BadMoment, JobError, UnknownZone
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.targets import TARGET_FORM, parse_target, target_text
from goclaw_py.core.time.datetimes import parse_moment
from goclaw_py.core.time.texts import zone_or_utc
from goclaw_py.core.time.zones import zone as zone_of
from goclaw_py.operations.jobs.models import UNCHANGED, JobChange, JobDraft, Unchanged
from goclaw_py.records import Chat
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    Job,
    JobTarget,
    Notify,
    Payload,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.policy import SessionKind
from goclaw_py.schedule.jobs.schedule import (
    At,
    Cron,
    Every,
    Schedule,
    interval_text,
    read_schedule,
)
from goclaw_py.schedule.jobs.view_texts import kind_and_text

Typed = Mapping[str, str]

POLICY: Final = (
    "on_busy",
    "misfire",
    "retries",
    "auto_disable_after",
    "run_timeout",
    "turns",
    "usd",
)
"""Policy keys with a field; ``session`` has one too."""

_WHOLE: Final = frozenset({"retries", "auto_disable_after", "turns"})
MORE: Final = ("slug", "model", "session", "session_key", "max_runs", "not_after", "source")
"""Fields that most jobs do not need, besides ``POLICY``."""

_TEXTS: Final = ("name", "agent", "text", "expression", "zone", "target")
_CHOICES: Final = {"does": "prompt", "notify": "always", "session": ""}
_FLAGS: Final = ("wake_heartbeat", "paused")
_KEPT: Final = ("revision",)

SHOWN: Final = frozenset((*_TEXTS, *MORE, *POLICY, "does", "notify"))
"""Fields that have a place for what is wrong with them."""

Choice = TypeVar("Choice", bound=StrEnum)


def blank(zone: str) -> dict[str, str]:
    """Return the form of a new job."""
    names = (*_TEXTS, *MORE, *POLICY, *_FLAGS, *_KEPT)
    return {**dict.fromkeys(names, ""), **_CHOICES, "zone": zone, "target": TargetKind.LAST.value}


def given(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the submitted fields; missing ones are empty, or as in a new form."""
    empty = {**blank(""), "target": TargetKind.LAST.value}
    # Browsers end each line of a text with two characters.
    return {name: fields.get(name, empty[name]).replace("\r\n", "\n") for name in empty}


def typed_of(job: Job) -> dict[str, str]:
    """Return the form of an existing job."""
    spec, payload = job.spec, job.spec.payload
    does, text = kind_and_text(payload)
    policy = {key: _plain(spec.policy[key]) for key in POLICY if key in spec.policy}
    return {
        **blank(spec.zone),
        **policy,
        "name": spec.name,
        "slug": spec.slug,
        "agent": spec.agent,
        "does": does,
        "text": text,
        "model": payload.model if isinstance(payload, Prompt) else "",
        "expression": _schedule_text(spec.schedule, spec.zone),
        "target": (
            spec.target.value if isinstance(spec.target, TargetKind) else target_text(spec.target)
        ),
        "notify": spec.notify.value,
        "session": str(spec.policy.get("session", "")),
        "session_key": spec.session,
        "max_runs": str(spec.max_runs or ""),
        "not_after": _clock_text(spec.not_after, spec.zone) if spec.not_after else "",
        "wake_heartbeat": "yes" if spec.wake_heartbeat else "",
        "source": spec.source,
        "revision": str(job.revision),
    }


# ---------------------------------------------------------------------------- what they mean


def draft_of(typed: Typed, chats: Iterable[Chat], *, now: datetime, zone: str) -> JobDraft:
    """Return the new job, in ``zone`` by default. Raises ``JobError``."""
    zone = typed["zone"].strip() or zone
    target = _target(typed["target"])
    return JobDraft(
        schedule=_schedule(typed, now=now, zone=zone),
        payload=_payload(typed) if typed["text"].strip() else None,
        slug=typed["slug"].strip(),
        name=typed["name"],
        zone=zone,
        agent=AgentName(typed["agent"]) if typed["agent"] else None,
        target=target,
        peer=_peer(target, chats),
        notify=_member("notify", Notify, typed["notify"]),
        session=_session_key(typed),
        policy={key: value for key, value in _policy(typed).items() if value is not None},
        max_runs=_count("max_runs", typed["max_runs"]),
        not_after=_end(typed["not_after"], now=now, zone=zone),
        wake_heartbeat=bool(typed["wake_heartbeat"]),
        source=typed["source"].strip(),
        paused=bool(typed["paused"]),
    )


def timing_of(typed: Typed, *, now: datetime, zone: str) -> JobDraft:
    """Return the fields that determine when it runs, for a preview. Raises ``JobError``."""
    zone = typed["zone"].strip() or zone
    return JobDraft(
        schedule=_schedule(typed, now=now, zone=zone),
        payload=FixedMessage("-"),
        zone=zone,
        not_after=_end(typed["not_after"], now=now, zone=zone),
    )


def change_of(job: Job, typed: Typed, chats: Iterable[Chat], *, now: datetime) -> JobChange:
    """Return the changes of an edit: unchanged fields change nothing.

    Raises ``JobError``.
    """
    before, zone = typed_of(job), typed["zone"].strip() or job.spec.zone
    new = {name for name, text in typed.items() if text != before[name]}
    timed = "expression" in new or ("zone" in new and isinstance(job.spec.schedule, At))
    ends = "not_after" in new or ("zone" in new and typed["not_after"] != "")
    target: JobTarget | Unchanged = _target(typed["target"]) if "target" in new else UNCHANGED
    said = bool(new & {"does", "text", "model"}) and typed["does"] != "command"
    return JobChange(
        slug=typed["slug"].strip() if "slug" in new else UNCHANGED,
        name=typed["name"] if "name" in new else UNCHANGED,
        schedule=_schedule(typed, now=now, zone=zone) if timed else UNCHANGED,
        zone=zone,
        payload=_payload(typed) if said else UNCHANGED,
        agent=AgentName(typed["agent"]) if "agent" in new else UNCHANGED,
        target=target,
        peer=UNCHANGED if target is UNCHANGED else _peer(target, chats) or PeerKind.DIRECT,
        notify=_member("notify", Notify, typed["notify"]) if "notify" in new else UNCHANGED,
        session=_session_key(typed) if new & {"session", "session_key"} else UNCHANGED,
        policy={key: value for key, value in _policy(typed).items() if key in new} or UNCHANGED,
        max_runs=_count("max_runs", typed["max_runs"]) if "max_runs" in new else UNCHANGED,
        not_after=_end(typed["not_after"], now=now, zone=zone) if ends else UNCHANGED,
        wake_heartbeat=bool(typed["wake_heartbeat"]) if "wake_heartbeat" in new else UNCHANGED,
        source=typed["source"].strip() if "source" in new else UNCHANGED,
        revision=_count("revision", typed["revision"]),
    )


def problems(typed: Typed, *, now: datetime, zone: str, needs_text: bool) -> dict[str, JobError]:
    """Return what is wrong with fields whose texts are read here, by field."""
    readers: dict[str, Callable[[], object]] = {
        "text": lambda: _needed_text(typed["text"], is_needed=needs_text),
        "expression": lambda: _schedule(typed, now=now, zone=zone),
        "zone": lambda: zone_of(zone),
        "target": lambda: _target(typed["target"]),
        "max_runs": lambda: _count("max_runs", typed["max_runs"]),
        "not_after": lambda: _end(typed["not_after"], now=now, zone=zone),
    }
    found: dict[str, JobError] = {}
    for name, read in readers.items():
        try:
            read()
        except UnknownZone as error:
            found["zone"] = error
        except JobError as error:
            found[name] = error
    return found


def _needed_text(text: str, *, is_needed: bool) -> None:
    if is_needed and not text.strip():
        raise BadJob("text", "must not be empty")


def _schedule(typed: Typed, *, now: datetime, zone: str) -> Schedule:
    text = typed["expression"].strip()
    if not text:
        raise BadJob("expression", "enter a schedule")
    return read_schedule(text, now=now, zone=zone)


def _payload(typed: Typed) -> Payload:
    match typed["does"]:
        case "prompt":
            return Prompt(typed["text"], typed["model"].strip())
        case "message":
            return FixedMessage(typed["text"])
    raise BadJob("does", "must be prompt or message")


def _target(text: str) -> JobTarget:
    plain = text.strip()
    if plain in tuple(TargetKind):
        return TargetKind(plain)
    if (target := parse_target(plain)) is None:
        raise BadJob("target", f"must be last, none, or {TARGET_FORM}")
    return target


def _peer(target: JobTarget | Unchanged, chats: Iterable[Chat]) -> PeerKind | None:
    """Return whether a chat is direct or a group, if it is known."""
    if isinstance(target, StrEnum):
        return None
    place = (target.channel, target.account, target.chat)
    known = (chat.peer for chat in chats if (chat.channel, chat.account, chat.chat) == place)
    return next(known, PeerKind.DIRECT)


def _session_key(typed: Typed) -> str:
    return typed["session_key"].strip() if typed["session"] == SessionKind.KEY else ""


def _policy(typed: Typed) -> dict[str, object]:
    """Return policy keys with a field; None for an empty field, which means the settings."""
    policy: dict[str, object] = {"session": typed["session"] or None}
    for key in POLICY:
        text = typed[key].strip()
        policy[key] = _number(key, text) if text else None
    return policy


def _number(key: str, text: str) -> object:
    """Return a number. Amounts of money stay texts, which are exact; the policy reads them."""
    return _whole(text) if key in _WHOLE else text


def _whole(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else text


def _count(key: str, text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    number = _whole(text)
    if isinstance(number, str):
        raise BadJob(key, "must be a whole number from 1 to 999999999")
    return number


def _end(text: str, *, now: datetime, zone: str) -> datetime | None:
    if not text.strip():
        return None
    try:
        return parse_moment(text, now=now, zone=zone)
    except BadMoment as error:
        raise BadJob("not_after", str(error)) from error


def _member(key: str, kind: type[Choice], text: str) -> Choice:
    try:
        return kind(text)
    except ValueError:
        raise BadJob(key, f"must be one of {', '.join(kind)}") from None


# ---------------------------------------------------------------------------- what stands in them


def _schedule_text(schedule: Schedule, zone: str) -> str:
    match schedule:
        case At(at):
            return _clock_text(at, zone)
        case Every(interval):
            return interval_text(interval)
        case Cron(expression):
            return expression


def _clock_text(instant: datetime, zone: str) -> str:
    there = instant.astimezone(zone_or_utc(zone)[0])
    return f"{there:%Y-%m-%d %H:%M:%S}" if there.second else f"{there:%Y-%m-%d %H:%M}"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
