"""Jobs from the form to the history, by the mouse of an operator (OPS-3, CRON-11)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.browser.conftest import Window
from tests.browser.dashboard import Dashboard
from tests.browser.seen import Seen, notice

pytestmark = pytest.mark.real_time


def preview(page: Page) -> Locator:
    return page.locator("#preview")


def test_the_next_times_appear_while_one_types(page: Page) -> None:
    """CRON-1, CRON-2: in words and as five times, or a sentence about what is wrong."""
    page.goto("/jobs/new")
    expect(preview(page)).to_contain_text("Enter a schedule")
    page.get_by_label("Kind").select_option("cron")
    expression = page.get_by_label("Time, interval, or cron expression")
    expression.press_sequentially("30 9 * * 1-5")
    expect(preview(page)).to_contain_text("09:30")
    expect(preview(page).get_by_role("listitem")).to_have_count(5)
    page.get_by_label("Time zone").fill("Europe/Berlin")
    expect(preview(page).get_by_role("listitem").first).to_contain_text("(Europe/Berlin)")
    expression.fill("30 99 * * 1-5")
    expect(preview(page).locator(".problem")).to_contain_text("99")
    expect(preview(page).get_by_role("listitem")).to_have_count(0)
    page.get_by_label("Kind").select_option("every")
    expression.fill("2h")
    expect(preview(page)).to_contain_text("every 2 hours")


def test_what_cannot_be_saved_stays_in_the_form_with_a_sentence(page: Page, seen: Seen) -> None:
    page.goto("/jobs/new")
    page.get_by_label("Name", exact=True).fill("plants")
    page.get_by_label("Text", exact=True).fill("echo they are wet")
    page.get_by_label("Kind").select_option("cron")
    page.get_by_label("Time, interval, or cron expression").fill("every morning")
    page.get_by_role("button", name="Create the job").click()
    seen.expect("422")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("plants")
    expect(page.get_by_label("Time, interval, or cron expression")).to_have_attribute(
        "aria-invalid", "true"
    )


def test_a_job_is_made_run_paused_changed_and_deleted(page: Page, dash: Dashboard) -> None:
    page.goto("/jobs")
    page.get_by_role("link", name="New job").click()
    page.get_by_label("Name", exact=True).fill("Water the plants")
    page.get_by_label("Text", exact=True).fill("echo they are wet")
    page.get_by_label("Kind").select_option("every")
    page.get_by_label("Time, interval, or cron expression").fill("1d")
    page.get_by_label("Chat", exact=True).fill("none")
    page.get_by_role("button", name="Create the job").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Water the plants")
    job = page.url.partition("?")[0].rpartition("/")[2]
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("No run yet.")

    page.get_by_role("button", name="Run now").click()
    expect(history.get_by_role("row").nth(1)).to_contain_text("ok")
    expect(history.get_by_role("row").nth(1)).to_contain_text("by hand")
    expect(history.locator("svg rect")).to_have_count(1)
    history.get_by_text("Output").click()
    expect(history.locator("details pre")).to_have_text("they are wet")

    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".lead")).to_contain_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".lead")).to_contain_text("active")
    expect(page.get_by_role("region", name="Next runs").get_by_role("listitem")).to_have_count(5)

    page.get_by_role("link", name="Edit").click()
    expect(preview(page)).to_contain_text("every day")
    page.get_by_label("Time, interval, or cron expression").fill("2d")
    page.get_by_role("button", name="Save").click()
    notice(page, "Saved.")
    expect(page.locator(".lead")).to_contain_text("every 2 days")
    assert dash.get(f"/api/jobs/{job}")["spec"]["schedule"]["every_ms"] == 2 * 86_400_000

    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", refuse)
    page.get_by_role("button", name="Delete").click()
    assert asked == ["Delete the job “Water the plants”?"]
    expect(page.locator(".lead")).to_contain_text("active")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    notice(page, "Removed.")
    assert dash.client.get(f"/api/jobs/{job}").status_code == 404


def test_a_job_that_vanishes_while_its_form_is_open_can_be_made_anew(
    page: Page, dash: Dashboard, seen: Seen
) -> None:
    job = dash.make_job("vanishing")
    page.goto(f"/jobs/{job}/edit")
    page.get_by_label("Name", exact=True).fill("vanished")
    dash.client.delete(f"/api/jobs/{job}").raise_for_status()
    seen.expect("404")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".notice")).to_contain_text("You can create the job again.")
    expect(page.get_by_label("Name", exact=True)).to_have_value("vanished")
    page.get_by_role("button", name="Create the job").click()
    notice(page, "Created.")
    made = page.url.rpartition("/")[2].partition("?")[0]
    assert dash.get(f"/api/jobs/{made}")["spec"]["name"] == "vanished"
    dash.client.delete(f"/api/jobs/{made}").raise_for_status()


def test_a_second_window_shows_what_was_done_in_the_first(
    page: Page, window: Window, dash: Dashboard
) -> None:
    """Without being loaded again, and what was opened there stays open."""
    job = dash.make_job("Feed the cat")
    other = window[0].new_page()
    for each in (page, other):
        each.goto(f"/jobs/{job}")
        expect(each.locator("#link")).to_have_text("live")
    other.evaluate("() => { window.__same = true }")
    page.get_by_role("button", name="Run now").click()
    row = other.get_by_role("region", name="History").get_by_role("row").nth(1)
    expect(row).to_contain_text("ok")
    row.get_by_text("Output").click()
    page.get_by_role("button", name="Pause").click()
    expect(other.locator(".lead")).to_contain_text("paused")
    expect(row.locator("details pre")).to_be_visible()
    assert other.evaluate("() => window.__same")
    dash.client.delete(f"/api/jobs/{job}")


def test_the_list_finds_jobs_and_keeps_what_was_looked_for(page: Page, dash: Dashboard) -> None:
    made = [dash.make_job(name) for name in ("Count the sheep", "Count the cows")]
    page.goto("/jobs")
    page.get_by_label("Name", exact=True).fill("sheep")
    page.get_by_role("button", name="Show").click()
    rows = page.locator("li.row")
    expect(rows).to_have_count(1)
    rows.get_by_role("button", name="Pause").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("paused")
    expect(rows).to_contain_text("Count the sheep")
    rows.get_by_role("button", name="Run now").click()
    expect(rows).to_contain_text("ok")
    for job in made:
        dash.client.delete(f"/api/jobs/{job}")
