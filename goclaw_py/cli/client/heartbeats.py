"""Heartbeats as seen from another process: ``HeartbeatService`` over the gateway's socket."""

from __future__ import annotations

import re
from typing import Final

from goclaw_py.cli.client.calls import Params, Remote, RequestSender, call, segment
from goclaw_py.core.errors import BadChecklist, GoclawError, HeartbeatError, NotFound, UnknownAgent
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.operations.heartbeat import HeartbeatService
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse
from goclaw_py.schedule.heartbeat.models import HeartbeatRun
from goclaw_py.web.api import heartbeat_json, wire
from goclaw_py.web.api.error_json import NotAccepted

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Valid agent names; nothing else may be put in a URL path."""


def _checklist(answer: heartbeat_json.ChecklistAnswer) -> Checklist:
    return parse(answer.text)


class RemoteHeartbeatService(Remote):
    """Implements ``operations.heartbeat.HeartbeatService``; every method may raise ``NoGateway``.

    What needs no waiting (``agents``) is known once anything was asked.
    """

    def __init__(self, ask: RequestSender) -> None:
        self._ask = ask
        self._agents: tuple[AgentName, ...] | None = None

    @property
    def agents(self) -> tuple[AgentName, ...]:
        if self._agents is None:
            raise GoclawError("the list of agents was not requested from the gateway yet")
        return self._agents

    view = call(HeartbeatService.view, "GET /api/heartbeats/{agent}")
    log = call(
        HeartbeatService.log, "GET /api/heartbeats/{agent}/runs", without="/api/heartbeat-runs"
    )
    dry_run = call(HeartbeatService.dry_run, "GET /api/heartbeats/{agent}/dry-run")
    run_now = call(
        HeartbeatService.run_now,
        "POST /api/heartbeats/{agent}/run",
        read=heartbeat_json.begun_of,
    )
    switch = call(HeartbeatService.switch, "PUT /api/heartbeats/{agent}/switch")
    mute = call(HeartbeatService.mute, "PUT /api/heartbeats/{agent}/mute")
    add_event = call(HeartbeatService.add_event, "POST /api/agents/{agent}/events", wake="now")
    events = call(HeartbeatService.events, "GET /api/agents/{agent}/events")
    checklist = call(
        HeartbeatService.checklist, "GET /api/heartbeats/{agent}/checklist", read=_checklist
    )
    add_item = call(
        HeartbeatService.add_item,
        "POST /api/heartbeats/{agent}/checklist/items",
        read=_checklist,
    )
    complete_item = call(
        HeartbeatService.complete_item,
        "POST /api/heartbeats/{agent}/checklist/items/{number}/done",
        read=_checklist,
        expected="version",
    )
    write_checklist = call(
        HeartbeatService.write_checklist,
        "PUT /api/heartbeats/{agent}/checklist",
        read=_checklist,
        expected="version",
    )

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        try:
            raw = await self.send("GET", f"/api/heartbeat-runs/{segment(heartbeat_run)}")
        except NotFound:
            return None
        return wire.read(HeartbeatRun, raw)

    def segment(self, name: str, value: object) -> str:
        """Quote an argument of a path. Raises ``UnknownAgent``."""
        if name == "agent" and not _NAME.fullmatch(str(value)):
            raise UnknownAgent(str(value))
        return segment(value)

    async def send(
        self, method: str, path: str, body: object = None, params: Params | None = None
    ) -> bytes:
        """Send a request, after one for the list of agents."""
        if self._agents is None:
            raw = await self._ask("GET", "/api/agents")
            views = wire.read(list[heartbeat_json.AgentView], raw)
            self._agents = tuple(view.name for view in views)
        try:
            return await self._ask(method, path, body, params)
        except NotAccepted as error:
            # Raise the same error as the service does without a gateway.
            kind = BadChecklist if "/checklist" in path else HeartbeatError
            raise kind(str(error)) from error
