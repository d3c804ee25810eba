"""What goes over the wire about jobs, for the server and for its client alike.

Jobs are as in ``jobs.job_json``. A draft and a change have the keys of its ``spec``: what is
missing in a draft is found by the settings, what is missing in a change stays as it is. Imports no
web framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import Field

from goclaw_py.jobs.job_json import spec_json, spec_of
from goclaw_py.jobs.models import FixedMessage, JobSpec
from goclaw_py.jobs.policy import Profile
from goclaw_py.jobs.schedule import Cron
from goclaw_py.model.errors import BadJob, BadMoment
from goclaw_py.model.ids import AgentName, OccurrenceId, Owner, RunId
from goclaw_py.model.messages import PeerKind
from goclaw_py.model.owners import Maker
from goclaw_py.model.targets import parse_target
from goclaw_py.ports.jobs import KEEP, JobChange, JobDraft, Requester, RunNow, StartedNow
from goclaw_py.web.api.job_bodies import Body, ChangeBody, DraftBody

MAX_TIMES: Final = 100
"""How many coming times are told at once."""

_BLANK: Final = JobSpec(slug="", schedule=Cron(""), zone="", payload=FixedMessage(""))
_FOUND: Final = ("payload", "agent", "target", "peer")
"""Keys of a draft that the settings find if they are None."""
_SPEC_KEYS: Final = frozenset(each.name for each in fields(JobSpec))


def draft_json(draft: JobDraft) -> dict[str, object]:
    """A draft as ``DraftBody``."""
    written = _written({name: getattr(draft, name) for name in _SPEC_KEYS})
    for key in _FOUND:
        if getattr(draft, key) is None:
            del written[key]
    first = draft.next_run_at
    return written | {"paused": draft.paused, "next_run_at": first and first.isoformat()}


def draft_of(body: DraftBody) -> JobDraft:
    """The draft that is meant. Raises ``BadSchedule`` and ``BadJob``."""
    given = _plain(body)
    given = {key: value for key, value in given.items() if key not in _FOUND or value is not None}
    spec = _read(given)
    read = {name: getattr(spec, name) for name in _SPEC_KEYS if name in given}
    return JobDraft(**read, paused=body.paused, next_run_at=_utc(body.next_run_at))


def change_json(change: JobChange) -> dict[str, object]:
    """A change as ``ChangeBody``."""
    given = {name: getattr(change, name) for name in _SPEC_KEYS}
    written = _written({key: value for key, value in given.items() if value is not KEEP})
    if change.state is not KEEP:
        written["state"] = change.state.value
    if change.revision is not None:
        written["revision"] = change.revision
    return written


def change_of(body: ChangeBody) -> JobChange:
    """The change that is meant. Raises as ``draft_of``."""
    given = _plain(body)
    spec = _read(given)
    read: dict[str, Any] = {name: getattr(spec, name) for name in _SPEC_KEYS if name in given}
    if "state" in body.model_fields_set:
        read["state"] = body.state
    return JobChange(**read, revision=body.revision)


def _written(given: Mapping[str, object]) -> dict[str, object]:
    """Some keys of a definition as JSON; those that are None and may not be are left to others."""
    known = {key: value for key, value in given.items() if value is not None}
    spec = JobSpec(**{**_blank(), **known})  # type: ignore[arg-type]  # each is a field of the same type
    written = spec_json(spec)
    return {key: written[key] for key in given}


def _blank() -> dict[str, object]:
    return {name: getattr(_BLANK, name) for name in _SPEC_KEYS}


def _plain(body: Body) -> dict[str, object]:
    return body.model_dump(mode="json", include=set(_SPEC_KEYS), exclude_unset=True)


def _read(given: Mapping[str, object]) -> JobSpec:
    blank = {"slug": "", "zone": "", "schedule": {"kind": "cron", "expression": ""}}
    return spec_of({**blank, "payload": {"kind": "message", "text": ""}, **given})


def _utc(at: datetime | None) -> datetime | None:
    if at is None:
        return None
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise BadMoment(f"{at.isoformat()}: no calendar has this time in UTC") from None


# ---------------------------------------------------------------------------- who asks


def asker_of(
    asker: str | None,
    asker_agent: str | None,
    maker: Maker | None,
    chat: str | None,
    peer: PeerKind,
) -> Requester:
    """Who asks: a person, if they ask as somebody and do not say as what.

    Raises ``BadJob`` for a chat of another form.
    """
    if maker is None:
        maker = Maker.OPERATOR if asker is None else Maker.PERSON
    target = None if chat is None else parse_target(chat)
    if chat is not None and target is None:
        raise BadJob("chat", "must be a chat such as telegram:12345")
    return Requester(
        owner=None if asker is None else Owner(asker),
        maker=maker,
        agent=None if asker_agent is None else AgentName(asker_agent),
        chat=target,
        peer=peer,
    )


# ---------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class JobSettingsView:
    """What the settings say of all jobs, and what time it is for the gateway."""

    profile: Profile
    enabled: bool
    most: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Times:
    """When a job would run, in order."""

    times: list[datetime]


@dataclass(frozen=True, slots=True)
class RouteView:
    """Why the result of a job would reach nobody now; "" if nothing speaks against it."""

    problem: str


@dataclass(frozen=True, slots=True)
class ZoneView:
    """A time zone."""

    zone: str


@dataclass(frozen=True, slots=True)
class ZoneBody:
    """The zone that is chosen; null goes back to that of the settings."""

    zone: Annotated[str | None, Field(max_length=256)]


@dataclass(frozen=True, slots=True)
class RanNow:
    """What a run by hand came to: the occurrence that began, or why there is none."""

    occurrence: OccurrenceId | None = None
    run: RunId | None = None
    session: str = ""
    refused: RunNow | None = None


def ran_now(result: StartedNow | RunNow) -> RanNow:
    """The answer to a run by hand."""
    if isinstance(result, RunNow):
        return RanNow(refused=result)
    return RanNow(result.occurrence, result.run, result.session)


def started_now(answer: RanNow) -> StartedNow | RunNow:
    """What was answered to a run by hand."""
    if answer.occurrence is None:
        return answer.refused or RunNow.OFF
    return StartedNow(answer.occurrence, answer.run, answer.session)
