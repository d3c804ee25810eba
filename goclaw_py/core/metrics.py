"""The recorder of metrics, as the runtime sees it, without any library."""

from __future__ import annotations

from enum import StrEnum

from goclaw_py.core.ids import AgentName, LaneName
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import Usage


class Delivery(StrEnum):
    """The result of an attempt to deliver a message; a message may have several."""

    SENT = "sent"
    FAILED = "failed"
    """It will never be delivered."""
    DROPPED = "dropped"
    """An operator dropped it."""
    RETRIED = "retried"
    """An attempt failed, and another one follows."""


class MetricsRecorder:
    """Counts events. Never blocks or raises, and stores no texts and ids.

    This one counts nothing; subclasses count what they are interested in.
    """

    def run_ended(self, lane: LaneName, trigger: Trigger, outcome: Outcome) -> None:
        """A requested run has ended; it may not have started."""

    def used(self, agent: AgentName, usage: Usage) -> None:
        """A run that ended has used this."""

    def received(self, channel: str) -> None:
        """A message from a channel was stored for the first time."""

    def delivered(self, channel: str, result: Delivery, delay_s: float | None = None) -> None:
        """The result of a delivery attempt was stored; ``delay_s`` is the age of a sent message."""

    def occurrence_ended(self, status: StrEnum, lag_s: float | None = None) -> None:
        """The end of an occurrence was stored; ``lag_s`` is the delay of its start."""

    def heartbeat_ended(self, agent: AgentName, status: StrEnum) -> None:
        """The end of a heartbeat run was stored."""


NO_METER = MetricsRecorder()
"""Counts nothing."""
