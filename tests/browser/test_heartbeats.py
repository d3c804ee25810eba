"""Heartbeats: switched, tried, read, and what they look after edited (OPS-3, HB-1, HB-3)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.dashboard import Dashboard
from tests.browser.seen import answer, notice, overflow, press, violations

pytestmark = pytest.mark.real_time

CHECKLIST = "/api/heartbeats/main/checklist"


@pytest.fixture(autouse=True)
def _as_it_was(dash: Dashboard) -> Iterator[None]:
    before = dash.get(CHECKLIST)["text"]
    yield
    dash.client.put(CHECKLIST, json={"text": before})


def test_a_heartbeat_is_switched_off_and_muted_and_back(page: Page) -> None:
    page.goto("/heartbeats")
    row = page.locator("#heart-main")
    press(row, "Turn off")
    expect(row.locator(".badge").first).to_have_text("off")
    row.get_by_role("link", name="main", exact=True).click()
    press(page, "Use the settings")
    state = page.locator("#state")
    expect(state.locator(".badge").first).to_have_text("on")
    page.get_by_role("textbox", name="Mute").fill("3h")
    press(page, "Mute")
    expect(state.get_by_text("muted", exact=True)).to_be_visible()
    press(page, "Unmute")
    expect(state.get_by_text("muted", exact=True)).to_have_count(0)


def test_a_heartbeat_is_two_lines_and_its_buttons_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto("/heartbeats")
    row = page.locator("#heart-main")
    expect(row.get_by_role("img")).to_have_accessible_name(re.compile("alerted|ok|failed"))
    box = row.bounding_box()
    assert box is not None
    assert box["height"] < 90
    expect(row.get_by_role("button", name="Run now")).to_be_visible()
    assert overflow(page) == 0
    assert violations(page) == []


def test_the_checklist_is_edited_item_by_item_and_as_a_whole(page: Page, dash: Dashboard) -> None:
    page.goto("/heartbeats")
    page.get_by_role("link", name="main", exact=True).click()
    editor = page.get_by_role("region", name="Checklist (HEARTBEAT.md)")
    editor.get_by_label("New item").fill("are the plants wet?")
    press(editor, "Add")
    item = editor.get_by_role("row").filter(has_text="are the plants wet?")
    expect(item).to_have_count(1)
    press(item, "Done")
    expect(item).to_contain_text("(done)")
    answer(page, yes=True)
    press(item, "Delete")
    expect(item).to_have_count(0)
    editor.get_by_text("Edit the whole file").click()
    editor.get_by_label("The whole file").fill("# Mornings\n\n- [ ] is the door shut?\n")
    press(editor, "Save")
    notice(page, "Saved.")
    expect(editor.get_by_role("row")).to_contain_text(["is the door shut?"])
    assert dash.get(CHECKLIST)["text"] == "# Mornings\n\n- [ ] is the door shut?\n"


def test_a_heartbeat_run_by_hand_joins_the_strip_and_a_click_tells_what_came_of_it(
    page: Page, dash: Dashboard
) -> None:
    dash.idle()
    # Something new: what was told before is not told again.
    dash.client.put(CHECKLIST, json={"text": "- [ ] is the cat in?\n"})
    page.goto("/heartbeats/main")
    strip = page.get_by_role("group", name=re.compile("The last heartbeat runs of main"))
    heartbeat_runs = strip.get_by_role("link")
    expect(heartbeat_runs.first).to_be_visible()
    known = heartbeat_runs.count()
    press(page, "Run now")
    expect(heartbeat_runs).to_have_count(known + 1)
    expect(heartbeat_runs.first).to_have_accessible_name(re.compile("alerted"))
    heartbeat_runs.first.click()
    chosen = page.get_by_role("region", name="The selected heartbeat run")
    expect(chosen).to_contain_text("alerted")
    expect(chosen).to_contain_text("is the cat in?")
    chosen.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/runs/"))
    expect(page.locator("dl.facts").first).to_contain_text("heartbeat")
