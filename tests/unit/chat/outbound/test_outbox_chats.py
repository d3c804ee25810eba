"""Chats that moved or went away while something waited for them (SPEC CHAN-7)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.errors import ChatGone, ChatMoved
from goclaw_py.core.messages import OutboundMessage, PeerKind
from goclaw_py.records import OutboxState
from goclaw_py.testing.agents import Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import a_process, message, session_of, until
from tests.unit.chat.outbound.posts import AT_ONCE, put, to


class Migrating(RecordingChannel):
    """The chat ``-1`` is called ``-1001`` now."""

    async def send(self, message: OutboundMessage) -> str:
        if message.target.chat == "-1":
            self.attempts.append(message)
            raise ChatMoved("upgraded to a supergroup", "-1001")
        return await super().send(message)


async def test_a_reply_to_a_chat_that_moved_meanwhile_follows_it_at_once_with_all_behind_it() -> (
    None
):
    """SPEC CHAN-7, IO-4."""
    agent = ScriptedAgent(Say("one", after_s=5), Say("two", after_s=5))
    async with a_process(agent, AT_ONCE, channels=(Migrating(),)) as gateway:
        for text in ("a", "b"):
            await gateway.gateway.accept([message(text, chat="-1", peer=PeerKind.GROUP)])
        await until(lambda: len(gateway.channel.attempts) >= 2, within_s=5.2)
        await put(gateway, to("-1", "behind it"))
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts("-1001") == ["one", "behind it", "two"]
        assert asyncio.get_running_loop().time() < 12
        rows = await gateway.store.outbox()
        assert all(row.state is OutboxState.SENT for row in rows)
        assert not any(row.possible_duplicate for row in rows)
        sessions = [session.key for session in await gateway.store.sessions()]
        assert sessions == [session_of("-1001", peer=PeerKind.GROUP)]


@pytest.mark.parametrize("new", ["ann", "elsewhere"])
async def test_a_channel_that_says_moved_for_ever_is_asked_ever_more_rarely(new: str) -> None:
    async with a_process() as gateway:
        gateway.channel.fail(*(ChatMoved("moved", new) for _ in range(1000)), chat="ann")
        gateway.channel.fail(*(ChatMoved("moved", "ann") for _ in range(1000)), chat="elsewhere")
        if new == "elsewhere":
            gateway.channel.slow_s = {"ann": 1.0, "elsewhere": 1.0}  # as the pace has it
        await put(gateway, to("ann", "hello"))
        await asyncio.sleep(60)
        assert len(gateway.channel.attempts) < (10 if new == "ann" else 70)
        assert (await gateway.store.outbox())[0].state is not OutboxState.SENT


async def test_a_blocked_chat_is_marked_and_its_message_dead_with_the_reason() -> None:
    """SPEC CHAN-7, IO-3."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.fail(ChatGone("blocked by the user"))
        await gateway.say("hello")
        await until(lambda: bool(gateway.database.chats))
        await asyncio.sleep(1)
        (row,) = await gateway.store.outbox()
        assert (row.state, row.error) == (OutboxState.FAILED, "blocked by the user")
        (chat,) = await gateway.store.chats()
        assert (chat.chat, chat.peer, chat.gone) == ("ann", PeerKind.DIRECT, "blocked by the user")
        assert await gateway.ask("I am back") == "re: I am back"
        assert (await gateway.store.chats())[0].gone == ""


async def test_a_group_that_is_gone_is_marked_as_a_group() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.fail(ChatGone("kicked"))
        await gateway.gateway.accept([message("hello", chat="-1", peer=PeerKind.GROUP)])
        await until(lambda: bool(gateway.database.chats))
        assert (await gateway.store.chats())[0].peer is PeerKind.GROUP


@pytest.mark.parametrize(
    ("error", "call", "ends"),
    [
        (ChatGone("blocked"), "mark_chat", OutboxState.FAILED),
        (ChatMoved("moved", "ann2"), "move_chat", OutboxState.SENT),
    ],
)
async def test_a_bug_in_the_store_leaves_no_chat_waiting_for_the_restart(
    error: ChatGone | ChatMoved, call: str, ends: OutboxState, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC IO-4: a row that stays ``sending`` would block its chat."""
    async with a_process() as gateway:

        async def again() -> None:
            for _ in range(3):
                gateway.store.errors[call] = RuntimeError("a bug")
                await until(lambda: call not in gateway.store.errors)

        gateway._tasks.append(asyncio.create_task(again()))
        gateway.channel.fail(error)
        await put(gateway, to("ann", "one"), to("ann", "two"))
        await until(lambda: not gateway.database.unsent)
        assert gateway.channel.texts()[-1] == "two"
        assert (await gateway.store.outbox_row(1)).state is ends  # type: ignore[union-attr]  # it is there
        assert "chat_state_not_stored" in caplog.messages
