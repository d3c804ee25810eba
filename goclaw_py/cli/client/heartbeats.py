"""Heartbeats as seen from another process: ``HeartbeatService`` over the gateway's socket."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final
from urllib.parse import quote

from goclaw_py.cli.client.ask import Params, RequestSender, given
from goclaw_py.cli.client.refusals import NotAccepted
from goclaw_py.heartbeat.checklist.checklist import Checklist, parse
from goclaw_py.heartbeat.models import HeartbeatEvent, HeartbeatRun
from goclaw_py.heartbeat.views import DryRunReport, HeartbeatView
from goclaw_py.model.errors import BadChecklist, GoclawError, HeartbeatError, UnknownAgent
from goclaw_py.model.ids import AgentName, HeartbeatRunId
from goclaw_py.model.pagination import Cursor
from goclaw_py.ports.control import NotFound
from goclaw_py.ports.heartbeat import HeartbeatStarted, NoHeartbeat
from goclaw_py.web.api import heartbeat_json, wire

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Valid agent names; nothing else may be put in a URL path."""


class RemoteHeartbeatService:
    """Implements ``ports.heartbeat.HeartbeatService``; every method may raise ``NoGateway``.

    What needs no waiting (``agents``) is known once anything was asked.
    """

    def __init__(self, ask: RequestSender) -> None:
        self._ask = ask
        self._agents: tuple[AgentName, ...] | None = None

    @property
    def agents(self) -> tuple[AgentName, ...]:
        """See ``HeartbeatService``."""
        if self._agents is None:
            raise GoclawError("the list of agents was not requested from the gateway yet")
        return self._agents

    # ------------------------------------------------------------------ looking

    async def view(self, agent: AgentName) -> HeartbeatView:
        """See ``HeartbeatService``."""
        return wire.read(HeartbeatView, await self._request("GET", _path(agent)))

    async def log(
        self,
        agent: AgentName | None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        """See ``HeartbeatService``."""
        path = "/api/beats" if agent is None else _path(agent, "beats")
        params = given(limit=limit, outcome=outcome, before=before)
        return wire.read(list[HeartbeatRun], await self._request("GET", path, params=params))

    async def beat(self, beat: HeartbeatRunId) -> HeartbeatRun | None:
        """See ``HeartbeatService``."""
        try:
            raw = await self._request("GET", f"/api/beats/{quote(beat, safe='')}")
        except NotFound:
            return None
        return wire.read(HeartbeatRun, raw)

    async def rehearse(self, agent: AgentName) -> DryRunReport:
        """See ``HeartbeatService``."""
        return wire.read(DryRunReport, await self._request("GET", _path(agent, "rehearsal")))

    # ------------------------------------------------------------------ changing

    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        """See ``HeartbeatService``."""
        raw = await self._request("POST", _path(agent, "run"))
        return heartbeat_json.begun_of(wire.read(heartbeat_json.RanHeartbeat, raw))

    async def switch(self, agent: AgentName, *, on: bool | None) -> HeartbeatView:
        """See ``HeartbeatService``."""
        body = {"on": on}
        return wire.read(HeartbeatView, await self._request("PUT", _path(agent, "switch"), body))

    async def mute(self, agent: AgentName, until: datetime | None) -> HeartbeatView:
        """See ``HeartbeatService``."""
        body = {"until": until}
        return wire.read(HeartbeatView, await self._request("PUT", _path(agent, "mute"), body))

    # ------------------------------------------------------------------ events

    async def add_event(self, agent: AgentName, text: str, *, wake: bool) -> HeartbeatEvent:
        """See ``HeartbeatService``."""
        path, body = f"/api/agents/{_name(agent)}/events", {"text": text, "now": wake}
        return wire.read(HeartbeatEvent, await self._request("POST", path, body))

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """See ``HeartbeatService``."""
        path = f"/api/agents/{_name(agent)}/events"
        return wire.read(list[HeartbeatEvent], await self._request("GET", path))

    # ------------------------------------------------------------------ checklist

    async def checklist(self, agent: AgentName) -> Checklist:
        """See ``HeartbeatService``."""
        return await self._checklist("GET", _path(agent, "checklist"))

    async def add_item(self, agent: AgentName, text: str) -> Checklist:
        """See ``HeartbeatService``."""
        return await self._checklist("POST", _path(agent, "checklist/items"), {"text": text})

    async def complete_item(
        self, agent: AgentName, number: int, *, expected: str | None = None
    ) -> Checklist:
        """See ``HeartbeatService``."""
        path, body = _path(agent, f"checklist/items/{number}/done"), {"version": expected}
        return await self._checklist("POST", path, body)

    async def write_checklist(
        self, agent: AgentName, text: str, *, expected: str | None = None
    ) -> Checklist:
        """See ``HeartbeatService``."""
        body = {"text": text, "version": expected}
        return await self._checklist("PUT", _path(agent, "checklist"), body)

    # ------------------------------------------------------------------ HTTP

    async def _checklist(self, method: str, path: str, body: object = None) -> Checklist:
        try:
            raw = await self._request(method, path, body)
            return parse(wire.read(heartbeat_json.ChecklistAnswer, raw).text)
        except HeartbeatError as error:
            if type(error) is HeartbeatError:
                raise BadChecklist(str(error)) from error
            raise

    async def _request(
        self, method: str, path: str, body: object = None, *, params: Params | None = None
    ) -> bytes:
        if self._agents is None:
            raw = await self._ask("GET", "/api/agents")
            views = wire.read(list[heartbeat_json.AgentView], raw)
            self._agents = tuple(view.name for view in views)
        try:
            return await self._ask(method, path, body, params=params)
        except NotAccepted as error:
            # Raise the same error as the service does without a gateway.
            raise HeartbeatError(str(error)) from error


def _name(agent: AgentName) -> str:
    if not _NAME.fullmatch(agent):
        raise UnknownAgent(agent)
    return agent


def _path(agent: AgentName, what: str = "") -> str:
    path = f"/api/heartbeats/{_name(agent)}"
    return f"{path}/{what}" if what else path
