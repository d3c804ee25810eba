"""``/stop`` and ``/stopall`` (SPEC CMD-6, QUEUE-2, QUEUE-4, QUEUE-8)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.core.ids import LaneName
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Mode
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, TYPING, Shell

SUB = LaneName("subagent")
STOPPED = (Outcome.CANCELLED, Reason.STOPPED)
STOPPED_ALL = (Outcome.CANCELLED, Reason.STOPPED_ALL)


# ---------------------------------------------------------------------- one


def test_stop_takes_the_run_that_started_first() -> None:
    shell = Shell({"main": 1})
    shell.submit("job", lane=LaneName("main"), policy=GROUP)
    shell.submit("chat", lane=SUB, policy=GROUP)
    shell.submit("ready", policy=GROUP)
    assert shell.stop().stopped == ["job"]
    assert shell.stop().stopped == ["chat"]


def test_stop_takes_one_that_waits_for_its_lane_when_nothing_runs() -> None:
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    shell.submit_all("ready", "queued")
    stop = shell.stop()
    assert (stop.stopped, stop.dropped) == ([], ["ready"])
    assert shell.ended == {"ready": STOPPED}
    assert shell.state("queued") is RunState.READY


def test_stop_while_the_only_run_is_stopping_takes_nothing() -> None:
    shell = Shell()
    shell.submit_all("a", "next")
    assert shell.stop().stopped == ["a"]
    again = shell.stop()
    assert again.already_stopping
    assert (again.stopped, again.dropped, again.effects) == ([], [], [])
    shell.done("a")
    assert shell.started == ["a", "next"]


def test_stop_includes_the_live_descendants_of_what_it_cancels() -> None:
    shell = Shell({"subagent": 1})
    shell.submit("run", policy=GROUP)
    shell.submit("child", "sub 1", lane=SUB, parent="run")
    shell.submit("grandchild", "sub 2", lane=SUB, parent="child")
    shell.submit("brother", policy=GROUP)
    shell.submit("nephew", "sub 3", lane=SUB, parent="brother")
    stop = shell.stop()
    assert stop.stopped == ["run", "child"]
    assert stop.dropped == ["grandchild"]
    assert shell.state("nephew") is RunState.READY


# ---------------------------------------------------------------------- all


def test_stopall_takes_runs_queue_and_debounce_buffer() -> None:
    shell = Shell({"main": 1, "subagent": 1})
    shell.submit("typed", sender="ann", policy=TYPING)
    shell.submit_all("runs", "ready", "ready too", "queued", policy=GROUP)
    shell.submit("other", "elsewhere", lane=SUB)
    stop = shell.stop_all()
    assert stop.stopped == ["runs"]
    assert stop.dropped == ["typed", "ready", "ready too", "queued"]
    assert shell.ended == dict.fromkeys(stop.dropped, STOPPED_ALL)
    shell.done("runs")
    shell.wait(5)
    assert shell.started == ["runs", "other"]


# ---------------------------------------------------------------------- those who do not listen


def test_a_run_that_ignores_its_cancellation_is_abandoned_after_the_grace_period() -> None:
    shell = Shell({"main": 1}, agents={"main": 1})
    shell.submit_all("deaf", "next")
    shell.stop()
    shell.wait(9.9)
    assert shell.started == ["deaf"]
    shell.wait(0.1)
    assert shell.ended == {"deaf": (Outcome.ABANDONED, Reason.STOPPED)}
    assert shell.started == ["deaf", "next"]
    assert shell.lane().active == 1
    assert shell.lane().cancelled == 1


# ---------------------------------------------------------------------- whose


def test_a_stop_of_one_sender_finds_what_is_theirs_first() -> None:
    shell = Shell({"main": 1})
    shell.submit("anns", sender="ann", policy=GROUP)
    shell.submit("bobs", sender="bob", policy=GROUP)
    assert list(shell.candidates("cat")) == ["anns", "bobs"]
    assert list(shell.candidates("bob")) == ["bobs", "anns"]


def test_each_sender_of_a_turn_may_stop_it_and_what_it_has_asked_for() -> None:
    collect = replace(GROUP, mode=Mode.COLLECT, concurrency=1)
    shell = Shell()
    for name, sender in {"runs": "ann", "bobs": "bob", "cats": "cat"}.items():
        shell.submit(name, sender=sender, policy=collect)
    shell.done("runs")
    shell.submit("child", "child of bobs", lane=SUB, parent="bobs", awaited=True)
    assert shell.joined == {"cats": "bobs"}
    assert shell.candidates("cat") == {"bobs": {"bob", "cat"}, "child": {"bob", "cat", ""}}
