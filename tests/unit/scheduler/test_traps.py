"""Traps that comparable systems fell into, one test each.

Some of them cannot be set for a scheduler without locks, clock and tasks; there the test shows
the behaviour that the trap would have spoilt.
"""

from __future__ import annotations

import random

import pytest

from goclaw_py.model.ids import SessionKey
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, QueuePolicy
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, INTERRUPT, TYPING, Shell, told

GROUP_CHAT = QueuePolicy(debounce_s=0.8, concurrency=3)


@pytest.mark.parametrize("seed", range(5))
def test_two_places_in_the_lane_three_in_the_group_and_a_window_do_not_deadlock(
    seed: int,
) -> None:
    """SPEC LANE-4, QUEUE-1, QUEUE-6. Elsewhere the documented defaults deadlocked each time."""
    chance = random.Random(seed)
    shell = Shell()
    for number in range(40):
        group, person = f"group {number % 3}", f"person {chance.randrange(6)}"
        shell.submit(str(number), group, sender=person, policy=GROUP_CHAT)
        shell.wait(chance.choice([0.0, 0.1, 0.9]))
        if shell.working and chance.random() < 0.3:
            shell.done(chance.choice(shell.working))
    shell.wait(5)
    while shell.working:
        shell.done(chance.choice(shell.working))
    assert len(shell.ended) + len(shell.joined) == 40
    shell.assert_nothing_left()


def test_a_stop_takes_effect_in_its_own_step_while_every_lane_is_full() -> None:
    """SPEC CMD-1, LANE-5. Elsewhere a lock was held while a run waited for its lane."""
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    shell.submit("waits", "chat")
    shell.submit("behind", "chat")
    shell.submit("runs", "group", lane="cron")
    shell.submit("full", "group 2", lane="cron")
    assert told(shell.stop("group").effects) == ["cancel runs: stopped"]
    assert told(shell.stop("chat").effects)[0] == "end waits: cancelled, stopped"


@pytest.mark.parametrize("cause", ["stop", "deadline", "interrupt"])
def test_the_cancellation_of_one_request_leaves_a_later_users_message_alone(cause: str) -> None:
    """SPEC QUEUE-9. Elsewhere the first request's cancellation was everybody's."""
    shell = Shell()
    shell.submit("first", sender="ann", deadline_s=5)
    match cause:
        case "stop":
            shell.submit("later", sender="bob")
            shell.stop()
        case "deadline":
            shell.submit("later", sender="bob")
            shell.wait(5)
        case _:
            shell.submit("later", sender="bob", policy=INTERRUPT)
    shell.done("first")
    shell.done("later")
    assert shell.ended["later"] == (Outcome.COMPLETED, None)


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


def test_the_throttle_is_a_number_that_the_queue_is_told() -> None:
    """SPEC QUEUE-7. Elsewhere tokens were counted while the queue was locked."""
    shell = Shell({"main": 9})
    for name in "abc":
        shell.submit(name, policy=GROUP)
    assert shell.set_concurrency(1) == []
    shell.submit("d", policy=QueuePolicy(concurrency=1))
    shell.done("a")
    assert shell.state("d") is RunState.QUEUED
    assert shell.scheduler.has_session(SessionKey("chat"))
