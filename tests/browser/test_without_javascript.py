"""Where no script runs, pages are read and forms work (OPS-3)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from goclaw_py.web.pages.rendering import IN_MENU
from tests.browser.dashboard import ANN, Dashboard
from tests.browser.seen import fill_job, notice, press, title

pytestmark = pytest.mark.real_time


def test_every_page_can_be_read(plain: Page) -> None:
    plain.goto("/")
    for _, name in IN_MENU:
        plain.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
        title(plain, name)
    plain.goto("/chat?name=seed")
    # By its place: texts in such an element are not looked for.
    expect(plain.locator("noscript p")).to_be_visible()
    expect(plain.get_by_label("Message")).to_be_hidden()
    expect(plain.locator("li.user pre").first).to_contain_text("echo <script>")


def test_a_run_is_stopped(plain: Page, dash: Dashboard) -> None:
    dash.say("slow 600", chat="unscripted")
    dash.run_of("unscripted")
    plain.goto("/")
    row = plain.get_by_role("row").filter(has_text="console unscripted")
    press(row, "Stop")
    notice(plain, "Stopped.")
    assert dash.ended("unscripted") == "cancelled"


def test_a_job_is_made_after_a_look_at_its_times(plain: Page, dash: Dashboard) -> None:
    plain.goto("/jobs/new")
    fill_job(plain, "Without a script", "echo wet", "30 9 * * 1-5")
    press(plain, "Show the next runs")
    expect(plain.locator("#preview").get_by_role("listitem")).to_have_count(5)
    expect(plain.get_by_label("Name", exact=True)).to_have_value("Without a script")
    press(plain, "Create the job")
    title(plain, "Without a script")
    press(plain, "Delete")
    notice(plain, "Deleted job without-a-script.")


def test_a_message_is_sent_again(plain: Page, dash: Dashboard) -> None:
    row = dash.undelivered("without a script")
    dash.bot.unblock(ANN)
    plain.goto("/deliveries")
    plain.locator(f"#out-{row}").get_by_role("button", name="Retry").click()
    notice(plain, "Retrying 1 message.")
    dash.bot.wait_texts(ANN, len(dash.bot.texts(ANN)))
    plain.goto("/deliveries?show=failed")
    expect(plain.locator(f"#out-{row}")).to_have_count(0)
