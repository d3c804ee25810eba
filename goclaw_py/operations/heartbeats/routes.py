"""Heartbeats in the API (SPEC HB-9, HB-11, HB-13)."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field, StrictBool

from goclaw_py.core.errors import HeartbeatError
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.time.durations import read as read_interval
from goclaw_py.operations.control import Control
from goclaw_py.operations.declare import declared
from goclaw_py.operations.heartbeats.answers import (
    AgentView,
    ChecklistAnswer,
    HeartbeatAnswer,
    RanHeartbeat,
    answer_of,
    checklist_answer,
    ran_heartbeat_run,
)
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist
from goclaw_py.schedule.heartbeat.models import HeartbeatEvent, HeartbeatRun
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView
from goclaw_py.web.api.error_json import DetailedError
from goclaw_py.web.api.paging import LINK, Before, Limit, Page, Time
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import Body, Instant, ShortText, Text

Outcome = Annotated[
    str | None, Query(max_length=64, pattern=r"^[a-z_:]+$", examples=["ok", "skipped:empty"])
]
Agent = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", examples=["main"])]
HeartbeatTimes = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
Number = Annotated[int, Path(ge=1, le=100_000)]

_NOBODY: Final = {
    "error": "there is no agent 'nobody'",
    "kind": "UnknownAgent",
    "facts": {"agent": "nobody"},
}
_FAULTS: Final[dict[int | str, dict[str, Any]]] = {
    code: {"model": DetailedError, "content": {"application/json": {"example": _NOBODY}}}
    for code in (404, 409)
}


class EventBody(Body):
    """An event for an agent's next heartbeat run; with ``now``, that run is requested now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The build is red."}]})

    text: Text
    now: StrictBool = False


class SwitchBody(Body):
    """Whether a heartbeat is on; null: the settings decide."""

    on: StrictBool | None


class MuteBody(Body):
    """How long a heartbeat is muted: ``until`` a time, or ``for`` a duration such as ``2h``.

    ``{"until": null}`` unmutes it.
    """

    model_config = ConfigDict(
        # A null in an example is dropped on the way into OpenAPI, and {} is no such body.
        json_schema_extra={"examples": [{"for": "2h"}, {"until": "2030-01-01T09:00:00+01:00"}]}
    )

    until: Instant | None = None
    for_: Annotated[ShortText | None, Field(alias="for")] = None


Seen = Annotated[str | None, Field(max_length=64)]


class ChecklistBody(Body):
    """The whole HEARTBEAT.md.

    With the ``version`` that was read, it is written only if the file has not changed since.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "- [ ] look at the mail"}]})

    text: Text
    version: Seen = None


class DoneBody(Body):
    """The ``version`` of the checklist in which the number was read."""

    version: Seen = None


class ItemBody(Body):
    """A new item, without bullet and box."""

    text: Text


def muted_until(body: MuteBody, now: datetime) -> datetime | None:
    """Return the end of a mute in UTC, None to unmute.

    Raises ``HeartbeatError`` for a body with neither or both, and for a past time, and
    ``BadInterval``.
    """
    if len(body.model_fields_set) != 1:
        raise HeartbeatError(
            'set either until (a time) or for (a duration such as 2h); {"until": null} ends a mute'
        )
    if "for_" in body.model_fields_set:
        if body.for_ is None:
            raise HeartbeatError(
                "for: must be a duration such as 30m, 2h or 1d; to end a mute, set until to null"
            )
        return now + read_interval(body.for_)
    if body.until is None:
        return None
    try:
        until = body.until.astimezone(UTC)
    except OverflowError:
        raise HeartbeatError("until: no calendar has this time in UTC") from None
    if until <= now:
        raise HeartbeatError(
            f"until: {until.isoformat()} is in the past; to end a mute, set until to null"
        )
    return until


def heartbeat_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter(responses=_FAULTS, tags=["heartbeats"])
    _looking(api, control)
    _changing(api, control)
    _checklist(api, control)
    return api


def _looking(api: APIRouter, control: Control) -> None:
    @api.get("/api/heartbeats")
    async def every() -> list[HeartbeatAnswer]:
        """List the heartbeats of all agents, in the order of the settings."""
        service = control.heartbeats
        return [answer_of(await service.view(agent)) for agent in await service.agents()]

    @serve(api, HeartbeatService.view)
    async def one(agent: Agent) -> HeartbeatAnswer:
        """Get a heartbeat, with the reason of its last result and its next run."""
        return await _view(control.heartbeats.view(AgentName(agent)))

    @serve(api, HeartbeatService.log, responses=LINK)
    async def heartbeat_runs(
        page: Page,
        agent: Agent,
        before: Before,
        limit: Limit = 50,
        outcome: Outcome = None,
        since: Time | None = None,
    ) -> list[HeartbeatRun]:
        """List the runs of a heartbeat, the newest first; `outcome` as in `skipped:empty`."""
        rows = await control.heartbeats.log(
            AgentName(agent), limit=limit + 1, outcome=outcome, since=since, before=before
        )
        return page.of(rows, limit)

    @serve(api, HeartbeatService.dry_run)
    async def dry_run(agent: Agent) -> DryRunReport:
        """Show what a run would do now: all checks, without a model."""
        return await control.heartbeats.dry_run(AgentName(agent))


def _changing(api: APIRouter, control: Control) -> None:
    @serve(api, HeartbeatService.run_now)
    async def run(agent: Agent) -> RanHeartbeat:
        """Run a heartbeat now; its run is below ``/api/heartbeat-runs``."""
        return ran_heartbeat_run(await control.heartbeats.run_now(AgentName(agent)))

    @serve(api, HeartbeatService.switch)
    async def switch(agent: Agent, body: SwitchBody) -> HeartbeatAnswer:
        """Turn a heartbeat on or off permanently; null: the settings decide."""
        return await _view(control.heartbeats.switch(AgentName(agent), on=body.on))

    @serve(api, HeartbeatService.mute)
    async def mute(agent: Agent, body: MuteBody) -> HeartbeatAnswer:
        """Mute or unmute a heartbeat."""
        service, name = control.heartbeats, AgentName(agent)
        until = muted_until(body, (await service.view(name)).now)
        return await _view(service.mute(name, until))


def _checklist(api: APIRouter, control: Control) -> None:
    @serve(api, HeartbeatService.checklist)
    async def checklist(agent: Agent) -> ChecklistAnswer:
        """Get HEARTBEAT.md, with its open items."""
        return await _list(control.heartbeats.checklist(AgentName(agent)))

    @serve(api, HeartbeatService.write_checklist)
    async def write(agent: Agent, body: ChecklistBody) -> ChecklistAnswer:
        """Replace HEARTBEAT.md; with `version`, only if it was not changed since (409)."""
        service, name = control.heartbeats, AgentName(agent)
        return await _list(service.write_checklist(name, body.text, version=body.version))

    @serve(api, HeartbeatService.add_item)
    async def add(agent: Agent, body: ItemBody) -> ChecklistAnswer:
        """Append an item to HEARTBEAT.md."""
        return await _list(control.heartbeats.add_item(AgentName(agent), body.text))

    @serve(api, HeartbeatService.complete_item)
    async def done(agent: Agent, number: Number, body: DoneBody | None = None) -> ChecklistAnswer:
        """Check off an item by its number; with `version`, only in that list (409)."""
        service, name = control.heartbeats, AgentName(agent)
        seen = None if body is None else body.version
        return await _list(service.complete_item(name, number, version=seen))


def heartbeat_run_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/heartbeat-runs``."""
    api = APIRouter(tags=["heartbeats"])

    @api.get(declared(HeartbeatService.log).without, responses=LINK)
    async def log(
        page: Page,
        before: Before,
        limit: Limit = 50,
        outcome: Outcome = None,
        since: Time | None = None,
    ) -> list[HeartbeatRun]:
        """List the heartbeat runs of all agents, the newest first."""
        rows = await control.heartbeats.log(
            None, limit=limit + 1, outcome=outcome, since=since, before=before
        )
        return page.of(rows, limit)

    @serve(api, HeartbeatService.heartbeat_run)
    async def one(heartbeat_run: HeartbeatTimes) -> HeartbeatRun:
        """Get a heartbeat run by its whole id."""
        return await control.heartbeats.heartbeat_run(HeartbeatRunId(heartbeat_run))

    return api


def agent_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/agents``."""
    api = APIRouter(responses=_FAULTS, tags=["heartbeats"])

    @serve(api, HeartbeatService.agents)
    async def agents() -> list[AgentView]:
        """List all agents, in the order of the settings."""
        return [AgentView(name) for name in await control.heartbeats.agents()]

    @serve(api, HeartbeatService.events)
    async def events(agent: Agent) -> list[HeartbeatEvent]:
        """List the events for an agent's next heartbeat run, the oldest first."""
        return await control.heartbeats.events(AgentName(agent))

    @serve(api, HeartbeatService.add_event, status_code=201)
    async def tell(agent: Agent, body: EventBody) -> HeartbeatEvent:
        """Add an event to an agent's next heartbeat run; with ``now``, request that run now."""
        return await control.heartbeats.add_event(AgentName(agent), body.text, now=body.now)

    return api


async def _view(view: Awaitable[HeartbeatView]) -> HeartbeatAnswer:
    return answer_of(await view)


async def _list(checklist: Awaitable[Checklist]) -> ChecklistAnswer:
    return checklist_answer(await checklist)
