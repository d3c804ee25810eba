"""``/api/config`` and ``/api/channels`` (SPEC OPS-2, OPS-4, SEC-2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx

from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.ports.settings import MASK, OriginKind, Setting, SettingsView
from goclaw_py.ports.store import LastActivity, OutboxRow, OutboxState
from goclaw_py.scheduler.views import ChannelState, ChannelView
from goclaw_py.web.api.routes import make_api
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
    app = make_api(control)
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
