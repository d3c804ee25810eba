"""Mode ``steer``: the active run may take in a message between two requests to its model.

SPEC QUEUE-4, QUEUE-6, QUEUE-8, QUEUE-10.
"""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.scheduler.scheduler import DuplicateRequest
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import Shell, told

STEER = QueuePolicy(mode=Mode.STEER)
STEER_GROUP = QueuePolicy(mode=Mode.STEER, concurrency=2)


def test_a_message_for_a_busy_session_is_queued_and_offered_to_its_run() -> None:
    shell = Shell()
    shell.submit("run")
    assert told(shell.submit("more", policy=STEER)) == ["offer more to run"]
    assert shell.state("more") is RunState.QUEUED


def test_a_message_that_the_run_took_in_is_part_of_it() -> None:
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER)
    assert told(shell.take_in("more", "run")) == ["more joins run"]
    assert shell.view("run").messages == 2
    shell.done("run")
    assert shell.started == ["run"]
    assert shell.ended == {"run": (Outcome.COMPLETED, None)}
    shell.assert_nothing_left()


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


def test_a_run_that_takes_in_a_message_takes_in_what_had_joined_it() -> None:
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, debounce_s=0.8)
    shell.submit("run")
    shell.submit_all("a", "a2", sender="ann", policy=policy)
    shell.take_in("a", "run")
    assert shell.joined == {"a2": "a", "a": "run"}
    assert shell.view("run").messages == 3
    for name in ("a", "a2"):
        with pytest.raises(DuplicateRequest):
            shell.submit(name)
    shell.done("run")
    shell.assert_nothing_left()


def test_a_run_takes_in_no_message_of_another_session_and_nothing_unknown() -> None:
    shell = Shell()
    shell.submit("run", "one")
    shell.submit("other run", "two")
    shell.submit("more", "two", policy=STEER)
    assert shell.take_in("more", "run") == []
    assert shell.take_in("nobody", "run") == []
    assert shell.take_in("more", "nobody") == []
    assert shell.take_in("other run", "run") == []
    assert shell.state("more") is RunState.QUEUED


def test_a_run_that_starts_is_offered_what_waits_behind_it() -> None:
    """SPEC QUEUE-4: whether the message came before or after the run got its slot is chance."""
    shell = Shell({"main": 1})
    shell.submit("busy", "elsewhere")
    shell.submit_all("first", "second", policy=STEER)
    shell.submit("third", policy=QueuePolicy())
    assert shell.offered == []
    assert told(shell.done("busy")) == [
        "end busy: completed",
        "start first",
        "offer second to first",
    ]
    assert told(shell.take_in("second", "first")) == ["second joins first"]
