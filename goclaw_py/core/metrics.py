"""The recorder of metrics, as the runtime sees it, without any library."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

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


class MetricsRecorder(Protocol):
    """Counts events. Never blocks or raises, and keeps no texts and ids."""

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


class NoMetrics:
    """Counts nothing."""

    def run_ended(self, lane: LaneName, trigger: Trigger, outcome: Outcome) -> None:
        """Do nothing."""

    def used(self, agent: AgentName, usage: Usage) -> None:
        """Do nothing."""

    def received(self, channel: str) -> None:
        """Do nothing."""

    def delivered(self, channel: str, result: Delivery, delay_s: float | None = None) -> None:
        """Do nothing."""

    def occurrence_ended(self, status: StrEnum, lag_s: float | None = None) -> None:
        """Do nothing."""

    def heartbeat_ended(self, agent: AgentName, status: StrEnum) -> None:
        """Do nothing."""


NO_METER = NoMetrics()
"""See ``NoMetrics``."""
