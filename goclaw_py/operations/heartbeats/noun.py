"""Heartbeats, for layers that must know of them before they load their routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.heartbeats.operations import HeartbeatService

HEARTBEATS: Final = Noun(
    "heartbeats",
    HeartbeatService,
    pages={
        Least.VIEWER: (
            "GET /api/heartbeats",
            "GET /heartbeats",
            "GET /live/heartbeats",
            "GET /heartbeats/-/view",
            "GET /live/heartbeat",
            "GET /heartbeats/{agent}",
        ),
        Least.TEXT: ("GET /heartbeats/{agent}/dry-run",),
        Least.OPERATOR: (
            "POST /heartbeats/{agent}/checklist/{action}",
            "POST /heartbeats/{agent}/{action}",
        ),
    },
    plain={"ActiveHours": "zone", "HeartbeatPolicy": "zone model"},
    text={
        "Checklist": "text",
        "ChecklistEntry": "text words key",
        "DryRunReport": "detail prompt",
        "HeartbeatEvent": "text",
        "HeartbeatRun": "detail reply delivery undelivered",
        "Item": "text every key",
        "Route": "detail problem",
        "Row": "text",
        "TickEdit": "box",
    },
    notices={
        "turned-on": "Turned on the heartbeat of {}.",
        "turned-off": "Turned off the heartbeat of {}.",
        "as-set": "The heartbeat of {} follows the settings again.",
        "muted": "Muted the heartbeat of {}.",
        "unmuted": "Unmuted the heartbeat of {}.",
        "told": "The event is part of the next heartbeat.",
    },
)
"""``GET /api/heartbeats`` is ``GET /api/heartbeats/{agent}`` for all agents."""
