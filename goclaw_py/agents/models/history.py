"""Conversion of a session's history to pydantic-ai messages and back. Heavy imports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from goclaw_py.common.text import is_blank
from goclaw_py.ports.agent import HistoryEntry, Role

FORMAT = "pydantic-ai"

BETWEEN_PARTS = "\n\n"
"""The separator of texts in a reply."""

INTERRUPTED = "[interrupted: nobody knows how far this got]"
"""The result of a tool call that did not return."""

_MARK = "goclaw_summary"
_NOTHING = ModelRequest(parts=[])


def to_entries(
    prompt: str, reply: str, messages: Sequence[ModelMessage], *, mark: str = ""
) -> tuple[HistoryEntry, ...]:
    """Create the entries of a finished run: two, and two more for each time it was steered.

    ``messages`` are the new ones of the run. The first, the prompt, is the native form of the
    user's entry; the following ones are that of the assistant's, until the next message of a
    person. So the entries of a session, read one by one, give exactly the messages that the model
    saw, except pictures and instructions, which are not stored.

    ``mark``: see ``mark_of``.
    """
    lean = [_lean(message, mark) for message in messages]
    drop_blanks(lean)
    messages = [message for message in lean if message.parts or isinstance(message, ModelRequest)]
    steered = [place for place, message in enumerate(messages) if place and _is_said(message)]
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


def cut_entries(
    prompt: str, messages: Sequence[ModelMessage], note: str, *, mark: str = ""
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
    return to_entries(prompt, _text(whole[1:]), whole, mark=mark)


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


def closed(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Make messages valid: each tool call is followed by exactly one result."""
    whole: list[ModelMessage] = []
    calls: Sequence[ToolCallPart] = ()
    for message in messages:
        if isinstance(message, ModelResponse):
            answer = _without_cut_calls(message)
            whole += [_with_results(_NOTHING, calls), answer]
            calls = answer.tool_calls
        elif _is_said(message):
            whole += [_with_results(_NOTHING, calls), message]
            calls = ()
        else:
            whole.append(_with_results(message, calls))
            calls = ()
    whole.append(_with_results(_NOTHING, calls))
    return [message for message in whole if message.parts]


def _with_results(request: ModelRequest, calls: Sequence[ToolCallPart]) -> ModelRequest:
    """Return a request with exactly the results of these calls, before its other parts."""
    found: list[ToolReturnPart] = []
    others: list[ModelRequestPart] = []
    missing = list(calls)
    for part in request.parts:
        if not isinstance(part, ToolReturnPart):
            others.append(part)
            continue
        for call in missing:
            if call.tool_call_id == part.tool_call_id:
                missing.remove(call)
                found.append(part)
                break
    made = [
        ToolReturnPart(call.tool_name, INTERRUPTED, call.tool_call_id, outcome="interrupted")
        for call in missing
    ]
    return replace(request, parts=[*found, *made, *others], state="complete")


def _without_cut_calls(response: ModelResponse) -> ModelResponse:
    if response.state == "complete":
        return response
    # The arguments of a cut call are not what the model meant, and cut thoughts are not signed.
    texts = [part for part in response.parts if isinstance(part, TextPart) and part.content]
    return replace(response, parts=texts, state="complete")


def _lean(message: ModelMessage, mark: str) -> ModelMessage:
    """Return the stored form of a message, without pictures and instructions."""
    if not isinstance(message, ModelRequest):
        return replace(message)
    parts = [
        replace(part, content=_words(part.content))
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    metadata = {**(message.metadata or {}), _MARK: mark} if mark else message.metadata
    return replace(message, parts=parts, instructions=None, metadata=metadata)


def drop_blanks(messages: Sequence[ModelMessage]) -> None:
    """Remove blank texts from responses: some servers refuse them in requests."""
    for message in messages:
        if isinstance(message, ModelResponse) and any(map(_is_blank, message.parts)):
            message.parts = [part for part in message.parts if not _is_blank(part)]


def _is_blank(part: object) -> bool:
    return isinstance(part, TextPart) and is_blank(part.content)


def _is_said(message: ModelMessage) -> bool:
    """Return whether a message contains only what a person said."""
    if not isinstance(message, ModelRequest) or not message.parts:
        return False
    return all(isinstance(part, UserPromptPart) for part in message.parts)


def _text(messages: Sequence[ModelMessage]) -> str:
    """Return the texts of messages, each part as a paragraph."""
    texts = [
        _words(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, TextPart | UserPromptPart)
    ]
    return BETWEEN_PARTS.join(text for text in texts if text)


def _words(content: str | Sequence[UserContent]) -> str:
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
