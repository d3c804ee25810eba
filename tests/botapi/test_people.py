"""What people do, in private and in groups, reaches the bot in the server's shape."""

from __future__ import annotations

import pytest

from tests.botapi import BotApi, FileKind
from tests.botapi.caller import ANN, BOB, OLD, TEAM, Wire
from tests.botapi.people import OTHER
from tests.botapi.rules import Json, is_object


def inner(content: Json, *path: str) -> object:
    """A field of a field."""
    found: object = content
    for name in path:
        assert is_object(found)
        found = found[name]
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ü @Bob_1 x", [("mention", 2, 6)]),
        ("😀 /stop@GoclawTestBot now", [("bot_command", 3, 19)]),
        ("see https://x.example/a?b=1.", [("url", 4, 23)]),
        ("a@b.example #tag #1", [("email", 0, 11), ("hashtag", 12, 4)]),
        ("me/too a@b @bo", []),
    ],
)
def test_entities_are_found_in_what_is_typed(text: str, found: list[tuple[str, int, int]]) -> None:
    message = BotApi().say(ANN, text)[0]
    entities = message.get("entities", [])
    assert isinstance(entities, list)
    assert [(e["type"], e["offset"], e["length"]) for e in entities] == found


async def test_a_reply_carries_the_message_and_the_quote(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "😀 one two three")
    api.say(ANN, "why?", reply_to=1, quote="two")
    api.say(ANN, "nested", reply_to=2)
    _, reply, nested = await wire.new("message")
    assert inner(reply, "reply_to_message", "text") == "😀 one two three"
    assert reply["quote"] == {"text": "two", "position": 7, "is_manual": True}
    assert "reply_to_message" not in str(nested["reply_to_message"])
    with pytest.raises(ValueError, match="only a part"):
        api.say(ANN, "x", reply_to=1, quote="four")


async def test_an_edit_is_told_with_the_new_text(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "/one")
    api.send(ANN, FileKind.PHOTO, caption="old")
    await wire.new("message")
    api.edit(ANN, 1, "two")
    api.edit(ANN, 2, "new")
    text, caption = await wire.new("edited_message")
    assert (text["message_id"], text["text"], "entities" in text) == (1, "two", False)
    assert (caption["caption"], "edit_date" in caption) == ("new", True)
    with pytest.raises(ValueError, match="only one's own"):
        api.edit(BOB, 1, "three", chat_id=ANN)


@pytest.mark.parametrize("kind", FileKind)
async def test_every_kind_of_file_can_be_fetched(api: BotApi, wire: Wire, kind: FileKind) -> None:
    api.send(ANN, kind, caption="see", content=b"abc", size=12)
    message = (await wire.new("message"))[0]
    content = message[kind.value]
    content = content[-1] if isinstance(content, list) else content
    assert is_object(content)
    assert (content["file_size"], message["caption"]) == (12, "see")
    file = await wire.result("getFile", file_id=content["file_id"])
    url = f"{api.url}/file/bot{api.token}/{file['file_path']}"
    async with wire.session.get(url) as answer:
        assert await answer.read() == b"abc"
    assert [call.method for call in api.transcript(ok=True)][-1] == "download"


async def test_an_album_is_one_update_for_each_file(api: BotApi, wire: Wire) -> None:
    api.album(ANN, [FileKind.PHOTO, FileKind.PHOTO, FileKind.VIDEO], caption="all")
    messages = await wire.new("message")
    assert [message.get("caption") for message in messages] == ["all", None, None]
    assert len({str(message["media_group_id"]) for message in messages}) == 1


@pytest.mark.parametrize("kind", OTHER)
async def test_what_is_no_file_is_told_too(api: BotApi, wire: Wire, kind: str) -> None:
    api.send_other(ANN, OTHER[kind])
    assert kind in (await wire.new("message"))[0]


async def test_a_press_in_a_group_tells_who_and_where(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team", topics=[55])
    await wire.result("sendMessage", chat_id=TEAM, text="choose", message_thread_id=55)
    press = api.press(BOB, 1, "yes", chat_id=TEAM, name="Bob")
    query = (await wire.new("callback_query"))[0]
    assert (query["id"], query["data"], inner(query, "from", "id")) == (press, "yes", BOB)
    assert inner(query, "message", "message_thread_id") == 55
    api.delete(TEAM, 1)
    api.press(BOB, 1, "yes", chat_id=TEAM)
    assert inner((await wire.new("callback_query"))[0], "message", "date") == 0


async def test_a_press_can_be_answered_for_150_seconds(chat: Wire) -> None:
    await chat.result("sendMessage", chat_id=ANN, text="choose")
    first, second = (chat.api.press(ANN, 2, "yes") for _ in range(2))
    chat.api.skip(149)
    await chat.result("answerCallbackQuery", callback_query_id=first, text="ok", show_alert=True)
    chat.api.skip(2)
    late = await chat.refusal("answerCallbackQuery", callback_query_id=second)
    assert "query is too old and response timeout expired" in late
    done, missed = chat.api.presses()
    assert done.waited_s == pytest.approx(149, abs=1)
    assert (done.text, done.alert, missed.waited_s) == ("ok", True, None)


async def test_blocking_and_coming_back_are_told(chat: Wire) -> None:
    chat.api.block(ANN)
    chat.api.say(ANN, "back")
    changes = await chat.new("my_chat_member")
    assert [inner(c, "new_chat_member", "status") for c in changes] == ["kicked", "member"]
    assert [inner(c, "old_chat_member", "status") for c in changes] == ["member", "kicked"]


async def test_a_deleted_account_takes_no_messages(chat: Wire) -> None:
    chat.api.deactivate(ANN)
    words = await chat.refusal("sendMessage", chat_id=ANN, text="x")
    assert words == "Forbidden: user is deactivated"


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
    assert inner(change, "new_chat_member", "status") == "kicked"
    assert inner(change, "from", "id") == BOB
    words = await wire.refusal("sendMessage", chat_id=TEAM, text="x")
    assert words == "Forbidden: bot was kicked from the supergroup chat"
    api.invite(TEAM)
    await wire.result("sendMessage", chat_id=TEAM, text="x")
    assert "new_chat_members" in (await wire.new("message"))[-1]


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
