"""The dashboard over fakes, made once: to make it costs more than to ask it."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp

from goclaw_py.app.log_ring import LogRing
from goclaw_py.web.api.routes import make_api
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.pages import make_site
from goclaw_py.web.pages.services import notice_of
from goclaw_py.web.sign_ins import SignIns, settings_actor
from tests.support.memory_store import MemoryStore
from tests.unit.web.fakes import NOW, FakeControl

TOKEN = "0123456789abcdef"
HTML = {"accept": "text/html,application/xhtml+xml"}
ORIGIN = {"origin": "http://localhost:8420"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


class World:
    """One control behind a dashboard that needs no token, and behind one that does."""

    def __init__(self) -> None:
        self.control = FakeControl()
        self.logs = LogRing()
        self.store = MemoryStore()
        self.closing = asyncio.Event()
        self.now_s = NOW.timestamp()
        api = make_api(self.control, logs=self.logs)
        api.state.closing = self.closing
        self.open = self._app(api, "")
        self.locked = self._app(api, TOKEN)

    def _app(self, api: FastAPI, token: str) -> ASGIApp:
        access = WebAccess("127.0.0.1", (), token, lambda: self.now_s)
        access = access.with_store(self.store)
        self.sign_ins = access.sign_ins
        halves = ApiOrDashboard(api, make_site(self.control, api, access))
        return Guard(halves, address=access.address, sign_ins=access.sign_ins)

    def reset(self) -> None:
        """As it was at first."""
        # A test may have put a function in the place of a method.
        vars(self.control).clear()
        vars(self.control).update(vars(FakeControl()))
        vars(self.logs).update(vars(LogRing()))
        # An event belongs to the first loop that waits for it, and each test has a loop of its own.
        vars(self.closing).update(vars(asyncio.Event()))
        self.now_s = NOW.timestamp()
        vars(self.store).update(vars(MemoryStore()))
        if self.sign_ins is not None:
            vars(self.sign_ins).update(vars(SignIns(self.store, TOKEN, lambda: self.now_s)))

    async def sign_in(self) -> str:
        """The cookie of a browser that is signed in."""
        assert self.sign_ins is not None
        return await self.sign_ins.begin(settings_actor("192.0.2.1"), "Firefox")


class Browser(httpx.AsyncClient):
    """Asks for pages as a browser does, and sends forms from pages of the site."""

    def __init__(self, app: ASGIApp) -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        hooks = {"response": [_has_a_known_notice]}
        super().__init__(
            transport=transport, base_url="http://localhost:8420", headers=HTML, event_hooks=hooks
        )

    async def send_form(self, path: str, **fields: object) -> httpx.Response:
        content = urlencode(fields).encode()
        return await self.post(path, content=content, headers={**ORIGIN, **FORM})

    async def says(self, path: str, *parts: str, status: int = 200) -> str:
        """All that a page says, on one line, as people read it; these parts are in it."""
        return _said(await self.get(path), status, parts)

    async def leads(self, path: str, place: str, **fields: object) -> None:
        """A form is accepted, and the browser goes on to that place."""
        answer = await self.send_form(path, **fields)
        assert (answer.status_code, answer.headers["location"]) == (303, place)

    async def refuses(self, path: str, status: int, *parts: str, **fields: object) -> str:
        """A form is refused with these words; the page as HTML."""
        answer = await self.send_form(path, **fields)
        _said(answer, status, parts)
        return answer.text


async def _has_a_known_notice(answer: httpx.Response) -> None:
    """A redirect after an action says something: an unknown notice shows nothing."""
    notice = httpx.URL(answer.headers.get("location", "/")).params.get("notice")
    assert notice is None or notice_of(notice), notice


def _said(answer: httpx.Response, status: int, parts: tuple[str, ...]) -> str:
    said = " ".join(html.unescape(answer.text).split())
    assert answer.status_code == status, said
    assert [part for part in parts if part not in said] == [], said
    return said


_world: World | None = None


@pytest.fixture
def world() -> World:
    global _world  # noqa: PLW0603  (made when the first test wants it)
    if _world is None:
        _world = World()
    _world.reset()
    return _world


@pytest.fixture
def control(world: World) -> FakeControl:
    return world.control


@pytest.fixture
def logs(world: World) -> LogRing:
    return world.logs


@pytest.fixture
async def browser(world: World) -> AsyncIterator[Browser]:
    async with Browser(world.open) as made:
        yield made


@pytest.fixture
async def locked(world: World) -> AsyncIterator[Browser]:
    async with Browser(world.locked) as made:
        yield made
