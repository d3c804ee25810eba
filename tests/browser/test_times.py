"""Times: as ages, exact on hover, by a press or by the button of the page (OPS-3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import DESK, PHONE, Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import Seen, live, press, violations

pytestmark = pytest.mark.real_time

KOLKATA = {"timezone_id": "Asia/Kolkata", "locale": "en-GB"}
AGE = re.compile(r"^(now|in \d+ (s|min|h|d)|\d+ (s|min|h|d) ago)$")
CASES = json.loads((Path(__file__).parents[1] / "support/durations.json").read_text())
NEW_STATE = """html => {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  show(document.querySelector("[data-live]"), fresh.content);
  document.dispatchEvent(new Event("part"));
}"""
EXACT = re.compile(r"^\d{1,2} \w+ \d{4}, \d\d:\d\d:\d\d$")


@pytest.fixture(params=[DESK, PHONE], ids=str)
def window(
    request: pytest.FixtureRequest, dash: Dashboard, chromium: Browser
) -> Iterator[tuple[BrowserContext, Seen]]:
    screen: Screen = request.param
    with visit(chromium, dash.url, screen, **KOLKATA) as found:
        yield found


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


def test_all_times_of_the_timeline_are_in_the_zone_of_the_browser(page: Page, seen: Seen) -> None:
    """Also those of its form, which are sent with their zone."""
    hour = {"from": "2026-01-31T08:00:00Z", "to": "2026-01-31T09:00:00Z"}
    page.goto(f"/timeline?{urlencode(hour)}")
    live(page)
    since = page.get_by_label(re.compile(r"From.*Asia/(Kolkata|Calcutta)"))
    expect(since).to_have_value("2026-01-31 13:30:00")
    for typed in ("2026-01-31 13:45", "yesterday"):
        page.locator(".fold").evaluate("fold => (fold.open = true)")
        since.fill(typed)
        press(page, "Show")
        sent = "2026-01-31T08:15:00.000Z" if typed[0] == "2" else typed
        expect(page).to_have_url(re.compile(re.escape(urlencode({"from": sent}))))
    seen.expect("422")
    expect(page.get_by_role("alert")).to_contain_text("“yesterday” is not a time")
    expect(since).to_be_visible()
    expect(since).to_have_value("yesterday")


def test_what_is_pointed_at_in_the_timeline_is_read_in_the_zone_of_the_browser(
    page: Page, dash: Dashboard
) -> None:
    dash.say("echo something for the picture", chat="picture")
    page.goto("/timeline?span=24h")
    live(page)
    words = page.locator(".swim a title").last.evaluate("title => title.textContent")
    assert "UTC" not in words
    page.locator(".swim a").last.focus()
    expect(page.locator(".reading")).to_have_text(words)


def test_the_values_of_a_chart_are_read_by_keys_and_touch(page: Page) -> None:
    page.goto("/usage?range=7d&by=agent")
    live(page)
    expect(page.locator("#times")).to_be_hidden()  # its days are of another zone
    chart = page.get_by_role("img", name="Runs, from")
    reading = page.locator("figure", has=chart).locator(".reading")
    unread = page.locator("[data-live]").inner_html()
    chart.focus()
    expect(reading).to_have_text(re.compile(r"^\d+ \w{3}: [\d,]+ runs"))
    first = chart.locator("rect").first
    first.dispatch_event("pointerdown", {"clientX": 0})
    expect(reading).to_have_text(re.compile(re.escape(first.evaluate("one => one.textContent"))))
    assert violations(page) == []
    seen, chosen = reading.inner_text(), chart.locator("rect.read").first.get_attribute("x")
    page.evaluate(NEW_STATE, unread)
    expect(reading).to_have_text(seen)
    assert chart.locator("rect.read").first.get_attribute("x") == chosen


def test_a_new_job_is_in_the_zone_of_the_browser(page: Page) -> None:
    page.goto("/jobs/new")
    expect(page.get_by_label("Time zone")).to_have_value(re.compile("Asia/(Kolkata|Calcutta)"))


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
