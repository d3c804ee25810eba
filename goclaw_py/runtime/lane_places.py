"""Places in lanes that all nodes share: asked for when a run waits, given back at its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import LaneName, NodeId
from goclaw_py.core.status import LaneLoad
from goclaw_py.ports.store import LaneShare, LaneStore
from goclaw_py.runtime.dispatcher import Dispatcher
from goclaw_py.runtime.wake import Wake

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
"""How often a line is looked at without a notice, while somebody of this node stands in it."""


@dataclass(slots=True)
class _Own:
    """What this node has in a lane, and others. ``told``: what the database knows of it."""

    held: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    told: LaneShare | None = None
    elsewhere: int = 0

    def share(self, lane: LaneName, load: LaneLoad) -> LaneShare:
        """What is so now: a place for each run that works, and whoever waits."""
        over = max(len(self.held) - load.active, 0)
        # Places are all alike: which one a run has worked in does not matter.
        self.gone += self.held[:over]
        del self.held[:over]
        # Nobody can get more than there are.
        wanted = min(load.waiting, load.concurrency)
        return LaneShare(lane, load.concurrency, tuple(self.held), tuple(self.gone), wanted)


class LanePlaces:
    """Keeps what this node has in shared lanes, and what it wants, the same here and there.

    Args:
        node: Which node this process is now.
    """

    def __init__(
        self, store: LaneStore, dispatcher: Dispatcher, node: Callable[[], NodeId]
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._node = node
        self._owner = node()
        self._own: dict[LaneName, _Own] = {}
        self.wake = Wake()
        self._lanes = [lane.name for lane in dispatcher.lanes() if lane.shared]
        if self._lanes:
            dispatcher.tell_changes(self.wake.call)

    async def run(self) -> None:
        """Ask for places and give them back. Runs until cancelled."""
        while True:
            self.wake.clear()
            try:
                for lane in self._lanes:
                    await self._keep(lane)
            except StoreUnavailable as error:
                log.debug("shared lanes wait for the database: %s", error)
            await self.wake.wait(_LOOK_S)

    async def _keep(self, lane: LaneName) -> None:
        """Tell what is so, until nothing follows from it any more."""
        while True:
            node = self._node()
            if node != self._owner:
                # Declared dead: its places went with it. What runs still is being cut off.
                self._owner = node
                self._own.clear()
            own = self._own.setdefault(lane, _Own())
            share = own.share(lane, self._dispatcher.lane_load(lane))
            if share == own.told and not share.wanted:
                return
            if own.told is None and share == LaneShare(lane, share.size):
                return
            grant = await self._store.share(node, share)
            if self._node() != node:
                continue
            own.gone = [place for place in own.gone if place not in share.gone]
            own.told = LaneShare(lane, share.size, share.held, (), share.wanted)
            own.held += grant.places
            if grant.places or (share.wanted and grant.elsewhere != own.elsewhere):
                own.elsewhere = grant.elsewhere
                self._dispatcher.grant(lane, len(grant.places), grant.elsewhere)
            if not grant.places:
                return
