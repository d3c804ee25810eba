"""The shell of the scheduler by itself, with a host that does what a test says.

SPEC CMD-1, NODE-1, QUEUE-2, QUEUE-9, QUEUE-10, QUEUE-11.
"""

from __future__ import annotations

import asyncio
import logging

import pytest
import uvloop

from goclaw_py import Run, Scheduler
from goclaw_py.core.ids import MAIN_LANE, RunId, SessionKey
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.scheduler.dispatcher import Dispatcher, RunExited
from goclaw_py.scheduler.models import Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.views import RunState

S = SessionKey("s")


class Host:
    """Each run waits for ``gate``; ends are kept."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.stored = asyncio.Event()
        self.stored.set()
        self.fails: BaseException | None = None
        self.bug: Exception | None = None
        self.began: list[RunId] = []
        self.ended: list[Ending] = []
        self.errors: list[BaseException | None] = []

    async def work(self, run_id: RunId) -> None:
        self.began.append(run_id)
        await self.gate.wait()
        if self.fails is not None:
            raise self.fails

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        await self.stored.wait()
        self.ended.append(ended)
        self.errors.append(error)
        if self.bug is not None:
            raise self.bug

    def joined(self, request_id: RunId, into: RunId) -> None: ...

    def restarted(self, run_id: RunId, into: RunId) -> None: ...

    def offered(self, request_id: RunId, run_id: RunId) -> None: ...


def made(host: Host, *, main: int = 2) -> Dispatcher:
    return Dispatcher(RunScheduler({MAIN_LANE: main}), host)


def ask(name: str, session: SessionKey = S) -> Request:
    return Request(RunId(name), session)


async def test_a_run_that_is_cancelled_before_its_first_step_gives_its_slots_back() -> None:
    host = Host()
    dispatcher = made(host, main=1)
    dispatcher.submit(ask("a"))
    dispatcher.submit(ask("b"))
    dispatcher.stop_these([RunId("a")], Reason.STOPPED)  # the task of ``a`` has not had a step yet
    await asyncio.sleep(1)
    assert host.began == ["b"]
    assert host.ended == [Ending(RunId("a"), Outcome.CANCELLED, Reason.STOPPED)]
    host.gate.set()
    await asyncio.sleep(1)
    assert dispatcher.runs() == ()


async def test_a_stop_is_in_effect_when_the_call_returns() -> None:
    host = Host()
    dispatcher = made(host)
    dispatcher.submit(ask("a"))
    await asyncio.sleep(1)
    assert dispatcher.is_running(RunId("a"))
    dispatcher.stop_these([RunId("a")], Reason.STOPPED_ALL)
    assert not dispatcher.is_running(RunId("a"))
    await asyncio.sleep(1)
    assert not dispatcher.has_session(S)


async def test_a_run_counts_in_its_lane_until_its_end_is_stored() -> None:
    host = Host()
    host.gate.set()
    host.stored.clear()
    dispatcher = made(host)
    dispatcher.submit(ask("a"))
    await asyncio.sleep(1)
    (main,) = (lane for lane in dispatcher.lanes() if lane.name == MAIN_LANE)
    assert (main.active, main.finished) == (1, 1)
    assert [run.state for run in dispatcher.runs()] == [RunState.FINISHING]
    host.stored.set()
    await asyncio.sleep(1)
    assert dispatcher.runs() == ()


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_a_run_that_exits_or_cancels_itself_fails_alone(
    error: BaseException,
) -> None:
    host = Host()
    host.fails = error
    host.gate.set()
    dispatcher = made(host)
    dispatcher.submit(ask("a"))
    await asyncio.sleep(1)
    assert host.ended == [Ending(RunId("a"), Outcome.FAILED)]
    assert isinstance(host.errors[0], RunExited)
    assert host.errors[0].__cause__ is error


async def test_a_bug_in_the_recording_is_logged_and_holds_up_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Host()
    host.gate.set()
    host.bug = ValueError("a bug")
    dispatcher = made(host)
    dispatcher.submit(ask("a"))
    dispatcher.submit(ask("b"))
    await asyncio.sleep(1)
    assert host.began == ["a", "b"]
    assert caplog.messages == ["run_end_not_stored"] * 2


async def test_interrupt_cuts_everything_off_and_new_work_is_still_taken() -> None:
    host = Host()
    dispatcher = made(host)
    dispatcher.submit(ask("a"))
    dispatcher.submit(ask("b"))
    await asyncio.sleep(1)
    dispatcher.interrupt()
    await asyncio.sleep(1)
    assert {(end.run_id, end.outcome) for end in host.ended} == {
        ("a", Outcome.INTERRUPTED),
        ("b", Outcome.INTERRUPTED),
    }
    dispatcher.submit(ask("c"))
    await asyncio.sleep(1)
    assert host.began == ["a", "c"]
    dispatcher.interrupt()
    await asyncio.sleep(1)


async def test_the_drain_ends_when_the_last_end_is_stored() -> None:
    host = Host()
    host.stored.clear()
    host.gate.set()
    dispatcher = made(host)
    dispatcher.submit(ask("a"))
    await asyncio.sleep(1)
    draining = asyncio.create_task(dispatcher.drain(5, asyncio.Event()))
    await asyncio.sleep(60)
    assert not draining.done()
    host.stored.set()
    await asyncio.wait_for(draining, 1)
    assert (len(host.ended), dispatcher.draining) == (1, True)
    dispatcher.submit(ask("late"))
    await asyncio.sleep(1)
    assert host.ended[1:] == [Ending(RunId("late"), Outcome.REJECTED, Reason.DRAINING)]


async def test_a_run_timeout_needs_no_further_input() -> None:
    host = Host()
    dispatcher = made(host)
    dispatcher.submit(Request(RunId("a"), S, run_timeout_s=10))
    dispatcher.submit(Request(RunId("b"), SessionKey("t"), run_timeout_s=5))
    await asyncio.sleep(5.01)
    assert [end.run_id for end in host.ended] == ["b"]
    await asyncio.sleep(5)
    assert [end.run_id for end in host.ended] == ["b", "a"]
    assert {end.outcome for end in host.ended} == {Outcome.TIMED_OUT}


# ---------------------------------------------------------------------- slow waits


async def warnings_of(
    caplog: pytest.LogCaptureFixture, *, lane: int, runs: int
) -> list[logging.LogRecord]:
    """What is logged while so many wait for 60 s."""
    dispatcher = made(Host(), main=lane)
    for number in range(runs):
        dispatcher.submit(ask(f"r{number}", SessionKey(f"s{number}")))
    await asyncio.sleep(60)
    dispatcher.interrupt()
    await asyncio.sleep(1)
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_one_line_names_who_waits_and_who_is_in_the_lane(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (record,) = await warnings_of(caplog, lane=2, runs=3)
    assert record.getMessage() == "lane_wait_slow"
    facts = vars(record)
    assert facts["waited_s"] == 2.0
    assert (facts["run_id"], facts["session"], facts["lane"]) == ("r2", "s2", "main")
    assert (facts["concurrency"], facts["active"], facts["waiting"]) == (2, 2, 1)
    assert facts["occupants"] == ["r0 (s0)", "r1 (s1)"]


async def test_a_line_stays_short_however_large_the_lane_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (record,) = await warnings_of(caplog, lane=200, runs=201)
    facts = vars(record)
    assert facts["active"] == 200
    assert len(facts["occupants"]) == 10


# ---------------------------------------------------------------------- timers that are due


@pytest.mark.real_time
def test_a_timer_that_is_due_keeps_nobody_from_submitting() -> None:
    """What is due within half a millisecond is no timer for uvloop: it has no ``when``."""

    async def main() -> list[Ending]:
        host = Host()
        host.gate.set()
        dispatcher = made(host)
        dispatcher.submit(Request(RunId("a"), S, deadline_s=0.0001))
        dispatcher.submit(Request(RunId("b"), SessionKey("t"), deadline_s=60))
        async with asyncio.timeout(5):
            while len(host.ended) < 2:
                await asyncio.sleep(0)
        return host.ended

    ended = {end.run_id: end.outcome for end in uvloop.run(main())}
    assert ended.keys() == {"a", "b"}
    assert ended[RunId("b")] is Outcome.COMPLETED


@pytest.mark.real_time
def test_a_timer_that_is_due_keeps_nobody_from_submitting_to_the_library() -> None:
    async def work(run: Run[str, str]) -> str:
        return f"{run.message} done"

    async def main() -> str:
        async with Scheduler(work) as scheduler:
            scheduler.submit("ann", "hurried", deadline_s=0.0001)
            return await scheduler.submit("bob", "calm", deadline_s=60)

    assert uvloop.run(main()) == "calm done"
