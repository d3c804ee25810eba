"""The pages of heartbeats: a table with the last runs, buttons, and an editor of HEARTBEAT.md.

A saved file replaces the version that the person saw. If the file was changed since, nothing is
saved, and the page shows both (SPEC HB-3, HB-9, HB-11).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.display_names import address
from goclaw_py.core.errors import (
    BadChecklist,
    ChecklistChanged,
    HeartbeatError,
    NotFound,
    StoreUnavailable,
    UnknownAgent,
)
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.text import sentence
from goclaw_py.operations.heartbeats.page_texts import OUTCOMES, WORDS, steps_of
from goclaw_py.schedule.heartbeat.checklist.checklist import marks, without
from goclaw_py.schedule.heartbeat.models import HeartbeatRun, NoHeartbeat
from goclaw_py.schedule.heartbeat.mute import mute_end
from goclaw_py.schedule.heartbeat.views import HeartbeatView
from goclaw_py.web.api.error_json import status_of
from goclaw_py.web.pages.filters import (
    Field,
    ListFilters,
    Tab,
    back_to_rows,
    one_of,
    params_of,
    time_range,
)
from goclaw_py.web.pages.parameters import place
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

_PARAMS: Final = params_of("agent")
_LOG_FILTERS: Final = ("outcome", "range", "before")
_STATES: Final[Mapping[str, Callable[[HeartbeatView], bool]]] = {
    "on": lambda view: view.heartbeat.is_on,
    "off": lambda view: not view.heartbeat.is_on,
    "running": lambda view: view.current is not None,
    "muted": lambda view: (
        view.heartbeat.muted_until is not None and view.heartbeat.muted_until > view.now
    ),
    "failing": lambda view: view.heartbeat.failures > 0,
}
"""The states by which heartbeats are listed. ``failing``: the last run failed."""

STRIP: Final = 40
"""The number of heartbeat runs that the page of an agent shows as a strip."""

SHORT_STRIP: Final = 12
"""The same for each agent of the list."""

SHOWN: Final = 15
_HEARTBEAT_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_REFUSED: Final = {
    NoHeartbeat.ALREADY_RUNNING: "A heartbeat run is already in progress.",
    NoHeartbeat.OFF: "No gateway runs heartbeats at the moment. To start one: goclaw run.",
}
_CHOSEN: Final = {"yes": True, "no": False, "settings": None}


@dataclass(frozen=True, slots=True)
class ChecklistDraft:
    """The input of an agent's page. ``text``: the whole file; None: unchanged."""

    text: str | None = None
    item: str = ""
    event: str = ""
    mute: str = ""


def routes(service: PageServices) -> list[Route]:
    """Return the list, the page of an agent, and their forms."""
    hearts = _Hearts(service)
    return [
        *service.routes(hearts.all),
        *service.routes(hearts.one),
        Route("/heartbeats/{agent}", hearts.show, methods=["GET"]),
        Route("/heartbeats/{agent}/dry-run", hearts.dry_run, methods=["GET"]),
        Route("/heartbeats/{agent}/checklist/{action}", hearts.list_, methods=["POST"]),
        Route("/heartbeats/{agent}/{action}", hearts.act, methods=["POST"]),
    ]


class _Hearts:
    """Handles requests about heartbeats."""

    def __init__(self, service: PageServices) -> None:
        self._service = service
        live, frame = "heartbeats/heartbeats_live.html", "heartbeats/heartbeats.html"
        names = "/heartbeats", "heartbeats", "Heartbeats"
        self.all = Page(*names, self.load, _PARAMS, 2.0, part=live, frame=frame)
        params = ("agent", "heartbeat_run", *_LOG_FILTERS)
        names = "/heartbeats/-/view", "heartbeat", "Heartbeat"
        live = "heartbeats/heartbeat_live.html"
        self.one = Page(*names, self.load_agent, params, 2.0, part=live)

    # ------------------------------------------------------------------ looking

    async def load(self, query: Query) -> Facts:
        """Return the facts of the heartbeats that match the filters."""
        agents = await self._service.control.heartbeats.agents()
        fields = (one_of("agent", "Agent", agents),)
        filters = ListFilters("/heartbeats", "heartbeats", query, fields, ("", *_STATES))
        wanted = filters.values["agent"]
        views = await asyncio.gather(
            *(self._view(agent) for agent in agents if wanted in ("", agent))
        )
        counts = [Tab("", len(views))]
        counts += [Tab(name, sum(map(is_in, views))) for name, is_in in _STATES.items()]
        shown = [view for view in views if _STATES.get(filters.show, bool)(view)]
        return {
            **WORDS,
            "rows": await asyncio.gather(*(self._row(view, SHORT_STRIP) for view in shown)),
            "filters": replace(filters, tabs=tuple(counts)),
            "named": [key for view in shown for key in _named(view)],
        }

    async def load_agent(self, query: Query) -> Facts:
        """Return the facts of an agent's live part."""
        agent = await self._known(query.get("agent", ""))
        words = {one: outcome_text(one) for one in OUTCOMES}
        fields = (Field("outcome", "Outcome", words), time_range("Started", "all"))
        filters = ListFilters(f"/heartbeats/{agent}", "runs", query, fields, anchor="#log")
        before = place(query)
        view, heartbeat_runs = await self._row(await self._view(agent))
        rows = await self._service.control.heartbeats.log(
            agent,
            limit=SHOWN + 1,
            outcome=filters.values["outcome"] or None,
            since=filters.since(self._service.now()),
            before=before,
        )
        return {
            **_title(agent),
            **WORDS,
            "view": view,
            "named": _named(view),
            "heartbeat_runs": heartbeat_runs,
            "heartbeat_run": query.get("heartbeat_run", ""),
            "chosen": await self._chosen(view, query.get("heartbeat_run", "")),
            "rows": rows[:SHOWN],
            "next": rows[SHOWN - 1].cursor if len(rows) > SHOWN else None,
            "later": before is not None,
            "filters": filters,
            "events": await self._service.control.heartbeats.events(agent),
            "mute": "",
        }

    async def show(self, request: Request) -> Response:
        """Show the page of an agent."""
        return await self._page(request, ChecklistDraft())

    async def dry_run(self, request: Request) -> Response:
        """Show what a manual run would do now; nothing happens, and no model is called."""
        agent = await self._known(request.path_params["agent"])
        hearts = self._service.control.heartbeats
        view, report = await asyncio.gather(hearts.view(agent), hearts.dry_run(agent))
        facts: Facts = {
            "title": f"Dry run of the heartbeat of {agent}",
            "path": "/heartbeats",
            "agent": agent,
            "steps": steps_of(report, view),
            "prompt": report.prompt,
        }
        return self._service.answer(request, "heartbeats/dry_run.html", facts)

    async def _page(
        self, request: Request, draft: ChecklistDraft, error: str = "", status: int = 200
    ) -> Response:
        agent = await self._known(request.path_params["agent"])
        # After an action that failed there is no list to be looked for in the address.
        given = request.query_params if request.method in ("GET", "HEAD") else {}
        params = ("heartbeat_run", *_LOG_FILTERS)
        query = {key: str(given[key])[:512] for key in params if given.get(key)}
        down, standing = "", _title(agent)
        try:
            standing = await self._service.facts(self.one, {**query, "agent": agent})
        except StoreUnavailable as away:
            # The checklist is a file, and what was typed is only here.
            down, status = _sentence(away), 503
        facts = {
            **standing,
            **await self._checklist(agent, draft),
            "down": "" if down == error else down,
            "is_down": bool(down),
            "typed": draft,
            "mute": draft.mute,
            "error": error,
        }
        return self._service.answer(request, "heartbeats/heartbeat.html", facts, status)

    async def _view(self, agent: AgentName) -> HeartbeatView:
        return await self._service.control.heartbeats.view(agent)

    async def _row(
        self, view: HeartbeatView, strip: int = STRIP
    ) -> tuple[HeartbeatView, list[HeartbeatRun]]:
        """Return a heartbeat and its last runs, the newest first."""
        log = self._service.control.heartbeats.log
        return view, await log(view.heartbeat.agent, limit=strip)

    async def _chosen(self, view: HeartbeatView, heartbeat_run: str) -> HeartbeatRun | None:
        """Return the selected heartbeat run, if it belongs to this agent."""
        if not _HEARTBEAT_RUN_ID.fullmatch(heartbeat_run):
            return None
        try:
            found = await self._service.control.heartbeats.heartbeat_run(
                HeartbeatRunId(heartbeat_run)
            )
        except NotFound:
            return None
        return found if found.agent == view.heartbeat.agent else None

    async def _known(self, name: str) -> AgentName:
        """Return the agent with this name. Raises ``NotFound``."""
        agent = AgentName(name)
        if agent not in await self._service.control.heartbeats.agents():
            raise NotFound(str(UnknownAgent(name)))
        return agent

    # ------------------------------------------------------------------ doing

    async def act(self, request: Request) -> Response:
        """Handle the buttons and forms of a heartbeat."""
        fields = await form(request)
        agent = await self._known(request.path_params["agent"])
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
                    now = fields.get("now") == "yes"
                    await self._service.control.heartbeats.add_event(agent, draft.event, now=now)
                    notice = "told"
                case _:
                    raise HTTPException(404)
        except (HeartbeatError, StoreUnavailable) as error:
            return await self._page(request, draft, _sentence(error), status_of(error))
        if here == "/heartbeats":
            return back_to_rows(here, notice, fields.get("rows", ""), ("agent",))
        return back_to(here, notice)

    async def list_(self, request: Request) -> Response:
        """Handle the forms of the checklist."""
        fields = await form(request)
        agent = await self._known(request.path_params["agent"])
        try:
            await self._change(agent, request.path_params["action"], fields)
        except HeartbeatError as error:
            draft = ChecklistDraft(text=fields.get("text"), item=fields.get("item", ""))
            return await self._page(request, draft, _sentence(error), status_of(error))
        return back_to(f"/heartbeats/{agent}", "saved")

    async def _run(self, request: Request, agent: AgentName) -> Response:
        begun = await self._service.control.heartbeats.run_now(agent)
        if isinstance(begun, NoHeartbeat):
            return await self._page(request, ChecklistDraft(), _REFUSED[begun], 409)
        notice = f"asked heartbeat {agent}"
        return back_to(f"/heartbeats/{agent}", notice, heartbeat_run=begun.heartbeat_run)

    async def _switch(self, agent: AgentName, on: str) -> str:
        if on not in _CHOSEN:
            raise HeartbeatError("on must be yes, no, or settings")
        chosen = _CHOSEN[on]
        await self._service.control.heartbeats.switch(agent, on=chosen)
        word = "as-set" if chosen is None else "turned-on" if chosen else "turned-off"
        return f"{word} {agent}"

    async def _mute(self, agent: AgentName, how_long: str) -> str:
        hearts = self._service.control.heartbeats
        view = await hearts.view(agent)
        until = mute_end(how_long, now=view.now, zone=view.policy.zone)
        await hearts.mute(agent, until)
        return f"{'unmuted' if until is None else 'muted'} {agent}"

    # ------------------------------------------------------------------ checklist

    async def _checklist(self, agent: AgentName, draft: ChecklistDraft) -> Facts:
        """Return the facts of the editor; with a ``draft``, also the present file."""
        try:
            found = await self._service.control.heartbeats.checklist(agent)
        except BadChecklist as error:
            mine = _plain(draft.text or "")
            return {"unreadable": str(error), "marks": (), "text": mine, "seen": "", "now": None}
        text = found.text
        now = text if draft.text is not None and _plain(draft.text) != _plain(text) else None
        return {
            "unreadable": "",
            "marks": marks(text),
            "text": text if draft.text is None else _plain(draft.text),
            "seen": found.version,
            "now": now,
        }

    async def _change(self, agent: AgentName, action: str, fields: Mapping[str, str]) -> None:
        """Apply a form. Raises ``BadChecklist``, and ``HTTPException`` for an unknown form."""
        hearts, seen = self._service.control.heartbeats, fields.get("seen", "")
        match action:
            case "add":
                await hearts.add_item(agent, fields.get("item", ""))
            case "done":
                await hearts.complete_item(agent, _number(fields), version=seen)
            case "delete":
                left = without(await self._seen(agent, seen), _number(fields))
                await hearts.write_checklist(agent, left, version=seen)
            case "save":
                wanted = _plain(fields.get("text", ""))
                # Browsers end each line of a text with two characters, whatever the file has.
                lines = "\r\n" if "\r\n" in await self._seen(agent, seen) else "\n"
                await hearts.write_checklist(agent, wanted.replace("\n", lines), version=seen)
            case _:
                raise HTTPException(404)

    async def _seen(self, agent: AgentName, version: str) -> str:
        """Return the file, if it is the version that was shown. Raises ``ChecklistChanged``."""
        found = await self._service.control.heartbeats.checklist(agent)
        if found.version != version:
            raise ChecklistChanged
        return found.text


def _named(view: HeartbeatView) -> list[str]:
    """Return the key of the name of the chat that gets the alerts."""
    return [] if view.route.target is None else [address(view.route.target)]


def _title(agent: AgentName) -> Facts:
    return {"title": f"Heartbeat of {agent}", "path": "/heartbeats", "agent": agent}


def _sentence(error: HeartbeatError | StoreUnavailable) -> str:
    return sentence(str(error))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _number(fields: Mapping[str, str]) -> int:
    text = fields.get("number", "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise BadChecklist("number: is required")
    return int(text)
