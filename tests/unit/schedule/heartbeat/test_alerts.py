"""When the owners are told that an agent's heartbeat fails (SPEC HB-10)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from goclaw_py.core.ids import MAIN_AGENT, HeartbeatRunId, NodeId
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.records.bound import bind
from goclaw_py.schedule.heartbeat.alerts import Alerts
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.execution import HeartbeatExecution, HeartbeatOutcome
from goclaw_py.schedule.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
)
from goclaw_py.schedule.heartbeat.texts import failed_thrice
from goclaw_py.testing.clock import START

RUN = HeartbeatRunId("h")
REPORT = failed_thrice(MAIN_AGENT, START, "no disk", "UTC")


class Incidents:
    """Notes what happens to the incident of the heartbeat."""

    def __init__(self) -> None:
        self.did: list[str] = []

    async def close_incident(self, key: str) -> None:
        self.did.append("close")

    async def alert(self, key: str, text: str) -> None:
        self.did.append(text)


@pytest.mark.parametrize(
    ("before", "failed", "did"),
    [
        (0, True, []),
        (1, True, []),
        (2, True, ["close", REPORT]),  # the incident of the series before may still be open
        (3, True, [REPORT]),  # nobody is told again while it is open
        (2, False, []),
        (3, False, ["close"]),
        (5, None, []),
    ],
)
async def test_the_third_failure_in_a_row_is_reported_until_a_run_ends_well(
    before: int, failed: bool | None, did: list[str]
) -> None:
    incidents: Any = Incidents()
    unused: Any = None
    store = bind(incidents, lambda: NodeId("here"))
    alerts = Alerts(store, unused, {}, unused, unused, incidents)
    heartbeat = Heartbeat(MAIN_AGENT, timedelta(minutes=30), failures=before)
    claim = HeartbeatClaim(
        RUN, MAIN_AGENT, HeartbeatRunKind.INTERVAL, START, START, None, heartbeat
    )
    held = HeartbeatExecution(claim, HeartbeatPolicy(), node=NodeId("here"))
    status = HeartbeatRunStatus.FAILED if failed else HeartbeatRunStatus.OK
    end = HeartbeatRunEnd(RUN, MAIN_AGENT, status, START, detail="no disk", failed=failed)
    await alerts.on_stored(held, end, HeartbeatOutcome(status))
    assert incidents.did == did
