"""An OpenID provider signs people in, and nothing else does (SPEC SEC-10).

Promised: only an answer of this provider, to this browser, for this gateway, and once, signs a
person in, with the role of their groups; what a provider does wrong harms nobody else. Tried:
states, codes and ID tokens that are another's, forged, old or unsigned; providers that are down,
silent, endless, or are somebody else; addresses of other sites; cookies planted before.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from starlette.responses import Response

from goclaw_py.core.actors import AccessRole
from goclaw_py.records import SignIn, SignInMethod
from goclaw_py.web.attempts import MOST_OF_ADDRESS
from goclaw_py.web.front import ApiOrDashboard, WebAccess, tcp_server
from goclaw_py.web.group_roles import GroupRoles
from goclaw_py.web.openid import provider as provider_module
from goclaw_py.web.openid.client import OpenIdClient, SignInAttempt
from goclaw_py.web.openid.provider import KEYS_EVERY_S, RETRY_S
from goclaw_py.web.pages import make_site
from goclaw_py.web.signin import COOKIE
from goclaw_py.web.tcp import listen_tcp, url_of
from tests.support import openid_provider as fakes
from tests.support.apps import lend_api
from tests.support.memory_store import MemoryStore
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    KEY,
    OTHER_KEY,
    Claims,
    Provider,
    openid_provider,
    query_of,
)
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time

TOKEN = "a-token-of-thirty-two-characters"
ROLES = GroupRoles({
    AccessRole.ADMIN: frozenset({"ops"}), AccessRole.OPERATOR: frozenset({"desk"}),
})  # fmt: skip
ATTEMPT = "goclaw_openid"


class Dashboard:
    """A gateway whose people sign in at a provider."""

    def __init__(self, provider: Provider, url: str, **client: Any) -> None:
        self.provider = provider
        self.url = url
        self.late_s = 0.0
        self.store = MemoryStore()
        self.client = replace(
            OpenIdClient(provider.issuer, CLIENT_ID, url, CLIENT_SECRET, "Acme", roles=ROLES),
            **client,
        )

    def now_s(self) -> float:
        return time.time() + self.late_s

    async def sign_ins(self) -> list[SignIn]:
        return await self.store.sign_ins(now=datetime.fromtimestamp(self.now_s(), UTC))


@asynccontextmanager
async def dashboard_of(provider: Provider, **client: Any) -> AsyncIterator[Dashboard]:
    with closing(listen_tcp("127.0.0.1", 0)) as listener:
        dashboard = Dashboard(provider, url_of(listener), **client)
        control: Any = FakeControl()
        hosts = filter(None, [urlsplit(dashboard.client.public_url).hostname])
        access = WebAccess("127.0.0.1", tuple(hosts), TOKEN, dashboard.now_s)
        access = replace(access, openid=dashboard.client).with_store(dashboard.store)
        api = lend_api(control)
        pages = ApiOrDashboard(api, make_site(control, api, access))
        server = tcp_server(listener, [], pages, access)
        task = asyncio.create_task(server.run())
        try:
            yield dashboard
        finally:
            server.stop()
            await task


@pytest.fixture
async def dashboard() -> AsyncIterator[Dashboard]:
    async with openid_provider() as provider, dashboard_of(provider) as made:
        yield made


class Browser:
    """Goes where it is led, and sends cookies as browsers do: strict ones only from our site."""

    def __init__(self, dashboard: Dashboard) -> None:
        self.dashboard = dashboard
        self.http = httpx.AsyncClient(trust_env=False)
        self.strict = dict[str, str]()
        self.home = urlsplit(dashboard.url).netloc

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def get(self, address: str, *, comes_from: str = "") -> httpx.Response:
        """Open an address, without going on from there."""
        place = urlsplit(address).netloc
        is_own = place == self.home == (comes_from or self.home)
        headers = {"accept": "text/html"}
        if is_own and self.strict:
            kept = {**self.strict, **{one.name: one.value or "" for one in self.http.cookies.jar}}
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in kept.items())
        answer = await self.http.get(address, headers=headers)
        for line in answer.headers.get_list("set-cookie"):
            if "samesite=strict" in line.lower():
                name, _, value = line.partition(";")[0].partition("=")
                self.strict[name] = value
                self.http.cookies.delete(name)
        return answer

    async def begin(self, wanted: str = "/jobs") -> str:
        """Press the button; return the address of the form at the provider."""
        page = await self.get(f"{self.dashboard.url}/login?{urlencode({'next': wanted})}")
        assert "Sign in with Acme" in page.text
        start = page.text.partition('primary" href="')[2].partition('"')[0].replace("&amp;", "&")
        sent = await self.get(start)
        assert sent.status_code == 303, sent.text
        form = await self.get(sent.headers["location"], comes_from=self.home)
        return form.headers["x-form"]

    async def enter(self, form: str) -> str:
        """Enter the password; return where the provider leads back to."""
        answer = await self.get(form, comes_from=urlsplit(form).netloc)
        return answer.headers["location"]

    async def come_back(self, address: str) -> httpx.Response:
        return await self.get(address, comes_from=urlsplit(self.dashboard.provider.issuer).netloc)

    async def sign_in(self, wanted: str = "/jobs") -> httpx.Response:
        return await self.come_back(await self.enter(await self.begin(wanted)))

    async def is_in(self) -> bool:
        return (await self.get(f"{self.dashboard.url}/jobs")).status_code == 200


@pytest.fixture
async def browser(dashboard: Dashboard) -> AsyncIterator[Browser]:
    async with Browser(dashboard) as made:
        yield made


async def test_a_person_signs_in_as_themselves(dashboard: Dashboard, browser: Browser) -> None:
    assert not await browser.is_in()
    answer = await browser.sign_in("/jobs?state=paused")
    assert answer.status_code == 200
    assert 'content="0; url=/jobs?state=paused"' in answer.text
    assert await browser.is_in()
    (found,) = await dashboard.sign_ins()
    assert (found.name, found.role, found.method) == ("ann", AccessRole.ADMIN, SignInMethod.OPENID)
    assert found.address == "127.0.0.1"
    assert round((found.expires_at - found.created_at).total_seconds()) == 86_400
    dashboard.late_s = 86_401
    assert not await browser.is_in()


async def test_the_token_opens_as_before(dashboard: Dashboard, browser: Browser) -> None:
    bearer = {"authorization": f"Bearer {TOKEN}"}
    answer = await browser.http.get(f"{dashboard.url}/api/status", headers=bearer)
    assert answer.status_code == 200
    fields, origin = {"token": TOKEN, "next": "/"}, {"origin": dashboard.url}
    answer = await browser.http.post(f"{dashboard.url}/login", data=fields, headers=origin)
    assert answer.status_code == 303


@pytest.mark.parametrize(("claims", "role"), [
    ({"groups": ["ops"]}, AccessRole.ADMIN), ({"groups": ["a", "desk"]}, AccessRole.OPERATOR),
    ({"groups": ["desk", "ops"]}, AccessRole.ADMIN), ({"groups": "desk"}, AccessRole.OPERATOR),
    ({"groups": None}, None), ({"groups": []}, None), ({"groups": ["staff"]}, None),
    ({"groups": "desk,ops"}, None), ({"groups": "desk ops"}, None), ({"groups": ["OPS"]}, None),
    ({"groups": {"ops": True}}, None), ({"groups": [["ops"]]}, None), ({"groups": 7}, None),
    ({"groups": [{"name": "ops"}, None, 7]}, None), ({"groups": True}, None),
])  # fmt: skip
async def test_the_groups_give_the_role(
    dashboard: Dashboard, browser: Browser, claims: Claims, role: AccessRole | None
) -> None:
    dashboard.provider.claims |= claims
    answer = await browser.sign_in()
    assert answer.status_code == (200 if role else 403)
    assert [one.role for one in await dashboard.sign_ins()] == ([role] if role else [])
    assert await browser.is_in() is (role is not None)
    assert ("ann has no role here" in answer.text) is (role is None)


@pytest.mark.parametrize(("name", "claims"), [
    ("realm_access.roles", {"realm_access": {"roles": ["ops"]}}),
    ("resource_access.goclaw.roles", {"resource_access": {"goclaw": {"roles": "ops"}}}),
    ("https://example.org/groups", {"https://example.org/groups": ["ops"]}),
    ("a.b", {"a.b": ["ops"], "a": {"b": ["desk"]}}),
])  # fmt: skip
async def test_groups_may_stand_anywhere(name: str, claims: Claims) -> None:
    async with (
        openid_provider() as provider,
        dashboard_of(provider, groups_claim=name) as dashboard,
        Browser(dashboard) as browser,
    ):
        provider.claims |= {"groups": None, "realm_access": "none"} | claims
        assert (await browser.sign_in()).status_code == 200
        (found,) = await dashboard.sign_ins()
        assert found.role is AccessRole.ADMIN


@pytest.mark.parametrize(("userinfo", "status"), [
    ({"groups": ["ops"]}, 200), ({}, 403), ({"groups": ["ops"], "sub": "4712"}, 503),
    ({"groups": ["ops"], "sub": None}, 503),
])  # fmt: skip
async def test_groups_may_stand_in_the_user_info(
    dashboard: Dashboard, browser: Browser, userinfo: Claims, status: int
) -> None:
    """As with Authelia, whose ID tokens have none."""
    dashboard.provider.claims["groups"] = None
    dashboard.provider.userinfo = userinfo
    assert (await browser.sign_in()).status_code == status
    assert await browser.is_in() is (status == 200)


@pytest.mark.parametrize(("address", "status"), [("ann@example.org", 200), ("x@e.org", 403)])
async def test_an_address_is_verified_by_what_speaks_of_it(address: str, status: int) -> None:
    """The ID token has an address, and the user info says that one is verified."""
    async with (
        openid_provider() as provider,
        dashboard_of(provider, emails=("ann@example.org",)) as dashboard,
        Browser(dashboard) as browser,
    ):
        provider.claims |= {"email": "ann@example.org"}
        provider.userinfo = {"email": address, "email_verified": True}
        assert (await browser.sign_in()).status_code == status


@pytest.mark.parametrize(("claims", "name"), [
    ({}, "ann"), ({"preferred_username": None, "email": "ann@example.org"}, "4711"),
    ({"preferred_username": None, "email": "ann@example.org", "email_verified": True},
     "ann@example.org"),
    ({"preferred_username": ""}, "4711"), ({"preferred_username": "ann\u202e"}, "4711"),
    ({"preferred_username": ["root"]}, "4711"), ({"preferred_username": "x" * 201}, "4711"),
])  # fmt: skip
async def test_a_name_can_be_shown(
    dashboard: Dashboard, browser: Browser, claims: Claims, name: str
) -> None:
    dashboard.provider.claims |= claims
    assert (await browser.sign_in()).status_code == 200
    assert [one.name for one in await dashboard.sign_ins()] == [name]


@pytest.mark.parametrize(("claims", "is_in"), [
    ({"email": "Ann@Example.org", "email_verified": True}, True),
    ({"email": "bob@corp.example", "email_verified": True}, True),
    ({"email": "bob@example.org", "email_verified": True}, False),
    ({"email": "ann@example.org"}, False),
    ({"email": "ann@example.org", "email_verified": 1}, False),
    ({"email": "ann@example.org", "email_verified": "true"}, False),
    ({"email": "x@corp.example@evil.example", "email_verified": True}, False),
    ({"email": "x@sub.corp.example", "email_verified": True}, False),
    ({"email": ["ann@example.org"], "email_verified": True}, False), ({}, False),
])  # fmt: skip
async def test_only_expected_addresses_come_in(claims: Claims, *, is_in: bool) -> None:
    async with (
        openid_provider() as provider,
        dashboard_of(provider, emails=("ann@example.org", "@corp.example")) as dashboard,
        Browser(dashboard) as browser,
    ):
        provider.claims |= claims
        assert (await browser.sign_in()).status_code == (200 if is_in else 403)
        assert await browser.is_in() is is_in


# ------------------------------------------------------------------ ID tokens

Sign = Callable[[Provider, Claims], str]


def with_claims(**changed: Any) -> Sign:
    def sign(provider: Provider, claims: Claims) -> str:
        whole = {
            **claims,
            **{name: one(claims) if callable(one) else one for name, one in changed.items()},
        }
        return provider.token({name: one for name, one in whole.items() if one is not None})

    return sign


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(claims: Claims, alg: str, secret: bytes | None) -> str:
    """What no library would sign."""
    head = {"alg": alg, "kid": KEY.kid}
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
    made = b"" if secret is None else hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{_encoded(made)}"


def unsigned(provider: Provider, claims: Claims) -> str:
    return by_hand(claims, "none", None)


def unsigned_in_capitals(provider: Provider, claims: Claims) -> str:
    return by_hand(claims, "NONE", None)


def with_public_key(provider: Provider, claims: Claims) -> str:
    return by_hand(claims, "HS256", KEY.as_pem(private=False))


def with_client_secret(provider: Provider, claims: Claims) -> str:
    return by_hand(claims, "HS256", CLIENT_SECRET.encode())


def with_another_key(provider: Provider, claims: Claims) -> str:
    return provider.token(claims, OTHER_KEY, kid=KEY.kid)


def with_key_in_the_head(provider: Provider, claims: Claims) -> str:
    return provider.token(claims, OTHER_KEY, jwk=OTHER_KEY.as_dict(private=False), kid=None)


def cut(provider: Provider, claims: Claims) -> str:
    return provider.token(claims).rpartition(".")[0] + "."


def changed_after(provider: Provider, claims: Claims) -> str:
    head, _, signature = provider.token(claims).split(".")
    body = provider.token({**claims, "groups": ["ops"], "sub": "1"}).split(".")[1]
    return f"{head}.{body}.{signature}"


ATTACKS: dict[str, Sign] = {
    "no nonce": with_claims(nonce=None),
    "another nonce": with_claims(nonce="0" * 64),
    "a list of nonces": with_claims(nonce=lambda claims: [claims["nonce"]]),
    "another audience": with_claims(aud="another-client"),
    "no audience": with_claims(aud=None),
    "an empty audience": with_claims(aud=[]),
    "several audiences, for another one": with_claims(aud=[CLIENT_ID, "other"], azp="other"),
    "several audiences, for nobody": with_claims(aud=[CLIENT_ID, "other"]),
    "another issuer": with_claims(iss="https://evil.example"),
    "an issuer with a slash": with_claims(iss=lambda claims: claims["iss"] + "/"),
    "no issuer": with_claims(iss=None),
    "no subject": with_claims(sub=None),
    "expired": with_claims(exp=lambda claims: claims["iat"] - 120),
    "no end": with_claims(exp=None),
    "an end that is no number": with_claims(exp="2099-01-01"),
    "an endless end": with_claims(exp=float("inf")),
    "of the future": with_claims(iat=lambda claims: claims["iat"] + 600),
    "not valid yet": with_claims(nbf=lambda claims: claims["iat"] + 600),
    "for another access token": with_claims(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "alg none": unsigned,
    "alg NONE": unsigned_in_capitals,
    "HS256 with the public key": with_public_key,
    "HS256 with the client's secret": with_client_secret,
    "signed by another key": with_another_key,
    "a key of its own": with_key_in_the_head,
    "an unknown key": lambda provider, claims: provider.token(claims, OTHER_KEY),
    "no signature": cut,
    "another body": changed_after,
    "no token": lambda provider, claims: "",
    "no JWT": lambda provider, claims: "a.b.c",
    "too long": lambda provider, claims: "a" * 200_000,
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_id_token_that_is_not_for_this_sign_in_signs_nobody_in(
    dashboard: Dashboard, browser: Browser, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    dashboard.provider.signs = lambda claims: ATTACKS[name](dashboard.provider, claims)
    answer = await browser.sign_in()
    assert answer.status_code == 403
    assert "The answer of Acme is not valid" in answer.text
    assert COOKIE not in "".join(answer.headers.get_list("set-cookie"))
    assert await dashboard.sign_ins() == []
    assert not await browser.is_in()
    assert "openid_token_refused" in caplog.text
    assert CLIENT_SECRET not in caplog.text + answer.text


async def test_a_new_key_is_fetched_and_unknown_ones_not_without_end(
    dashboard: Dashboard, browser: Browser
) -> None:
    provider = dashboard.provider
    assert (await browser.sign_in()).status_code == 200
    dashboard.late_s += KEYS_EVERY_S
    provider.keys = [OTHER_KEY, KEY]
    assert (await browser.sign_in()).status_code == 200
    assert provider.asked["/jwks"] == 2
    unknown = fakes.new_key("unknown")
    provider.signs = lambda claims: provider.token(claims, unknown)
    for _attempt in range(5):
        assert (await browser.sign_in()).status_code == 403
    assert provider.asked["/jwks"] == 2
    dashboard.late_s += KEYS_EVERY_S
    assert (await browser.sign_in()).status_code == 403
    assert provider.asked["/jwks"] == 3


# ------------------------------------------------------------------ the way there and back


async def test_the_way_there_gives_nothing_away(dashboard: Dashboard, browser: Browser) -> None:
    form = query_of(await browser.begin())
    assert form["redirect_uri"] == f"{dashboard.url}/login/openid/callback"
    assert len({form["state"], form["nonce"], form["code_challenge"]}) == 3
    cookie = browser.http.cookies[ATTEMPT]
    attempt = SignInAttempt.read(cookie)
    assert attempt is not None
    assert attempt.secret not in str(form)
    assert attempt.verifier not in str(form)
    await browser.enter(await browser.begin())
    assert CLIENT_SECRET not in str(dashboard.provider.form)


@pytest.mark.parametrize("change", [
    {"state": None}, {"state": ""}, {"state": "0" * 64}, {"state": "é"},
    {"iss": "https://evil.example"}, {"code": None}, {"code": ""}, {"code": "x" * 5_000},
    {"code": "guessed"}, {"error": "access_denied", "code": None},
])  # fmt: skip
async def test_an_answer_that_is_changed_signs_nobody_in(
    dashboard: Dashboard, browser: Browser, change: dict[str, str | None]
) -> None:
    back = await browser.enter(await browser.begin())
    query = {name: one for name, one in {**query_of(back), **change}.items() if one is not None}
    answer = await browser.come_back(f"{back.partition('?')[0]}?{urlencode(query)}")
    assert answer.status_code in {400, 403}
    assert await dashboard.sign_ins() == []


@pytest.mark.parametrize("name", ["state", "code"])
async def test_a_repeated_parameter_signs_nobody_in(
    dashboard: Dashboard, browser: Browser, name: str
) -> None:
    back = await browser.enter(await browser.begin())
    answer = await browser.come_back(f"{back}&{name}={query_of(back)[name]}")
    assert answer.status_code == 400


async def test_nobody_is_signed_in_as_somebody_else(dashboard: Dashboard, browser: Browser) -> None:
    """An attacker lets the browser of another person open the end of the attacker's own sign-in."""
    back = await browser.enter(await browser.begin())
    async with Browser(dashboard) as other:
        assert (await other.come_back(back)).status_code == 400
        # Also if that person is about to sign in.
        await other.begin()
        assert (await other.come_back(back)).status_code == 400
        assert not await other.is_in()
        # With the state of that person the provider sees that another browser has begun.
        mine = await other.enter(await other.begin())
        mixed = {**query_of(mine), "code": query_of(back)["code"]}
        answer = await other.come_back(f"{mine.partition('?')[0]}?{urlencode(mixed)}")
        assert answer.status_code == 403
        assert "invalid_grant" in answer.text
    assert await dashboard.sign_ins() == []


async def test_an_answer_counts_once(dashboard: Dashboard, browser: Browser) -> None:
    back = await browser.enter(await browser.begin())
    kept = browser.http.cookies[ATTEMPT]
    assert (await browser.come_back(back)).status_code == 200
    assert ATTEMPT not in browser.http.cookies
    assert (await browser.come_back(back)).status_code == 400
    # Also for whoever has copied the cookie: the provider knows the code.
    browser.http.cookies.set(ATTEMPT, kept, domain="127.0.0.1")
    assert (await browser.come_back(back)).status_code == 403
    assert len(await dashboard.sign_ins()) == 1


async def test_a_cookie_planted_before_is_not_that_of_the_sign_in(
    dashboard: Dashboard, browser: Browser
) -> None:
    browser.strict[COOKIE] = planted = "p" * 43
    await browser.sign_in()
    assert browser.strict[COOKIE] != planted
    async with Browser(dashboard) as attacker:
        attacker.strict[COOKIE] = planted
        assert not await attacker.is_in()


@pytest.mark.parametrize("wanted", [
    "https://evil.example/", "//evil.example/", "/\\evil.example", "/\t/evil.example",
    "javascript:alert(1)", "evil", "", "/" + "x" * 5_000, "/\n//evil.example",
])  # fmt: skip
async def test_a_sign_in_leads_to_no_other_site(
    dashboard: Dashboard, browser: Browser, wanted: str
) -> None:
    start = f"{dashboard.url}/login/openid?{urlencode({'next': wanted})}"
    form = (await browser.get((await browser.get(start)).headers["location"])).headers["x-form"]
    answer = await browser.come_back(await browser.enter(form))
    assert 'content="0; url=/"' in answer.text
    # A cookie that was changed leads no further.
    browser.http.cookies.clear()
    attempt = SignInAttempt("a" * 43, wanted)
    browser.http.cookies.set(ATTEMPT, attempt.cookie, domain="127.0.0.1")
    page = await browser.come_back(f"{dashboard.url}/login/openid/callback?state={attempt.state}")
    assert 'name="next" value="/"' in page.text or len(wanted) > 1_500


async def test_a_page_cannot_be_smuggled_in(dashboard: Dashboard, browser: Browser) -> None:
    answer = await browser.sign_in('/jobs?"><script>alert(1)</script>')
    assert "<script>alert" not in answer.text


@pytest.mark.parametrize("name", ["host", "x-forwarded-host", "forwarded", "x-forwarded-proto"])
async def test_the_way_back_depends_on_no_request(
    dashboard: Dashboard, browser: Browser, name: str
) -> None:
    port = urlsplit(dashboard.url).port
    said = f"localhost:{port}" if name == "host" else "evil.example"
    start = f"{dashboard.url}/login/openid"
    answer = await browser.http.get(start, headers={name: said})
    back = query_of(answer.headers["location"])["redirect_uri"]
    assert back == f"{dashboard.url}/login/openid/callback"


async def test_behind_tls_cookies_are_of_this_name_only() -> None:
    public = "https://bot.example.org"
    async with (
        openid_provider() as provider,
        dashboard_of(provider, public_url=public) as dashboard,
        Browser(dashboard) as browser,
    ):
        page = await browser.get(f"{dashboard.url}/login")
        assert f'href="{public}/login/openid?next=%2F"' in page.text
        seen = {"host": "bot.example.org"}
        sent = await browser.http.get(f"{dashboard.url}/login/openid", headers=seen)
        (line,) = sent.headers.get_list("set-cookie")
        name, _, facts = line.partition("=")
        assert name == "__Host-goclaw_openid"
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(facts.split("; "))
        address = sent.headers["location"] + "&signed=1"
        back = urlsplit((await browser.http.get(address)).headers["location"])
        assert (back.scheme, back.netloc) == ("https", "bot.example.org")
        seen["cookie"] = line.partition(";")[0]
        here = f"{dashboard.url}{back.path}?{back.query}"
        answer = await browser.http.get(here, headers=seen)
        assert answer.status_code == 200
        session = answer.headers.get_list("set-cookie")[0]
        assert session.startswith(f"{COOKIE}=")
        assert {"Secure", "HttpOnly", "SameSite=strict"} <= set(session.split("; "))


async def test_failed_answers_are_limited_by_address(
    dashboard: Dashboard, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    found = []
    for number in range(MOST_OF_ADDRESS + 3):
        attempt = SignInAttempt(f"{number:043}", "/")
        browser.http.cookies.set(ATTEMPT, attempt.cookie, domain="127.0.0.1")
        query = urlencode({"state": attempt.state, "code": "guessed"})
        answer = await browser.come_back(f"{dashboard.url}/login/openid/callback?{query}")
        found.append(answer.status_code)
    assert found == [403] * MOST_OF_ADDRESS + [429] * 3
    assert dashboard.provider.asked["/token"] == MOST_OF_ADDRESS
    lines = [one for one in caplog.records if one.message == "sign_in_refused"]
    assert {one.__dict__["address"] for one in lines} == {"127.0.0.1"}


async def test_what_answers_no_question_locks_nobody_out(
    dashboard: Dashboard, browser: Browser
) -> None:
    """Any page can let a browser ask for this address, as for a picture."""
    for query in ("", "?state=x", "?state=x&code=y", "?error=access_denied") * MOST_OF_ADDRESS:
        answer = await browser.http.get(f"{dashboard.url}/login/openid/callback{query}")
        assert answer.status_code == 400
    assert (await browser.sign_in()).status_code == 200


async def test_signing_out_ends_it_here_and_leads_to_the_provider(
    dashboard: Dashboard, browser: Browser
) -> None:
    await browser.sign_in()
    cookie = f"{COOKIE}={browser.strict[COOKIE]}"
    headers = {"origin": dashboard.url, "cookie": cookie}
    page = await browser.http.post(f"{dashboard.url}/logout", headers=headers)
    assert f'href="{dashboard.provider.issuer}/logout?client_id={CLIENT_ID}"' in page.text
    assert await dashboard.sign_ins() == []
    assert not await browser.is_in()


@pytest.mark.parametrize("address", [None, "javascript:alert(1)", "http://evil.example/", 7])
async def test_without_a_safe_address_signing_out_is_only_here(
    dashboard: Dashboard, browser: Browser, address: object
) -> None:
    dashboard.provider.description["end_session_endpoint"] = address
    await browser.sign_in()
    headers = {"origin": dashboard.url, "cookie": f"{COOKIE}={browser.strict[COOKIE]}"}
    page = await browser.http.post(f"{dashboard.url}/logout", headers=headers)
    assert (page.status_code, page.headers["location"]) == (303, "/login?notice=left")


# ------------------------------------------------------------------ providers that fail

BAD: dict[str, Callable[[], Response]] = {
    "HTML": fakes.html, "huge": fakes.huge, "endless": fakes.endless, "packed": fakes.packed,
    "silent": fakes.silent, "failing": fakes.failing, "elsewhere": fakes.elsewhere,
    "deep": fakes.deep, "a list": fakes.a_list,
}  # fmt: skip


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "LIMIT_S", 0.5)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/jwks"])
@pytest.mark.parametrize("name", BAD)
async def test_a_provider_that_answers_nonsense_harms_nobody_else(
    dashboard: Dashboard, browser: Browser, path: str, name: str
) -> None:
    provider = dashboard.provider
    provider.says[path] = BAD[name]
    if path.startswith("/."):
        answer = await browser.get(f"{dashboard.url}/login/openid")
    else:
        answer = await browser.sign_in()
    assert answer.status_code == 503 or (path == "/token" and answer.status_code == 403)
    assert "Acme" in answer.text
    assert await dashboard.sign_ins() == []
    healthy = await browser.http.get(f"{dashboard.url}/healthz")
    assert healthy.status_code == 200
    # Once it answers again, people sign in again.
    provider.says.clear()
    dashboard.late_s += RETRY_S
    assert (await browser.sign_in()).status_code == 200


@pytest.mark.parametrize("changed", [
    {"issuer": "https://evil.example"}, {"issuer": None}, {"token_endpoint": None},
    {"authorization_endpoint": "http://evil.example/"}, {"token_endpoint": "http://evil.example/"},
    {"jwks_uri": "http://evil.example/"}, {"jwks_uri": ["x"]}, {"jwks_uri": "file:///etc/passwd"},
    {"userinfo_endpoint": "http://evil.example/"}, {"authorization_endpoint": "javascript:x"},
])  # fmt: skip
async def test_a_description_of_somebody_else_is_refused(
    dashboard: Dashboard, browser: Browser, changed: Claims
) -> None:
    dashboard.provider.description = changed
    answer = await browser.get(f"{dashboard.url}/login/openid")
    assert answer.status_code == 503
    assert "Acme answers nothing that can be read" in answer.text


async def test_a_provider_that_is_down_keeps_out_nobody_with_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = Provider("http://localhost:1")
    async with dashboard_of(provider) as dashboard, Browser(dashboard) as browser:
        for _press in range(3):
            page = await browser.get(f"{dashboard.url}/login/openid?next=/jobs")
            assert page.status_code == 503
            assert "Acme cannot be reached. Try again later, or use the token." in page.text
            assert 'name="token"' in page.text
            assert 'name="next" value="/jobs"' in page.text
        fields, origin = {"token": TOKEN, "next": "/"}, {"origin": dashboard.url}
        answer = await browser.http.post(f"{dashboard.url}/login", data=fields, headers=origin)
        assert answer.status_code == 303
    assert caplog.text.count("openid_provider_failed") == 1


async def test_many_who_wait_for_a_silent_provider_ask_it_once(
    dashboard: Dashboard, browser: Browser, short: None
) -> None:
    path = "/.well-known/openid-configuration"
    dashboard.provider.says[path] = fakes.silent
    asked = [browser.get(f"{dashboard.url}/login/openid") for _ in range(30)]
    answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {503}
    assert dashboard.provider.asked[path] == 1


async def test_a_client_that_posts_its_secret_and_a_public_one(
    dashboard: Dashboard, browser: Browser
) -> None:
    provider = dashboard.provider
    provider.description["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    provider._is_client = lambda request: True  # type: ignore[method-assign]
    assert (await browser.sign_in()).status_code == 200
    assert provider.form["client_secret"] == CLIENT_SECRET
    async with (
        openid_provider() as other,
        dashboard_of(other, secret="") as public,
        Browser(public) as second,
    ):
        other._is_client = lambda request: "authorization" not in request.headers  # type: ignore[method-assign]
        assert (await second.sign_in()).status_code == 200
        assert other.form["client_id"] == CLIENT_ID


def test_the_secret_is_shown_nowhere() -> None:
    shown = repr(OpenIdClient("https://x", CLIENT_ID, "https://y", CLIENT_SECRET))
    assert CLIENT_SECRET not in shown
    assert "a" * 43 not in repr(SignInAttempt("a" * 43, "/"))
