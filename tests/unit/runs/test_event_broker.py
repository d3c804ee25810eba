"""What operators are told of runs while they work, in a whole gateway (SPEC OPS-1)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import pytest

from goclaw_py.core.errors import NoGateway, NotFound
from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, RunId
from goclaw_py.core.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted, Usage
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.records import NewRun
from goclaw_py.runs.agent_loop import Emit, ModelStep, RunRequest
from goclaw_py.runs.events.broker import KEPT_S, RunEventBroker
from goclaw_py.runs.events.buffer import MOST_CHARS, MOST_EVENTS, PIECE_CHARS, TEXT_S
from goclaw_py.runs.events.live import (
    LiveEnded,
    LiveEvent,
    LiveJoined,
    LiveMissed,
    LiveNow,
    LiveRequested,
    LiveStarted,
    LiveText,
    LiveTool,
    LiveUsage,
    RunEvent,
)
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Do, Emitting, Ignore, Say, ScriptedAgent, Step, Stream
from goclaw_py.testing.clock import START, LoopClock
from tests.support.harness import GatewayProcess, Ways, a_process, here, session_of, until
from tests.support.memory_store import MemoryDatabase

E = TypeVar("E")
AT_ONCE = Ways(QueuePolicy())
ANN, BOB = session_of("ann"), session_of("bob")


class Reader:
    """Follows while it is entered; ``events`` grows as the loop turns."""

    def __init__(self, gateway: GatewayProcess, session: str | None = None) -> None:
        self._follow = gateway.control.follow(session)
        self.events: list[LiveEvent] = []

    async def __aenter__(self) -> Reader:
        self.events.append(await anext(self._follow))
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._follow.aclose()

    async def _read(self) -> None:
        async for event in self._follow:
            self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    @property
    def ends(self) -> list[tuple[Outcome, Reason | None]]:
        return [(e.outcome, e.reason) for e in self.events if isinstance(e, LiveEnded)]

    async def until_ended(self, runs: int = 1) -> None:
        await until(lambda: len(self.ends) >= runs)


def of_kind(kind: type[E], events: Sequence[LiveEvent]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def texts(events: Sequence[LiveEvent]) -> str:
    return "".join(event.text for event in of_kind(LiveText, events))


def by_prompt(**steps: Step) -> ScriptedAgent:
    """An agent that does this for a prompt that begins with that word, and else echoes."""

    def choose(request: RunRequest) -> Step:
        word = request.prompt.split()[0].strip("[").lower()
        return steps.get(word, Say(f"re: {request.prompt}"))

    return ScriptedAgent(otherwise=choose)


async def test_a_run_is_followed_from_the_question_to_its_end() -> None:
    used = Usage(1, 60, 10)
    work = Emitting(
        (
            ToolStarted("c1", "read_file", '{"path": "secret"}'),
            ToolEnded("c1", "read_file", ok=True, result="secret"),
            ModelStep(used, "model-1"),
        ),
        Say("found", after_s=3),
    )
    async with a_process(ScriptedAgent(work)) as gateway, Reader(gateway) as reader:
        await gateway.ask("look")
        await reader.until_ended()
        (stored,) = await gateway.store.runs()
    now, asked, started, called, back, usage, text, ended = reader.events
    assert now == LiveNow(START, None, ())
    assert isinstance(asked, LiveRequested)
    run = asked.run
    assert (run.id, run.session, run.agent) == (stored.id, ANN, MAIN_AGENT)
    assert (run.trigger, run.parent, run.payer) == (Trigger.CHAT, None, ANN)
    at = stored.started_at
    assert started == LiveStarted(at, run)
    assert called == LiveTool(at, run, "read_file", "c1")
    assert back == LiveTool(at, run, "read_file", "c1", ok=True)
    assert usage == LiveUsage(at, run, used, "model-1")
    assert isinstance(text, LiveText)
    assert (text.text, (text.at - at).total_seconds()) == ("found", 3)
    assert isinstance(ended, LiveEnded)
    assert (ended.outcome, ended.reason, ended.usage) == (stored.outcome, None, stored.usage)
    for private in ("secret", "look"):
        assert private not in repr(reader.events)


async def test_words_are_gathered_and_shown_while_the_agent_talks() -> None:
    words = tuple(f"word {number} " for number in range(100))
    agent = ScriptedAgent(Stream(words, every_s=0.1))
    async with a_process(agent) as gateway, Reader(gateway) as reader:
        await gateway.ask("talk")
        await reader.until_ended()
    assert texts(reader.events) == "".join(words)
    assert 10 / TEXT_S / 2 < reader.kinds.count("text") <= 10 / TEXT_S


async def test_a_text_is_seen_when_its_run_falls_silent() -> None:
    step = Emitting((TextDelta("well"),), Block())
    async with a_process(ScriptedAgent(step)) as gateway, Reader(gateway) as reader:
        await gateway.say("talk")
        await until(lambda: "text" in reader.kinds)
        seen_at = gateway.clock.now()
        (text,) = of_kind(LiveText, reader.events)
        assert TEXT_S <= (seen_at - text.at).total_seconds() < TEXT_S + 0.1
        assert "ended" not in reader.kinds


async def test_messages_of_a_burst_join_the_first() -> None:
    async with a_process() as gateway, Reader(gateway) as reader:
        await gateway.say("one", "two")
        await reader.until_ended()
    assert reader.kinds[1:] == ["asked", "asked", "joined", "started", "text", "ended"]
    first, second = of_kind(LiveRequested, reader.events)
    (joined,) = of_kind(LiveJoined, reader.events)
    assert (joined.run, joined.into) == (second.run, first.run.id)


async def test_a_message_that_a_run_takes_in_joins_it() -> None:
    go_on = asyncio.Event()

    async def ask_once_more(request: RunRequest, emit: Emit) -> str:
        await go_on.wait()
        (taken,) = request.take_messages()
        return taken.text

    agent, steering = ScriptedAgent(Do(ask_once_more)), Ways(QueuePolicy(mode=Mode.STEER))
    async with a_process(agent, steering) as gateway, Reader(gateway) as reader:
        await gateway.say("work")
        await until(lambda: "started" in reader.kinds)
        await gateway.say("more")
        await until(lambda: reader.kinds.count("asked") == 2)
        go_on.set()
        await reader.until_ended()
    (started,), (joined,) = (of_kind(kind, reader.events) for kind in (LiveStarted, LiveJoined))
    assert isinstance(joined, LiveJoined)
    assert joined.into == started.run.id
    assert len(reader.ends) == 1


async def test_ends_are_told_as_they_are_stored() -> None:
    """Stopped, failed in storing, dropped by a full queue, too slow."""
    ways = Ways(QueuePolicy(capacity=1), run_timeout_s=50)
    agent = by_prompt(block=Block(), late=Ignore(for_s=99))
    async with a_process(agent, ways) as gateway, Reader(gateway) as reader:
        await gateway.say("block")
        await agent.until_active(1)
        await gateway.say("/stop")
        await reader.until_ended(1)
        gateway.store.errors["finish_run"] = RuntimeError("a bug")
        await gateway.say("hello")
        await reader.until_ended(2)
        await gateway.say("late", "goes", "stays")
        await reader.until_ended(5)
        stored = {run.id: (run.outcome, run.reason) for run in await gateway.store.runs()}
    assert reader.ends == [
        (Outcome.CANCELLED, Reason.STOPPED),
        (Outcome.FAILED, None),
        (Outcome.DROPPED, Reason.QUEUE_DROPPED),
        (Outcome.ABANDONED, Reason.RUN_TIMEOUT),
        (Outcome.COMPLETED, None),
    ]
    for event in of_kind(LiveEnded, reader.events):
        if event.outcome is not Outcome.DROPPED:
            assert stored[event.run.id] == (event.outcome, event.reason)


async def test_an_end_is_told_when_its_record_can_be_read() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        async with aclosing(gateway.control.follow()) as events:
            assert isinstance(await anext(events), LiveNow)
            await gateway.say("hello")
            async for event in events:
                if isinstance(event, LiveEnded):
                    stored = await gateway.control.runs.get(event.run.id)
                    assert stored.outcome is Outcome.COMPLETED
                    return
        raise AssertionError("it has not ended")


async def test_a_run_that_another_node_took_over_is_lost() -> None:
    """SPEC NODE-1."""
    database, late = MemoryDatabase(), ScriptedAgent(Ignore(for_s=3, reply="late"))
    async with (
        a_process(late, AT_ONCE, database=database) as frozen,
        a_process(ways=AT_ONCE, database=database) as live,
        Reader(frozen) as reader,
    ):
        await frozen.say("one")
        await late.until_active(1)
        frozen.store.away = True
        await live.channel.until_sent(1)
        frozen.store.away = False
        await reader.until_ended()
        lost = (await live.store.runs())[-1]
    assert reader.ends == [(lost.outcome, lost.reason)] == [(Outcome.LOST, Reason.CRASHED)]


async def ask(request: RunRequest, emit: Emit) -> str:
    return f"it says {await here(request).children.subagent('work hard')}"


async def test_a_session_is_followed_with_what_works_for_it() -> None:
    agent = by_prompt(ask=Do(ask), work=Say("done", after_s=5))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("hello", chat="ann")
        async with Reader(gateway, "ann") as reader, Reader(gateway) as all_of_them:
            await gateway.say("hello", chat="bob")
            await gateway.ask("ask", chat="ann")
            await reader.until_ended(2)
    (now,) = of_kind(LiveNow, reader.events)
    assert now.session == ANN
    parent, child = (event.run for event in of_kind(LiveRequested, reader.events))
    assert (parent.session, parent.payer) == (ANN, ANN)
    assert (child.trigger, child.parent, child.payer) == (Trigger.SUBAGENT, parent.id, ANN)
    assert child.session == f"agent:main:subagent:{child.id}"
    of_child = [event.kind for event in reader.events if getattr(event, "run", None) == child]
    assert of_child == ["asked", "started", "text", "ended"]
    others = of_kind(LiveRequested, all_of_them.events)
    assert {event.run.session for event in others} == {ANN, BOB, child.session}


async def test_the_first_event_tells_what_works_and_waits_already() -> None:
    async def ask_later(request: RunRequest, emit: Emit) -> str:
        await asyncio.sleep(1)  # so that the others are there before its child
        return await ask(request, emit)

    agent = by_prompt(ask=Do(ask_later), work=Block())
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("ask", "next", chat="ann")
        await gateway.say("work", chat="bob")
        await agent.until_active(3)
        async with Reader(gateway, "ann") as reader, Reader(gateway) as all_of_them:
            pass
        parent, waiting, *_ = gateway.dispatcher.runs()
        (anns,), (everything,) = (of_kind(LiveNow, r.events) for r in (reader, all_of_them))
        assert everything.runs == gateway.dispatcher.runs()
        assert [run.id for run in anns.runs[:2]] == [parent.id, waiting.id]
        assert [run.parent for run in anns.runs] == [None, None, parent.id]


async def test_the_session_of_a_run_is_followed_by_the_id_of_the_run() -> None:
    async with a_process(ScriptedAgent(Say("hi"), Block()), AT_ONCE) as gateway:
        await gateway.ask("hello", chat="ann")
        (done,) = await gateway.control.runs.list()
        await gateway.say("work", chat="bob")
        await gateway.scripted.until_active(1)
        (waiting,) = gateway.dispatcher.runs()
        for run in (done, waiting):
            # The first characters of an id are its time.
            for part in (run.id, run.id[:-1]):
                async with Reader(gateway, part) as reader:
                    (now,) = of_kind(LiveNow, reader.events)
                    assert now.session == run.session


async def test_what_is_not_there_or_not_unique_cannot_be_followed() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello", chat="ann")
        await gateway.ask("hello", chat="anna")
        with pytest.raises(NotFound, match="there is no session 'carl'"):
            await anext(gateway.control.follow("carl"))
        with pytest.raises(NotFound, match="is not unique"):
            await anext(gateway.control.follow("nn"))
        assert not gateway.container.feed.is_watched
        with pytest.raises(NoGateway):
            await anext(StoreControl(gateway.store, gateway.clock).follow())


class CountingClock(LoopClock):
    asked = 0

    def now(self) -> datetime:
        self.asked += 1
        return super().now()


RUN = NewRun(RunId("r1"), ANN, MAIN_AGENT, Trigger.CRON, MAIN_LANE, (), None, START)
DONE = Ending(RUN.id, Outcome.COMPLETED)


@pytest.fixture
async def feed() -> RunEventBroker:
    return RunEventBroker(LoopClock())


def is_watched(feed: RunEventBroker) -> bool:
    """Asked anew each time, which a type checker does not expect of a property."""
    return feed.is_watched


def tell_all(feed: RunEventBroker) -> None:
    feed.on_requested(RUN)
    feed.started(RUN)
    feed.on_event(RUN, TextDelta("text"))
    feed.ended(RUN, DONE, RunRecorder())


async def test_nothing_is_made_while_nobody_looks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = CountingClock()
    feed = RunEventBroker(clock)
    tell_all(feed)
    with feed.subscribe(None):
        pass
    await asyncio.sleep(KEPT_S)
    tell_all(feed)
    assert clock.asked == 0
    with feed.subscribe(None):
        tell_all(feed)
    assert clock.asked == 4


async def test_what_nobody_hears_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    async with a_process(ways=AT_ONCE) as gateway:
        monkeypatch.setattr(gateway.container.feed, "on_event", lambda *event: heard.append(event))
        await gateway.ask("hello")
        assert heard == []
        async with Reader(gateway):
            assert gateway.container.feed.is_watched
            await gateway.ask("hello")
        assert len(heard) == 1
        await asyncio.sleep(KEPT_S)
        assert not is_watched(gateway.container.feed)
        await gateway.ask("hello")
        assert len(heard) == 1


async def test_a_slow_reader_keeps_no_run_waiting_and_is_told_what_it_has_missed() -> None:
    pieces = tuple("x" * PIECE_CHARS for _ in range(MOST_CHARS // PIECE_CHARS + 10))
    async with a_process(ScriptedAgent(Stream(pieces)), AT_ONCE) as gateway:
        async with aclosing(gateway.control.follow()) as slow, Reader(gateway) as quick:
            assert isinstance(await anext(slow), LiveNow)
            await gateway.ask("talk")
            await quick.until_ended()
            missed = await anext(slow)
            assert isinstance(missed, LiveMissed)
            assert missed.count == 10
            assert [(await anext(slow)).kind for _ in range(2)] == ["asked", "started"]
        assert "missed" not in quick.kinds


async def test_a_reader_that_does_not_read_takes_bounded_room(feed: RunEventBroker) -> None:
    with feed.subscribe(None) as events:
        for _ in range(5 * MOST_EVENTS):
            feed.started(RUN)
        feed.close()
        missed, *kept = [event async for event in events]
    assert missed == LiveMissed(START, 4 * MOST_EVENTS)
    assert len(kept) == MOST_EVENTS


async def test_the_end_of_the_gateway_ends_every_iterator(feed: RunEventBroker) -> None:
    first, second = feed.subscribe(None), feed.subscribe(BOB)
    reading = asyncio.create_task(anext(second, None))
    await asyncio.sleep(1)
    feed.started(RUN)
    feed.on_event(RUN, TextDelta("last words"))
    feed.close()
    assert [event.kind async for event in first] == ["started", "text"]
    assert await reading is None
    assert not feed.is_watched
    assert [event async for event in feed.subscribe(None)] == []
    tell_all(feed)


async def test_closing_an_iterator_ends_it_and_no_other(feed: RunEventBroker) -> None:
    first, second = feed.subscribe(None), feed.subscribe(None)
    feed.started(RUN)
    first.close()
    first.close()
    assert [event async for event in first] == []
    assert (await anext(second)).kind == "started"
    assert feed.is_watched
    second.close()
    await asyncio.sleep(KEPT_S)
    assert not is_watched(feed)


async def test_a_reader_sees_how_runs_end_in_a_shutdown() -> None:
    agent = ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent, AT_ONCE) as gateway:
        async with Reader(gateway) as reader:
            await gateway.say("hello")
            await agent.until_active(1)
            await gateway.shut_down(wait_s=1)
            await asyncio.wait([reader._task])
        assert reader.ends == [(Outcome.INTERRUPTED, Reason.SHUTDOWN)]


async def test_what_cannot_be_written_as_json_is_mended(feed: RunEventBroker) -> None:
    with feed.subscribe(None) as events:
        feed.on_event(RUN, ToolStarted("c\ud800", "t\ud800", "{}"))
        feed.on_event(RUN, ModelStep(Usage(), "m\ud800"))
        called, used = await anext(events), await anext(events)
    assert isinstance(called, LiveTool)
    assert isinstance(used, LiveUsage)
    assert (called.name, called.call_id, used.model) == ("t\ufffd", "c\ufffd", "m\ufffd")


async def read_all(feed: RunEventBroker, after: str) -> list[RunEvent | LiveMissed]:
    """What one who comes back finds, and nothing that comes later."""
    with feed.subscribe(None, after) as events:
        return list(iter(events.next_event, None))


async def test_whoever_comes_back_goes_on_where_they_were(feed: RunEventBroker) -> None:
    """No event twice, none left out, in the same order as for one who stayed."""
    with feed.subscribe(None) as stays, feed.subscribe(None) as goes:
        tell_all(feed)
        first = await anext(goes)
        assert isinstance(first, LiveRequested)
        goes.close()
        tell_all(feed)
        await asyncio.sleep(1)
        everything: list[RunEvent | LiveMissed] = list(iter(stays.next_event, None))
        assert [first, *await read_all(feed, first.id)] == everything
        assert len({event.id for event in everything if not isinstance(event, LiveMissed)}) == 8


async def test_text_that_grew_while_nobody_was_there_is_not_lost(feed: RunEventBroker) -> None:
    with feed.subscribe(None) as events:
        feed.on_event(RUN, TextDelta("one "))
        other = replace(RUN, id=RunId("r2"))
        feed.started(other)
        (seen,) = iter(events.next_event, None)
        assert isinstance(seen, LiveStarted)
    feed.on_event(RUN, TextDelta("two "))
    await asyncio.sleep(1)
    feed.on_event(RUN, TextDelta("three"))
    await asyncio.sleep(1)
    back = await read_all(feed, seen.id)
    assert texts(back) == "one two three"


async def test_what_happened_in_the_minute_without_readers_is_kept(feed: RunEventBroker) -> None:
    with feed.subscribe(None) as events:
        feed.started(RUN)
        seen = await anext(events)
        assert isinstance(seen, LiveStarted)
    await asyncio.sleep(KEPT_S - 1)
    feed.ended(RUN, DONE, RunRecorder())
    (back,) = await read_all(feed, seen.id)
    assert back.kind == "ended"
    await asyncio.sleep(KEPT_S)
    feed.started(RUN)
    assert await read_all(feed, seen.id) == [LiveMissed(LoopClock().now(), 0)]


async def test_a_place_that_is_not_known_is_told_as_missed(feed: RunEventBroker) -> None:
    """Such as one of a gateway that was here before."""
    with feed.subscribe(None) as events:
        origin, _, _ = events.place.partition("-")
        feed.started(RUN)
        foreign = "", "x", "0123456789ab-3", "-", "é-٣", "0" * 5000
        for place in (*foreign, f"{origin}-", f"{origin}-999"):
            assert await read_all(feed, place) == [LiveMissed(START, 0)]


async def test_what_is_not_kept_any_more_is_counted(feed: RunEventBroker) -> None:
    with feed.subscribe(None) as events:
        feed.started(RUN)
        seen = await anext(events)
        assert isinstance(seen, LiveStarted)
        for _ in range(MOST_EVENTS + 5):
            feed.started(RUN)
        missed, *kept = await read_all(feed, seen.id)
    assert missed == LiveMissed(START, 5)
    assert len(kept) == MOST_EVENTS


async def test_events_are_followed_behind_one_and_then_comes_what_is_so_now() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        async with aclosing(gateway.control.follow()) as events:
            await anext(events)
            await gateway.ask("hello")
            asked = await anext(events)
            assert isinstance(asked, LiveRequested)
        async with aclosing(gateway.control.follow(after=asked.id)) as events:
            found = [await anext(events) for _ in range(4)]
        assert [event.kind for event in found] == ["started", "text", "ended", "now"]
        now = found[-1]
        assert isinstance(now, LiveNow)
        async with aclosing(gateway.control.follow(after=now.id)) as events:
            assert (await anext(events)).kind == "now"


async def test_all_readers_get_the_same_object(feed: RunEventBroker) -> None:
    """So that it is written as JSON once."""
    with feed.subscribe(None) as first, feed.subscribe(ANN) as second:
        feed.started(RUN)
        assert await anext(first) is await anext(second)
