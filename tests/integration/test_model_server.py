"""The model server of the tests refuses what public APIs refuse, and sends what it is told to."""

from __future__ import annotations

from typing import Any

import aiohttp
import orjson
import pytest

from tests.support.model_server import ModelServer
from tests.support.model_server_strict import anthropic_refusal, openai_refusal

pytestmark = pytest.mark.real_time

HI = {"role": "user", "content": "hi"}


def call(*ids: str, name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def gave(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": ""}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([HI], None),
        ([{"role": "system", "content": "Obey."}, HI], None),
        ([HI, call("a", "b"), gave("b"), gave("a"), said("done"), HI], None),
        ([HI, call("a"), gave("a")], None),
        ([HI, call("a", "a"), gave("a"), gave("a")], "Duplicate"),
        ([HI, call("a"), gave("a"), said("done"), HI, call("a"), gave("a")], "Duplicate"),
        ([HI, call("a"), HI], "must be followed by tool messages"),
        ([HI, call("a", "b"), gave("a"), HI], "b"),
        ([HI, gave("a")], "must be a response to a preceding message"),
        ([HI, call("a"), gave("a"), gave("a")], "must be a response to a preceding message"),
        ([HI, call("a"), gave("b")], "must be a response to a preceding message"),
        ([HI, call(""), gave("")], "pattern"),
        ([HI, call("a", name=""), gave("a")], "pattern"),
        ([HI, call("a", arguments='{"b'), gave("a")], "no JSON"),
        ([HI, call("a", arguments="[]"), gave("a")], "must be an object"),
        ([HI, said(" "), HI], "non-whitespace"),
        ([HI, said(""), HI], "non-whitespace"),
        ([{"role": "user", "content": ""}], "non-whitespace"),
        ([{"role": "user", "content": []}], "expected a text"),
        ([HI, said("done")], "last message"),
        ([said("first"), HI], "first message"),
        ([], "at least one"),
    ],
)
def test_chat_completions_refuse_what_is_no_conversation(
    messages: list[dict[str, Any]], why: str | None
) -> None:
    refusal = openai_refusal({"messages": messages})
    assert refusal is None if why is None else why in (refusal or "")


def use(*ids: str, given: object = None) -> dict[str, Any]:
    uses = [{"type": "tool_use", "id": one, "name": "f", "input": given or {}} for one in ids]
    return {"role": "assistant", "content": uses}


def results(*ids: str, text: str = "") -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids]
    return {"role": "user", "content": blocks + ([{"type": "text", "text": text}] if text else [])}


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([HI, use("a", "b"), results("a", "b", text="and")], None),
        ([HI, use("a", "a"), results("a", "a")], "Duplicate"),
        ([HI, use("a"), results("a"), said("done"), HI, use("a"), results("a")], "Duplicate"),
        ([HI, use("a"), results("b")], "need exactly one"),
        ([HI, use("a"), HI], "need exactly one"),
        ([HI, results("a")], "need exactly one"),
        ([HI, use("a:b"), results("a:b")], "pattern"),
        ([HI, use("a", given="text"), results("a")], "dictionary"),
        ([HI, {"role": "assistant", "content": []}, HI], "non-empty"),
        ([HI, use("a"), {"role": "user", "content": [HI | {"type": "text", "text": "x"}]}], "need"),
        ([HI, said("\n"), HI], "non-whitespace"),
        ([HI, said("done")], "last message"),
    ],
)
def test_messages_of_anthropic_refuse_what_is_no_conversation(
    messages: list[dict[str, Any]], why: str | None
) -> None:
    refusal = anthropic_refusal({"messages": messages})
    assert refusal is None if why is None else why in (refusal or "")


async def test_a_refused_conversation_gets_400_and_any_bytes_come_in_any_chunks() -> None:
    async with ModelServer() as server, aiohttp.ClientSession() as http:
        url = f"{server.base_url}/chat/completions"
        async with http.post(url, json={"model": "m", "messages": [HI, gave("a")]}) as answer:
            assert answer.status == 400
            assert "preceding message" in await answer.text()
        pieces = ["data: \u00ff", "\u0000", "\n\nda", "ta: [DONE]\n\n"]
        body = {"model": f"raw {orjson.dumps(pieces).decode()}", "messages": [HI], "stream": True}
        async with http.post(url, json=body) as answer:
            assert await answer.read() == "".join(pieces).encode("latin-1")
