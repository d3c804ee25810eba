"""Conversations of the console: their agent, their title and their end (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.core.errors import NotAChat, NotFound, SessionBusy
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, OutFile, Sender
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.session_keys import DirectPolicy
from goclaw_py.operations.sessions.operations import Sessions
from goclaw_py.records import RunQuery
from goclaw_py.runs.agent_loop import AgentResult
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Return, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

OPEN = Ways(QueuePolicy(), access=DirectPolicy.OPEN)
CODER = AgentName("coder")
KEY = SessionKey("agent:main:console:direct:browser")


@pytest.fixture
async def gateway() -> AsyncIterator[GatewayProcess]:
    stranger = RecordingChannel(trusted=False)
    channels = (RecordingChannel(name="console"), stranger)
    agents = {CODER: ScriptedAgent()}
    async with a_process(ways=OPEN, channels=channels, others=agents) as made:
        yield made


def said(text: str, chat: str = "browser", **more: object) -> InboundMessage:
    told = replace(message(text, chat=chat, channel="console"), sender=Sender(chat))
    return replace(told, **more)  # type: ignore[arg-type]


async def ask(gateway: GatewayProcess, *said: InboundMessage) -> None:
    await gateway.gateway.accept(said)
    await until(lambda: gateway.pending == [])


async def title(gateway: GatewayProcess, key: SessionKey = KEY) -> str:
    return (await gateway.control.sessions.names([key]))[key]


async def test_only_on_a_trusted_channel_a_message_chooses_its_agent(
    gateway: GatewayProcess,
) -> None:
    await ask(gateway, said("hi", agent=CODER), said("hi"))
    (first, second) = sorted(await gateway.control.runs.list(), key=lambda run: run.agent)
    assert first.session == "agent:coder:console:direct:browser"
    assert second.session == KEY
    stranger = replace(message("hi"), agent=CODER)
    await ask(gateway, stranger)
    (third,) = await gateway.control.runs.list(RunQuery(session=session_of()))
    assert third.agent == "main"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("/status", "plan  the\nholidays", "more"), "plan the holidays"),
        (("x" * 200,), "x" * 59 + "…"),
        (("<b>\u202egnp.exe\x00\x1b[2J",), "<b>gnp.exe[2J"),
        (("\u200b",), "New conversation"),
        (("/status", "/queue"), "New conversation"),
        (("# **Plan** for `x`\n> see [the list](http://a.b/c)",), "Plan for x see the list"),
        (("__init__ and 2**3 or *so*",), "__init__ and 2**3 or *so*"),
    ],
)
async def test_the_first_message_gives_the_title(
    gateway: GatewayProcess, texts: tuple[str, ...], expected: str
) -> None:
    for text in texts:
        await ask(gateway, said(text))
    assert await title(gateway) == expected


@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        ("20260102-030405-00af", "hello"),
        ("fork-0190", "hello"),
        ("ann", "console ann"),
        ("20260102-030405", "console 20260102-030405"),
    ],
)
async def test_a_name_that_a_person_has_chosen_stays(
    gateway: GatewayProcess, chat: str, expected: str
) -> None:
    await ask(gateway, said("hello", chat))
    assert await title(gateway, SessionKey(f"agent:main:console:direct:{chat}")) == expected


async def test_a_file_without_words_gives_the_title(gateway: GatewayProcess) -> None:
    await ask(gateway, said("", attachments=(Attachment(FileKind.PHOTO, "x", "sea.png"),)))
    assert await title(gateway) == "sea.png"


async def test_a_title_is_given_changed_and_removed(gateway: GatewayProcess) -> None:
    control = gateway.control
    await ask(gateway, said("hello"))
    assert await control.sessions.rename(KEY, " My\n\u202eplans\0 ") == "My plans"
    await ask(gateway, said("more"))
    assert await title(gateway) == "My plans"
    with pytest.raises(ValueError, match="at most 80 characters, not 4096"):
        await control.sessions.rename(KEY, "x" * 4096)
    assert await control.sessions.rename(KEY, "") == "hello"
    assert await title(gateway) == "hello"
    assert await control.sessions.rename(KEY, "plans") == "plans"
    await ask(gateway, said("/new"), said("later"))
    assert await control.sessions.rename(KEY, "") == "hello"
    assert await title(gateway) == "hello"
    with pytest.raises(NotFound):
        await control.sessions.rename(SessionKey("agent:main:console:direct:none"), "x")


async def test_a_conversation_is_stopped_and_deleted_and_may_begin_again(
    gateway: GatewayProcess,
) -> None:
    gateway.scripted.script = (Block(),)
    await gateway.gateway.accept([said("first"), said("second")])
    await gateway.scripted.until_started(1)
    await gateway.control.sessions.delete(KEY)
    assert await gateway.outcomes() == [Outcome.CANCELLED]
    assert gateway.pending == []
    with pytest.raises(NotFound):
        await gateway.control.sessions.get(KEY)
    assert await title(gateway) == "New conversation"
    await ask(gateway, said("again"))
    assert [one.entry.text for one in await gateway.control.sessions.history(KEY)] == [
        "again",
        "re: again",
    ]
    assert await title(gateway) == "again"


async def test_what_does_not_end_is_not_deleted(gateway: GatewayProcess) -> None:
    gateway.scripted.script = (Block(),)
    await gateway.gateway.accept([said("first")])
    await gateway.scripted.until_started(1)
    offline = Sessions(gateway.store, gateway.clock)
    with pytest.raises(SessionBusy, match="so it was not deleted"):
        await offline.delete(KEY)
    await gateway.control.sessions.stop(KEY, everything=True)
    await until(lambda: gateway.pending == [])
    await asyncio.sleep(1)
    await offline.delete(KEY)
    assert await gateway.control.sessions.list() == []


async def test_a_conversation_of_the_web_chat_is_deleted_and_keeps_the_name_of_its_person() -> None:
    """SPEC CHAN-13: operators see it by its person, who cannot choose another name for it."""
    key = SessionKey("agent:main:web:direct:ann")
    async with a_process(channels=(RecordingChannel(name="web"),)) as gateway:
        await ask(gateway, message("hello", channel="web"))
        with pytest.raises(NotAChat, match="is no conversation of the console"):
            await gateway.control.sessions.rename(key, "Bob")
        await gateway.control.sessions.delete(key)
        assert await gateway.control.sessions.list() == []
        assert await title(gateway, key) == "Ann"


async def test_only_conversations_of_console_and_web_chat_are_renamed_or_deleted() -> None:
    async with a_process() as gateway:
        await gateway.ask("hello")
        for change in (
            gateway.control.sessions.rename(session_of(), "x"),
            gateway.control.sessions.delete(session_of()),
        ):
            with pytest.raises(NotAChat, match="is no conversation of the console"):
                await change
        assert len(await gateway.control.sessions.history(session_of())) == 2


async def test_the_history_keeps_the_files_of_both_sides(tmp_path: Path) -> None:
    channel = RecordingChannel(name="console", files={"x": b"data"})
    async with a_process(ways=Ways(QueuePolicy()), channels=(channel,)) as gateway:
        sent = OutFile(FileKind.DOCUMENT, str(gateway.workspace / "a.txt"), "a.txt", "text/plain")
        (gateway.workspace / "a.txt").write_text("a")
        gateway.scripted.script = (Return(AgentResult("here", files=(sent,))),)
        await ask(gateway, said("look", attachments=(Attachment(FileKind.PHOTO, "x", "sea.png"),)))
        asked, answered = await gateway.control.sessions.history(KEY)
        (got,) = asked.entry.files
        assert (got.kind, got.name) == (FileKind.PHOTO, "sea.png")
        assert Path(got.path).read_bytes() == b"data"
        assert answered.entry.files == (sent,)
