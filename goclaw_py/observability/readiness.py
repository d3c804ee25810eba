"""Readiness of a gateway (SPEC OPS-2).

Available without a token, so it has only states and numbers, no names of accounts and no texts of
errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from goclaw_py.scheduler.views import ChannelState, ChannelView

SLOW_S: Final = 1.0
"""A longer lag of the event loop, in seconds, is reported."""

STUCK_S: Final = 5.0
"""With a longer lag, in seconds, the gateway is not ready."""

_FINE: Final = (ChannelState.CONNECTED, ChannelState.WAITING)
_SERVING: Final = (*_FINE, ChannelState.RECONNECTING, ChannelState.CONFLICT)


class Condition(StrEnum):
    """The condition of a part."""

    OK = "ok"
    DEGRADED = "degraded"
    """It has a problem, and the gateway works nevertheless."""
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    """A part, with a text for people."""

    name: str
    state: Condition
    words: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The result of a readiness probe."""

    ready: bool
    checks: tuple[ReadinessCheck, ...]

    @property
    def words(self) -> str:
        """Return why it is not ready, in a sentence; "" if it is."""
        failing = [check.words for check in self.checks if check.state is Condition.FAILING]
        return f"not ready: {'; '.join(failing)}" if failing else ""


@dataclass(frozen=True, slots=True)
class Vitals:
    """The facts for readiness.

    Args:
        database: Whether it answered the last query.
        channels: The channels for people outside of this machine.
        lag_s: The largest recent lag of the event loop.
        draining: Whether new work is refused.
    """

    database: bool
    channels: Sequence[ChannelView]
    lag_s: float
    draining: bool


def judge(vitals: Vitals) -> Readiness:
    """Return whether a gateway is ready: not if any part has failed."""
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
    # An account whose server has never answered may be cut off here only, and refuses webhooks: a
    # rolling restart has to wait. A server that is lost later is no reason to go, nor is one
    # account that has failed or is refused: it must not hide the others.
    if any(view.state is ChannelState.STARTING for view in channels):
        return ReadinessCheck("channels", Condition.FAILING, f"a channel is starting: {counted}")
    fine = all(view.state in _FINE for view in channels)
    state = Condition.OK if fine else Condition.DEGRADED
    return ReadinessCheck("channels", state, f"{counted} (without the console)")


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
    return ReadinessCheck("draining", Condition.OK, "new work is accepted")


@dataclass(frozen=True, slots=True)
class Exposition:
    """All metrics in a Prometheus text format, with its media type."""

    text: bytes
    media_type: str


class Health(Protocol):
    """Cheap questions about a running gateway."""

    def readiness(self) -> Readiness:
        """Return whether it accepts work, from its present state, without waiting."""

    async def metrics(self, *, openmetrics: bool) -> Exposition:
        """Return its metrics in the OpenMetrics or the older Prometheus format.

        Does not wait for an unavailable database.
        """
