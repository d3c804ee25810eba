"""What public model APIs refuse with status 400, in the words of theirs that people meet.

It is stricter than each of them alone: a conversation that passes here passes at all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Anthropic's pattern for ids of calls; its length is that of others."""

Message = Mapping[str, Any]


class Refused(Exception):
    """The request is none that the API takes."""


def openai_refusal(body: Message) -> str | None:
    """Why chat completions would refuse a request; None if it does not."""
    return _reason(_check_openai, body["messages"])


def anthropic_refusal(body: Message) -> str | None:
    """Why Anthropic's messages would refuse a request; None if it does not."""
    return _reason(_check_anthropic, body["messages"])


def _reason(check: Any, messages: Sequence[Message]) -> str | None:
    try:
        check(messages)
    except Refused as refused:
        return str(refused)
    return None


def _need(is_so: object, why: str) -> None:
    if not is_so:
        raise Refused(why)


def _check_openai(messages: Sequence[Message]) -> None:
    conversation = [
        message for message in messages if message["role"] not in ("system", "developer")
    ]
    _check_order([message["role"] for message in conversation], last=("user", "tool"))
    known: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            _need(
                call_id in waiting,
                f"Invalid parameter: {where} with role 'tool' must be a response to a preceding "
                f"message with 'tool_calls' that has the id {call_id!r}, once.",
            )
            waiting.remove(str(call_id))
            _need(isinstance(message.get("content"), str | list), f"{where}.content is missing.")
            continue
        _need(
            not waiting,
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            f"to each 'tool_call_id'. These had no response: {', '.join(waiting)}",
        )
        calls = message.get("tool_calls")
        _need(calls is None or calls, f"Invalid '{where}.tool_calls': empty array.")
        if calls is None or message.get("content") is not None:
            _check_text(message.get("content"), where)
        waiting = [_openai_call(call, known, where) for call in calls or ()]
    _need(not waiting, f"These calls had no response: {', '.join(waiting)}")


def _openai_call(call: Message, known: set[str], where: str) -> str:
    function = call["function"]
    _check_call(call["id"], function["name"], known, where)
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        raise Refused(f"{where}: the arguments of {function['name']} are no JSON.") from None
    _need(isinstance(arguments, dict), f"{where}: arguments must be an object.")
    return str(call["id"])


def _check_anthropic(messages: Sequence[Message]) -> None:
    _check_order([message["role"] for message in messages], last=("user",))
    known: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        blocks = _blocks(message)
        _need(blocks, f"{where}: all messages must have non-empty content")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        _need(
            sorted(results) == sorted(waiting),
            f"{where}: `tool_use` ids {waiting} need exactly one `tool_result` block each in the "
            f"next message; found {results}",
        )
        heads = [block["type"] for block in blocks[: len(results)]]
        _need(set(heads) <= {"tool_result"}, f"{where}: `tool_result` blocks must come first")
        waiting = []
        for block in blocks:
            if block["type"] == "text":
                _check_text(block["text"], where)
            if block["type"] == "tool_use":
                _check_call(block["id"], block["name"], known, where)
                _need(isinstance(block["input"], dict), f"{where}: input must be a dictionary")
                waiting.append(block["id"])
            if block["type"] == "thinking":
                _need(block.get("signature"), f"{where}: thinking.signature: Field required")
    _need(not waiting, f"`tool_use` ids without `tool_result` blocks: {waiting}")


def _blocks(message: Message) -> list[Message]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _check_order(roles: Sequence[str], *, last: Iterable[str]) -> None:
    _need(roles, "messages: at least one message is required")
    _need(roles[0] == "user", f"messages: the first message must be a user's, not {roles[0]!r}")
    _need(roles[-1] in last, f"messages: the last message must not be of role {roles[-1]!r}")


def _check_call(call_id: object, name: object, known: set[str], where: str) -> None:
    _need(
        isinstance(call_id, str) and _ID.fullmatch(call_id),
        f"{where}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    )
    _need(call_id not in known, f"{where}: Duplicate value for 'tool_call_id' of {call_id}")
    known.add(str(call_id))
    _need(
        isinstance(name, str) and _ID.fullmatch(name),
        f"Invalid '{where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.",
    )


def _check_text(content: object, where: str) -> None:
    texts = list(_texts(content))
    _need(texts, f"Invalid '{where}.content': expected a text or parts.")
    for text in texts:
        _need(text.strip(), f"{where}: text content blocks must contain non-whitespace text")


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part.get("text", "a picture") for part in content)
