"""Live parts are rendered once for all who look, and nobody misses a change (SPEC OPS-3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.web.api.wire import PING, PING_S
from goclaw_py.web.pages.hub import Hub, LivePart


class Page:
    """A part whose text changes when the test says so."""

    def __init__(self) -> None:
        self.text = "one"
        self.made = 0
        self.failure: Exception | None = None

    async def make(self) -> str:
        self.made += 1
        if self.failure is not None:
            raise self.failure
        return self.text

    async def stream(self, seen: str = "", hub: Hub | None = None) -> AsyncGenerator[bytes]:
        """What one who looks is sent, behind the beginning."""
        hub = hub or Hub(asyncio.Event())
        events = hub.stream(LivePart(("now",), self.make, every_s=1.0), seen)
        assert (await anext(events)).startswith(b"retry: ")
        return events


@pytest.fixture
def page() -> Page:
    return Page()


def data(event: bytes) -> str:
    lines = event.decode().splitlines()
    return "\n".join(line.removeprefix("data: ") for line in lines if line.startswith("data: "))


async def test_a_part_comes_at_once_and_then_only_when_it_has_changed(page: Page) -> None:
    events = await page.stream()
    assert data(await anext(events)) == "one"
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(5)
    assert not waiting.done()
    assert page.made > 4
    page.text = "two"
    assert data(await waiting) == "two"
    await events.aclose()


async def test_twenty_who_look_cost_one_rendering_a_tick(page: Page) -> None:
    hub = Hub(asyncio.Event())
    streams = [await page.stream(hub=hub) for _ in range(20)]
    assert {data(await anext(events)) for events in streams} == {"one"}
    page.made = 0
    await asyncio.sleep(10.5)
    assert page.made in (10, 11)
    for events in streams:
        await events.aclose()


async def test_nothing_is_made_for_nobody(page: Page) -> None:
    hub = Hub(asyncio.Event())
    events = await page.stream(hub=hub)
    await anext(events)
    await events.aclose()
    assert hub.watched == 0
    page.made = 0
    await asyncio.sleep(10)
    assert page.made == 0


async def test_whoever_comes_back_is_told_only_what_is_new(page: Page) -> None:
    hub = Hub(asyncio.Event())
    first = await page.stream(hub=hub)
    seen = (await anext(first)).decode().splitlines()[0].removeprefix("id: ")
    again = await page.stream(seen, hub)
    waiting = asyncio.ensure_future(anext(again))
    await asyncio.sleep(3)
    assert not waiting.done()
    page.text = "two"
    assert data(await waiting) == "two"
    other = await page.stream("of another process", hub)
    assert data(await anext(other)) == "two"
    for events in (first, again, other):
        await events.aclose()


async def test_what_cannot_be_made_is_said_and_made_later(
    page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    events = await page.stream()
    await anext(events)
    page.failure = StoreUnavailable("the database is away")
    away = await anext(events)
    assert b"event: away\n" in away
    assert data(away) == "the database is away"
    page.failure = ValueError("secret")
    assert data(await anext(events)) == "internal error; the log of the gateway has the details"
    assert "page_part_failed" in caplog.text
    page.failure = None
    assert data(await anext(events)) == "one"
    await events.aclose()


async def test_a_wrong_parameter_is_said_without_a_line_in_the_log(
    page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    """A guest could otherwise fill the log: a part is made again each second."""
    page.failure = HTTPException(422, "this is not a cursor")
    assert data(await anext(await page.stream())) == "this is not a cursor"
    assert "page_part_failed" not in caplog.text


async def test_an_idle_stream_says_that_it_lives(page: Page) -> None:
    events = await page.stream()
    await anext(events)
    before = asyncio.get_running_loop().time()
    assert await anext(events) == PING
    assert asyncio.get_running_loop().time() - before == pytest.approx(PING_S)
    await events.aclose()


async def test_all_streams_end_with_the_gateway(page: Page) -> None:
    closing = asyncio.Event()
    events = await page.stream(hub=Hub(closing))
    await anext(events)
    waiting = asyncio.ensure_future(anext(events, None))
    await asyncio.sleep(0)
    closing.set()
    assert await waiting is None


@given(text=st.text())
async def test_whatever_a_part_says_it_is_one_event(text: str) -> None:
    page = Page()
    page.text = text
    events = await page.stream()
    event = await anext(events)
    await events.aclose()
    head, *lines = event.split(b"\n")[1:-2]
    assert head == b"event: part"
    assert all(line.startswith(b"data: ") for line in lines)
    assert b"\r" not in event
    told = b"\n".join(line.removeprefix(b"data: ") for line in lines)
    same = text.encode("utf-8", "replace").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert told == same
