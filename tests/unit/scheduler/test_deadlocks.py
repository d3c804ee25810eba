"""No deadlock is possible: whoever waits for a run is never waited for by it.

SPEC AGENT-3, LANE-8, QUEUE-1, QUEUE-7.
"""

from __future__ import annotations

import random

import pytest

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import Shell, ask, told

CIRCLE = (Outcome.REJECTED, Reason.WAITS_FOR_ITSELF)
TWO = QueuePolicy(concurrency=2)


def finish_all(shell: Shell, chance: random.Random | None = None) -> None:
    """Let every run end that waits for nobody, until nothing is left."""
    while not shell.scheduler.idle:
        runs = shell.scheduler.runs(shell.now)
        asked = {run.parent for run in runs if run.id in shell.awaited}
        free = [run_id for run_id in shell.working if run_id not in asked]
        assert free, f"all wait for each other: {[(run.id, run.waits_for) for run in runs]}"
        shell.done(chance.choice(free) if chance else free[0])
    shell.assert_nothing_left()


def test_a_circle_that_needs_two_runs_to_wait_is_found_when_the_second_does() -> None:
    """SPEC LANE-8. Either of them could have freed the slot, so neither closed it alone."""
    shell = Shell({"main": 2})
    shell.submit("a", "one")
    shell.submit("b", "two")
    shell.submit("other", "three")
    assert ask(shell, "a child", "a", "three", lane="cron") == []
    refused = ["end b child: rejected, waits_for_itself"]
    assert ask(shell, "b child", "b", "one", lane="cron") == refused
    finish_all(shell)


def test_a_child_is_rejected_when_a_message_leaves_its_session_no_room_beside_its_parent() -> None:
    """SPEC LANE-8, QUEUE-7. It waited for one of two to end, and then for both."""
    shell = Shell({"main": 9})
    shell.submit_all("run", "busy", session="group", policy=TWO)
    assert ask(shell, "child", "run", "group", policy=TWO) == []
    shell.submit("throttled", "group")
    assert shell.ended == {"child": CIRCLE}
    finish_all(shell)


def test_a_child_is_rejected_when_its_agents_slot_goes_to_one_that_waits_for_its_parent() -> None:
    """SPEC AGENT-3, LANE-8. That one had queued for the agent first, and then for the lane."""
    shell = Shell({"main": 1}, agents={"slow": 1})
    shell.submit("run", "one")
    shell.submit("busy", "two", agent="slow", lane="cron")
    shell.submit("ahead", "three", agent="slow")
    assert ask(shell, "child", "run", "four", agent="slow", lane="subagent") == []
    shell.done("busy")
    assert shell.ended["child"] == CIRCLE
    finish_all(shell)


def test_a_child_that_waits_for_its_turn_is_left_alone_when_the_guest_before_it_is_stuck() -> None:
    """SPEC LANE-8: the guest's own child is given up, and then the turn comes."""
    shell = Shell({"main": 1}, agents={"slow": 1})
    shell.submit("run", "one")
    ask(shell, "guest", "run", "two")
    ask(shell, "next", "run", "three")
    shell.submit("busy", "four", agent="slow", lane="cron")
    shell.submit("ahead", "five", agent="slow")
    ask(shell, "child", "guest", "six", agent="slow", lane="subagent")
    shell.done("busy")
    assert shell.ended["child"] == CIRCLE
    assert shell.state("next") is RunState.READY
    shell.done("guest")
    assert shell.state("next") is RunState.RUNNING
    finish_all(shell)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(150))
def test_everybody_ends_in_every_random_family(seed: int, limited: bool) -> None:
    """SPEC LANE-8: over lanes, sessions, agents, and sizes that change."""
    chance = random.Random(seed)
    sizes = {name: chance.randint(1, 2) for name in ("main", "subagent", "cron")}
    shell = Shell(sizes, agents={"b": 1, "c": 2} if limited else {})
    for number in range(chance.randint(10, 40)):
        parent, awaited = "", False
        match chance.choice(["message", "child", "child", "child", "done", "size"]):
            case "child" if shell.working:
                parent, awaited = chance.choice(shell.working), chance.random() < 0.8
            case "done" if shell.working:
                shell.done(chance.choice(shell.working))
                continue
            case "size":
                shell.resize(chance.choice(list(sizes)), chance.randint(1, 3))
                shell.set_concurrency(chance.randint(1, 3), f"session {chance.randrange(3)}")
                continue
            case _:
                pass
        shell.submit(
            str(number),
            f"session {chance.randrange(4)}",
            lane=chance.choice(list(sizes)),
            agent=chance.choice("abc"),
            policy=QueuePolicy(concurrency=chance.randint(1, 2)),
            parent=parent or None,
            awaited=awaited,
        )
    finish_all(shell, chance)


# ---------------------------------------------------------------------- circles of two


def test_two_runs_that_ask_for_children_in_each_others_full_lane_both_go_on() -> None:
    """SPEC LANE-8: no deadlock is possible. The second child runs inside its parent's slot."""
    shell = Shell({"main": 1, "subagent": 1})
    shell.submit("chat", "one")
    shell.submit("agent", "two", lane="subagent")
    assert ask(shell, "a", "chat", lane="subagent") == []
    assert ask(shell, "b", "agent", lane="main") == ["start b"]
    assert shell.view("b").lane == "subagent"
    assert shell.occupants("subagent") == ["agent", "b"]
    shell.done_all("b", "agent")
    assert shell.state("a") is RunState.RUNNING
    shell.done_all("a", "chat")
    shell.assert_nothing_left()


def test_a_child_in_its_parents_own_busy_session_is_rejected() -> None:
    """SPEC LANE-8, QUEUE-1: it could start only after its parent had ended."""
    shell = Shell({"main": 9})
    shell.submit("run", "chat")
    rejected = ["end child: rejected, waits_for_itself"]
    assert ask(shell, "child", "run", session="chat") == rejected
    shell.done("run")
    shell.assert_nothing_left()


def test_a_child_behind_a_message_that_waits_for_its_parents_session_is_rejected() -> None:
    """SPEC LANE-8: those before it in the line count too."""
    shell = Shell({"main": 1, "subagent": 9})
    shell.submit("run", "one")
    shell.submit("busy", "two", lane="subagent")
    shell.submit("for main", "two")
    rejected = ["end child: rejected, waits_for_itself"]
    assert ask(shell, "child", "run", session="two", lane="subagent") == rejected


def test_a_lane_that_shrinks_to_runs_that_wait_seats_a_child_inside_its_parent() -> None:
    """SPEC LANE-4, LANE-8, LANE-9: it leaves the lane's line, and nobody starts twice."""
    shell = Shell({"main": 1, "subagent": 2})
    shell.submit("chat", "one")
    shell.submit("agent", "two", lane="subagent")
    shell.submit("free", "three", lane="subagent")
    ask(shell, "of chat", "chat", "four", lane="subagent")
    ask(shell, "of agent", "agent", "five", lane="main")
    shell.submit("behind chat", "six", lane="subagent")
    shell.submit("behind agent", "seven", lane="main")
    assert [shell.state(name) for name in ("of chat", "of agent")] == [RunState.READY] * 2
    assert len(told(shell.resize("subagent", 1))) == 1
    assert sorted(shell.lane(name).waiting for name in ("main", "subagent")) == [1, 2]
    finish_all(shell)
    assert (len(shell.started), set(shell.ended.values())) == (7, {(Outcome.COMPLETED, None)})
