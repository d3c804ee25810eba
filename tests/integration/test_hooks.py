"""A whole gateway whose channel is called from the web, over TCP (SPEC CHAN-2, QUEUE-11)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from goclaw_py.agents.tools import Registry
from goclaw_py.app import gateway as app_gateway
from goclaw_py.app import listeners
from goclaw_py.app.parts import Parts, build_parts, chat_rules
from goclaw_py.app.progress import OnProgress
from goclaw_py.chat.channel import Hook, InboundHandler, WebAnswer, WebRequest
from goclaw_py.chat.terminals import Terminals
from goclaw_py.config import Settings, load
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.operations.control import Control
from goclaw_py.records import Store
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.web.hooks import HookConflict
from goclaw_py.web.sockets import is_answered, socket_path
from goclaw_py.web.tcp import CannotListen
from tests.support.flaky_store import FlakyStore
from tests.support.harness import message

pytestmark = pytest.mark.real_time

LIMIT_S = 20
HEAD = b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s"


class CalledChannel(RecordingChannel):
    """Takes each request's body as a message of ann."""

    intake: InboundHandler | None = None
    path = "/called"

    @property
    def hook(self) -> Hook:
        return Hook(self.path, self.take)

    async def take(self, request: WebRequest) -> WebAnswer:
        if self.intake is None:
            return WebAnswer(503, "not now")
        await self.intake.accept([message(request.body.decode())])
        return WebAnswer(200)

    async def receive(self, intake: InboundHandler) -> None:
        self.intake = intake
        try:
            await super().receive(intake)
        finally:
            self.intake = None


class Database:
    """Stands for the server: it is always there."""

    kind = "embedded"
    opened = 0

    def __init__(
        self, _settings: Settings, _say: Callable[[str], None], *, on_progress: OnProgress
    ) -> None:
        pass

    async def open(self, *, wait: bool, may_migrate: bool) -> FlakyStore:
        Database.opened += 1
        return FlakyStore()

    async def watch(self, _store: Store) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


@dataclass
class Running:
    channel: RecordingChannel
    stop: asyncio.Event
    task: asyncio.Task[int]
    said: list[str]

    @property
    def port(self) -> int:
        (line,) = [line for line in self.said if "webhooks" in line]
        address = line.split()[1]
        assert address.startswith("http://127.0.0.1:")
        return int(address.rpartition(":")[2])

    async def post(self, body: str, path: str = "/called") -> int:
        """The status of the answer to a request on a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(HEAD % (path.encode(), len(body), body.encode()))
            return int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        finally:
            writer.close()
            await writer.wait_closed()

    async def until(self, reached: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not reached():
                assert not self.task.done(), self.task
                await asyncio.sleep(0.01)


@dataclass
class House:
    """Where gateways start; each has a home folder of its own."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    agent: ScriptedAgent = field(default_factory=ScriptedAgent)

    def settings(self, name: str, port: int) -> Settings:
        home = self.folder / name
        home.mkdir(exist_ok=True)
        env = {"GOCLAW_HOME": str(home), "HOME": str(home), "GOCLAW_WEB__PORT": str(port)}
        env |= {"GOCLAW_SHUTDOWN__WAIT": "1s", "GOCLAW_RUNS__CANCEL_GRACE": "1s"}
        return load(None, env | {"GOCLAW_WEB__API": "false"})

    @asynccontextmanager
    async def gateway(
        self, *channels: RecordingChannel, name: str = "one", port: int = 0, ready: bool = True
    ) -> AsyncIterator[Running]:
        def parts(settings: Settings) -> Parts:
            console = build_parts(settings).channels
            made = {**console, **{(one.name, one.account): one for one in channels}}
            rules = chat_rules(settings, {place: each.trusted for place, each in made.items()})
            return Parts(made, rules, {MAIN_AGENT: self.agent}, Registry({}))

        self.monkeypatch.setattr(app_gateway, "build_parts", parts)
        stop, said = asyncio.Event(), list[str]()

        async def front(_control: Control, _terminals: Terminals) -> None:
            await stop.wait()

        settings = self.settings(name, port)
        work = app_gateway.run_gateway(settings, say=said.append, front=front)
        running = Running(channels[0], stop, asyncio.create_task(work), said)
        try:
            if ready:
                await running.until(lambda: said)
                await running.until(lambda: getattr(channels[0], "receiving", 0))
            yield running
        finally:
            stop.set()
            await asyncio.wait({running.task}, timeout=LIMIT_S)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr(app_gateway, "Database", Database)
    # It would take the log away from pytest.
    monkeypatch.setattr(app_gateway, "configure", lambda *_, **__: None)
    monkeypatch.setattr(Database, "opened", 0)
    return House(tmp_path, monkeypatch)


async def test_what_is_posted_to_a_hook_is_answered_in_the_chat(house: House) -> None:
    channel = CalledChannel()
    async with house.gateway(channel) as gateway:
        assert await gateway.post("hello") == 200
        await gateway.until(channel.texts)
        assert channel.texts("ann") == ["re: hello"]
        assert await gateway.post("hello", "/elsewhere") == 404
        assert await gateway.post("hello", "/api/status") == 404
        idle = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(5)]
        gateway.stop.set()
        async with asyncio.timeout(5):
            assert await gateway.task == 0
        for reader, writer in idle:
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await gateway.post("anybody?")


async def test_hooks_answer_until_the_runs_have_ended_that_a_drain_waits_for(house: House) -> None:
    """QUEUE-11: 503, so that the sender comes again, and no closed door."""
    house.agent = ScriptedAgent(otherwise=lambda _request: Block())
    async with house.gateway(CalledChannel()) as gateway:
        assert await gateway.post("work") == 200
        await gateway.until(lambda: house.agent.active)
        gateway.stop.set()
        await gateway.until(lambda: gateway.channel.receiving == 0)
        assert await gateway.post("too late") == 503
        assert await gateway.task == 0


async def test_without_hooks_nothing_listens(house: House) -> None:
    """SEC-1."""

    def listen(*_arguments: object) -> None:
        raise AssertionError("nobody wants to be called")

    house.monkeypatch.setattr(listeners, "listen_tcp", listen)
    async with house.gateway(RecordingChannel()) as gateway:
        assert not [line for line in gateway.said if "webhooks" in line]
        gateway.stop.set()
        assert await gateway.task == 0


async def test_a_port_that_is_taken_stops_the_start_before_the_database_is_opened(
    house: House,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        async with house.gateway(CalledChannel(), port=port, ready=False) as gateway:
            with pytest.raises(CannotListen, match=f"web.port = {port}: another program"):
                await gateway.task
    assert Database.opened == 0
    assert not is_answered(socket_path(house.folder / "one" / "state"))


async def test_a_second_gateway_on_the_port_of_the_first_disturbs_it_in_no_way(
    house: House,
) -> None:
    async with house.gateway(CalledChannel()) as first:
        port = first.port
        async with house.gateway(CalledChannel(), name="two", port=port, ready=False) as second:
            with pytest.raises(CannotListen, match="set another port"):
                await second.task
        assert await first.post("still there?") == 200
        await first.until(first.channel.texts)


async def test_two_channels_at_one_path_stop_the_start_before_anything_listens(
    house: House,
) -> None:
    channels = CalledChannel(), CalledChannel(account="work")
    async with house.gateway(*channels, ready=False) as gateway:
        with pytest.raises(HookConflict, match="set another path for one of them"):
            await gateway.task
    assert Database.opened == 0
    assert not (house.folder / "one" / "state").exists()
