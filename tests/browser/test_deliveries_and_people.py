"""What could not be delivered or answered, and who may talk (OPS-3, IO-3, CHAN-5)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from goclaw_py.core.text import visible_line
from tests.browser.dashboard import ANN, EVE, EVES_NAME, GROUP, GROUPS_NAME, Dashboard
from tests.browser.seen import TURNED, Seen, answer, live, notice, press, violations
from tests.support.process import wait_for

pytestmark = pytest.mark.real_time


def test_a_message_that_was_not_sent_is_sent_when_tried_again(page: Page, dash: Dashboard) -> None:
    row = dash.undelivered("the plants are dry")
    page.goto("/deliveries")
    line = page.locator(f"#out-{row}")
    expect(line).to_contain_text("blocked by the user")
    press(line, "Retry")
    notice(page, "Retrying 1 message.")
    wait_for(lambda: dash.get(f"/api/deliveries/{row}")["state"] == "failed", "it to fail again")
    dash.bot.unblock(ANN)
    page.goto("/deliveries")
    press(line, "Retry")
    expect(line).to_have_count(0)
    page.get_by_role("link", name="sent").click()
    expect(line).to_contain_text("the plants are dry")
    assert any("plants are dry" in text for text in dash.bot.texts(ANN))


def test_a_message_is_given_up_only_after_a_question(page: Page, dash: Dashboard) -> None:
    row = dash.undelivered("nobody needs this")
    page.goto("/deliveries")
    line = page.locator(f"#out-{row}")
    answer(page, yes=False)
    press(line, "Drop")
    expect(line).to_be_visible()
    answer(page, yes=True)
    press(line, "Drop")
    notice(page, "Dropped 1 message.")
    expect(line).to_have_count(0)
    page.get_by_role("link", name="dropped").click()
    expect(line).to_contain_text("dropped")
    assert not any("nobody needs this" in text for text in dash.bot.texts(ANN))


def test_deliveries_are_sorted_by_their_heads(page: Page, dash: Dashboard) -> None:
    """SPEC OPS-3: by the keyboard, too; a new row takes its place in the chosen order."""
    ids = [f"out-{dash.undelivered(text)}" for text in ("sorted one", "sorted two")]
    page.goto("/deliveries")
    live(page)
    table = page.get_by_role("region", name="Outgoing messages that failed").get_by_role("table")

    def shown() -> list[str]:
        every = table.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.id)")
        return [row for row in every if row in ids]

    head = table.get_by_role("columnheader", name="Created")
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert shown() == ids
    ids.append(f"out-{dash.undelivered('sorted three')}")
    expect(table.locator(f"#{ids[-1]}")).to_be_visible()
    assert shown() == ids
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert shown() == ids[::-1]
    expect(table.get_by_role("columnheader", name="Actions").get_by_role("button")).to_have_count(0)
    assert violations(page) == []


def test_a_message_without_an_answer_is_retried_or_dismissed(page: Page, dash: Dashboard) -> None:
    dash.say("fail", chat="hopeless")
    assert dash.ended("hopeless") == "failed"
    page.goto("/deliveries")
    line = page.get_by_role("row").filter(has_text="console hopeless")
    expect(line).to_contain_text("failed")
    press(line, "Retry")
    notice(page, "Retrying 1 message.")
    wait_for(lambda: len(dash.runs("hopeless")) == 2, "another run")
    assert dash.ended("hopeless") == "failed"
    press(line, "Dismiss")
    notice(page, "Dropped 1 message.")
    expect(line).to_have_count(0)


def test_a_stranger_is_let_in_and_forgotten(page: Page, dash: Dashboard, seen: Seen) -> None:
    page.goto("/people")
    asking = page.get_by_role("region", name="Pending requests")
    expect(asking).to_contain_text(EVES_NAME)
    page.get_by_label("Pairing code").fill("WRONGONE")
    press(page, "Approve as guest")
    expect(page.get_by_role("alert")).to_contain_text("WRONGONE")
    seen.expect("404")
    expect(page).to_have_url("/people")
    expect(asking).to_contain_text(EVES_NAME)
    expect(page.get_by_label("Pairing code")).to_be_focused()
    page.get_by_label("Pairing code").fill(dash.codes[EVE])
    press(page, "Approve as guest")
    notice(page, f"Approved guest {visible_line(EVES_NAME + TURNED)}.")
    approved = page.get_by_role("region", name="People with access")
    row = approved.get_by_role("row").filter(has_text=str(EVE))
    expect(row).to_contain_text("guest")
    expect(asking).to_contain_text("No pending requests.")
    answer(page, yes=False)
    press(row, "Remove")
    expect(row).to_be_visible()
    answer(page, yes=True)
    press(row, "Remove")
    notice(page, f"Removed person telegram {EVE}.")
    expect(row).to_have_count(0)


def test_the_agent_listens_in_a_group_when_that_is_allowed(page: Page, dash: Dashboard) -> None:
    page.goto("/people")
    row = page.get_by_role("region", name="Groups").get_by_role("row").filter(has_text=str(GROUP))
    expect(row).to_contain_text("undecided")
    press(row, "Allow")
    notice(page, f"Allowed group {GROUPS_NAME}.")
    page.reload()
    expect(page.locator(".notice")).to_have_count(0)
    expect(row).to_contain_text("yes")
    press(row, "Deny")
    expect(row).to_contain_text("no")
    (group,) = [one for one in dash.get("/api/chats") if one["chat"] == str(GROUP)]
    assert group["allowed"] is False
