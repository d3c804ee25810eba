"""A whole gateway in this process, over a store that can break (SPEC OPS-2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import orjson
import pytest

from goclaw_py.agents.tools import Registry
from goclaw_py.app.logs import configure
from goclaw_py.app.parts import Parts, build_parts, chat_rules
from goclaw_py.app.service import Front, Service
from goclaw_py.chat.terminals import Terminals
from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.config import LogFormat, load
from goclaw_py.core.errors import ChannelRefused
from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.operations.control import Control
from goclaw_py.operations.settings.models import SettingChange
from goclaw_py.records import NewSettingEdit, Store
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START
from goclaw_py.web.sockets import listen_unix, socket_path
from tests.support.flaky_store import FlakyStore
from tests.support.harness import message
from tests.support.memory_store import MemoryDatabase, MemoryStore

pytestmark = pytest.mark.real_time


class Database:
    """Stands for the server: it is always there."""

    kind = "embedded"
    reachable = True
    trouble = ""

    async def watch(self, store: Store) -> None:
        await asyncio.Event().wait()


@dataclass
class Running:
    store: FlakyStore
    channel: RecordingChannel
    agent: ScriptedAgent
    stop: asyncio.Event
    task: asyncio.Task[None]
    said: list[str] = field(default_factory=list)

    async def until(self, reached: Callable[[], object], limit_s: float = 15) -> None:
        async with asyncio.timeout(limit_s):
            while not reached():
                await asyncio.sleep(0.02)


@asynccontextmanager
async def a_service(
    folder: Path,
    agent: ScriptedAgent,
    *,
    front: Front | None = None,
    prepare: Callable[[FlakyStore], None] = lambda _: None,
    channel: RecordingChannel | None = None,
) -> AsyncIterator[Running]:
    env = {"GOCLAW_HOME": str(folder), "HOME": str(folder)}
    settings = load(None, env | {"GOCLAW_SHUTDOWN__WAIT": "1s", "GOCLAW_RUNS__CANCEL_GRACE": "1s"})
    parts, store = build_parts(settings), FlakyStore()
    channel = channel or RecordingChannel()
    channels = {**parts.channels, (channel.name, channel.account): channel}
    rules = chat_rules(settings, {place: each.trusted for place, each in channels.items()})
    made = Parts(channels, rules, {MAIN_AGENT: agent}, Registry({}))
    service = Service(settings, made, Database(), store)  # type: ignore[arg-type]  # a stand-in
    prepare(store)
    stop, said = asyncio.Event(), list[str]()
    listener = listen_unix(socket_path(folder))
    task = asyncio.create_task(service.run(listener, stop, asyncio.Event(), said.extend, front))
    try:
        yield Running(store, channel, agent, stop, task, said)
    finally:
        stop.set()
        await asyncio.wait({task}, timeout=20)
        listener.close()


async def test_one_unexpected_error_does_not_end_the_gateway(tmp_path: Path) -> None:
    """QUEUE-10: nor does it lose what people say afterwards."""
    async with a_service(tmp_path, ScriptedAgent()) as gateway:
        await gateway.until(lambda: gateway.said)
        gateway.store.errors["claim_pending"] = ValueError("a bug")
        gateway.store.errors["chats_due"] = ValueError("another bug")
        await gateway.until(lambda: not gateway.store.errors)
        await gateway.channel.deliver(message("hello"))
        await gateway.until(gateway.channel.texts)
        assert not gateway.task.done()


async def test_a_gateway_whose_only_channel_has_stopped_goes_on(tmp_path: Path) -> None:
    """CHAN-8: jobs, the API and the dashboard need no channel."""
    channel = RecordingChannel(trusted=False)
    async with a_service(tmp_path, ScriptedAgent(), channel=channel) as gateway:
        await gateway.until(lambda: channel.receiving)
        channel.break_off(ChannelRefused("wrong token"))
        await gateway.until(lambda: not channel.receiving)
        await asyncio.sleep(0.2)
        assert not gateway.task.done()


async def test_an_error_in_the_foreground_still_ends_in_order(tmp_path: Path) -> None:
    """QUEUE-11: the run goes back, the node leaves, channels and agents are closed."""
    broken = asyncio.Event()

    async def front(_control: Control, _terminals: Terminals) -> None:
        await broken.wait()
        raise ValueError("a bug in the terminal")

    agent = ScriptedAgent(otherwise=lambda _request: Block())
    async with a_service(tmp_path, agent, front=front) as gateway:
        await gateway.until(lambda: gateway.said)
        await gateway.channel.deliver(message("work"))
        await gateway.until(lambda: agent.active)
        broken.set()
        with pytest.raises(ValueError, match="a bug in the terminal"):
            await gateway.task
        assert await gateway.store.nodes() == []
        assert [run.outcome for run in await gateway.store.runs()] == [Outcome.INTERRUPTED]
        assert gateway.channel.closed
        assert agent.closed


async def test_a_signal_ends_a_start_that_waits_for_the_database(tmp_path: Path) -> None:
    """DB-4."""

    def away(store: FlakyStore) -> None:
        store.away = True

    async with a_service(tmp_path, ScriptedAgent(), prepare=away) as gateway:
        await asyncio.sleep(0.2)
        gateway.stop.set()
        await asyncio.wait_for(gateway.task, 15)
        assert not gateway.said


async def test_people_are_warned_of_a_slow_wait_as_long_as_it_lasts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """LANE-7: in the log once, in the status while somebody waits."""
    agent = ScriptedAgent(otherwise=lambda _request: Block())
    async with a_service(tmp_path, agent) as gateway:
        await gateway.until(lambda: gateway.said)
        async with RemoteControl(socket_path(tmp_path)) as remote:
            # The first request waits until the API is created.
            await remote.lanes.status()
            for chat in ("ann", "bob", "carl"):
                await gateway.channel.deliver(message("work", chat=chat))
            await gateway.until(lambda: len(agent.active) == 2)
            assert (await remote.lanes.status()).warnings == ()
            await gateway.until(lambda: "lane_wait_slow" in caplog.messages)
            (record,) = [line for line in caplog.records if line.message == "lane_wait_slow"]
            (warning,) = (await remote.lanes.status()).warnings
            assert len(vars(record)["occupants"]) == 2
            assert warning.text.endswith("Carl; in it: Ann, Bob")
            assert "Lane main is full (2 of 2) and 1 run waits" in str(warning)
            await remote.lanes.resize(MAIN_LANE, 3)
            await gateway.until(lambda: len(agent.active) == 3)
            assert (await remote.lanes.status()).warnings == ()


class BrokenChannel(RecordingChannel):
    """A channel with a bug."""

    async def close(self) -> None:
        raise ValueError("a bug in close")


async def test_a_part_that_cannot_be_closed_keeps_no_other_one_open(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with a_service(tmp_path, agent, channel=BrokenChannel()) as gateway:
        await gateway.until(lambda: gateway.said)
        gateway.stop.set()
        await gateway.task
        assert agent.closed


async def test_a_gateway_that_works_is_ready_and_shows_its_figures(tmp_path: Path) -> None:
    async with a_service(tmp_path, ScriptedAgent()) as running:
        await running.until(lambda: running.said)
        await running.until(lambda: running.channel.receiving)
        await running.channel.deliver(message("hello"))
        await running.until(lambda: running.channel.sent)
        transport = httpx.AsyncHTTPTransport(uds=str(socket_path(tmp_path)))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            ready = await client.get("/readyz")
            shown = (await client.get("/metrics")).text
    assert ready.status_code == 200, ready.text
    assert 'goclaw_messages_received_total{channel="telegram"} 1.0' in shown
    assert "goclaw_database_up 1.0" in shown


pytestmark = pytest.mark.real_time

TOKEN = "987654321:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"
KEY = "a-key-of-no-known-form"
library = logging.getLogger("some.library")


class LibraryError(Exception):
    """What libraries raise that put addresses into their errors."""


def call(address: str) -> None:
    library.warning("request failed", extra={"url": address})
    raise LibraryError(f"cannot connect to {address}")


class Breaking(ScriptedAgent):
    """An agent whose library quotes its key."""

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        call(f"https://models.test/v1?key={KEY}")
        raise AssertionError("it was raised before")


class BreakingChannel(RecordingChannel):
    """A channel whose library quotes its token."""

    async def send(self, message: OutboundMessage) -> str:
        call(f"https://api.telegram.test/bot{TOKEN}/sendMessage")
        raise AssertionError("it was raised before")


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.CONSOLE])
@pytest.mark.usefixtures("log_as_before")
async def test_what_libraries_quote_is_hidden_of_a_named_run(
    tmp_path: Path, form: LogFormat
) -> None:
    env = {
        "GOCLAW_HOME": str(tmp_path),
        "GOCLAW_TELEGRAM_TOKEN": TOKEN,
        "GOCLAW_AGENTS__MAIN__API_KEY": KEY,
        "GOCLAW_LOG__FORMAT": form.value,
        "GOCLAW_LOG__LEVEL": "debug",
    }
    configure(load(env=env), file=tmp_path / "log")
    async with a_service(tmp_path, Breaking(), channel=BreakingChannel()) as gateway:
        await gateway.until(lambda: gateway.said)
        await gateway.channel.deliver(message("work"))
        await gateway.until(lambda: "channel_send_crashed" in (tmp_path / "log").read_text())
        (run,) = await gateway.store.runs()
    text = (tmp_path / "log").read_text()
    assert "LibraryError" in text
    assert HIDDEN in text
    for secret in (TOKEN, TOKEN.partition(":")[2], KEY):
        assert secret not in text
    if form is LogFormat.JSON:
        lines = [orjson.loads(line) for line in text.splitlines()]
        broken = [line for line in lines if line["logger"] == "some.library"]
        assert len(broken) >= 2
        about = {(line["run_id"], line["session"]) for line in broken}
        assert about == {(run.id, run.session)}, "of its work, and of the delivery of what it says"


# ---------------------------------------------------------------------- edits of settings


async def test_stored_edits_are_in_effect_at_the_start_and_new_ones_at_once(
    tmp_path: Path,
) -> None:
    """SPEC OPS-11: one that does not fit is named in the status, and stops nothing."""
    database = MemoryDatabase()
    stored = [
        NewSettingEdit("lanes.main.size", "1", "2", "1"),
        NewSettingEdit("agents.gone.model", "offline", None, "offline"),
    ]
    before = MemoryStore(database)
    await before.add_setting_edits(stored, source="API", expected=0, now=START)

    def share(store: FlakyStore) -> None:
        store._db = database

    agent = ScriptedAgent(otherwise=lambda _request: Block())
    async with a_service(tmp_path, agent, prepare=share) as gateway:
        await gateway.until(lambda: gateway.said)
        async with RemoteControl(socket_path(tmp_path)) as remote:
            for chat in ("ann", "bob"):
                await gateway.channel.deliver(message("work", chat=chat))
            await gateway.until(lambda: agent.active)
            (lane, *_) = (await remote.lanes.list()).lanes
            assert (lane.lane.concurrency, lane.lane.waiting) == (1, 1)
            (warning, *_) = (await remote.lanes.status()).warnings
            assert "agents.gone.model has no effect" in str(warning)
            wish = SettingChange("lanes.main.size", "2")
            view = await remote.settings.change([wish], source="")
            assert {one.path: one.value for one in view.editable}["lanes.main.size"] == "2"
            await gateway.until(lambda: len(agent.active) == 2)
            (newest, *_) = await remote.settings.history(limit=1)
    assert (newest.source, newest.before, newest.after) == ("command line", "1", "2")
