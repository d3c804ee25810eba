"""``goclaw_py.core.live_buffer``: what a reader gets who is quick, and one who is slow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core import live_buffer
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.live import (
    LiveEnded,
    LiveMissed,
    LiveRun,
    LiveStarted,
    LiveText,
    LiveTool,
    RunEvent,
)
from goclaw_py.core.live_buffer import MOST_CHARS, MOST_EVENTS, PIECE_CHARS, TEXT_S, LiveBuffer
from goclaw_py.core.outcomes import Outcome, Trigger

AT = datetime(2026, 1, 2, tzinfo=UTC)


def run(name: str) -> LiveRun:
    key = SessionKey(f"agent:main:test:{name}")
    return LiveRun(RunId(name), key, AgentName("main"), Trigger.CHAT, None, key)


A, B = run("a"), run("b")


def said(text: str, of: LiveRun = A, at_s: float = 0) -> LiveText:
    return LiveText(AT + timedelta(seconds=at_s), of, text)


def tool(number: int, of: LiveRun = A) -> LiveTool:
    return LiveTool(AT + timedelta(seconds=number), of, "tool", str(number))


def taken(buffer: LiveBuffer, now: float) -> list[RunEvent | LiveMissed]:
    events = []
    while (event := buffer.take(now)) is not None:
        events.append(event)
    return events


def test_words_that_come_soon_after_each_other_are_one_piece() -> None:
    buffer = LiveBuffer()
    buffer.put(said("one "), 0)
    buffer.put(said("two", at_s=0.2), 0.2)
    assert buffer.take(0.4) is None
    assert buffer.due == TEXT_S
    assert taken(buffer, TEXT_S) == [said("one two")]
    assert buffer.due is None


def test_text_is_taken_when_its_time_has_come_though_its_run_goes_on_talking() -> None:
    buffer = LiveBuffer()
    for tenth in range(20):
        buffer.put(said(f"{tenth} "), tenth / 10)
    pieces = [event.text for event in taken(buffer, 2) if isinstance(event, LiveText)]
    assert len(pieces) == 4
    assert "".join(pieces) == "".join(f"{tenth} " for tenth in range(20))


def test_whatever_else_a_run_does_comes_after_what_it_has_said() -> None:
    buffer = LiveBuffer()
    buffer.put(said("I look"), 0)
    buffer.put(tool(1), 0)
    buffer.put(said("found"), 0)
    assert taken(buffer, 0) == [said("I look"), tool(1)]
    assert taken(buffer, 1) == [said("found")]


def test_the_text_of_one_run_delays_no_other_run() -> None:
    buffer = LiveBuffer()
    buffer.put(said("hm"), 0)
    buffer.put(tool(1, B), 0)
    assert buffer.take(0) == tool(1, B)


def test_a_long_piece_takes_in_no_more() -> None:
    buffer = LiveBuffer()
    buffer.put(said("x" * PIECE_CHARS), 0)
    buffer.put(said("y"), 0)
    assert taken(buffer, 0) == [said("x" * PIECE_CHARS)]


def test_nothing_is_no_text() -> None:
    buffer = LiveBuffer()
    buffer.put(said(""), 0)
    assert buffer.due is None


def test_what_grows_is_there_at_once_when_nothing_will_be_added() -> None:
    buffer = LiveBuffer()
    buffer.put(said("the end"), 0)
    buffer.flush()
    assert taken(buffer, 0) == [said("the end")]


def test_half_a_character_does_no_harm() -> None:
    """It could not be written as JSON."""
    buffer = LiveBuffer()
    buffer.put(said("\ud83d"), 0)
    buffer.put(said("\ude00 \ud83d"), 0)
    assert taken(buffer, 1) == [said("😀 \ufffd")]


def test_a_slow_reader_loses_the_oldest_text_first_and_is_told() -> None:
    buffer = LiveBuffer()
    buffer.put(LiveStarted(AT, A), 0)
    for number in range(MOST_CHARS // PIECE_CHARS + 3):
        buffer.put(said(f"{number}".ljust(PIECE_CHARS), at_s=number), number)
    buffer.put(LiveEnded(AT, A, Outcome.COMPLETED, None, None), 99)
    missed, started, *texts, ended = taken(buffer, 99)
    assert isinstance(missed, LiveMissed)
    assert missed.count == 3
    assert missed.at == AT + timedelta(seconds=2)
    assert isinstance(started, LiveStarted)
    assert isinstance(ended, LiveEnded)
    assert [event.text.strip() for event in texts if isinstance(event, LiveText)] == [
        str(number) for number in range(3, 3 + len(texts))
    ]
    assert buffer.take(99) is None


def test_without_text_the_oldest_events_are_lost() -> None:
    buffer = LiveBuffer()
    for number in range(MOST_EVENTS + 5):
        buffer.put(tool(number), 0)
    missed, *kept = taken(buffer, 0)
    assert missed == LiveMissed(tool(4).at, 5)
    assert kept == [tool(number) for number in range(5, MOST_EVENTS + 5)]


def test_one_piece_is_kept_however_long_it_is() -> None:
    """Whoever says everything at once is heard."""
    buffer = LiveBuffer()
    buffer.put(said("x" * MOST_CHARS * 2), 0)
    assert taken(buffer, 1) == [said("x" * MOST_CHARS * 2)]


def test_what_was_taken_takes_no_room() -> None:
    buffer = LiveBuffer()
    for number in range(10):
        buffer.put(said("\ud83d\ude00" * 1000), number)
        assert len(taken(buffer, number + TEXT_S)) == 1
    for number in range(MOST_CHARS // PIECE_CHARS):
        buffer.put(said("x" * PIECE_CHARS), 20 + number)
    assert not any(isinstance(event, LiveMissed) for event in taken(buffer, 99))
    for number in range(MOST_CHARS // PIECE_CHARS + 1):
        buffer.put(said("x" * PIECE_CHARS), 100 + number)
    assert taken(buffer, 999)[0] == LiveMissed(AT, 1)


def test_runs_without_number_that_talk_at_once_stay_within_the_limit() -> None:
    buffer = LiveBuffer()
    for number in range(MOST_EVENTS + 7):
        buffer.put(said("x", run(str(number))), 0)
    missed, *kept = taken(buffer, 1)
    assert missed == LiveMissed(AT, 7)
    assert len(kept) == MOST_EVENTS


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([A, B]), st.text("ab😀", max_size=9)),
        st.sampled_from([A, B]),
        st.floats(0, 1),
        st.none(),
    ),
    max_size=60,
)


@given(steps, st.integers(1, 8), st.integers(1, 30))
def test_each_run_is_told_in_order_and_what_lacks_is_counted(
    steps: list[tuple[LiveRun, str] | LiveRun | float | None], events: int, chars: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_buffer, "MOST_EVENTS", events)
        patch.setattr(live_buffer, "MOST_CHARS", chars)
        patch.setattr(live_buffer, "PIECE_CHARS", 5)
        put, got = _carried_out(steps)
    missed = sum(event.count for event in got if isinstance(event, LiveMissed))
    for about in (A, B):
        told = [e for e in got if not isinstance(e, LiveMissed) and e.run == about]
        tools = [e for e in told if isinstance(e, LiveTool)]
        assert tools == [e for e in put[about.id] if e in tools]
        rest = iter(_letters(put[about.id]))
        assert all(letter in rest for letter in _letters(told))
        if not missed:
            assert _letters(told) == _letters(put[about.id])
    lost_tools = sum(isinstance(e, LiveTool) for of in put.values() for e in of) - sum(
        isinstance(e, LiveTool) for e in got
    )
    assert 0 <= lost_tools <= missed


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
    steps: list[tuple[LiveRun, str] | LiveRun | float | None],
) -> tuple[dict[RunId, list[RunEvent]], list[RunEvent | LiveMissed]]:
    """Put, wait and take, then take the rest."""
    buffer, now = LiveBuffer(), 0.0
    put: dict[RunId, list[RunEvent]] = defaultdict(list)
    got: list[RunEvent | LiveMissed] = []
    for number, step in enumerate(steps):
        match step:
            case (about, text):
                event: RunEvent = said(text, about, number)
            case LiveRun():
                event = tool(number, step)
            case None:
                got += filter(None, [buffer.take(now)])
                continue
            case _:
                now += step
                continue
        put[event.run.id].append(event)
        buffer.put(event, now)
        assert len(buffer._events) + len(buffer._growing) <= live_buffer.MOST_EVENTS
    buffer.flush()
    got += taken(buffer, now)
    assert buffer._chars == 0
    return put, got
