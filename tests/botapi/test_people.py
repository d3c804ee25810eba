"""What people do, in private and in groups, reaches the bot in the server's shape."""

from __future__ import annotations

import pytest

from tests.botapi import BotApi, FileKind
from tests.botapi.caller import ANN, BOB, TEAM, Wire
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
    await chat.result("answerCallbackQuery", callback_query_id=first, text="ok")
    chat.api.skip(2)
    late = await chat.refusal("answerCallbackQuery", callback_query_id=second)
    assert "query is too old and response timeout expired" in late
    done, missed = chat.api.presses()
    assert done.waited_s == pytest.approx(149, abs=1)
    assert (done.text, missed.waited_s) == ("ok", None)


async def test_a_closed_general_topic_refuses_messages_without_a_thread(
    api: BotApi, wire: Wire
) -> None:
    api.add_group(TEAM, "Team", topics=[55])
    api.close_topic(TEAM, 1)
    words = await wire.refusal("sendMessage", chat_id=TEAM, text="x")
    assert words == "Bad Request: TOPIC_CLOSED"
    await wire.result("sendMessage", chat_id=TEAM, text="x", message_thread_id=55)
