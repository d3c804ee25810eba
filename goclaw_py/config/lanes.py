"""``[lanes]``: how many runs are executed at once, per node or in total (SPEC LANE-1, NODE-2)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from goclaw_py.config.section import Section
from goclaw_py.config.types import Matching, Whole
from goclaw_py.model.ids import CRON_LANE
from goclaw_py.scheduler.views import MAX_LANE_SIZE

LaneKey = Annotated[
    str,
    Matching(r"[a-z][a-z0-9_-]{0,31}", "a lane name: a letter, then up to 31 of a-z 0-9 _ -"),
]

DEFAULT_LANES: Final[Mapping[str, int]] = {"main": 2, "subagent": 4, "delegate": 100, "cron": 1}

OF_CHILDREN: Final = frozenset({"subagent", "delegate"})
"""Lanes of runs that their parent runs wait for. Shared by nodes, they could deadlock."""


class LaneScope(StrEnum):
    """What the size of a lane counts: the runs of each node, or those of all nodes together."""

    NODE = "node"
    CLUSTER = "cluster"


class LaneSettings(Section):
    """``[lanes.<name>]``; a number in its place is the size."""

    size: Annotated[int, Whole(1, MAX_LANE_SIZE)] = Field(
        description="the maximum number of concurrent runs"
    )
    scope: LaneScope = Field(
        default=LaneScope.NODE,
        description="what the size limits. node (default): the runs of each node; cluster "
        "(default of cron): the runs of all nodes together. Lanes of subagents and "
        "delegates must be node",
    )


def lane_tables(given: Mapping[str, object]) -> dict[str, object]:
    """Return every lane as a table; a plain number becomes its size. Nothing is checked."""
    return {
        name: said if isinstance(said, Mapping | LaneSettings) else {"size": said}
        for name, said in given.items()
    }


def filled_lanes(given: Mapping[str, object], cron_size: int) -> dict[str, object]:
    """Return all lanes as tables, including the default lanes. Nothing is checked."""
    filled: dict[str, object] = lane_tables(DEFAULT_LANES)
    filled[CRON_LANE] = {"size": cron_size, "scope": LaneScope.CLUSTER}
    for name, said in lane_tables(given).items():
        filled[name] = _over(filled.get(name), said)
    return filled


def _over(default: object, said: object) -> object:
    if isinstance(default, Mapping) and isinstance(said, Mapping):
        return {**default, **said}
    return said
