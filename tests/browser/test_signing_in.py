"""A dashboard that asks for a token, and one whose gateway goes away and comes back (SEC-1)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESK, PHONE, SaveArtefact, Screen, visit
from tests.browser.dashboard import address_of
from tests.browser.seen import live, overflow, press, send, title, violations
from tests.support.openid_provider import CLIENT_ID, CLIENT_SECRET, openid_provider_in_thread
from tests.support.process import Home, Program, home

pytestmark = pytest.mark.real_time

TOKEN = "0123456789abcdef-of-the-browser"


@dataclass
class Locked:
    """A gateway that wants a token, at an address that it keeps when it starts again."""

    place: Home
    gateway: Program
    url: str

    def start(self) -> None:
        self.gateway = self.place.start(ready=False)
        assert address_of(self.gateway) == self.url


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, databases: list[str]) -> Iterator[Locked]:
    settings = {"GOCLAW_WEB__API": "true", "GOCLAW_WEB__PORT": str(_free_port())}
    settings |= {"GOCLAW_WEB__TOKEN": TOKEN, "GOCLAW_DATABASE_URL": databases[1]}
    with home(tmp_path_factory.mktemp("locked") / "home", **settings) as place:
        gateway = place.start(ready=False)
        yield Locked(place, gateway, address_of(gateway))


def sign_in(page: Page, token: str = TOKEN) -> None:
    page.get_by_label("Token").fill(token)
    press(page, "Sign in")


def test_nothing_is_shown_before_the_right_token(locked: Locked, chromium: Browser) -> None:
    with visit(chromium, locked.url, DESK) as (context, seen):
        page = context.new_page()
        page.goto("/deliveries")
        title(page, "Sign in")
        assert "/login" in page.url
        expect(page.get_by_label("Token")).to_be_focused()
        sign_in(page, "0123456789abcdef-of-nobody")
        expect(page.get_by_role("alert")).to_have_text("This is not the token.")
        seen.expect("403")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_label("Token").press("Enter")
        title(page, "Deliveries")
        expect(page.locator(".notice")).to_have_text("Signed in.")
        live(page)
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert TOKEN not in cookie["value"]
        assert page.evaluate("() => document.cookie") == ""
        press(page, "Sign out")
        title(page, "Sign in")
        assert context.cookies() == []
        page.goto("/people")
        title(page, "Sign in")


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=str)
def test_the_page_with_the_question_is_for_everybody(
    locked: Locked, chromium: Browser, screen: Screen, artefacts: SaveArtefact
) -> None:
    with visit(chromium, locked.url, screen) as (context, _):
        page = context.new_page()
        page.goto("/")
        artefacts(page, f"Sign in {screen.name}")
        assert violations(page) == []
        assert overflow(page) <= 0


ROLES = (("viewer", 0, 0), ("operator", 0, 1), ("admin", 1, 1))


@pytest.mark.parametrize(("role", "for_people", "for_heartbeats"), ROLES)
def test_forms_are_shown_to_who_may_send_them(
    locked: Locked, chromium: Browser, role: str, for_people: int, for_heartbeats: int
) -> None:
    """SEC-8: and the page says who is signed in."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = {"name": f"the {role}", "role": role}
    made = httpx.post(f"{locked.url}/api/tokens", headers=headers, json=body, timeout=60).json()
    with visit(chromium, locked.url, DESK) as (context, seen):
        page = context.new_page()
        page.goto("/people")
        sign_in(page, made["secret"])
        title(page, "People")
        shown = page.locator("main form[method=post]:visible")
        assert (shown.count() > 0) == for_people
        expect(page.locator("header .foot")).to_contain_text(f"the {role} {role}")
        page.goto("/heartbeats/main")
        live(page)
        assert (shown.count() > 0) == for_heartbeats
        if role == "viewer":
            page.goto("/chat")
            title(page, "Not allowed")
            expect(page.get_by_role("alert")).to_contain_text("needs the role operator")
            seen.expect("403")


def test_pages_tell_when_the_gateway_is_away_and_back(locked: Locked, chromium: Browser) -> None:
    """Who was signed in still is."""
    with visit(chromium, locked.url, DESK) as (context, seen):
        now, chat = context.new_page(), context.new_page()
        now.goto("/health")
        sign_in(now)
        chat.goto("/chat?name=patient")
        for page in (now, chat):
            live(page)
            page.evaluate("() => { window.__same = true }")
        before = now.get_by_role("region", name="This gateway").inner_text()
        locked.gateway.end()
        for page in (now, chat):
            expect(page.locator("#link")).to_have_text("reconnecting…")
        locked.start()
        for page in (now, chat):
            live(page)
            assert page.evaluate("() => window.__same")
        expect(now.get_by_role("region", name="This gateway")).not_to_have_text(before)
        send(chat, "echo welcome back")
        expect(chat.locator("li.assistant .words")).to_have_text("welcome back")
        seen.expect("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE")


def test_a_page_whose_sign_in_has_ended_leads_back(locked: Locked, chromium: Browser) -> None:
    """As after 30 days, or with another token: what it asks for next is refused."""
    places = (("/sessions", "Sessions"), ("/chat?name=ended", "Chat"))
    with ExitStack() as stack:
        # Each with cookies of its own: a sign-in in one page would bring the other one back.
        windows = [stack.enter_context(visit(chromium, locked.url, DESK)) for _ in places]
        pages = [context.new_page() for context, _ in windows]
        for page, (path, _) in zip(pages, places, strict=True):
            page.goto(path)
            sign_in(page)
            live(page)
        for context, seen in windows:
            context.clear_cookies()
            seen.expect(
                "ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE", "401"
            )
        locked.gateway.end()
        locked.start()
        for page, (_, name) in zip(pages, places, strict=True):
            way = page.locator("#link").get_by_role("link", name="Signed out: sign in again")
            way.click()
            sign_in(page)
            title(page, name)


def test_a_sign_out_is_said_in_other_tabs(locked: Locked, chromium: Browser) -> None:
    with visit(chromium, locked.url, DESK) as (context, seen):
        pages = [context.new_page() for _ in range(3)]
        for page, path in zip(pages, ("/chat?name=out", "/sessions", "/runs"), strict=True):
            page.goto(path)
            if page is pages[0]:
                sign_in(page)
            live(page)
        # Those in the background have no stream.
        for page in pages:
            page.evaluate("() => dispatchEvent(new Event('pageshow'))")
        seen.expect("401", "ERR_INCOMPLETE_CHUNKED")
        press(pages[2].locator("header"), "Sign out")
        for page in pages[:2]:
            said = page.locator("#link").get_by_role("link", name="Signed out: sign in again")
            expect(said).to_be_visible(timeout=8_000)


def test_what_was_typed_outlives_a_new_sign_in(locked: Locked, chromium: Browser) -> None:
    with visit(chromium, locked.url, DESK) as (context, seen):
        page = context.new_page()
        page.goto("/chat?name=typed")
        sign_in(page)
        live(page)
        context.clear_cookies()
        send(page, "echo a long thought")
        # Here and in the heading, whose stream may have noticed it, too.
        page.locator("#doing").get_by_role("link", name="Signed out: sign in again").click()
        sign_in(page)
        live(page)
        expect(page.get_by_label("Message")).to_have_value("echo a long thought")
        page.get_by_label("Message").press("Enter")
        expect(page.locator("li.assistant .words")).to_have_text("a long thought")
        seen.expect("401")


@pytest.fixture
def by_openid(tmp_path_factory: pytest.TempPathFactory, locked: Locked) -> Iterator[str]:
    """The address of a gateway whose people sign in at a provider of another site."""
    with openid_provider_in_thread() as provider:
        port = _free_port()
        settings = {
            "GOCLAW_WEB__API": "true",
            "GOCLAW_WEB__PORT": str(port),
            "GOCLAW_WEB__TOKEN": TOKEN,
            "GOCLAW_WEB__PUBLIC_URL": f"http://127.0.0.1:{port}",
            "GOCLAW_WEB__OPENID__NAME": "Acme",
            "GOCLAW_WEB__OPENID__ISSUER": provider.issuer,
            "GOCLAW_WEB__OPENID__CLIENT_ID": CLIENT_ID,
            "GOCLAW_WEB__OPENID__CLIENT_SECRET": CLIENT_SECRET,
            "GOCLAW_WEB__OPENID__ADMIN_GROUPS": "ops",
            "GOCLAW_DATABASE_URL": locked.place.env["GOCLAW_DATABASE_URL"],
        }
        with home(tmp_path_factory.mktemp("openid") / "home", **settings) as place:
            yield address_of(place.start(ready=False))


def test_a_person_comes_back_from_the_provider_to_the_page_they_wanted(
    by_openid: str, chromium: Browser
) -> None:
    """SEC-10: a real browser decides which cookies it sends from another site, and to where."""
    context = chromium.new_context(base_url=by_openid, **DESK.options)
    try:
        page = context.new_page()
        page.goto("/deliveries")
        page.get_by_role("link", name="Sign in with Acme").click()
        page.get_by_role("link", name="I am Ann").click()
        title(page, "Deliveries")
        assert page.url == f"{by_openid}/deliveries"
        live(page)
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.goto("/sign-ins")
        expect(page.get_by_role("row", name="ann admin")).to_contain_text("this browser")
        press(page.locator("header"), "Sign out")
        expect(page.get_by_role("link", name="Sign out of Acme")).to_be_visible()
        page.goto("/deliveries")
        title(page, "Sign in")
    finally:
        context.close()
