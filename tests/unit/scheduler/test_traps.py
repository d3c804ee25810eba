"""Traps that comparable systems fell into, one test each.

Some of them cannot be set for a scheduler without locks, clock and tasks; there the test shows
the behaviour that the trap would have spoilt.
"""

from __future__ import annotations

from goclaw_py.model.outcomes import Reason
from goclaw_py.scheduler.models import Drop, QueuePolicy
from tests.unit.scheduler.shell import INTERRUPT, TYPING, Shell

GROUP_CHAT = QueuePolicy(debounce_s=0.8, concurrency=3)


def test_sessions_and_all_that_belongs_to_them_are_evicted() -> None:
    """SPEC QUEUE-1. Elsewhere the map of sessions only grew."""
    shell = Shell({"main": 2}, agents={"main": 2})
    for number in range(1000):
        session = f"session {number}"
        shell.submit(f"{number} typed", session, sender="ann", policy=TYPING, deadline_s=60)
        shell.wait(0.8)
        shell.submit(f"{number} child", f"sub {number}", parent=f"{number} typed", awaited=True)
        shell.done(f"{number} child")
        shell.done(f"{number} typed")
    machine = shell.scheduler._machine
    assert (machine.sessions, machine.kin, machine.requests, machine.aliases) == ({}, {}, {}, {})
    assert len(machine.timers) < 200
    assert len(machine.collector.timers) < 200


def test_each_way_to_lose_a_message_has_a_reason_of_its_own() -> None:
    """SPEC QUEUE-5, QUEUE-10. Elsewhere a dropped message was a generic error."""
    shell = Shell()
    shell.submit("run", "old")
    shell.submit("oldest", "old", policy=QueuePolicy(capacity=1))
    shell.submit("newer", "old", policy=QueuePolicy(capacity=1))
    shell.submit("too many", "old", policy=QueuePolicy(capacity=1, drop=Drop.NEW))
    shell.submit("now", "old", policy=INTERRUPT)
    shell.submit("late", "old", deadline_s=1)
    shell.wait(1)
    shell.close_lane("cron")
    shell.submit("job", "jobs", lane="cron")
    shell.scheduler.drain()
    shell.submit("after", "old")
    reasons = {name: reason for name, (_, reason) in shell.ended.items()}
    assert reasons == {
        "oldest": Reason.QUEUE_DROPPED,
        "too many": Reason.QUEUE_FULL,
        "newer": Reason.NEWER_MESSAGE,
        "late": Reason.DEADLINE,
        "job": Reason.LANE_CLOSED,
        "after": Reason.DRAINING,
    }
