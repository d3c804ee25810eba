"""Laws of the plan of a stop (SPEC CMD-1, CMD-2, CMD-6).

That it cancels of requests what the scheduler's own stops cancel is compared in ``pair``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.chat.stop.plan import Burst, Plan, Stop, StopOrigin, Work, WorkKind, plan
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.scheduler.views import RunState

SESSION = SessionKey("agent:main:test:group:1")
NOW = datetime(2026, 11, 29, tzinfo=UTC)
LOCAL = [kind for kind in WorkKind if kind < WorkKind.ELSEWHERE]
PEOPLE = ["ann", "ben", "cat"]
REQUESTS = (WorkKind.SESSION, WorkKind.CHILDREN, WorkKind.SUBAGENTS)


def a_message(number: int, sender: str) -> InboundMessage:
    chat = Target("test", "default", "1")
    return InboundMessage(f"m{number}", chat, PeerKind.GROUP, Sender(sender), "x", NOW)


@st.composite
def facts(draw: st.DrawFn) -> list[Work]:
    """Work in all kinds that a process knows; children belong to an earlier run."""
    works: list[Work] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from(LOCAL), max_size=12))):
        sender = draw(st.sampled_from(PEOPLE))
        parents = [one for one in works if one.kind in REQUESTS]
        work = Work(kind, f"w{number}", frozenset({sender}), frozenset({f"w{number}"}))
        if kind in (WorkKind.MAILBOX, WorkKind.UNCONFIRMED):
            flags = [draw(st.booleans()) for _ in range(3)]
            burst = Burst(sender, *flags)
            work = replace(work, burst=burst, messages=(a_message(number, sender),))
        elif kind in REQUESTS:
            state = draw(st.sampled_from([RunState.RUNNING, RunState.QUEUED, RunState.STOPPING]))
            parent = draw(st.sampled_from(parents)) if parents and kind > WorkKind.SESSION else None
            work = replace(
                work,
                people=work.people | (parent.people if parent else frozenset()),
                ancestors=(parent.id, *parent.ancestors) if parent else (),
                state=state,
                is_live=state is not RunState.STOPPING,
                is_stopping=state is RunState.STOPPING and kind is WorkKind.SESSION,
                messages=(a_message(number, sender),) if kind is WorkKind.SESSION else (),
            )
        works.append(work)
    return works


senders = st.sampled_from([None, *PEOPLE])
stops = st.builds(
    Stop,
    st.just(SESSION),
    st.booleans(),
    st.one_of(st.none(), st.sampled_from([RunId(f"w{number}") for number in range(12)])),
    senders,
    st.sampled_from(list(StopOrigin)),
).map(lambda stop: replace(stop, run=None) if stop.everything else stop)


@given(facts(), stops)
def test_nothing_of_others_is_cancelled_without_the_right(works: list[Work], stop: Stop) -> None:
    """SPEC CMD-6."""
    made = plan(works, stop)
    if stop.by is not None:
        assert all(stop.by in work.people for work in made.cancel)
        assert all(stop.by not in work.people for work in made.spared)
    else:
        assert made.spared == ()


@given(facts(), senders)
def test_a_stop_cancels_the_first_of_its_sender_and_nothing_behind(
    works: list[Work], by: str | None
) -> None:
    """SPEC CMD-2, QUEUE-8."""
    made = plan(works, Stop(SESSION, everything=False, by=by))
    order = sorted(works, key=lambda work: work.kind)
    skipped = (WorkKind.CHILDREN, WorkKind.UNCONFIRMED)
    mine = [work for work in order if work.belongs_to(by) and work.kind not in skipped]
    ahead = [
        work
        for work in mine
        if work.is_live or (work.is_stopping and work.kind is WorkKind.SESSION)
    ]
    if not ahead or not ahead[0].is_live:
        assert made.cancel == ()
        return
    assert made.cancel[0] is ahead[0]
    if ahead[0].kind is WorkKind.MAILBOX:
        assert {work.kind for work in made.cancel} == {WorkKind.MAILBOX}
    else:
        assert all(ahead[0].id in work.ancestors for work in made.cancel[1:])


@given(facts(), stops)
def test_children_are_cancelled_with_their_parents(works: list[Work], stop: Stop) -> None:
    """SPEC LANE-8, CMD-4."""
    made = plan(works, stop)
    roots = {work.id for work in made.cancel if work.kind in REQUESTS}
    children = [work for work in works if roots.intersection(work.ancestors) and work.is_live]
    assert [work.id for work in children if work not in made.cancel] == []


@given(facts(), senders, st.sampled_from(list(StopOrigin)))
def test_a_stop_of_everything_cancels_all_that_it_may_and_spares_the_rest(
    works: list[Work], by: str | None, origin: StopOrigin
) -> None:
    """SPEC CMD-1, CMD-6."""
    mine = plan(works, Stop(SESSION, everything=True, by=by, origin=origin))
    anybodys = plan(works, Stop(SESSION, everything=True, origin=origin))
    unnoticed = {work.id for work in works if work.kind is WorkKind.UNCONFIRMED}
    assert {w.id for w in mine.cancel} - unnoticed | {w.id for w in mine.spared} == {
        work.id for work in anybodys.cancel
    } - unnoticed


@given(facts(), stops)
def test_a_named_run_is_cancelled_or_nothing(works: list[Work], stop: Stop) -> None:
    """SPEC CMD-2: the data of a button can be forged."""
    made = plan(works, stop)
    if stop.run is not None and made.cancel:
        assert made.cancel[0].id == stop.run
        assert all(stop.run in work.ancestors for work in made.cancel[1:])


@given(facts(), stops)
def test_a_plan_is_executed_once(works: list[Work], stop: Stop) -> None:
    """SPEC CMD-1: what it has cancelled, the next one does not cancel again."""
    made = plan(works, stop)
    again = plan(executed(works, made), stop)
    assert {work.id for work in made.cancel}.isdisjoint(work.id for work in again.cancel)
    if stop.everything:
        assert again.cancel == ()


def executed(works: list[Work], made: Plan) -> list[Work]:
    """What is there after a plan: runs are stopping, everything else is gone."""
    left: list[Work] = []
    for work in works:
        if work not in made.cancel:
            left.append(work)
        elif work.state is RunState.RUNNING:
            is_own = work.kind is WorkKind.SESSION
            stopping = RunState.STOPPING
            left.append(replace(work, is_live=False, is_stopping=is_own, state=stopping))
    return left


@given(facts(), st.sampled_from(PEOPLE))
def test_an_administrator_found_later_stops_what_was_spared(works: list[Work], by: str) -> None:
    """SPEC CMD-6: a /stop that found nothing of its sender cancels what everybody's would have."""
    first = plan(works, Stop(SESSION, everything=False, by=by))
    if first.cancel or first.already_stopping:
        assert first.spared == () or first.already_stopping
        return
    anybodys = plan(works, Stop(SESSION, everything=False))
    spared = {work.id for work in first.spared}
    if anybodys.cancel:
        assert anybodys.cancel[0].id in spared


def test_places_of_each_origin() -> None:
    """SPEC CMD-2: from outside no jobs of the chat, and a new session drops no answer."""
    visited = {
        (origin, everything): [
            kind.name for kind in WorkKind if Stop(SESSION, everything, origin=origin).visits(kind)
        ]
        for origin in StopOrigin
        for everything in (False, True)
    }
    own = ["SESSION", "CHILDREN", "PROVIDER"]
    assert visited == {
        (StopOrigin.CHAT, False): [
            kind.name for kind in WorkKind if kind is not WorkKind.UNCONFIRMED
        ],
        (StopOrigin.CHAT, True): [kind.name for kind in WorkKind],
        (StopOrigin.OUTSIDE, False): [*own, "APPROVALS", "ANSWERS"],
        (StopOrigin.OUTSIDE, True): [*own, "SUBAGENTS", "APPROVALS", "ANSWERS"],
        (StopOrigin.NEW_SESSION, False): [*own, "APPROVALS"],
        (StopOrigin.NEW_SESSION, True): [*own, "SUBAGENTS", "APPROVALS"],
    }
