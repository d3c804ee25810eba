"""OpenAI's chat completions, as a server speaks them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.model_server_orders import Answer, Call, Finish

CREATED = 1_700_000_000
_FINISH = {Finish.STOP: "stop", Finish.CALLS: "tool_calls", Finish.FILTER: "content_filter"}


class OpenAi:
    """One answer in pieces of a stream, or as a whole."""

    def __init__(self, body: dict[str, Any], asked_tokens: int) -> None:
        self._model = body["model"]
        self._asked = asked_tokens

    def begin(self, answer: Answer) -> bytes:
        if not answer.thought:
            return b""
        return self._chunk({"role": "assistant", "reasoning_content": answer.thought})

    def piece(self, text: str) -> bytes:
        return self._chunk({"role": "assistant", "content": text})

    def calls(self, calls: list[Call]) -> bytes:
        return b"".join(
            self._chunk({"tool_calls": [{"index": place, **_call(call)}]})
            for place, call in enumerate(calls)
        )

    def finish(self, answer: Answer) -> bytes:
        if not isinstance(answer.end, Finish):
            return b"data: [DONE]\n\n"
        end = self._chunk({}, finish=_FINISH[answer.end])
        used = _event(self._envelope([]) | {"usage": self._usage(answer.tokens)})
        return end + used + b"data: [DONE]\n\n"

    def fault(self) -> bytes:
        error = {"message": "The server is overloaded.", "type": "server_error", "code": None}
        return _event({"error": error | {"code": "server_is_overloaded"}})

    def whole(self, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.calls:
            message["tool_calls"] = [_call(call) for call in answer.calls]
        reason = _FINISH[answer.end] if isinstance(answer.end, Finish) else None
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return self._envelope([choice]) | {
            "object": "chat.completion",
            "usage": self._usage(answer.tokens),
        }

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None) -> bytes:
        return _event(self._envelope([{"index": 0, "delta": delta, "finish_reason": finish}]))

    def _envelope(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self._model,
            "choices": choices,
        }

    def _usage(self, tokens: int) -> dict[str, int]:
        return {
            "prompt_tokens": self._asked,
            "completion_tokens": tokens,
            "total_tokens": self._asked + tokens,
        }


def said(body: dict[str, Any]) -> str:
    """The last user message."""
    messages = [message for message in body["messages"] if message["role"] == "user"]
    content = messages[-1]["content"] if messages else ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return str(content)


def results(body: dict[str, Any]) -> list[str]:
    """What the tools gave that were called last; empty if something was said since."""
    found: list[str] = []
    for message in reversed(body["messages"]):
        if message["role"] != "tool":
            break
        found.append(str(message["content"]))
    return found[::-1]


def error(status: int, message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted", "code": code}}


OVERFLOW = (
    400,
    "Your input exceeds the context window of this model: 130012 tokens.",
    "context_length_exceeded",
)
QUOTA = (
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    "insufficient_quota",
)


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
