"""Incidents that operators are alerted about, once each (SPEC CHAN-10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.messages import OutboundMessage


@dataclass(frozen=True, slots=True)
class Incident:
    """A lasting problem. ``key`` says what has it, ``text`` describes it in a sentence."""

    key: str
    text: str
    since: datetime


class IncidentStore(Protocol):
    """Incidents, over all nodes and restarts."""

    async def open_incident(
        self, key: str, text: str, *, say: Sequence[OutboundMessage], now: datetime
    ) -> bool:
        """Note a trouble and put ``say`` into the outbox; False, and nothing, if it is known.

        What is known gets the new text.
        """

    async def close_incident(self, key: str) -> bool:
        """The trouble is over. False if it was not known."""

    async def incidents(self) -> list[Incident]:
        """Those that last, the oldest first."""
