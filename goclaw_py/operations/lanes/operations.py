"""What operators see and do of the lanes of a gateway, and its state."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goclaw_py.core.actors import Least
from goclaw_py.core.errors import NoGateway, NotAccepted, NotFound
from goclaw_py.core.ids import LaneName
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.declare import operation
from goclaw_py.operations.lanes import changes
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.snapshots import lane_uses
from goclaw_py.scheduler.views import MAX_LANE_SIZE, GatewayStatus, LanesView, LaneView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Resized:
    """A lane with its new size. ``before`` is its previous size."""

    before: int
    lane: LaneView


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """What lives in a gateway. ``status`` returns its state."""

    dispatcher: Dispatcher
    status: Callable[[], Awaitable[GatewayStatus]]


class Lanes:
    """Every method raises ``NoGateway`` where no gateway is running."""

    def __init__(self, clock: Clock, gateway: RunningGateway | None = None) -> None:
        self._clock = clock
        self._gateway = gateway

    @operation("GET /api/status", Least.VIEWER)
    async def status(self) -> GatewayStatus:
        """Return the gateway's state."""
        if self._gateway is None:
            raise NoGateway("no gateway is running here; to start one: goclaw run")
        return await self._gateway.status()

    @operation("GET /api/lanes", Least.VIEWER)
    async def list(self) -> LanesView:
        """Return the running and waiting runs of each lane (SPEC LANE-7)."""
        dispatcher = self._dispatcher()
        return LanesView(self._clock.now(), lane_uses(dispatcher.lanes(), dispatcher.runs()))

    @operation("PUT /api/lanes/{name:path}", Least.OPERATOR, changes.RESIZE)
    async def resize(self, name: LaneName, concurrency: int) -> Resized:
        """Resize a lane until the gateway restarts; no run is cancelled (SPEC LANE-9).

        Raises ``NotFound`` with the names of the lanes, and ``NotAccepted`` for a size that is
        not from 1 to ``MAX_LANE_SIZE``.
        """
        dispatcher = self._dispatcher()
        if not 1 <= concurrency <= MAX_LANE_SIZE:
            raise NotAccepted(f"the size of a lane is from 1 to {MAX_LANE_SIZE}: {concurrency}")
        before = _lane(dispatcher, name).concurrency
        dispatcher.resize_lane(name, concurrency)
        log.info("lane_resized", extra={"lane": name, "from": before, "to": concurrency})
        return Resized(before, _lane(dispatcher, name))

    def _dispatcher(self) -> Dispatcher:
        if self._gateway is None:
            problem = "no gateway is running here, so no lanes are open"
            raise NoGateway(f"{problem}; to start one: goclaw run")
        return self._gateway.dispatcher


def _lane(dispatcher: Dispatcher, name: LaneName) -> LaneView:
    lanes = {lane.name: lane for lane in dispatcher.lanes()}
    if name not in lanes:
        raise NotFound(f"there is no lane {name!r}; there are: {', '.join(lanes)}")
    return lanes[name]
