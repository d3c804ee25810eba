"""Heartbeats: switched, tried, read, and what they look after edited (OPS-3, HB-1, HB-3)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.dashboard import Dashboard
from tests.browser.seen import Seen, notice

pytestmark = pytest.mark.real_time

CHECKLIST = "/api/heartbeats/main/checklist"


@pytest.fixture(autouse=True)
def _as_it_was(dash: Dashboard) -> Iterator[None]:
    before = dash.get(CHECKLIST)["text"]
    yield
    dash.client.put(CHECKLIST, json={"text": before})


def test_a_heartbeat_is_switched_off_and_muted_and_back(page: Page) -> None:
    page.goto("/heartbeats")
    card = page.get_by_role("region", name="main")
    card.get_by_role("button", name="Turn off").click()
    expect(card.locator(".badge").first).to_have_text("off")
    card.get_by_role("button", name="Use the settings").click()
    expect(card.locator(".badge").first).to_have_text("on")
    card.get_by_label("Mute").fill("3h")
    card.get_by_role("button", name="Mute").click()
    expect(card.get_by_text("muted", exact=True)).to_be_visible()
    card.get_by_role("button", name="Unmute").click()
    expect(card.get_by_text("muted", exact=True)).to_have_count(0)


def test_the_checklist_is_edited_item_by_item_and_as_a_whole(page: Page, dash: Dashboard) -> None:
    page.goto("/heartbeats")
    page.get_by_role("link", name="main", exact=True).click()
    editor = page.get_by_role("region", name="Checklist (HEARTBEAT.md)")
    editor.get_by_label("New item").fill("are the plants wet?")
    editor.get_by_role("button", name="Add").click()
    item = editor.get_by_role("listitem").filter(has_text="are the plants wet?")
    expect(item).to_have_count(1)
    item.get_by_role("button", name="Done").click()
    expect(item).to_contain_text("(done)")
    page.once("dialog", lambda dialog: dialog.accept())
    item.get_by_role("button", name="Delete").click()
    expect(item).to_have_count(0)
    editor.get_by_label("The whole file").fill("# Mornings\n\n- [ ] is the door shut?\n")
    editor.get_by_role("button", name="Save").click()
    notice(page, "Saved.")
    expect(editor.get_by_role("listitem")).to_contain_text(["is the door shut?"])
    assert dash.get(CHECKLIST)["text"] == "# Mornings\n\n- [ ] is the door shut?\n"


def test_of_two_who_edit_the_same_list_the_second_sees_both_and_loses_nothing(
    page: Page, dash: Dashboard, seen: Seen
) -> None:
    """SPEC HB-3."""
    page.goto("/heartbeats/main")
    before = page.get_by_label("The whole file").input_value()
    dash.post(f"{CHECKLIST}/items", text="theirs")
    page.get_by_label("The whole file").fill(f"{before}- [ ] mine <b>\n")
    seen.expect("409")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".error")).to_contain_text("has changed meanwhile, so nothing was saved")
    typed = page.get_by_label("The whole file")
    expect(typed).to_be_focused()
    expect(typed).to_have_value(f"{before}- [ ] mine <b>\n")
    expect(page.locator("#now")).to_contain_text("theirs")
    page.get_by_role("button", name="Save").click()
    notice(page, "Saved.")
    assert "theirs" not in dash.get(CHECKLIST)["text"]


def test_a_dry_run_tells_each_check_and_does_nothing(page: Page, dash: Dashboard) -> None:
    known = dash.get("/api/heartbeat-runs", agent="main")
    page.goto("/heartbeats/main")
    page.get_by_role("link", name="Dry run").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Dry run")
    expect(page.get_by_role("listitem").filter(has_text="Is it on?")).to_contain_text("passed")
    assert dash.get("/api/heartbeat-runs", agent="main") == known


def test_a_heartbeat_run_by_hand_joins_the_strip_and_a_click_tells_what_came_of_it(
    page: Page, dash: Dashboard
) -> None:
    dash.idle()
    # Something new: what was told before is not told again.
    dash.client.put(CHECKLIST, json={"text": "- [ ] is the cat in?\n"})
    page.goto("/heartbeats/main")
    heartbeat_runs = page.get_by_role(
        "list", name=re.compile("The last heartbeat runs of main")
    ).get_by_role("link")
    expect(heartbeat_runs.first).to_be_visible()
    known = heartbeat_runs.count()
    page.get_by_role("button", name="Run now").click()
    expect(heartbeat_runs).to_have_count(known + 1)
    expect(heartbeat_runs.last).to_contain_text("alerted")
    heartbeat_runs.last.click()
    chosen = page.get_by_role("region", name="The selected heartbeat run")
    expect(chosen).to_contain_text("alerted")
    expect(chosen).to_contain_text("is the cat in?")
    chosen.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Run")
    expect(page.locator("dl.facts").first).to_contain_text("heartbeat")
