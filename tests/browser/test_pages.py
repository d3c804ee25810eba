"""Every page, at a desk and on a phone: whole, quiet, readable, usable by keyboard (OPS-3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from goclaw_py.web.pages.rendering import IN_MENU, NAVIGATION
from tests.browser.conftest import DESK, PHONE, SaveArtefact, Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import (
    Seen,
    is_clean,
    live,
    open_details,
    overflow,
    title,
    violations,
    walk,
    whole,
)

pytestmark = pytest.mark.real_time

Visitor = tuple[Page, Seen]

PLACES = {name: path for path, name in NAVIGATION} | {
    "All deliveries": "/deliveries?show=sent",
    "Conversation": "/chat?name=seed",
    "New job": "/jobs/new",
    "Not there": "/nowhere",
    "Heartbeat": "/heartbeats/main",
    "Dry run": "/heartbeats/main/dry-run",
    "Edit settings": "/settings/edit?group=agents.main.heartbeat",
    **dict.fromkeys(("Job", "Session", "Run"), ""),
}


@pytest.fixture(scope="module")
def places(dash: Dashboard) -> dict[str, str]:
    """Where each page is; some have an id in their address."""
    run = next(run for run in dash.runs("seed") if run["tools"])
    found = {"Job": f"/jobs/{dash.job}", "Session": f"/sessions/view?key={run['session']}"}
    return PLACES | found | {"Run": f"/runs/{run['id']}"}


@pytest.fixture(scope="module", params=[DESK, PHONE], ids=str)
def screen(request: pytest.FixtureRequest) -> Screen:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def visitor(dash: Dashboard, chromium: Browser, screen: Screen) -> Iterator[Visitor]:
    # At the desk what a page lets through would run, on the phone its policy is in force.
    with visit(chromium, dash.url, screen, bypass_csp=screen is DESK) as (context, seen):
        yield context.new_page(), seen


def opened(page: Page) -> None:
    """Wait for the whole page, open all that can be opened, and wait until the page is live."""
    whole(page)
    open_details(page)
    if page.locator("[data-live]:not([data-live='']), [data-chat]").count():
        live(page)


@pytest.mark.parametrize("name", PLACES)
def test_a_page_fits_its_screen_and_everybody_who_reads_it(
    visitor: Visitor, screen: Screen, places: dict[str, str], name: str, artefacts: SaveArtefact
) -> None:
    """No complaint of the browser or of axe, nothing beyond the edge; Tab comes to everything.

    All pages have hostile content, which stays text (SEC-1).
    """
    page, seen = visitor
    page.goto(places[name])
    if name == "Not there":
        seen.expect("404")
    opened(page)
    if page.locator('[data-chat="seed"]').count():  # the newest one, too, may be this
        # It comes with the stream of events, and Tab must not be on its way yet.
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
    artefacts(page, f"{name} {screen.name}")
    is_clean(page)
    assert overflow(page) <= 0
    assert violations(page) == []
    if screen is DESK and name != "Not there":
        found = walk(page)
        assert len(found.wanted) > len(NAVIGATION)
        assert [one for one in found.wanted if one not in found.reached] == []
        assert found.dark == []
    if screen is DESK:
        for width in (768, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            assert overflow(page) <= 0, width
        page.set_viewport_size(DESK.options["viewport"])
    other = "dark" if screen is DESK else "light"
    # Without motion the colours of links change at once.
    page.emulate_media(color_scheme=other, reduced_motion="reduce")  # type: ignore[arg-type]
    assert violations(page) == []
    page.emulate_media(color_scheme=screen.options["color_scheme"])
    assert seen.complaints == []


def test_the_first_tab_leads_past_the_menu(page: Page) -> None:
    page.goto("/people")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Pairing code")).to_be_focused()


@pytest.mark.smoke
def test_the_menu_leads_to_every_page(page: Page) -> None:
    page.goto("/")
    for path, name in IN_MENU:
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
        title(page, name)
        assert page.url.endswith(path)
        expect(page.locator("#menu a[aria-current=page]")).to_contain_text(name)
