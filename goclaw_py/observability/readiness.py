"""Whether a gateway is ready for work, and why not (SPEC OPS-2).

Anybody may ask, without a token: so nothing is told here but states and numbers, no name of an
account and no text of an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from goclaw_py.scheduler.views import ChannelState, ChannelView

SLOW_S: Final = 1.0
"""From here on a lag of the event loop is told."""

STUCK_S: Final = 5.0
"""From here on it answers others too late to be of use."""

_FINE: Final = (ChannelState.CONNECTED, ChannelState.WAITING)
_SERVING: Final = (*_FINE, ChannelState.RECONNECTING, ChannelState.CONFLICT)


class Condition(StrEnum):
    """How one part is."""

    OK = "ok"
    DEGRADED = "degraded"
    """Something is wrong, and the gateway works all the same."""
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    """One part, with words for people."""

    name: str
    state: Condition
    words: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a readiness probe is told."""

    ready: bool
    checks: tuple[ReadinessCheck, ...]

    @property
    def words(self) -> str:
        """What keeps it from being ready, in a sentence; "" if nothing does."""
        failing = [check.words for check in self.checks if check.state is Condition.FAILING]
        return f"not ready: {'; '.join(failing)}" if failing else ""


@dataclass(frozen=True, slots=True)
class Vitals:
    """What readiness is judged by.

    Args:
        database: Whether it has answered when it was last asked.
        channels: Those that serve people from outside of this machine.
        lag_s: By how much the event loop was late of late, at worst.
        draining: No new work is taken.
    """

    database: bool
    channels: Sequence[ChannelView]
    lag_s: float
    draining: bool


def judge(vitals: Vitals) -> Readiness:
    """Whether work may be sent to a gateway: not if any part of it fails."""
    checks = (
        _database(answers=vitals.database),
        _channels(vitals.channels),
        _lag(vitals.lag_s),
        _draining(now=vitals.draining),
    )
    return Readiness(all(check.state is not Condition.FAILING for check in checks), checks)


def _database(*, answers: bool) -> ReadinessCheck:
    if answers:
        return ReadinessCheck("database", Condition.OK, "the database answers")
    return ReadinessCheck("database", Condition.FAILING, "the database does not answer")


def _channels(channels: Sequence[ChannelView]) -> ReadinessCheck:
    states = Counter(view.state for view in channels)
    serving = [view for view in channels if view.state in _SERVING]
    counted = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    if not channels:
        return ReadinessCheck("channels", Condition.OK, "no channel is set up")
    if not serving:
        return ReadinessCheck("channels", Condition.FAILING, f"no channel works: {counted}")
    fine = all(view.state in _FINE for view in channels)
    state = Condition.OK if fine else Condition.DEGRADED
    return ReadinessCheck("channels", state, f"channels: {counted}")


def _lag(lag_s: float) -> ReadinessCheck:
    words = f"the event loop was {lag_s:.1f} s late at worst"
    if lag_s >= STUCK_S:
        return ReadinessCheck("lag", Condition.FAILING, words)
    if lag_s >= SLOW_S:
        return ReadinessCheck("lag", Condition.DEGRADED, words)
    return ReadinessCheck("lag", Condition.OK, words)


def _draining(*, now: bool) -> ReadinessCheck:
    if now:
        return ReadinessCheck("draining", Condition.FAILING, "the gateway is shutting down")
    return ReadinessCheck("draining", Condition.OK, "new work is taken")
