"""Conversion of a session's history to pydantic-ai messages and back. Heavy imports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from types import MappingProxyType

from pydantic import ValidationError
from pydantic_ai.messages import (
    BaseToolCallPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from goclaw_py.core.concurrency import in_thread_if_long
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.storable import storable
from goclaw_py.core.text import is_blank, well_formed_json
from goclaw_py.runs.thoughts import separate

FORMAT = "pydantic-ai"

BETWEEN_PARTS = "\n\n"
"""The separator of texts in a reply."""

INTERRUPTED = "[interrupted: nobody knows how far this got]"
"""The result of a tool call that did not return."""

_MARK = "goclaw_summary"
REPAIR = "goclaw_repair"
"""The metadata of a run's first message if it repaired what came before (``repair.Repair``)."""

NO_REPAIR: Mapping[str, object] = MappingProxyType({})
_NOTHING = ModelRequest(parts=[])


def to_entries(
    prompt: str,
    reply: str,
    messages: Sequence[ModelMessage],
    *,
    mark: str = "",
    repair: Mapping[str, object] = NO_REPAIR,
) -> tuple[HistoryEntry, ...]:
    """Create the entries of a finished run: two, and two more for each time it was steered.

    ``messages`` are the new ones of the run. The first, the prompt, is the native form of the
    user's entry; the following ones are that of the assistant's, until the next message of a
    person. So the entries of a session, read one by one, give exactly the messages that the model
    saw, except pictures and instructions, which are not stored.

    ``mark``: see ``mark_of``. ``repair``, of the messages before these, is stored with the first.
    """
    lean = [_lean(message, mark) for message in messages]
    if repair and lean:
        lean[0] = replace(lean[0], metadata={**(lean[0].metadata or {}), REPAIR: dict(repair)})
    drop_blanks(lean)
    messages = [message for message in lean if message.parts or isinstance(message, ModelRequest)]
    steered = [place for place, message in enumerate(messages) if place and is_from_person(message)]
    entries = [HistoryEntry(Role.USER, prompt, _dump(messages[:1]), FORMAT)]
    begin = 1
    for place in steered:
        answer = messages[begin:place]
        if said := _text(answer):
            entries.append(HistoryEntry(Role.ASSISTANT, said, _dump(answer), FORMAT))
            begin = place
        # What was done without a word goes with the words that follow it.
        asked = messages[begin : place + 1]
        entries.append(HistoryEntry(Role.USER, _text(asked[-1:]), _dump(asked), FORMAT))
        begin = place + 1
    rest = messages[begin:]
    last = _text(rest) if steered else reply
    return (*entries, HistoryEntry(Role.ASSISTANT, last, _dump(rest), FORMAT))


def interrupted_entries(
    prompt: str,
    messages: Sequence[ModelMessage],
    note: str,
    *,
    mark: str = "",
    repair: Mapping[str, object] = NO_REPAIR,
) -> tuple[HistoryEntry, ...]:
    """Create the entries of an interrupted run; ``note`` is the assistant's last text.

    ``messages`` may end anywhere. The entries are valid for a model: each tool call has a result,
    and of an incomplete response only the text is kept.
    """
    whole = closed(messages) or [ModelRequest(parts=[UserPromptPart(prompt)])]
    end = TextPart(note or INTERRUPTED)
    last = whole[-1]
    if isinstance(last, ModelResponse):
        whole[-1] = replace(last, parts=[*last.parts, end])
    else:
        whole.append(ModelResponse(parts=[end]))
    return to_entries(prompt, _text(whole[1:]), whole, mark=mark, repair=repair)


def to_messages(history: Sequence[HistoryEntry]) -> list[ModelMessage]:
    """Convert entries; those of other loops, and unreadable ones, by their plain text."""
    return [message for entry in history for message in load(entry)]


def load(entry: HistoryEntry) -> list[ModelMessage]:
    """Convert an entry."""
    if entry.format == FORMAT and entry.native is not None:
        try:
            return ModelMessagesTypeAdapter.validate_json(entry.native)
        except ValidationError:
            # Written by a release that this one cannot read: the words are still there.
            return [_plain(entry)]
    return [_plain(entry)]


def mark_of(request: ModelRequest) -> str:
    """Return a short mark of the summary in a request; "" for none (SPEC AGENT-4).

    A server's token count is not valid for requests with another mark.
    """
    mark = (request.metadata or {}).get(_MARK, "")
    return mark if isinstance(mark, str) else ""


def _same(call: ToolCallPart) -> ToolCallPart:
    return call


def closed(
    messages: Sequence[ModelMessage], rename: Callable[[ToolCallPart], ToolCallPart] = _same
) -> list[ModelMessage]:
    """Make messages valid: each tool call is followed by exactly one result.

    ``rename`` may return a call with another id, which its result then gets too.
    """
    whole: list[ModelMessage] = []
    calls: Sequence[_Call] = ()
    for message in messages:
        if isinstance(message, ModelResponse):
            answer = _without_unanswered_calls(message)
            whole.append(_with_results(_NOTHING, calls))
            new = {id(call): rename(call) for call in answer.tool_calls}
            calls = [(call.tool_call_id, new[id(call)]) for call in answer.tool_calls]
            if any(call.tool_call_id != call_id for call_id, call in calls):
                answer = replace(answer, parts=[new.get(id(part), part) for part in answer.parts])
            whole.append(answer)
        elif is_from_person(message):
            whole += [_with_results(_NOTHING, calls), message]
            calls = ()
        else:
            whole.append(_with_results(message, calls))
            calls = ()
    whole.append(_with_results(_NOTHING, calls))
    return [message for message in whole if message.parts]


_Call = tuple[str, ToolCallPart]
"""A call with the id that its result has."""


def _with_results(request: ModelRequest, calls: Sequence[_Call]) -> ModelRequest:
    """Return a request with exactly the results of these calls, before its other parts."""
    found: list[ToolReturnPart] = []
    others: list[ModelRequestPart] = []
    missing = list(calls)
    for part in request.parts:
        if not isinstance(part, ToolReturnPart):
            others.append(part)
            continue
        for each in missing:
            if each[0] == part.tool_call_id:
                missing.remove(each)
                new_id = each[1].tool_call_id
                is_same = new_id == part.tool_call_id
                found.append(part if is_same else replace(part, tool_call_id=new_id))
                break
    made = [
        ToolReturnPart(call.tool_name, INTERRUPTED, call.tool_call_id, outcome="interrupted")
        for _, call in missing
    ]
    return replace(request, parts=[*found, *made, *others], state="complete")


def _without_unanswered_calls(response: ModelResponse) -> ModelResponse:
    if response.state == "complete":
        return response
    # The arguments of a cut call are not what the model meant, and cut thoughts are not signed.
    cut = replace(response, state="complete")
    mend(cut)
    cut.parts = [part for part in cut.parts if isinstance(part, TextPart) and part.content]
    return cut


def _lean(message: ModelMessage, mark: str) -> ModelMessage:
    """Return the stored form of a message, without pictures and instructions."""
    if not isinstance(message, ModelRequest):
        return replace(message)
    parts = [
        replace(part, content=words_of(part.content))
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    metadata = {**(message.metadata or {}), _MARK: mark} if mark else message.metadata
    return replace(message, parts=parts, instructions=None, metadata=metadata)


def is_readable(message: ModelMessage) -> bool:
    """Return whether everything in a response has its declared type.

    The libraries check nothing of what they receive.
    """
    if not isinstance(message, ModelResponse):
        return True
    texts: list[object] = [message.model_name or "", message.provider_response_id or ""]
    for part in message.parts:
        if isinstance(part, BaseToolCallPart):
            texts += [part.tool_name, part.tool_call_id]
            texts.append("" if part.args is None or isinstance(part.args, dict) else part.args)
        elif isinstance(part, TextPart | ThinkingPart):
            texts.append(part.content)
    return all(isinstance(text, str) for text in texts)


def check_readable(message: ModelMessage) -> None:
    """Raise ``TypeError`` unless a response is readable."""
    if not is_readable(message):
        raise TypeError("something in it is no text")


def mend(response: ModelResponse) -> None:
    """Give a response the form in which it is stored and sent to a model again.

    Thoughts in its text become parts of their own. Halves of surrogate pairs are removed, also from
    the ids that a server gives, and from the arguments of its calls: neither a store nor a model's
    server takes them, and the library could not read the arguments.
    """
    clean = storable(response)
    for field in fields(response):
        setattr(response, field.name, getattr(clean, field.name))
    response.parts = [each for part in clean.parts for each in _separated(part)]
    for part in response.parts:
        if isinstance(part, BaseToolCallPart) and isinstance(part.args, str):
            part.args = well_formed_json(part.args)


async def mend_new(response: ModelResponse) -> None:
    """Give a response that has just come its form, in a thread if its text is long."""
    chars = sum(len(part.content) for part in response.parts if isinstance(part, TextPart))
    await in_thread_if_long(chars, partial(mend, response))


def _separated(part: ModelResponsePart) -> Sequence[ModelResponsePart]:
    if not isinstance(part, TextPart):
        return [part]
    found = separate(part.content)
    if not found.thoughts:
        return [part]
    return [*map(ThinkingPart, found.thoughts), replace(part, content=found.text)]


def drop_blanks(messages: Sequence[ModelMessage]) -> None:
    """Remove blank texts from responses: some servers refuse them in requests."""
    for message in messages:
        if isinstance(message, ModelResponse) and any(map(_is_blank, message.parts)):
            message.parts = [part for part in message.parts if not _is_blank(part)]


def _is_blank(part: object) -> bool:
    return isinstance(part, TextPart) and is_blank(part.content)


def is_from_person(message: ModelMessage) -> bool:
    """Return whether a message contains only what a person said."""
    if not isinstance(message, ModelRequest) or not message.parts:
        return False
    return all(isinstance(part, UserPromptPart) for part in message.parts)


def _text(messages: Sequence[ModelMessage]) -> str:
    """Return the texts of messages, each part as a paragraph."""
    texts = [
        words_of(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, TextPart | UserPromptPart)
    ]
    return BETWEEN_PARTS.join(text for text in texts if text)


def words_of(content: str | Sequence[UserContent]) -> str:
    """Return the text of what a person said."""
    if isinstance(content, str):
        return content
    return "\n".join(item for item in content if isinstance(item, str))


def _dump(messages: Sequence[ModelMessage]) -> bytes:
    return ModelMessagesTypeAdapter.dump_json(list(messages))


def _plain(entry: HistoryEntry) -> ModelMessage:
    match entry.role:
        case Role.USER:
            return ModelRequest(parts=[UserPromptPart(entry.text)])
        case Role.ASSISTANT:
            return ModelResponse(parts=[TextPart(entry.text)])
