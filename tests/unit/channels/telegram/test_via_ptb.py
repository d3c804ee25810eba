"""``channels.telegram.via_ptb``: which error an answer means."""

from __future__ import annotations

import json

import pytest

from channels.telegram.client import PollConflict
from channels.telegram.settings import Settings
from channels.telegram.via_ptb import PtbClient, _Failure, check_answer
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    MaybeSent,
    NotSent,
    RateLimited,
    Undeliverable,
)


def error_for(status: int, body: object) -> ChannelError:
    with pytest.raises(_Failure) as caught:
        check_answer(status, body if isinstance(body, bytes) else json.dumps(body).encode())
    return caught.value.error


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Undeliverable),
        (401, ChannelRefused),
        (403, Undeliverable),
        (404, ChannelRefused),
        (409, PollConflict),
        (413, NotSent),
        (429, RateLimited),
        (500, MaybeSent),
        (502, MaybeSent),
        ("odd", MaybeSent),
    ],
)
def test_the_bot_apis_own_refusals(code: object, kind: type[ChannelError]) -> None:
    status = code if isinstance(code, int) else 500
    error = error_for(status, {"ok": False, "error_code": code, "description": "Some words"})
    assert type(error) is kind
    assert "Some words" in str(error)


@pytest.mark.parametrize("status", [200, 301, 400, 401, 404, 409, 429, 502])
@pytest.mark.parametrize(
    "body", [b"", b"<html>no</html>", b"\xff\xfe", b"[]", b"5", b"{}", b'{"ok": "yes"}']
)
def test_what_the_bot_api_did_not_say_means_nothing(status: int, body: bytes) -> None:
    """SPEC CHAN-8: a proxy's 401 or 404 is no verdict on the token."""
    assert type(error_for(status, body)) is MaybeSent


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
    error = error_for(429, {"ok": False, "error_code": 429, **more})
    assert error.retry_after_s == seconds
    assert str(error) == "error 429"


def test_an_answer_that_says_ok_passes() -> None:
    check_answer(200, b'{"ok": true, "result": "\\ud83d"}')


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("url='http://x/bot4242:AAsecret-of_this/getMe'", "url='http://x/bot(token)/getMe'"),
        ("/bot4242%3AAAsecret-of_this/getMe", "/bot(token)/getMe"),
        ("a line that was cut: POST /bot4242:AAsec", "a line that was cut: POST /bot(token)"),
        ("AAsecret-of_this", "(token)"),
        ("chat 4242, bot 14242:AAother", "chat 4242, bot 14242:AAother"),
    ],
)
def test_of_a_text_only_the_token_is_hidden(said: str, shown: str) -> None:
    """SPEC CHAN-8."""
    assert PtbClient(Settings("4242:AAsecret-of_this")).without_token(said) == shown
