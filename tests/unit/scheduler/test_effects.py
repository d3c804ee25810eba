"""The order of what a shell is told to do: it carries out the effects of a step one by one."""

from __future__ import annotations

from goclaw_py.scheduler.models import Mode, QueuePolicy
from tests.unit.scheduler.shell import GROUP, INTERRUPT, TYPING, Shell, told


def test_a_run_ends_before_the_next_one_starts() -> None:
    """SPEC QUEUE-2: the next one reads what the last one left."""
    shell = Shell()
    shell.submit("a")
    shell.submit("b")
    assert told(shell.done("a")) == ["end a: completed", "start b"]


def test_those_who_wait_for_a_lane_come_before_those_who_move_up_to_it() -> None:
    """SPEC LANE-4."""
    shell = Shell({"main": 1}, agents={"main": 3})
    shell.submit("a", "one")
    shell.submit("waits", "two")
    shell.submit("moves up", "one")
    shell.finish("a")
    assert told(shell.release("a")) == ["start waits"]
    assert told(shell.done("waits")) == ["end waits: completed", "start moves up"]


def test_a_freed_slot_goes_to_the_line_before_the_same_session() -> None:
    """SPEC LANE-4: with two slots both start, the longer waiting one first."""
    shell = Shell({"main": 2})
    shell.submit("a", "one")
    shell.submit("b", "two")
    shell.submit("next", "one")
    shell.submit("waits", "three")
    shell.finish("a")
    shell.finish("b")
    assert told(shell.release("a")) == ["start waits"]
    assert told(shell.release("b")) == ["start next"]


def test_a_session_moves_up_before_other_sessions_of_its_agent() -> None:
    """SPEC AGENT-3: sessions in line take turns, the longest waiting first."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("a", "one")
    shell.submit("b", "two")
    shell.submit("a2", "one")
    assert told(shell.done("a")) == ["end a: completed", "start b"]
    assert told(shell.done("b")) == ["end b: completed", "start a2"]


def test_a_message_that_raises_the_concurrency_starts_those_before_it_first() -> None:
    """SPEC QUEUE-3: first come, first served."""
    shell = Shell({"main": 9})
    shell.submit("a")
    shell.submit("b")
    assert told(shell.submit("c", policy=GROUP)) == ["start b", "start c"]


def test_what_joins_a_burst_is_told_before_the_burst_starts() -> None:
    """SPEC QUEUE-6."""
    shell = Shell()
    first = told(shell.submit("1", sender="ann", cut=True))
    second = told(shell.submit("2", sender="ann"))
    assert (first, second) == ([], ["2 joins 1", "start 1"])


def test_an_interruption_drops_then_cancels_then_joins() -> None:
    """SPEC QUEUE-3: what it replaces has ended before anything of it begins."""
    shell = Shell({"main": 9})
    shell.submit("typed", sender="ann", policy=TYPING)
    for name in ("run 1", "run 2", "run 3", "waits 1", "waits 2"):
        shell.submit(name, policy=GROUP)
    effects = shell.submit("now", sender="ann", policy=INTERRUPT)
    assert told(effects) == [
        "end waits 1: dropped, newer_message",
        "end waits 2: dropped, newer_message",
        "cancel run 1: newer_message",
        "cancel run 2: newer_message",
        "cancel run 3: newer_message",
        "now joins typed",
    ]


def test_an_interruption_of_what_only_waits_starts_in_the_same_step() -> None:
    """SPEC QUEUE-3."""
    shell = Shell({"main": 1})
    shell.submit("blocks", "other", lane="main")
    shell.submit("ready")
    shell.submit("waits")
    effects = shell.submit("now", policy=QueuePolicy(mode=Mode.INTERRUPT), lane="cron")
    assert told(effects) == [
        "end waits: dropped, newer_message",
        "end ready: dropped, newer_message",
        "start now",
    ]


def test_stopall_ends_what_waits_before_it_cancels_and_starts_nothing_of_the_session() -> None:
    """SPEC QUEUE-8."""
    shell = Shell({"main": 2}, agents={"main": 3})
    for name in ("run 1", "run 2", "ready", "queued"):
        shell.submit(name, policy=GROUP)
    shell.submit("other", "other", lane="cron")
    assert told(shell.stop_all().effects) == [
        "end ready: cancelled, stopped_all",
        "end queued: cancelled, stopped_all",
        "cancel run 1: stopped_all",
        "cancel run 2: stopped_all",
        "start other",
    ]


def test_an_expired_message_ends_before_those_behind_it_start() -> None:
    """SPEC QUEUE-9."""
    shell = Shell({"main": 9}, agents={"slow": 1})
    shell.submit("busy", "other", agent="slow")
    shell.submit("late", agent="slow", policy=GROUP, deadline_s=1)
    shell.submit("next", policy=GROUP)
    assert told(shell.scheduler.tick(1)) == ["end late: timed_out, deadline", "start next"]


def test_an_abandoned_run_has_ended_before_the_next_one_starts() -> None:
    """SPEC QUEUE-2."""
    shell = Shell()
    shell.submit("deaf")
    shell.submit("next")
    shell.stop()
    assert told(shell.scheduler.tick(10)) == ["end deaf: abandoned, stopped", "start next"]


def test_a_dropped_message_ends_before_the_one_for_which_it_went_starts() -> None:
    """SPEC QUEUE-5: dropping an interrupting message can let the next one start at once."""
    shell = Shell({"main": 9})
    policy = QueuePolicy(capacity=1, concurrency=2)
    shell.submit("a", policy=policy)
    shell.submit("now", policy=QueuePolicy(mode=Mode.INTERRUPT, concurrency=2))
    effects = shell.submit("next", policy=policy)
    assert told(effects) == ["end now: dropped, queue_dropped", "start next"]


def test_a_closed_lane_ends_all_who_wait_before_others_move_up() -> None:
    """SPEC LANE-6."""
    shell = Shell({"main": 1})
    shell.submit("run", "one")
    shell.submit("ready", "two")
    shell.submit("queued", "two")
    shell.submit("job", "two", lane="cron")
    assert told(shell.close_lane("main")) == [
        "end ready: rejected, lane_closed",
        "end queued: rejected, lane_closed",
        "start job",
    ]


def test_a_late_tick_does_not_start_what_has_expired() -> None:
    """SPEC LANE-6, QUEUE-9. A burst whose time was over started, and was cancelled at once."""
    shell = Shell()
    shell.submit("typed", sender="ann", policy=TYPING, deadline_s=0.5)
    assert told(shell.scheduler.tick(100)) == ["end typed: timed_out, deadline"]


def test_a_deadline_at_the_end_of_the_window_comes_first() -> None:
    """SPEC LANE-6, QUEUE-9: an expired waiter never runs."""
    shell = Shell()
    shell.submit("typed", sender="ann", policy=QueuePolicy(debounce_s=1), deadline_s=1)
    shell.wait(1)
    assert (shell.started, list(shell.ended)) == ([], ["typed"])


def test_effects_are_given_out_once() -> None:
    """SPEC QUEUE-12."""
    shell = Shell()
    assert told(shell.submit("a")) == ["start a"]
    assert shell.scheduler.tick(0) == []
    assert told(shell.submit("b", "other")) == ["start b"]
