"""``kill -9`` at random moments loses nothing (SPEC IO-2, IO-5)."""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter

from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ROUNDS = int(os.environ.get("GOCLAW_KILL_ROUNDS", "3"))
CHATS = 20
MESSAGES = 100
WORD = re.compile(r"r\d+n\d+")


def test_kill_9_at_random_moments_loses_no_message(bot: Home, api: Control) -> None:
    """Rounds of a hundred messages: all answered, in order, twice only where recorded."""
    bot.env["GOCLAW_QUEUE__DEBOUNCE_MS"] = "0"
    bot.env["GOCLAW_LANE_MAIN"] = "8"
    chance = random.Random(9)
    asked: dict[int, list[str]] = {1000 + chat: [] for chat in range(CHATS)}
    recorded: Counter[str] = Counter()
    gateway = bot.start()
    for round_number in range(ROUNDS):
        for number in range(MESSAGES):
            chat = 1000 + number % CHATS
            word = f"r{round_number}n{number}"
            asked[chat].append(word)
            api.say(chat, f"echo {word}")
        time.sleep(chance.uniform(0.0, 0.6))
        gateway.kill()
        gateway = bot.start()
        wait_for(
            lambda: all(words[-1] in _said(api, chat)[-1:] for chat, words in asked.items()),
            f"all answers of round {round_number}",
        )
        recorded += _recorded(bot, MESSAGES)
    gateway.end()

    for chat, words in asked.items():
        assert list(dict.fromkeys(_said(api, chat))) == words, f"lost or out of order in {chat}"
    said = Counter(word for chat in asked for word in _said(api, chat))
    repeated = Counter({word: count - 1 for word, count in said.items() if count > 1})
    assert repeated <= recorded, f"said twice without a record: {repeated - recorded}"


def _said(api: Control, chat: int) -> list[str]:
    return [word for text in api.texts(chat) for word in WORD.findall(text)]


def _recorded(bot: Home, newest: int) -> Counter[str]:
    """The words of messages that are marked as possibly sent twice, each as often as it may be."""
    return Counter(
        word
        for row in bot.rows("outbox", "list", "--limit", str(newest))
        if row["possible_duplicate"]
        for word in WORD.findall(row["message"]["text"])
        for _ in range(max(1, row["attempts"]))
    )
