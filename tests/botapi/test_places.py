"""Groups and topics as the server has them."""

from __future__ import annotations

import pytest

from tests.botapi import BotApi, FileKind
from tests.botapi.caller import Wire
from tests.botapi.test_people import inner

ANN, BOB, TEAM, OLD = 7, 8, -1005, -5


async def test_a_migration_is_told_in_both_chats_and_refuses_the_old_one(
    api: BotApi, wire: Wire
) -> None:
    api.add_group(OLD, "Team", kind="group")
    api.migrate(OLD, TEAM)
    before, after = await wire.new("message")
    assert (before["migrate_to_chat_id"], inner(before, "chat", "id")) == (TEAM, OLD)
    assert (after["migrate_from_chat_id"], inner(after, "chat", "type")) == (OLD, "supergroup")
    refused = await wire.call("sendMessage", chat_id=OLD, text="x")
    assert refused["description"] == ("Bad Request: group chat was upgraded to a supergroup chat")
    assert refused["parameters"] == {"migrate_to_chat_id": TEAM}
    await wire.result("sendMessage", chat_id=TEAM, text="x")
    with pytest.raises(ValueError, match="only a basic group"):
        api.migrate(TEAM, -1006)


async def test_a_thrown_out_bot_is_told_so_and_hears_nothing(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.kick(TEAM, by=BOB)
    api.kick(TEAM)
    api.say(ANN, "alone", chat_id=TEAM)
    change = (await wire.new("my_chat_member"))[0]
    assert (inner(change, "new_chat_member", "status"), inner(change, "from", "id")) == (
        "kicked",
        BOB,
    )
    words = await wire.refusal("sendMessage", chat_id=TEAM, text="x")
    assert words == "Forbidden: bot was kicked from the supergroup chat"
    api.remove(TEAM)
    words = await wire.refusal("sendMessage", chat_id=TEAM, text="x")
    assert words == "Forbidden: bot is not a member of the supergroup chat"
    api.invite(TEAM)
    await wire.result("sendMessage", chat_id=TEAM, text="x")
    assert "new_chat_members" in (await wire.new("message"))[-1]


async def test_a_muted_bot_may_not_write(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.mute(TEAM)
    words = await wire.refusal("sendMessage", chat_id=TEAM, text="x")
    assert words == "Bad Request: not enough rights to send text messages to the chat"
    assert "send photos" in await wire.refusal("sendPhoto", chat_id=TEAM, photo="x")
    assert inner(await wire.result("getChat", chat_id=TEAM), "permissions") == {
        "can_send_messages": False
    }
    api.unmute(TEAM)
    await wire.result("sendMessage", chat_id=TEAM, text="x")
    changes = await wire.new("my_chat_member")
    assert inner(changes[0], "new_chat_member", "can_send_messages") is False


async def test_a_vanished_chat_is_not_found(chat: Wire) -> None:
    chat.api.vanish(ANN)
    words = await chat.refusal("sendMessage", chat_id=ANN, text="x")
    assert words == "Bad Request: chat not found"


async def test_what_happens_in_a_group_is_told(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.join(TEAM, BOB)
    api.leave(TEAM, BOB)
    api.rename(TEAM, "Crew")
    api.pin(TEAM, 1)
    api.service(TEAM, {"group_chat_created": True})
    kinds = [seen.service for seen in api.view(TEAM)]
    assert kinds == [
        "new_chat_members",
        "left_chat_member",
        "new_chat_title",
        "pinned_message",
        "group_chat_created",
    ]
    assert len(await wire.new("message")) == 5
    assert (await wire.result("getChat", chat_id=TEAM))["title"] == "Crew"


async def test_a_topic_is_told_as_what_its_messages_reply_to(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team", topics=[55])
    api.say(ANN, "here", chat_id=TEAM, thread=55)
    message = (await wire.new("message"))[0]
    assert message["is_topic_message"] is True
    assert "forum_topic_created" in str(message["reply_to_message"])
    sent = await wire.result("sendMessage", chat_id=TEAM, text="x", message_thread_id=55)
    assert inner(sent, "reply_to_message", "message_id") == 55
    assert inner(sent, "chat", "is_forum") is True
    assert [(seen.reply_to, seen.thread) for seen in api.view(TEAM)[1:]] == [(None, 55)] * 2


async def test_a_closed_topic_refuses_and_a_deleted_one_is_not_found(
    api: BotApi, wire: Wire
) -> None:
    api.add_group(TEAM, "Team", topics=[55])
    api.say(ANN, "here", chat_id=TEAM, thread=55)
    there = {"chat_id": TEAM, "text": "x", "message_thread_id": 55}
    api.close_topic(TEAM, 55)
    assert await wire.refusal("sendMessage", **there) == "Bad Request: TOPIC_CLOSED"
    api.reopen_topic(TEAM, 55)
    await wire.result("sendMessage", **there)
    services = [seen.service for seen in api.view(TEAM) if seen.service]
    assert services[1:] == ["forum_topic_closed", "forum_topic_reopened"]
    api.delete_topic(TEAM, 55)
    words = await wire.refusal("sendMessage", **there)
    assert words == "Bad Request: message thread not found"
    assert api.view(TEAM) == []


async def test_a_closed_general_topic_refuses_messages_without_a_thread(
    api: BotApi, wire: Wire
) -> None:
    api.add_group(TEAM, "Team", topics=[55])
    api.close_topic(TEAM, 1)
    words = await wire.refusal("sendMessage", chat_id=TEAM, text="x")
    assert words == "Bad Request: TOPIC_CLOSED"
    await wire.result("sendMessage", chat_id=TEAM, text="x", message_thread_id=55)


async def test_a_private_chat_can_have_topics(chat: Wire) -> None:
    chat.api.open_topic(ANN, 9, "Work")
    assert "forum_topic_created" in (await chat.new("message"))[0]
    chat.api.say(ANN, "x", thread=9)
    await chat.result("sendMessage", chat_id=ANN, text="y", message_thread_id=9)
    assert [seen.thread for seen in chat.api.view(ANN)] == [None, 9, 9, 9]
    assert (await chat.result("getMe"))["has_topics_enabled"] is True


async def test_a_left_chat_takes_no_messages(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    await wire.result("leaveChat", chat_id=TEAM)
    assert "not a member" in await wire.refusal("sendMessage", chat_id=TEAM, text="x")
    api.say(ANN, "x")
    assert "private chats" in await wire.refusal("leaveChat", chat_id=ANN)


async def test_a_file_in_a_group_says_its_kind(api: BotApi) -> None:
    api.add_group(TEAM, "Team")
    api.send(ANN, FileKind.ANIMATION, chat_id=TEAM)
    seen = api.view(TEAM)[0].file
    assert seen is not None
    assert seen.kind is FileKind.ANIMATION
