"""Incidents that operators are alerted about, once each (SPEC CHAN-10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.core.messages import OutboundMessage


@dataclass(frozen=True, slots=True)
class Incident:
    """A lasting problem. ``key`` identifies what has it, ``text`` is a sentence."""

    key: str
    text: str
    since: datetime


class IncidentStore(Protocol):
    """Incidents, over all nodes and restarts."""

    async def open_incident(
        self, key: str, text: str, *, say: Sequence[OutboundMessage], now: datetime
    ) -> bool:
        """Store an incident and add ``say`` to the outbox.

        If it is open already, only its text changes, and False is returned.
        """

    async def close_incident(self, key: str) -> bool:
        """Remove an incident. Returns False if it was not open."""

    async def incidents(self) -> list[Incident]:
        """Return open incidents, the oldest first."""
