"""``/api/config`` and ``/api/settings`` (SPEC OPS-2, OPS-11, SEC-2)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import GoclawError, SettingChanged, SettingError
from goclaw_py.operations.settings.models import (
    MASK,
    OriginKind,
    Setting,
    SettingChange,
    SettingsView,
)
from tests.support.apps import lend_api
from tests.unit.web import fakes
from tests.unit.web.fake_settings import EDITABLE, HISTORY
from tests.unit.web.fakes import FakeControl
from tests.unit.web.harness import Gateway

SETTINGS = (
    Setting("lanes.main", 3, OriginKind.FILE, "/etc/goclaw.toml:2"),
    Setting("lanes.cron", 1, OriginKind.DEFAULT, "default"),
    Setting("lanesx", ("30s", "5m"), OriginKind.DEFAULT, "default", about="what for"),
    Setting("web.token", MASK, OriginKind.SECRET_FILE, "file /run/token", secret=True),
    Setting("queue.mode", None, OriginKind.DEFAULT, "default"),
)


def http(control: FakeControl) -> httpx.AsyncClient:
    control.settings.seen = SettingsView(SETTINGS)
    app = lend_api(control)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x")


@pytest.mark.real_time
async def test_everything_comes_back_as_it_was(remote: RemoteControl, made: Gateway) -> None:
    seen = await remote.settings.view()
    assert seen == made.control.settings.seen
    assert seen.editable == EDITABLE
    wish = [SettingChange("lanes.main.size", "9", 7), SettingChange("queue.mode", None)]
    view = await remote.settings.change(wish, source="a program")
    assert view == made.control.settings.seen != seen
    assert made.control.settings.changes == [(wish, "command line")]
    assert await remote.settings.history(limit=3) == HISTORY[:3]
    assert await remote.settings.history(before=3) == HISTORY[-2:]


async def test_settings_come_with_their_origin_and_without_secrets() -> None:
    async with http(FakeControl()) as client:
        found = (await client.get("/api/config")).json()
    assert [one["path"] for one in found] == [one.path for one in SETTINGS]
    about = {"kind": "file", "origin": "/etc/goclaw.toml:2", "secret": False, "about": ""}
    about["in_force"] = ""
    assert found[0] == {"path": "lanes.main", "value": 3, **about}
    assert found[2]["value"] == ["30s", "5m"]
    assert (found[3]["value"], found[3]["origin"]) == (MASK, "file /run/token")
    assert found[4]["value"] is None


async def test_one_section_of_the_settings_can_be_asked_for() -> None:
    sections = {"lanes": ["lanes.main", "lanes.cron"], "lanes.main": ["lanes.main"]}
    async with http(FakeControl()) as client:
        for below, paths in (sections | {"nothing": [], "lanes.": []}).items():
            found = (await client.get("/api/config", params={"below": below})).json()
            assert [one["path"] for one in found] == paths
        for below in ("", "x" * 513):
            answer = await client.get("/api/config", params={"below": below})
            assert (answer.status_code, "below" in answer.json()["error"]) == (422, True)


# ---------------------------------------------------------------------- edits


async def test_settings_are_edited_in_any_type_of_json() -> None:
    """SPEC OPS-11: written as in an environment variable from there on."""
    control = FakeControl()
    values: list[Any] = [4, 0.00001, True, "x", ["a", 2], None]
    changes = [{"path": f"a.b{n}", "value": value} for n, value in enumerate(values)]
    changes[0]["version"] = 7
    async with http(control) as client:
        answer = await client.post("/api/settings", json={"changes": changes})
    assert answer.status_code == 200
    ((made, source),) = control.settings.changes
    texts = ["4", "0.00001", "true", "x", "a, 2", None]
    assert [change.value for change in made] == texts
    assert [change.version for change in made] == [7, *[None] * 5]
    assert source == "API (127.0.0.1)"


@pytest.mark.parametrize("body", [
    {}, {"changes": []}, {"changes": [{"path": "a.b"}]}, {"changes": [{"value": 1}]},
    {"changes": [{"path": "", "value": 1}]}, {"changes": [{"path": "a", "value": {"b": 1}}]},
    {"changes": [{"path": "a", "value": 1, "version": "x"}]},
    {"changes": [{"path": "a", "value": 1, "by": "me"}]},
    {"changes": [{"path": "a" * 600, "value": 1}]},
])  # fmt: skip
async def test_a_malformed_edit_is_refused(body: dict[str, Any]) -> None:
    control = FakeControl()
    async with http(control) as client:
        assert (await client.post("/api/settings", json=body)).status_code == 422
    assert control.settings.changes == []


@pytest.mark.parametrize(("failure", "status", "code"), [
    (SettingError("a.b", "x", "must be y"), 422, None),
    (SettingChanged("a.b was changed"), 409, "SETTING_CHANGED"),
    (fakes.unavailable(), 503, None),
])  # fmt: skip
async def test_a_refused_edit_has_a_status_and_a_reason(
    failure: GoclawError, status: int, code: str | None
) -> None:
    control = FakeControl()
    control.settings.failure = failure
    async with http(control) as client:
        change = {"path": "a.b", "value": "x"}
        answer = await client.post("/api/settings", json={"changes": [change]})
    assert answer.status_code == status
    assert answer.json().get("code") == code
    assert str(failure) in answer.json()["error"]


async def test_the_history_of_edits_has_pages() -> None:
    async with http(FakeControl()) as client:
        answer = await client.get("/api/settings/history?limit=3")
        assert [edit["id"] for edit in answer.json()] == [25, 24, 23]
        assert answer.headers["link"] == '<?limit=3&before=23>; rel="next"'
        last = await client.get("/api/settings/history?before=2")
    assert [edit["id"] for edit in last.json()] == [1]
    assert "link" not in last.headers
