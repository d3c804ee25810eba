"""Everybody may do what their role allows, and nothing else, on every route (SPEC SEC-8).

Promised: each route of API and dashboard has its least role in one table; a route that is not in it
is for admins; a refusal names the role that is needed, as JSON or as a page, and is logged.
Tried: every route as each of ten kinds of people; paths that a router reads differently; methods
that no route has; jobs that run programs; two cookies at once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import httpx
import pytest
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from goclaw_py.core.actors import AccessRole, Actor, ActorKind, Least
from goclaw_py.core.web_links import secret_hash
from goclaw_py.records import Token
from goclaw_py.records.tokens import PREFIX
from goclaw_py.web import roles
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.openid.client import OpenIdClient
from goclaw_py.web.pages import make_site
from goclaw_py.web.roles import least_of, level_of, may, routes
from goclaw_py.web.signin import COOKIE, GUEST_COOKIE
from tests.support.apps import lend_api
from tests.support.memory_store import MemoryStore
from tests.unit.web.fakes import NOW, FakeControl
from tests.unit.web.pages.conftest import FORM, HTML, ORIGIN

SETTINGS_TOKEN = "a-token-of-thirty-two-characters"
PAGES: Final = ("/static/", "/login")
OPEN: Final = {
    ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/login"), ("POST", "/login"),
    ("GET", "/login/openid"), ("GET", "/login/openid/callback"),
}  # fmt: skip

TOKENS: Final = {
    "viewer": (AccessRole.VIEWER, False, None),
    "reader": (AccessRole.VIEWER, True, None),
    "operator": (AccessRole.OPERATOR, True, None),
    "admin": (AccessRole.ADMIN, True, None),
    "expired": (AccessRole.ADMIN, True, NOW - timedelta(seconds=1)),
    "revoked": (AccessRole.ADMIN, True, None),
}
LEVELS: Final = {
    "viewer": Least.VIEWER,
    "reader": Least.TEXT,
    "operator": Least.OPERATOR,
    "admin": Least.ADMIN,
    "settings": Least.ADMIN,
}
PEOPLE: Final = (*TOKENS, "settings", "wrong", "guest", "nobody")


def secret_of(name: str) -> str:
    return f"{PREFIX}{name:a>43}"


class Place:
    """A gateway with these tokens, and an app behind its guard."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        access = WebAccess("127.0.0.1", (), SETTINGS_TOKEN, NOW.timestamp).with_store(self.store)
        self.access = access
        self.seen: list[str] = []
        self.guard = Guard(
            self._app, address="127.0.0.1", sign_ins=access.sign_ins, guests=self._guests
        )

    async def prepare(self) -> None:
        for name, (role, reads, end) in TOKENS.items():
            made = Token(name, role, reads, NOW, end)
            assert await self.store.add_token(made, secret_hash(secret_of(name)))
        assert await self.store.revoke_token("revoked")

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append("app")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"app"})

    async def _guests(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"guests"})

    def browser(self, who: str) -> httpx.AsyncClient:
        # Each from a place of its own, so that the limit of wrong tokens says nothing here.
        number = len(self.seen) % 65_000 + PEOPLE.index(who)
        transport = httpx.ASGITransport(
            self.guard, client=(f"10.1.{number // 250}.{number % 250}", 1)
        )
        headers = dict(ORIGIN)
        if who in TOKENS:
            headers["authorization"] = f"Bearer {secret_of(who)}"
        elif who == "settings":
            headers["authorization"] = f"Bearer {SETTINGS_TOKEN}"
        elif who == "wrong":
            headers["authorization"] = f"Bearer {secret_of('wrong')}"
        elif who == "guest":
            headers["cookie"] = f"{GUEST_COOKIE}={'g' * 43}"
        return httpx.AsyncClient(
            transport=transport, base_url="http://localhost:8420", headers=headers
        )


@pytest.fixture
async def place() -> Place:
    made = Place()
    await made.prepare()
    return made


def example(path: str) -> str:
    """A path of a route."""
    return re.sub(r"\{\w+(:path)?\}", lambda found: "a/b" if found[1] else "x", path)


ALL: Final = [(method, example(path), least) for method, path, least in routes()]


def expected(who: str, method: str, path: str, least: Least) -> tuple[int, str]:
    """The status, and what must be in the answer."""
    if who == "guest":
        return 200, "guests"
    if who in LEVELS:
        return (200, "app") if LEVELS[who] >= least else (403, f"needs the role {least}")
    is_open = (method, path) in OPEN or path.startswith("/static/")
    return (200, "app") if is_open else (401, "a token is required")


@pytest.mark.parametrize("who", PEOPLE)
async def test_everybody_on_every_route(place: Place, who: str) -> None:
    found = {}
    for method, path, _least in ALL:
        # A wrong token counts: with one address for all, the limit would answer.
        place.access.sign_ins._attempts.__init__()  # type: ignore[union-attr,misc]
        async with place.browser(who) as browser:
            answer = await browser.request(method, path)
        found[method, path] = answer.status_code, answer.text
    wanted = {(one, path): expected(who, one, path, least) for one, path, least in ALL}
    assert len(found) == len(ALL) > 190
    assert {key: status for key, (status, _) in found.items()} == {
        key: status for key, (status, _) in wanted.items()
    }
    assert [key for key, (_, text) in found.items() if wanted[key][1] not in text] == []


def served() -> Iterator[tuple[str, str]]:
    """Method and path of every route of the API and the dashboard."""
    control: Any = FakeControl()
    parts: Any = object()
    api = lend_api(control, parts, health=parts)
    openid = OpenIdClient("https://sso.example.org", "goclaw", "https://bot.example.org")
    access = WebAccess("127.0.0.1", (), SETTINGS_TOKEN, openid=openid).with_store(MemoryStore())
    site: Any = make_site(control, api, access)
    for pattern, methods in api.state.methods:
        path = re.sub(
            r"\(\?P<(\w+)>(.*?)\)",
            lambda one: f"{{{one[1]}:path}}" if one[2] == ".*" else f"{{{one[1]}}}",
            pattern.pattern.removeprefix("^").removesuffix("$"),
        )
        for method in methods:
            yield method, re.sub(r"\\(.)", r"\1", path)
    for route in site._app.routes:
        assert isinstance(route, Route)
        for method in route.methods or ():
            yield method, route.path


def test_every_route_is_in_the_table_and_no_other() -> None:
    """A new route is for admins until it is put there."""
    # HEAD is as GET.
    found = {("GET" if method == "HEAD" else method, path) for method, path in served()}
    listed = {(method, path) for method, path, _ in routes()}
    assert found - listed == set()
    assert listed - found == set()
    assert len(listed) == len(list(routes()))


def test_of_several_routes_of_a_path_the_strictest_counts() -> None:
    for method, path, least in [
        ("GET", "/api/sessions/a/b", Least.VIEWER),
        ("GET", "/api/sessions/a/history", Least.TEXT),
        ("GET", "/api/sessions/a/history/history", Least.TEXT),
        ("GET", "/api/sessions/a/history\n", Least.TEXT),
        ("GET", "/api/sessions/\n/history", Least.TEXT),
        ("HEAD", "/api/sessions/a/history", Least.TEXT),
        ("GET", "/api/sessions/a/history/", Least.VIEWER),
        ("GET", "/jobs/x/edit", Least.OPERATOR),
        ("GET", "/jobs/x/edit\n", Least.OPERATOR),
        ("GET", "/jobs/new", Least.OPERATOR),
        ("GET", "/runs/view", Least.TEXT),
        ("GET", "/heartbeats/x/dry-run", Least.TEXT),
    ]:
        assert least_of(method, path) is least, path


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "/nowhere"), ("GET", "/api"), ("GET", "/api/"), ("GET", "//"), ("GET", ""),
    ("get", "/api/status"), ("OPTIONS", "/api/status"), ("TRACE", "/"), ("PUT", "/api/status"),
    ("GET", "/API/status"), ("GET", "/api/status/"), ("GET", "/api//status"),
    ("GET", "/api/runs/../settings"), ("POST", "/api/jobs/x"), ("GET", "/runs/x/y"),
    ("GET", "/api/status\n\n"), ("GET", "/api/status\x00"), ("GET", "x/api/status"),
])  # fmt: skip
def test_what_is_not_in_the_table_is_for_admins(method: str, path: str) -> None:
    assert least_of(method, path) is Least.ADMIN


def test_each_role_includes_those_before_it_and_nobody_has_one() -> None:
    levels = [
        level_of(Actor(ActorKind.TOKEN, "x", role, reads_text=reads))
        for role, reads in [
            (None, True), (AccessRole.VIEWER, False), (AccessRole.VIEWER, True),
            (AccessRole.OPERATOR, False), (AccessRole.ADMIN, False),
        ]
    ]  # fmt: skip
    assert levels == [Least.VIEWER, *Least]
    assert not may(Actor(ActorKind.PERSON, ""), "GET", "/api/logs")


async def test_an_admin_costs_no_look_at_the_table(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(roles, "least_of")
    for who in ("settings", "admin"):
        async with place.browser(who) as browser:
            assert (await browser.get("/api/never-seen-before")).status_code == 200


async def test_what_is_open_needs_no_role(place: Place) -> None:
    """What is not there is not there, instead of being refused."""
    async with place.browser("nobody") as browser:
        assert (await browser.get("/static/a/b")).status_code == 200  # of the stub behind it


# ------------------------------------------------------------------ the whole gateway


class Gateway(Place):
    """The same with API and dashboard behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.control: Any = FakeControl()
        api = lend_api(self.control)
        self.site = ApiOrDashboard(api, make_site(self.control, api, self.access))

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.site(scope, receive, send)

    async def sign_in(self, token: str) -> str:
        async with self.browser("nobody") as browser:
            fields = {"token": token, "next": "/"}
            answer = await browser.post("/login", data=fields, headers={**HTML, **ORIGIN})
        assert answer.status_code == 303
        return answer.cookies[COOKIE]


@pytest.fixture
async def gateway() -> Gateway:
    made = Gateway()
    await made.prepare()
    return made


async def test_a_refusal_names_the_role_to_programs_and_people_and_is_logged(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    said = "this needs the role operator; viewer has the role viewer without text"
    cookie = {"cookie": f"{COOKIE}={await gateway.sign_in(secret_of('viewer'))}"}
    with caplog.at_level(logging.INFO):
        async with gateway.browser("viewer") as program:
            answer = await program.post("/api/outbox/retry", json={"ids": [1]})
        async with gateway.browser("nobody") as browser:
            page = await browser.post(
                "/stop", content=b"session=s", headers={**HTML, **FORM, **cookie}
            )
            nowhere = await browser.get("/forbidden", headers={**HTML, **cookie})
    assert (answer.status_code, answer.json()) == (403, {"error": said})
    assert page.status_code == 403
    assert said in page.text
    assert "text/html" in page.headers["content-type"]
    assert "content-security-policy" in page.headers
    assert nowhere.status_code == 404
    assert gateway.control.calls == []
    refused = [vars(one) for one in caplog.records if one.message == "web_request_refused"]
    assert [(one["path"], one["status"]) for one in refused] == [
        ("/api/outbox/retry", 403), ("/stop", 403),
    ]  # fmt: skip
    assert {one["reason"] for one in refused} == {said}


async def test_the_dashboard_shows_who_is_in_and_only_what_they_may_open(
    gateway: Gateway,
) -> None:
    seen = {}
    for who in ("viewer", "reader", "operator", "admin"):
        cookie = {"cookie": f"{COOKIE}={await gateway.sign_in(secret_of(who))}"}
        async with gateway.browser("nobody") as browser:
            page = (await browser.get("/jobs", headers={**HTML, **cookie})).text
            # Pages with tabs.
            more = [
                (await browser.get(path, headers={**HTML, **cookie})).text
                for path in ("/people", "/logs")
            ]
        role = {"reader": "viewer"}.get(who, who)
        assert f'<body data-role="{role}">' in page
        assert f"<bdi>{who}</bdi> <small>{role}" in page
        assert ("no text" in page) is (who == "viewer")
        navs = re.findall("<nav.*?</nav>", "".join((page, *more)), re.DOTALL)
        seen[who] = set(re.findall('<a href="([^"]+)"', "".join(navs)))
    assert "/jobs" in seen["viewer"]
    assert seen["reader"] - seen["viewer"] == {"/approvals", "/logs"}
    assert seen["operator"] - seen["reader"] == {"/chat", "/settings"}
    assert seen["admin"] - seen["operator"] == {"/audit", "/sign-ins", "/tokens"}


PROGRAM: Final = {"kind": "command", "argv": ["/bin/sh", "-c", "id"]}
JOB: Final = {"slug": "x", "schedule": {"kind": "every", "every_ms": 60_000}}


async def test_an_operator_cannot_run_programs_by_a_job(gateway: Gateway) -> None:
    """With one they could read the token of the settings, and change them."""
    body = {**JOB, "payload": PROGRAM}
    for who, status in [("operator", 403), ("admin", 201)]:
        async with gateway.browser(who) as program:
            answer = await program.post("/api/jobs", json=body)
        assert answer.status_code == status, answer.text


async def test_a_live_part_is_not_shared_between_roles(gateway: Gateway) -> None:
    """It is rendered once for all who watch, with the texts of who came first."""
    from goclaw_py.core.actors import acts
    from goclaw_py.web.pages.services import Page, _part_key

    page = Page("/", "now", "Now", lambda _query: None)  # type: ignore[arg-type,return-value]
    keys = set()
    for role, reads, _end in TOKENS.values():
        with acts(Actor(ActorKind.TOKEN, "x", role, reads_text=reads)):
            keys.add(_part_key(page, {}))
    assert len(keys) == 4
