"""Health and metrics of a gateway for probes and Prometheus (SPEC OPS-2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from goclaw_py.observability.readiness import Readiness


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
