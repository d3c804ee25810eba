"""Places in lanes that all nodes share: asked for when a run waits, given back at its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import LaneName, NodeId
from goclaw_py.core.status import LaneView
from goclaw_py.ports.store import LaneShare, LaneStore
from goclaw_py.runtime.dispatcher import Dispatcher
from goclaw_py.runtime.wake import Wake

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
"""How often a line is looked at without a notice, while somebody of this node stands in it."""


@dataclass(slots=True)
class _Own:
    """What this node has in a lane. ``told``: what the database knows of it."""

    held: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    told: LaneShare | None = None

    def share(self, lane: LaneView) -> LaneShare:
        """What is so now: a place for each run that works, and whoever waits."""
        over = max(len(self.held) - lane.active, 0)
        # Places are all alike: which one a run has worked in does not matter.
        self.gone += self.held[:over]
        del self.held[:over]
        # Nobody can get more than there are.
        wanted = min(lane.waiting, lane.concurrency)
        return LaneShare(lane.name, lane.concurrency, tuple(self.held), tuple(self.gone), wanted)


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
        if any(lane.shared for lane in dispatcher.lanes()):
            dispatcher.tell_changes(self.wake.call)

    async def run(self) -> None:
        """Ask for places and give them back. Runs until cancelled."""
        while True:
            self.wake.clear()
            try:
                for lane in [view.name for view in self._dispatcher.lanes() if view.shared]:
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
            share = own.share(self._view(lane))
            if share == own.told and not share.wanted:
                return
            if own.told is None and share == LaneShare(lane, share.size):
                return
            places = await self._store.share(node, share)
            if self._node() != node:
                continue
            own.gone = [place for place in own.gone if place not in share.gone]
            own.told = LaneShare(lane, share.size, share.held, (), share.wanted)
            own.held += places
            if not places:
                return
            self._dispatcher.grant(lane, len(places))

    def _view(self, lane: LaneName) -> LaneView:
        return next(view for view in self._dispatcher.lanes() if view.name == lane)
