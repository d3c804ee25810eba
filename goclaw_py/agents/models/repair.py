"""Keeps conversations in a form that providers accept (SPEC AGENT-12). Heavy imports.

A history that a provider refuses once would be refused with each later message. So the ids of calls
are made unique when a response comes in, what is known to be refused is changed when a conversation
is sent, and a conversation that is refused nevertheless is sent again in other words.

The rules of SPEC AGENT-12:

No conversation is sent again and again that its provider refuses. Ids of tool calls that are
blank, longer than 64 characters, have other signs than letters, digits and `_.:-`, or that the
conversation has already, are replaced when a response comes in. Each request has exactly one
result for each call, arguments that are objects, nothing empty, and begins with a person. If a
provider refuses it all the same (400; not its key, size or model), what came since the last
response is sent once as plain text, and then, if that is refused too, with a note in its place;
what a person says now is never changed. What was accepted is what later runs read: the repair is
stored with the entries of the run. The run's record has the note `history_repaired`, the log
`history_repaired`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson
from pydantic_ai import RunContext
from pydantic_ai.exceptions import (
    AgentRunError,
    FallbackExceptionGroup,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelRequestRejectedError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from goclaw_py.agents.models.history import REPAIR, closed, is_from_person, words_of

_BEGIN = "[The conversation begins with what the assistant said.]"
_OMITTED = "[left out: the provider of the model did not accept it]"
_WORDLESS = "[no words]"
_GO_ON = "[Go on.]"
"""What stands behind a paused response that a provider does not accept as the last message."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
"""Some models name their calls ``functions.NAME:0``, and want to find these ids again. A provider
that refuses them is sent plain text."""
_ID_CHARS = 32
"""How much of a repeated id is kept: the shortest limit of a provider is 40 characters."""


class Rewriting(StrEnum):
    """How messages are sent that a provider has refused."""

    PLAIN = "plain"
    """As plain text, without calls, results and thoughts."""

    OMITTED = "omitted"
    """Not at all; a note takes the place of each."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Which messages before a run are rewritten from then on: the last ``count``."""

    rewriting: Rewriting
    count: int

    @property
    def metadata(self) -> dict[str, object]:
        """Return its stored form."""
        return {"rewriting": self.rewriting.value, "count": self.count}


def repair_of(message: ModelMessage) -> Repair | None:
    """Return the repair that is stored with the first message of a run."""
    match (message.metadata or {}).get(REPAIR):
        case {"rewriting": str(name), "count": int(count)} if name in set(Rewriting):
            return Repair(Rewriting(name), count)
        case _:
            return None


def repair_history(entries: Sequence[list[ModelMessage]]) -> None:
    """Rewrite in place what later runs have repaired; each item has an entry's messages."""
    places = [(messages, place) for messages in entries for place in range(len(messages))]
    for end, (messages, place) in enumerate(places):
        if (repair := repair_of(messages[place])) is not None:
            for others, other in places[max(end - repair.count, 0) : end]:
                others[other] = rewritten(others[other], repair.rewriting)


def make_ids_unique(response: ModelResponse, known: set[str]) -> None:
    """Give calls other ids if theirs are unusable or ``known``, and add the ids to ``known``.

    Some servers name all calls of a response, or the first of each response, alike.
    """
    calls = response.tool_calls
    ids = [call.tool_call_id for call in calls]
    if not all(map(_is_usable_id, ids)) or len(set(ids)) < len(ids) or not known.isdisjoint(ids):
        response.parts = [
            _renamed(part, known) if isinstance(part, ToolCallPart) else part
            for part in response.parts
        ]
    known.update(call.tool_call_id for call in response.tool_calls)


def _is_usable_id(call_id: str) -> bool:
    return _ID.fullmatch(call_id) is not None


def _renamed(call: ToolCallPart, known: set[str]) -> ToolCallPart:
    call_id = _unused(call.tool_call_id, known)
    known.add(call_id)
    return call if call_id == call.tool_call_id else replace(call, tool_call_id=call_id)


def _unused(call_id: str, known: set[str]) -> str:
    if _is_usable_id(call_id) and call_id not in known:
        return call_id
    number, stem = 2, _NOT_IN_NAMES.sub("_", call_id)[:_ID_CHARS] or "call"
    while (found := f"{stem}-{number}") in known:
        number += 1
    return found


def call_ids(messages: Sequence[ModelMessage]) -> set[str]:
    """Return the ids of all calls in a conversation."""
    return {
        call.tool_call_id
        for message in messages
        if isinstance(message, ModelResponse)
        for call in message.tool_calls
    }


def sendable(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Return a conversation without what providers refuse; the same list if there is none of it.

    Each call has a unique id, arguments that are an object, and exactly one result; nothing is
    empty; a person speaks first.
    """
    if _is_sendable(messages):
        return messages
    known: set[str] = set()
    whole = [
        replace(message, parts=list(_usable(message.parts)))
        if isinstance(message, ModelResponse)
        else replace(message, parts=[*_request_parts(message.parts)])
        for message in messages
    ]
    whole = closed(whole, lambda call: _renamed(call, known))
    if whole and isinstance(whole[0], ModelResponse):
        whole.insert(0, ModelRequest(parts=[UserPromptPart(_BEGIN)]))
    if messages and isinstance(messages[-1], ModelRequest) and isinstance(whole[-1], ModelResponse):
        whole.append(replace(messages[-1], parts=[UserPromptPart(_WORDLESS)]))
    return whole


def _is_sendable(messages: Sequence[ModelMessage]) -> bool:
    known: set[str] = set()
    waiting: list[str] = []
    if not messages or isinstance(messages[0], ModelResponse):
        return False
    for message in messages:
        if not message.parts or any(map(_is_blank, message.parts)):
            return False
        if isinstance(message, ModelResponse):
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            if waiting or not all(map(_is_usable, calls)):
                return False
            waiting = [call.tool_call_id for call in calls]
            if len(set(waiting)) < len(waiting) or not known.isdisjoint(waiting):
                return False
            known.update(waiting)
            continue
        given = [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
        if sorted(given) != sorted(waiting):
            return False
        waiting = []
    return not waiting


def _is_usable(call: ToolCallPart) -> bool:
    has_arguments = not isinstance(call.args, str) or _is_object(call.args)
    return has_arguments and _is_usable_id(call.tool_call_id) and _is_name(call.tool_name)


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _named(name: str) -> str:
    """Return a name that providers accept."""
    return name if _is_name(name) else _NOT_IN_NAMES.sub("_", name)[:64] or "unnamed"


def _is_blank(part: ModelRequestPart | ModelResponsePart) -> bool:
    match part:
        case TextPart(content=text) | UserPromptPart(content=str(text)):
            return not text.strip()
        case _:
            return False


def _is_object(text: str) -> bool:
    if not text:
        return True  # the library sends {}
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _request_parts(parts: Sequence[ModelRequestPart]) -> Iterator[ModelRequestPart]:
    for part in parts:
        if isinstance(part, ToolReturnPart) and not _is_name(part.tool_name):
            result: ToolReturnPart = part
            yield replace(result, tool_name=_named(result.tool_name))
        elif not _is_blank(part):
            yield part


def _usable(parts: Sequence[ModelResponsePart]) -> Iterator[ModelResponsePart]:
    for part in parts:
        if isinstance(part, ToolCallPart):
            call: ToolCallPart = part
            args = call.args
            if isinstance(args, str) and not _is_object(args):
                args = orjson.dumps({"invalid": args}).decode()
            yield replace(call, args=args, tool_name=_named(call.tool_name))
        elif not _is_blank(part):
            yield part


# ---------------------------------------------------------------------------- refused conversations


def is_refusal(error: BaseException) -> bool:
    """Return whether a provider refused a request for what is in it, not for its key or size."""
    if isinstance(error, FallbackExceptionGroup):
        return any(map(is_refusal, error.exceptions))
    elsewhere = (ModelAuthenticationError, ModelNotFoundError, ModelContextWindowExceededError)
    return isinstance(error, ModelRequestRejectedError) and not isinstance(error, elsewhere)


def new_since(messages: Sequence[ModelMessage]) -> int:
    """Return where the part begins that no provider has accepted yet: at its last response."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, ModelResponse) and message.finish_reason is not None:
            return place
    return 0


def rewritten(message: ModelMessage, rewriting: Rewriting) -> ModelMessage:
    """Return a message in other words; the message itself if these are its words."""
    if rewriting is Rewriting.OMITTED:
        text = _OMITTED
    elif _is_plain(message):
        return message
    else:
        text = "\n\n".join(filter(None, map(_line, message.parts))) or _WORDLESS
    if isinstance(message, ModelResponse):
        return replace(message, parts=[TextPart(text)], provider_details=None)
    return replace(message, parts=[UserPromptPart(text)])


def _is_plain(message: ModelMessage) -> bool:
    if isinstance(message, ModelResponse):
        return all(isinstance(part, TextPart) for part in message.parts)
    return is_from_person(message)


def _line(part: ModelRequestPart | ModelResponsePart) -> str:
    match part:
        case UserPromptPart(content=content):
            return words_of(content)
        case TextPart(content=text):
            return text
        case ToolCallPart():
            return f"(Called {part.tool_name} with {part.args_as_json_str()})"
        case ToolReturnPart():
            return f"({part.tool_name} gave: {part.model_response_str()})"
        case _:
            return ""


def _attempts(messages: Sequence[ModelMessage]) -> Iterator[tuple[Rewriting, int]]:
    """Yield how to send a refused conversation: the rewriting, and where it begins.

    What came since the last response is suspected first, as plain text and then itself. What a
    person says now is never changed.
    """
    begin, end = new_since(messages), _end(messages)
    has_structure = not all(map(_is_plain, messages[begin:end]))
    if has_structure:
        yield Rewriting.PLAIN, begin
    if end - begin > 1 or (has_structure and end > begin):
        yield Rewriting.OMITTED, begin
    if not has_structure and not all(map(_is_plain, messages[:begin])):
        yield Rewriting.PLAIN, 0


def _end(messages: Sequence[ModelMessage]) -> int:
    return len(messages) - 1 if messages and is_from_person(messages[-1]) else len(messages)


def rewrite(messages: list[ModelMessage], rewriting: Rewriting, begin: int) -> None:
    """Rewrite the messages from ``begin`` on in place, but not what a person says at the end."""
    for place in range(begin, _end(messages)):
        messages[place] = rewritten(messages[place], rewriting)


class AcceptedModel(WrapperModel):
    """A model that is sent only what providers accept.

    ``repaired`` is called when a conversation was refused and then accepted, with the rewriting and
    where it begins. ``has_begun``: the last response has, so its request is not retried.
    """

    has_begun = False

    def __init__(self, model: Model, repaired: Callable[[Rewriting, int], None]) -> None:
        super().__init__(model)
        self._repaired = repaired

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Request a streamed response."""

        async def request(sent: list[ModelMessage]) -> StreamedResponse:
            stream = await stack.enter_async_context(
                self.wrapped.request_stream(
                    sent, model_settings, model_request_parameters, run_context
                )
            )
            self.has_begun = True
            return stream

        async with AsyncExitStack() as stack:
            self.has_begun, sent = False, sendable(messages)
            refusal: Exception
            try:
                stream = await request(sent)
            except (AgentRunError, FallbackExceptionGroup) as error:
                refusal = error
            else:
                yield stream
                return
            if isinstance(sent[-1], ModelResponse) and is_refusal(refusal):
                yield await request([*sent, ModelRequest(parts=[UserPromptPart(_GO_ON)])])
                return
            for rewriting, begin in _attempts(sent) if is_refusal(refusal) else ():
                changed = list(sent)
                rewrite(changed, rewriting, begin)
                try:
                    stream = await request(sendable(changed))
                except (AgentRunError, FallbackExceptionGroup) as error:
                    if not is_refusal(error):
                        raise
                else:
                    self._repaired(rewriting, begin)
                    yield stream
                    return
            raise refusal
