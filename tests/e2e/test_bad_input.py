"""Texts that nobody should send: answered or politely refused, never a crash, nothing lost."""

from __future__ import annotations

import pytest

from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ANN = 1001


ONE_TURN = {
    "GOCLAW_QUEUE__DEBOUNCE_MS": "100",
    "GOCLAW_QUEUE__TURN_MESSAGES": "1000",
    "GOCLAW_QUEUE__TURN_CHARS": "2000000",
}
"""A million characters are one turn."""


@pytest.mark.parametrize(
    "text",
    ["echo \ud800 half a pair", "echo \x00 zero", "echo " + "x" * 1_000_000, "   \n\t  "],
    ids=["lone surrogate", "NUL", "a million characters", "only blanks"],
)
def test_an_odd_text_is_answered_and_the_next_one_too(bot: Home, api: Control, text: str) -> None:
    bot.env |= ONE_TURN
    gateway = bot.start()
    if text.strip():
        api.say(ANN, text)
        expected = "x" * 1000 if "xxxx" in text else text.rsplit(maxsplit=1)[-1]
    else:
        message = {"message_id": 9000, "date": 1_700_000_000, "text": text}
        person = {"id": ANN, "is_bot": False, "first_name": "Ann"}
        chat = {"id": ANN, "type": "private", "first_name": "Ann"}
        api.say(ANN, "echo hello")
        api.push({"message": message | {"from": person, "chat": chat}})
        expected = "no text"
    wait_for(lambda: expected in "".join(api.texts(ANN)), "an answer")
    api.say(ANN, "echo and you?")
    wait_for(lambda: "and you?" in api.texts(ANN)[-1], "the next answer")
    assert gateway.alive()
    assert "Traceback" not in gateway.output
    status = bot.goclaw("status")[1]
    assert "0 incoming and 0 outgoing messages waiting, 0 undeliverable" in status, status


def test_a_million_characters_come_back_whole(bot: Home, api: Control) -> None:
    """IO-1, CHAN-3: 245 updates in, 245 messages out, in order."""
    bot.env |= ONE_TURN
    bot.start()
    text = "".join(f"{number:07}" for number in range(100_000))
    api.say(ANN, f"echo {text}")
    wait_for(lambda: "".join(api.texts(ANN)).endswith("0099999"), "the end")
    assert "".join(api.texts(ANN)) == text
