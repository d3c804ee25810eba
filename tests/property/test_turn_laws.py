"""Whatever happens to turns, they follow their table, and the registry agrees with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.chat.inbound.turns import Turns
from goclaw_py.core.ids import MAIN_AGENT, RunId, SessionKey
from goclaw_py.core.outcomes import Ending, Outcome
from goclaw_py.records import InboxKind, InboxRow
from goclaw_py.runs.turn import Turn
from goclaw_py.runs.turn_state import (
    DONE,
    DROPPED,
    HELD,
    MERGED,
    QUEUED,
    RELEASED,
    RUNNING,
    STORED,
    TRANSITIONS,
    TurnState,
)
from goclaw_py.scheduler.states import IllegalTransition
from tests.support.harness import message, session_of

ANN, BOB = session_of("ann"), session_of("bob")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OVER = (DONE, MERGED, RELEASED)
ENDED = Ending(RunId("any"), Outcome.DROPPED)


class Story:
    """Turns of two sessions with a row each, and every event that there is."""

    def __init__(self) -> None:
        self.registry = Turns()
        self.turns: list[Turn] = []
        self.rows = 100
        for number in range(4):
            self.new(ANN if number % 2 else BOB, number)

    def new(self, session: str, number: int, rows: list[InboxRow] | None = None) -> Turn:
        key = ANN if session == ANN else BOB
        rows = [self.row(key, number)] if rows is None else rows
        turn = Turn(RunId(f"r{len(self.turns)}"), key, MAIN_AGENT, rows)
        self.turns.append(turn)
        return turn

    def row(self, session: SessionKey, number: int) -> InboxRow:
        return InboxRow(number, message("hi"), session, MAIN_AGENT, InboxKind.MESSAGE, 0, NOW)

    def undone(self, turn: Turn) -> None:
        self.registry.replace(turn)
        self.registry.hold(self.new(turn.session, 0, turn.rows))

    def merge(self, turn: Turn) -> None:
        live = [one for one in self.turns if one.state is QUEUED and one is not turn]
        if live:
            self.registry.merge(turn, live[0])

    def restart(self, turn: Turn) -> None:
        later = [one for one in self.turns if one.state is QUEUED and one.session == turn.session]
        if turn.state is RUNNING and later:
            self.registry.restart(turn, later[0])

    def append(self, turn: Turn) -> None:
        if turn.state in (QUEUED, HELD):
            self.rows += 1
            self.registry.append(self.row(turn.session, self.rows), turn)

    def shrink(self, turn: Turn) -> None:
        if turn.state is RUNNING:
            self.registry.shrink(turn, {turn.rows[0].id} if len(turn.rows) > 1 else set())

    def expire_node(self, _: Turn) -> None:
        """Nothing is left to the former node, and what still ends of it changes nothing."""
        self.registry.release_all()
        assert self.registry.rows() == set()
        for turn in [turn for turn in self.registry.by_run.values() if turn.state is RELEASED]:
            assert self.registry.end(turn.id).state is RELEASED
            self.registry.leave(turn)

    def events(self) -> dict[str, Callable[[Turn], object]]:
        registry = self.registry
        return {
            "queue": registry.queue,
            "start": lambda turn: registry.start(turn.id),
            "end": lambda turn: registry.end(turn.id),
            "leave": registry.leave,
            "close": registry.close,
            "hold": registry.hold,
            "expire": registry.expire,
            "undo": registry.undo,
            "stop": registry.stop,
            "drop": lambda turn: registry.drop(turn, ENDED),
            "merge": self.merge,
            "replace": self.undone,
            "restart": self.restart,
            "append": self.append,
            "shrink": self.shrink,
            "release": lambda turn: registry.release([turn]),
            "drain": lambda _: registry.release_held(),
            "expired": self.expire_node,
        }

    def check(self) -> None:
        """Compare the registry's indexes with the states of all turns."""
        registry = self.registry
        held = [turn for turn in self.turns if turn.state is HELD]
        assert sorted(registry.held(MAIN_AGENT), key=id) == sorted(held, key=id)
        for session in (ANN, BOB):
            dropped = {
                row.id
                for turn in self.turns
                if turn.state is DROPPED and turn.session == session
                for row in turn.rows
            }
            assert {one.row for one in registry.dropped(session)} == dropped
            assert registry.has_held(session) == any(turn.session == session for turn in held)
        for row_id in registry.rows():
            turn = registry.of_row(row_id)
            assert turn is not None
            assert turn.state not in OVER
            assert any(row.id == row_id for row in turn.rows)
        assert all(turn.state is not STORED for turn in registry.by_run.values())


NAMES = sorted(Story().events())


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 7)), min_size=10, max_size=60))
def test_random_events_never_leave_the_table(events: list[tuple[str, int]]) -> None:
    story = Story()
    for name, number in events:
        turn = story.turns[number % len(story.turns)]
        before = {one.id: one.state for one in story.turns}
        try:
            story.events()[name](turn)
        except (IllegalTransition, KeyError):
            assert {one.id: one.state for one in story.turns} == before
        for one in story.turns:
            was = before.get(one.id, STORED)
            assert one.state is was or one.state in TRANSITIONS[was]
        story.check()


def test_every_state_is_reached_from_a_new_turn_and_can_end() -> None:
    reached: set[TurnState] = set()
    left = [STORED]
    while left:
        if (state := left.pop()) not in reached:
            reached.add(state)
            left += TRANSITIONS[state]
    assert reached == set(TurnState)
    assert {state for state in TurnState if not TRANSITIONS[state]} == set(OVER)


def test_a_turn_that_is_done_does_not_run_again() -> None:
    story = Story()
    turn, registry = story.turns[0], story.registry
    registry.queue(turn)
    registry.start(turn.id)
    registry.end(turn.id)
    registry.leave(turn)
    with pytest.raises(IllegalTransition, match="cannot become"):
        registry.queue(turn)
    assert registry.rows() == set()
