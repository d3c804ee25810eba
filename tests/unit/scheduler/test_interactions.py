"""Rules that meet: each of these histories belongs to two or three rules at once.

SPEC AGENT-3, LANE-4, QUEUE-5, QUEUE-8, QUEUE-10.
"""

from __future__ import annotations

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, INTERRUPT, TYPING, Shell, told

DROPPED = (Outcome.DROPPED, Reason.QUEUE_DROPPED)
DEADLINE = (Outcome.TIMED_OUT, Reason.DEADLINE)


# ---------------------------------------------------------------------- interrupt


def test_an_interrupting_message_that_expires_lets_those_behind_it_start() -> None:
    """SPEC QUEUE-3, QUEUE-9: what it cancelled stays cancelled."""
    shell = Shell({"main": 9})
    shell.submit("a", policy=GROUP)
    interrupt = QueuePolicy(mode=Mode.INTERRUPT, concurrency=3)
    shell.submit("now", policy=interrupt, deadline_s=1)
    shell.submit("next", policy=GROUP)
    shell.wait(1)
    assert shell.ended == {"now": DEADLINE}
    assert shell.working == ["a", "next"]
    assert shell.state("a") is RunState.STOPPING


def test_the_pieces_of_an_interrupting_text_do_not_interrupt_what_came_between() -> None:
    """SPEC QUEUE-3, QUEUE-6: the text has interrupted once."""
    shell = Shell({"main": 9})
    shell.submit("old")
    shell.submit("1", sender="ann", policy=INTERRUPT, cut=True)
    shell.done("old")
    shell.submit("between", sender="bob")
    shell.submit("2", sender="ann", policy=INTERRUPT)
    assert list(shell.cancelled) == ["old"]
    assert shell.working == ["between"]
    shell.done("between")
    assert shell.working == ["1"]


# ---------------------------------------------------------------------- limits that meet


def test_the_deadline_of_a_message_that_joined_a_burst_does_not_count() -> None:
    """SPEC QUEUE-6, QUEUE-9: a turn has one deadline, that of its first message."""
    shell = Shell()
    shell.submit("a", sender="ann", policy=TYPING, deadline_s=9)
    shell.submit("b", sender="ann", policy=TYPING, deadline_s=2)
    shell.wait(8.9)
    assert (shell.working, shell.cancelled) == (["a"], {})
    shell.wait(0.1)
    assert shell.cancelled == {"a": Reason.DEADLINE}


# ---------------------------------------------------------------------- lanes in one session


def test_a_burst_stays_in_the_lane_of_its_first_message() -> None:
    """SPEC LANE-3, QUEUE-6: what is typed within the window is one turn."""
    shell = Shell()
    shell.submit("a", sender="ann", policy=TYPING)
    shell.submit("b", sender="ann", policy=TYPING, lane="cron")
    shell.wait(1)
    assert (shell.joined, shell.view("a").lane) == ({"b": "a"}, "main")


# ---------------------------------------------------------------------- the order of what is told


def test_a_run_ends_before_the_next_one_starts() -> None:
    """SPEC QUEUE-2: the next one reads what the last one left."""
    shell = Shell()
    shell.submit_all("a", "b")
    assert told(shell.done("a")) == ["end a: completed", "start b"]


def test_those_who_wait_for_a_lane_come_before_those_who_move_up_to_it() -> None:
    shell = Shell({"main": 1}, agents={"main": 3})
    shell.submit("a", "one")
    shell.submit("waits", "two")
    shell.submit("moves up", "one")
    shell.finish("a")
    assert told(shell.release("a")) == ["start waits"]
    assert told(shell.done("waits")) == ["end waits: completed", "start moves up"]


def test_an_interruption_drops_then_cancels_then_joins() -> None:
    """SPEC QUEUE-3: what it replaces has ended before anything of it begins."""
    shell = Shell({"main": 9})
    shell.submit("typed", sender="ann", policy=TYPING)
    shell.submit_all("run 1", "run 2", "run 3", "waits 1", "waits 2", policy=GROUP)
    effects = shell.submit("now", sender="ann", policy=INTERRUPT)
    assert told(effects) == [
        "end waits 1: dropped, newer_message",
        "end waits 2: dropped, newer_message",
        "cancel run 1: newer_message",
        "cancel run 2: newer_message",
        "cancel run 3: newer_message",
        "now joins typed",
    ]


def test_stopall_ends_what_waits_before_it_cancels_and_starts_nothing_of_the_session() -> None:
    shell = Shell({"main": 2}, agents={"main": 3})
    shell.submit_all("run 1", "run 2", "ready", "queued", policy=GROUP)
    shell.submit("other", "other", lane="cron")
    assert told(shell.stop_all().effects) == [
        "end ready: cancelled, stopped_all",
        "end queued: cancelled, stopped_all",
        "cancel run 1: stopped_all",
        "cancel run 2: stopped_all",
        "start other",
    ]


def test_each_way_to_lose_a_message_has_a_reason_of_its_own() -> None:
    shell = Shell()
    shell.submit("run", "old")
    shell.submit_all("oldest", "newer", session="old", policy=QueuePolicy(capacity=1))
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
