"""How the gateway is: readiness, channels, warnings, settings, and what they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.routing import Route

from goclaw_py.ports.health import Health
from goclaw_py.ports.settings import Setting
from goclaw_py.web.pages.desk import Desk, Facts, Page, Query

_MEANINGS: Final = {
    "ok": "good",
    "degraded": "busy",
    "failing": "bad",
    "working": "good",
    "waiting": "busy",
    "starting": "busy",
    "stopped": "bad",
}


def routes(desk: Desk, health: Health | None, settings: Sequence[Setting]) -> list[Route]:
    """One page."""

    async def look(_query: Query) -> Facts:
        status = await desk.control.status()
        return {
            "status": status,
            "checks": () if health is None else health.readiness().checks,
            "meanings": _MEANINGS,
            "settings": settings,
        }

    return desk.routes(Page("/health", "health", "Health", look, every_s=3.0))
