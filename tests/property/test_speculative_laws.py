"""Speculative runs answer what a fixed debounce window answers (SPEC QUEUE-6)."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.scheduler.models import Debounce, QueuePolicy
from tests.property.typing_people import Played, Said, Work, both, stream

WINDOW_S = 1.0
PARTS = 5
"""Of the test with most examples: five times 4,000 histories in the profile ``deep``."""

LATE = 100.0
soon = st.integers(1, 15).map(lambda sixteenths: sixteenths / 16)
"""A gap within the window."""
bursts = st.lists(st.lists(soon, max_size=5), min_size=1, max_size=6)
quiet_works = st.lists(
    st.integers(17, 64).map(lambda sixteenths: Work(sixteenths / 16, LATE)), min_size=1, max_size=4
)
"""Runs that neither end nor have an effect within a window."""
times = st.integers(1, 80).map(lambda sixteenths: sixteenths / 16 + 1 / 128)
works = st.lists(st.builds(Work, times, times), min_size=1, max_size=4)
people = st.lists(
    st.builds(Said, st.integers(0, 40).map(lambda n: n / 16), st.sampled_from(["ann", "bob"])),
    min_size=1,
    max_size=12,
)


def said_in(bursts: list[list[float]]) -> list[Said]:
    """Each burst begins when all runs before it have ended."""
    return [Said(gap_s) for burst in bursts for gap_s in (30.0, *burst)]


def answers_all(played: Played) -> None:
    """Each message is answered once, in a turn in which the messages are in their order."""
    answered = sorted(chain.from_iterable(played.answers))
    assert answered == list(range(len(played.said)))
    assert all(list(turn) == sorted(turn) for turn in played.answers)
    wasted = list(chain.from_iterable(played.wasted))
    assert len(wasted) == len(set(wasted)), "a message was in two cancelled runs"


@pytest.mark.parametrize("part", range(PARTS))
@settings(max_examples=settings().max_examples)
@given(bursts=bursts, work=quiet_works)
def test_both_answer_the_same_turns(part: int, bursts: list[list[float]], work: list[Work]) -> None:
    fixed, eager = both(QueuePolicy(debounce_s=WINDOW_S), said_in(bursts), work)
    assert eager.answers == fixed.answers
    assert fixed.wasted == []
    answers_all(eager)
    for first, begun_at in eager.begun_at.items():
        assert begun_at <= fixed.begun_at[first], "a burst is answered later"


@given(bursts=bursts, work=works)
def test_an_effect_or_an_end_within_the_window_only_splits_a_turn(
    bursts: list[list[float]], work: list[Work]
) -> None:
    fixed, eager = both(QueuePolicy(debounce_s=WINDOW_S), said_in(bursts), work)
    answers_all(eager)
    assert list(chain(*eager.answers)) == list(chain(*fixed.answers))
    alone = [first for first, *more in eager.answers if not more]
    for number in alone:
        follows = number > 0 and eager.said[number].gap_s <= WINDOW_S
        restarts = sum(first < number for first, *_ in eager.wasted)
        if not follows and restarts < 3:
            assert eager.begun_at[number] == eager.said_at[number], "a message had to wait"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("follow_ups", "after_s", "at_once"),
    [(0.3, 4.0, 0.8), (0.5, 2.0, 0.5), (0.4, 0.6, 0.1), (0.8, 0.6, 0.0)],
    ids=["few follow-ups", "many", "bursts", "bursts only"],
)
def test_restarts_waste_less_than_five_percent_of_the_requests(
    follow_ups: float, after_s: float, at_once: float
) -> None:
    """``at_once``: the share of turns that still start without waiting."""
    policy = QueuePolicy(debounce_s=0.8, capacity=100, debounce=Debounce.SPECULATIVE)
    played = Played(policy, *stream(follow_ups, after_s)).play()
    turns, wasted = len(played.answers), len(played.wasted)
    assert 0 < wasted < 0.05 * (turns + wasted)
    starts = [(begun_at, played.said_at[first]) for first, begun_at in played.begun_at.items()]
    assert sum(begun_at == said_at for begun_at, said_at in starts) > at_once * turns


@pytest.mark.parametrize("concurrency", [1, 3])
@given(said=people, work=works)
def test_in_any_history_each_message_is_answered_once(
    concurrency: int, said: list[Said], work: list[Work]
) -> None:
    policy = QueuePolicy(debounce_s=WINDOW_S, concurrency=concurrency, capacity=100)
    for played in both(policy, said, work):
        answers_all(played)
        for sender in ("ann", "bob"):
            mine = [turn for turn in played.answers if said[turn[0]].sender == sender]
            if concurrency == 1:
                assert all(before < after for before, after in pairwise(mine))
