"""Anthropic's messages, as a server speaks them."""

from __future__ import annotations

import json
from typing import Any

import orjson

from tests.support.model_server_orders import COUNTED, Answer, Call, Finish
from tests.support.model_server_strict import anthropic_refusal as refusal

__all__ = ["refusal"]

_STOP = {
    Finish.STOP: "end_turn",
    Finish.CALLS: "tool_use",
    Finish.FILTER: "refusal",
    Finish.LENGTH: "max_tokens",
}
_SIGNATURE = "c2lnbmVk"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class Anthropic:
    """One answer in pieces of a stream, or as a whole."""

    def __init__(self, body: dict[str, Any], asked_tokens: int) -> None:
        self._model = body["model"]
        self._asked = asked_tokens
        self._block = -1
        self._is_text_open = False

    def begin(self, answer: Answer) -> bytes:
        counted = {"input_tokens": self._asked, "output_tokens": 1}
        message = self._message([], None, counted if answer.usage is COUNTED else answer.usage)
        begun = _event({"type": "message_start", "message": message}) + _event({"type": "ping"})
        if not answer.thought:
            return begun
        thought = self._open({"type": "thinking", "thinking": "", "signature": ""})
        thought += self._delta({"type": "thinking_delta", "thinking": answer.thought})
        thought += self._delta({"type": "signature_delta", "signature": _SIGNATURE})
        return begun + thought + self._close()

    def piece(self, text: str) -> bytes:
        opened = b"" if self._is_text_open else self._open({"type": "text", "text": ""})
        self._is_text_open = True
        return opened + self._delta({"type": "text_delta", "text": text})

    def calls(self, calls: list[Call]) -> bytes:
        sent = self._close_text()
        for call in calls:
            sent += self._open(_call(call, {}))
            # As from the real server: first nothing, then the arguments in parts.
            middle = len(call.arguments) // 2
            for part in ("", call.arguments[:middle], call.arguments[middle:]):
                sent += self._delta({"type": "input_json_delta", "partial_json": part})
            sent += self._close()
        return sent

    def finish(self, answer: Answer) -> bytes:
        sent = self._close_text()
        if not isinstance(answer.end, Finish):
            return sent
        end = {
            "type": "message_delta",
            "delta": {"stop_reason": _STOP[answer.end], "stop_sequence": None},
            "usage": {"output_tokens": answer.tokens} if answer.usage is COUNTED else answer.usage,
        }
        return sent + _event(end) + _event({"type": "message_stop"})

    def fault(self) -> bytes:
        return _event(error(529, "Overloaded", ""))

    def whole(self, answer: Answer) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if answer.thought:
            content.append(
                {"type": "thinking", "thinking": answer.thought, "signature": _SIGNATURE}
            )
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [_call(call, orjson.loads(call.arguments)) for call in answer.calls]
        reason = _STOP[answer.end] if isinstance(answer.end, Finish) else None
        counted = {"input_tokens": self._asked, "output_tokens": answer.tokens}
        used = counted if answer.usage is COUNTED else answer.usage
        return self._message(content, reason, used)

    def _message(self, content: list[Any], reason: str | None, usage: Any) -> dict[str, Any]:
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": self._model,
            "content": content, "stop_reason": reason, "stop_sequence": None,
            "usage": usage,
        }  # fmt: skip

    def _open(self, block: dict[str, Any]) -> bytes:
        self._block += 1
        return _event({"type": "content_block_start", "index": self._block, "content_block": block})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event({"type": "content_block_delta", "index": self._block, "delta": delta})

    def _close(self) -> bytes:
        return _event({"type": "content_block_stop", "index": self._block})

    def _close_text(self) -> bytes:
        if not self._is_text_open:
            return b""
        self._is_text_open = False
        return self._close()


def said(body: dict[str, Any]) -> str:
    """The text that the user said last; what tools gave stands in user messages too."""
    for message in reversed(body["messages"]):
        if message["role"] != "user":
            continue
        content = message["content"]
        # Messages without an answer between them are sent as one, each a block.
        last = content if isinstance(content, str) else _text(content[-1:])
        if last:
            return last
    return ""


def results(body: dict[str, Any]) -> list[str]:
    """What the tools gave that were called last; empty if something was said since."""
    last = body["messages"][-1]["content"]
    if isinstance(last, str) or _text(last):
        return []
    return [_result(block["content"]) for block in last if block["type"] == "tool_result"]


def error(status: int, message: str, code: str) -> dict[str, Any]:
    kind = _KINDS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


OVERFLOW = (400, "prompt is too long: 205012 tokens > 200000 maximum", "")
QUOTA = (400, "Your credit balance is too low to access the Anthropic API.", "")


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _result(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else _text(content)


def _call(call: Call, arguments: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": arguments}


def _event(body: dict[str, Any]) -> bytes:
    name = str(body["type"]).encode()
    return b"event: " + name + b"\ndata: " + json.dumps(body).encode() + b"\n\n"
