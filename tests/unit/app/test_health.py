"""How a gateway tells how it is, whatever becomes of its database (SPEC OPS-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from goclaw_py.app.status import PATIENCE_S, GatewayHealth, Snapshots
from goclaw_py.core.errors import ChannelRefused
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunNote, RunNoted, Usage
from goclaw_py.observability.readiness import Condition
from goclaw_py.records import NodeState
from goclaw_py.runs.agent_loop import Emit, ModelStep, RunRequest
from goclaw_py.scheduler.views import ChannelState
from goclaw_py.testing.agents import Block, Do, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.figures import ThereOrNot, a_meter, figures, snapshots_of
from tests.support.harness import GatewayProcess, a_process, message, until


class Watched:
    def __init__(self, gateway: GatewayProcess) -> None:
        self.gateway = gateway
        self.server = ThereOrNot()
        self.snapshots: Snapshots = snapshots_of(gateway, self.server)
        stand_in: Any = self.server
        self.health = GatewayHealth(
            gateway.container, gateway.channels, stand_in, self.snapshots, a_meter()
        )

    @property
    def states(self) -> dict[str, Condition]:
        return {check.name: check.state for check in self.health.readiness().checks}


@asynccontextmanager
async def watched(
    agent: ScriptedAgent | None = None, *, trusted: bool = False
) -> AsyncIterator[Watched]:
    channel = RecordingChannel(trusted=trusted)
    async with a_process(agent, channels=(channel,)) as gateway:
        await asyncio.sleep(1)
        yield Watched(gateway)


async def test_a_gateway_is_ready_while_it_has_its_database() -> None:
    """Anybody may ask for it without a token, so the database is asked nothing."""
    async with watched() as made:
        before = made.gateway.store.calls.copy()
        assert made.health.readiness().ready
        assert set(made.states.values()) == {Condition.OK}
        made.server.reachable = False
        found = made.health.readiness()
        assert (found.ready, found.words) == (False, "not ready: the database does not answer")
        assert made.gateway.store.calls == before


@pytest.mark.parametrize("trusted", [False, True])
async def test_with_its_only_channel_stopped_it_is_not_ready(trusted: bool) -> None:
    """One for this machine only does not count."""
    async with watched(trusted=trusted) as made:
        made.gateway.channel.break_off(ChannelRefused("wrong token"))
        await asyncio.sleep(1)
        readiness = made.health.readiness()
        assert readiness.ready is trusted
        assert trusted or made.states["channels"] is Condition.FAILING
        assert "token" not in readiness.words


async def test_one_that_shuts_down_is_not_ready() -> None:
    agent = ScriptedAgent(Block())
    async with watched(agent, trusted=True) as made:
        await made.gateway.say("hello")
        await agent.until_active(1)
        ending = asyncio.create_task(made.gateway.container.drain(30, asyncio.Event()))
        await asyncio.sleep(1)
        assert made.states["draining"] is Condition.FAILING
        agent.release()
        await ending


async def scrape(made: Watched) -> dict[str, float]:
    return dict(figures((await made.health.metrics(openmetrics=False)).text))


async def test_a_scrape_does_not_ask_a_database_that_is_away() -> None:
    async with watched() as made:
        made.server.reachable = False
        made.gateway.store.calls.clear()
        began = asyncio.get_running_loop().time()
        shown = await scrape(made)
        assert asyncio.get_running_loop().time() == began
        assert made.gateway.store.calls["backlog"] == 0
        assert (shown["goclaw_database_up"], shown["goclaw_warnings"]) == (0, 1)
        assert "goclaw_inbox_open" not in shown


async def test_one_that_has_just_gone_away_is_not_up() -> None:
    async with watched() as made:
        made.gateway.store.broken.add("backlog")
        assert (await scrape(made))["goclaw_database_up"] == 0
        made.gateway.store.broken.clear()
        shown = await scrape(made)
        assert (shown["goclaw_database_up"], shown["goclaw_inbox_open"]) == (1, 0)


async def test_one_that_hangs_is_waited_for_shortly_and_asked_once() -> None:
    async with watched() as made:
        made.gateway.store.slow_before_s["backlog"] = 60.0
        made.gateway.store.calls.clear()
        began = asyncio.get_running_loop().time()
        found = await asyncio.gather(*(scrape(made) for _ in range(10)))
        assert asyncio.get_running_loop().time() - began <= PATIENCE_S + 0.01
        assert {shown["goclaw_database_up"] for shown in found} == {0}
        assert (await scrape(made))["goclaw_database_up"] == 0
        assert made.gateway.store.calls["backlog"] == 1
        made.gateway.store.slow_before_s.clear()
        await asyncio.sleep(60)
        assert (await scrape(made))["goclaw_database_up"] == 1


async def test_whoever_asks_and_goes_away_takes_the_answer_from_nobody() -> None:
    async with watched() as made:
        made.gateway.store.slow_before_s["backlog"] = 0.5
        first = asyncio.create_task(scrape(made))
        second = asyncio.create_task(scrape(made))
        await asyncio.sleep(0.1)
        first.cancel()
        assert (await second)["goclaw_database_up"] == 1


async def test_a_channel_with_trouble_or_without_work_is_not_up() -> None:
    async with watched() as made:
        up = 'goclaw_channel_up{account="default",channel="telegram"}'
        assert (await scrape(made))[up] == 1
        made.gateway.channel.break_off(ChannelRefused("wrong token"))
        await until(lambda: made.gateway.supervisor.views()[0].state == "stopped")
        assert (await scrape(made))[up] == 0


STORED = "The database does not store messages, so channels do not acknowledge them: "


async def test_the_full_status_still_waits_for_its_database() -> None:
    async with watched() as made:
        made.server.reachable = False
        assert (await made.snapshots.full()).backlog is not None
        made.gateway.store.away = True
        status = await made.snapshots.full()
        assert (status.backlog, status.database) == (None, "embedded, unreachable")
        assert list(map(str, status.warnings)) == [f"{STORED}it cannot be reached"]
        made.gateway.store.away = False


async def test_a_database_that_can_be_read_and_not_written_is_a_warning() -> None:
    """SPEC DB-4: a standby answers everybody who only looks."""
    async with watched() as made:
        made.server.reachable, made.server.trouble = False, "it is a standby"
        status = await made.snapshots.full()
        assert status.backlog is not None
        assert list(map(str, status.warnings)) == [f"{STORED}it is a standby"]
        (channel,) = [view for view in status.channels if view.name == "telegram"]
        assert channel.state is ChannelState.RECONNECTING, "it works for nobody (CHAN-8)"
        assert channel.detail == "messages cannot be committed: it is a standby"


async def test_groups_that_nobody_has_decided_about_are_told() -> None:
    async with watched() as made:
        await made.gateway.gateway.accept([in_group("-1")])
        assert (await scrape(made))["goclaw_warnings"] == 1
        (warning,) = (await made.snapshots.full()).warnings
        assert str(warning) == "1 group waits for your decision: may the agent listen there?"
        assert (warning.link, warning.command) == ("/people#groups", "goclaw people groups list")
        await made.gateway.gateway.accept([in_group("-2")])
        made.gateway.store.calls.clear()
        (warning,) = (await made.snapshots.quick()).warnings
        assert str(warning).startswith("2 groups wait for your decision")
        assert made.gateway.store.calls == {"backlog": 1, "undecided": 1}
        made.gateway.store.away = True
        assert (await scrape(made))["goclaw_database_up"] == 0
        made.gateway.store.away = False


async def test_messages_of_an_account_that_no_node_has_are_a_warning() -> None:
    """SPEC OPS-4: they wait until somebody sets it up, or drops them."""
    async with watched(trusted=True) as made:
        store, now = made.gateway.store, made.gateway.clock.now()
        gone = Target("telegram", "gone", "7")
        assert (await made.snapshots.full()).warnings == ()
        await store.settle((), Outcome.COMPLETED, now=now, say=[OutboundMessage(gone, "hi")] * 2)
        (warning,) = (await made.snapshots.full()).warnings
        waits = "2 messages (2 outgoing) wait for telegram/gone, which no live node has"
        assert str(warning) == waits
        assert warning.link == "/deliveries?show=waiting&channel=telegram&account=gone"
        # Another node that has it sends them.
        (own,) = await store.nodes()
        state = NodeState(places=("telegram/gone",))
        await store.join(replace(own, id=NodeId("other"), host="other", state=state))
        await asyncio.sleep(6)
        assert (await made.snapshots.full()).warnings == ()


async def test_estimated_usage_is_a_warning_until_a_run_has_all_its_counts() -> None:
    """SPEC AGENT-5: a budget of tokens is then an estimate too."""
    are_estimated = [True, False]

    async def work(request: RunRequest, emit: Emit) -> str:
        if are_estimated.pop(0):
            emit(RunNoted(RunNote.USAGE_ESTIMATED))
        emit(ModelStep(Usage(1, 20, 2), "openai:some-model"))
        return "done"

    async with watched(ScriptedAgent(Do(work), Do(work)), trusted=True) as made:
        await made.gateway.say("hello")
        await made.gateway.channel.until_sent(1)
        (warning,) = (await made.snapshots.full()).warnings
        assert str(warning) == (
            "Agent main has a provider that does not report how many tokens openai:some-model "
            "uses, or reports impossible numbers; they are estimated, and so are its budgets"
        )
        await made.gateway.say("again")
        await made.gateway.channel.until_sent(2)
        assert (await made.snapshots.full()).warnings == ()


def in_group(chat: str) -> InboundMessage:
    return message("hi", chat=chat, sender="bob", peer=PeerKind.GROUP)
