"""The lanes and the state of the gateway in the API (SPEC OPS-2)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from goclaw_py.core.ids import LaneName
from goclaw_py.operations.control import Control
from goclaw_py.operations.lanes.operations import Lanes, Resized
from goclaw_py.scheduler.views import GatewayStatus, LanesView
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import ResizeBody

LanePath = Annotated[str, Path(min_length=1, max_length=512, examples=["main"])]


def lane_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter()

    @serve(api, Lanes.status)
    async def status() -> GatewayStatus:
        """Get the status of the gateway."""
        return await control.lanes.status()

    @serve(api, Lanes.list, tags=["lanes"])
    async def lanes() -> LanesView:
        """List the lanes with their running and waiting runs."""
        return await control.lanes.list()

    @serve(api, Lanes.resize, tags=["lanes"])
    async def resize(name: LanePath, body: ResizeBody) -> Resized:
        """Resize a lane until the gateway restarts; no run is cancelled."""
        return await control.lanes.resize(LaneName(name), body.concurrency)

    return api
