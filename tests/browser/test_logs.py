"""Log lines: followed, filtered, held back, and read without a script (OPS-3)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import DESK, PHONE, SaveArtefact, Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import is_clean, live, open_details, overflow, press, title, violations

pytestmark = pytest.mark.real_time

TABLET = Screen("tablet", {"viewport": {"width": 768, "height": 1024}, "color_scheme": "light"})
SMALL = Screen(
    "small", {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
)


def lines(page: Page, text: str) -> Locator:
    return page.get_by_role("log").get_by_role("listitem").filter(has_text=text)


def test_new_lines_appear_and_lead_to_their_run(page: Page, dash: Dashboard) -> None:
    page.goto("/logs?search=direct:tail")
    live(page)
    expect(page.get_by_text("No line matches.")).to_be_visible()
    dash.say("echo for the log", chat="tail")
    expect(lines(page, "run_ended")).to_have_count(1)
    expect(page.get_by_text("No line matches.")).to_be_hidden()
    ended = page.get_by_role("log").get_by_role("listitem").first
    expect(ended).to_contain_text("run_ended")
    assert lines(page, "console seed").count() == 0
    run = dash.run_of("tail")["id"]
    ended.get_by_role("link", name=run[:18]).click()
    title(page, "echo for the log")
    page.get_by_role("link", name="Log lines").click()
    expect(page).to_have_url(re.compile(f"/logs.run={run}"))
    expect(lines(page, "run_ended")).to_have_count(1)


def test_the_address_keeps_the_filter(page: Page, dash: Dashboard) -> None:
    page.goto("/logs")
    page.get_by_label("Level").select_option("warning")
    page.get_by_label("Search").fill("(.*[")
    press(page, "Show")
    expect(page).to_have_url(re.compile(r"level=warning&search=%28\.\*%5B"))
    expect(page.get_by_label("Level")).to_have_value("warning")
    expect(page.get_by_text("No line matches.")).to_be_visible()
    page.get_by_role("link", name="show all").click()
    dash.say("echo unfiltered", chat="unfiltered")
    expect(lines(page, "console unfiltered").first).to_be_visible()


def test_lines_are_held_back_while_paused(page: Page, dash: Dashboard) -> None:
    page.goto("/logs?search=direct:held&order=oldest")
    live(page)
    pause = page.get_by_role("button", name="Pause")
    pause.press("Enter")
    expect(pause).to_have_attribute("aria-pressed", "true")
    dash.say("echo later", chat="held")
    dash.run_of("held", ended=True)
    expect(page.locator("#waiting-lines")).to_have_text(re.compile(r"^[1-9] new$"))
    expect(page.locator("#link")).to_have_text("paused")
    assert lines(page, "run_").count() == 0
    pause.press("Enter")
    expect(lines(page, "run_ended")).to_have_count(1)
    live(page)


def test_lines_are_read_without_a_script(plain: Page, dash: Dashboard) -> None:
    dash.say("echo plainly", chat="plainly")
    dash.run_of("plainly", ended=True)
    plain.goto("/logs?search=direct:plainly")
    press(plain, "Show")
    expect(lines(plain, "run_ended")).to_have_count(1)
    expect(lines(plain, "run_ended").locator("time")).to_have_text(re.compile("UTC$"))
    expect(plain.get_by_role("button", name="Pause")).to_be_hidden()


@pytest.mark.parametrize("screen", [DESK, TABLET, PHONE, SMALL], ids=str)
def test_lines_fit_the_screen(
    dash: Dashboard, chromium: Browser, screen: Screen, artefacts: SaveArtefact
) -> None:
    """With the hostile content of other tests; axe finds nothing."""
    with visit(chromium, dash.url, screen) as (context, _):
        page = context.new_page()
        page.goto("/logs")
        live(page)
        expect(lines(page, "run_failed").first).to_be_visible()
        artefacts(page, f"logs {screen.name}")
        open_details(page)
        is_clean(page)
        assert overflow(page) <= 0
        assert violations(page) == []
