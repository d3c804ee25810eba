"""``goclaw_py.web.on_demand``: the apps are created at the first request."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.responses import PlainTextResponse

from goclaw_py.web.on_demand import AppsOnDemand, WebApps

pytestmark = pytest.mark.real_time


class Maker:
    """Creates apps, and counts how often; the first ``failures`` calls fail."""

    def __init__(self, failures: int = 0) -> None:
        self.calls = 0
        self.closing = asyncio.Event()
        self._failures = failures

    def __call__(self) -> WebApps:
        self.calls += 1
        if self.calls <= self._failures:
            raise ImportError("no framework")
        return WebApps(_says("api"), self.closing, _says("site"))


def _says(text: str) -> PlainTextResponse:
    return PlainTextResponse(text)


async def _get(app: object) -> str:
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # a bound method is one, too
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return (await client.get("/")).text


async def test_nothing_is_created_before_the_first_request() -> None:
    maker = Maker()
    apps = AppsOnDemand(maker)
    await apps.recheck_guests()
    assert maker.calls == 0
    assert await _get(apps.api) == "api"
    assert maker.calls == 1


async def test_requests_at_the_same_time_share_one_creation() -> None:
    maker = Maker()
    apps = AppsOnDemand(maker)
    api, site = await asyncio.gather(_get(apps.api), _get(apps.site))
    assert (api, site) == ("api", "site")
    assert maker.calls == 1


async def test_after_a_failure_the_next_request_tries_again() -> None:
    maker = Maker(failures=1)
    apps = AppsOnDemand(maker)
    with pytest.raises(ImportError, match="no framework"):
        await _get(apps.api)
    assert await _get(apps.api) == "api"


async def test_a_client_that_disconnects_does_not_end_the_creation_for_others() -> None:
    maker = Maker()
    apps = AppsOnDemand(maker)
    gone, stays = asyncio.create_task(_get(apps.api)), asyncio.create_task(_get(apps.api))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == "api"
    assert maker.calls == 1


async def test_the_end_of_a_server_ends_the_streams() -> None:
    maker = Maker()
    apps = AppsOnDemand(maker)
    apps.close()
    assert maker.calls == 0
    await _get(apps.api)
    assert maker.closing.is_set(), "it was created while the server stopped"
