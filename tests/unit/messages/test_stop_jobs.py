"""``/stop`` and ``/stopall`` of jobs that tell their results in a chat (SPEC CMD-2, CMD-1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.chats.access_control import AccessControl
from goclaw_py.chats.context_usage import ContextUsage
from goclaw_py.chats.session_settings import SessionSettings
from goclaw_py.jobs.execution_models import OccurrenceStatus
from goclaw_py.jobs.models import Prompt
from goclaw_py.jobs.schedule import At
from goclaw_py.messages.cancellation import CancelResult, RunCanceller
from goclaw_py.messages.mailbox import Mailboxes
from goclaw_py.messages.provider_outage import ProviderOutageBuffer
from goclaw_py.messages.stop_rights import StopRights
from goclaw_py.model.chat_commands import stop_data
from goclaw_py.model.ids import CRON_LANE, MAIN_LANE, LaneName, NodeId, RunId, SessionKey
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Ending, Outcome, Reason
from goclaw_py.model.run_events import TextDelta
from goclaw_py.ports.jobs import JobDraft, Requester
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import StopReport
from goclaw_py.store.memory import MemoryStore
from goclaw_py.testing.agents import Block, Emitting, Ignore, ScriptedAgent
from goclaw_py.testing.clock import LoopClock
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

HERE = NodeId("here")
ANN = Target("telegram", "default", "ann")
BOB = Target("telegram", "default", "bob")
SESSION = session_of("ann")
A, B, C = RunId("a"), RunId("b"), RunId("c")


class Endless:
    """A host whose runs end when they are cancelled, unless they are stubborn."""

    def __init__(self) -> None:
        self.stubborn: set[RunId] = set()
        self.ended: list[Ending] = []

    async def work(self, run_id: RunId) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if run_id in self.stubborn:
                await asyncio.Event().wait()
            raise

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        self.ended.append(ended)

    def joined(self, request_id: RunId, into: RunId) -> None:
        raise AssertionError

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        raise AssertionError


class Scene:
    """A stopper over a real dispatcher; ``notifications`` are the runs of jobs by chat."""

    def __init__(self, cron_lane: int = 3) -> None:
        self.host = Endless()
        lanes = {MAIN_LANE: 3, CRON_LANE: cron_lane}
        self.dispatcher = dispatcher = Dispatcher(RunScheduler(lanes), self.host)
        self.notifications: dict[Target, Sequence[RunId]] = {}
        store, clock = MemoryStore(), LoopClock()
        outages = ProviderOutageBuffer(
            store, clock, lambda: HERE, 60.0, lambda _: None, lambda *_: None
        )
        self.canceller = RunCanceller(store, clock, lambda: HERE, dispatcher, lambda _: [], outages)
        rights = StopRights(SessionSettings({}, ContextUsage({})), AccessControl(store, clock), {})
        self.canceller.connect(self, rights, Mailboxes())

    def delivering_to(self, target: Target, creator: str | None = None) -> list[RunId]:
        return list(self.notifications[target]) if creator is None else []

    def stop_run(self, run_id: RunId) -> StopResult:
        return self.dispatcher.stop_one(run_id)

    async def stop_waiting(
        self,
        target: Target,
        *,
        everything: bool,
        run: RunId | None = None,
        creator: str | None = None,
    ) -> int:
        return 0

    async def begin(self, run: RunId, session: str = "", lane: LaneName = CRON_LANE) -> None:
        self.dispatcher.submit(Request(run, SessionKey(session or f"job {run}"), lane=lane))
        await asyncio.sleep(0)

    def stop(
        self, *jobs: RunId, everything: bool = False, run: RunId | None = None
    ) -> CancelResult:
        """Stop in Ann's chat, where these jobs tell their results."""
        self.notifications[ANN] = jobs
        stopped = self.canceller.stop(SESSION, everything=everything, run=run)
        return self.canceller.stop_jobs(ANN, stopped, everything=everything, run=run)


async def test_the_oldest_of_several_jobs_is_stopped_alone() -> None:
    scene = Scene()
    for run in (A, B, C):
        await scene.begin(run)
    assert scene.stop(B, A).jobs == (B,)
    await until(lambda: len(scene.host.ended) == 1)
    assert scene.host.ended == [Ending(B, Outcome.CANCELLED, Reason.STOPPED)]
    assert scene.stop(A).jobs == (A,)
    assert scene.stop().nothing
    assert scene.dispatcher.is_running(C)


async def test_the_chats_own_run_goes_first_and_the_jobs_go_on() -> None:
    """Also while it is stopping: somebody impatient means the same run."""
    scene = Scene()
    scene.host.stubborn = {A}
    await scene.begin(A, SESSION, MAIN_LANE)
    await scene.begin(B)
    stopped = scene.stop(B)
    assert (stopped.report.stopped, stopped.jobs) == ((A,), ())
    await asyncio.sleep(0)
    again = scene.stop(B)
    assert (again.report, again.jobs) == (StopReport(already_stopping=True), ())
    assert scene.dispatcher.is_running(B)


async def test_everything_takes_all_jobs_besides() -> None:
    scene = Scene(cron_lane=1)
    await scene.begin(A, SESSION, MAIN_LANE)
    await scene.begin(B)
    await scene.begin(C)  # waits for its lane
    stopped = scene.stop(B, C, everything=True)
    assert (stopped.report.stopped, stopped.jobs) == ((A,), (B, C))
    await until(lambda: len(scene.host.ended) == 3)


async def test_a_job_in_the_chats_own_conversation_is_counted_once() -> None:
    """SPEC CRON-14: session = main."""
    scene = Scene()
    await scene.begin(A, SESSION)
    stopped = scene.stop(A, everything=True)
    assert (stopped.report.stopped, stopped.jobs) == ((A,), ())


async def test_a_button_means_its_run_and_no_other() -> None:
    scene = Scene()
    await scene.begin(A)
    await scene.begin(B)
    assert scene.stop(A, run=B).nothing, "it tells its result elsewhere"
    assert scene.stop(A, B, run=B).jobs == (B,)
    assert scene.dispatcher.is_running(A)


async def test_a_job_that_is_stopping_is_not_stopped_again_but_the_next_one_is() -> None:
    scene = Scene()
    scene.host.stubborn = {A}
    await scene.begin(A)
    scene.stop(A)
    await asyncio.sleep(0)
    again = scene.stop(A)
    assert (again.jobs, again.report.already_stopping) == ((), True)
    await scene.begin(B)
    assert scene.stop(A, B).jobs == (B,)


@asynccontextmanager
async def jobs_of(
    *targets: Target, agent: ScriptedAgent | None = None
) -> AsyncIterator[tuple[GatewayProcess, list[RunId]]]:
    """A job for each of these chats has begun, all in the same second."""
    endless = ScriptedAgent(otherwise=lambda _: Emitting((TextDelta("so far"),), Block()))
    async with a_process(agent or endless, Ways(QueuePolicy(), cron_lane=3)) as gateway:
        service = gateway.container.job_module.service
        at = At(service.now() + timedelta(seconds=5))
        for target in targets:
            await service.create(JobDraft(at, Prompt("report"), target=target), Requester(None))
        await gateway.scripted.until_active(len(targets))
        yield gateway, [request.run_id for request in gateway.scripted.requests]


async def test_stop_takes_a_job_that_tells_its_result_here() -> None:
    """SPEC CRON-12."""
    async with jobs_of(ANN) as (gateway, _):
        assert await gateway.ask("/stop") == "Stopped 1 job."
        await until(lambda: not gateway.dispatcher.runs())
        (logged,) = await gateway.store.log_of()
        assert logged.status is OccurrenceStatus.CANCELLED
        assert await gateway.ask("/stop") == "Nothing was running."


async def test_stopall_says_how_many_tasks_and_jobs_it_has_stopped() -> None:
    async with jobs_of(ANN, ANN, BOB) as (gateway, _):
        await gateway.say("work", "waits")
        await gateway.scripted.until_active(4)
        answer = await gateway.ask("/stopall")
        assert answer == "Stopped 1 task and 2 jobs, and dropped 1 waiting message."
        assert len(gateway.scripted.active) == 1, "Bob's goes on"


async def test_what_was_said_just_before_goes_first() -> None:
    """SPEC CMD-1: a stop covers the messages before it; no job is meant then."""
    async with jobs_of(ANN) as (gateway, _):
        await gateway.gateway.accept([message("work"), message("/stop")])
        await until(lambda: gateway.channel.texts() == ["Dropped 1 waiting message."])
        assert len(gateway.scripted.active) == 1
        assert await gateway.ask("/stop") == "Stopped 1 job."


async def test_nobody_stops_the_jobs_of_another_chat() -> None:
    """SPEC SEC-3: not even by a button that is made up."""
    async with jobs_of(BOB) as (gateway, (run,)):
        pressed = replace(message("StopResult"), press=stop_data(run))
        await gateway.gateway.accept([pressed])
        await until(lambda: gateway.channel.texts() == ["Nothing was running."])
        assert await gateway.ask("/stopall") == "Nothing was running."
        assert len(gateway.scripted.active) == 1


async def test_a_job_that_ignores_its_stop_is_stopping() -> None:
    async with jobs_of(ANN, agent=ScriptedAgent(otherwise=lambda _: Ignore(60))) as (gateway, _):
        assert await gateway.ask("/stop") == "Stopped 1 job."
        assert await gateway.ask("/stop") == "It is already being stopped."


@pytest.mark.parametrize("text", ["/stop", "/stopall"])
async def test_a_stop_that_was_committed_before_it_could_act_takes_jobs_too(text: str) -> None:
    """SPEC CMD-1: an earlier process may have seen it."""
    async with jobs_of(ANN) as (gateway, _):
        await gateway.gateway.accept([message(text, redelivered=True)])
        await until(lambda: gateway.channel.texts() == ["Stopped 1 job."])
