"""The table of transitions, and what happens when a shell breaks the rules (SPEC QUEUE-2)."""

from __future__ import annotations

import pytest

from goclaw_py.core.ids import LaneName, RunId, SessionKey
from goclaw_py.scheduler.models import LaneState, Request
from goclaw_py.scheduler.state_machine import RequestStateMachine
from goclaw_py.scheduler.states import TRANSITIONS, IllegalTransition
from goclaw_py.scheduler.views import RunState

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
