"""Those who count what a gateway does, as the runtime sees them. Imports nothing of any library."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from goclaw_py.model.ids import AgentName, LaneName
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.model.run_events import Usage


class Delivery(StrEnum):
    """What became of a message on its way out; of one message several may come."""

    SENT = "sent"
    FAILED = "failed"
    """It will never be delivered."""
    DROPPED = "dropped"
    """An operator gave it up."""
    RETRIED = "retried"
    """A try went wrong, and another one follows."""


class MetricsRecorder(Protocol):
    """Is told what has happened. Never blocks, never raises, keeps no text and no id."""

    def run_ended(self, lane: LaneName, trigger: Trigger, outcome: Outcome) -> None:
        """A request for a run has its end; it may never have begun."""

    def used(self, agent: AgentName, usage: Usage) -> None:
        """A run that has ended used this."""

    def received(self, channel: str) -> None:
        """A message from a channel is stored for the first time."""

    def delivered(self, channel: str, result: Delivery, delay_s: float | None = None) -> None:
        """It is stored what became of a message; ``delay_s``: how old one was that is sent."""

    def occurrence_ended(self, status: StrEnum, lag_s: float | None = None) -> None:
        """The end of an occurrence is stored; ``lag_s``: how late it began."""

    def heartbeat_ended(self, agent: AgentName, status: StrEnum) -> None:
        """The end of a heartbeat run is stored."""


class NoMetrics:
    """Nobody counts."""

    def run_ended(self, lane: LaneName, trigger: Trigger, outcome: Outcome) -> None:
        """Nothing is counted."""

    def used(self, agent: AgentName, usage: Usage) -> None:
        """Nothing is added up."""

    def received(self, channel: str) -> None:
        """Nothing is counted."""

    def delivered(self, channel: str, result: Delivery, delay_s: float | None = None) -> None:
        """Nothing is counted."""

    def occurrence_ended(self, status: StrEnum, lag_s: float | None = None) -> None:
        """Nothing is counted."""

    def heartbeat_ended(self, agent: AgentName, status: StrEnum) -> None:
        """Nothing is counted."""


NO_METER = NoMetrics()
"""See ``NoMetrics``."""
