"""Lanes that all nodes share (SPEC NODE-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import LaneName, NodeId


@dataclass(frozen=True, slots=True)
class LaneShare:
    """What a node has of a shared lane.

    Args:
        size: How many runs may work in it at once, on all nodes together.
        held: The places of this node in which a run works.
        gone: Those it needs no more.
        wanted: For how many more runs it wants a place.
    """

    lane: LaneName
    size: int
    held: Sequence[int] = ()
    gone: Sequence[int] = ()
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class LaneGrant:
    """What a node has got of a shared lane.

    Args:
        places: Those that it has by now and did not hold.
        elsewhere: How many other nodes have.
    """

    places: Sequence[int] = ()
    elsewhere: int = 0


class LaneStore(Protocol):
    """The lines of shared lanes."""

    async def share(self, node: NodeId, share: LaneShare, *, now: datetime) -> LaneGrant:
        """Tell what a node holds and wants; what it gets.

        First come, first served, over all nodes whose lease lives: one that has to renew its own
        keeps what it has, and its turn, and is passed over until then. What is wanted stays in the
        line until it is wanted no more, or the node is gone. To tell the same again is harmless: a
        place whose answer was lost is told again. Sends ``Notice.LANES`` if others have got a place
        by it.
        """
