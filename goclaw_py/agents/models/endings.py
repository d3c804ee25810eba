"""Why a response of a model has ended, in the words of all servers. Heavy imports."""

from __future__ import annotations

from typing import Final

from pydantic_ai.messages import FinishReason, ModelResponse

from goclaw_py.chat.outbound import texts

_OTHER_WORDS: Final[dict[str, FinishReason]] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("complete", "completed", "done", "finished"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_length", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "safety", "sensitive", "recitation"), "content_filter"),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_call"),
}
"""Words of servers that are nearly compatible; the library reads those of the public APIs.

Any other word may mean that the answer is incomplete: "abort", "error", "network_error".
"""

CUT_TEXTS: Final[dict[FinishReason | None, str]] = {
    "length": texts.ANSWER_CUT,
    "content_filter": texts.ANSWER_FILTERED,
}
"""The last paragraph of an answer that is not complete, by the reason of its end."""


def read_ending(response: ModelResponse) -> None:
    """Set the finish reason of a response whose server has used another word for it."""
    if response.finish_reason is None and (word := ending_word(response)):
        response.finish_reason = _OTHER_WORDS.get(word.lower())


def ending_word(response: ModelResponse) -> str:
    """Return the server's own word for the end of a response, "" if it gave none."""
    word = (response.provider_details or {}).get("finish_reason")
    return "" if word is None else str(word)
