"""The operator's view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from goclaw_py.core.errors import NoGateway, NotFound
from goclaw_py.core.ids import MAIN_LANE, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted, Usage
from goclaw_py.gateway.service import GatewayControl
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.operations.control import Control
from goclaw_py.operations.sessions.lookup import session_named
from goclaw_py.operations.sessions.operations import Sessions
from goclaw_py.records import (
    DeadLetterQuery,
    IncomingState,
    OutboxQuery,
    OutboxState,
    RunQuery,
    Store,
    Unanswered,
)
from goclaw_py.runs.agent_loop import AgentResult, Emit, ModelStep, RunRequest
from goclaw_py.scheduler import views
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.clock import START, LoopClock
from tests.support.harness import GatewayProcess, Ways, a_process, session_of, until
from tests.support.memory_store import MemoryStore
from tests.support.stores import new_run


@pytest.fixture
async def gateway() -> AsyncIterator[GatewayProcess]:
    agent = ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent, Ways(QueuePolicy())) as process:
        yield process


async def begin(process: GatewayProcess, name: str, session: SessionKey) -> None:
    """A run that is only in the database."""
    run = replace(new_run(name, started_at=process.clock.now()), session=session, target=None)
    await process.store.begin_run(replace(run, trigger=Trigger.API), node=process.node())


async def say(process: GatewayProcess, *chats: str) -> None:
    """Something for the agent to work on in each."""
    for chat in chats:
        await process.say("work", chat=chat)
    await until(lambda: len(process.dispatcher.runs()) == len(chats))


def offline(process: GatewayProcess) -> Control:
    """What is left when no gateway runs."""
    return StoreControl(process.store, process.clock)


async def test_a_run_tells_what_it_does() -> None:
    """SPEC OPS-3."""

    class Working(ScriptedAgent):
        async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
            emit(ModelStep(Usage(1, 90, 10), "small"))
            emit(TextDelta("I "))
            for call in ("1", "2"):
                emit(ToolStarted(call, "read", "{}", side_effects=False))
            emit(ToolEnded("1", "read", ok=True, result="text"))
            await asyncio.sleep(60)
            return AgentResult("done")

    async with a_process(Working(), Ways(QueuePolicy())) as process:
        await process.say("look\n at\u2028" + "this " * 1000, "next")
        await asyncio.sleep(1)
        begun, waiting = (await process.control.runs.active()).runs
        assert begun.activity is not None
        assert begun.activity.prompt.startswith("look at this this")
        assert len(begun.activity.prompt) <= 120
        first = begun.activity.first_text_at
        progress = views.RunProgress("", ("read",), "small", 100, first)
        assert replace(begun.activity, prompt="") == progress
        assert first is not None
        # Its page shows it too, while the stored row does not have it.
        assert (await process.control.runs.record(begun.id)).run.first_text_at == first
        # Of what waits the message is known, so that one of several can be dropped.
        (row,) = await process.control.deliveries.dead_letters(
            DeadLetterQuery(IncomingState.WAITING)
        )
        assert waiting.activity == views.RunProgress("next", incoming=(row.row.id,))
        await process.control.deliveries.dismiss_dead_letters(waiting.activity.incoming)
        assert [one.id for one in (await process.control.runs.active()).runs] == [begun.id]
        (dropped,) = await process.control.deliveries.dead_letters(
            DeadLetterQuery(IncomingState.DISMISSED)
        )
        assert dropped.row.message.text == "next"


async def test_stopping_from_outside_is_a_stop_in_the_chat(gateway: GatewayProcess) -> None:
    """SPEC QUEUE-8: counts and ids."""
    await say(gateway, "ann", "ann")
    first, second = (run.id for run in gateway.dispatcher.runs())
    report = await gateway.control.sessions.stop(session_of(), everything=True)
    assert report == views.StopReport(stopped=(first,), dropped=(second,))
    again = await gateway.control.sessions.stop(session_of(), everything=False)
    assert again == views.StopReport(already_stopping=True)
    await until(lambda: not gateway.dispatcher.runs())
    assert await gateway.control.sessions.stop(session_of(), everything=False) == views.StopReport()


async def test_a_run_that_is_named_is_stopped_or_nothing(gateway: GatewayProcess) -> None:
    await say(gateway, "ann", "ann")
    first, second = (run.id for run in gateway.dispatcher.runs())

    async def stop(run: RunId) -> views.StopReport:
        return await gateway.control.sessions.stop(session_of(), everything=False, run=run)

    assert await stop(RunId("ended")) == views.StopReport()
    assert await stop(second) == views.StopReport(dropped=(second,))
    assert [run.id for run in gateway.dispatcher.runs()] == [first]
    assert await stop(first) == views.StopReport(stopped=(first,))


async def test_the_request_of_a_dropped_message_does_not_wait_any_more(
    gateway: GatewayProcess,
) -> None:
    """SPEC IO-3: and the run of another one goes on."""
    await say(gateway, "ann", "ann")
    first, _ = (run.id for run in gateway.dispatcher.runs())
    deliveries = gateway.control.deliveries
    (waiting,) = await deliveries.dead_letters(DeadLetterQuery(IncomingState.WAITING))
    (begun,) = await deliveries.dead_letters(DeadLetterQuery(IncomingState.RUNNING))
    assert await deliveries.dismiss_dead_letters([waiting.row.id, begun.row.id]) == 1
    assert [run.id for run in gateway.dispatcher.runs()] == [first]
    row = (await deliveries.dead_letter(waiting.row.id)).row
    assert (row.outcome, row.reason) == (Outcome.CANCELLED, Reason.STOPPED)


async def test_reset_stops_everything_and_begins_a_fresh_history(gateway: GatewayProcess) -> None:
    await gateway.say("one")
    await asyncio.sleep(1)
    await gateway.control.sessions.reset(session_of())
    await asyncio.sleep(1)
    assert await gateway.outcomes() == [Outcome.CANCELLED]
    assert await gateway.control.sessions.history(session_of()) == []


async def test_without_a_gateway_reset_still_begins_a_fresh_history() -> None:
    async with a_process() as gateway:
        await gateway.ask("one")
        control = offline(gateway)
        assert len(await control.sessions.history(session_of())) == 2
        await control.sessions.reset(session_of())
        assert await control.sessions.history(session_of()) == []


async def test_without_a_gateway_there_is_nothing_to_see_or_stop(gateway: GatewayProcess) -> None:
    control = offline(gateway)
    for question in (
        control.lanes.status(),
        control.lanes.list(),
        control.lanes.resize(MAIN_LANE, 3),
    ):
        with pytest.raises(NoGateway, match="goclaw run"):
            await question
    with pytest.raises(NoGateway, match="nothing runs in some:session"):
        await control.sessions.stop(SessionKey("some:session"), everything=True)


async def test_the_status_is_what_the_application_sees(gateway: GatewayProcess) -> None:
    seen = views.GatewayStatus(
        *(gateway.node(), "1", 1, START, START, "embedded"), False, (), (), (),
        views.Backlog(0, 0, 0), (),
    )  # fmt: skip

    async def look() -> views.GatewayStatus:
        return seen

    control = GatewayControl(gateway.store, gateway.clock, gateway.container, look)
    assert await control.lanes.status() is seen


async def test_a_session_is_found_by_its_key_or_by_a_unique_part_of_it() -> None:
    """SPEC OPS-1."""
    async with a_process() as gateway:
        await gateway.ask("hi", chat="ann")
        await gateway.ask("hi", chat="anna")
        await gateway.ask("hi", chat="bob")
        control = offline(gateway)
        assert (await control.sessions.get(session_of("ann"))).key == session_of("ann")
        assert (await control.sessions.get("bob")).key == session_of("bob")
        assert (await control.sessions.get("telegram:bob")).key == session_of("bob")
        with pytest.raises(NotFound, match="there is no session 'carl'"):
            await control.sessions.get("carl")
        # A whole id wins over a longer one.
        assert (await control.sessions.get("ann")).key == session_of("ann")
        assert (await control.sessions.get("direct:ann")).key == session_of("ann")
        with pytest.raises(NotFound, match=r"session 'nn' is not unique: .*anna \(") as caught:
            await control.sessions.get("nn")
        assert "…" not in str(caught.value)
        with pytest.raises(NotFound, match="not unique"):
            await control.sessions.get("telegram")
        for number in range(8):
            await gateway.ask("hi", chat=f"dan{number}")
        with pytest.raises(NotFound, match=r"ann \(Ann\), .*, …; give one of these keys$"):
            await control.sessions.get("telegram")


async def test_the_name_of_an_agent_means_its_one_direct_chat() -> None:
    """SPEC OPS-1."""
    async with a_process() as gateway:
        await gateway.ask("hi", chat="ann")
        ann, bob, job = session_of("ann"), session_of("bob"), SessionKey("agent:main:cron:1")
        group = SessionKey("agent:main:telegram:group:-5")
        assert session_named([job, group, ann], "main") == ann
        assert (await offline(gateway).sessions.get("main")).key == ann
    with pytest.raises(NotFound) as refused:
        session_named([job, bob, ann], "main")
    assert str(refused.value) == f"session 'main' is not unique: {ann}, {bob}, {job}"


async def test_a_run_is_found_by_a_unique_prefix() -> None:
    """SPEC OPS-1."""
    async with a_process() as gateway:
        await gateway.ask("hi")
        for name in ("aa-1", "aa-2"):
            await begin(gateway, name, session_of())
        control = offline(gateway)
        assert (await control.runs.get("aa-1")).id == "aa-1"
        assert (await control.runs.get("0")).outcome is Outcome.COMPLETED
        with pytest.raises(NotFound, match="run 'aa' is not unique: aa-1, aa-2"):
            await control.runs.get("aa")
        with pytest.raises(NotFound, match="there is no run 'zz'; see: goclaw runs list"):
            await control.runs.get("zz")
        assert [run.id for run in await control.runs.list(RunQuery(active=True))] == [
            "aa-2",
            "aa-1",
        ]
        assert await control.runs.list(RunQuery(session=SessionKey("other"))) == []
        assert len(await control.runs.list(RunQuery(limit=1))) == 1


async def test_lists_go_to_the_database() -> None:
    async with a_process() as gateway:
        await gateway.ask("hi")
        control = offline(gateway)
        assert [session.key for session in await control.sessions.list()] == [session_of()]
        await asyncio.sleep(1)
        (row,) = await control.deliveries.outbox(OutboxQuery(state=OutboxState.SENT))
        assert await control.deliveries.outbox(OutboxQuery(state=OutboxState.FAILED)) == []
        assert await control.deliveries.retry_outbox([row.id]) == 0
        assert await control.people.list() == []


async def test_a_wrong_code_and_an_unknown_person_are_said_in_words() -> None:
    control = StoreControl(MemoryStore(), LoopClock())
    with pytest.raises(NotFound, match="no valid pairing request has the code 'ABCD'"):
        await control.people.approve("ABCD", guest=True)
    with pytest.raises(NotFound, match="nobody with the id '7' is known on telegram/default"):
        await control.people.revoke("telegram", "default", "7")


async def test_the_clock_of_a_loop_starts_at_its_instant_and_follows_the_loop() -> None:
    clock, other = LoopClock(), LoopClock()
    assert clock.now() == START
    await asyncio.sleep(90)
    assert clock.now() == other.now() == START + timedelta(seconds=90)


# ---------------------------------------------------------------------------- lanes and queues


async def test_lanes_show_who_is_in_them_and_who_waits(gateway: GatewayProcess) -> None:
    """SPEC LANE-7."""
    for chat in ("ann", "bob", "carl"):
        await gateway.say("work", chat=chat)
        await asyncio.sleep(1)
    await asyncio.sleep(2)
    seen = await gateway.control.lanes.list()
    assert seen.at == gateway.clock.now()
    main = next(use for use in seen.lanes if use.lane.name == MAIN_LANE)
    assert [run.session for run in main.inside] == [session_of("ann"), session_of("bob")]
    assert [(run.session, run.for_s) for run in main.waiting] == [(session_of("carl"), 3)]
    assert (main.lane.active, main.lane.waiting, main.lane.concurrency) == (2, 1, 2)


async def test_a_larger_lane_starts_what_waits_at_once(gateway: GatewayProcess) -> None:
    """SPEC LANE-9."""
    await say(gateway, "ann", "bob", "carl")
    done = await gateway.control.lanes.resize(MAIN_LANE, 3)
    assert (done.before, done.lane.concurrency, done.lane.active) == (2, 3, 3)
    assert [run.state for run in gateway.dispatcher.runs()] == [views.RunState.RUNNING] * 3


async def test_a_smaller_lane_cancels_nobody(gateway: GatewayProcess) -> None:
    """SPEC LANE-9."""
    await say(gateway, "ann", "bob")
    done = await gateway.control.lanes.resize(MAIN_LANE, 1)
    assert (done.before, done.lane.concurrency, done.lane.active) == (2, 1, 2)
    await asyncio.sleep(60)
    assert [run.state for run in gateway.dispatcher.runs()] == [views.RunState.RUNNING] * 2


async def test_a_lane_that_is_unknown_or_a_wrong_size_is_refused(gateway: GatewayProcess) -> None:
    with pytest.raises(NotFound, match=r"no lane 'mian'; there are: main, subagent, .*, other"):
        await gateway.control.lanes.resize(LaneName("mian"), 3)
    for size in (0, -1, views.MAX_LANE_SIZE + 1):
        with pytest.raises(ValueError, match="from 1 to"):
            await gateway.control.lanes.resize(MAIN_LANE, size)
    main = next(lane for lane in gateway.dispatcher.lanes() if lane.name == MAIN_LANE)
    assert main.concurrency == 2


async def test_active_is_all_undone_with_what_it_waits_for(gateway: GatewayProcess) -> None:
    """SPEC OPS-4."""
    await gateway.say("one", "two")
    await until(lambda: len(gateway.dispatcher.runs()) == 2)
    await asyncio.sleep(5)
    seen = await gateway.control.runs.active()
    assert seen.live
    assert [run.state for run in seen.runs] == [views.RunState.RUNNING, views.RunState.QUEUED]
    assert [run.waits_for for run in seen.runs] == [None, views.WaitsFor.SESSION]


async def test_without_a_gateway_active_is_what_has_begun(gateway: GatewayProcess) -> None:
    await gateway.say("one", "two", apart_s=0.5)
    await gateway.say("three", chat="bob")
    await asyncio.sleep(4)
    seen = await offline(gateway).runs.active()
    assert not seen.live
    first, second = seen.runs
    assert (first.session, first.state, first.waits_for) == (
        session_of(),
        views.RunState.RUNNING,
        None,
    )
    assert second.session == session_of("bob")
    assert first.for_s == pytest.approx(5, abs=0.1)


async def test_a_queue_shows_what_runs_what_waits_and_for_what(gateway: GatewayProcess) -> None:
    """SPEC OPS-4."""
    await gateway.say("one", "two", "three")
    await gateway.say("elsewhere", chat="bob")
    await asyncio.sleep(5)
    seen = await gateway.control.sessions.queue("ann")
    assert (seen.session, seen.live, seen.policy) == (session_of(), True, QueuePolicy())
    assert [run.state for run in seen.running] == [views.RunState.RUNNING]
    assert [run.waits_for for run in seen.waiting] == [views.WaitsFor.SESSION] * 2
    assert [row.message.text for row in seen.messages] == ["one", "two", "three"]
    assert [row.run_id for row in seen.messages] == [seen.running[0].id, None, None]
    assert seen.unanswered == ()


async def test_a_queue_shows_what_was_dropped_and_why() -> None:
    """SPEC OPS-4, QUEUE-5."""
    agent = ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent, Ways(QueuePolicy(capacity=1))) as gateway:
        await gateway.say("works", "too much", "waits")
        await asyncio.sleep(30)
        seen = await gateway.control.sessions.queue(session_of())
        (row,) = seen.unanswered
        assert (row.message.text, row.outcome) == ("too much", Outcome.DROPPED)
        assert row.reason is Reason.QUEUE_DROPPED
        assert row.finished_at is not None
        assert [row.message.text for row in seen.messages] == ["works", "waits"]


async def test_a_message_that_ends_while_its_queue_is_read_is_there_once(
    gateway: GatewayProcess,
) -> None:
    """Found by use: after a stop the chat showed a question twice."""

    class EndsThen:
        def __getattr__(self, name: str) -> object:
            return getattr(gateway.store, name)

        async def unanswered(
            self, session: SessionKey, *, ended: bool, limit: int
        ) -> list[Unanswered]:
            found = await gateway.store.unanswered(session, ended=ended, limit=limit)
            if not ended:
                await gateway.control.sessions.stop(session, everything=True)
                await asyncio.sleep(1)
            return found

    await gateway.say("one")
    await asyncio.sleep(1)
    seen = await Sessions(cast("Store", EndsThen()), LoopClock(START)).queue(session_of())
    assert [row.message.text for row in (*seen.messages, *seen.unanswered)] == ["one"]


async def test_without_a_gateway_a_queue_is_what_is_stored(gateway: GatewayProcess) -> None:
    await gateway.say("one", "two")
    await asyncio.sleep(5)
    seen = await offline(gateway).sessions.queue("ann")
    assert (seen.live, seen.waiting, seen.policy) == (False, (), None)
    assert [run.state for run in seen.running] == [views.RunState.RUNNING]
    assert [row.message.text for row in seen.messages] == ["one", "two"]
    with pytest.raises(NotFound, match="there is no session 'carl'"):
        await offline(gateway).sessions.queue("carl")


async def test_a_gateway_shows_a_run_of_another_process(gateway: GatewayProcess) -> None:
    """SPEC NODE-1: the database is shared."""
    await begin(gateway, "elsewhere", SessionKey("agent:main:api:x"))
    seen = await gateway.control.sessions.queue("api:x")
    assert seen.live
    assert [run.id for run in seen.running] == ["elsewhere"]


async def test_an_idle_queue_is_empty(gateway: GatewayProcess) -> None:
    await gateway.say("one")
    await asyncio.sleep(1)
    await gateway.control.sessions.stop(session_of(), everything=True)
    await asyncio.sleep(1)
    seen = await gateway.control.sessions.queue(session_of())
    assert (seen.running, seen.waiting, seen.messages, seen.policy) == ((), (), (), None)
    assert [row.reason for row in seen.unanswered] == [Reason.STOPPED_ALL]


async def test_a_session_that_is_not_stored_is_found_too(gateway: GatewayProcess) -> None:
    """The first run of a session that is no chat's enters it when it begins."""
    await say(gateway, "ann", "bob", "carl")
    del gateway.database.sessions[session_of("carl")]
    for part in ("carl", session_of("carl")):
        seen = await gateway.control.sessions.queue(part)
        assert seen.session == session_of("carl")
        assert [run.waits_for for run in seen.waiting] == [views.WaitsFor.LANE]
    with pytest.raises(NotFound, match="not unique"):
        await gateway.control.sessions.queue("telegram")
    with pytest.raises(NotFound, match="there is no session 'dora'"):
        await gateway.control.sessions.queue("dora")
