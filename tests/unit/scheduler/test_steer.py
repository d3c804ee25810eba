"""Mode ``steer``: the active run may take in a message between two requests to its model."""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.scheduler import DuplicateRequest
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, INTERRUPT, Shell, told

STEER = QueuePolicy(mode=Mode.STEER)
STEER_GROUP = QueuePolicy(mode=Mode.STEER, concurrency=2)


def test_a_message_for_a_busy_session_is_queued_and_offered_to_its_run() -> None:
    """SPEC QUEUE-4."""
    shell = Shell()
    shell.submit("run")
    assert told(shell.submit("more", policy=STEER)) == ["offer more to run"]
    assert shell.state("more") is RunState.QUEUED


def test_a_message_that_the_run_took_in_is_part_of_it() -> None:
    """SPEC QUEUE-4, QUEUE-10."""
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER)
    assert told(shell.take_in("more", "run")) == ["more joins run"]
    assert shell.view("run").messages == 2
    shell.done("run")
    assert shell.started == ["run"]
    assert shell.ended == {"run": (Outcome.COMPLETED, None)}
    shell.assert_nothing_left()


def test_a_message_that_no_run_takes_in_is_queued_like_any_other() -> None:
    """SPEC QUEUE-4."""
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER)
    shell.done("run")
    assert shell.started == ["run", "more"]


def test_a_message_for_an_idle_session_starts_and_is_offered_to_nobody() -> None:
    """SPEC QUEUE-4."""
    shell = Shell()
    assert told(shell.submit("a", policy=STEER)) == ["start a"]


def test_a_message_with_room_beside_the_run_starts_and_is_not_offered() -> None:
    """SPEC QUEUE-1, QUEUE-4."""
    shell = Shell()
    shell.submit("run", policy=STEER_GROUP)
    assert told(shell.submit("more", policy=STEER_GROUP)) == ["start more"]


def test_a_message_is_offered_to_the_run_that_started_last() -> None:
    """SPEC QUEUE-4."""
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    shell.submit("submitted first", policy=STEER_GROUP)
    shell.submit("started first", policy=STEER_GROUP, lane="delegate")
    shell.done("blocks")
    shell.submit("more", policy=STEER_GROUP)
    shell.submit("job", policy=STEER_GROUP, lane="delegate")
    assert shell.offered == [("more", "submitted first"), ("job", "started first")]


@pytest.mark.parametrize("other", [{"lane": "cron"}, {"agent": "other"}])
def test_a_message_for_another_lane_or_agent_is_not_offered(other: dict[str, str]) -> None:
    """SPEC LANE-3, QUEUE-4."""
    shell = Shell()
    shell.submit("run")
    assert shell.submit("more", policy=STEER, **other) == []


def test_a_message_is_not_offered_to_a_run_that_only_waits_for_its_lane() -> None:
    """SPEC QUEUE-4."""
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    shell.submit("ready")
    shell.submit("more", policy=STEER)
    assert shell.offered == []


def test_a_message_is_not_offered_to_a_run_that_is_stopping_or_finishing() -> None:
    """SPEC QUEUE-4: the words would be lost with it."""
    shell = Shell()
    shell.submit("stopped", "one")
    shell.stop("one")
    shell.submit("a", "one", policy=STEER)
    shell.submit("finished", "two")
    shell.finish("finished")
    shell.submit("b", "two", policy=STEER)
    assert shell.offered == []


def test_a_run_that_has_asked_for_children_is_offered_messages_all_the_same() -> None:
    """SPEC QUEUE-4. Once a run had had a subagent, nothing was offered to it any more."""
    shell = Shell()
    shell.submit("run")
    shell.submit("child", "sub", lane="subagent", parent="run", awaited=True)
    shell.submit("during", policy=STEER)
    shell.done("child")
    shell.submit("after", policy=STEER)
    assert shell.offered == [("during", "run"), ("after", "run")]


def test_a_child_is_offered_nothing_and_is_not_offered() -> None:
    """SPEC LANE-8: its parent waits for its own answer."""
    shell = Shell({"main": 9})
    shell.submit("run", policy=STEER_GROUP)
    shell.submit("child", policy=STEER_GROUP, parent="run")
    assert told(shell.submit("child 2", policy=STEER_GROUP, parent="run")) == []
    assert told(shell.submit("more", policy=STEER_GROUP)) == ["offer more to run"]


def test_a_message_is_not_offered_past_one_that_waits_for_a_turn_of_its_own() -> None:
    """SPEC QUEUE-4: a run that took it in would answer it before an older one."""
    shell = Shell()
    shell.submit("run", policy=STEER)
    shell.submit("own turn")
    shell.submit("later", policy=STEER)
    assert shell.offered == []
    shell.done("run")
    shell.submit("latest", policy=STEER)
    assert shell.offered == [("later", "own turn"), ("latest", "own turn")]


def test_an_offer_follows_the_end_of_the_message_that_made_room() -> None:
    """SPEC QUEUE-4, QUEUE-5."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, capacity=1)
    shell.submit("run", policy=policy)
    shell.submit("old", policy=policy)
    effects = shell.submit("new", policy=policy)
    assert told(effects) == ["end old: dropped, queue_dropped", "offer new to run"]


def test_a_message_that_is_refused_is_not_offered() -> None:
    """SPEC QUEUE-4, QUEUE-5."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, capacity=1, drop=Drop.NEW)
    shell.submit("run", policy=policy)
    shell.submit("old", policy=policy)
    assert told(shell.submit("new", policy=policy)) == ["end new: rejected, queue_full"]


def test_a_message_that_starts_because_another_was_dropped_is_not_offered_to_itself() -> None:
    """SPEC QUEUE-4, QUEUE-5. It was: the dropped one had insisted on starting alone."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, capacity=1, concurrency=2)
    shell.submit("run", policy=policy)
    shell.submit("now", policy=QueuePolicy(mode=Mode.INTERRUPT, concurrency=2))
    effects = shell.submit("more", policy=policy)
    assert told(effects) == ["end now: dropped, queue_dropped", "start more"]


def test_a_burst_is_offered_as_one_message_when_it_is_complete() -> None:
    """SPEC QUEUE-4, QUEUE-6."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, debounce_s=0.8)
    shell.submit("a", sender="ann", policy=policy)
    shell.submit("run", sender="bob", policy=STEER)
    shell.submit("b", sender="ann", policy=policy)
    assert shell.offered == []
    shell.wait(1)
    assert shell.offered == [("a", "run")]


def test_a_run_that_takes_in_a_message_takes_in_what_had_joined_it() -> None:
    """SPEC QUEUE-4, QUEUE-6, QUEUE-10."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, debounce_s=0.8)
    shell.submit("run")
    shell.submit("a", sender="ann", policy=policy)
    shell.submit("a2", sender="ann", policy=policy)
    shell.take_in("a", "run")
    assert shell.joined == {"a2": "a", "a": "run"}
    assert shell.view("run").messages == 3
    for name in ("a", "a2"):
        with pytest.raises(DuplicateRequest):
            shell.submit(name)
    shell.done("run")
    shell.assert_nothing_left()


def test_what_a_sender_adds_after_a_message_was_taken_in_is_a_message_of_its_own() -> None:
    """SPEC QUEUE-4, QUEUE-6."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, debounce_s=0.8)
    shell.submit("run")
    shell.submit("a", sender="ann", policy=policy)
    shell.take_in("a", "run")
    shell.submit("b", sender="ann", policy=policy)
    assert shell.offered == [("a", "run"), ("b", "run")]
    assert shell.joined == {"a": "run"}


def test_a_message_that_was_taken_in_lets_those_behind_it_move_up() -> None:
    """SPEC AGENT-3, QUEUE-4: it had waited for its agent, before one of another agent."""
    shell = Shell({"main": 9}, agents={"slow": 1})
    shell.submit("run", agent="slow", policy=GROUP)
    shell.submit("more", agent="slow", policy=QueuePolicy(mode=Mode.STEER, concurrency=3))
    shell.submit("next", policy=GROUP)
    assert shell.started == ["run"]
    assert told(shell.take_in("more", "run")) == ["more joins run", "start next"]


def test_a_stopped_run_takes_nothing_in_and_the_message_waits_for_its_end() -> None:
    """SPEC QUEUE-4, QUEUE-8."""
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER)
    shell.stop()
    assert shell.take_in("more", "run") == []
    shell.done("run")
    assert shell.started == ["run", "more"]


@pytest.mark.parametrize("cause", ["deadline", "shutdown", "lane closed"])
def test_a_message_that_has_left_the_line_is_not_taken_in(cause: str) -> None:
    """SPEC QUEUE-4, QUEUE-10: it has its outcome already."""
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER, deadline_s=5)
    match cause:
        case "deadline":
            shell.wait(5)
        case "shutdown":
            shell.release_waiting()
        case _:
            shell.close_lane("main")
    assert list(shell.ended) == ["more"]
    assert shell.state("run") is RunState.RUNNING
    assert shell.take_in("more", "run") == []
    assert shell.joined == {}


def test_a_message_is_not_taken_in_twice() -> None:
    """SPEC QUEUE-10."""
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER)
    shell.take_in("more", "run")
    assert shell.take_in("more", "run") == []


def test_a_run_takes_in_no_message_of_another_session_and_nothing_unknown() -> None:
    """SPEC QUEUE-4."""
    shell = Shell()
    shell.submit("run", "one")
    shell.submit("other run", "two")
    shell.submit("more", "two", policy=STEER)
    assert shell.take_in("more", "run") == []
    assert shell.take_in("nobody", "run") == []
    assert shell.take_in("more", "nobody") == []
    assert shell.take_in("other run", "run") == []
    assert shell.state("more") is RunState.QUEUED


def test_the_deadline_of_a_message_that_was_taken_in_rings_no_more() -> None:
    """SPEC QUEUE-9."""
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER, deadline_s=5)
    shell.take_in("more", "run")
    shell.wait(10)
    assert (shell.ended, shell.cancelled) == ({}, {})


def test_an_interrupting_message_drops_what_was_offered() -> None:
    """SPEC QUEUE-3, QUEUE-4."""
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER)
    shell.submit("now", policy=INTERRUPT)
    assert shell.ended == {"more": (Outcome.DROPPED, Reason.NEWER_MESSAGE)}
    assert shell.take_in("more", "run") == []


def test_a_run_that_starts_is_offered_what_waits_behind_it() -> None:
    """SPEC QUEUE-4: whether the message came before or after the run got its slot is chance."""
    shell = Shell({"main": 1})
    shell.submit("busy", "elsewhere")
    shell.submit("first", policy=STEER)
    shell.submit("second", policy=STEER)
    shell.submit("third", policy=QueuePolicy())
    assert shell.offered == []
    assert told(shell.done("busy")) == [
        "end busy: completed",
        "start first",
        "offer second to first",
    ]
    assert told(shell.take_in("second", "first")) == ["second joins first"]


def test_what_one_run_did_not_take_in_is_offered_to_the_next() -> None:
    """SPEC QUEUE-4."""
    shell = Shell()
    for name in ("first", "second", "third"):
        shell.submit(name, policy=STEER)
    shell.done("first")
    assert shell.offered == [("second", "first"), ("third", "first"), ("third", "second")]
