"""The table of transitions, and what happens when a shell breaks the rules (SPEC QUEUE-2)."""

from __future__ import annotations

import pytest

from goclaw_py.model.ids import LaneName, RunId, SessionKey
from goclaw_py.scheduler.models import LaneState, Request
from goclaw_py.scheduler.state_machine import RequestStateMachine
from goclaw_py.scheduler.states import TRANSITIONS, IllegalTransition
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import TYPING, Shell

S = RunState
PERMITTED = {
    (S.COLLECTING, S.QUEUED),
    (S.COLLECTING, S.READY),
    (S.COLLECTING, S.DONE),
    (S.QUEUED, S.READY),
    (S.QUEUED, S.DONE),
    (S.READY, S.RUNNING),
    (S.READY, S.DONE),
    (S.RUNNING, S.STOPPING),
    (S.RUNNING, S.FINISHING),
    (S.STOPPING, S.FINISHING),
    (S.STOPPING, S.ABANDONED),
    (S.FINISHING, S.DONE),
    (S.ABANDONED, S.DONE),
}


@pytest.mark.parametrize("after", S)
@pytest.mark.parametrize("before", S)
def test_a_change_of_state_is_permitted_only_if_the_table_says_so(
    before: RunState, after: RunState
) -> None:
    lane = LaneState(LaneName("main"), 1)
    machine = RequestStateMachine([lane], {}, cancel_grace_s=1)
    entry = Request(RunId("a"), SessionKey("s"))
    machine.enter(entry, lane, now=0)
    entry.state = before
    if (before, after) in PERMITTED:
        machine._move(entry, after, now=7)
        assert (entry.state, entry.since) == (after, 7)
    else:
        with pytest.raises(IllegalTransition, match=f"a: {before} cannot become {after}"):
            machine._move(entry, after, now=7)
        assert entry.state is before


def test_the_table_names_every_state() -> None:
    assert set(TRANSITIONS) == set(RunState)


def test_every_state_but_done_leads_to_done() -> None:
    for state in set(RunState) - {S.DONE}:
        reached, edge = {state}, {state}
        while edge:
            edge = {after for before in edge for after in TRANSITIONS[before]} - reached
            reached |= edge
        assert S.DONE in reached


def test_slots_cannot_be_given_back_while_the_run_works() -> None:
    shell = Shell()
    shell.submit("a")
    with pytest.raises(IllegalTransition):
        shell.release("a")
    assert shell.lane().active == 1


def test_a_run_goes_through_its_states_in_order() -> None:
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    shell.submit("a", sender="ann", policy=TYPING)
    seen = [shell.state("a")]
    shell.wait(1)
    seen.append(shell.state("a"))
    shell.done("blocks")
    seen.append(shell.state("a"))
    shell.stop()
    seen.append(shell.state("a"))
    shell.finish("a")
    seen.append(shell.state("a"))
    shell.release("a")
    seen.append(shell.state("a"))
    assert seen == [S.COLLECTING, S.READY, S.RUNNING, S.STOPPING, S.FINISHING, S.DONE]
