"""Heartbeats: a card with the last beats of each agent, and what its buttons do (HB-9, HB-11)."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.heartbeat.mute import mute_end
from goclaw_py.heartbeat.views import HeartbeatView
from goclaw_py.model.errors import HeartbeatError, StoreUnavailable, UnknownAgent
from goclaw_py.model.ids import AgentName, HeartbeatRunId
from goclaw_py.ports.control import NotFound
from goclaw_py.ports.heartbeat import NoHeartbeat
from goclaw_py.web.api.error_json import status_of
from goclaw_py.web.pages.checklists import ChecklistDraft, ChecklistPages
from goclaw_py.web.pages.heartbeat_texts import (
    OUTCOMES,
    Card,
    HeartbeatLine,
    beat_line,
    card_of,
    steps_of,
)
from goclaw_py.web.pages.job_texts import sentence
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form, place

STRIP: Final = 100
SHOWN: Final = 15
_BEAT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_REFUSED: Final = {
    NoHeartbeat.ALREADY_RUNNING: "A heartbeat is already running.",
    NoHeartbeat.OFF: "No gateway runs heartbeats at the moment. Start one with: goclaw run.",
}
_CHOSEN: Final = {"yes": True, "no": False, "settings": None}


def routes(service: PageServices) -> list[Route]:
    """The cards, one agent, and what is done with it."""
    hearts = _Hearts(service)
    return [
        *service.routes(Page("/heartbeats", "heartbeats", "Heartbeats", hearts.look, every_s=2.0)),
        *service.routes(hearts.one),
        Route("/heartbeats/{agent}", hearts.show, methods=["GET"]),
        Route("/heartbeats/{agent}/dry-run", hearts.rehearse, methods=["GET"]),
        Route("/heartbeats/{agent}/checklist/{action}", hearts.list_, methods=["POST"]),
        Route("/heartbeats/{agent}/{action}", hearts.act, methods=["POST"]),
    ]


class _Hearts:
    """Answers what is asked of heartbeats."""

    def __init__(self, service: PageServices) -> None:
        self._desk = service
        self._checklists = ChecklistPages(service)
        params = ("agent", "beat", "outcome", "before")
        self.one = Page("/heartbeats/-/view", "heartbeat", "Heartbeat", self.look_at, params, 2.0)

    # ------------------------------------------------------------------ looking

    async def look(self, _query: Query) -> Facts:
        """What all cards show."""
        agents = self._desk.control.heartbeats.agents
        return {"cards": await asyncio.gather(*map(self._card, agents))}

    async def look_at(self, query: Query) -> Facts:
        """What the live part of one agent shows."""
        agent = self._known(query.get("agent", ""))
        outcome = next((one for one in OUTCOMES if one == query.get("outcome")), None)
        before = place(query.get("before"))
        card = await self._card(agent)
        rows = await self._desk.control.heartbeats.log(
            agent, limit=SHOWN + 1, outcome=outcome, before=before
        )
        return {
            **_title(agent),
            "card": card,
            "beat": query.get("beat", ""),
            "chosen": await self._chosen(card.view, query.get("beat", "")),
            "lines": [beat_line(row, card.view) for row in rows[:SHOWN]],
            "next": rows[SHOWN - 1].cursor if len(rows) > SHOWN else None,
            "later": before is not None,
            "outcomes": OUTCOMES,
            "outcome": outcome,
            "events": await self._desk.control.heartbeats.events(agent),
            "mute": "",
        }

    async def show(self, request: Request) -> Response:
        """One agent."""
        return await self._page(request, ChecklistDraft())

    async def rehearse(self, request: Request) -> Response:
        """What a beat by hand would do now; nothing happens, and no model is asked."""
        agent = self._known(request.path_params["agent"])
        hearts = self._desk.control.heartbeats
        view, rehearsal = await asyncio.gather(hearts.view(agent), hearts.rehearse(agent))
        facts: Facts = {
            "title": f"Dry run of the heartbeat of {agent}",
            "path": "/heartbeats",
            "agent": agent,
            "steps": steps_of(rehearsal, view),
            "prompt": rehearsal.prompt,
        }
        return self._desk.answer(request, "rehearsal.html", facts)

    async def _page(
        self, request: Request, draft: ChecklistDraft, error: str = "", status: int = 200
    ) -> Response:
        agent = self._known(request.path_params["agent"])
        # After an action that failed there is no list to be looked for in the address.
        given = request.query_params if request.method in ("GET", "HEAD") else {}
        params = ("beat", "outcome", "before")
        query = {key: str(given[key])[:512] for key in params if given.get(key)}
        down, standing = "", _title(agent)
        try:
            standing = await self._desk.facts(self.one, {**query, "agent": agent})
        except StoreUnavailable as away:
            # The checklist is a file, and what was typed is only here.
            down, status = _sentence(away), 503
        facts = {
            **standing,
            **await self._checklists.facts(agent, draft),
            "down": "" if down == error else down,
            "is_down": bool(down),
            "typed": draft,
            "mute": draft.mute,
            "error": error,
        }
        return self._desk.answer(request, "heartbeat.html", facts, status)

    async def _card(self, agent: AgentName) -> Card:
        hearts = self._desk.control.heartbeats
        view, beats = await asyncio.gather(hearts.view(agent), hearts.log(agent, limit=STRIP))
        return card_of(view, beats)

    async def _chosen(self, view: HeartbeatView, beat: str) -> HeartbeatLine | None:
        """The beat that was clicked on, if this agent has one of that id."""
        if not _BEAT_ID.fullmatch(beat):
            return None
        found = await self._desk.control.heartbeats.beat(HeartbeatRunId(beat))
        if found is None or found.agent != view.heartbeat.agent:
            return None
        return beat_line(found, view)

    def _known(self, name: str) -> AgentName:
        """The agent of this name. Raises ``NotFound``."""
        agent = AgentName(name)
        if agent not in self._desk.control.heartbeats.agents:
            raise NotFound(str(UnknownAgent(name)))
        return agent

    # ------------------------------------------------------------------ doing

    async def act(self, request: Request) -> Response:
        """What the buttons and forms of a card say."""
        fields = await form(request)
        agent = self._known(request.path_params["agent"])
        draft = ChecklistDraft(event=fields.get("text", ""), mute=fields.get("for", ""))
        here = "/heartbeats" if fields.get("back") == "all" else f"/heartbeats/{agent}"
        try:
            match request.path_params["action"]:
                case "run":
                    return await self._run(request, agent)
                case "switch":
                    notice = await self._switch(agent, fields.get("on", ""))
                case "mute":
                    notice = await self._mute(agent, draft.mute)
                case "events":
                    wake = fields.get("now") == "yes"
                    await self._desk.control.heartbeats.add_event(agent, draft.event, wake=wake)
                    notice = "told"
                case _:
                    raise HTTPException(404)
        except (HeartbeatError, StoreUnavailable) as error:
            return await self._page(request, draft, _sentence(error), status_of(error))
        return back_to(here, notice)

    async def list_(self, request: Request) -> Response:
        """What the forms of the checklist say."""
        fields = await form(request)
        agent = self._known(request.path_params["agent"])
        try:
            await self._checklists.change(agent, request.path_params["action"], fields)
        except HeartbeatError as error:
            draft = ChecklistDraft(text=fields.get("text"), item=fields.get("item", ""))
            return await self._page(request, draft, _sentence(error), status_of(error))
        return back_to(f"/heartbeats/{agent}", "saved")

    async def _run(self, request: Request, agent: AgentName) -> Response:
        begun = await self._desk.control.heartbeats.run_now(agent)
        if isinstance(begun, NoHeartbeat):
            return await self._page(request, ChecklistDraft(), _REFUSED[begun], 409)
        return back_to(f"/heartbeats/{agent}", "asked", beat=begun.beat)

    async def _switch(self, agent: AgentName, on: str) -> str:
        if on not in _CHOSEN:
            raise HeartbeatError("on must be yes, no, or settings")
        await self._desk.control.heartbeats.switch(agent, on=_CHOSEN[on])
        return "saved"

    async def _mute(self, agent: AgentName, how_long: str) -> str:
        hearts = self._desk.control.heartbeats
        view = await hearts.view(agent)
        until = mute_end(how_long, asked_at=view.now, zone=view.policy.zone)
        await hearts.mute(agent, until)
        return "unmuted" if until is None else "muted"


def _title(agent: AgentName) -> Facts:
    return {"title": f"Heartbeat of {agent}", "path": "/heartbeats", "agent": agent}


def _sentence(error: HeartbeatError | StoreUnavailable) -> str:
    return sentence(str(error))
