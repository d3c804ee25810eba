"""Health and metrics of a gateway for probes and Prometheus (SPEC OPS-2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from goclaw_py.observability.readiness import Readiness


@dataclass(frozen=True, slots=True)
class Exposition:
    """All figures as Prometheus reads them, with the media type of the text."""

    text: bytes
    media_type: str


class Health(Protocol):
    """What can be asked of a running gateway as often as anybody likes."""

    def readiness(self) -> Readiness:
        """Whether work may be sent to it, by what it knows: nobody waits for the answer."""

    async def metrics(self, *, openmetrics: bool) -> Exposition:
        """Its figures, in the format of OpenMetrics or in the older one of Prometheus.

        Does not wait for a database that is away.
        """
