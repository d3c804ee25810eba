"""What is for a closed or deleted topic goes to the general one (SPEC CHAN-6, HB-7, HB-8)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.core.errors import ChatGone, TopicGone, Undeliverable
from goclaw_py.core.messages import (
    Inbound,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Role,
    Target,
    TopicChanged,
    TopicState,
)
from goclaw_py.records import OutboxState
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.testing.agents import ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, a_process, message, session_of, until
from tests.support.heartbeat_gateway import (
    EVERY,
    heartbeat_gateway,
    log_of,
    outcomes,
    saying,
    until_ended,
    write,
)
from tests.support.memory_store import MemoryDatabase
from tests.unit.chat.outbound.posts import AT_ONCE, put

FAMILY = Target("telegram", "default", "-7")
PLANS = replace(FAMILY, thread="5")
NOTE = "This was for the topic Plans in Family, which is closed."
ALERT = "The **meeting** with Ann begins in ten minutes, and its room was changed."
CREATED = TopicChanged(PLANS, PeerKind.GROUP, "Plans", True, TopicState.OPEN, "Family")
CLOSED = TopicChanged(PLANS, PeerKind.GROUP, state=TopicState.CLOSED, place_name="Family")


class Forum(RecordingChannel):
    """Refuses what goes to a closed topic, as the server does; None is the general one."""

    def __init__(self) -> None:
        super().__init__()
        self.closed_topics: dict[str | None, bool] = {}
        """By thread: whether it is closed, else it was deleted."""

    async def send(self, message: OutboundMessage) -> str:
        thread = message.target.thread
        if message.target.chat == FAMILY.chat and thread in self.closed_topics:
            self.attempts.append(message)
            raise TopicGone("TOPIC_CLOSED", closed=self.closed_topics[thread])
        return await super().send(message)

    @property
    def read(self) -> list[tuple[str, str | None, str]]:
        return [(one.target.chat, one.target.thread, one.text) for one in self.sent]


def in_plans(text: str) -> InboundMessage:
    return message(text, chat="-7", thread="5", sender="ann", peer=PeerKind.GROUP)


async def speak(
    gateway: GatewayProcess, chat: str = "-7", thread: str | None = "5", *before: Inbound
) -> None:
    """Let somebody speak, and the agent answer."""
    peer = PeerKind.GROUP if chat.startswith("-") else PeerKind.DIRECT
    said = message("hello", chat=chat, thread=thread, sender="ann", peer=peer)
    answered = len(gateway.channel.sent) + 1
    await gateway.gateway.accept([*before, said])
    await gateway.channel.until_sent(answered)
    await asyncio.sleep(2)


@pytest.mark.parametrize("how", ["closed", "deleted"])
async def test_a_reply_for_a_topic_that_is_gone_comes_in_the_general_one(how: str) -> None:
    """The topic is named once, and not tried again."""
    channel = Forum()
    async with a_process(ScriptedAgent(), AT_ONCE, channels=(channel,)) as gateway:
        channel.closed_topics["5"] = how == "closed"
        await gateway.gateway.accept([CREATED, in_plans("a")])
        await channel.until_sent(2)
        await asyncio.sleep(2)
        tried = len(channel.attempts)
        await put(gateway, OutboundMessage(PLANS, "more"), OutboundMessage(PLANS, "and more"))
        await channel.until_sent(4)
        note = NOTE if how == "closed" else NOTE.replace("is closed", "was deleted")
        texts = ["re: Ann (id ann): a", note, "more", "and more"]
        assert channel.read == [("-7", None, text) for text in texts]
        assert channel.sent[0].reply_to is None, "what it replies to is in the other topic"
        assert len(channel.attempts) == tried + 2
        assert {row.state for row in await gateway.store.outbox()} == {OutboxState.SENT}


async def test_the_mark_on_a_topic_survives_a_restart_and_is_known_to_others() -> None:
    database, first, second = MemoryDatabase(), Forum(), Forum()
    first.closed_topics["5"] = second.closed_topics["5"] = True
    async with a_process(ways=AT_ONCE, database=database, channels=(first,)) as gateway:
        await put(gateway, OutboundMessage(PLANS, "one"))
        await first.until_sent(2)
        await asyncio.sleep(2)
    async with a_process(ways=AT_ONCE, database=database, channels=(second,)) as gateway:
        await put(gateway, OutboundMessage(PLANS, "two"))
        await second.until_sent(1)
        await asyncio.sleep(5)
        assert [one.target for one in second.attempts] == [FAMILY]
        assert second.texts() == ["two"]


async def test_a_topic_that_is_closed_in_sight_is_not_tried() -> None:
    channel = Forum()
    async with a_process(ways=AT_ONCE, channels=(channel,)) as gateway:
        channel.closed_topics["5"] = True
        await gateway.gateway.accept([CREATED, CLOSED])
        await asyncio.sleep(1)
        await put(gateway, OutboundMessage(PLANS, "one"))
        await channel.until_sent(2)
        assert channel.texts() == ["one", NOTE]
        assert [one.target for one in channel.attempts] == [FAMILY, FAMILY]


@pytest.mark.parametrize("by_words", [True, False])
async def test_a_topic_that_is_open_again_gets_its_messages(by_words: bool) -> None:
    channel = Forum()
    async with a_process(ScriptedAgent(), AT_ONCE, channels=(channel,)) as gateway:
        await gateway.gateway.accept([CREATED, CLOSED])
        await asyncio.sleep(1)
        if by_words:
            await speak(gateway)
        else:
            await gateway.gateway.accept([replace(CLOSED, state=TopicState.OPEN)])
            await asyncio.sleep(1)
            await put(gateway, OutboundMessage(PLANS, "hello"))
            await channel.until_sent(1)
        said = "re: Ann (id ann): hello" if by_words else "hello"
        assert channel.read == [("-7", "5", said)]
        assert not await gateway.store.gone_topics()


async def test_a_general_topic_that_was_opened_unseen_is_found_open() -> None:
    channel = Forum()
    async with a_process(ways=AT_ONCE, channels=(channel,)) as gateway:
        await gateway.gateway.accept([replace(CLOSED, target=FAMILY)])
        await asyncio.sleep(1)
        await put(gateway, OutboundMessage(FAMILY, "one"))
        await channel.until_sent(1)
        await until(lambda: not gateway.database.topics[FAMILY].state)


async def test_a_reply_that_no_topic_takes_is_dead() -> None:
    """SPEC IO-3: operators find it; nobody in the chat could read of it."""
    channel = Forum()
    async with a_process(ScriptedAgent(), AT_ONCE, channels=(channel,)) as gateway:
        channel.closed_topics = {"5": True, None: True}
        await gateway.gateway.accept([in_plans("hello")])
        await asyncio.sleep(10)
        (row,) = await gateway.store.outbox()
        assert (row.state, row.error) == (OutboxState.FAILED, "the general topic is closed")
        assert [one.target for one in channel.attempts] == [PLANS, FAMILY]


async def test_names_that_nobody_has_told_are_no_ids() -> None:
    channel = Forum()
    async with a_process(ways=AT_ONCE, channels=(channel,)) as gateway:
        channel.closed_topics["5"] = False
        await put(gateway, OutboundMessage(PLANS, "one"))
        await channel.until_sent(2)
        assert channel.texts() == ["one", "This was for a topic, which was deleted."]


async def test_a_topic_is_called_what_it_was_called_last() -> None:
    """Messages tell its first name only."""
    channel = Forum()
    renamed = replace(CREATED, name="New plans", state=None)
    async with a_process(ScriptedAgent(), AT_ONCE, channels=(channel,)) as gateway:
        said = in_plans("hello")
        await gateway.gateway.accept([renamed, replace(said, topic_name="Plans")])
        await channel.until_sent(1)
        assert (await gateway.store.topic(PLANS)).name == "New plans"


async def test_a_message_names_a_topic_that_was_made_before_the_bot_came() -> None:
    channel = Forum()
    async with a_process(ScriptedAgent(), AT_ONCE, channels=(channel,)) as gateway:
        for _ in range(2):
            said = in_plans("hello")
            await gateway.gateway.accept([replace(said, topic_name="Plans")])
        await channel.until_sent(2)
        assert (await gateway.store.topic(PLANS)).name == "Plans"
        assert gateway.store.calls["note_topic"] == 1


async def test_the_answer_to_a_stop_comes_in_the_general_topic() -> None:
    """SPEC CMD-1."""
    channel = Forum()
    async with a_process(ways=AT_ONCE, channels=(channel,)) as gateway:
        channel.closed_topics["5"] = True
        await gateway.gateway.accept([in_plans("/stop")])
        await channel.until_sent(1)
        assert channel.sent[0].target == FAMILY


async def test_the_same_alert_comes_once_in_the_general_topic() -> None:
    """SPEC HB-7: five heartbeat runs, one alert, one note; the dead topic is tried once."""
    channel = Forum()
    async with a_process(saying(ALERT), heartbeat_gateway(), channels=(channel,)) as gateway:
        write(gateway)
        await speak(gateway, "-7", "5", CREATED)
        channel.closed_topics["5"] = True
        await until_ended(gateway, 5)
        await asyncio.sleep(5)
        assert channel.read[1:] == [("-7", None, ALERT), ("-7", None, NOTE)]
        assert [one.target for one in channel.attempts[1:]] == [PLANS, FAMILY, FAMILY]
        assert await outcomes(gateway) == ["alerted", *["duplicate"] * 4]


async def test_an_alert_in_the_general_topic_is_in_the_history_that_is_read_there() -> None:
    """SPEC AGENT-7: an answer to it is understood."""
    channel = Forum()
    async with a_process(saying(ALERT), heartbeat_gateway(), channels=(channel,)) as gateway:
        write(gateway)
        await speak(gateway, "-7", None)
        await speak(gateway, "-7", "5", CREATED)
        await gateway.gateway.accept([CLOSED])
        await until_ended(gateway, 1)
        await channel.until_sent(4)
        history = await gateway.store.history(session_of("-7", peer=PeerKind.GROUP))
        said = [one.entry.text for one in history if one.entry.role is Role.ASSISTANT]
        assert [ALERT in text for text in said] == [False, True]


@pytest.mark.parametrize("wanted", ["last", "explicit"])
@pytest.mark.parametrize("seen", [True, False])
async def test_an_alert_that_no_topic_takes_is_told_once_in_the_chat_before(
    wanted: str, seen: bool
) -> None:
    """SPEC HB-8: at once if both were closed in sight, else as for a chat that is gone."""
    channel = Forum()
    policy = HeartbeatPolicy(interval=EVERY)
    if wanted == "explicit":
        policy = replace(policy, target=PLANS)
    async with a_process(saying(ALERT), heartbeat_gateway(policy), channels=(channel,)) as gateway:
        write(gateway)
        await speak(gateway, "bob", None)
        await speak(gateway, "-7", "5", CREATED)
        channel.closed_topics = {"5": True, None: True}
        if seen:
            await gateway.gateway.accept([CLOSED, replace(CLOSED, target=FAMILY)])
        attempts = len(channel.attempts)
        await until_ended(gateway, 5)
        await asyncio.sleep(60)
        (told,) = channel.read[2:]
        assert told[:2] == ("bob", None)
        assert ALERT in told[2]
        assert "the topic Plans in Family" in told[2]
        assert "-7" not in told[2]
        assert len(channel.attempts) - attempts == (1 if seen else 3)
        first = "alerted" if seen else "delivery_failed"
        assert await outcomes(gateway) == [first, *["duplicate"] * 4]


async def test_only_the_first_alert_tells_why_it_comes_here() -> None:
    channel = Forum()
    alerts = saying(*(f"{ALERT} {number}" for number in range(3)))
    async with a_process(alerts, heartbeat_gateway(), channels=(channel,)) as gateway:
        write(gateway)
        await speak(gateway, "bob", None)
        await speak(gateway, "-7", "5", CREATED)
        await gateway.gateway.accept([CLOSED, replace(CLOSED, target=FAMILY)])
        await until_ended(gateway, 2)
        await channel.until_sent(4)
        first, second = channel.sent[2:]
        assert first.text.endswith(
            "(Sent here, because messages to the topic Plans in Family cannot be delivered.)"
        )
        assert second.text == f"{ALERT} 1"


@pytest.mark.parametrize("error", [ChatGone("kicked"), Undeliverable("not enough rights")])
async def test_an_alert_that_its_general_topic_refuses_is_told_once_elsewhere(
    error: Exception,
) -> None:
    """SPEC HB-7: the bot was thrown out, or may not write."""

    class Refusing(Forum):
        async def send(self, message: OutboundMessage) -> str:
            if message.target == FAMILY:
                self.attempts.append(message)
                raise error
            return await super().send(message)

    channel = Refusing()
    async with a_process(saying(ALERT), heartbeat_gateway(), channels=(channel,)) as gateway:
        write(gateway)
        await speak(gateway, "bob", None)
        await speak(gateway, "-7", "5", CREATED)
        channel.closed_topics["5"] = True
        await until_ended(gateway, 5)
        await asyncio.sleep(60)
        assert [chat for chat, _, text in channel.read[2:] if ALERT in text] == ["bob"]
        assert await outcomes(gateway) == ["delivery_failed", *["duplicate"] * 4]


async def test_what_a_channel_has_written_is_told_elsewhere_as_people_read_it() -> None:
    """Its markup is not one of the other chat's."""

    class Marking(RecordingChannel):
        def parts(self, text: str) -> list[str]:
            return [text.replace("**meeting**", "<b>meeting</b>")]

        def readable(self, part: str) -> str:
            return part.replace("<b>", "").replace("</b>", "")

    channel = Marking()
    async with a_process(saying(ALERT), heartbeat_gateway(), channels=(channel,)) as gateway:
        write(gateway)
        await speak(gateway, "bob", None)
        await speak(gateway, "cat", None)
        channel.fail(ChatGone("blocked"), chat="cat")
        await until_ended(gateway, 1)
        await channel.until_sent(3)
        last = channel.sent[-1]
        assert last.text.endswith(ALERT.replace("**", ""))
        assert not last.rich
        (heartbeat_run,) = await log_of(gateway)
        assert heartbeat_run.outcome == "delivery_failed"


async def test_what_happens_in_the_groups_of_strangers_is_not_stored() -> None:
    async with a_process(channels=(RecordingChannel(trusted=False),)) as gateway:
        await gateway.gateway.accept([CREATED, CLOSED])
        await asyncio.sleep(1)
        assert gateway.database.topics == {}
