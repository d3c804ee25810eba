"""``[lanes]`` and ``[queue]``: how many runs there are at once, and how messages wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from goclaw_py.config.types import Matching, Section, Whole
from goclaw_py.core.ids import CRON_LANE
from goclaw_py.scheduler.models import Debounce, Drop, Mode
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

    size: Annotated[int, Whole(1, MAX_LANE_SIZE)]
    """the maximum number of concurrent runs"""
    scope: LaneScope = LaneScope.NODE
    """what the size limits. node (default): the runs of each node; cluster (default of cron): the
    runs of all nodes together. Lanes of subagents and delegates must be node"""


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


def _over(default: object, value: object) -> object:
    if isinstance(default, Mapping) and isinstance(value, Mapping):
        return {**default, **value}
    return value


class Queue(Section):
    """``[queue]``, and the same below an agent or a channel, where it overrides (SPEC section 2).

    A key that is not set is inherited; ``queue_policy`` merges the levels.
    """

    mode: Mode | None = None
    """what happens to a message that arrives during a run. queue (default): it waits; followup: the
    same; interrupt: it cancels the run; collect: all waiting messages become one turn; steer: the
    run reads it if the agent supports that"""
    capacity: Annotated[int | None, Whole(1, 10_000)] = None
    """the maximum number of waiting messages in a session; default 10"""
    drop: Drop | None = None
    """old (default) or new: which message is dropped when the queue is full"""
    debounce_ms: Annotated[int | None, Whole(0, 60_000)] = None
    """messages sent within this many ms are merged into one turn; default 800, 0: off"""
    debounce: Debounce | None = None
    """speculative: a run starts at once, and begins again if its sender writes more within
    debounce_ms and it has neither started a tool nor shown text; fixed: it starts after
    debounce_ms. Default: speculative for language models, fixed for other agents"""
    turn_messages: Annotated[int | None, Whole(1, 10_000)] = None
    """the maximum number of messages in one turn; default 50"""
    turn_chars: Annotated[int | None, Whole(1, 10_000_000)] = None
    """the maximum number of characters in one turn; a single longer message is a turn of its own;
    default 100,000"""
    max_concurrent: Annotated[int | None, Whole(1)] = None
    """the maximum number of concurrent runs of one session; default 1 in direct chats, 3 in groups
    """
    stop_words: bool | None = None
    """whether a message that is only "stop", "cancel" or the like stops the current run; default
    true"""
