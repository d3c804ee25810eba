"""The scheduler as a library under random programs: laws that always hold.

SPEC LANE-1, LANE-4, LANE-8, QUEUE-1, QUEUE-2, QUEUE-10.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py import Lane, Mode, NotCompleted, Outcome, QueuePolicy, RunState, Scheduler
from goclaw_py.scheduler.effects import Ended
from goclaw_py.testing.loop import VirtualLoop
from tests.unit.scheduler.library_parts import Text

LANES = {"main": 2, "slow": 1, "wide": 5}
CONCURRENCY = {"a": 1, "b": 1, "c": 1, "group": 2}
AGENTS = {"main": 4, "writer": 1}


class Expected(Exception):
    """What some runs raise."""


# ---------------------------------------------------------------- what a program is made of


@dataclass(frozen=True)
class Work:
    """Sleep, and then perhaps fail or cancel oneself. ``deaf_s``: ignore a stop so long."""

    sleep_s: float | None
    then: str = "return"
    deaf_s: float = 0


@dataclass(frozen=True)
class Ask:
    """Have children, declared as awaited or not, and await them or not."""

    children: tuple[Submit, ...]
    awaited: bool
    await_them: bool


@dataclass(frozen=True)
class AwaitOther:
    """Await the run that came in so long before."""

    back: int


Body = Work | Ask | AwaitOther


@dataclass(frozen=True)
class Submit:
    session: str
    lane: str
    agent: str
    mode: Mode
    body: Body
    sender: str = ""
    timeout_s: float | None = None


@dataclass(frozen=True)
class Stop:
    session: str
    everything: bool


@dataclass(frozen=True)
class Pass:
    seconds: float


Step = Submit | Stop | Pass

short = st.sampled_from([0, 0.5, 1, 3])
works = st.builds(
    Work,
    sleep_s=st.sampled_from([None, 0, 0.5, 1, 3]),
    then=st.sampled_from(["return", "return", "fail", "cancel"]),
    deaf_s=st.sampled_from([0, 0, 0.5, 20]),
)


def submits(bodies: st.SearchStrategy[Body]) -> st.SearchStrategy[Submit]:
    return st.builds(
        Submit,
        session=st.sampled_from(list(CONCURRENCY)),
        lane=st.sampled_from(list(LANES)),
        agent=st.sampled_from(list(AGENTS)),
        mode=st.sampled_from(Mode),
        body=bodies,
        sender=st.sampled_from(["", "", "ann"]),
        timeout_s=st.sampled_from([None, None, 2]),
    )


def asks(bodies: st.SearchStrategy[Body]) -> st.SearchStrategy[Body]:
    children = st.lists(submits(bodies), min_size=1, max_size=3).map(tuple)
    return st.builds(Ask, children=children, awaited=st.booleans(), await_them=st.booleans())


bodies: st.SearchStrategy[Body] = st.one_of(
    works,
    st.builds(AwaitOther, back=st.integers(1, 4)),
    asks(st.one_of(works, asks(works), st.builds(AwaitOther, back=st.integers(1, 4)))),
)
programs = st.lists(
    st.one_of(
        submits(bodies),
        submits(bodies),
        submits(bodies),
        st.builds(Stop, session=st.sampled_from(list(CONCURRENCY)), everything=st.booleans()),
        st.builds(Pass, seconds=short),
    ),
    min_size=1,
    max_size=25,
)


# ---------------------------------------------------------------- who looks on


class Watched(Scheduler[Body, str]):
    """Counts the ends of each run."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ends: Counter[str] = Counter()

    def _end(self, run: Text, ended: Ended) -> None:
        self.ends[run.id] += 1
        super()._end(run, ended)


class Witness:
    """Plays a program and checks at each step of a run what must hold then."""

    def __init__(self) -> None:
        self.runs: list[Text] = []
        self.inside: list[Text] = []
        self.started: defaultdict[str, list[int]] = defaultdict(list)
        self.returned: set[str] = set()
        self.scheduler = Watched(
            self.work,
            [Lane(name, size) for name, size in LANES.items()],
            agents=AGENTS,
            cancel_grace_s=5,
        )

    async def play(self, program: Sequence[Step]) -> None:
        async with self.scheduler:
            for step in program:
                match step:
                    case Submit():
                        self.submit(step)
                    case Stop(session, everything):
                        stop = self.scheduler.stop_all if everything else self.scheduler.stop
                        stop(session)
                    case Pass(seconds):
                        await asyncio.sleep(seconds)
                    case _:
                        assert_never(step)
                self.check()
        await asyncio.sleep(1000)  # so long do deaf ones go on

    def submit(self, what: Submit, parent: Text | None = None, *, awaited: bool = False) -> Text:
        policy = QueuePolicy(
            mode=what.mode, capacity=4, debounce_s=0.5, concurrency=CONCURRENCY[what.session]
        )
        more: dict[str, Any] = {} if parent is None else {"parent": parent, "awaited": awaited}
        run = self.scheduler.submit(
            what.session, what.body, what.lane, agent=what.agent, policy=policy,
            sender=what.sender, run_timeout_s=what.timeout_s, **more,
        )  # fmt: skip
        self.runs.append(run)
        return run

    async def work(self, run: Text) -> str:
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        assert run.state is RunState.RUNNING
        self.inside.append(run)
        if not run.sender:  # bursts are held back, so others pass them
            self.started[run.session].append(int(run.id))
        self.check()
        try:
            await self.do(run, run.message)
        finally:
            self.check()
            self.inside.remove(run)
        self.returned.add(run.id)
        return run.id

    async def do(self, run: Text, body: Body) -> None:
        match body:
            case Work():
                await labour(body)
            case Ask(children, awaited, await_them):
                made = [self.submit(child, run, awaited=awaited) for child in children]
                for child in made if await_them else ():
                    await child
            case AwaitOther(back):
                await self.runs[-min(back, len(self.runs))]
            case _:
                assert_never(body)

    def check(self) -> None:
        """No overlap beyond concurrency; no lane beyond its size, but for one guest a slot."""
        counted = [run for run in self.inside if run.state is not RunState.ABANDONED]
        for session, count in Counter(run.session for run in counted).items():
            assert count <= CONCURRENCY[session], session
        guests = [run for run in counted if run.family and run.family.host in counted]
        slots = Counter(run.place.name for run in counted if run not in guests)
        for lane, count in slots.items():
            assert count <= LANES[lane], lane
        hosts = Counter(run.family.host.id for run in guests if run.family and run.family.host)
        assert set(hosts.values()) <= {1}

    def check_end(self) -> None:
        for run in self.runs:
            assert self.scheduler.ends[run.id] == (0 if run.into else 1), run
            assert run.outcome is not None
            if run.outcome is Outcome.COMPLETED:
                assert run.whole().id in self.returned
        for session, size in CONCURRENCY.items():
            if size == 1:
                assert self.started[session] == sorted(self.started[session]), session
        assert self.inside == []
        assert self.scheduler.runs() == ()
        assert {(lane.active, lane.waiting) for lane in self.scheduler.lanes()} == {(0, 0)}


async def labour(body: Work) -> None:
    loop = asyncio.get_running_loop()
    try:
        if body.sleep_s is not None:
            await asyncio.sleep(body.sleep_s)
    except asyncio.CancelledError:
        until = loop.time() + body.deaf_s
        while (left := until - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue
        raise
    if body.then == "fail":
        raise Expected
    if body.then == "cancel":
        raise asyncio.CancelledError


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Failures that nobody awaits are logged; here that is many."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@given(programs)
def test_the_laws_hold_under_any_program(program: list[Step]) -> None:
    async def main() -> None:
        witness = Witness()
        async with asyncio.timeout(10_000):  # nobody waits for ever
            await witness.play(program)
        witness.check_end()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def test_the_witness_sees_a_lane_that_is_too_full() -> None:
    """So that the law above can fail."""
    witness = Witness()
    witness.scheduler.add_lane(Lane("other", 9))
    done = Work(sleep_s=1)
    async with witness.scheduler:
        runs = [
            witness.submit(Submit(session, "main", "main", Mode.QUEUE, done)) for session in "abc"
        ]
        LANES["main"] = 1
        try:
            results = await asyncio.gather(*runs, return_exceptions=True)
        finally:
            LANES["main"] = 2
    assert sum(isinstance(result, AssertionError) for result in results) >= 1
    assert not any(isinstance(result, NotCompleted) for result in results)
