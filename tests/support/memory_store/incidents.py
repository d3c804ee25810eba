"""Incidents that operators are notified about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.messages import OutboundMessage
from goclaw_py.records import Incident
from goclaw_py.store.text import storable
from tests.support.memory_store.tables import MemoryPart


class MemoryIncidents(MemoryPart):
    """Implements ``IncidentStore``."""

    async def open_incident(
        self, key: str, text: str, *, say: Sequence[OutboundMessage], now: datetime
    ) -> bool:
        incidents = self._db.incidents
        incident = Incident(storable(key), storable(text), now)
        if known := incidents.get(incident.key):
            incidents[incident.key] = replace(known, text=incident.text)
            return False
        incidents[incident.key] = incident
        self._db.enqueue(say, session=None, now=now)
        return True

    async def close_incident(self, key: str) -> bool:
        return self._db.incidents.pop(storable(key), None) is not None

    async def incidents(self) -> list[Incident]:
        return sorted(self._db.incidents.values(), key=lambda i: (i.since, i.key))
