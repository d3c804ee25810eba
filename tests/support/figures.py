"""What a gateway in a test shows to Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goclaw_py.app.status import Snapshots
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.observability.prometheus import Metrics
from tests.support.harness import GatewayProcess


@dataclass
class ThereOrNot:
    """Stands for the database server."""

    reachable: bool = True
    kind: str = "embedded"
    trouble: str = ""


def a_meter() -> Metrics:
    """For a process as the harness makes it."""
    return Metrics(["telegram"], [MAIN_AGENT])


def snapshots_of(gateway: GatewayProcess, server: ThereOrNot | None = None) -> Snapshots:
    """What makes the status of a process."""
    stand_in: Any = server or ThereOrNot()
    return Snapshots(gateway.clock, gateway.container, stand_in, gateway.cluster)


def figures(text: bytes) -> Mapping[str, float]:
    """By name and labels, as they are written."""
    lines = text.decode().splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


@dataclass
class Scraped:
    """A process and what counts in it."""

    gateway: GatewayProcess
    meter: Metrics
    server: ThereOrNot = field(default_factory=ThereOrNot)

    async def all(self) -> Mapping[str, float]:
        """One scrape."""
        status = await snapshots_of(self.gateway, self.server).quick()
        return figures(self.meter.exposition(status, openmetrics=False).text)

    async def some(self, name: str) -> dict[str, float]:
        """What has a name and is not 0, by labels."""
        return {
            key.removeprefix(name): value
            for key, value in (await self.all()).items()
            if value and key.partition("{")[0] == name
        }
