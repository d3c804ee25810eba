"""The work for a text grows no faster than the text, whoever has written it (SPEC AGENT-13, HB-7).

Promised: no reply, log line or message makes the gateway deaf by its form. Tried: what models and
people write, of half a length and of the whole, in what reads thoughts, hides secrets, finds the
token of heartbeats, makes keys of alerts, and splits texts into messages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from channels.telegram.format import render
from goclaw_py.chat.outbound.ok_token import (
    AckPosition,
    alert_key,
    conversation_text,
    is_silent,
    judge,
)
from goclaw_py.core.redaction import Redactor
from goclaw_py.core.text import split_text
from goclaw_py.runs.thoughts import ThoughtFilter, separate

SECRET = "correct horse battery staple"


def in_pieces(text: str) -> None:
    reader = ThoughtFilter()
    for place in range(0, len(text), 7):
        reader.feed(text[place : place + 7])
    reader.end()


def split_over(text: str) -> None:
    Redactor([SECRET]).split_over([text[place : place + 7] for place in range(0, len(text), 7)])


READERS: dict[str, Callable[[str], object]] = {
    "thoughts": separate,
    "thoughts in pieces": in_pieces,
    "secrets": Redactor([SECRET]),
    "secrets over pieces": split_over,
    "a heartbeat": lambda text: judge(text, ack_max_chars=300, position=AckPosition.EDGES),
    "a heartbeat, anywhere": lambda text: judge(
        text, ack_max_chars=300, position=AckPosition.ANYWHERE
    ),
    "a conversation": conversation_text,
    "silence": is_silent,
    "an alert": lambda text: alert_key("main", "telegram:1", text),
    "messages": lambda text: split_text(text, 100),
    "messages of Telegram": lambda text: render(text, 100),
}

TEXTS: dict[str, Callable[[int], str]] = {
    "words": lambda n: "All is well. " * n,
    "one word": lambda n: "a" * 10 * n,
    "lines": lambda n: "a\n" * n,
    "blank lines": lambda n: "a\n \n\t\n" * n,
    "blanks": lambda n: " \t\u00a0" * n + "a",
    "accents": lambda n: "e\u0301\u0301" * n,
    "one endless character": lambda n: "a" + "\u0301" * 5 * n,
    "joiners": lambda n: "\U0001f468\u200d" * n,
    "flags": lambda n: "\U0001f1e9\U0001f1ea" * n,
    "halves of pairs": lambda n: "\ud83d" * n,
    "invisible characters": lambda n: "\u200b\ufeff" * n,
    "thoughts": lambda n: "<think>a</think>b\n" * n,
    "opened thoughts": lambda n: "a <think>\n" * n,
    "closed thoughts": lambda n: "a</think>" * n,
    "closed thoughts on lines": lambda n: "a\n</think>\n" * n,
    "halves of tags": lambda n: "<think <th" * n,
    "attributes": lambda n: "<think a=" * n,
    "names": lambda n: "<a_a_a:" * n,
    "backticks": lambda n: "` `` ``` " * n,
    "fences": lambda n: "```\na\n" * n,
    "a run of backticks": lambda n: "`" * 10 * n,
    "tokens": lambda n: "HEARTBEAT_OK " * n,
    "tokens on lines": lambda n: "a\nHEARTBEAT_OK\n" * n,
    "tokens in a word": lambda n: "HEARTBEAT_OK" * n,
    "tokens in markup": lambda n: "**`HEARTBEAT_OK`** " * n,
    "nested markup": lambda n: "*" * n + "HEARTBEAT_OK" + "*" * n,
    "nested tags": lambda n: "<b>" * n + "HEARTBEAT_OK" + "</b>" * n,
    "nested quotes": lambda n: "(" * n + "HEARTBEAT_OK" + ")" * n,
    "beginnings of the token": lambda n: "HEARTBEAT_ HEART " * n,
    "silence": lambda n: "NO_REPLY " * n,
    "entities": lambda n: "&amp;" * n + "&#72;EARTBEAT_OK",
    "entities of entities": lambda n: "&amp;" + "amp;" * n + "HEARTBEAT_OK",
    "open links": lambda n: "[HEARTBEAT_OK](a" * n,
    "comments": lambda n: "<!-- HEARTBEAT_OK " * n,
    "keys": lambda n: "sk-aaaaaaaaaa " * n,
    "names of secrets": lambda n: "token= password: " * n,
    "known secrets": lambda n: f"{SECRET} " * n,
    "halves of known secrets": lambda n: f"{SECRET[:20]} " * n,
    "addresses": lambda n: "://a:" * n,
    "stars": lambda n: "*" * 10 * n,
    "dashes": lambda n: "-----BEGIN " * n,
    "digits": lambda n: "1" * 10 * n + ":",
    "backslashes": lambda n: "\\" * 10 * n,
}


def steps(read: Callable[[str], object], text: str) -> int:
    """Return how many lines of code read a text."""
    count = 0

    def step(*_: Any) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        read(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_the_work_grows_no_faster_than_the_text(read: Callable[[str], object]) -> None:
    counted = {
        name: (steps(read, grow(100)), steps(read, grow(200))) for name, grow in TEXTS.items()
    }
    assert [name for name, (half, whole) in counted.items() if whole > 3 * half + 1_000] == []
