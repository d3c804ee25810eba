"""``channels.telegram.answers``: what an answer of the Bot API means."""

from __future__ import annotations

import json
import logging

import pytest

from channels.telegram.answers import (
    AlreadySo,
    KindRefused,
    Scrubber,
    guarded,
    read_answer,
    required_fields,
    silence,
    updates,
)
from channels.telegram.client import (
    FileTooBig,
    MarkupRefused,
    MessageGone,
    PollConflict,
    TextTooLong,
)
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    ChatGone,
    ChatMoved,
    MaybeSent,
    NotSent,
    RateLimited,
    TopicGone,
    Undeliverable,
)

TOKEN = "4242:AAsecret-of_this"


def error_for(status: int, body: object) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        read_answer(status, body if isinstance(body, bytes) else json.dumps(body).encode())
    return caught.value


def refusal(code: object, words: str, **more: object) -> ChannelError:
    status = code if isinstance(code, int) else 500
    return error_for(status, {"ok": False, "error_code": code, "description": words, **more})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Undeliverable),
        (401, ChannelRefused),
        (403, ChatGone),
        (404, ChannelRefused),
        (405, NotSent),
        (409, PollConflict),
        (413, FileTooBig),
        (429, RateLimited),
        (500, MaybeSent),
        (502, MaybeSent),
        ("odd", MaybeSent),
    ],
)
def test_the_bot_apis_own_refusals(code: object, kind: type[ChannelError]) -> None:
    error = refusal(code, "Some words")
    assert type(error) is kind
    assert "Some words" in str(error)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('can\'t parse entities: Unsupported start tag "x" at byte offset 0', MarkupRefused),
        ('can\'t parse entities: Unsupported start tag "PEER_ID_INVALID" at byte 0', MarkupRefused),
        ("ENTITY_BOUNDS_INVALID", MarkupRefused),
        ("ENTITIES_TOO_LONG", MarkupRefused),
        ("message is not modified: specified new message content and …", AlreadySo),
        ("message to delete not found", AlreadySo),
        ("message to edit not found", MessageGone),
        ("message can't be edited", MessageGone),
        ("MESSAGE_ID_INVALID", MessageGone),
        ("PHOTO_INVALID_DIMENSIONS", KindRefused),
        ("IMAGE_PROCESS_FAILED", KindRefused),
        ("file of size 11 bytes is too big for a photo; the maximum size is 10", KindRefused),
        ("VOICE_MESSAGES_FORBIDDEN", KindRefused),
        ("file is too big", FileTooBig),
        ("Request Entity Too Large", FileTooBig),
        ("chat not found", ChatGone),
        ("PEER_ID_INVALID", ChatGone),
        ("bot was kicked from the supergroup chat", ChatGone),
        ("bot is not a member of the supergroup chat", ChatGone),
        ("the group chat was deleted", ChatGone),
        ("CHAT_WRITE_FORBIDDEN", ChatGone),
        ("not enough rights to send text messages to the chat", Undeliverable),
        ("have no rights to send a message", Undeliverable),
        ("TOPIC_CLOSED", TopicGone),
        ("TOPIC_DELETED", TopicGone),
        ("message thread not found", TopicGone),
        ("message is too long", TextTooLong),
        ("BUTTON_DATA_INVALID", Undeliverable),
    ],
)
def test_a_bad_request_is_told_apart_by_its_words(words: str, kind: type[ChannelError]) -> None:
    assert type(refusal(400, f"Bad Request: {words}")) is kind
    assert type(refusal(400, words.upper())) is kind, "the case is nobody's promise"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("bot was blocked by the user", ChatGone),
        ("user is deactivated", ChatGone),
        ("bot can't initiate conversation with a user", ChatGone),
        ("not enough rights to send photos to the chat", Undeliverable),
        ("TOPIC_CLOSED", TopicGone),
    ],
)
def test_a_403_means_the_chat_unless_it_speaks_of_less(
    words: str, kind: type[ChannelError]
) -> None:
    """SPEC CHAN-7."""
    assert type(refusal(403, f"Forbidden: {words}")) is kind


def test_a_method_that_the_server_does_not_know_is_no_verdict_on_the_token() -> None:
    """A Bot API server of one's own may be older than a method."""
    assert type(refusal(404, "Not Found: method not found")) is Undeliverable


def test_a_group_that_became_a_supergroup_tells_its_new_id() -> None:
    """SPEC CHAN-7."""
    words = "Bad Request: group chat was upgraded to a supergroup chat"
    moved = refusal(400, words, parameters={"migrate_to_chat_id": -100123})
    assert isinstance(moved, ChatMoved)
    assert moved.chat == "-100123"
    assert type(refusal(400, words, parameters={"migrate_to_chat_id": "x"})) is Undeliverable


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, MaybeSent) for status in (200, 206, 500, 502, 503, 504, 520)),
        *((status, NotSent) for status in (301, 302, 307, 400, 401, 403, 404, 407, 409, 429, 499)),
    ],
)
@pytest.mark.parametrize(
    "body",
    [b"", b"<html>no</html>", b"\xff\xfe", b"[]", b"5", b"{}", b'{"ok": "yes"}', b"[" * 100_000],
    ids=["nothing", "page", "no text", "list", "number", "object", "odd", "deep"],
)
def test_what_the_bot_api_did_not_say_means_nothing(
    status: int, body: bytes, kind: type[ChannelError]
) -> None:
    """SPEC CHAN-8, IO-5: a proxy's 401 or 404 is no verdict on the token.

    A proxy that refuses or redirects has not passed the request on; its 5xx may come afterwards.
    """
    assert type(error_for(status, body)) is kind


def test_a_proxy_that_finds_a_request_too_large_did_not_pass_it_on() -> None:
    assert type(error_for(413, b"<html>413 Request Entity Too Large</html>")) is FileTooBig


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({"parameters": {"retry_after": 7}}, 7.0),
        ({"parameters": {"retry_after": "soon"}}, 5.0),
        ({"parameters": []}, 5.0),
        ({}, 5.0),
    ],
)
def test_a_flood_says_how_long_to_wait_or_gets_a_default(
    more: dict[str, object], seconds: float
) -> None:
    """SPEC IO-3."""
    error = error_for(429, {"ok": False, "error_code": 429, **more})
    assert error.retry_after_s == seconds
    assert str(error) == "error 429"


def test_an_answer_that_says_ok_brings_its_result() -> None:
    assert read_answer(200, b'{"ok": true, "result": "\\ud83d"}') == "\ud83d"
    assert read_answer(200, b'{"ok": true, "result": "x\xff"}') == "x\ufffd"
    assert read_answer(200, b'{"ok": true}') is None


NO_MESSAGES: list[object] = [None, True, [], "x", {}, {"message_id": "5"}, {"message_id": True}]
SENDS = ["sendMessage", "sendPhoto", "sendVoice", "sendDocument"]


@pytest.mark.parametrize("method", SENDS)
@pytest.mark.parametrize("result", NO_MESSAGES)
def test_a_message_without_an_id_may_have_been_sent(method: str, result: object) -> None:
    """SPEC IO-5."""
    with pytest.raises(MaybeSent, match="names no message"):
        required_fields(method, result)


@pytest.mark.parametrize("result", [None, {}, *([{"message_id": 5}, one] for one in NO_MESSAGES)])
def test_an_album_with_such_a_message_may_have_been_sent(result: object) -> None:
    """SPEC IO-5."""
    with pytest.raises(MaybeSent, match="names no message"):
        required_fields("sendMediaGroup", result)


def test_only_the_ids_of_sent_messages_count() -> None:
    chat = {"id": 0, "type": "private"}
    odd = {"message_id": 5, "date": "x" * 99, "chat": None}
    small = {"message_id": 5, "date": 0, "chat": chat}
    assert [required_fields(method, odd) for method in SENDS] == [small] * 4
    other = {"message_id": 6, "new": {}}
    assert required_fields("sendMediaGroup", [odd, other]) == [small, small | {"message_id": 6}]


@pytest.mark.parametrize("method", ["editMessageText", "deleteMessage", "aNewMethod"])
@pytest.mark.parametrize("result", [True, None, {"message_id": "5"}])
def test_of_other_methods_only_the_success_counts(method: str, result: object) -> None:
    assert required_fields(method, result) is True


@pytest.mark.parametrize("result", [None, {}, "x", True])
def test_updates_that_are_no_list_are_no_updates(result: object) -> None:
    with pytest.raises(NotSent, match="no list of updates"):
        updates(result)


@pytest.mark.parametrize("method", ["getMe", "getFile", "getChatAdministrators", "getWebhookInfo"])
@pytest.mark.parametrize(
    "result",
    [
        *(None, {}, [], "x", [None], [{"user": 5}], [{"user": {"id": True}}]),
        *({"id": "5", "is_bot": True}, {"id": 5}, {"id": 5, "is_bot": "yes"}),
        *({"file_path": ""}, {"file_path": 5}, {"url": None}),
    ],
)
def test_a_result_without_what_was_asked_for_can_be_asked_for_again(
    method: str, result: object
) -> None:
    with pytest.raises(NotSent, match="not understood: it names no"):
        required_fields(method, result)


def test_what_is_optional_and_odd_is_left_out() -> None:
    bot = {"id": 5, "is_bot": True, "username": 5, "can_read_all_group_messages": "no"}
    small = {"id": 5, "is_bot": True, "first_name": "", "username": ""}
    assert required_fields("getMe", bot) == small | {"can_read_all_group_messages": True}
    file = {"file_path": "a.pdf", "file_id": 7, "file_size": "huge"}
    small = {"file_id": "", "file_unique_id": "", "file_path": "a.pdf"}
    assert required_fields("getFile", file) == small
    assert required_fields("getFile", {**file, "file_size": 9}) == {**small, "file_size": 9}
    members = [{"user": {"id": 7}, "status": "god"}, {"user": {"id": "8"}}, 9]
    user = {"id": 7, "is_bot": False, "first_name": ""}
    assert required_fields("getChatAdministrators", members) == [{"status": "member", "user": user}]
    webhook = {"url": "", "pending_update_count": "many", "last_error_message": 5}
    assert required_fields("getWebhookInfo", webhook) == {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": 0,
        "last_error_message": "",
    }


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("url='http://x/bot4242:AAsecret-of_this/getMe'", "url='http://x/bot(token)/getMe'"),
        ("/bot4242%3AAAsecret-of_this/getMe", "/bot(token)/getMe"),
        (
            "a line that was interrupted: POST /bot4242:AAsec",
            "a line that was interrupted: POST /bot(token)",
        ),
        ("AAsecret-of_this", "(token)"),
        ("chat 4242, bot 14242:AAother", "chat 4242, bot 14242:AAother"),
    ],
)
def test_of_a_text_only_the_token_is_hidden(said: str, shown: str) -> None:
    """SPEC CHAN-8."""
    assert Scrubber(TOKEN)(said) == shown


def test_a_token_without_a_secret_hides_only_itself() -> None:
    assert Scrubber("4242")("4242: and AA") == "(token) and AA"


class Caller:
    """A client whose calls raise what they are given."""

    scrub = Scrubber(TOKEN)

    @guarded()
    async def repeat(self, error: Exception) -> None:
        try:
            raise ValueError(TOKEN)
        except ValueError:
            raise error from ValueError(TOKEN)

    @guarded(repeatable=False)
    async def send(self, error: Exception) -> None:
        raise error


@pytest.mark.parametrize("error", [MaybeSent(f"lost {TOKEN}"), OSError(f"lost {TOKEN}")])
async def test_a_lost_answer_to_what_can_be_repeated_means_not_sent(error: Exception) -> None:
    """SPEC IO-5."""
    with pytest.raises(NotSent, match=r"lost \(token\)") as repeated:
        await Caller().repeat(error)
    assert repeated.value.__cause__ is None
    assert repeated.value.__context__ is None
    with pytest.raises(MaybeSent, match=r"lost \(token\)"):
        await Caller().send(error)


async def test_of_what_a_library_says_only_the_first_line_is_told() -> None:
    with pytest.raises(MaybeSent, match=r"ValueError: 1 error for User$"):
        await Caller().send(ValueError("1 error for User\nid: input '4242:AAsec...of_this'"))


async def test_an_error_of_ours_keeps_its_kind_and_its_facts() -> None:
    with pytest.raises(RateLimited, match=r"\(token\) is slow") as slow:
        await Caller().repeat(RateLimited(f"{TOKEN} is slow", 7.0))
    assert slow.value.retry_after_s == 7.0
    assert slow.value.__cause__ is None
    assert slow.value.__context__ is None
    with pytest.raises(ChatMoved) as moved:
        await Caller().send(ChatMoved("moved", "-1001"))
    assert moved.value.chat == "-1001"


def test_loggers_that_print_addresses_are_silenced() -> None:
    logger = logging.getLogger("tests.a-chatty-library")
    logger.setLevel(logging.DEBUG)
    silence("tests.a-chatty-library")
    assert logger.level == logging.WARNING
