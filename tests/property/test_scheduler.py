"""Laws of the scheduler, over random histories. The laws themselves stand in ``books``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from goclaw_py.model.ids import AgentName, LaneName, RunId, SessionKey
from goclaw_py.model.outcomes import Outcome
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy, Request
from tests.property.books import Books

GRACE_S = 3.0
CAPACITY = 4
LANES = [LaneName("main"), LaneName("cron"), LaneName("subagent")]
LANE_NAMES = [*LANES, LaneName("unknown")]
# A session's key names its agent; an explicit key may bring in another one.
AGENTS = [AgentName("main"), AgentName("busy"), AgentName("free")]
LIMITS = {AgentName("main"): 2, AgentName("busy"): 1}
SESSIONS = {
    SessionKey("direct"): 1,
    SessionKey("other"): 1,
    SessionKey("group"): 3,
    SessionKey("crowd"): 2,
}
SENDERS = ["", "ann", "bob"]
MODES = [Mode.QUEUE, Mode.QUEUE, Mode.QUEUE, Mode.FOLLOWUP, Mode.INTERRUPT]
WINDOWS_S = [0.0, 0.0, 0.1, 0.8]
TIME_LIMITS_S = [None, None, None, 0.0, 0.5, 2.0, 10.0]
DELAYS_S = [0.1, 0.3, 0.7, 0.8, 1.0, 3.0]
OUTCOMES = [Outcome.COMPLETED, Outcome.FAILED]


def books(sizes: Mapping[LaneName, int], *, limited: bool) -> Books:
    agents = LIMITS if limited else {}
    return Books(sizes, agents, SESSIONS, capacity=CAPACITY, grace_s=GRACE_S)


def completed(draft: Request, number: int, parent: RunId | None) -> Request:
    """Make a draft a request that may be: its concurrency is that of its session."""
    return replace(
        draft,
        id=RunId(f"r{number}"),
        policy=replace(draft.policy, concurrency=SESSIONS[draft.session]),
        cut=draft.cut and bool(draft.sender),
        parent=parent,
    )


sessions = st.sampled_from(list(SESSIONS))
drafts = st.builds(
    Request,
    id=st.just(RunId("")),
    session=sessions,
    lane=st.sampled_from(LANE_NAMES),
    agent=st.sampled_from(AGENTS),
    sender=st.sampled_from(SENDERS),
    policy=st.builds(
        QueuePolicy,
        mode=st.sampled_from(MODES),
        capacity=st.integers(1, CAPACITY),
        drop=st.sampled_from(Drop),
        debounce_s=st.sampled_from(WINDOWS_S),
    ),
    cut=st.booleans(),
    deadline_s=st.sampled_from(TIME_LIMITS_S),
    run_timeout_s=st.sampled_from(TIME_LIMITS_S),
)


class Histories(RuleBasedStateMachine):
    """Short histories, which hypothesis makes smaller when one breaks a law."""

    @initialize(
        sizes=st.tuples(*(st.integers(1, 3) for _ in LANES)),
        limited=st.booleans(),
        requests=st.lists(drafts, min_size=3, max_size=12),
        data=st.data(),
    )
    def begin(
        self, sizes: tuple[int, ...], limited: bool, requests: list[Request], data: st.DataObject
    ) -> None:
        self.books = books(dict(zip(LANES, sizes, strict=True)), limited=limited)
        self.submit(requests, data)

    @rule(requests=st.lists(drafts, min_size=1, max_size=3), data=st.data())
    def submit(self, requests: list[Request], data: st.DataObject) -> None:
        for draft in requests:
            parent = data.draw(st.sampled_from([None, *self.books.working()]))
            self.books.submit(completed(draft, self.books.count, parent))
            self.books.check()

    @precondition(lambda self: bool(self.books.working()))
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def task_ends(self, data: st.DataObject, outcome: Outcome) -> None:
        self.books.task_ends(data.draw(st.sampled_from(self.books.working())), outcome)

    @precondition(lambda self: bool(self.books.unstored()))
    @rule(data=st.data())
    def outcome_is_stored(self, data: st.DataObject) -> None:
        self.books.outcome_is_stored(data.draw(st.sampled_from(self.books.unstored())))

    @rule(session=sessions)
    def stop(self, session: SessionKey) -> None:
        self.books.stop(session)

    @rule(session=sessions)
    def stop_all(self, session: SessionKey) -> None:
        self.books.stop_all(session)

    @rule(seconds=st.sampled_from(DELAYS_S))
    def time_passes(self, seconds: float) -> None:
        self.books.time_passes(seconds)

    @rule()
    def shell_is_late(self) -> None:
        self.books.shell_is_late(5)

    @precondition(lambda self: self.books.count > 12)
    @rule()
    def drain(self) -> None:
        self.books.scheduler.drain()

    @precondition(lambda self: self.books.scheduler.draining)
    @rule()
    def release_waiting(self) -> None:
        self.books.release_waiting()

    @invariant()
    def laws_hold(self) -> None:
        self.books.check()

    def teardown(self) -> None:
        if hasattr(self, "books"):
            self.books.all_ends()


# The profile says how many histories.
Histories.TestCase.settings = settings(stateful_step_count=40)
test_the_scheduler_keeps_its_laws_in_every_short_history = Histories.TestCase


# A smaller seed is no simpler history, so there is nothing to shrink.
@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32 - 1), limited=st.booleans())
def test_the_scheduler_keeps_its_laws_in_long_busy_histories(seed: int, limited: bool) -> None:
    """Hundreds of steps in a row reach states that few short histories come by."""
    random = Random(seed)
    kept = books({lane: random.randint(1, 3) for lane in LANES}, limited=limited)
    for _ in range(300):
        something_happens(kept, random)
        kept.check()
    kept.all_ends()


def something_happens(kept: Books, random: Random) -> None:
    session = random.choice(list(SESSIONS))
    working, unstored = kept.working(), kept.unstored()
    happening = random.choices(
        ["submit", "task ends", "store", "time", "stop", "stop all", "late"],
        [30, 20 if working else 0, 40 if unstored else 0, 20, 3, 1, 1],
    )[0]
    match happening:
        case "submit":
            parent = random.choice([None, *working])
            kept.submit(completed(draft_at_random(random), kept.count, parent))
        case "task ends":
            kept.task_ends(random.choice(working), random.choice(OUTCOMES))
        case "store":
            kept.outcome_is_stored(random.choice(unstored))
        case "time":
            kept.time_passes(random.choice(DELAYS_S))
        case "stop":
            kept.stop(session)
        case "stop all":
            kept.stop_all(session)
        case _:
            kept.shell_is_late(5)


def draft_at_random(random: Random) -> Request:
    return Request(
        id=RunId(""),
        session=random.choice(list(SESSIONS)),
        lane=random.choice(LANE_NAMES),
        agent=random.choice(AGENTS),
        sender=random.choice(SENDERS),
        policy=QueuePolicy(
            mode=random.choice(MODES),
            capacity=random.randint(1, CAPACITY),
            drop=random.choice(list(Drop)),
            debounce_s=random.choice(WINDOWS_S),
        ),
        cut=random.random() < 0.2,
        deadline_s=random.choice(TIME_LIMITS_S),
        run_timeout_s=random.choice(TIME_LIMITS_S),
    )
