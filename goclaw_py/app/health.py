"""Readiness and metrics of a gateway, collected from its parts."""

from __future__ import annotations

from collections.abc import Mapping

from goclaw_py.app.database import Database
from goclaw_py.app.status import Snapshots
from goclaw_py.gateway.container import Container
from goclaw_py.observability.loop_lag import LoopLag
from goclaw_py.observability.prometheus import Metrics
from goclaw_py.observability.readiness import Readiness, Vitals, judge
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.health import Exposition
from goclaw_py.ports.store import Place


class GatewayHealth:
    """Implements ``Health``."""

    def __init__(
        self,
        works: Container,
        channels: Mapping[Place, Channel],
        database: Database,
        snapshots: Snapshots,
        metrics: Metrics,
    ) -> None:
        self._works = works
        self._channels = channels
        self._database = database
        self._snapshots = snapshots
        self._metrics = metrics
        self.lag = LoopLag()

    def readiness(self) -> Readiness:
        """Return the readiness without a database query, because anyone may poll it often."""
        views = self._works.supervisor.views()
        return judge(
            Vitals(
                database=self._database.reachable,
                channels=[
                    view for view in views if not self._channels[view.name, view.account].trusted
                ],
                lag_s=self.lag.worst_s,
                draining=self._works.dispatcher.draining,
            )
        )

    async def metrics(self, *, openmetrics: bool) -> Exposition:
        """See ``Health``."""
        status = await self._snapshots.quick()
        return self._metrics.exposition(status, openmetrics=openmetrics)
