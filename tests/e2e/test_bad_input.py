"""Texts that nobody should send: answered or politely refused, never a crash, nothing lost."""

from __future__ import annotations

from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ANN = 1001


ONE_TURN = {
    "GOCLAW_QUEUE__DEBOUNCE_MS": "100",
    "GOCLAW_QUEUE__TURN_MESSAGES": "1000",
    "GOCLAW_QUEUE__TURN_CHARS": "2000000",
}
"""A million characters are one turn."""


def test_odd_texts_are_answered_and_the_next_one_too(bot: Home, api: Control) -> None:
    gateway = bot.start()
    for number, text in enumerate(("echo \ud800 half a pair", "echo \x00 zero")):
        api.say(ANN, text)
        answered(api, text.rsplit(maxsplit=1)[-1])
        api.say(ANN, f"echo and you {number}?")
        answered(api, f"and you {number}?")
    message = {"message_id": 9000, "date": 1_700_000_000, "text": "   \n\t  "}
    person = {"id": ANN, "is_bot": False, "first_name": "Ann"}
    chat = {"id": ANN, "type": "private", "first_name": "Ann"}
    api.push({"message": message | {"from": person, "chat": chat}})
    answered(api, "no text")
    api.say(ANN, "echo still there?")
    answered(api, "still there?")
    assert gateway.alive()
    assert "Traceback" not in gateway.output
    status = bot.goclaw("status")[1]
    assert "0 incoming and 0 outgoing messages waiting, 0 undeliverable" in status, status


def answered(api: Control, words: str) -> None:
    wait_for(lambda: any(words in text for text in api.texts(ANN)), f"an answer with {words!r}")


def test_a_million_characters_come_back_whole(bot: Home, api: Control) -> None:
    """IO-1, CHAN-3: 245 updates in, 245 messages out, in order."""
    bot.env |= ONE_TURN
    bot.start()
    text = "".join(f"{number:07}" for number in range(100_000))
    api.say(ANN, f"echo {text}")
    wait_for(lambda: "".join(api.texts(ANN)).endswith("0099999"), "the end")
    assert "".join(api.texts(ANN)) == text
