"""A gateway that is as it is told to be."""

from __future__ import annotations

from goclaw_py.observability.readiness import Exposition, Readiness, Vitals, judge


class FakeHealth:
    """Implements ``Health``."""

    def __init__(self) -> None:
        self.vitals = Vitals(database=True, channels=(), lag_s=0.0, draining=False)

    def readiness(self) -> Readiness:
        return judge(self.vitals)

    async def metrics(self, *, openmetrics: bool) -> Exposition:
        if openmetrics:
            return Exposition(b"# EOF\n", "application/openmetrics-text; version=1.0.0")
        return Exposition(b"a 1.0\n", "text/plain; version=0.0.4; charset=utf-8")
