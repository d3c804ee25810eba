"""``/api/config`` and ``/api/channels`` (SPEC OPS-2, OPS-4, SEC-2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.ports.settings import MASK, OriginKind, Setting
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
        self.snapshot = replace(
            fakes.STATUS,
            channels=(
                ChannelView("telegram", "default", ChannelState.CONNECTED, ""),
                ChannelView("telegram", "work", ChannelState.STOPPED, "wrong token"),
                ChannelView("console", "default", ChannelState.CONNECTED, ""),
            ),
        )

    async def heard(self, **_asked: Any) -> list[LastActivity]:
        if self.is_away:
            raise fakes.unavailable()
        return [
            LastActivity(
                target,
                PeerKind.DIRECT,
                AgentName("main"),
                "7",
                fakes.NOW - timedelta(seconds=ago),
            )
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
    app = make_api(control, settings=SETTINGS)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x")


async def test_settings_come_with_their_origin_and_without_secrets() -> None:
    async with http(FakeControl()) as client:
        found = (await client.get("/api/config")).json()
    assert [one["path"] for one in found] == [one.path for one in SETTINGS]
    assert found[0] == {
        "path": "lanes.main",
        "value": 3,
        "kind": "file",
        "origin": "/etc/goclaw.toml:2",
        "secret": False,
        "about": "",
    }
    assert found[2]["value"] == ["30s", "5m"]
    assert (found[3]["value"], found[3]["origin"]) == (MASK, "file /run/token")
    assert found[4]["value"] is None


@pytest.mark.parametrize(
    ("below", "paths"),
    [
        ("lanes", ["lanes.main", "lanes.cron"]),
        ("lanes.main", ["lanes.main"]),
        ("nothing", []),
        ("lanes.", []),
    ],
)
async def test_one_section_of_the_settings_can_be_asked_for(below: str, paths: list[str]) -> None:
    async with http(FakeControl()) as client:
        found = (await client.get("/api/config", params={"below": below})).json()
    assert [one["path"] for one in found] == paths


@pytest.mark.parametrize("below", ["", "x" * 513])
async def test_a_section_that_cannot_be_is_refused(below: str) -> None:
    async with http(FakeControl()) as client:
        answer = await client.get("/api/config", params={"below": below})
    assert answer.status_code == 422
    assert "below" in answer.json()["error"]


async def test_channels_come_with_when_they_were_last_used() -> None:
    async with http(Used()) as client:
        first, second, third = (await client.get("/api/channels")).json()
    assert first == {
        "name": "telegram",
        "account": "default",
        "state": "connected",
        "detail": "",
        "last_received_at": "2026-01-02T03:04:02Z",
        "last_sent_at": None,
    }
    assert (second["account"], second["state"], second["detail"]) == (
        "work",
        "stopped",
        "wrong token",
    )
    assert second["last_sent_at"] == "2026-01-02T03:04:05Z"
    assert third["last_received_at"] is None


async def test_channels_are_told_while_the_database_is_away() -> None:
    control = Used()
    control.is_away = True
    async with http(control) as client:
        answer = await client.get("/api/channels")
    assert answer.status_code == 200
    assert [one["last_sent_at"] for one in answer.json()] == [None] * 3


async def test_without_a_gateway_there_are_no_channels() -> None:
    control = FakeControl()
    control.gateway = False
    async with http(control) as client:
        answer = await client.get("/api/channels")
    assert (answer.status_code, list(answer.json())) == (409, ["error"])
