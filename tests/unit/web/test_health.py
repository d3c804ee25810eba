"""Probes and the door for Prometheus (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

import asyncio
from contextlib import closing

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.observability.readiness import Condition, Exposition, Vitals
from goclaw_py.web.api.health import prefers_openmetrics
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.front import WebAccess, tcp_server
from goclaw_py.web.tcp import listen_tcp, url_of
from tests.support.apps import lend_api
from tests.unit.web.fake_health import FakeHealth
from tests.unit.web.fakes import FakeControl
from tests.unit.web.harness import Api

pytestmark = pytest.mark.real_time

TOKEN = "0123456789abcdef"
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
"""What Prometheus 3 sends."""
OPEN = "application/openmetrics-text"


def http(health: FakeHealth | None = None) -> httpx.AsyncClient:
    app = lend_api(FakeControl(), health=health or FakeHealth())
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://x")


async def test_a_gateway_says_whether_it_is_ready_and_why_not() -> None:
    health = FakeHealth()
    async with http(health) as client:
        well = await client.get("/readyz")
        health.vitals = Vitals(database=False, channels=(), lag_s=0.0, draining=True)
        answer, bare = await client.get("/readyz"), await client.head("/readyz")
    assert (well.status_code, well.headers["cache-control"]) == (200, "no-store")
    body = well.json()
    assert (body["ready"], "error" in body) == (True, False)
    names = ["database", "channels", "lag", "draining"]
    assert [check["name"] for check in body["checks"]] == names
    assert {check["state"] for check in body["checks"]} == {Condition.OK}
    assert all(check["words"] for check in body["checks"])
    body = answer.json()
    assert (answer.status_code, body["ready"]) == (503, False)
    assert body["error"].startswith("not ready: the database does not answer; ")
    failing = [one["name"] for one in body["checks"] if one["state"] == "failing"]
    assert failing == ["database", "draining"]
    assert (bare.status_code, bare.content) == (503, b"")


async def test_figures_come_in_the_format_that_is_asked_for() -> None:
    async with http() as client:
        plain = await client.get("/metrics")
        rich = await client.get("/metrics", headers={"accept": PROMETHEUS})
    assert (plain.status_code, plain.text) == (200, "a 1.0\n")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert rich.headers["content-type"] == "application/openmetrics-text; version=1.0.0"
    assert rich.text == "# EOF\n"


@pytest.mark.parametrize(("accept", "wanted"), [
    ([], False), (["*/*"], False), (["text/plain"], False),
    ([PROMETHEUS], True), ([OPEN], True),
    (["Application/OpenMetrics-Text ; Version=1.0.0"], True),
    (["text/plain", OPEN], True), ([f"{OPEN};q=0.1, text/plain;q=0.9"], False),
    *(([f"{OPEN};{more}"], False) for more in ("q=0", "q=nan", "q=1e400", ";;=;q=")),
    *(([f"{OPEN};version={more}"], False) for more in ("2.0.0", "\x00")),
])  # fmt: skip
def test_openmetrics_is_for_those_who_prefer_it(accept: list[str], wanted: bool) -> None:
    assert prefers_openmetrics(accept) is wanted


@given(st.lists(st.text(alphabet="aopenmtrics-/x;=,q.019 \t\"'\x00\xff", max_size=60), max_size=4))
def test_no_accept_header_breaks_it(accept: list[str]) -> None:
    assert prefers_openmetrics(accept) in (True, False)


async def test_without_a_running_gateway_there_is_neither(api: Api) -> None:
    for path, status in (("/healthz", 200), ("/readyz", 404), ("/metrics", 404)):
        assert (await api.client.get(path)).status_code == status


async def test_a_metrics_read_that_meets_a_bug_is_an_error_in_words() -> None:
    class Broken(FakeHealth):
        async def metrics(self, *, openmetrics: bool) -> Exposition:
            raise ValueError(f"secret {openmetrics}")

    async with http(Broken()) as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["error"]


async def test_over_tcp_figures_need_the_token_and_probes_do_not() -> None:
    app = lend_api(FakeControl(), health=FakeHealth())
    with closing(listen_tcp("127.0.0.1", 0)) as listener:
        server = tcp_server(
            listener, [], app, WebAccess("127.0.0.1", (), TOKEN), on_stop=closing_of(app).set
        )
        task = asyncio.create_task(server.run())
        try:
            async with httpx.AsyncClient(base_url=url_of(listener), trust_env=False) as client:
                for method, path, status in (
                    *(("GET", "/readyz", 200), ("HEAD", "/readyz", 200), ("POST", "/readyz", 401)),
                    *(("GET", "/readyz/../metrics", 401), ("GET", "/metrics", 401)),
                ):
                    assert (await client.request(method, path)).status_code == status
                wrong = {"authorization": f"Bearer {TOKEN}x"}
                assert (await client.get("/metrics", headers=wrong)).status_code == 401
                right = {"authorization": f"Bearer {TOKEN}"}
                assert (await client.get("/metrics", headers=right)).text == "a 1.0\n"
        finally:
            server.stop()
            await task


async def test_they_are_described() -> None:
    async with http() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    ready = paths["/readyz"]["get"]["responses"]
    schemas = [ready[code]["content"]["application/json"]["schema"] for code in ("200", "503")]
    assert [one["$ref"].rpartition("/")[2] for one in schemas] == ["Ready", "NotReady"]
    figures = paths["/metrics"]["get"]["responses"]["200"]["content"]
    assert set(figures) == {"text/plain", "application/openmetrics-text"}
