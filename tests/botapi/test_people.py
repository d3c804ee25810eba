"""What people do reaches the bot in the server's shape."""

from __future__ import annotations

import pytest

from tests.botapi import OTHER, BotApi, FileKind
from tests.botapi.caller import Wire, number
from tests.botapi.people import ANONYMOUS_ADMIN
from tests.botapi.rules import Json, is_object

ANN, BOB, TEAM = 7, 8, -1005


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


def test_a_text_mention_stands_beside_what_is_found() -> None:
    bob: Json = {"type": "text_mention", "offset": 0, "length": 3, "user": {"id": BOB}}
    message = BotApi().say(ANN, "Bob /x", entities=[bob])[0]
    command = {"type": "bot_command", "offset": 4, "length": 2}
    assert message["entities"] == [bob, command]


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


async def test_a_forwarded_message_tells_where_it_is_from(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "x", forwarded_from=BOB)
    api.say(ANN, "x", forwarded_from=-1007)
    user, channel = await wire.new("message")
    assert inner(user, "forward_origin", "sender_user", "id") == BOB
    assert inner(channel, "forward_origin", "type") == "channel"


async def test_an_anonymous_administrator_writes_as_the_group(api: BotApi, wire: Wire) -> None:
    api.add_group(TEAM, "Team")
    api.say(ANN, "x", chat_id=TEAM, anonymous=True)
    message = (await wire.new("message"))[0]
    assert inner(message, "from", "id") == ANONYMOUS_ADMIN
    assert inner(message, "sender_chat", "id") == TEAM


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


async def test_a_repeated_update_has_its_old_id(api: BotApi, wire: Wire) -> None:
    api.say(ANN, "one")
    api.say(ANN, "two")
    before = await wire.updates()
    last = number(before[-1], "update_id")
    assert await wire.updates(offset=last + 1) == []
    assert api.repeat(1) == 1
    assert await wire.updates(offset=last + 1) == before[1:]
    assert await wire.updates(offset=last + 1) == []


async def test_a_batch_can_come_twice_or_in_reverse(api: BotApi, wire: Wire) -> None:
    api.double()
    api.shuffle()
    assert await wire.updates() == []
    api.say(ANN, "one")
    api.say(ANN, "two")
    texts = [inner(u, "message", "text") for u in await wire.updates()]
    assert texts == ["two", "two", "one", "one"]
    assert len(await wire.updates()) == 2
