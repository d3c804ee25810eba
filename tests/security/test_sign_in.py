"""A sign-in ends when it is ended, and guessing leads nowhere (SPEC SEC-6).

Promised: whoever signs out, or is signed out elsewhere, is out on every node within five seconds,
event streams included; wrong tokens are logged and limited, and keep nobody out who has the token.
Tried: cookies after signing out, after a restart, with another token, forged, of an older release;
a hundred wrong tokens by form and header, from one address, many, and one that a proxy shares.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx
import pytest

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.web_links import secret_hash
from goclaw_py.operations.access.operations import Access
from goclaw_py.records import SignIn
from goclaw_py.web.attempts import MOST_OF_ADDRESS, MOST_OF_ALL, OF_ADDRESS_EVERY_S, Attempts
from goclaw_py.web.checked import CHECK_S, NOTE_S
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.pages import make_site
from goclaw_py.web.sign_ins import LASTS, SignIns, settings_actor
from goclaw_py.web.signin import COOKIE
from tests.security.following import HOME, Follower, scope_with
from tests.support.apps import lend_api
from tests.support.memory_store import MemoryStore
from tests.support.memory_store.tables import MemoryDatabase
from tests.support.work import SetClock
from tests.unit.web.fakes import NOW, FakeControl
from tests.unit.web.pages.conftest import FORM, HTML, ORIGIN

TOKEN = "a-token-of-thirty-two-characters"
ELSEWHERE = "198.51.100.7"


class CountingStore(MemoryStore):
    """Counts what is asked of it; can be away."""

    def __init__(self, database: MemoryDatabase) -> None:
        super().__init__(database)
        self.reads = self.writes = 0
        self.is_away = False

    async def sign_in_of(self, *hashes: str, **now: Any) -> SignIn | None:
        self.reads += 1
        if self.is_away:
            raise StoreUnavailable("the database does not answer")
        return await super().sign_in_of(*hashes, **now)

    async def note_sign_in_used(self, sign_in: str, **now: Any) -> None:
        self.writes += 1
        await super().note_sign_in_used(sign_in, **now)


class Node:
    """A gateway of a cluster, and browsers at it."""

    def __init__(self, cluster: Cluster, token: str = TOKEN) -> None:
        self._cluster = cluster
        self.store = CountingStore(cluster.database)
        control: Any = FakeControl()
        control.access = Access(self.store, SetClock(NOW))
        api = lend_api(control)
        access = WebAccess("127.0.0.1", (), token, lambda: cluster.now_s).with_store(self.store)
        site = ApiOrDashboard(api, make_site(control, api, access))
        self.app = Guard(site, address="127.0.0.1", sign_ins=access.sign_ins)

    def browser(self, address: str = HOME, cookie: str = "", **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, client=(address, 1))
        kept = {"cookie": f"{COOKIE}={cookie}"} if cookie else {}
        return httpx.AsyncClient(
            transport=transport,
            base_url="http://localhost:8420",
            headers={**HTML, "user-agent": "Firefox", **kept, **headers},
        )

    async def enter(self, token: str, address: str = HOME) -> httpx.Response:
        """Send the form with a token."""
        async with self.browser(address) as browser:
            fields = {"token": token, "next": "/"}
            return await browser.post("/login", data=fields, headers=ORIGIN)

    async def sign_in(self, address: str = HOME) -> str:
        """The cookie after signing in."""
        answer = await self.enter(TOKEN, address)
        assert answer.status_code == 303
        return answer.cookies[COOKIE]

    async def is_in(self, cookie: str) -> bool:
        async with self.browser(cookie=cookie) as browser:
            return (await browser.get("/jobs")).status_code == 200

    async def ask(self, token: str, address: str) -> int:
        """The status of a request of a program."""
        headers = {"authorization": f"Bearer {token}", "accept": "*/*"}
        async with self.browser(address, **headers) as program:
            return (await program.get("/api/status")).status_code


class Cluster:
    def __init__(self) -> None:
        self.database = MemoryDatabase()
        self.now_s = NOW.timestamp()
        self.first, self.second = Node(self), Node(self)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def sign_out(cluster: Cluster, cookie: str) -> None:
    async with cluster.first.browser(cookie=cookie) as browser:
        answer = await browser.post("/logout", headers={**ORIGIN, **FORM})
    assert "Max-Age=0" in answer.headers["set-cookie"]


async def end_one(cluster: Cluster, cookie: str) -> None:
    (found,) = await cluster.second.store.sign_ins(now=NOW)
    assert await cluster.second.store.end_sign_in(found.id)


async def end_all(cluster: Cluster, cookie: str) -> None:
    assert await cluster.second.store.end_sign_ins() == 1


async def wait_for_its_end(cluster: Cluster, cookie: str) -> None:
    cluster.now_s += LASTS.total_seconds()


@pytest.mark.parametrize("end", [sign_out, end_one, end_all, wait_for_its_end])
async def test_an_ended_sign_in_is_over_on_every_node(cluster: Cluster, end: Any) -> None:
    cookie = await cluster.first.sign_in()
    assert await cluster.first.is_in(cookie)
    assert await cluster.second.is_in(cookie)
    await end(cluster, cookie)
    cluster.now_s += CHECK_S
    assert not await cluster.first.is_in(cookie)
    assert not await cluster.second.is_in(cookie)


async def test_whoever_signs_out_is_out_at_once_where_they_did(cluster: Cluster) -> None:
    cookie = await cluster.first.sign_in()
    other = await cluster.first.sign_in()
    assert await cluster.first.is_in(cookie)
    await sign_out(cluster, cookie)
    assert not await cluster.first.is_in(cookie)
    assert await cluster.first.is_in(other)


async def test_a_sign_in_outlives_a_restart_but_not_the_token(cluster: Cluster) -> None:
    cookie = await cluster.first.sign_in()
    assert await Node(cluster).is_in(cookie)
    assert not await Node(cluster, "another-token-of-the-operator").is_in(cookie)


@pytest.mark.parametrize("value", [
    "", "x", "a" * 43, "é" * 43, f"{int(NOW.timestamp()) + 999}.{'0' * 64}", TOKEN, "a" * 100_000,
])  # fmt: skip
async def test_a_forged_cookie_opens_nothing(cluster: Cluster, value: str) -> None:
    await cluster.first.sign_in()
    scope = scope_with((b"cookie", COOKIE.encode() + b"=" + value.encode("utf-8")))
    assert await cluster.first.app.refusal(scope) is not None


async def test_what_the_database_has_opens_nothing(cluster: Cluster) -> None:
    cookie = await cluster.first.sign_in()
    rows = str(cluster.database.sign_ins)
    assert secret_hash(cookie) in rows
    assert cookie not in rows
    assert TOKEN not in rows
    assert not await cluster.first.is_in(secret_hash(cookie))


async def test_the_database_is_asked_once_in_five_seconds_and_told_once_a_minute(
    cluster: Cluster,
) -> None:
    cookie, store = await cluster.first.sign_in(), cluster.first.store
    for _request in range(20):
        assert await cluster.first.is_in(cookie)
    assert (store.reads, store.writes) == (1, 0)
    for _second in range(int(2 * NOTE_S)):
        cluster.now_s += 1
        assert await cluster.first.is_in(cookie)
    assert store.reads <= 1 + 2 * NOTE_S / CHECK_S
    assert 1 <= store.writes <= 2
    (found,) = await store.sign_ins(now=NOW)
    assert (found.address, found.user_agent) == (HOME, "Firefox")
    assert found.last_used_at > found.created_at == NOW


async def test_without_the_database_who_is_in_stays_and_nobody_else_enters(
    cluster: Cluster,
) -> None:
    """The page of the health is wanted just then."""
    cookie, store = await cluster.first.sign_in(), cluster.first.store
    assert await cluster.first.is_in(cookie)
    store.is_away = True
    cluster.now_s += 3_600
    reads = store.reads
    for _request in range(10):
        assert await cluster.first.is_in(cookie)
    assert store.reads == reads + 1
    async with cluster.first.browser(cookie="b" * 43) as stranger:
        assert (await stranger.get("/jobs")).status_code == 503
    store.is_away = False
    await store.end_sign_ins()
    cluster.now_s += CHECK_S
    assert not await cluster.first.is_in(cookie)


async def test_the_event_stream_of_an_ended_sign_in_ends() -> None:
    now_s, follower = NOW.timestamp(), Follower()
    store = MemoryStore()
    sign_ins = SignIns(store, TOKEN, lambda: now_s)
    cookie = await sign_ins.begin(settings_actor(HOME), "Firefox")
    guard = Guard(follower.app, address="127.0.0.1", sign_ins=sign_ins)
    shown = (b"cookie", f"{COOKIE}={cookie}".encode())
    serving = follower.follow(guard, scope_with(shown))
    for text in (b"one", b"two"):
        follower.say(text)
        now_s += CHECK_S
        await asyncio.sleep(1)
    await store.end_sign_ins()
    now_s += CHECK_S
    follower.say(b"secret")
    await asyncio.wait_for(serving, 10)
    assert follower.sent == [b"", b"one", b"two", b""]


async def test_an_event_stream_ends_at_once_when_its_browser_signs_out() -> None:
    """Found by use: other tabs said "live" until something was sent to them."""
    follower = Follower()
    sign_ins = SignIns(MemoryStore(), TOKEN, NOW.timestamp)
    cookies = [await sign_ins.begin(settings_actor(HOME), name) for name in ("one", "two")]
    guard = Guard(follower.app, address="127.0.0.1", sign_ins=sign_ins)
    shown = (b"cookie", f"{COOKIE}={cookies[0]}".encode())
    serving = follower.follow(guard, scope_with(shown))
    follower.say(b"one")
    await asyncio.sleep(1)
    await sign_ins.end(cookies[1])
    follower.say(b"two")
    await asyncio.sleep(1)
    await sign_ins.end(cookies[0])
    await asyncio.wait_for(serving, 10)
    assert follower.sent == [b"", b"one", b"two", b""]


async def by_page(node: Node, cookie: str, sign_in: str) -> None:
    fields = {"sign_in": sign_in} if sign_in else {"all": "yes"}
    async with node.browser(cookie=cookie) as browser:
        answer = await browser.post("/sign-ins/end", data=fields, headers=ORIGIN)
    told = "1+browser" if sign_in else "all+browsers"
    assert answer.headers["location"] == f"/sign-ins?notice=signed-out+{told}"


async def by_api(node: Node, cookie: str, sign_in: str) -> None:
    async with node.browser(authorization=f"Bearer {TOKEN}") as program:
        answer = await program.delete(f"/api/web/sign-ins{sign_in and '/'}{sign_in}")
    assert (answer.status_code, answer.text) == ((204, "") if sign_in else (200, '{"ended":2}'))


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("end", [by_page, by_api])
async def test_a_person_sees_and_ends_sign_ins(
    cluster: Cluster, end: Any, *, everywhere: bool
) -> None:
    node = cluster.first
    mine = await node.sign_in()
    other = await node.sign_in(ELSEWHERE)
    assert await node.is_in(other)
    # The second node knows both from before.
    assert await cluster.second.is_in(mine)
    assert await cluster.second.is_in(other)
    async with node.browser(cookie=mine) as browser:
        page = (await browser.get("/sign-ins")).text
    assert page.count("this browser") == 1
    assert HOME in page
    assert ELSEWHERE in page
    (found,) = [one for one in await node.store.sign_ins(now=NOW) if one.address == ELSEWHERE]
    await end(node, mine, "" if everywhere else found.id)
    cluster.now_s += CHECK_S
    for each in (cluster.first, cluster.second):
        assert not await each.is_in(other)
        assert await each.is_in(mine) is not everywhere


# ------------------------------------------------------------------ wrong tokens


async def by_form(node: Node, token: str, address: str) -> int:
    return (await node.enter(token, address)).status_code


async def by_header(node: Node, token: str, address: str) -> int:
    return await node.ask(token, address)


@pytest.mark.parametrize(("enter", "right", "wrong"), [(by_form, 303, 403), (by_header, 200, 401)])
async def test_wrong_tokens_are_limited_by_address(
    cluster: Cluster, enter: Any, right: int, wrong: int
) -> None:
    node = cluster.first
    assert await enter(node, TOKEN, HOME) == right
    found = [await enter(node, f"wrong {n}", ELSEWHERE) for n in range(MOST_OF_ADDRESS + 5)]
    assert found == [wrong] * MOST_OF_ADDRESS + [429] * 5
    # Otherwise a guess would only have to go on.
    assert await enter(node, TOKEN, ELSEWHERE) == 429
    assert await enter(node, TOKEN, HOME) == right
    assert await enter(node, TOKEN, "203.0.113.9") == right
    cluster.now_s += OF_ADDRESS_EVERY_S
    assert await enter(node, TOKEN, ELSEWHERE) == right


@pytest.mark.parametrize("enter", [by_form, by_header])
async def test_strangers_behind_the_same_proxy_do_not_keep_the_operator_out(
    cluster: Cluster, enter: Any
) -> None:
    node = cluster.first
    right = await enter(node, TOKEN, HOME)
    for number in range(3 * MOST_OF_ADDRESS):
        await enter(node, f"wrong {number}", HOME)
    assert await enter(node, "wrong", HOME) == 429
    assert await enter(node, TOKEN, HOME) == right


async def test_wrong_tokens_from_many_addresses_are_limited_together(cluster: Cluster) -> None:
    node = cluster.first
    await node.sign_in()
    found = [
        await node.ask(f"wrong {number}", f"198.51.100.{number}")
        for number in range(MOST_OF_ALL + 20)
    ]
    assert found == [401] * MOST_OF_ALL + [429] * 20
    assert await node.ask(TOKEN, HOME) == 200


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "x-real-ip"])
async def test_an_address_cannot_be_chosen(cluster: Cluster, name: str) -> None:
    node = cluster.first
    for number in range(MOST_OF_ADDRESS):
        said = f"for=198.51.100.{number}" if name == "forwarded" else f"198.51.100.{number}"
        headers = {"authorization": "Bearer wrong", "accept": "*/*", name: said}
        async with node.browser(ELSEWHERE, **headers) as program:
            assert (await program.get("/api/status")).status_code == 401
    assert await node.ask("wrong", ELSEWHERE) == 429


async def test_all_is_logged_with_its_address_and_not_without_end(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    node = cluster.first
    with caplog.at_level(logging.INFO):
        cookie = await node.sign_in()
        for number in range(500):
            await node.ask(f"wrong {number}", ELSEWHERE)
            async with node.browser("203.0.113.9", accept="*/*") as program:
                await program.get("/api/status")
        await sign_out(cluster, cookie)
    lines = [(one.message, vars(one)) for one in caplog.records]
    (accepted,) = [facts for event, facts in lines if event == "sign_in_accepted"]
    assert accepted["address"] == HOME
    refused = [facts for event, facts in lines if event == "sign_in_refused"]
    assert {facts["address"] for facts in refused} == {ELSEWHERE}
    reasons = [facts["reason"] for facts in refused]
    assert reasons == ["wrong token"] * MOST_OF_ADDRESS + [
        "too many wrong tokens from this address"
    ]
    others = [facts for event, facts in lines if event == "web_request_refused"]
    assert {(facts["address"], facts["status"]) for facts in others} >= {("203.0.113.9", 401)}
    assert 0 < len(others) <= 2 * MOST_OF_ADDRESS
    assert [event for event, _ in lines].count("sign_in_ended") == 1
    assert "wrong 1" not in caplog.text
    assert cookie not in caplog.text
    assert TOKEN not in caplog.text


def test_a_million_addresses_do_not_fill_the_memory() -> None:
    attempts = Attempts()
    for number in range(20_000):
        attempts.note_wrong(f"a{number}", float(number))
        attempts.note_right(f"a{number}", float(number))
    assert len(attempts._of) + len(attempts._trusted) < 10_000
