"""Laws of both Telegram clients: whatever the server answers, they agree, and keep its ids."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.telegram import client_class
from channels.telegram.client import Bot, BotClient, ChatPlace, Text, Upload, WebhookState
from channels.telegram.http import HttpPool
from channels.telegram.settings import Library, TelegramSettings
from goclaw_py.core.errors import ChannelError, MaybeSent, NotSent
from goclaw_py.core.messages import FileKind

HERE = ChatPlace(7, 55)
HTML = Text("<b>x</b>", html=True)
Call = Callable[[BotClient], Awaitable[object]]
FIELDS = (
    *(
        "message_id",
        "date",
        "chat",
        "from",
        "text",
        "entities",
        "reply_markup",
        "photo",
        "document",
    ),
    *(
        "reply_to_message",
        "id",
        "type",
        "is_bot",
        "first_name",
        "username",
        "user",
        "status",
        "url",
    ),
    *("file_id", "file_path", "file_size", "pending_update_count", "last_error_message", "new_one"),
)
WHOLE = st.integers(-(1 << 63), (1 << 63) - 1)
"""Larger ones are floats for one of the readers of JSON."""
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda one: (
        st.lists(one, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=9), one, max_size=4)
    ),
    max_leaves=12,
)
NUMBERS = st.integers(1, (1 << 53) - 1)
ODD = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6)


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    for library in Library:
        client_class(library)


@contextmanager
def answered_with(status: int, body: bytes) -> Iterator[None]:
    """Give each request this answer."""

    async def post(*_: object, **__: object) -> tuple[int, bytes]:
        return status, body

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpPool, "post", post)
        yield


async def outcomes(call: Call, status: int, body: object) -> list[object]:
    """What a call comes to over each library: its result, or the kind and text of its error."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    found: list[object] = []
    for library in Library:
        client = client_class(library)(TelegramSettings("4242:AAsecret"))
        with answered_with(status, raw):
            try:
                found.append(await call(client))
            except ChannelError as error:
                found.append((type(error), str(error), error.retry_after_s))
    return found


async def result_of(call: Call, result: object) -> object:
    """What a call comes to over both libraries, if the server has this result."""
    first, second = await outcomes(call, 200, {"ok": True, "result": result})
    assert first == second
    return first


def sending(*kinds: FileKind) -> Call:
    """Send files: an album, unless it is one."""

    async def send(client: BotClient) -> object:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"hello")
            file.flush()
            uploads = [Upload(kind, Path(file.name), "a.txt") for kind in kinds]
            if len(uploads) == 1:
                return await client.send_file(HERE, uploads[0], caption=HTML, reply_to=3)
            captions: Sequence[Text | None] = [HTML, *([None] * (len(uploads) - 1))]
            return await client.send_album(HERE, uploads, captions=captions, reply_to=3)

    return send


SENDS: Mapping[str, Call] = {
    "text": lambda client: client.send_message(HERE, HTML, reply_to=3, buttons=[[("a", "b")]]),
    "photo": sending(FileKind.PHOTO),
    "voice": sending(FileKind.VOICE),
    "document": sending(FileKind.DOCUMENT),
}
ALBUM = sending(FileKind.PHOTO, FileKind.VIDEO)
CONFIRMED: Mapping[str, Call] = {
    "edit": lambda client: client.edit_message(7, 5, HTML, buttons=[[("a", "b")]]),
    "caption": lambda client: client.edit_caption(7, 5, HTML),
    "no buttons": lambda client: client.remove_buttons(7, 5),
    "deletion": lambda client: client.delete_message(7, 5),
    "draft": lambda client: client.send_draft(HERE, 5, HTML),
    "action": lambda client: client.send_action(HERE, "typing"),
    "reaction": lambda client: client.set_reaction(7, 5, "👀"),
    "press": lambda client: client.answer_press("press", "noted"),
    "commands": lambda client: client.set_commands({"stop": "Stop"}),
    "set webhook": lambda client: client.set_webhook(
        "https://bot.example/hook", secret="s", kinds=["message"], connections=2
    ),
    "delete webhook": lambda client: client.delete_webhook(),
}
READ: Mapping[str, Call] = {
    "bot": lambda client: client.get_me(),
    "administrators": lambda client: client.administrators(-7),
    "webhook": lambda client: client.webhook(),
    "updates": lambda client: client.get_updates(offset=None, wait_s=0, kinds=["message"]),
}
BUTTONS: Call = lambda client: client.set_buttons(7, 5, [[("a", "b")]])  # noqa: E731
EVERY = [*SENDS.values(), ALBUM, *CONFIRMED.values(), BUTTONS, *READ.values()]
few = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@few
@given(st.sampled_from(list(SENDS.values())), NUMBERS, ODD)
async def test_a_sent_message_counts_whatever_else_its_answer_says(
    call: Call, number: int, odd: dict[str, object]
) -> None:
    """SPEC IO-5: an odd field must not make it look unsent."""
    assert await result_of(call, {**odd, "message_id": number}) == number


@few
@given(st.lists(st.tuples(NUMBERS, ODD), min_size=1, max_size=3))
async def test_a_sent_album_counts_whatever_else_its_answer_says(
    sent: list[tuple[int, dict[str, object]]],
) -> None:
    """SPEC IO-5."""
    album = [{**odd, "message_id": number} for number, odd in sent]
    assert await result_of(ALBUM, album) == [number for number, _ in sent]


@few
@given(st.sampled_from(list(CONFIRMED.values())), JSON)
async def test_what_the_server_confirms_is_done_whatever_the_result(
    call: Call, result: object
) -> None:
    assert await result_of(call, result) is None
    assert await result_of(BUTTONS, result) is True


@few
@given(NUMBERS, ODD)
async def test_what_is_read_is_read_beside_odd_fields(number: int, odd: dict[str, object]) -> None:
    bot = {**odd, "id": number, "is_bot": True, "username": "b"}
    assert await result_of(READ["bot"], bot) == Bot(number, "b")
    members = [{**odd, "user": {**odd, "id": number}}, odd]
    assert await result_of(READ["administrators"], members) >= {number}  # type: ignore[operator]
    webhook = {**odd, "url": "u", "pending_update_count": 3, "last_error_message": "t"}
    assert await result_of(READ["webhook"], webhook) == WebhookState("u", 3, "t")
    assert await result_of(READ["updates"], [odd, number]) == [odd, number]


@few
@given(
    st.sampled_from(EVERY),
    st.sampled_from([200, 206, 302, 400, 401, 403, 404, 407, 409, 413, 429, 500, 502]),
    st.binary(max_size=20)
    | JSON
    | st.fixed_dictionaries(
        {"ok": st.booleans() | JSON},
        optional={
            "result": JSON,
            "error_code": st.integers(300, 600) | JSON,
            "description": st.sampled_from(["message is not modified", "TOPIC_CLOSED"]) | JSON,
            "parameters": JSON | st.fixed_dictionaries({"retry_after": st.integers(0, 60) | JSON}),
        },
    ),
)
async def test_both_libraries_make_the_same_of_any_answer(
    call: Call, status: int, body: object
) -> None:
    """SPEC CHAN-2. An error of a library itself would be another one for each."""
    first, second = await outcomes(call, status, body)
    assert first == second


@few
@given(JSON.filter(lambda one: not isinstance(one, dict)))
async def test_without_an_id_nobody_knows_whether_a_message_was_sent(result: object) -> None:
    """SPEC IO-5."""
    sent = await result_of(SENDS["text"], result)
    assert isinstance(sent, tuple)
    assert sent[0] is MaybeSent
    read = await result_of(READ["bot"], result)
    assert isinstance(read, tuple)
    assert read[0] is NotSent
