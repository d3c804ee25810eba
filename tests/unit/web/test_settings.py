"""``/api/config``, ``/api/settings`` and ``/api/channels`` (SPEC OPS-2, OPS-4, OPS-11, SEC-2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from goclaw_py.core.errors import GoclawError, SettingChanged, SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.operations.settings import MASK, OriginKind, Setting, SettingsView
from goclaw_py.records import LastActivity, OutboxRow, OutboxState
from goclaw_py.scheduler.views import ChannelState, ChannelView
from tests.support.apps import lend_api
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl

SETTINGS = (
    Setting("lanes.main", 3, OriginKind.FILE, "/etc/goclaw.toml:2"),
    Setting("lanes.cron", 1, OriginKind.DEFAULT, "default"),
    Setting("lanesx", ("30s", "5m"), OriginKind.DEFAULT, "default", about="what for"),
    Setting("web.token", MASK, OriginKind.SECRET_FILE, "file /run/token", secret=True),
    Setting("queue.mode", None, OriginKind.DEFAULT, "default"),
)
WORK = Target("telegram", "work", "-1")
HOME = Target("telegram", "default", "7")


class Used(FakeControl):
    """Channels that were used at some time."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        views = (
            ChannelView("telegram", "default", ChannelState.CONNECTED, ""),
            ChannelView("telegram", "work", ChannelState.STOPPED, "wrong token"),
            ChannelView("console", "default", ChannelState.CONNECTED, ""),
        )
        self.snapshot = replace(fakes.STATUS, channels=views)

    async def heard(self, **_asked: Any) -> list[LastActivity]:
        if self.is_away:
            raise fakes.unavailable()
        who = PeerKind.DIRECT, AgentName("main"), "7"
        return [
            LastActivity(target, *who, fakes.NOW - timedelta(seconds=ago))
            for target, ago in ((HOME, 5), (WORK, 9), (HOME, 3))
        ]

    async def outbox(self, **asked: Any) -> list[OutboxRow]:
        assert asked["state"] is OutboxState.SENT
        message = replace(fakes.DEAD.message, target=WORK)
        return [
            replace(fakes.DEAD, message=message, sent_at=at)
            for at in (fakes.NOW - timedelta(seconds=2), None, fakes.NOW)
        ]


def http(control: FakeControl) -> httpx.AsyncClient:
    control.settings.seen = SettingsView(SETTINGS)
    app = lend_api(control)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x")


async def test_settings_come_with_their_origin_and_without_secrets() -> None:
    async with http(FakeControl()) as client:
        found = (await client.get("/api/config")).json()
    assert [one["path"] for one in found] == [one.path for one in SETTINGS]
    about = {"kind": "file", "origin": "/etc/goclaw.toml:2", "secret": False, "about": ""}
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


async def test_channels_come_with_when_they_were_last_used() -> None:
    control = Used()
    async with http(control) as client:
        first, second, third = (await client.get("/api/channels")).json()
        control.is_away = True
        without_database = await client.get("/api/channels")
    assert first == {
        "name": "telegram", "account": "default", "state": "connected", "detail": "",
        "last_received_at": "2026-01-02T03:04:02Z", "last_sent_at": None,
    }  # fmt: skip
    assert (second["account"], second["state"]) == ("work", "stopped")
    assert (second["detail"], second["last_sent_at"]) == ("wrong token", "2026-01-02T03:04:05Z")
    assert third["last_received_at"] is None
    assert without_database.status_code == 200
    assert [one["last_sent_at"] for one in without_database.json()] == [None] * 3


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
