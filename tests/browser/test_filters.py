"""Lists are filtered by forms, tabs and links; the address has all of it (OPS-3)."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.dashboard import ANN, Dashboard
from tests.browser.seen import ATTACK, TURNED, is_clean, live, notice, press, violations
from tests.support.process import wait_for

pytestmark = pytest.mark.real_time

WIDTHS = (390, 820, 1200)
FILTERED = (
    "/?agent=main&search=nothing",
    "/runs?range=all&trigger=chat&show=completed",
    "/timeline?span=24h&agent=main&outcome=completed",
    "/sessions?agent=main&channel=console&show=running",
    "/jobs?state=active&agent=main&kind=every",
    "/heartbeats?agent=main&show=on",
    "/heartbeats/main?outcome=ok&range=7d",
    f"/deliveries?show=sent&range=24h&chat=telegram:{ANN}",
    "/deliveries?stale=out-99999.in-99999",
)


@pytest.mark.parametrize("path", FILTERED)
def test_a_filtered_list_fits_each_screen_and_everybody_who_reads_it(
    page: Page, path: str, dash: Dashboard
) -> None:
    page.goto(path)
    live(page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= width, (path, width)
        assert violations(page) == []


def test_a_search_is_in_the_address_and_still_there_after_going_back(
    page: Page, dash: Dashboard
) -> None:
    for chat in ("needle-in-a-haystack", "hay"):
        dash.say("echo hello", chat=chat)
    page.goto("/sessions")
    rows = page.get_by_role("group", name="Sessions").locator("tbody tr")
    search = page.get_by_role("searchbox", name="Search")
    search.fill("NEEDLE-in")
    search.press("Enter")
    expect(rows).to_have_count(1)
    assert "search=NEEDLE-in" in page.url
    page.get_by_role("navigation", name="State").get_by_role("link", name="running").click()
    expect(page.get_by_text("No session matches.")).to_be_visible()
    assert "search=NEEDLE-in" in page.url
    page.go_back()
    expect(rows).to_have_count(1)
    rows.get_by_role("link").first.click()
    expect(page.get_by_role("region", name="Conversation")).to_be_visible()
    page.go_back()
    expect(search).to_have_value("NEEDLE-in")
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="show all").click()
    expect(rows).not_to_have_count(1)


def test_what_is_typed_stays_while_the_list_changes(page: Page, dash: Dashboard) -> None:
    page.goto("/jobs")
    live(page)
    search = page.get_by_role("searchbox", name="Name")
    search.fill("half a na")
    job = dash.make_job("comes while somebody types")
    expect(page.locator(f"#job-{job}")).to_be_visible()
    expect(search).to_have_value("half a na")
    expect(search).to_be_focused()
    dash.client.delete(f"/api/jobs/{job}")


@pytest.mark.parametrize("text", [ATTACK, TURNED, "%' or 1=1; --", "x" * 5_000])
@pytest.mark.parametrize("path", ["/sessions?search=", "/jobs?name=", "/deliveries?search="])
def test_a_hostile_search_is_only_a_text(page: Page, path: str, text: str) -> None:
    """It may find something: other tests have put the same into names."""
    page.goto(path + quote(text))
    live(page)
    is_clean(page)
    expect(page.get_by_role("searchbox")).to_have_value(text[:200].strip())


def test_a_selection_of_yesterday_is_told_row_by_row(plain: Page, dash: Dashboard) -> None:
    """Without a script, where nothing changes below the selection."""
    kept, gone = dash.undelivered("try me again"), dash.undelivered("sent by a colleague")
    plain.goto(f"/deliveries?range=24h&chat=telegram:{ANN}")
    for row in (kept, gone):
        plain.locator(f"#out-{row}").get_by_role("checkbox").check()
    dash.bot.unblock(ANN)
    dash.post("/api/deliveries/retry", ids=[gone])
    wait_for(lambda: dash.get(f"/api/deliveries/{gone}")["state"] == "sent", "it to be sent")
    press(plain, "Retry selected")
    notice(plain, "Retrying 1 message; 1 was changed already.")
    stale = plain.get_by_role("region", name="Not changed")
    expect(stale.get_by_role("listitem")).to_have_count(1)
    expect(stale).to_contain_text(f"Delivery {gone} is sent.")
    assert f"chat=telegram%3A{ANN}" in plain.url
    assert "range=24h" in plain.url


def test_all_that_match_are_dropped_and_nothing_else(page: Page, dash: Dashboard) -> None:
    mine, other = dash.undelivered("needle 4711"), dash.undelivered("hay")
    page.goto("/deliveries")
    page.get_by_role("searchbox", name="Search").fill("NEEDLE 4711")
    press(page, "Show")
    expect(page.locator(f"#out-{mine}")).to_be_visible()
    expect(page.locator(f"#out-{other}")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    press(page, "Drop all 1 that match")
    notice(page, "Dropped 1 message.")
    expect(page.get_by_text("No message matches.").first).to_be_visible()
    assert dash.get(f"/api/deliveries/{mine}")["state"] == "dropped"
    assert dash.get(f"/api/deliveries/{other}")["state"] == "failed"
    page.get_by_role("navigation", name="State").get_by_role("link", name="dropped").click()
    expect(page.locator(f"#out-{mine}")).to_be_visible()
