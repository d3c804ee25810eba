"""Invited people: a personal link, their chat, and the end of it (SPEC CHAN-13)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from tests.browser.conftest import DESK, PHONE, SaveArtefact, Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import (
    change,
    conversations,
    live,
    notice,
    overflow,
    press,
    send,
    title,
    violations,
    walk,
)
from tests.support.process import wait_for

pytestmark = pytest.mark.real_time

TABLET = Screen("tablet", {"viewport": {"width": 768, "height": 1024}, "color_scheme": "dark"})

Enter = Callable[[str], Page]


def invite(dash: Dashboard, name: str) -> str:
    """The path of a new link."""
    return str(dash.post("/api/web/guests", name=name)["path"])


@pytest.fixture
def enter(dash: Dashboard, chromium: Browser) -> Iterator[Enter]:
    """Opens a link in a browser of its own, and leaves nothing behind."""
    names = []
    with ExitStack() as exits:

        def entered(name: str) -> Page:
            names.append(name)
            context, seen = exits.enter_context(visit(chromium, dash.url, DESK))
            # The end of a sign-in is the end of a stream, and refused at the next try.
            seen.expect("401", "ERR_INCOMPLETE_CHUNKED", "MIME type")
            page = context.new_page()
            page.goto(invite(dash, name))
            press(page, "Open the chat")
            title(page, "Chat")
            live(page)
            return page

        yield entered
        for name in names:
            person = {"channel": "web", "account": "default", "sender_id": name}
            dash.client.post("/api/people/revoke", json=person)


def test_a_guest_chats_and_nobody_else_sees_it(dash: Dashboard, enter: Enter) -> None:
    ann, bob = enter("ann-1"), enter("bob-1")
    send(ann, "echo for ann alone")
    answer = ann.locator("li.assistant .words")
    expect(answer).to_have_text("for ann alone")
    ann.reload()
    expect(answer).to_have_text("for ann alone")
    live(ann)
    press(ann, "New conversation")
    live(ann)
    send(ann, "count to 5")
    expect(answer).to_have_text("1 2 3 4 5")
    here = ann.url
    for words, number in (("2 3 4", 1), ("for ann", 1), ("nowhere", 0)):
        ann.goto(f"/chat?search={words}")
        expect(conversations(ann).get_by_role("listitem")).to_have_count(number)
    bob.goto("/chat?search=2 3 4")
    expect(conversations(bob).get_by_role("listitem")).to_have_count(0)
    ann.goto(here)
    live(ann)
    for path in ("/chat", "/chat?name=ann-1", "/chat?name=chat"):
        bob.goto(path)
        live(bob)
        expect(bob.locator("body")).not_to_contain_text("for ann alone")
        expect(bob.locator("li.assistant")).to_have_count(0)
    found = dash.get("/api/sessions", search="web:direct:ann-1")
    assert len(found) == 2
    names = dash.post("/api/names", keys=[found[-1]["key"]])["names"]
    assert set(names.values()) == {"ann-1"}
    change(ann)
    ann.get_by_role("link", name="Delete").click()
    title(ann, "Delete a conversation")
    assert violations(ann) == []
    press(ann, "Delete the conversation")
    notice(ann, "The conversation was deleted.")
    expect(answer).to_have_text("for ann alone")
    assert len(dash.get("/api/sessions", search="web:direct:ann-1")) == 1


def test_a_guest_with_a_name_of_any_script_tries_an_answer_again(enter: Enter) -> None:
    """The embedded database knows capital letters of ASCII only."""
    page = enter("Анна-張")
    expect(page.locator(".head")).to_contain_text("you are Анна-張")
    send(page, "echo мир")
    answer = page.locator("li.assistant[data-of] .words")
    expect(answer).to_have_text("мир")
    first = page.locator("li.assistant").get_attribute("data-of")
    expect(page.get_by_role("button", name="Fork")).to_have_count(0)
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(f"li[data-of='{first}']")).to_have_count(0)
    expect(answer).to_have_text("мир")
    notes: FilePayload = {"name": "заметки.txt", "mimeType": "text/plain", "buffer": b"notes"}
    page.locator("#picked").set_input_files([notes])
    expect(page.locator("#files li")).to_contain_text("1 KB")
    send(page, "look")
    expect(answer.last).to_contain_text("заметки.txt")
    page.reload()
    expect(answer.first).to_have_text("мир")
    expect(conversations(page).get_by_role("link")).to_have_text(["echo мир"])


def test_a_guest_stops_their_own_run(dash: Dashboard, enter: Enter) -> None:
    page = enter("ann-2")
    send(page, "slow 600")
    dash.run_of("ann-2")
    press(page, "Stop")
    assert dash.ended("ann-2") == "cancelled"


def test_a_guest_tries_again_and_attaches_a_file(dash: Dashboard, enter: Enter) -> None:
    page = enter("ann-5")
    send(page, "error boom")
    page.get_by_role("button", name="Try again").click()
    wait_for(lambda: len(dash.runs("ann-5")) == 2, "the second try")
    notes: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"notes"}
    page.locator("#picked").set_input_files([notes])
    expect(page.locator("#files li")).to_contain_text("1 KB")
    send(page, "look")
    expect(page.locator("li.assistant .words").last).to_contain_text("notes.txt")
    page.reload()
    expect(page.locator("li.user .files")).to_contain_text("notes.txt")


def test_a_link_works_once_and_leads_its_own_browser_back(
    dash: Dashboard, chromium: Browser
) -> None:
    path = invite(dash, "ann-3")
    with (
        visit(chromium, dash.url, DESK) as (mine, _),
        visit(chromium, dash.url, DESK) as (other, seen),
    ):
        page, late = mine.new_page(), other.new_page()
        late.goto(path)
        page.goto(path)
        press(page, "Open the chat")
        title(page, "Chat")
        (cookie,) = mine.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
        assert page.evaluate("() => document.cookie") == ""
        page.goto(path)
        title(page, "Chat")
        press(late, "Open the chat")
        expect(late.get_by_role("alert")).to_contain_text("was used already")
        seen.expect("410")
        assert other.cookies() == []


def test_the_operator_invites_and_removes_on_the_page_people(
    dash: Dashboard, page: Page, chromium: Browser
) -> None:
    page.goto("/people")
    page.get_by_text("Invite to the web chat").first.click()
    expect(page.get_by_text("A name has letters and digits of any script")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("ann-4")
    page.get_by_role("button", name="Invite", exact=True).click()
    title(page, "Personal link")
    assert violations(page) == []
    url = page.get_by_label("Link").input_value()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(page, "Copy")
    page.wait_for_function("async (url) => await navigator.clipboard.readText() === url", arg=url)
    assert re.fullmatch(rf"{dash.url}/join/[A-Za-z0-9_-]{{43}}", url)
    with visit(chromium, dash.url, DESK) as (context, seen):
        guest = context.new_page()
        guest.goto(url)
        press(guest, "Open the chat")
        live(guest)
        page.goto("/people")
        row = page.get_by_role("row").filter(has_text="ann-4")
        expect(row).to_contain_text("used")
        assert violations(page) == []
        page.on("dialog", lambda dialog: dialog.accept())
        seen.expect("401", "ERR_INCOMPLETE_CHUNKED", "MIME type")
        row.get_by_role("button", name="Remove").click()
        expect(row).to_have_count(0)
        # The open page notices by itself.
        for place in ("#link", "#doing"):
            expect(guest.locator(place)).to_have_text("Signed out")
        bar = guest.locator("#menu").bounding_box()
        assert bar is not None
        assert bar["height"] < 60
        guest.goto("/chat")
        title(guest, "Signed out")
        assert violations(guest) == []
        for path in ("/", "/runs", "/people"):
            guest.goto(path)
            title(guest, "Signed out")
        press(guest, "Remove the old sign-in")
        assert context.cookies() == []


@pytest.mark.parametrize("screen", [DESK, TABLET, PHONE], ids=str)
def test_the_pages_of_guests_are_for_everybody(
    dash: Dashboard, chromium: Browser, screen: Screen, artefacts: SaveArtefact
) -> None:
    path = invite(dash, f"see-{screen.name}")
    with visit(chromium, dash.url, screen) as (context, _):
        page = context.new_page()
        for name, leads in (("Invitation", "Open the chat"), ("Guest", "")):
            if name == "Invitation":
                page.goto(path)
            else:
                live(page)
                send(page, "echo hello")
                expect(page.locator("li.assistant .words")).to_have_text("hello")
                # The live part knows it a moment later.
                expect(page.locator("#change")).to_be_visible()
            artefacts(page, f"{name} {screen.name}")
            assert violations(page) == []
            assert overflow(page) <= 0
            way = walk(page)
            assert way.dark == []
            assert set(way.wanted) <= set(way.reached)
            if leads:
                press(page, leads)
        if page.get_by_role("button", name="Menu").is_visible():
            press(page, "Menu")
        press(page, "Sign out")
        title(page, "Signed out")
        artefacts(page, f"Guest signed out {screen.name}")
        assert violations(page) == []


def test_without_a_script_a_guest_reads_the_chat(dash: Dashboard, chromium: Browser) -> None:
    path = invite(dash, "plain-1")
    with visit(chromium, dash.url, DESK, java_script_enabled=False) as (context, _):
        page = context.new_page()
        page.goto(path)
        press(page, "Open the chat")
        title(page, "Chat")
        page.goto("/chat?name=chat")
        expect(page.locator("noscript p")).to_have_text("Writing here needs JavaScript.")
        body = {"message_id": "1", "text": "echo unscripted"}
        said = context.request.post(
            f"{dash.url}/api/chat/chat/messages", data=body, headers={"origin": dash.url}
        )
        assert said.ok
        wait_for(lambda: dash.runs("plain-1"), "a run of the guest")
        assert dash.ended("plain-1") == "completed"
        page.reload()
        expect(page.locator("li.assistant")).to_contain_text("unscripted")
