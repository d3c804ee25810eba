"""Jobs from the form to the history, by the mouse of an operator (OPS-3, CRON-11)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.browser.conftest import Window
from tests.browser.dashboard import Dashboard
from tests.browser.seen import (
    EXPRESSION,
    Seen,
    answer,
    fill_job,
    live,
    notice,
    overflow,
    press,
    title,
    violations,
)

pytestmark = pytest.mark.real_time

SHOWN = 50
"""The number of jobs on a page."""


def preview(page: Page) -> Locator:
    return page.locator("#preview")


def test_the_next_times_appear_while_one_types(page: Page) -> None:
    """CRON-1, CRON-2: in words and as five times, or a sentence about what is wrong."""
    page.goto("/jobs/new")
    expect(preview(page)).to_contain_text("Enter a schedule")
    expression = page.get_by_label(EXPRESSION)
    expression.press_sequentially("30 9 * * 1-5")
    expect(preview(page)).to_contain_text("09:30")
    expect(preview(page).get_by_role("listitem")).to_have_count(5)
    page.get_by_label("Time zone").fill("Europe/Berlin")
    expect(preview(page).get_by_role("listitem").first).to_contain_text("(Europe/Berlin)")
    expression.fill("30 99 * * 1-5")
    expect(preview(page).locator(".problem")).to_contain_text("99")
    expect(preview(page).get_by_role("listitem")).to_have_count(0)
    expression.fill("2h")
    expect(preview(page)).to_contain_text("every 2 hours")


def test_a_job_is_made_run_paused_changed_and_deleted(page: Page, dash: Dashboard) -> None:
    page.goto("/jobs")
    page.get_by_role("link", name="New job").click()
    fill_job(page, "Water the plants", "echo they are wet", "1d")
    page.get_by_label("Chat", exact=True).fill("none")
    press(page, "Create the job")
    title(page, "Water the plants")
    job = page.url.partition("?")[0].rpartition("/")[2]
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("No run yet.")

    press(page, "Run now")
    expect(history.get_by_role("row").nth(1)).to_contain_text("completed")
    expect(history.get_by_role("row").nth(1)).to_contain_text("by hand")
    expect(history.locator("svg rect")).to_have_count(1)
    history.locator("tbody summary").click()
    expect(history.locator("details pre")).to_have_text("they are wet")

    press(page, "Pause")
    expect(page.locator("#state")).to_contain_text("paused")
    press(page, "Resume")
    expect(page.locator("#state")).to_contain_text("active")
    expect(page.get_by_role("region", name="Next runs").get_by_role("listitem")).to_have_count(5)

    page.get_by_role("link", name="Edit").click()
    expect(preview(page)).to_contain_text("every day")
    page.get_by_label(EXPRESSION).fill("2d")
    press(page, "Save")
    notice(page, "Saved.")
    expect(page.locator("#state")).to_contain_text("every 2 days")
    assert dash.get(f"/api/jobs/{job}")["spec"]["schedule"]["every_ms"] == 2 * 86_400_000

    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", refuse)
    press(page, "Delete")
    assert asked == ["Delete the job “Water the plants”?"]
    expect(page.locator("#state")).to_contain_text("active")
    answer(page, yes=True)
    press(page, "Delete")
    notice(page, "Deleted job water-the-plants.")
    assert dash.client.get(f"/api/jobs/{job}").status_code == 404


def test_the_way_back_from_a_saved_job_leads_over_no_form_that_was_refused(
    page: Page, dash: Dashboard, seen: Seen
) -> None:
    """The answer to a form is not sent again, and no page of the history is missing."""
    page.goto("/jobs")
    page.get_by_role("link", name="New job").click()
    fill_job(page, "Second try", "echo wet", "30 99 * * *")
    press(page, "Create the job")
    seen.expect("422")
    expect(page.get_by_label(EXPRESSION)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Text")).to_have_value("echo wet")
    page.get_by_label(EXPRESSION).fill("30 9 * * *")
    press(page, "Create the job")
    title(page, "Second try")
    made = page.url.rpartition("/")[2]
    for _ in range(2):
        page.go_back()
        title(page, "New job")
    page.reload()
    title(page, "New job")
    page.go_back()
    title(page, "Jobs")
    dash.client.delete(f"/api/jobs/{made}")


def test_the_browser_asks_before_what_was_typed_is_lost(page: Page, dash: Dashboard) -> None:
    """Only then: not for a form as it was shown, nor after it was sent."""
    made = dash.make_job("Left behind")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    for form in ("/jobs/new", f"/jobs/{made}/edit", "/settings/edit?group=lanes"):
        page.goto(form)
        page.locator("main form :is(input, select):visible").first.click()
        page.get_by_role("link", name="Usage").click()
        title(page, "Usage")
    page.goto(f"/jobs/{made}/edit")
    page.get_by_label("Text", exact=True).fill("echo another")
    assert asked == []
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("echo another")
    assert asked == ["beforeunload"]
    press(page, "Save")
    notice(page, "Saved.")
    assert asked == ["beforeunload"]
    page.remove_listener("dialog", stay)
    dash.client.delete(f"/api/jobs/{made}")


def test_a_second_window_shows_what_was_done(page: Page, window: Window, dash: Dashboard) -> None:
    """Without being loaded again, and what was opened there stays open."""
    job = dash.make_job("Feed the cat")
    other = window[0].new_page()
    for each in (page, other):
        each.goto(f"/jobs/{job}")
        live(each)
    other.evaluate("() => { window.__same = true }")
    press(page, "Run now")
    row = other.get_by_role("region", name="History").get_by_role("row").nth(1)
    expect(row).to_contain_text("completed")
    row.locator("summary").click()
    press(page, "Pause")
    expect(other.locator("#state")).to_contain_text("paused")
    expect(row.locator("details pre")).to_be_visible()
    assert other.evaluate("() => window.__same")
    dash.client.delete(f"/api/jobs/{job}")


def test_the_list_finds_jobs_and_keeps_what_was_looked_for(page: Page, dash: Dashboard) -> None:
    made = [dash.make_job(name) for name in ("Count the sheep", "Count the cows")]
    page.goto("/jobs")
    page.get_by_label("Name", exact=True).fill("sheep")
    press(page, "Show")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    rows.get_by_label("Select Count the sheep").check()
    press(page, "Pause")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("paused")
    expect(rows).to_contain_text("Count the sheep")
    rows.get_by_label("Select Count the sheep").check()
    press(page, "Run now")
    expect(rows).to_contain_text("completed")
    for job in made:
        dash.client.delete(f"/api/jobs/{job}")


def test_selected_jobs_are_changed_at_once(page: Page, dash: Dashboard) -> None:
    """A selection stays while the live part changes; jobs that changed meanwhile are counted."""
    made = [dash.make_job(f"bulk {name}") for name in ("one", "two", "three")]
    page.goto("/jobs?name=bulk")
    live(page)
    boxes = page.locator("tbody").get_by_role("checkbox")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    page.get_by_label("Select all").check()
    expect(boxes).to_have_count(3)
    for box in boxes.all():
        expect(box).to_be_checked()
    dash.client.patch(f"/api/jobs/{made[0]}", json={"state": "paused"})
    expect(page.locator(f"#job-{made[0]}")).to_contain_text("paused")
    expect(boxes.first).to_be_checked()
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    for verb in ("Run now", "Pause", "Resume"):
        page.once("dialog", refuse)
        press(page, f"{verb} 3")
    assert [one.partition("?")[0] for one in asked] == [
        "Run 3 jobs now",
        "Pause 3 jobs",
        "Resume 3 jobs",
    ]
    answer(page, yes=True)
    press(page, "Pause 3")
    notice(page, "Paused 2 jobs; 1 was paused already.")
    expect(page.locator("tbody .badge", has_text="paused")).to_have_count(3)

    page.goto("/jobs?name=bulk")
    live(page)
    page.get_by_label("Select bulk two").check()
    page.get_by_label("Select bulk three").check()
    asked.clear()
    page.once("dialog", refuse)
    press(page, "Delete 2")
    assert asked == ["Delete 2 jobs?"]
    dash.client.delete(f"/api/jobs/{made[1]}")
    expect(page.locator(f"#job-{made[1]}")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete 1", exact=True)).to_be_enabled()
    page.get_by_label("Select bulk three").check()
    answer(page, yes=True)
    press(page, "Delete")
    notice(page, "Deleted 1 job.")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert dash.client.get(f"/api/jobs/{made[2]}").status_code == 404
    dash.client.delete(f"/api/jobs/{made[0]}")


def test_a_box_for_all_jobs_has_those_that_are_seen_ticked(page: Page, dash: Dashboard) -> None:
    made = [dash.make_job(f"every {number:02}") for number in range(SHOWN + 1)]
    page.goto("/jobs?name=every")
    live(page)
    boxes = page.locator("tbody").get_by_role("checkbox", checked=True)
    every = page.get_by_label(f"Select all {SHOWN + 1} that match")
    every.check()
    expect(boxes).to_have_count(SHOWN)
    expect(page.get_by_label("Select all", exact=True)).to_be_checked()
    expect(page.get_by_role("button", name=f"Delete {SHOWN + 1}", exact=True)).to_be_enabled()
    boxes.first.uncheck()
    expect(every).not_to_be_checked()
    expect(page.get_by_role("button", name=f"Delete {SHOWN - 1}", exact=True)).to_be_enabled()
    every.check()
    every.uncheck()
    expect(boxes).to_have_count(0)
    every.check()
    answer(page, yes=True)
    press(page, f"Delete {SHOWN + 1}")
    notice(page, f"Deleted {SHOWN + 1} jobs.")
    assert all(dash.client.get(f"/api/jobs/{job}").status_code == 404 for job in made)


def test_a_job_is_two_lines_on_a_phone(page: Page, dash: Dashboard) -> None:
    """OPS-3: nothing beside the screen, and selected by touch."""
    job = dash.make_job("phone " + "very long " * 15, text="echo " + "long " * 100)
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto("/jobs?name=phone")
    row = page.locator(f"#job-{job}")
    box = row.bounding_box()
    assert box is not None
    assert box["height"] < 60
    assert overflow(page) == 0
    row.get_by_role("checkbox").check()
    press(page, "Pause")
    notice(page, "Paused 1 job.")
    expect(row).to_contain_text("paused")
    assert violations(page) == []
    dash.client.delete(f"/api/jobs/{job}")


def test_a_form_is_not_left_with_what_was_typed_unless_one_says_so(
    page: Page, dash: Dashboard
) -> None:
    """Nothing is asked for a form that is sent, or as it came, also with the browser's zone."""
    asked: list[str] = []

    def stays(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stays)
    menu = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Runs")
    text = page.get_by_label("Text")
    page.goto("/jobs/new")
    text.click()
    menu.click()
    expect(page).to_have_url(re.compile("/runs"))
    page.goto("/jobs/new")
    fill_job(page, "Not lost", "echo here", "1d")
    with page.expect_event("dialog"):
        menu.click(no_wait_after=True)
    expect(text).to_have_value("echo here")
    press(page, "Create the job")
    title(page, "Not lost")
    assert asked == ["beforeunload"]
    dash.client.delete(f"/api/jobs/{page.url.partition('?')[0].rpartition('/')[2]}")


def test_jobs_are_put_in_order_by_a_head_or_a_filter(page: Page, dash: Dashboard) -> None:
    """The address keeps it over the tabs and the filters."""
    jobs = [dash.make_job(f"sorted {name}") for name in ("b", "a")]
    page.goto("/jobs?name=sorted")
    names = page.locator("tbody td.wide a")
    head = page.get_by_role("columnheader", name="Job")
    head.get_by_role("link").click()
    expect(names.first).to_have_text("sorted a")
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert violations(page) == []
    page.get_by_role("navigation", name="State").get_by_role("link", name="active").click()
    expect(page).to_have_url(re.compile(r"order=name&state=active"))
    page.get_by_role("search").get_by_role("button", name="Show").click()
    expect(names.first).to_have_text("sorted a")
    page.get_by_label("Order").select_option("next run first")
    page.get_by_role("search").get_by_role("button", name="Show").click()
    expect(page.get_by_role("columnheader", name="Next run")).to_have_attribute(
        "aria-sort", "ascending"
    )
    for job in jobs:
        dash.client.delete(f"/api/jobs/{job}")
