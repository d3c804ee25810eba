"""The order of what a shell is told to do: it carries out the effects of a step one by one."""

from __future__ import annotations

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


def test_a_session_moves_up_before_other_sessions_of_its_agent() -> None:
    """SPEC AGENT-3: sessions in line take turns, the longest waiting first."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("a", "one")
    shell.submit("b", "two")
    shell.submit("a2", "one")
    assert told(shell.done("a")) == ["end a: completed", "start b"]
    assert told(shell.done("b")) == ["end b: completed", "start a2"]


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


def test_a_late_tick_does_not_start_what_has_expired() -> None:
    """SPEC LANE-6, QUEUE-9. A burst whose time was over started, and was cancelled at once."""
    shell = Shell()
    shell.submit("typed", sender="ann", policy=TYPING, deadline_s=0.5)
    assert told(shell.scheduler.tick(100)) == ["end typed: timed_out, deadline"]
