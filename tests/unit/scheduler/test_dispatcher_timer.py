"""Timers of the schedulers, which may be set to a moment that has come already."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

from goclaw_py.model.ids import MAIN_LANE, RunId, SessionKey
from goclaw_py.model.outcomes import Ending, Outcome
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.embedded.run import Run
from goclaw_py.scheduler.embedded.scheduler import Scheduler as LibraryScheduler
from goclaw_py.scheduler.models import Request
from goclaw_py.scheduler.scheduler import RunScheduler

pytestmark = pytest.mark.real_time


class Host:
    """Runs that end at once."""

    def __init__(self) -> None:
        self.ended: dict[RunId, Outcome] = {}
        self.all_ended = asyncio.Event()

    async def work(self, run_id: RunId) -> None:
        await asyncio.sleep(0)

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        self.ended[ended.run_id] = ended.outcome
        if len(self.ended) == 2:
            self.all_ended.set()

    def joined(self, request_id: RunId, into: RunId) -> None:
        raise AssertionError("nothing joins here")

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        raise AssertionError("nothing is offered here")


@pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop does not exist here")
def test_a_timer_that_is_due_keeps_nobody_from_submitting() -> None:
    """What is due within half a millisecond is no timer for uvloop: it has no ``when``."""
    import uvloop

    async def main() -> dict[RunId, Outcome]:
        host = Host()
        dispatcher = Dispatcher(RunScheduler({MAIN_LANE: 2}), host)
        dispatcher.submit(Request(RunId("a"), SessionKey("s"), deadline_s=0.0001))
        dispatcher.submit(Request(RunId("b"), SessionKey("t"), deadline_s=60))
        async with asyncio.timeout(5):
            await host.all_ended.wait()
        return host.ended

    ended = uvloop.run(main())
    assert ended.keys() == {"a", "b"}
    assert ended[RunId("b")] is Outcome.COMPLETED


@pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop does not exist here")
def test_the_same_holds_for_the_library() -> None:
    import uvloop

    async def work(run: Run[str, str]) -> str:
        return f"{run.message} done"

    async def main() -> str:
        async with LibraryScheduler(work) as scheduler:
            scheduler.submit("ann", "hurried", deadline_s=0.0001)
            return await scheduler.submit("bob", "calm", deadline_s=60)

    assert uvloop.run(main()) == "calm done"
