"""Lists on a phone: fingers can press what rows offer, and filters are closed (SPEC OPS-3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PHONE, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import live, send

pytestmark = pytest.mark.real_time

FINGER = 36
"""The least height of what is pressed, in pixels."""


@pytest.fixture
def phone(dash: Dashboard, chromium: Browser) -> Iterator[Page]:
    with visit(chromium, dash.url, PHONE) as (context, _):
        yield context.new_page()


@pytest.mark.parametrize("path", ["/jobs", "/deliveries", "/people", "/heartbeats"])
def test_what_a_row_offers_can_be_pressed_by_a_finger(phone: Page, path: str) -> None:
    """Found by use: buttons of 24 px, checkboxes of 19 px, Retry close beside Drop."""
    phone.goto(path)
    pressed = phone.locator("td :is(button, [type=checkbox])")
    expect(pressed.first).to_be_visible()
    boxes = [box for one in pressed.all() if (box := one.bounding_box()) is not None]
    assert [box for box in boxes if box["height"] < FINGER] == []


def test_what_a_message_offers_can_be_pressed_by_a_finger(phone: Page) -> None:
    """Found by use: links to runs of 15 px, buttons of 31 px."""
    phone.goto("/chat/new")
    live(phone)
    send(phone, "echo one")
    expect(phone.locator("li.assistant .words")).to_have_text("one")
    phone.locator("li.assistant").tap()
    pressed = phone.locator(".talk :is([data-act], .by a)").filter(visible=True)
    expect(pressed).to_have_count(6)
    boxes = [box for one in pressed.all() if (box := one.bounding_box()) is not None]
    assert [box for box in boxes if box["height"] < FINGER] == []
    assert [box for box in boxes if box["width"] < FINGER] == []


def test_conversations_are_rows_as_wide_as_their_list(phone: Page, dash: Dashboard) -> None:
    """Found by use: links of 41 px at a distance of 28 px, the marked one over its day."""
    for name in ("rows-one", "rows-two", "rows-three"):
        dash.say("echo a", chat=name)
        dash.run_of(name, ended=True)
    phone.goto("/chat")
    phone.get_by_role("button", name="Conversations").tap()
    links = phone.locator("#list a")
    expect(links.nth(2)).to_be_visible()
    boxes = [box for one in phone.locator("#list :is(a, h3)").all() if (box := one.bounding_box())]
    assert all(a["y"] + a["height"] <= b["y"] + 0.5 for a, b in pairwise(boxes))
    rows = [box for one in links.all() if (box := one.bounding_box())]
    assert min(box["height"] for box in rows) >= FINGER
    assert min(box["width"] for box in rows) > 250


def test_tabs_scroll_only_sideways(phone: Page) -> None:
    phone.goto("/jobs")
    tabs = phone.get_by_role("navigation", name="State")
    assert tabs.evaluate("one => one.scrollHeight - one.clientHeight") == 0


def test_a_time_says_what_it_is_the_time_of(phone: Page) -> None:
    """The heads of columns are not shown there."""
    phone.goto("/jobs")
    cell = phone.locator("td[data-label=next]").first
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"next "'


def test_filters_are_closed_until_they_are_wanted(phone: Page) -> None:
    phone.goto("/logs")
    expect(phone.get_by_label("Level")).to_be_hidden()
    phone.get_by_text("Filters").click()
    expect(phone.get_by_label("Level")).to_be_visible()
    phone.set_viewport_size({"width": 1200, "height": 800})
    expect(phone.get_by_label("Level")).to_be_visible()
    expect(phone.get_by_text("Filters")).to_be_hidden()
