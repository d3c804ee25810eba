"""Lanes that all nodes share (SPEC NODE-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import LaneName, NodeId


@dataclass(frozen=True, slots=True)
class LaneShare:
    """A node's use of a shared lane.

    Args:
        size: The number of slots of the lane, over all nodes.
        held: The slots that runs of this node use.
        gone: The slots that it releases.
        wanted: The number of further slots that it waits for.
    """

    lane: LaneName
    size: int
    held: Sequence[int] = ()
    gone: Sequence[int] = ()
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class LaneGrant:
    """The slots of a shared lane that a node was granted.

    Args:
        places: New slots, which it did not hold before.
        elsewhere: The number of slots that other nodes have.
    """

    places: Sequence[int] = ()
    elsewhere: int = 0


class LaneStore(Protocol):
    """The slots of shared lanes."""

    async def share(self, node: NodeId, share: LaneShare, *, now: datetime) -> LaneGrant:
        """Store which slots a node holds and waits for; return its new slots.

        Slots go to nodes with a valid lease, first come, first served. A node that must renew its
        lease keeps its slots and its turn, and is skipped until then. Repeating the call is safe:
        slots whose response was lost are returned again. Sends ``Notice.LANES`` if other nodes got
        a slot.
        """
