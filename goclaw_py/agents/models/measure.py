"""Checks the usage that providers report, and estimates what is missing. Heavy imports."""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from decimal import Decimal

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from goclaw_py.agents.models.compaction import CHARS_PER_TOKEN, chars
from goclaw_py.agents.models.responses.limits import ResponseTooLong
from goclaw_py.core.run_events import Usage

# The libraries warn of counts that they cannot read, once, on standard error. They are estimated.
for _of in ("Failed to extract usage", "Pydantic serializer warnings"):
    warnings.filterwarnings("ignore", message=_of)

MOST_TOKENS = 1_000_000_000
"""No single request has used more: a higher count is a mistake of the provider."""

_MOST_USD = Decimal(100_000)
_WITH_USAGE = ("message_start", "message_delta", "message")
"""The events of Anthropic's that must have a usage, also if it says nothing."""

_WITH_TEXTS = ("message", "content_block", "delta")
_TEXTS = frozenset({"id", "model", "name", "partial_json", "signature", "text", "thinking"})

_PARTS = (
    "cache_creation",
    "completion_tokens_details",
    "output_tokens_details",
    "prompt_tokens_details",
    "server_tool_use",
)
_NO_NUMBERS = frozenset({*_PARTS, "iterations"})
"""What a usage has that is no number. Only features that we do not use have iterations."""

MOST_VALUES = 5_000
"""The number of values in an event: the libraries need some microseconds for each."""

_NO_COUNTS = frozenset({"details", "cost", "audio_seconds"})


def measure(response: ModelResponse, request_chars: int) -> bool:
    """Replace missing and impossible counts in a response; return whether any are estimates.

    ``request_chars`` is the number of characters of the request.
    """
    used = response.usage
    if not _is_cost(used.cost):
        used.cost = None
    counted, said = _count(used.input_tokens), _count(used.output_tokens)
    has_said = any(map(_says, response.parts))
    is_whole = bool(counted) and (bool(said) or not has_said)
    if is_whole and _is_valid(used):
        return False
    asked = counted or max(request_chars // CHARS_PER_TOKEN, 1)
    response.usage = RequestUsage(
        input_tokens=asked,
        output_tokens=said or (max(chars([response]) // CHARS_PER_TOKEN, 1) if has_said else 0),
        cache_read_tokens=min(_count(used.cache_read_tokens) or 0, asked),
    )
    with suppress(LookupError, ValueError, AssertionError):
        response.usage.cost = response.cost().total_price
    return not is_whole


def readable(data: object) -> object:
    """Return what a provider sent, with a usage that its library can read.

    The libraries read a usage of another shape as an error, and the response would be lost for it.
    A call's arguments become text, and the words of a refusal text that people read. Raises
    ``UnexpectedModelBehavior`` where a text is none: they would store it unread; and
    ``ResponseTooLong`` for too many values.
    """
    if not isinstance(data, dict):
        raise UnexpectedModelBehavior("the response cannot be read: an event is no object")
    _check_values(data)
    _mend_choices(data.get("choices"))
    _mend_texts(data)
    if data.get("type") in _WITH_USAGE:
        message = data["message"] if isinstance(data.get("message"), dict) else data
        message["usage"] = _readable(message.get("usage")) or {}
    elif data.get("usage") is not None:
        data["usage"] = _readable(data["usage"])
    return data


def _check_values(data: dict[str, object]) -> None:
    waiting: list[dict[str, object] | list[object]] = [data]
    count = 0
    while waiting:
        values = waiting.pop()
        count += len(values)
        if count > MOST_VALUES:
            raise ResponseTooLong(f"more than {MOST_VALUES:,} values in one event")
        inner = values.values() if isinstance(values, dict) else values
        waiting += [one for one in inner if isinstance(one, dict | list)]


def _mend_choices(choices: object) -> None:
    if isinstance(choices, list):
        for choice in choices:
            if isinstance(choice, dict):
                _mend_choice(choice.get("delta") or choice.get("message"))


def _mend_texts(data: dict[str, object]) -> None:
    for name in _WITH_TEXTS:
        if isinstance(part := data.get(name), dict):
            for text in _TEXTS & part.keys():
                if part[text] is None:
                    part[text] = ""
                elif text == "partial_json":
                    part[text] = _arguments(part[text])
                elif not isinstance(part[text], str):
                    raise UnexpectedModelBehavior(f"the response cannot be read: {text} is no text")


def _mend_choice(choice: object) -> None:
    if not isinstance(choice, dict):
        return
    refusal, text = choice.get("refusal"), choice.get("content") or ""
    if isinstance(refusal, str) and refusal and isinstance(text, str):
        # The library takes it for the provider's filter, and shows nothing of it.
        choice["content"], choice["refusal"] = text + refusal, None
    if isinstance(calls := choice.get("tool_calls"), list):
        for call in calls:
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and function.get("arguments") is not None:
                function["arguments"] = _arguments(function["arguments"])


def _arguments(given: object) -> str:
    """Return the arguments of a call as text, which some servers send as JSON in the JSON."""
    if isinstance(given, str):
        return given
    return "" if given == {} else json.dumps(given)


def _readable(usage: object) -> dict[str, object] | None:
    if not isinstance(usage, dict):
        return None
    numbers = {
        name: value
        for name, value in usage.items()
        if name not in _NO_NUMBERS and _is_number(value)
    }
    parts = {
        name: {inner: value for inner, value in part.items() if _is_number(value)}
        for name in _PARTS
        if isinstance(part := usage.get(name), dict)
    }
    return numbers | parts


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= MOST_TOKENS


def usage_of(response: ModelResponse) -> Usage:
    """Return the usage of a measured response."""
    used = response.usage
    return Usage(1, used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cost)


def _says(part: object) -> bool:
    return bool(getattr(part, "content", "") or getattr(part, "tool_name", ""))


def _count(value: object) -> int | None:
    """Return a number of tokens; None if it is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_count and 0 <= value <= MOST_TOKENS else None  # type: ignore[call-overload, operator]


def _is_valid(used: RequestUsage) -> bool:
    counts = [value for name, value in vars(used).items() if name not in _NO_COUNTS]
    are_counts = all(
        type(value) is int and 0 <= value <= MOST_TOKENS
        for value in (*counts, *used.details.values())
    )
    is_measured = are_counts and not used.unmeasured_requests
    return is_measured and used.cache_read_tokens <= used.input_tokens


def _is_cost(cost: object) -> bool:
    return isinstance(cost, Decimal) and cost.is_finite() and 0 <= cost <= _MOST_USD
