"""``kill -9`` at random moments loses nothing (SPEC IO-2, IO-5)."""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter

from tests.botapi.control import Control
from tests.support.process import Home, wait_for

ROUNDS = int(os.environ.get("GOCLAW_KILL_ROUNDS", "20"))
CHATS = 20
MESSAGES = 100


def test_kill_9_at_random_moments_loses_no_message(bot: Home, api: Control) -> None:
    """Twenty rounds of a hundred messages; each is answered, in order, twice only if recorded."""
    bot.env["GOCLAW_QUEUE__DEBOUNCE_MS"] = "0"
    bot.env["GOCLAW_LANE_MAIN"] = "8"
    chance = random.Random(9)
    asked: dict[int, list[str]] = {1000 + chat: [] for chat in range(CHATS)}
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

        def missing() -> bool:
            return all(asked[chat][-1] in " ".join(api.texts(chat)) for chat in asked)

        wait_for(missing, f"all answers of round {round_number}", limit_s=60)
    gateway.end()

    for chat, words in asked.items():
        said = [word for text in api.texts(chat) for word in re.findall(r"r\d+n\d+", text)]
        assert list(dict.fromkeys(said)) == words, f"lost or out of order in chat {chat}"
    repeated = _repeated(api, asked)
    recorded = _recorded(bot)
    assert repeated <= recorded, f"said twice without a record: {repeated - recorded}"


def _repeated(api: Control, asked: dict[int, list[str]]) -> Counter[str]:
    said = Counter(
        word for chat in asked for text in api.texts(chat) for word in re.findall(r"r\d+n\d+", text)
    )
    return Counter({word: count - 1 for word, count in said.items() if count > 1})


def _recorded(bot: Home) -> Counter[str]:
    """The words of messages that are marked as possibly sent twice."""
    rows = bot.rows("outbox", "list", "--limit", str(ROUNDS * MESSAGES))
    return Counter(
        word
        for row in rows
        if row["possible_duplicate"]
        for word in re.findall(r"r\d+n\d+", row["message"]["text"])
        for _ in range(max(1, row["attempts"]))
    )
