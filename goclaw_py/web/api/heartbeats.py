"""Heartbeats in the API (SPEC HB-9, HB-11, HB-13)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query

from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.operations.control import Control
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist
from goclaw_py.schedule.heartbeat.models import HeartbeatEvent, HeartbeatRun
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView
from goclaw_py.web.api.error_json import DetailedError
from goclaw_py.web.api.heartbeat_json import (
    AgentView,
    ChecklistAnswer,
    ChecklistBody,
    DoneBody,
    EventBody,
    HeartbeatAnswer,
    ItemBody,
    MuteBody,
    RanHeartbeat,
    SwitchBody,
    answer_of,
    checklist_answer,
    muted_until,
    ran_heartbeat_run,
)
from goclaw_py.web.api.paging import LINK, Before, Instant, Limit, Page, in_utc

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


def heartbeat_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/heartbeats``."""
    api = APIRouter(responses=_FAULTS, tags=["heartbeats"])
    _looking(api, control)
    _changing(api, control)
    _checklist(api, control)
    return api


def _looking(api: APIRouter, control: Control) -> None:
    @api.get("")
    async def every() -> list[HeartbeatAnswer]:
        """List the heartbeats of all agents, in the order of the settings."""
        service = control.heartbeats
        return [answer_of(await service.view(agent)) for agent in service.agents]

    @api.get("/{agent}")
    async def one(agent: Agent) -> HeartbeatAnswer:
        """Get a heartbeat, with the reason of its last result and its next run."""
        return await _view(control.heartbeats.view(AgentName(agent)))

    @api.get("/{agent}/runs", responses=LINK)
    async def heartbeat_runs(
        page: Page,
        agent: Agent,
        before: Before,
        limit: Limit = 50,
        outcome: Outcome = None,
        since: Instant | None = None,
    ) -> list[HeartbeatRun]:
        """List the runs of a heartbeat, the newest first; `outcome` as in `skipped:empty`."""
        name, begun = AgentName(agent), None if since is None else in_utc("since", since)
        rows = await control.heartbeats.log(
            name, limit=limit + 1, outcome=outcome, since=begun, before=before
        )
        return page.of(rows, limit)

    @api.get("/{agent}/dry-run")
    async def dry_run(agent: Agent) -> DryRunReport:
        """Show what a run would do now: all checks, without a model."""
        return await control.heartbeats.dry_run(AgentName(agent))


def _changing(api: APIRouter, control: Control) -> None:
    @api.post("/{agent}/run")
    async def run(agent: Agent) -> RanHeartbeat:
        """Run a heartbeat now; its run is below ``/api/heartbeat-runs``."""
        return ran_heartbeat_run(await control.heartbeats.run_now(AgentName(agent)))

    @api.put("/{agent}/switch")
    async def switch(agent: Agent, body: SwitchBody) -> HeartbeatAnswer:
        """Turn a heartbeat on or off permanently; null: the settings decide."""
        return await _view(control.heartbeats.switch(AgentName(agent), on=body.on))

    @api.put("/{agent}/mute")
    async def mute(agent: Agent, body: MuteBody) -> HeartbeatAnswer:
        """Mute or unmute a heartbeat."""
        service, name = control.heartbeats, AgentName(agent)
        until = muted_until(body, (await service.view(name)).now)
        return await _view(service.mute(name, until))


def _checklist(api: APIRouter, control: Control) -> None:
    @api.get("/{agent}/checklist")
    async def checklist(agent: Agent) -> ChecklistAnswer:
        """Get HEARTBEAT.md, with its open items."""
        return await _list(control.heartbeats.checklist(AgentName(agent)))

    @api.put("/{agent}/checklist")
    async def write(agent: Agent, body: ChecklistBody) -> ChecklistAnswer:
        """Replace HEARTBEAT.md; with `version`, only if it was not changed since (409)."""
        service, name = control.heartbeats, AgentName(agent)
        return await _list(service.write_checklist(name, body.text, expected=body.version))

    @api.post("/{agent}/checklist/items")
    async def add(agent: Agent, body: ItemBody) -> ChecklistAnswer:
        """Append an item to HEARTBEAT.md."""
        return await _list(control.heartbeats.add_item(AgentName(agent), body.text))

    @api.post("/{agent}/checklist/items/{number}/done")
    async def done(agent: Agent, number: Number, body: DoneBody | None = None) -> ChecklistAnswer:
        """Check off an item by its number; with `version`, only in that list (409)."""
        service, name = control.heartbeats, AgentName(agent)
        seen = None if body is None else body.version
        return await _list(service.complete_item(name, number, expected=seen))


def heartbeat_run_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/heartbeat-runs``."""
    api = APIRouter(tags=["heartbeats"])

    @api.get("", responses=LINK)
    async def log(
        page: Page,
        before: Before,
        limit: Limit = 50,
        outcome: Outcome = None,
        since: Instant | None = None,
    ) -> list[HeartbeatRun]:
        """List the heartbeat runs of all agents, the newest first."""
        begun = None if since is None else in_utc("since", since)
        rows = await control.heartbeats.log(
            None, limit=limit + 1, outcome=outcome, since=begun, before=before
        )
        return page.of(rows, limit)

    @api.get("/{heartbeat_run}")
    async def one(heartbeat_run: HeartbeatTimes) -> HeartbeatRun:
        """Get a heartbeat run by its whole id."""
        found = await control.heartbeats.heartbeat_run(HeartbeatRunId(heartbeat_run))
        if found is None:
            raise NotFound(f"there is no heartbeat run {heartbeat_run!r}")
        return found

    return api


def agent_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/agents``."""
    api = APIRouter(responses=_FAULTS, tags=["heartbeats"])

    @api.get("")
    async def agents() -> list[AgentView]:
        """List all agents, in the order of the settings."""
        return [AgentView(name) for name in control.heartbeats.agents]

    @api.get("/{agent}/events")
    async def events(agent: Agent) -> list[HeartbeatEvent]:
        """List the events for an agent's next heartbeat run, the oldest first."""
        return await control.heartbeats.events(AgentName(agent))

    @api.post("/{agent}/events", status_code=201)
    async def tell(agent: Agent, body: EventBody) -> HeartbeatEvent:
        """Add an event to an agent's next heartbeat run; with ``now``, request that run now."""
        return await control.heartbeats.add_event(AgentName(agent), body.text, wake=body.now)

    return api


async def _view(asked: Awaitable[HeartbeatView]) -> HeartbeatAnswer:
    return answer_of(await asked)


async def _list(asked: Awaitable[Checklist]) -> ChecklistAnswer:
    return checklist_answer(await asked)
