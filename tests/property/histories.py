"""What random histories are made of: steps of a few random bytes each, and kinds of histories.

A step of zeros does nothing, so what is left of a history that was made smaller reads like a story.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

STEP_BYTES = 20


class Dice:
    """Choices made by the bytes of one step; it gives the first of all things when they end."""

    def __init__(self, step: bytes) -> None:
        self._bytes = iter(step)

    def pick(self, options: Sequence[T]) -> T:
        return options[next(self._bytes, 0) % len(options)]

    def chance(self, one_in: int) -> bool:
        return next(self._bytes, 0) % one_in == one_in - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """What happens in a kind of history, and how often: things named twice happen twice as often.

    ``patient`` parents end only when the children that they wait for have ended.
    """

    name: str
    happenings: Sequence[str]
    lanes: Mapping[str, int]
    agents: Mapping[str, int] = field(default_factory=dict)
    sessions: Mapping[str, Sequence[int]] = field(default_factory=lambda: {"chat": (1,)})
    """Their concurrency; several values change it from message to message."""
    asks_lanes: Sequence[str] = ("main",)
    asks_agents: Sequence[str] = ("main",)
    senders: Sequence[str] = ("",)
    modes: Sequence[str] = ("queue",)
    windows_s: Sequence[float] = (0.0,)
    debounces: Sequence[str] = ("fixed",)
    capacities: Sequence[int] = (10,)
    time_limits_s: Sequence[float | None] = (None,)
    turn_messages: Sequence[int] = (50,)
    turn_chars: Sequence[int] = (1000,)
    delays_s: Sequence[float] = (0.25, 0.5, 1.0, 3.0)
    patient: bool = False


def often(text: str) -> list[str]:
    """Things that happen; ``end*6`` is as likely as six others together."""
    words = (word.partition("*") for word in text.split())
    return [word for word, _, times in words for _ in range(int(times or 1))]


CHATS = Setting(
    name="chats",
    happenings=often(
        "message*12 end*6 store*3 time*5 take_in*2 stop stop_one stop_all late "
        "set_concurrency duplicate"
    ),
    lanes={"main": 2, "cron": 1},
    sessions={"direct": (1,), "group": (3,), "moving": (2, 2, 2, 1, 3)},
    asks_lanes=["main"] * 6 + ["cron", "unknown"],
    senders=["ann", "bob", ""],
    modes=["queue", "collect", "steer", "queue", "followup", "collect", "steer", "interrupt"],
    windows_s=[0.0, 0.5, 1.0],
    capacities=[10, 1, 2, 3],
    time_limits_s=[None] * 7 + [0.0, 0.5, 2.0, 10.0],
    turn_messages=[50, 50, 50, 2, 3],
    turn_chars=[1000, 1000, 3],
)
TYPING = Setting(
    name="typing",
    happenings=often("message*12 time*12 end*6 late take_in"),
    lanes={"main": 2},
    sessions={"group": (2,)},
    senders=["ann", "ann", "ann", "bob"],
    modes=["queue"] * 6 + ["steer", "interrupt"],
    windows_s=[1.0, 0.5],
    capacities=[10, 2],
    delays_s=[0.25],
)
CROWD = Setting(
    name="crowd",
    happenings=often(
        "message*12 end*8 store*3 time*3 stop stop_one stop_all late resize "
        "limit_agent set_concurrency take_in duplicate"
    ),
    lanes={"main": 2, "cron": 1, "subagent": 1},
    agents={"main": 2, "busy": 1},
    sessions={"one": (1,), "two": (1,), "three": (2,), "four": (3,), "five": (2, 1, 3)},
    asks_lanes=["main", "main", "cron", "subagent"],
    asks_agents=["main", "main", "busy", "free"],
    delays_s=[0.25, 1.0, 3.0, 11.0],
    modes=["queue"] * 5 + ["collect", "steer", "interrupt"],
    capacities=[10, 1, 2, 3],
    time_limits_s=[None] * 9 + [0.5, 2.0, 10.0],
)
FAMILIES = Setting(
    name="families",
    happenings=often(
        "message*6 child*8 orphan*2 end*8 store*4 time*2 stop stop_one stop_all late "
        "resize limit_agent set_concurrency"
    ),
    lanes={"main": 2, "subagent": 1, "cron": 1},
    agents={"main": 2, "busy": 1},
    sessions={"one": (1,), "two": (1,), "three": (2,), "four": (3,), "five": (2, 1, 3)},
    asks_lanes=["main", "subagent", "cron"],
    asks_agents=["main", "busy", "free", "free"],
    senders=["", "ann"],
    modes=["queue"] * 6 + ["collect", "interrupt"],
    windows_s=[0.0, 0.0, 1.0],
    capacities=[10, 10, 1, 2],
    time_limits_s=[None] * 12 + [0.5, 2.0],
)
PATIENT = Setting(
    name="patient parents",
    happenings=often(
        "message*10 child*18 end*24 store*8 stop*2 stop_one resize*2 limit_agent "
        "set_concurrency "
        "orphan stop_all time take_in"
    ),
    lanes={"main": 1, "subagent": 1, "cron": 1},
    agents={"main": 1, "busy": 1},
    sessions={"one": (1,), "two": (1,), "three": (2,), "four": (3, 1)},
    asks_lanes=["main", "subagent", "cron"],
    asks_agents=["main", "busy", "free"],
    senders=["", "", "ann"],
    modes=["queue"] * 9 + ["collect", "steer", "interrupt"],
    windows_s=[0.0, 0.0, 0.5],
    patient=True,
)
SPECULATIVE = Setting(
    name="speculative",
    happenings=often(
        "message*14 end*5 store*4 time*8 effect*2 take_in*2 child stop stop_one stop_all late "
        "set_concurrency interrupt_all drain"
    ),
    lanes={"main": 2, "cron": 1},
    agents={"main": 2},
    sessions={"direct": (1,), "group": (3,), "moving": (2, 2, 2, 1, 3)},
    asks_lanes=["main"] * 6 + ["cron"],
    senders=["ann", "ann", "bob", ""],
    modes=["queue"] * 4 + ["collect", "steer", "steer", "interrupt"],
    windows_s=[1.0, 1.0, 0.5, 0.0],
    debounces=["speculative"] * 5 + ["fixed"],
    capacities=[10, 1, 2],
    time_limits_s=[None] * 12 + [0.5, 2.0],
    turn_messages=[50, 50, 50, 2, 3],
    turn_chars=[1000, 1000, 4],
    delays_s=[0.25, 0.25, 0.5, 1.0, 4.0],
)
BURSTS = Setting(
    name="bursts",
    happenings=often("message*12 time*6 end*6 store*2 effect"),
    lanes={"main": 2},
    sessions={"direct": (1,), "group": (3,)},
    senders=["ann", "ann", "ann", "bob"],
    windows_s=[1.0],
    debounces=["speculative"],
    turn_messages=[50, 50, 50, 3],
    delays_s=[0.25, 0.5, 1.0, 4.0],
)
ENDINGS = Setting(
    name="endings",
    happenings=often(
        "message*14 child*4 orphan*2 end*6 store*3 time*4 stop stop_one stop_all late "
        "new_lane mistake*2 duplicate close_lane drain release_waiting interrupt_all"
    ),
    lanes={"main": 2, "cron": 1, "extra": 1},
    agents={"busy": 1},
    sessions={"one": (1,), "two": (2,), "three": (3,)},
    asks_lanes=["main", "cron", "extra", "unknown"],
    asks_agents=["main", "busy"],
    senders=["", "ann", "bob"],
    modes=["queue", "queue", "collect", "steer", "interrupt"],
    windows_s=[0.0, 0.5],
    capacities=[10, 1, 2],
    time_limits_s=[None] * 6 + [0.0, 0.5, 2.0, -1.0, float("inf")],
)
SETTINGS = [CHATS, TYPING, SPECULATIVE, BURSTS, CROWD, FAMILIES, PATIENT, ENDINGS]
