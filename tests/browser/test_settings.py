"""Settings, looked at and edited in a browser (SPEC OPS-11)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import DESK, PHONE, SaveArtefact, Screen, visit
from tests.browser.dashboard import address_of
from tests.browser.seen import ATTACK, is_clean, notice, overflow, press, title, violations
from tests.e2e.loopback_model import Model, model_server
from tests.support.process import home, wait_for

pytestmark = pytest.mark.real_time

TOKEN = "0123456789abcdef-of-the-settings"
TABLET = Screen("tablet", {"viewport": {"width": 800, "height": 1000}, "color_scheme": "dark"})


@dataclass
class Edited:
    """A gateway whose settings are edited, with a server of models that its agent may use."""

    url: str
    model: Model
    client: httpx.Client

    def get(self, path: str, **params: str) -> Any:
        return self.client.get(path, params=params).raise_for_status().json()

    def edit(self, path: str, value: object) -> None:
        body = {"changes": [{"path": path, "value": value}]}
        self.client.post("/api/settings", json=body).raise_for_status()

    def lane(self) -> int:
        (main,) = (one["lane"] for one in self.get("/api/lanes")["lanes"] if _is_main(one))
        return int(main["concurrency"])

    def say(self, text: str, chat: str) -> dict[str, Any]:
        """Say something, and return the run that has answered."""
        body = {"message_id": chat, "text": text}
        self.client.post(f"/api/chat/{chat}/messages", json=body).raise_for_status()

        def look() -> dict[str, Any] | None:
            found = [run for run in self.get("/api/runs") if run["session"].endswith(chat)]
            return found[0] if found and found[0]["outcome"] else None

        return wait_for(look, f"the answer in chat {chat}")


def _is_main(use: dict[str, Any]) -> bool:
    return bool(use["lane"]["name"] == "main")


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory, databases: list[str]) -> Iterator[Edited]:
    with model_server() as model:
        settings = {"GOCLAW_WEB__API": "true", "GOCLAW_WEB__PORT": "0", "GOCLAW_WEB__TOKEN": TOKEN}
        settings |= {"GOCLAW_DATABASE_URL": databases[2], "GOCLAW_LANE_CRON": "1"}
        settings |= {"GOCLAW_AGENTS__MAIN__BASE_URL": model.url}
        settings |= {"GOCLAW_AGENTS__MAIN__API_KEY": "a-key-of-the-tests"}
        with home(tmp_path_factory.mktemp("settings") / "home", **settings) as place:
            url = address_of(place.start(ready=False))
            headers = {"authorization": f"Bearer {TOKEN}"}
            options: dict[str, Any] = {"headers": headers, "timeout": 20, "trust_env": False}
            with httpx.Client(base_url=url, **options) as client:
                yield Edited(url, model, client)


@pytest.fixture
def operator(edited: Edited, chromium: Browser) -> Iterator[Page]:
    with visit(chromium, edited.url, DESK) as (context, seen):
        seen.expect("409", "422")
        yield signed_in(context.new_page())


def signed_in(page: Page) -> Page:
    page.goto("/settings")
    page.get_by_label("Token").fill(TOKEN)
    press(page, "Sign in")
    title(page, "Settings")
    return page


def row(page: Page, setting: str) -> Locator:
    group, _, key = setting.rpartition("/")
    return (
        page.get_by_role("region", name=group, exact=True)
        .get_by_role("row")
        .filter(has=page.get_by_text(key, exact=True))
    )


def found(page: Page, setting: str) -> Locator:
    """Return the row of a setting among what a search has found."""
    group, _, key = setting.rpartition("/")
    return (
        page.get_by_role("row")
        .filter(has=page.get_by_role("link", name=group, exact=True))
        .filter(has=page.get_by_text(key, exact=True))
    )


def test_a_lane_and_a_model_are_edited_and_effective(operator: Page, edited: Edited) -> None:
    assert not edited.say("hello", "before")["model"]  # the offline agent has none
    page = operator
    page.get_by_role("link", name="Edit lanes").click()
    title(page, "Edit lanes")
    page.get_by_label("main.size").fill("7")
    press(page, "Save")
    notice(page, "Saved.")
    expect(row(page, "lanes/main.size")).to_contain_text("7")
    expect(row(page, "lanes/main.size")).to_contain_text("dashboard (127.0.0.1)")
    assert edited.lane() == 7

    page.get_by_role("link", name="agents.main", exact=True).click()
    page.get_by_role("link", name="Edit agents.main", exact=True).click()
    page.get_by_label("model", exact=True).fill("openai:say I am another one")
    press(page, "Save")
    notice(page, "Saved.")
    run = edited.say("hello", "after")
    assert run["outcome"] == "completed"
    assert "another one" in run["model"]

    page.goto("/settings?section=history")
    history = page.get_by_role("region", name="History of edits")
    first = history.get_by_role("row").nth(1)
    for text in ("agents.main.model", "offline", "openai:say I am another one"):
        expect(first).to_contain_text(text)

    page.goto("/settings?section=lanes")
    page.get_by_role("link", name="Edit lanes").click()
    press(page, "Reset main.size to the file's value")
    notice(page, "Saved.")
    assert edited.lane() == 2
    edited.edit("agents.main.model", None)


def test_a_mistake_is_told_beside_its_field_and_typed_text_stays(
    operator: Page, edited: Edited
) -> None:
    page = operator
    page.goto("/settings/edit?group=heartbeat")
    page.get_by_label("interval").fill(ATTACK[:90])
    page.get_by_label("active_hours.start").fill("08:00")
    page.get_by_label("lane").fill("cron")
    press(page, "Save")
    expect(page.get_by_role("alert")).to_have_text("Nothing was saved: see below.")
    wrong = page.get_by_label("interval")
    expect(wrong).to_have_value(ATTACK[:90])
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".problem")).to_contain_text("must be a whole number with s, m, h or d")
    assert violations(page) == []
    is_clean(page)
    page.get_by_label("interval").fill("2h")
    press(page, "Save")
    expect(page.locator(".problem").first).to_contain_text("must have start and end")
    page.get_by_label("active_hours.end").fill("20:00")
    press(page, "Save")
    notice(page, "Saved.")
    heartbeat = edited.get("/api/heartbeats/main")
    assert heartbeat["policy"]["interval"] == "PT2H"
    keys = ("interval", "active_hours.start", "active_hours.end", "lane")
    body = {"changes": [{"path": f"heartbeat.{key}", "value": None} for key in keys]}
    edited.client.post("/api/settings", json=body).raise_for_status()


def test_the_second_operator_sees_the_newer_value(operator: Page, edited: Edited) -> None:
    page = operator
    page.goto("/settings/edit?group=lanes")
    edited.edit("lanes.main.size", 3)
    page.get_by_label("main.size").fill("9")
    press(page, "Save")
    expect(page.locator(".problem")).to_contain_text("it is now 3")
    expect(page.locator(".problem")).to_contain_text("API (127.0.0.1)")
    expect(page.get_by_label("main.size")).to_have_value("9")
    assert edited.lane() == 3
    press(page, "Save")
    notice(page, "Saved.")
    assert edited.lane() == 9
    edited.edit("lanes.main.size", None)


def test_what_a_variable_sets_is_shown_and_not_edited(operator: Page) -> None:
    page = operator
    page.goto("/settings/edit?group=lanes")
    expect(page.get_by_label("cron.size")).to_have_count(0)
    expect(page.get_by_role("main")).to_contain_text("GOCLAW_LANE_CRON, which overrides edits")
    page.goto("/settings?q=api_key")
    expect(found(page, "agents.main/api_key")).to_contain_text("[hidden]")
    page.get_by_label("Search").fill("cron.size")
    expect(found(page, "agents.main/api_key")).to_have_count(0)
    expect(found(page, "lanes/cron.size")).to_contain_text("GOCLAW_LANE_CRON")
    page.goto("/settings?section=agents.main")
    expect(page.get_by_role("main")).not_to_contain_text("a-key-of-the-tests")


def test_a_setting_is_edited_by_the_keyboard_alone(operator: Page, edited: Edited) -> None:
    page = operator
    search = page.get_by_label("Search")
    search.focus()
    page.keyboard.type("lanes.subagent")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=lanes.subagent")
    edit = page.get_by_role("link", name="Edit lanes").first
    for _ in range(60):
        page.keyboard.press("Tab")
        if edit.evaluate("(link) => link === document.activeElement"):
            break
    page.keyboard.press("Enter")
    title(page, "Edit lanes")
    field = page.get_by_label("subagent.size")
    for _ in range(60):
        page.keyboard.press("Tab")
        if field.evaluate("(one) => one === document.activeElement"):
            break
    page.keyboard.press("Control+A")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    notice(page, "Saved.")
    edited.edit("lanes.subagent.size", None)


def test_what_was_typed_outlives_an_expired_sign_in(operator: Page, edited: Edited) -> None:
    page = operator
    page.goto("/settings/edit?group=lanes")
    page.get_by_label("main.size").fill("6")
    page.context.clear_cookies()
    press(page, "Save")
    title(page, "Sign in")
    expect(page.get_by_role("alert")).to_contain_text("nothing was done")
    page.get_by_label("Token").fill(TOKEN)
    press(page, "Sign in")
    title(page, "Edit lanes")
    expect(page.get_by_label("main.size")).to_have_value("6")
    assert edited.lane() == 2
    press(page, "Save")
    notice(page, "Saved.")
    assert edited.lane() == 6
    edited.edit("lanes.main.size", None)


def test_settings_are_edited_where_no_script_runs(edited: Edited, chromium: Browser) -> None:
    with visit(chromium, edited.url, DESK, java_script_enabled=False) as (context, _):
        page = signed_in(context.new_page())
        page.get_by_role("link", name="queue", exact=True).click()
        page.get_by_role("link", name="Edit queue", exact=True).click()
        page.get_by_label("mode", exact=True).select_option("steer")
        press(page, "Save")
        notice(page, "Saved.")
        expect(row(page, "queue/mode")).to_contain_text("steer")
        page.get_by_role("link", name="Edit queue", exact=True).click()
        page.get_by_label("mode", exact=True).select_option("default")
        press(page, "Save")
        notice(page, "Saved.")
    assert all(one["path"] != "queue.mode" or not one["edited"] for one in editable(edited))


def editable(edited: Edited) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = edited.get("/api/settings")["editable"]
    return found


@pytest.mark.parametrize("screen", [DESK, TABLET, PHONE], ids=str)
def test_the_forms_fit_every_screen(
    edited: Edited, chromium: Browser, screen: Screen, artefacts: SaveArtefact
) -> None:
    edited.edit("agents.main.budget.turns", 5)
    with visit(chromium, edited.url, screen) as (context, _):
        page = signed_in(context.new_page())
        artefacts(page, f"Settings {screen.name}")
        places = ["?section=scheduler", "?q=heartbeat", "?section=history"]
        places += [f"/edit?group={group}" for group in ("agents.main", "heartbeat")]
        for place in places:
            page.goto(f"/settings{place}")
            artefacts(page, f"Settings {place.partition('=')[2]} {screen.name}")
            assert violations(page) == []
            assert overflow(page) <= 0
    edited.edit("agents.main.budget.turns", None)
