"""``/api/channels`` (SPEC OPS-4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import httpx

from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.records import LastActivity, OutboxState
from goclaw_py.scheduler.views import ChannelState, ChannelView
from tests.support.apps import lend_api
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl

WORK = Target("telegram", "work", "-1")
HOME = Target("telegram", "default", "7")


class Used(FakeControl):
    """Channels that were used at some time."""

    def __init__(self) -> None:
        super().__init__()
        views = (
            ChannelView("telegram", "default", ChannelState.CONNECTED, ""),
            ChannelView("telegram", "work", ChannelState.STOPPED, "wrong token"),
            ChannelView("console", "default", ChannelState.CONNECTED, ""),
        )
        self.snapshot = replace(fakes.STATUS, channels=views)
        message = replace(fakes.DEAD.message, target=WORK)
        sent = replace(fakes.DEAD, message=message, state=OutboxState.SENT)
        self.messages.rows = [
            *(
                replace(sent, sent_at=at)
                for at in (fakes.NOW - timedelta(seconds=2), None, fakes.NOW)
            ),
            replace(sent, state=OutboxState.FAILED, sent_at=fakes.NOW + timedelta(seconds=9)),
        ]
        who = PeerKind.DIRECT, AgentName("main"), "7"
        self.crowd.spoke = [
            LastActivity(target, *who, fakes.NOW - timedelta(seconds=ago))
            for target, ago in ((HOME, 5), (WORK, 9), (HOME, 3))
        ]


def away(*_call: object) -> None:
    raise fakes.unavailable()


async def test_channels_come_with_when_they_were_last_used() -> None:
    control = Used()
    app = lend_api(control)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        first, second, third = (await client.get("/api/channels")).json()
        control.crowd.called = away
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
