"""``goclaw_py.runs.events.buffer``: what is kept of the events of runs, and what goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.runs.events import buffer as live_ring
from goclaw_py.runs.events.buffer import MOST_CHARS, MOST_EVENTS, PIECE_CHARS, TEXT_S, EventBuffer
from goclaw_py.runs.events.live import LiveEnded, LiveRun, LiveStarted, LiveText, LiveTool, RunEvent

AT = datetime(2026, 1, 2, tzinfo=UTC)


def run(name: str) -> LiveRun:
    key = SessionKey(f"agent:main:test:{name}")
    return LiveRun(RunId(name), key, AgentName("main"), Trigger.CHAT, None, key)


A, B = run("a"), run("b")


def said(text: str, of: LiveRun = A, at_s: float = 0) -> LiveText:
    return LiveText(AT + timedelta(seconds=at_s), of, text)


def tool(number: int, of: LiveRun = A) -> LiveTool:
    return LiveTool(AT + timedelta(seconds=number), of, "tool", str(number))


class Ring(EventBuffer):
    """Remembers what it has lost."""

    def __init__(self, *events: RunEvent) -> None:
        self.gone: list[int] = []
        super().__init__("x", lambda number, _: self.gone.append(number))
        for event in events:
            self.add(event, 0)

    @property
    def kept(self) -> list[RunEvent]:
        found = map(self.get, range(1, self.last + 1))
        return [event for event in found if event is not None]

    def settled(self, now: float) -> list[RunEvent]:
        self.settle(now)
        return self.kept

    def flushed(self) -> list[RunEvent]:
        self.flush()
        return self.kept


def test_words_that_come_soon_after_each_other_are_one_piece() -> None:
    ring = Ring(said("one "))
    ring.add(said("two", at_s=0.2), 0.2)
    assert ring.settled(0.4) == []
    assert ring.due == TEXT_S
    assert ring.settled(TEXT_S) == [said("one two")]
    assert ring.due is None


def test_text_is_told_when_its_time_has_come_though_its_run_goes_on_talking() -> None:
    ring = Ring()
    for tenth in range(20):
        ring.add(said(f"{tenth} "), tenth / 10)
    pieces = [event.text for event in ring.settled(2) if isinstance(event, LiveText)]
    assert len(pieces) == 4
    assert "".join(pieces) == "".join(f"{tenth} " for tenth in range(20))


def test_whatever_else_a_run_does_comes_after_what_it_has_said() -> None:
    ring = Ring(said("I look"), tool(1), said("found"))
    assert ring.settled(0) == [said("I look"), tool(1)]
    assert ring.settled(1) == [said("I look"), tool(1), said("found")]


def test_what_is_there_at_once() -> None:
    assert Ring(said("hm"), tool(1, B)).kept == [tool(1, B)], "a text delays no other run"
    long = said("x" * PIECE_CHARS)
    assert Ring(long, said("y")).kept == [long], "a long piece takes in no more"
    assert Ring(said("")).due is None
    assert Ring(said("the end")).flushed() == [said("the end")], "nothing will be added"


def test_half_a_character_does_no_harm() -> None:
    """It could not be written as JSON."""
    assert Ring(said("\ud83d"), said("\ude00 \ud83d")).settled(1) == [said("😀 \ufffd")]


def test_the_oldest_text_goes_before_anything_else() -> None:
    ring = Ring(LiveStarted(AT, A))
    for number in range(MOST_CHARS // PIECE_CHARS + 3):
        ring.add(said(f"{number}".ljust(PIECE_CHARS), at_s=number), number)
    ring.add(LiveEnded(AT, A, Outcome.COMPLETED, None, None), 999)
    started, *texts, ended = ring.kept
    assert isinstance(started, LiveStarted)
    assert isinstance(ended, LiveEnded)
    lost = len(ring.gone)
    assert ring.gone == [2, 3] + [4] * (lost == 3)
    numbers = [int(event.text) for event in texts if isinstance(event, LiveText)]
    assert numbers == list(range(lost, lost + len(texts)))
    assert ring.has_gap_after(1) == lost
    assert ring.has_gap_after(ring.gone[-1]) == 0


def test_without_text_the_oldest_events_go() -> None:
    """Not the text that comes: what a run says is kept however much has happened before."""
    ring = Ring(*map(tool, range(MOST_EVENTS + 5)))
    assert ring.gone == [1, 2, 3, 4, 5]
    assert ring.kept == [tool(number) for number in range(5, MOST_EVENTS + 5)]
    ring.add(said("heard"), 0)
    assert ring.flushed()[-1] == said("heard")
    assert ring.gone == [1, 2, 3, 4, 5, 6]


def test_of_what_is_old_text_goes_first() -> None:
    ring = Ring(tool(0), said("old"), *map(tool, range(1, MOST_EVENTS)))
    assert ring.gone == [2]
    assert ring.kept == [tool(number) for number in range(MOST_EVENTS)]


def test_one_piece_is_kept_however_long_it_is() -> None:
    """Whoever says everything at once is heard."""
    long = said("x" * MOST_CHARS * 2)
    assert Ring(long).settled(1) == [long]


def test_ids_are_those_of_the_numbers() -> None:
    assert [event.id for event in Ring(tool(1), said("x")).flushed()] == ["x-1", "x-2"]


def test_whoever_knows_the_last_number_before_all_was_forgotten_has_a_gap() -> None:
    ring = Ring(tool(1), said("grows"))
    ring.forget()
    assert (ring.last, ring.kept, ring.due) == (2, [], None)
    ring.add(tool(2), 0)
    assert ring.get(3) == tool(2)


runs = st.sampled_from([A, B])
steps = st.lists(st.tuples(runs, st.text("ab😀", max_size=9)) | runs | st.floats(0, 1), max_size=60)


@given(steps, st.integers(1, 8), st.integers(1, 30))
def test_each_run_is_told_in_order_and_what_lacks_is_counted(
    steps: list[tuple[LiveRun, str] | LiveRun | float], events: int, chars: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_ring, "MOST_EVENTS", events)
        patch.setattr(live_ring, "MOST_CHARS", chars)
        patch.setattr(live_ring, "PIECE_CHARS", 5)
        ring, put = _carried_out(steps)
    for about in (A, B):
        told = [e for e in ring.kept if e.run == about]
        rest = iter(_letters(put[about.id]))
        assert all(letter in rest for letter in _letters(told))
        if not ring.gone:
            assert _letters(told) == _letters(put[about.id])
    assert len(ring.kept) + len(ring.gone) == ring.last
    for number in range(ring.last + 1):
        assert ring.has_gap_after(number) == sum(one > number for one in ring.gone)


def _letters(events: Sequence[RunEvent]) -> list[str]:
    """What a run said and did, as if it had spoken letter by letter."""
    letters: list[str] = []
    for event in events:
        match event:
            case LiveText(text=text):
                letters += text
            case LiveTool(call_id=call_id):
                letters.append(f"tool {call_id}")
    return letters


def _carried_out(
    steps: list[tuple[LiveRun, str] | LiveRun | float],
) -> tuple[Ring, dict[RunId, list[RunEvent]]]:
    """Put and wait, then complete the rest."""
    ring, now = Ring(), 0.0
    put: dict[RunId, list[RunEvent]] = defaultdict(list)
    for number, step in enumerate(steps):
        match step:
            case (about, text):
                event: RunEvent = said(text, about, number)
            case LiveRun():
                event = tool(number, step)
            case _:
                now += step
                ring.settle(now)
                continue
        put[event.run.id].append(event)
        ring.add(event, now)
        assert not ring.last or live_ring.MOST_EVENTS == 1 or ring.get(ring.last) is not None
        assert len(ring._events) <= live_ring.MOST_EVENTS
    ring.flush()
    assert ring._chars == sum(len(e.text) for e in ring.kept if isinstance(e, LiveText))
    return ring, put
