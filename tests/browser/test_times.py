"""Times: as ages, exact on hover, by a press or by the button of the page (OPS-3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESK, PHONE, Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import live, violations

pytestmark = pytest.mark.real_time

KOLKATA = {"timezone_id": "Asia/Kolkata", "locale": "en-GB"}
AGE = re.compile(r"^(now|in \d+ (s|min|h|d)|\d+ (s|min|h|d) ago)$")
CASES = json.loads((Path(__file__).parents[1] / "support/durations.json").read_text())
EXACT = re.compile(r"^\d{1,2} \w+ \d{4}, \d\d:\d\d:\d\d$")


@pytest.fixture(params=[DESK, PHONE], ids=str)
def page(request: pytest.FixtureRequest, dash: Dashboard, chromium: Browser) -> Iterator[Page]:
    screen: Screen = request.param
    with visit(chromium, dash.url, screen, **KOLKATA) as (context, _):
        yield context.new_page()


@pytest.mark.parametrize("path", ["/runs", "/sessions", "/people", "/deliveries?show=sent"])
def test_lists_show_ages_with_the_exact_time_on_hover(page: Page, path: str) -> None:
    page.goto(path)
    live(page)
    times = page.locator("main time")
    expect(times.first).to_have_text(AGE)
    assert [text for text in times.all_text_contents() if not AGE.match(text)] == []
    title = times.first.get_attribute("title") or ""
    assert re.fullmatch(r"\d{1,2} \w+ \d{4}, \d\d:\d\d:\d\d \(\d{4}-\d\d-\d\dT[\d:.]+Z\)", title)


def test_ages_are_rounded_as_in_commands_and_chats(page: Page) -> None:
    page.goto("/runs")
    seconds = [sign * case["seconds"] for case in CASES for sign in (1, -1)]
    texts = page.evaluate("seconds => seconds.map(age)", seconds)
    assert texts == [case[name] for case in CASES for name in ("age", "until")]


def test_a_time_of_another_year_has_its_year_and_a_wait_is_no_age(page: Page) -> None:
    page.goto("/runs")
    assert page.evaluate("clock(new Date('2024-11-30T10:00:00Z'))") == "30 Nov 2024, 15:30:00"
    assert "20" not in page.evaluate("clock(new Date(new Date().getFullYear(), 0, 1))")[:6]
    wait = """() => {
      const time = document.createElement("time");
      time.dateTime = new Date(Date.now() - 35_000).toISOString();
      time.dataset.lasting = "";
      showTime(time);
      return time.textContent;
    }"""
    assert page.evaluate(wait) in ("35 s", "36 s")


def test_a_job_that_is_due_has_the_time_until_then(page: Page, dash: Dashboard) -> None:
    page.goto("/jobs")
    live(page)
    row = page.locator(f"#job-{dash.job}")
    expect(row.locator("time").first).to_have_text(re.compile(r"^in \d+ (h|min)$"))


def test_a_press_shows_the_exact_time_also_after_an_update(page: Page, dash: Dashboard) -> None:
    page.goto("/runs?range=all")
    live(page)
    # Not the last one: a page has 50 runs, and one more comes.
    time = page.locator("tbody tr").nth(5).locator("time")
    time.scroll_into_view_if_needed()
    shown = page.locator(f"main time[datetime='{time.get_attribute('datetime')}']")
    shown.click()
    expect(shown).to_have_text(EXACT)
    dash.say("echo one more", chat="times")
    dash.run_of("times", ended=True)
    expect(page.get_by_role("link", name="console times").first).to_be_visible()
    expect(shown).to_have_text(EXACT)
    shown.click()
    expect(shown).to_have_text(AGE)


def test_a_button_shows_all_exact_times_and_the_browser_remembers_it(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_text("Times are in Asia/Calcutta.")).to_be_visible()
    button = page.get_by_role("button", name="Exact times")
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("main time").first).to_have_text(EXACT)
    assert violations(page) == []
    page.goto("/sessions")
    expect(page.locator("main time").first).to_have_text(EXACT)
    assert re.match(AGE, page.locator("main time").first.get_attribute("title") or "")
    page.get_by_role("button", name="Exact times").click()
    expect(page.locator("main time").first).to_have_text(AGE)


def test_pages_of_one_thing_show_both(page: Page, dash: Dashboard) -> None:
    run = dash.runs("seed")[0]["id"]
    page.goto(f"/runs/{run}")
    both = re.compile(r"^\d+ (s|min|h) ago \(\d{1,2} \w+ \d{4}, \d\d:\d\d:\d\d\)$")
    expect(page.locator("dl.facts time").first).to_have_text(both)


def test_without_a_script_times_are_utc(plain: Page) -> None:
    plain.goto("/runs")
    expect(plain.locator("main time").first).to_have_text(re.compile(r"^\d{4}-.* UTC$"))
    expect(plain.get_by_role("button", name="Exact times")).to_be_hidden()
