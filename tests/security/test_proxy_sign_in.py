"""A reverse proxy signs people in, and nobody else can say that they are one (SPEC SEC-10).

Promised: headers with a person or an address count only if the TCP connection comes from a trusted
proxy; what a browser adds to them changes nothing. Tried: the headers from strangers, repeated,
empty, endless, in other encodings; made-up hops; people without a role; pages of other sites.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx
import pytest

from goclaw_py.core.actors import AccessRole, Actor, ActorKind
from goclaw_py.web.attempts import MOST_OF_ADDRESS
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.group_roles import GroupRoles
from goclaw_py.web.guard import PROXY_STREAM_S, Guard
from goclaw_py.web.pages import make_site
from goclaw_py.web.proxies import TrustedProxy
from goclaw_py.web.sign_ins import SignIns
from tests.security.following import Follower, scope_with
from tests.support.apps import lend_api
from tests.support.memory_store import MemoryStore
from tests.unit.web.fakes import NOW, FakeControl
from tests.unit.web.pages.conftest import HTML, ORIGIN

TOKEN = "a-token-of-thirty-two-characters"
PROXY, SECOND, STRANGER, ANN = "10.0.0.7", "10.1.2.3", "198.51.100.7", "203.0.113.5"
ROLES = GroupRoles(
    {AccessRole.ADMIN: frozenset({"ops"}), AccessRole.OPERATOR: frozenset({"desk", "night desk"})}
)
WHO = (("remote-user", "ann"), ("remote-groups", "staff, ops"))

Headers = tuple[tuple[str, str], ...]


class FrontOfGateway:
    """A gateway that trusts two proxies."""

    def __init__(self, roles: GroupRoles = ROLES, sign_out_url: str = "", **names: str) -> None:
        trusted = TrustedProxy(
            [PROXY, "10.1.0.0/16", "2001:db8:1::/48"], roles, sign_out_url=sign_out_url, **names
        )
        control: Any = FakeControl()
        access = WebAccess("127.0.0.1", (), TOKEN, NOW.timestamp, proxy=trusted)
        access = access.with_store(MemoryStore())
        api = lend_api(control)
        site = ApiOrDashboard(api, make_site(control, api, access))
        self.guard = Guard(
            site, address="127.0.0.1", sign_ins=access.sign_ins, guests=guests, proxy=trusted
        )

    async def ask(
        self, *headers: tuple[str, str], peer: str = PROXY, path: str = "/jobs", **more: Any
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.guard, client=(peer, 1))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost:8420"
        ) as client:
            method = more.pop("method", "GET")
            return await client.request(method, path, headers=[*headers], **more)

    async def person(self, *headers: tuple[str, str | bytes], peer: str = PROXY) -> Actor | int:
        """Whom the gateway takes a request for; the status if it refuses."""
        given = [(b"host", b"localhost")]
        given += [(name.encode(), _bytes(value)) for name, value in headers]
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": "/jobs",
            "query_string": b"",
            "headers": given,
            "client": (peer, 1),
        }
        refusal = await self.guard.refusal(scope)
        if refusal is not None:
            return refusal.status
        return self.guard._actor(scope)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


async def guests(_scope: Any, _receive: Any, send: Any) -> None:
    """Stands for the chat of invited people."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"for guests"})


def ann(role: AccessRole, via: str = PROXY) -> Actor:
    return Actor(ActorKind.PERSON, "ann", role, reads_text=True, via=via)


@pytest.mark.parametrize("peer", [
    PROXY, SECOND, "2001:db8:1::9", "2001:db8:1::9%eth0", f"::ffff:{PROXY}",
])  # fmt: skip
async def test_a_trusted_proxy_signs_people_in(peer: str) -> None:
    front = FrontOfGateway()
    found = await front.person(*WHO, peer=peer)
    assert isinstance(found, Actor)
    assert (found.name, found.role) == ("ann", AccessRole.ADMIN)
    assert (await front.ask(*WHO, peer=peer)).status_code == 200


@pytest.mark.parametrize("peer", [
    STRANGER, "10.0.0.8", "10.2.0.1", "127.0.0.1", "::1", "2001:db8:2::9", "", "testclient",
    "10.0.0.7.example.org", f"{PROXY}0",
])  # fmt: skip
@pytest.mark.parametrize("more", [
    (), (("x-forwarded-for", PROXY),), (("forwarded", f"for={PROXY}"),), (("x-real-ip", PROXY),),
    (("via", PROXY),), (("x-forwarded-for", f"{PROXY}, {PROXY}"),),
])  # fmt: skip
async def test_nobody_else_does(peer: str, more: Headers, caplog: pytest.LogCaptureFixture) -> None:
    front = FrontOfGateway()
    for _request in range(20):
        assert (await front.ask(*WHO, *more, peer=peer)).status_code == 401
    lines = [one for one in caplog.records if one.message == "proxy_headers_ignored"]
    assert [one.__dict__["address"] for one in lines] == [peer]


async def test_strangers_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    front = FrontOfGateway()
    for number in range(500):
        await front.person(*WHO, peer=f"198.51.{number // 250}.{number % 250}")
    assert caplog.text.count("proxy_headers_ignored") == 100


@pytest.mark.parametrize(("groups", "role"), [
    ("ops", AccessRole.ADMIN), ("desk", AccessRole.OPERATOR), ("desk,ops", AccessRole.ADMIN),
    ("ops ,\tdesk", AccessRole.ADMIN), ("night desk", AccessRole.OPERATOR),
    (",,desk,", AccessRole.OPERATOR),
    ("", 403), ("staff", 403), ("OPS", 403), ("ops2", 403), ("ops;desk", 403), ("op", 403),
    (None, 403),
])  # fmt: skip
async def test_the_highest_role_of_the_groups_counts(
    groups: str | None, role: AccessRole | int
) -> None:
    headers = [("remote-user", "ann")]
    headers += [] if groups is None else [("remote-groups", groups)]
    expected = role if isinstance(role, int) else ann(role)
    assert await FrontOfGateway().person(*headers) == expected


@pytest.mark.parametrize(("groups", "role"), [
    ("ops", AccessRole.ADMIN), ("staff", AccessRole.VIEWER), ("", AccessRole.VIEWER),
])  # fmt: skip
@pytest.mark.parametrize("reads", [False, True])
async def test_others_have_the_default_role(groups: str, role: AccessRole, *, reads: bool) -> None:
    roles = GroupRoles(
        {AccessRole.ADMIN: frozenset({"ops"})}, AccessRole.VIEWER, viewers_read_text=reads
    )
    found = await FrontOfGateway(roles).person(("remote-user", "ann"), ("remote-groups", groups))
    assert found == Actor(ActorKind.PERSON, "ann", role, reads or role is AccessRole.ADMIN, PROXY)


@pytest.mark.parametrize(("headers", "status"), [
    ((*WHO, ("remote-user", "root")), 400),
    ((*WHO, ("Remote-User", "ann")), 400),
    ((*WHO, ("remote-groups", "ops")), 400),
    ((("remote-user", "x" * 201), WHO[1]), 400),
    ((("remote-user", b"ann\xff"), WHO[1]), 400),
    ((("remote-user", "ann\u202egnp"), WHO[1]), 400),
    ((("remote-user", "an\x01n"), WHO[1]), 400),
    ((WHO[0], ("remote-groups", b"ops\xff")), 400),
    # The proxy lets somebody through without a name: the token is wanted.
    ((WHO[1],), 401),
    ((("remote-user", ""), WHO[1]), 401),
    ((("remote-user", " "), WHO[1]), 401),
    # Names that look alike, and those of other proxies, are other headers.
    ((("remote_user", "ann"), WHO[1]), 401),
    ((("x-forwarded-user", "ann"), ("x-forwarded-groups", "ops")), 401),
])  # fmt: skip
async def test_what_is_ambiguous_is_refused(headers: Headers, status: int) -> None:
    assert await FrontOfGateway().person(*headers) == status


async def test_other_proxies_use_other_headers() -> None:
    front = FrontOfGateway(user_header="X-Forwarded-User", groups_header="X-Forwarded-Groups")
    other = ("x-forwarded-user", "ann"), ("x-forwarded-groups", "desk")
    assert await front.person(*other) == ann(AccessRole.OPERATOR)
    assert await front.person(*other, *WHO) == ann(AccessRole.OPERATOR)
    assert await front.person(*WHO) == 401


@pytest.mark.parametrize(("hops", "address"), [
    ((), PROXY), (("",), PROXY), ((ANN,), ANN), ((f" {ANN} ",), ANN),
    # Only what the trusted proxies have added counts.
    ((f"1.1.1.1, {ANN}",), ANN), (("1.1.1.1", ANN), ANN), ((f"{PROXY}, {ANN}",), ANN),
    ((f"{ANN}, {SECOND}",), ANN), ((f"1.1.1.1, {ANN}, {SECOND}, {SECOND}",), ANN),
    ((f"{SECOND}, {SECOND}",), SECOND),
    ((f"{ANN}:4711",), ANN), (("[2001:db8::5]:4711",), "2001:db8::5"),
    (("2001:db8::5",), "2001:db8::5"), ((f"::ffff:{ANN}",), ANN),
    # What is no address ends the way back.
    (("unknown",), PROXY), ((f"{ANN}, unknown",), PROXY), ((f"{ANN}, unknown, {SECOND}",), SECOND),
    (("1.1.1.1.1",), PROXY), (("x" * 60_000,), PROXY), ((f"{ANN}," * 4_000,), PROXY),
    ((f"{ANN}, " * 4_000 + ANN,), ANN),
])  # fmt: skip
async def test_the_address_is_that_behind_the_proxies(hops: tuple[str, ...], address: str) -> None:
    headers = [("x-forwarded-for", hop) for hop in hops]
    found = await FrontOfGateway().person(*WHO, *headers)
    assert found == ann(AccessRole.ADMIN, address)


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "x-real-ip", "true-client-ip"])
@pytest.mark.parametrize("peer", [STRANGER, PROXY])
async def test_limits_are_of_the_real_address(name: str, peer: str) -> None:
    """A stranger cannot choose one, and one behind the proxy keeps out nobody else."""
    front, wrong = FrontOfGateway(), ("authorization", "Bearer wrong")
    last = (("x-forwarded-for", STRANGER),) if peer == PROXY else ()
    for number in range(MOST_OF_ADDRESS):
        said = f"for={ANN}{number}" if name == "forwarded" else f"203.0.113.{number}"
        await front.ask((name, said), *last, wrong, peer=peer)
    assert (await front.ask(*last, wrong, peer=peer)).status_code == 429
    others = ("x-forwarded-for", ANN)
    assert (await front.ask(others, wrong)).status_code == 401


async def test_the_address_of_a_sign_in_is_that_behind_the_proxy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    form: dict[str, Any] = {"method": "POST", "path": "/login", "data": {"token": TOKEN}}
    origin = *ORIGIN.items(), ("x-forwarded-for", ANN)
    assert (await FrontOfGateway().ask(*origin, **form)).status_code == 303
    assert (await FrontOfGateway().ask(*origin, peer=STRANGER, **form)).status_code == 303
    lines = [one for one in caplog.records if one.message == "sign_in_accepted"]
    assert [one.__dict__["address"] for one in lines] == [ANN, STRANGER]


async def test_the_token_keeps_working_and_what_a_proxy_passes_on_is_no_wrong_token() -> None:
    front, bearer = FrontOfGateway(), ("authorization", f"Bearer {TOKEN}")
    for peer in (PROXY, STRANGER):
        assert (await front.ask(bearer, peer=peer)).status_code == 200
    for _request in range(3 * MOST_OF_ADDRESS):
        passed_on = "authorization", "Basic YW5uOnNlY3JldA=="
        assert (await front.ask(*WHO, passed_on)).status_code == 200


async def test_personal_links_keep_working() -> None:
    front = FrontOfGateway()
    assert (await front.ask(path="/join/x", peer=STRANGER)).text == "for guests"
    nobody = ("remote-user", "eve")
    assert (await front.ask(nobody, path="/join/x")).text == "for guests"
    assert (await front.ask(nobody)).status_code == 403


@pytest.mark.parametrize(("headers", "status"), [
    ((), 403), ((("origin", "https://evil.example"),), 403),
    ((("sec-fetch-site", "cross-site"),), 403), (tuple(ORIGIN.items()), 200),
])  # fmt: skip
async def test_pages_of_other_sites_use_nobodys_sign_in(headers: Headers, status: int) -> None:
    """The proxy adds its headers to requests that another site makes a browser send, too."""
    dropped: dict[str, Any] = {"method": "POST", "path": "/api/outbox/drop", "json": {"ids": []}}
    assert (await FrontOfGateway().ask(*WHO, *headers, **dropped)).status_code == status


async def test_an_event_stream_asks_the_proxy_again_before_long() -> None:
    """Whoever has signed out there is out here, too."""
    now_s, follower = NOW.timestamp(), Follower()
    proxy, sign_ins = TrustedProxy([PROXY], ROLES), SignIns(MemoryStore(), TOKEN, lambda: now_s)
    guard = Guard(follower.app, address="127.0.0.1", sign_ins=sign_ins, proxy=proxy)
    headers = [(name.encode(), value.encode()) for name, value in WHO]
    scope = scope_with(*headers, address=PROXY)
    serving = follower.follow(guard, scope)
    for text in (b"one", b"two", b"three"):
        follower.say(text)
        await asyncio.sleep(1)
        now_s += PROXY_STREAM_S / 2
    await asyncio.wait_for(serving, 10)
    assert follower.sent == [b"", b"one", b"two", b""]


@pytest.mark.parametrize("url", ["", "https://auth.example.org/logout"])
async def test_signing_out_leads_to_the_proxy(url: str) -> None:
    front = FrontOfGateway(sign_out_url=url)
    page = await front.ask(*WHO, *ORIGIN.items(), *HTML.items(), method="POST", path="/logout")
    assert page.status_code == 200
    assert "signed you in as <bdi>ann</bdi>" in page.text
    assert (f'href="{url}"' in page.text) is bool(url)
    # There is no second way to sign in that would hide the first.
    asked = await front.ask(*WHO, path="/login")
    assert (asked.status_code, asked.headers["location"]) == (303, "/")
