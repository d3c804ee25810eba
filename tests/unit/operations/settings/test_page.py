"""The pages that show and edit settings (SPEC OPS-11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.core.errors import GoclawError, SettingChanged, SettingError, SettingErrors
from goclaw_py.operations.settings.models import SettingChange
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from tests.unit.web.fake_settings import CHAT, EDITED, EVIL
from tests.unit.web.fakes import FakeControl, unavailable
from tests.unit.web.pages.conftest import Browser

LANES = "/settings/edit?group=lanes"


def form(path: str, value: str, was: str, version: int = 0, file: str = "") -> dict[str, str]:
    """The fields of a setting in a form."""
    fields = {"value": value, "was": was, "version": str(version), "file": file}
    return {f"{name}:{path}": text for name, text in fields.items()}


async def test_one_section_is_shown_with_the_source_of_each_value(browser: Browser) -> None:
    await browser.says("/settings", "main.size", EDITED.removeprefix("edited on "), "the number of")
    await browser.says(
        "/settings?section=queue", "mode", "steer, in force", "capacity", "GOCLAW_QUEUE__X"
    )
    await browser.says("/settings?section=web", "[hidden]", "file /run/token")
    await browser.says("/settings?section=agents.main.budget", "/etc/goclaw.toml:9")
    raw = (await browser.get("/settings")).text
    assert 'href="/settings/edit?group=lanes"' in raw
    assert "day.usd" not in raw
    assert 'section=agents.main"' in raw
    assert 'section=agents.main.budget"' not in raw
    assert "/settings/edit?group=web" not in (await browser.get("/settings?section=web")).text
    agent = await browser.get("/settings?section=agents.main")
    assert 'aria-current="page"><bdi>agents.main</bdi>' in agent.text
    assert 'section=agents.main.budget"' in agent.text
    assert "<img src=x" not in agent.text
    for unknown in ("lane", "<b>"):
        answer = await browser.get("/settings", params={"section": unknown})
        assert answer.status_code == 404


@pytest.mark.parametrize(("search", "there", "absent"), [
    ("LANES.MAIN", "main.size", "web.token"),
    ("goclaw.toml:9", "day.usd", "main.size"),
    ("what happens meanwhile", "mode", "main.size"),
    ("STEER, in force", "mode", "main.size"),
    ("<script>", "No setting has these words", "main.size"),
    ("size main", "main.size", "max_jobs"),
])  # fmt: skip
async def test_settings_can_be_searched(
    browser: Browser, search: str, there: str, absent: str
) -> None:
    for address in ("/settings", "/settings/found"):
        answer = await browser.get(address, params={"q": search, "section": "lanes"})
        assert there in answer.text
        assert absent not in answer.text
        assert "<script>" not in answer.text.replace("<script src", "")
        assert ("<html" in answer.text) == (address == "/settings")


async def test_the_history_of_edits_is_shown_in_pages(
    browser: Browser, control: FakeControl
) -> None:
    address = "/settings?section=history"
    await browser.says(address, "dashboard", "default", EVIL.replace("\x1b", "\x1b"))
    raw = (await browser.get(address)).text
    assert f'href="{address}&amp;before=6"' in raw
    older = (await browser.get(f"{address}&before=6")).text
    assert "Older edits" not in older
    for odd in ("x", "-1", "9" * 30):
        assert (await browser.get(f"{address}&before={odd}")).status_code == 200
    control.settings.history_failure = unavailable()
    await browser.says(address, "Not available while the database is unavailable")


async def test_a_form_has_the_settings_of_a_group(browser: Browser) -> None:
    await browser.says(LANES, "main.size", EDITED, "without the edit: 2", "Reset")
    said = await browser.says("/settings/edit?group=queue", "GOCLAW_QUEUE__X", "overrides edits")
    assert "cannot be edited here" in said
    raw = (await browser.get("/settings/edit?group=queue")).text
    assert '<option value="" selected>default: steer, in force</option>' in raw
    assert "<option>steer</option>" in raw
    assert 'name="value:queue.capacity"' not in raw
    place = CHAT.removesuffix(".agent")
    answer = await browser.get("/settings/edit", params={"group": place})
    assert 'value="helper"' in answer.text


@pytest.mark.parametrize("group", ["", "web", "nothing", "<b>", "lanes.main"])
async def test_other_groups_have_no_form(browser: Browser, group: str) -> None:
    answer = await browser.get("/settings/edit", params={"group": group})
    assert answer.status_code == 404


async def test_a_form_changes_what_was_changed_in_it(
    browser: Browser, control: FakeControl
) -> None:
    fields = form("lanes.main.size", "9", "4", 7, "2") | form("lanes.cron.size", "1", "1")
    await browser.leads(LANES, "/settings?section=lanes&notice=saved", **fields)
    ((changes, source),) = control.settings.changes
    assert changes == [SettingChange("lanes.main.size", "9", 7)]
    assert source == "dashboard (127.0.0.1)"


async def test_an_empty_field_is_a_reset_or_an_empty_list(
    browser: Browser, control: FakeControl
) -> None:
    group = "/settings/edit?group=queue"
    fields = form("queue.mode", "", "steer", 3) | form("agents.main.fallback", "", "a:1", 0, "a:1")
    await browser.leads(group, "/settings?section=queue&notice=saved", **fields)
    (changes, _) = control.settings.changes[0]
    assert changes == [
        SettingChange("queue.mode", None, 3),
        SettingChange("agents.main.fallback", "", 0),
    ]


async def test_a_value_can_be_reset(browser: Browser, control: FakeControl) -> None:
    await browser.leads(LANES, "/settings?section=lanes&notice=saved", reset="7 lanes.main.size")
    assert control.settings.changes[0][0] == [SettingChange("lanes.main.size", None, 7)]


async def test_an_unchanged_form_saves_nothing(browser: Browser, control: FakeControl) -> None:
    fields = form("lanes.main.size", " 4", "4", 7)
    await browser.leads(LANES, "/settings?section=lanes&notice=nothing", **fields)
    assert control.settings.changes == []


SIZE = SettingError("lanes.main.size", "x", "must be a whole number")
WIDE = SettingError("lanes", "x", "must fit on the machine")


@pytest.mark.parametrize(("failure", "status", "said"), [
    (SettingErrors([SIZE, WIDE]), 422, ["must be a whole number", "must fit on the machine"]),
    (SettingError("runs.timeout", "x", "is too short"), 422, ["runs.timeout: is too short"]),
    (SettingChanged("lanes.main.size was changed", ["lanes.main.size"]), 409,
     ["it is now 4", EDITED, "Save again to replace"]),
    (unavailable(), 503, ["Nothing was saved, because the database is unavailable"]),
])  # fmt: skip
async def test_what_was_typed_stays_in_a_form_that_was_refused(
    browser: Browser, control: FakeControl, failure: GoclawError, status: int, said: list[str]
) -> None:
    control.settings.failure = failure
    typed = '"><img src=x>'
    fields = form("lanes.main.size", typed, "3", 6, "2")
    raw = await browser.refuses(LANES, status, *said, **fields)
    assert 'value="&#34;&gt;&lt;img src=x&gt;"' in raw
    assert "<img src=x" not in raw
    # The next form is about the value that is shown now.
    assert '<input type="hidden" name="version:lanes.main.size" value="7">' in raw
    assert '<input type="hidden" name="was:lanes.main.size" value="4">' in raw


async def test_a_chat_gets_rules_of_its_own(browser: Browser, control: FakeControl) -> None:
    fields = {"channel": "telegram", "id": ' -1"0 ', "key": "mention", "value": "false"}
    await browser.leads("/settings/chat", "/settings?section=chat+rules&notice=saved", **fields)
    path = 'channels.telegram.chats."-1\\"0".mention'
    assert control.settings.changes[0][0] == [SettingChange(path, "false", 0)]
    control.settings.failure = SettingError(path, "x", "must be true or false")
    raw = await browser.refuses("/settings/chat", 422, "must be true or false", **fields)
    assert 'value="false"' in raw
    for wrong in ({"key": "token"}, {"id": " "}, {"channel": ""}):
        await browser.refuses("/settings/chat", 422, "choose a channel", **{**fields, **wrong})


async def test_settings_are_shown_and_not_edited_without_the_database(
    browser: Browser, control: FakeControl
) -> None:
    control.settings.seen = replace(control.settings.seen, unavailable="it is down")
    await browser.says("/settings", "cannot be edited now", "it is down", "main.size")
    assert "/settings/edit" not in (await browser.get("/settings")).text


async def test_edits_without_effect_are_told(browser: Browser, control: FakeControl) -> None:
    warning = OperatorWarning("gateway.setting_edit", "The edit of a.b", "has no effect: gone")
    control.settings.seen = replace(control.settings.seen, ignored=(warning,))
    await browser.says("/settings", warning.subject, warning.text)


async def test_too_many_fields_are_refused(browser: Browser) -> None:
    fields = {f"value:{number}": "x" for number in range(300)}
    assert (await browser.send_form(LANES, **fields)).status_code == 400


async def test_a_search_shows_names_first_and_no_more_than_fifty(
    browser: Browser, control: FakeControl
) -> None:
    one = control.settings.seen.settings[0]
    many = [replace(one, path=f"lanes.l{n}.size", about="sizes and models") for n in range(60)]
    model = replace(one, path="runs.model")
    control.settings.seen = replace(control.settings.seen, settings=(*many, model))
    found = (await browser.get("/settings/found?q=MODEL")).text
    assert "61 settings with" in found
    assert found.index("<code>model</code>") < found.index("<code>l0.size</code>")
    assert found.count('class="wide text"') == 50
    assert found.count("sizes and models") == 49, "each that is found is described"
    assert "11 more settings match" in found
