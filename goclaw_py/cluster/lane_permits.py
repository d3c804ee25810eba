"""Slots of lanes that all nodes share: requested when a run waits, released at its end."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import LaneName
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import LaneGrant, LaneShare
from goclaw_py.records.bound import BoundStore
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.views import LaneLoad

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
"""How often a queue is read without a notice, in seconds, while a run of this node waits."""


@dataclass(slots=True)
class _Own:
    """The slots of a lane that this node and other nodes have.

    Args:
        told: What is stored about this node; None after a lost response.
    """

    told: LaneShare | None
    held: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    elsewhere: int = 0

    def share(self, lane: LaneName, load: LaneLoad) -> LaneShare:
        """Return the present state: a slot for each run, and the waiting runs."""
        over = max(len(self.held) - load.active, 0)
        # Places are all alike: which one a run has worked in does not matter.
        self.gone += self.held[:over]
        del self.held[:over]
        # A node cannot get more than all slots. A released slot may be granted again at once, and
        # waiting requests keep their place.
        known = 0 if self.told is None else self.told.wanted
        wanted = min(load.waiting, max(load.concurrency + len(self.gone), known))
        return LaneShare(lane, load.concurrency, tuple(self.held), tuple(self.gone), wanted)

    def apply(self, share: LaneShare, grant: LaneGrant) -> None:
        """Apply the response; slots in it need not be reported again."""
        self.gone = [place for place in self.gone if place not in share.gone]
        self.held += grant.places
        wanted = share.wanted - len(grant.places)
        self.told = LaneShare(share.lane, share.size, tuple(self.held), (), wanted)


class ClusterLanePermits:
    """Synchronizes the slots that this node has and wants with the database.

    Each change is reported once. Only a look repeats a request, because other nodes may have
    released slots: a request costs several statements, one node at a time.
    """

    def __init__(self, store: BoundStore, clock: Clock, dispatcher: Dispatcher) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher = dispatcher
        self._owner = store.node()
        self._own: dict[LaneName, _Own] = {}
        self._wake = WakeEvent()
        self._is_to_look = False
        self._lanes = [lane.name for lane in dispatcher.lanes() if lane.shared]
        if self._lanes:
            dispatcher.notify_changes(self._wake.call)

    def poll_soon(self) -> None:
        """Look soon: other nodes have released slots."""
        self._is_to_look = True
        self._wake.call()

    async def run(self) -> None:
        """Request and release slots. Runs until cancelled."""
        loop = asyncio.get_running_loop()
        look_at = loop.time()
        while True:
            self._wake.clear()
            look = self._is_to_look or loop.time() >= look_at
            if look:
                self._is_to_look = False
                look_at = loop.time() + _LOOK_S
            try:
                for lane in self._lanes:
                    await self._report_regularly(lane, repeat=look)
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "shared_lanes"})
            await self._wake.wait(look_at - loop.time())

    async def _report_regularly(self, lane: LaneName, *, repeat: bool) -> None:
        """Report changes; with ``repeat``, also repeat the request while a run waits."""
        node = self._store.node()
        if node != self._owner:
            # Declared dead: its places went with it. What runs still is being cut off.
            self._owner = node
            self._own.clear()
        load = self._dispatcher.lane_load(lane)
        own = self._own.setdefault(lane, _Own(LaneShare(lane, load.concurrency)))
        share = own.share(lane, load)
        if share == own.told and not (repeat and share.wanted):
            return
        own.told = None
        grant = await self._store.share(node, share, now=self._clock.now())
        if self._store.node() != node:
            self._wake.call()
            return
        own.apply(share, grant)
        if grant.places or (share.wanted and grant.elsewhere != own.elsewhere):
            own.elsewhere = grant.elsewhere
            # Grants are a change too, which the next round reports.
            self._dispatcher.grant(lane, len(grant.places), grant.elsewhere)
