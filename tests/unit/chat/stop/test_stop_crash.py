"""Stops of what dies meanwhile, and of jobs that tell results here (SPEC CMD-1 to CMD-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.chat.inbound.drop_notices import DropNotices
from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.inbound.provider_outage import ProviderOutageBuffer
from goclaw_py.chat.inbound.turns import Turns
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.stop.database import DatabaseStops
from goclaw_py.chat.stop.local import LocalStops, Stopped
from goclaw_py.chat.stop.plan import Stop
from goclaw_py.core.chat_commands import stop_data
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import (
    CRON_LANE,
    MAIN_LANE,
    LaneName,
    NodeId,
    OccurrenceId,
    RunId,
    SessionKey,
)
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.core.run_events import TextDelta
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.records.bound import bind
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, StoppableJob
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import Mode, QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.state_machine import StopResult
from goclaw_py.scheduler.views import RunState, StopReport
from goclaw_py.testing.agents import Block, Emitting, Ignore, ScriptedAgent
from goclaw_py.testing.clock import LoopClock
from tests.support.drafting import DraftingChannel
from tests.support.harness import (
    GatewayProcess,
    Ways,
    a_process,
    message,
    session_of,
    until,
    working,
)
from tests.support.memory_store import MemoryDatabase, MemoryStore

ONE_BY_ONE = Ways(direct=QueuePolicy(), cancel_grace_s=30.0)
BURIED_S = 20.0


def stubborn() -> ScriptedAgent:
    """An agent whose runs take long to end after they were cancelled."""
    return ScriptedAgent(otherwise=lambda _: Emitting((TextDelta("so far"),), Ignore(for_s=20)))


def blocked() -> ScriptedAgent:
    """An agent whose runs say something and go on for ever."""
    return ScriptedAgent(otherwise=lambda _: Emitting((TextDelta("so far"),), Block()))


Way = Callable[[GatewayProcess], Awaitable[object]]


async def _stop(process: GatewayProcess) -> None:
    await process.say("/stop")


@asynccontextmanager
async def after_crash(
    agent: ScriptedAgent, database: MemoryDatabase, channel: DraftingChannel
) -> AsyncIterator[tuple[GatewayProcess, DraftingChannel]]:
    """The process that comes after the one that has shown its runs in this channel."""
    await asyncio.sleep(BURIED_S)
    after = DraftingChannel()
    after.drafted, after.sent = channel.drafted, channel.sent
    async with a_process(agent, ONE_BY_ONE, database=database, channels=(after,)) as second:
        yield second, after


async def _stop_all(process: GatewayProcess) -> None:
    await process.say("/stopall")


async def _stop_redelivered(process: GatewayProcess) -> None:
    await process.gateway.accept([message("/stop", redelivered=True)])


async def _stop_as_operator(process: GatewayProcess) -> None:
    await process.control.sessions.stop(session_of(), everything=False)


async def _begin_anew(process: GatewayProcess) -> None:
    await process.say("/new")


@pytest.mark.parametrize(
    ("way", "again"),
    [
        (_stop, ["second"]),
        (_stop_redelivered, ["second"]),
        (_stop_as_operator, ["second"]),
        (_stop_all, []),
        (_begin_anew, []),
    ],
)
async def test_a_crash_before_the_end_brings_nothing_back(way: Way, again: list[str]) -> None:
    database, agent, channel = MemoryDatabase(), stubborn(), DraftingChannel()
    async with a_process(agent, ONE_BY_ONE, database=database, channels=(channel,)) as first:
        await first.say("first", "second", apart_s=2)
        await way(first)
        await asyncio.sleep(1)
        assert len(agent.active) == 1  # it has not ended
        first.kill()
    async with after_crash(ScriptedAgent(), database, channel) as (second, after):
        await until(lambda: all(run.end for run in database.runs.values()))
        await until(lambda: not database.pending and not database.unsent)
        assert second.scripted.prompts == again
        runs = [run for run in await second.store.runs() if run.outcome is Outcome.CANCELLED]
        assert runs[0].reason in (Reason.STOPPED, Reason.STOPPED_ALL)
        # What people have seen of the answer is closed.
        assert texts.interrupted_draft(Outcome.CANCELLED) in after.visible()
        assert "so far" not in after.visible()
        assert await second.store.drafts() == []


async def test_a_message_that_was_being_committed_stays_stopped_too() -> None:
    """The process dies when both are stored, and before anything has ended the message."""
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(), ONE_BY_ONE, database=database) as first:
        first.store.slow_before_s.update(accept=2.0, settle=30.0)
        working = asyncio.create_task(first.say("work"))
        await asyncio.sleep(0.5)
        stopping = asyncio.create_task(first.say("/stop"))
        await asyncio.sleep(2.5)
        first.kill()
        for call in (working, stopping):
            call.cancel()
    await asyncio.sleep(BURIED_S)
    async with a_process(ways=ONE_BY_ONE, database=database) as second:
        await until(lambda: not database.pending)
        assert (second.scripted.prompts, await second.outcomes()) == ([], [])


@pytest.mark.parametrize("redelivered", [True, False])
@pytest.mark.parametrize("text", ["/stopall", "/new"])
async def test_a_crash_brings_nothing_back_that_newer_messages_had_ended_before(
    text: str, *, redelivered: bool
) -> None:
    """A run that is being interrupted, and messages that wait for the notice of their drop."""
    ways = Ways(direct=QueuePolicy(mode=Mode.INTERRUPT), cancel_grace_s=30.0)
    database, channel = MemoryDatabase(), DraftingChannel()
    async with a_process(stubborn(), ways, database=database, channels=(channel,)) as first:
        await first.say("first", "second", "third", "fourth", apart_s=0.1)
        await first.gateway.accept([message(text, redelivered=redelivered)])
        first.kill()
    async with after_crash(ScriptedAgent(), database, channel) as (second, after):
        await until(lambda: not database.pending and not database.unsent)
        assert second.scripted.prompts == []
        notice = "A newer message replaced 2 waiting messages: “second”, “third”"
        assert notice in after.texts()


async def test_what_another_node_has_stored_before_an_answered_stop_does_not_begin() -> None:
    """It comes here behind the answer, and before the stop is stored (SPEC NODE-1)."""
    database = MemoryDatabase()
    async with (
        a_process(ways=ONE_BY_ONE, database=database) as process,
        a_process(ways=ONE_BY_ONE, database=database) as other,
    ):
        await process.say("first")
        await until(lambda: process.scripted.prompts == ["first"])
        process.store.broken = {"claim_pending", "accept"}
        work = message("work")
        stop = replace(message("/stopall"), sent_at=work.sent_at + timedelta(seconds=1))
        await other.gateway.accept([work])
        await asyncio.sleep(1)
        with pytest.raises(StoreUnavailable):
            await process.gateway.accept([stop])
        await asyncio.sleep(1)
        process.store.broken = {"accept"}
        await until(lambda: not database.pending)
        assert [one.scripted.prompts for one in (process, other)] == [["first"], []]


async def test_a_stop_whose_commit_failed_stores_what_it_stopped_when_it_comes_again() -> None:
    async with working(agent=stubborn(), ways=ONE_BY_ONE) as gateway:
        stop = message("/stop")
        gateway.store.errors["accept"] = StoreUnavailable("away")
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([stop])
        assert gateway.pending == ["work"]
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        assert gateway.pending == []
        assert len(gateway.scripted.active) == 1


async def test_a_stop_that_comes_again_while_it_is_committed_stops_one_run() -> None:
    """The first delivery does not act, for example because its session was not here yet."""
    agent = blocked()
    async with a_process(agent, ONE_BY_ONE) as process:
        await process.say("one")
        await process.say("two")
        await until(lambda: agent.prompts == ["one"])
        process.store.slow_before_s["accept"] = 5
        stop = message("/stop", redelivered=True)
        first = asyncio.create_task(process.gateway.accept([stop]))
        await asyncio.sleep(2)
        second = asyncio.create_task(process.gateway.accept([replace(stop, redelivered=False)]))
        await first
        assert "/stop" not in process.pending
        await second
        await asyncio.sleep(10)
        assert (len(agent.cancelled), process.pending) == (1, ["two"])


async def test_what_a_stop_has_met_ends_in_the_database_no_earlier_than_the_stop() -> None:
    """SPEC NODE-1: if this node dies in between, the stop meets the same again, nothing newer."""
    async with working(agent=blocked(), ways=ONE_BY_ONE) as process:
        process.store.slow_before_s["accept"] = 5.0
        stop = asyncio.create_task(process.gateway.accept([message("/stop")]))
        await asyncio.sleep(4)
        assert not process.scripted.active
        assert process.pending == ["work"]
        await stop
        await until(lambda: process.pending == [])


async def test_an_operator_hears_of_a_stop_although_the_database_is_away() -> None:
    async with working(agent=stubborn(), ways=ONE_BY_ONE) as gateway:
        gateway.store.errors["settle"] = StoreUnavailable("away")
        report = await gateway.control.sessions.stop(session_of(), everything=False)
        assert len(report.stopped) == 1
        await until(lambda: not gateway.pending)
        assert len(gateway.scripted.active) == 1  # a look has stored it, long before the run's end


@pytest.mark.parametrize("way", [_stop_redelivered, _begin_anew])
async def test_what_a_stop_could_not_store_is_stored_when_it_is_tried_again(way: Way) -> None:
    async with working(agent=stubborn(), ways=ONE_BY_ONE) as gateway:
        gateway.store.errors["settle"] = StoreUnavailable("away")
        await way(gateway)
        await until(lambda: not gateway.pending)
        assert len(gateway.scripted.active) == 1
        assert gateway.database.inbox[1].outcome is Outcome.CANCELLED


async def test_a_message_that_is_retried_is_not_stopped_by_the_same_stop_again() -> None:
    agent = ScriptedAgent(Emitting((TextDelta("so far"),), Block()))
    async with working(agent=agent, ways=ONE_BY_ONE) as gateway:
        stop = message("/stop")
        await gateway.gateway.accept([stop])
        await asyncio.sleep(5)
        assert await gateway.store.retry_dead_letters([1], now=gateway.clock.now()) == 1
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        await until(lambda: not gateway.pending)
        assert agent.prompts == ["work", "work"]
        assert gateway.database.inbox[1].outcome is Outcome.COMPLETED


async def test_a_message_that_was_stopped_in_its_own_batch_can_be_retried() -> None:
    async with a_process(ways=ONE_BY_ONE) as gateway:
        await gateway.gateway.accept([message("work"), message("/stop")])
        assert gateway.scripted.prompts == []
        assert await gateway.store.retry_dead_letters([1], now=gateway.clock.now()) == 1
        await until(lambda: not gateway.pending)
        assert gateway.scripted.prompts == ["work"]


@pytest.mark.parametrize("slow", ["slow_after_s", "slow_before_s"])
@pytest.mark.parametrize("way", [_stop, _stop_all, _stop_as_operator])
async def test_a_stop_while_the_next_run_takes_a_draft_over_closes_it(way: Way, slow: str) -> None:
    """SPEC CMD-3: the run never hears of the draft."""
    database, channel = MemoryDatabase(), DraftingChannel()
    async with a_process(blocked(), ONE_BY_ONE, database=database, channels=(channel,)) as first:
        await first.say("hello", apart_s=5)
        first.kill()
    async with after_crash(blocked(), database, channel) as (second, after):
        getattr(second.store, slow)["begin_run"] = 2.0
        await until(lambda: second.store.calls["begin_run"] == 1)
        await asyncio.sleep(0.5)
        await way(second)
        await asyncio.sleep(60)
        assert "so far" not in after.visible()
        assert database.drafts == {}


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

    def restarted(self, run_id: RunId, into: RunId) -> None:
        raise AssertionError

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        raise AssertionError


class StopMarks(MemoryStore):
    """A database that also lists which runs and occurrences were marked as stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    async def mark_stopped(self, runs: Collection[str]) -> None:
        self.found |= set(runs)
        await super().mark_stopped(runs)


class Scene:
    """A stopper over a real dispatcher; ``notifications`` are the runs of jobs by chat."""

    def __init__(self, cron_lane: int = 3) -> None:
        self.host = Endless()
        lanes = {MAIN_LANE: 3, CRON_LANE: cron_lane}
        self.dispatcher = dispatcher = Dispatcher(RunScheduler(lanes), self.host)
        self.notifications: dict[Target, Sequence[RunId]] = {}
        self.subagents: list[RunId] = []
        self.asked_for: list[RunId | None] = []
        """The runs that were named when unclaimed occurrences were stopped."""
        self.marks = StopMarks()
        store, clock = bind(self.marks, lambda: HERE), LoopClock()
        turns = Turns()
        notices = DropNotices(store, clock, turns)
        outages = ProviderOutageBuffer(store, clock, 60.0, lambda _: None, notices)
        boxes = Mailboxes(turns)
        database = DatabaseStops(store, clock, boxes, self, lambda _: ())
        contexts = ContextUsage({})
        self.stops = LocalStops(dispatcher, turns, outages, self, database, contexts)

    def in_background(self, session: SessionKey) -> list[RunId]:
        return list(self.subagents)

    def tasks(self, session: SessionKey) -> dict[RunId, str]:
        return {}

    def silence(self, session: SessionKey, by: str | None) -> list[RunId]:
        return []

    def stoppable(self, target: Target) -> list[StoppableJob]:
        stopping = (RunState.STOPPING, RunState.ABANDONED)
        return [
            StoppableJob(
                run, OccurrenceId(f"{run} due"), "", run, was_stopped=stopped, is_stopping=stopped
            )
            for run in self.notifications.get(target, ())
            for stopped in (self.dispatcher.state(run) in stopping,)
        ]

    def stop_run(self, run_id: RunId) -> StopResult:
        return self.dispatcher.stop_one(run_id)

    async def stop_waiting(
        self,
        where: Target | SessionKey,
        *,
        everything: bool,
        run: RunId | None = None,
        creator: str | None = None,
        reached: Collection[NodeId] = (),
    ) -> int:
        self.asked_for.append(run)
        return 0

    async def begin(
        self, run: RunId, session: str = "", lane: LaneName = CRON_LANE, sender: str = ""
    ) -> None:
        key = SessionKey(session or f"job {run}")
        self.dispatcher.submit(Request(run, key, lane=lane, sender=sender))
        await asyncio.sleep(0)

    def stop(self, *jobs: RunId, everything: bool = False, run: RunId | None = None) -> Stopped:
        """Stop in Ann's chat, where these jobs tell their results."""
        self.notifications[ANN] = jobs
        stopped = self.stops.stop(Stop(SESSION, everything, run))
        return self.stops.stop_background(ANN, stopped)


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


async def test_a_job_that_waits_in_the_session_of_the_chat_is_marked_with_its_occurrence() -> None:
    """SPEC CMD-4: its run is not stored yet, so a crash would begin the occurrence again."""
    scene = Scene(cron_lane=1)
    await scene.begin(A)
    await scene.begin(B, SESSION)  # waits for its lane
    stopped = scene.stop(B)
    assert stopped.report.stopped == (B,)
    await scene.stops.store(stopped)
    assert "b due" in scene.marks.found


async def test_everything_takes_all_jobs_besides() -> None:
    scene = Scene(cron_lane=1)
    await scene.begin(A, SESSION, MAIN_LANE)
    await scene.begin(B)
    await scene.begin(C)  # waits for its lane
    stopped = scene.stop(B, C, everything=True)
    assert (stopped.report.stopped, stopped.jobs) == ((A,), (B, C))
    await until(lambda: len(scene.host.ended) == 3)


async def test_a_subagent_that_starts_after_the_stop_is_not_stopped() -> None:
    """Also if the stop comes to jobs only later, after a commit or a question about rights."""
    scene = Scene()
    scene.notifications[ANN] = []
    for subagent in (A, B):
        await scene.begin(subagent)
        scene.subagents.append(subagent)
    stopped = scene.stops.stop(Stop(SESSION, everything=True))
    await scene.begin(C)
    scene.subagents.append(C)
    stopped = scene.stops.stop_background(ANN, stopped)
    assert stopped.report.stopped == (A, B)
    assert scene.dispatcher.is_running(C)


async def test_a_stop_that_found_something_of_its_sender_spares_nothing_for_a_second_one() -> None:
    """SPEC CMD-6: one /stop stops one thing, also if its sender turns out to be an admin."""
    scene = Scene()
    scene.notifications[ANN] = []
    await scene.begin(A, SESSION, MAIN_LANE, sender="ben")
    await scene.begin(B, sender="ann")
    scene.subagents.append(B)
    stopped = scene.stops.stop(Stop(SESSION, everything=False, by="ann"))
    assert [work.id for work in stopped.spared] == [A]
    stopped = scene.stops.stop_background(ANN, stopped)
    assert (stopped.report.stopped, stopped.spared) == ((B,), ())
    assert scene.dispatcher.is_running(A)


async def test_a_stop_that_names_a_run_by_a_reply_asks_for_no_other_job() -> None:
    """SPEC CMD-2: also if that run has just ended."""
    scene = Scene()
    stop = Stop(SESSION, everything=False, run=A)
    assert scene.stops.stop(stop).nothing
    await scene.stops.database.stop_unclaimed(ANN, stop, ())
    assert scene.asked_for == [A]


@pytest.mark.parametrize("everything", [True, False])
async def test_a_background_subagent_that_waits_is_a_task(*, everything: bool) -> None:
    """SPEC CMD-1: as it is while it runs, and when its parent has ended."""
    scene = Scene(cron_lane=1)
    await scene.begin(A, SESSION, MAIN_LANE)
    await scene.begin(B)
    scene.dispatcher.submit(Request(C, SessionKey("subagent"), lane=CRON_LANE, parent=A))
    scene.subagents.append(C)
    stopped = scene.stop(everything=everything)
    assert stopped.report == StopReport(stopped=(A, C))


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
        at = At(service.clock.now() + timedelta(seconds=5))
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


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("commands", [("/stop",), ("/stopall",), ("/stop", "/stopall")])
async def test_a_job_in_the_session_of_the_chat_is_one_task(
    commands: tuple[str, ...], *, waits: bool
) -> None:
    """SPEC CRON-14: session = main."""
    agent = ScriptedAgent(otherwise=lambda _: Ignore(3))
    async with a_process(agent, Ways(QueuePolicy(), cron_lane=1)) as gateway:
        service, by = gateway.container.job_module.service, Requester(None)
        soon, later = (At(service.clock.now() + timedelta(seconds=after)) for after in (5, 6))
        if waits:  # for its lane
            await service.create(JobDraft(soon, Prompt("other"), target=BOB), by)
        draft = JobDraft(later, Prompt("report"), target=ANN, policy={"session": "main"})
        await service.create(draft, by)
        await asyncio.sleep(7)
        assert [run.session for run in gateway.dispatcher.runs()][-1] == SESSION
        answers = [await gateway.ask(command) for command in commands]
        again = "Nothing was running." if waits else "It is already being stopped."
        assert answers == ["Stopped.", again][: len(commands)]


async def test_stopall_as_a_reply_stops_more_than_the_task_that_it_replies_to() -> None:
    """SPEC CMD-2: only ``/stop`` means a run."""
    async with jobs_of(ANN) as (gateway, _):
        work = message("work")
        await gateway.gateway.accept([work])
        await gateway.scripted.until_active(2)
        await gateway.gateway.accept([replace(message("/stopall"), reply_to=work.message_id)])
        await until(lambda: gateway.channel.texts() == ["Stopped 1 task and 1 job."])


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


@pytest.mark.parametrize("text", ["/stop", "/stopall"])
async def test_a_stop_that_was_committed_before_it_could_act_takes_jobs_too(text: str) -> None:
    """SPEC CMD-1: an earlier process may have seen it."""
    async with jobs_of(ANN) as (gateway, _):
        await gateway.gateway.accept([message(text, redelivered=True)])
        await until(lambda: gateway.channel.texts() == ["Stopped 1 job."])


async def test_a_job_that_ignores_its_stop_is_stopping() -> None:
    """SPEC CMD-1."""
    async with jobs_of(ANN, agent=ScriptedAgent(otherwise=lambda _: Ignore(60))) as (gateway, _):
        assert await gateway.ask("/stop") == "Stopped 1 job."
        assert await gateway.ask("/stop") == "It is already being stopped."
