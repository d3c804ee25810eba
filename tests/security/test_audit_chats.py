"""Who has typed a command in the operators' chat, or pressed a button there (SPEC SEC-9).

Promised: the row names the token, sign-in or command line of the request, whichever node executes
the command, and whenever. Messages of other channels, and of guests, never carry such a name.
Tried: each way into the chat; commands that wait for the database, for another node, and for a
restart; a message of another channel that claims a name, within a request of an operator.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import httpx
import pytest

from channels.console import ConsoleChannel, WebChannel
from channels.telegram.adapter import TelegramChannel
from goclaw_py.app import gateway as app_gateway
from goclaw_py.app.service import Service
from goclaw_py.chat.terminals import Terminals
from goclaw_py.config import load
from goclaw_py.core.actors import AccessRole, Actor, ActorKind, acting, acts
from goclaw_py.core.approvals import ApprovalRequest
from goclaw_py.core.chat_commands import approval_buttons, stop_data
from goclaw_py.core.errors import ApprovalNeeded, StoreUnavailable
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.core.session_keys import DirectPolicy
from goclaw_py.core.web_links import secret_hash
from goclaw_py.operations.control import Control
from goclaw_py.records import AuditEntry, SignInMethod, Token
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE
from goclaw_py.testing.agents import Block, Do, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.web.command_line import command_headers, from_commands
from goclaw_py.web.front import WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.signin import COOKIE
from tests.integration.test_hooks import Database
from tests.support.apps import lend_api
from tests.support.harness import GatewayProcess, Ways, a_process, message
from tests.support.jobs import setup
from tests.support.memory_store import MemoryDatabase

ANN: Final = Actor(ActorKind.TOKEN, "ann", AccessRole.ADMIN, via="192.0.2.1")
BEN: Final = Actor(ActorKind.TOKEN, "ben", AccessRole.OPERATOR, via="192.0.2.1")
CAT: Final = Actor(ActorKind.PERSON, "cat@example.org", AccessRole.OPERATOR)
ROOT: Final = Actor(ActorKind.COMMAND_LINE, "root", AccessRole.ADMIN, via="goclaw chat")
PAY: Final = ApprovalRequest("c1", "pay", '{"to": "Mallory"}', timeout_s=600)
SESSION: Final = "agent:main:console:direct:desk"

BY_ANN: Final = ("token", "ann", "admin", "192.0.2.1 console:desk")
BY_BEN: Final = ("token", "ben", "operator", "192.0.2.1 console:desk")
BY_CAT: Final = ("person", "cat@example.org", "operator", "192.0.2.1 console:desk")
BY_ROOT: Final = ("command_line", "root", "admin", "goclaw chat console:desk")


def who(entry: AuditEntry) -> tuple[str, str, str, str]:
    return entry.kind, entry.actor, entry.role, entry.via


class ConsoleGateway(GatewayProcess):
    """A gateway with a console that is not made for tests: it is not cut off."""

    def kill(self) -> None:
        self.channels = {}
        super().kill()


def an_agent() -> ScriptedAgent:
    async def pay(request: RunRequest, _emit: Emit) -> str:
        if not any(isinstance(one, DecisionStep) for one in request.steps):
            raise ApprovalNeeded((PAY,))
        return "paid"

    def choose(request: RunRequest) -> Step:
        word = (request.own_texts or request.prompt).split()[0]
        steps: dict[str, Callable[[], Step]] = {"pay": lambda: Do(pay), "work": Block}
        return steps[word]() if word in steps else Say(f"re: {request.prompt}")

    return ScriptedAgent(otherwise=choose)


_numbers: Final = itertools.count(1)

Send = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a message or a press, by the last part of its path."""


@dataclass(slots=True)
class AuditedGateway:
    """A gateway with a chat of operators, and its web server."""

    gateway: GatewayProcess
    console: ConsoleChannel
    access: WebAccess

    def client(self, app: Any) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
        return httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def request(self, app: Any, path: str, body: dict[str, Any], **headers: str) -> None:
        async with self.client(app) as client:
            answer = await client.post(f"/api/chat/desk/{path}", json=body, headers=headers)
        assert answer.status_code == 204, answer.text

    @property
    def api(self) -> Any:
        return lend_api(self.gateway.container.audit.control(self.gateway.control), self.console)

    async def by_api(self, name: str, path: str, body: dict[str, Any]) -> None:
        app = Guard(self.api, address="127.0.0.1", sign_ins=self.access.sign_ins)
        await self.request(app, path, body, authorization=f"Bearer {secret_of(name)}")

    async def by_page(self, path: str, body: dict[str, Any]) -> None:
        """As the script of the page does, in the browser of a person who has signed in."""
        assert self.access.sign_ins is not None
        cookie = await self.access.sign_ins.begin(CAT, method=SignInMethod.OPENID)
        app = Guard(self.api, address="127.0.0.1", sign_ins=self.access.sign_ins)
        headers = {"cookie": f"{COOKIE}={cookie}", "origin": "http://localhost"}
        await self.request(app, path, body, **headers)

    async def by_command(self, path: str, body: dict[str, Any]) -> None:
        """As ``goclaw chat`` does with the gateway that runs."""
        with acts(ROOT):
            headers = command_headers()
        await self.request(from_commands(self.api), path, body, **headers)

    async def by_terminal(self, path: str, body: dict[str, Any]) -> None:
        """As ``goclaw chat`` and ``goclaw run`` do with a gateway of their own."""
        with acts(ROOT):
            if path == "press":
                await self.console.press(
                    "desk", body["press_id"], receipt=body["receipt"], data=body["data"]
                )
            else:
                await self.console.say("desk", body["message_id"], body["text"])

    async def type(self, send: Send, text: str) -> None:
        await send("messages", {"message_id": f"m{next(_numbers)}", "text": text})
        await asyncio.sleep(5)

    async def press(self, send: Send, data: str) -> None:
        body = {"press_id": f"p{next(_numbers)}", "receipt": "r1", "data": data}
        await send("press", body)
        await asyncio.sleep(5)

    async def entry(self) -> AuditEntry:
        (found,) = await self.gateway.store.audit_entries()
        return found


def secret_of(name: str) -> str:
    return f"goclaw_{(name * 43)[:43]}"


OPEN: Final = Ways(access=DirectPolicy.OPEN, jobs=setup(DEFAULT_PROFILE))


@asynccontextmanager
async def an_audited_gateway(
    database: MemoryDatabase | None = None, *more: RecordingChannel
) -> AsyncIterator[AuditedGateway]:
    console = ConsoleChannel()
    channels = (cast("RecordingChannel", console), *more)
    made = a_process(an_agent(), OPEN, channels=channels, kind=ConsoleGateway, database=database)
    async with made as gateway:
        for one in (ANN, BEN):
            assert one.role is not None
            token = Token(one.name, one.role, reads_text=True, created_at=gateway.clock.now())
            await gateway.store.add_token(token, secret_hash(secret_of(one.name)))
        access = WebAccess(
            "127.0.0.1", (), "t" * 32, lambda: gateway.clock.now().timestamp()
        ).with_store(gateway.store)
        yield AuditedGateway(gateway, console, access)


def sender(gateway: AuditedGateway, way: str) -> Send:
    async def by_token(path: str, body: dict[str, Any]) -> None:
        await gateway.by_api(way, path, body)

    others: dict[str, Send] = {
        "page": gateway.by_page,
        "command": gateway.by_command,
        "terminal": gateway.by_terminal,
    }
    return others.get(way, by_token)


WAYS: Final = {
    "page": BY_CAT,
    "ann": BY_ANN,
    "ben": BY_BEN,
    "command": BY_ROOT,
    "terminal": BY_ROOT,
}
"""Who is shown, for each way into the chat."""

COMMANDS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("/queue steer",), "session.queue_mode"),
    (("hello", "/new"), "session.reset"),
    (("hello", "/undo"), "session.undo"),
    (("work", "/stop"), "session.stop"),
    (("work", "stop"), "session.stop"),
    (("/stopall",), "session.stop_all"),
    (("/timezone Europe/Berlin",), "zone.choose"),
    (("pay", "/approve"), "approval.decide"),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("said", "action"), COMMANDS, ids=[" ".join(one) for one, _ in COMMANDS])
async def test_a_command_names_who_has_typed_it(
    way: str, said: tuple[str, ...], action: str
) -> None:
    async with an_audited_gateway() as audited:
        for text in said:
            await audited.type(sender(audited, way), text)
        entry = await audited.entry()
    assert (entry.action, entry.result) == (action, "ok")
    assert who(entry) == WAYS[way]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("button", ["approve", "stop"])
async def test_a_button_names_who_has_pressed_it(way: str, button: str) -> None:
    async with an_audited_gateway() as audited:
        # Another person has begun what is answered or stopped.
        await audited.type(sender(audited, "ann"), "pay" if button == "approve" else "work")
        if button == "approve":
            (asked,) = await audited.gateway.store.approvals()
            data = approval_buttons(asked.request.decisions, asked.id)[0][0].data
        else:
            data = stop_data(audited.gateway.dispatcher.runs()[0].id)
        await audited.press(sender(audited, way), data)
        entry = await audited.entry()
    assert entry.action == ("approval.decide" if button == "approve" else "session.stop")
    assert who(entry) == WAYS[way]


@pytest.mark.real_time
async def test_who_starts_a_gateway_types_in_its_terminal_and_does_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``goclaw run`` and ``goclaw chat``: what the gateway does, it does for others."""
    seen: list[Actor | None] = []
    entries: list[AuditEntry] = []

    class NotingService(Service):
        async def run(self, *given: Any) -> None:
            seen.append(acting())
            await super().run(*given)

    async def front(control: Control, terminals: Terminals) -> None:
        await terminals.say("desk", "m1", "/queue steer")
        while not entries:
            await asyncio.sleep(0.01)
            entries.extend(await control.audit.list())

    monkeypatch.setattr(app_gateway, "Database", Database)
    monkeypatch.setattr(app_gateway, "Service", NotingService)
    # It would take the log away from pytest.
    monkeypatch.setattr(app_gateway, "configure", lambda *_, **__: None)
    home = {"GOCLAW_HOME": str(tmp_path), "HOME": str(tmp_path), "GOCLAW_WEB__API": "false"}
    with acts(ROOT):
        async with asyncio.timeout(20):
            await app_gateway.run_gateway(load(None, home), say=lambda _line: None, front=front)
    assert seen == [None]
    assert [who(one) for one in entries] == [BY_ROOT]


# ---------------------------------------------------------------------------- later, elsewhere


def break_queue_mode(gateway: GatewayProcess) -> Callable[[], None]:
    """Let the command /queue wait for the database, until the result is called."""
    stored, is_away = gateway.store.choose_mode, True

    @functools.wraps(stored)
    async def away(*given: Any, **more: Any) -> None:
        if is_away:
            raise StoreUnavailable("away")
        await stored(*given, **more)

    def heal() -> None:
        nonlocal is_away
        is_away = False

    gateway.store.choose_mode = away  # type: ignore[method-assign]
    return heal


async def test_a_command_that_waited_for_the_database_names_who_has_typed_it() -> None:
    async with an_audited_gateway() as audited:
        heal = break_queue_mode(audited.gateway)
        await audited.type(sender(audited, "ben"), "/queue steer")
        assert await audited.gateway.store.audit_entries() == []
        heal()
        await asyncio.sleep(60)
        assert who(await audited.entry()) == BY_BEN


async def test_a_command_that_is_executed_after_a_restart_names_who_has_typed_it() -> None:
    database = MemoryDatabase()
    async with an_audited_gateway(database) as first:
        break_queue_mode(first.gateway)
        await first.type(sender(first, "ben"), "/queue steer")
        first.gateway.kill()
        await first.gateway.bury()
    async with an_audited_gateway(database) as second:
        await asyncio.sleep(60)
        entry = await second.entry()
        assert entry.node == second.gateway.node()
    assert who(entry) == BY_BEN


async def test_a_command_that_another_node_executes_names_who_has_typed_it() -> None:
    """The session is that of the other node: it has a run in progress."""
    database = MemoryDatabase()
    async with an_audited_gateway(database) as owner, an_audited_gateway(database) as other:
        await owner.type(sender(owner, "ann"), "work")
        await other.type(sender(other, "ben"), "/queue steer")
        await asyncio.sleep(60)
        entry = await owner.entry()
        assert entry.node == owner.gateway.node()
    assert who(entry) == BY_BEN


async def test_what_a_request_takes_up_besides_is_not_by_whom_it_is() -> None:
    """A request may execute the commands of others that waited: each is named by its own row."""
    async with an_audited_gateway() as audited:
        heal = break_queue_mode(audited.gateway)
        await audited.type(sender(audited, "ben"), "/queue steer")
        heal()
        await audited.type(sender(audited, "ann"), "/queue collect")
        await asyncio.sleep(60)
        second, first = await audited.gateway.store.audit_entries()
    assert (who(first), who(second)) == (BY_BEN, BY_ANN)


async def test_a_recorded_request_that_takes_up_a_command_of_another_leaves_two_rows() -> None:
    async with an_audited_gateway() as audited:
        await audited.type(sender(audited, "ben"), "hello")
        heal = break_queue_mode(audited.gateway)
        await audited.type(sender(audited, "ben"), "/queue steer")
        heal()
        with acts(ANN):
            control = audited.gateway.container.audit.control(audited.gateway.control)
            await control.sessions.send_message(SESSION, "hello", queue=True)
        sent, typed = await audited.gateway.store.audit_entries()
    assert [typed.action, sent.action] == ["session.queue_mode", "session.send"]
    assert (who(typed), who(sent)) == (BY_BEN, ("token", "ann", "admin", "192.0.2.1"))


# ---------------------------------------------------------------------------- other channels


async def test_a_message_of_another_channel_never_carries_an_actor() -> None:
    """Not if it says so itself, and not within a request of an operator."""
    telegram = RecordingChannel(trusted=False)
    async with an_audited_gateway(None, telegram) as audited:
        claimed = replace(message("/new"), by=ANN)
        with acts(ANN):
            await audited.gateway.gateway.accept([claimed])
            await audited.gateway.gateway.accept([replace(message("/stop"), by=ANN)])
        await asyncio.sleep(5)
        stop, new = await audited.gateway.store.audit_entries()
    ann = ("person", "telegram/default/ann Ann", "", "telegram:ann")
    assert who(stop) == who(new) == ann
    assert {stop.action, new.action} == {"session.reset", "session.stop"}


async def test_a_message_of_the_console_is_by_whom_the_request_is_only() -> None:
    async with an_audited_gateway() as audited:
        claimed = message("/new", chat="desk", channel="console")
        await audited.gateway.gateway.accept([replace(claimed, by=ANN)])
        await asyncio.sleep(5)
        entry = await audited.entry()
    assert who(entry) == ("person", "console/default/desk Desk", "", "console:desk")


def test_only_the_console_is_trusted() -> None:
    """What a request to the gateway says of its actor counts nowhere else."""
    assert ConsoleChannel.trusted
    assert not WebChannel.trusted
    assert not TelegramChannel.trusted


async def test_guests_stay_named_as_they_are() -> None:
    web = WebChannel()
    channel = cast("RecordingChannel", web)

    class WebGateway(ConsoleGateway):
        def _rules(self, channel: RecordingChannel) -> Any:
            return super()._rules(RecordingChannel(trusted=channel.trusted))

    made = a_process(an_agent(), OPEN, channels=(channel,), kind=WebGateway)
    async with made as gateway:
        with acts(Actor(ActorKind.PERSON, "web/default/eve", via="192.0.2.9")):
            await web.say("eve", "m1", "/new")
        await asyncio.sleep(5)
        (entry,) = await gateway.store.audit_entries()
    assert who(entry) == ("person", "web/default/eve eve", "", "web:eve")


# ---------------------------------------------------------------------------- who may see it


async def test_lists_of_messages_do_not_tell_who_has_typed_them() -> None:
    """Viewers and operators read them; the audit log is for admins."""
    async with an_audited_gateway() as audited:
        heal = break_queue_mode(audited.gateway)
        await audited.type(sender(audited, "ben"), "/queue steer")
        (stored,) = audited.gateway.database.pending.values()
        assert stored.message.by == BEN
        one = await audited.gateway.control.deliveries.dead_letter(stored.id)
        heal()
    assert one.row.message.by is None


async def test_what_is_no_command_is_stored_without_an_actor() -> None:
    """It costs nothing, and says no more of people than before."""
    async with an_audited_gateway() as audited:
        await audited.type(sender(audited, "ben"), "work")
        (stored,) = audited.gateway.database.pending.values()
    assert stored.message.by is None
