"""A token opens what its role may, until its end or until it is revoked (SPEC SEC-8).

Promised: every request that is let in runs as somebody: the token of the settings, a token with a
name, a signed-in browser; a revoked or expired token opens nothing on any node within seconds,
neither itself, nor by the browsers and event streams that it began. Only hashes are stored.
Tried: tokens with spaces, in other schemes, twice; wrong ones from a blocked address, and from one
that a proxy shares; the database away; a revocation while a browser signs in.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from goclaw_py.core.actors import AccessRole, Actor, ActorKind, acting
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.web_links import secret_hash
from goclaw_py.records import Token
from goclaw_py.records.tokens import PREFIX
from goclaw_py.web.attempts import MOST_OF_ADDRESS
from goclaw_py.web.checked import CHECK_S, NOTE_S
from goclaw_py.web.guard import Guard
from goclaw_py.web.sign_ins import LASTS, SignIns, settings_actor
from goclaw_py.web.signin import COOKIE
from tests.security.following import HOME, Follower, scope_with
from tests.support.memory_store import MemoryStore
from tests.unit.web.fakes import NOW

SETTINGS_TOKEN = "a-token-of-thirty-two-characters"
ELSEWHERE = "198.51.100.7"
SECRET = PREFIX + "a" * 43


class TokenStore(MemoryStore):
    """Counts what is asked of it; can be away."""

    reads = 0
    is_away = False

    async def token_of(self, secret_hash: str, **now: Any) -> Token | None:
        self.reads += 1
        if self.is_away:
            raise StoreUnavailable("the database does not answer")
        return await super().token_of(secret_hash, **now)


class Door:
    """A guard, in front of an app that notes who acts."""

    def __init__(self, settings_token: str = SETTINGS_TOKEN) -> None:
        self.now_s = NOW.timestamp()
        self.store = TokenStore()
        self.sign_ins = SignIns(self.store, settings_token, lambda: self.now_s)
        self.guard = Guard(self._app, address="127.0.0.1", sign_ins=self.sign_ins)
        self.seen: list[Actor | None] = []

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(acting())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def add(
        self, role: AccessRole = AccessRole.VIEWER, *, lasts: timedelta | None = None
    ) -> Token:
        end = None if lasts is None else NOW + lasts
        made = Token("grafana", role, False, NOW, end)
        assert await self.store.add_token(made, secret_hash(SECRET))
        return made

    async def ask(self, *headers: tuple[bytes, bytes], path: str = "/api/status") -> int:
        """The status of a request with these headers, from home."""
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        await self.guard(scope_with(*headers, path=path), receive, send)
        return int(sent[0]["status"])

    async def actor(self, *headers: tuple[bytes, bytes], path: str = "/api/status") -> Actor | None:
        """Who acts in a request that is let in."""
        assert await self.ask(*headers, path=path) == 200
        return self.seen.pop()


def bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + token.encode()


def cookie(secret: str) -> tuple[bytes, bytes]:
    return b"cookie", f"{COOKIE}={secret}".encode()


@pytest.fixture
def door() -> Door:
    return Door()


async def test_a_request_runs_as_who_sent_it(door: Door) -> None:
    made = await door.add()
    in_person = await door.sign_ins.begin(settings_actor(HOME))
    found = await door.sign_ins.admit(SECRET.encode(), scope_with())
    assert not hasattr(found, "reason")
    by_token = await door.sign_ins.begin(found.actor, method=found.method)
    admin = Actor(ActorKind.SETTINGS_TOKEN, "web.token", AccessRole.ADMIN, via=HOME)
    viewer = Actor(ActorKind.TOKEN, made.name, AccessRole.VIEWER, reads_text=False, via=HOME)
    assert await door.actor(bearer(SETTINGS_TOKEN)) == admin
    assert await door.actor(bearer(SECRET)) == viewer
    assert await door.actor(cookie(in_person)) == admin
    assert await door.actor(cookie(by_token)) == viewer
    # A program that shows a token is not who a cookie says.
    assert await door.actor(bearer(SECRET), cookie(in_person)) == viewer
    nobody = Actor(ActorKind.PERSON, "", via=HOME)
    assert await door.actor(path="/healthz") == nobody
    assert await door.actor(path="/login") == nobody
    assert acting() is None


async def test_without_a_token_of_the_settings_this_machine_decides() -> None:
    seen: list[Actor | None] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(acting())

    async def ignore(*_message: Any) -> Any: ...

    await Guard(app, address="127.0.0.1")(scope_with(), ignore, ignore)
    (actor,) = seen
    assert actor is not None
    assert (actor.kind, actor.role) == (ActorKind.PERSON, AccessRole.ADMIN)


@pytest.mark.parametrize(("headers", "status"), [
    ([bearer(SECRET)], 200),
    ([(b"Authorization", b"bearer   " + SECRET.encode() + b"  ")], 200),
    ([bearer(SECRET + " x")], 401),
    ([bearer(SECRET[:-1])], 401),
    ([bearer(SECRET + "a")], 401),
    ([bearer(SECRET.upper())], 401),
    ([bearer(secret_hash(SECRET))], 401),
    ([bearer("grafana")], 401),
    ([bearer("")], 401),
    ([bearer("\u0660" * 43)], 401),
    ([bearer("x" * 100_000)], 401),
    ([(b"authorization", b"Basic " + SECRET.encode())], 401),
    ([(b"authorization", SECRET.encode())], 401),
    ([bearer(SECRET), bearer(SECRET)], 401),
    ([bearer(SECRET), bearer(SETTINGS_TOKEN)], 401),
    ([(b"x-api-key", SECRET.encode())], 401),
    ([cookie(SECRET)], 401),
    ([], 401),
])  # fmt: skip
async def test_only_the_token_itself_opens(
    door: Door, headers: list[tuple[bytes, bytes]], status: int
) -> None:
    await door.add()
    assert await door.ask(*headers) == status


async def test_an_empty_token_of_the_settings_opens_nothing() -> None:
    assert await Door("").ask(bearer("")) == 401


async def test_a_token_ends(door: Door) -> None:
    await door.add(lasts=timedelta(hours=1))
    door.now_s += 3_599
    assert await door.ask(bearer(SECRET)) == 200
    door.now_s += 1
    assert await door.ask(bearer(SECRET)) == 401


async def sign_in(door: Door) -> str:
    found: Any = await door.sign_ins.admit(SECRET.encode(), scope_with())
    return await door.sign_ins.begin(found.actor, method=found.method, expires_at=found.expires_at)


async def test_a_revoked_token_is_over_at_once_with_the_browsers_that_it_let_in(
    door: Door,
) -> None:
    await door.add()
    browser, other = await sign_in(door), await door.sign_ins.begin(settings_actor(HOME))
    for header in (bearer(SECRET), cookie(browser), cookie(other)):
        assert await door.ask(header) == 200
    assert await door.store.revoke_token("grafana")
    await asyncio.sleep(0)
    assert await door.ask(bearer(SECRET)) == 401
    assert await door.ask(cookie(browser)) == 401
    assert await door.ask(cookie(other)) == 200


async def test_where_the_notice_is_lost_it_is_over_in_seconds(door: Door) -> None:
    await door.add()
    browser = await sign_in(door)
    assert await door.ask(bearer(SECRET)) == await door.ask(cookie(browser)) == 200
    door.store._db.hearers.clear()
    assert await door.store.revoke_token("grafana")
    door.now_s += CHECK_S
    assert await door.ask(bearer(SECRET)) == await door.ask(cookie(browser)) == 401


async def test_a_sign_in_ends_with_its_token(door: Door) -> None:
    await door.add(lasts=timedelta(hours=1))
    browser = await sign_in(door)
    door.now_s += 3_599
    assert await door.ask(cookie(browser)) == 200
    door.now_s += 1
    assert await door.ask(cookie(browser)) == 401


async def test_a_sign_in_lasts_no_longer_than_others(door: Door) -> None:
    await door.add(lasts=10 * LASTS)
    await sign_in(door)
    (found,) = await door.store.sign_ins(now=NOW)
    assert found.expires_at == NOW + LASTS


@pytest.mark.parametrize("let_in_by", [bearer, cookie])
async def test_an_event_stream_ends_with_the_token(door: Door, let_in_by: Any) -> None:
    await door.add()
    secret = SECRET if let_in_by is bearer else await sign_in(door)
    follower = Follower()
    guard = Guard(follower.app, address="127.0.0.1", sign_ins=door.sign_ins)
    serving = follower.follow(guard, scope_with(let_in_by(secret), path="/api/status"))
    for text in (b"one", b"two"):
        follower.say(text)
        door.now_s += CHECK_S
        await asyncio.sleep(1)
    await door.store.revoke_token("grafana")
    door.now_s += CHECK_S
    follower.say(b"secret")
    await asyncio.wait_for(serving, 10)
    assert follower.sent == [b"", b"one", b"two", b""]


async def test_the_token_of_the_settings_costs_no_statement(door: Door) -> None:
    for _request in range(20):
        assert await door.ask(bearer(SETTINGS_TOKEN)) == 200
    assert door.store.reads == 0


async def test_others_cost_one_in_five_seconds_and_a_note_in_a_minute(door: Door) -> None:
    await door.add()
    for _request in range(20):
        assert await door.ask(bearer(SECRET)) == 200
    assert door.store.reads == 1
    (used,) = await door.store.tokens()
    assert used.last_used_at == NOW
    for _second in range(int(NOTE_S) - 1):
        door.now_s += 1
        assert await door.ask(bearer(SECRET)) == 200
    assert door.store.reads <= 1 + NOTE_S / CHECK_S
    assert await door.store.tokens() == [used]
    door.now_s += CHECK_S
    assert await door.ask(bearer(SECRET)) == 200
    assert (await door.store.tokens())[0].last_used_at != NOW


async def test_without_the_database_a_token_in_use_stays_valid(door: Door) -> None:
    await door.add()
    assert await door.ask(bearer(SECRET)) == 200
    door.store.is_away = True
    door.now_s += 3_600
    assert await door.ask(bearer(SECRET)) == 200
    assert await door.ask(bearer(PREFIX + "b" * 43)) == 503
    assert await door.ask(bearer(SETTINGS_TOKEN)) == 200


async def test_guesses_are_limited_and_do_not_reach_the_database(door: Door) -> None:
    for number in range(100):
        await door.ask(bearer(f"{PREFIX}{number:043}"))
    assert door.store.reads == MOST_OF_ADDRESS
    for number in range(100):
        await door.ask(bearer(f"wrong {number}"))
    assert door.store.reads == MOST_OF_ADDRESS


async def test_a_token_in_use_is_not_kept_out_by_strangers_behind_the_same_proxy(
    door: Door,
) -> None:
    await door.add()
    assert await door.ask(bearer(SECRET)) == 200
    for number in range(3 * MOST_OF_ADDRESS):
        await door.ask(bearer(f"wrong {number}"))
    assert await door.ask(bearer("wrong")) == 429
    assert await door.ask(bearer(SECRET)) == 200


@pytest.mark.parametrize(("role", "status"), [
    (AccessRole.VIEWER, 429), (AccessRole.OPERATOR, 429), (AccessRole.ADMIN, 200),
])  # fmt: skip
async def test_a_lesser_token_does_not_lift_the_limit_of_guesses(
    door: Door, role: AccessRole, status: int
) -> None:
    """Otherwise its holder could try the token of the settings without end."""
    await door.add(role)
    assert await door.ask(bearer(SECRET)) == 200
    for number in range(3 * MOST_OF_ADDRESS):
        await door.ask(bearer(f"wrong {number}"))
    assert await door.ask(bearer(SETTINGS_TOKEN)) == status


async def test_what_the_database_has_opens_nothing(door: Door) -> None:
    await door.add()
    rows = str(door.store._db.tokens)
    assert secret_hash(SECRET) in rows
    assert SECRET not in rows
