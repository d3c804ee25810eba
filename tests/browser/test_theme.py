"""The theme, and the menu on a phone (OPS-3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from goclaw_py.web.pages.rendering import IN_MENU, NAVIGATION
from tests.browser.conftest import DESK, SaveArtefact, Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import Seen, live, overflow, press, title, violations, whole

pytestmark = pytest.mark.real_time

SMALL = Screen("small", {"viewport": {"width": 360, "height": 740}, "has_touch": True})
GROUND = "() => getComputedStyle(document.documentElement).backgroundColor"
DARK, LIGHT = "rgb(15, 20, 24)", "rgb(246, 247, 249)"


@pytest.fixture
def small(dash: Dashboard, chromium: Browser) -> Iterator[Page]:
    with visit(chromium, dash.url, SMALL) as (context, _):
        yield context.new_page()


def test_the_theme_changes_at_once_and_stays(page: Page) -> None:
    page.goto("/chat?name=theme")
    live(page)
    assert page.evaluate(GROUND) == LIGHT
    page.get_by_label("Message").fill("half a senten")
    dark = page.get_by_role("button", name="Dark theme")
    dark.press("Enter")
    expect(dark).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Theme of the system")).to_have_attribute(
        "aria-pressed", "false"
    )
    assert page.evaluate(GROUND) == DARK
    expect(page.get_by_label("Message")).to_have_value("half a senten")
    assert violations(page) == []
    page.goto("/runs")
    assert page.evaluate(GROUND) == DARK
    assert page.locator("html").get_attribute("data-theme") == "dark"
    press(page, "Theme of the system")
    assert page.evaluate(GROUND) == LIGHT
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(GROUND) == DARK


def test_the_first_paint_has_the_chosen_theme(page: Page, seen: Seen) -> None:
    """The server writes it, so nothing flashes, and no script is needed."""
    page.goto("/")
    press(page, "Dark theme")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    page.route("**/*.js*", lambda route: route.abort())
    seen.expect("net::ERR_FAILED")
    page.goto("/people")
    assert page.evaluate(GROUND) == DARK


def test_the_theme_is_chosen_without_a_script(plain: Page) -> None:
    plain.goto("/runs?show=failed")
    press(plain, "Dark theme")
    expect(plain).to_have_url("/runs?show=failed")
    expect(plain.locator("html")).to_have_attribute("data-theme", "dark")
    press(plain, "Theme of the system")
    expect(plain.locator("html")).not_to_have_attribute("data-theme", "dark")


def test_on_a_phone_the_menu_opens_over_the_page(small: Page, artefacts: SaveArtefact) -> None:
    small.goto("/")
    nav = small.get_by_role("navigation", name="Pages")
    expect(nav).to_be_hidden()
    header = small.locator("header").bounding_box()
    assert header is not None
    assert header["height"] < 60
    small.get_by_role("button", name="Menu").press("Enter")
    expect(nav).to_be_visible()
    artefacts(small, "menu small")
    assert overflow(small) <= 0
    assert violations(small) == []
    for _, name in IN_MENU:
        box = nav.get_by_role("link", name=name).bounding_box()
        assert box is not None
        assert box["height"] >= 24
    small.keyboard.press("Escape")
    expect(nav).to_be_hidden()
    small.get_by_role("button", name="Menu").tap()
    nav.get_by_role("link", name="Health").tap()
    title(small, "Health")


def test_the_menu_opens_without_a_script(dash: Dashboard, chromium: Browser) -> None:
    with visit(chromium, dash.url, SMALL, java_script_enabled=False) as (context, _):
        page = context.new_page()
        page.goto("/")
        press(page, "Menu")
        page.get_by_role("link", name="Usage").click()
        title(page, "Usage")


@pytest.mark.parametrize("path", [path for path, _ in NAVIGATION])
def test_targets_are_large_enough(small: Page, path: str) -> None:
    """24 by 24 pixels, except links in sentences (WCAG 2.5.8)."""
    small.goto(path)
    whole(small)
    found = small.evaluate(
        """() => [...document.querySelectorAll(
          "button, select, input:not([type=hidden], [type=checkbox]), .button, summary, .tabs a")]
          .filter((one) => one.checkVisibility())
          .map((one) => [one.outerHTML.slice(0, 100), one.getBoundingClientRect()])
          .filter(([, box]) => box.width < 24 || box.height < 24)
          .map(([html, box]) => `${html} ${box.width}x${box.height}`)"""
    )
    assert found == []


def test_a_desktop_needs_no_menu_button(page: Page) -> None:
    page.goto("/")
    assert DESK.options["viewport"] == page.viewport_size
    expect(page.get_by_role("button", name="Menu")).to_be_hidden()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
