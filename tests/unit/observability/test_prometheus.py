"""What happens in a gateway, in figures for Prometheus (SPEC OPS-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal

import pytest

from goclaw_py.core.errors import AgentError, NotSent, StoreUnavailable, Undeliverable
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.metrics import Delivery
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import Usage
from goclaw_py.records import OutboxQuery, OutboxState
from goclaw_py.runs.agent_loop import AgentResult, Emit, ModelStep, RunRequest
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Do, Emitting, Fail, Return, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.figures import Scraped, a_meter
from tests.support.harness import GatewayProcess, Ways, a_process, here, message, until
from tests.support.heartbeat_gateway import heartbeat_gateway, saying, until_ended, write
from tests.support.jobs import OPERATOR, Wanted, at, ends, every, make, service

AT_ONCE = Ways(QueuePolicy())


def chat_run(outcome: str) -> str:
    """Labels are sorted where they are shown."""
    return f'{{lane="main",outcome="{outcome}",trigger="chat"}}'


def delivery(result: str) -> str:
    return f'{{channel="telegram",result="{result}"}}'


@asynccontextmanager
async def scraped(
    agent: ScriptedAgent | None = None,
    ways: Ways = AT_ONCE,
    channels: tuple[RecordingChannel, ...] = (),
) -> AsyncIterator[Scraped]:
    meter = a_meter()
    async with a_process(agent, ways, channels=channels, meter=meter) as gateway:
        yield Scraped(gateway, meter)


@pytest.fixture
async def made() -> AsyncIterator[Scraped]:
    async with scraped() as made:
        yield made


async def received(made: Scraped) -> float:
    """From the only channel that there is."""
    return (await made.some("goclaw_messages_received_total")).get('{channel="telegram"}', 0)


async def settled(gateway: GatewayProcess) -> None:
    """Nothing runs, and everything is sent or given up."""
    open_states = (OutboxState.WAITING, OutboxState.SENDING)
    await until(lambda: not gateway.dispatcher.runs())
    async with asyncio.timeout(600):
        while any(
            row.state in open_states for row in await gateway.store.outbox(OutboxQuery(limit=1000))
        ):
            await asyncio.sleep(0.1)


# ---------------------------------------------------------------------------- runs


async def test_each_run_is_counted_once_by_how_it_ended() -> None:
    agent = ScriptedAgent(Say("fine"), Fail(AgentError("no", "no")), Block())
    async with scraped(agent) as made:
        await made.gateway.ask("one")
        # Prometheus sees no rise in a series that begins at 1, so all outcomes are there.
        assert {key for key in await made.all() if key.startswith("goclaw_runs_total")} == {
            "goclaw_runs_total" + chat_run(outcome) for outcome in Outcome
        }
        await made.gateway.ask("two")
        await made.gateway.say("three")
        await agent.until_active(1)
        assert sum((await made.some("goclaw_runs_total")).values()) == 2
        await made.gateway.say("/stop")
        await settled(made.gateway)
        ended = {chat_run(outcome): 1 for outcome in ("completed", "failed", "cancelled")}
        assert await made.some("goclaw_runs_total") == ended


async def test_what_has_not_happened_yet_is_shown_as_nothing(made: Scraped) -> None:
    """Prometheus sees no rise where a series begins at 1."""
    shown = await made.all()
    for name in (
        *('goclaw_messages_received_total{channel="telegram"}',),
        *('goclaw_delivery_delay_seconds_count{channel="telegram"}',),
        *(f"goclaw_deliveries_total{delivery(result)}" for result in Delivery),
        *('goclaw_cost_usd_total{agent="main"}', 'goclaw_tokens_total{agent="main",kind="input"}'),
        'goclaw_occurrences_total{status="ok"}',
    ):
        assert shown[name] == 0, name


async def test_what_was_dropped_counts_though_it_never_ran() -> None:
    """SPEC QUEUE-5."""
    agent = ScriptedAgent(Block())
    async with scraped(agent, Ways(QueuePolicy(capacity=1))) as made:
        await made.gateway.say("one", "two", "three")
        await agent.until_active(1)
        assert await made.some("goclaw_runs_total") == {chat_run("dropped"): 1}
        agent.release()


async def test_messages_that_became_one_turn_are_one_run() -> None:
    """SPEC QUEUE-6."""
    async with scraped(ways=Ways()) as made:
        await made.gateway.say("one", "two", "three")
        await made.gateway.channel.until_sent(1)
        await settled(made.gateway)
        assert await made.some("goclaw_runs_total") == {chat_run("completed"): 1}
        assert await received(made) == 3


async def test_the_run_of_a_subagent_is_a_run_of_its_own() -> None:
    async def ask_child(request: RunRequest, _emit: Emit) -> str:
        return await here(request).children.subagent("look")

    agent = ScriptedAgent(Do(ask_child))
    meter = a_meter()
    async with a_process(agent, AT_ONCE, meter=meter) as gateway:
        await gateway.ask("go")
        await settled(gateway)
        ended = await Scraped(gateway, meter).some("goclaw_runs_total")
    # The harness has no lane for subagents: what cannot run is rejected, and counted.
    assert sum(ended.values()) == 2
    assert any('trigger="subagent"' in labels for labels in ended)


async def test_what_runs_have_used_is_added_up_also_if_they_failed() -> None:
    used = Usage(1, 100, 20, 60, Decimal("0.10"))
    step = ModelStep(replace(used, cost_usd=Decimal("0.20")), "m")
    agent = ScriptedAgent(
        Return(AgentResult("a", usage=used)),
        Emitting((step,), Fail(ValueError("no"))),
        Return(AgentResult("b", usage=Usage(1, 5, 1))),
    )
    async with scraped(agent) as made:
        for text in ("one", "two", "three"):
            await made.gateway.ask(text)
        await settled(made.gateway)
        tokens = {"input": 205, "output": 41, "cached": 120}
        assert await made.some("goclaw_tokens_total") == {
            f'{{agent="main",kind="{kind}"}}': count for kind, count in tokens.items()
        }
        assert await made.some("goclaw_cost_usd_total") == pytest.approx({'{agent="main"}': 0.3})


async def test_lanes_are_shown_as_they_are_now() -> None:
    agent = ScriptedAgent(Block(), Block(), Block())
    async with scraped(agent) as made:
        for chat in ("ann", "bob", "cem"):
            await made.gateway.say("hi", chat=chat)
        await agent.until_active(2)
        shown = await made.all()
        lane = ("slots", "running", "waiting")
        assert [shown[f'goclaw_lane_{name}{{lane="main"}}'] for name in lane] == [2, 2, 1]
        assert shown['goclaw_lane_running{lane="cron"}'] == 0
        assert (shown["goclaw_sessions_waiting"], shown["goclaw_inbox_open"]) == (1, 3)
        agent.release()


async def test_waits_and_durations_are_those_of_the_lane() -> None:
    agent = ScriptedAgent(Say("a", 20), Say("b", 20), Say("c", 20))
    async with scraped(agent) as made:
        for chat in ("ann", "bob", "cem"):
            await made.gateway.say("hi", chat=chat)
        await made.gateway.channel.until_sent(3)
        shown = await made.all()
        for name, value in {
            'duration_seconds_count{lane="main"}': 3,
            'duration_seconds_sum{lane="main"}': 60,
            'duration_seconds_bucket{lane="main",le="10.0"}': 0,
            'duration_seconds_bucket{lane="main",le="30.0"}': 3,
            'wait_seconds_sum{lane="main"}': 20,
            'wait_seconds_bucket{lane="main",le="0.005"}': 2,
            'wait_seconds_bucket{lane="main",le="+Inf"}': 3,
        }.items():
            assert shown[f"goclaw_run_{name}"] == value, name


# ---------------------------------------------------------------------------- in and out


async def test_a_message_that_came_twice_was_received_once() -> None:
    """SPEC IO-1, CHAN-5."""
    async with scraped() as made:
        one = message("hi")
        await made.gateway.gateway.accept([one, one])
        await made.gateway.gateway.accept([one])
        await made.gateway.gateway.accept([message("/status")])
        assert await received(made) == 2
    # What strangers say was not received.
    async with scraped(channels=(RecordingChannel(trusted=False),)) as made:
        await made.gateway.say("let me in")
        assert await made.some("goclaw_messages_received_total") == {}


async def test_a_message_counts_when_it_is_committed(made: Scraped) -> None:
    """Its channel offers it again until then."""
    one = message("hi")
    made.gateway.store.broken.add("accept")
    with pytest.raises(StoreUnavailable):
        await made.gateway.gateway.accept([one])
    assert await received(made) == 0
    made.gateway.store.broken.clear()
    await made.gateway.gateway.accept([one])
    assert await received(made) == 1


async def test_a_message_is_delivered_once_after_the_tries_that_went_wrong(made: Scraped) -> None:
    made.gateway.channel.fail(NotSent("no route"), NotSent("no route"), chat="ann")
    await made.gateway.say("hi")
    await settled(made.gateway)
    (row,) = await made.gateway.store.outbox()
    assert row.sent_at is not None
    delivered = {delivery("retried"): 2, delivery("sent"): 1}
    assert await made.some("goclaw_deliveries_total") == delivered
    took_s = (row.sent_at - row.created_at).total_seconds()
    shown = await made.all()
    assert shown['goclaw_delivery_delay_seconds_sum{channel="telegram"}'] == took_s > 2
    assert shown['goclaw_delivery_delay_seconds_count{channel="telegram"}'] == 1


async def test_what_can_never_be_delivered_has_failed_until_somebody_gives_it_up(
    made: Scraped,
) -> None:
    made.gateway.channel.fail(Undeliverable("too odd"), chat="ann")
    await made.gateway.say("hi")
    await settled(made.gateway)
    # The chat reads that it is so.
    failed = {delivery("failed"): 1, delivery("sent"): 1}
    assert await made.some("goclaw_deliveries_total") == failed
    assert (await made.all())["goclaw_outbox_dead"] == 1
    _, row = await made.gateway.store.outbox()
    assert await made.gateway.control.deliveries.drop_outbox([row.id, 999]) == 1
    assert await made.gateway.control.deliveries.drop_outbox([row.id]) == 0
    dropped = failed | {delivery("dropped"): 1}
    assert await made.some("goclaw_deliveries_total") == dropped
    assert (await made.all())["goclaw_outbox_dead"] == 0


async def test_a_mark_that_met_a_bug_is_no_delivery(made: Scraped) -> None:

    async def breaks(*_args: object, **_options: object) -> bool:
        raise ValueError("a bug")

    made.gateway.store.mark_sent = breaks  # type: ignore[method-assign]
    await made.gateway.say("hi")
    await until(lambda: made.gateway.store.calls["mark_failed"] > 0)
    await asyncio.sleep(0)
    assert await made.some("goclaw_deliveries_total") == {delivery("retried"): 1}
    del made.gateway.store.mark_sent


# ---------------------------------------------------------------------------- jobs and runs


async def test_each_occurrence_is_counted_by_its_status_with_its_lag() -> None:
    agent = ScriptedAgent(Say("fine"), Fail(AgentError("no", "no")))
    async with scraped(agent) as made:
        first = await make(made.gateway, Wanted(at(10), slug="first"))
        await asyncio.sleep(15)
        second = await make(made.gateway, Wanted(at(20), slug="second"))
        await asyncio.sleep(15)
        assert await ends(made.gateway, first) == ["ok"]
        assert await ends(made.gateway, second) == ["failed"]
        counted = await made.some("goclaw_occurrences_total")
        assert counted == {'{status="ok"}': 1, '{status="failed"}': 1}
        shown = await made.all()
        assert shown["goclaw_occurrence_lag_seconds_count"] == 2
        assert shown["goclaw_occurrence_lag_seconds_sum"] < 2
        assert await made.some("goclaw_runs_total") == {
            f'{{lane="cron",outcome="{outcome}",trigger="cron"}}': 1
            for outcome in ("completed", "failed")
        }


async def test_a_job_that_waits_for_its_lane_has_a_lag() -> None:
    agent = ScriptedAgent(Say("slow", 40), Say("late"))
    async with scraped(agent) as made:
        await make(made.gateway, Wanted(at(10), slug="one"))
        await make(made.gateway, Wanted(at(11), slug="two"))
        await asyncio.sleep(90)
        assert 39 <= (await made.all())["goclaw_occurrence_lag_seconds_sum"] < 41


async def test_what_is_run_by_hand_has_no_lag(made: Scraped) -> None:
    job = await make(made.gateway, Wanted(every(3600)))
    await service(made.gateway).run_now(job.id, OPERATOR)
    await settled(made.gateway)
    assert await made.some("goclaw_occurrences_total") == {'{status="ok"}': 1}
    assert (await made.all())["goclaw_occurrence_lag_seconds_count"] == 0


async def test_heartbeat_runs_are_counted_by_agent_and_status() -> None:
    meter = a_meter()
    agent = saying("HEARTBEAT_OK", "the meeting begins in ten minutes, and its room was changed")
    async with a_process(agent, heartbeat_gateway(), meter=meter) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 2)
        write(gateway, "")
        await until_ended(gateway, 3)
        await settled(gateway)
        made = Scraped(gateway, meter)
        assert await made.some("goclaw_heartbeat_runs_total") == {
            f'{{agent="main",status="{status}"}}': 1 for status in ("ok", "alerted", "skipped")
        }
        heartbeat_runs = '{lane="cron",outcome="completed",trigger="heartbeat"}'
        assert (await made.some("goclaw_runs_total"))[heartbeat_runs] == 2


# ---------------------------------------------------------------------------- labels


def test_a_name_that_the_settings_do_not_have_makes_no_series_of_its_own() -> None:
    """Series would grow with what people do; see OPS-2."""
    meter = a_meter()
    for number in range(50):
        meter.received(f"channel-{number}")
    families = meter.registry.collect()
    [family] = [one for one in families if one.name == "goclaw_messages_received"]
    samples = [one for one in family.samples if one.name == "goclaw_messages_received_total"]
    assert {tuple(one.labels.items()) for one in samples} == {
        (("channel", "telegram"),),
        (("channel", "other"),),
    }


@pytest.mark.slow
async def test_a_thousand_chats_make_no_more_series_than_one(made: Scraped) -> None:
    await made.gateway.ask("hi")
    few = set(await made.all())
    for number in range(1000):
        await made.gateway.say("hi", chat=f"chat-{number}")
    await settled(made.gateway)
    assert set(await made.all()) == few
    # The one before is among them.
    assert sum((await made.some("goclaw_runs_total")).values()) == 1001
    assert "chat-7" not in "".join(few)


async def test_two_gateways_in_a_process_count_for_themselves() -> None:
    async with scraped() as one, scraped() as other:
        await one.gateway.ask("hi")
        assert await one.some("goclaw_runs_total") != {}
        assert await other.some("goclaw_runs_total") == {}
        assert MAIN_AGENT in str(await other.all())
