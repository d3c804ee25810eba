"""A session's history as pydantic-ai messages, and back. Imports heavy libraries."""

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

from goclaw_py.ports.agent import HistoryEntry, Role

FORMAT = "pydantic-ai"

BETWEEN_PARTS = "\n\n"
"""Between two texts of one reply."""

INTERRUPTED = "[interrupted: nobody knows how far this got]"
"""The result of a tool call that never came back."""

_MARK = "goclaw_summary"
_NOTHING = ModelRequest(parts=[])


def to_entries(
    prompt: str, reply: str, messages: Sequence[ModelMessage], *, mark: str = ""
) -> tuple[HistoryEntry, ...]:
    """Make the entries of a finished run: two, and two more for each time it was steered.

    ``messages`` are the new ones of the run. The first, which asks, is the native form of the
    user's entry; those that follow are that of the assistant's, until a person speaks again. So the
    entries of a session, each read on its own and in order, give exactly the messages that the
    model saw, but for pictures and instructions: they are not kept.

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
    """Make the entries of a run that was cut short; ``note`` is the last that its assistant says.

    ``messages`` may end anywhere. A model can read the entries: each call of a tool has its result,
    and of an answer that was cut off only the text is kept.
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
    """Read entries; those of other loops, or no longer readable ones, from their plain text."""
    return [message for entry in history for message in load(entry)]


def load(entry: HistoryEntry) -> list[ModelMessage]:
    """Read one entry."""
    if entry.format == FORMAT and entry.native is not None:
        try:
            return ModelMessagesTypeAdapter.validate_json(entry.native)
        except ValidationError:
            # Written by a release that this one cannot read: the words are still there.
            return [_plain(entry)]
    return [_plain(entry)]


def mark_of(request: ModelRequest) -> str:
    """Under which summary a request was sent, in short; "" for none (SPEC AGENT-4).

    What a server counted for it says nothing about the size of what is sent under another one.
    """
    mark = (request.metadata or {}).get(_MARK, "")
    return mark if isinstance(mark, str) else ""


def closed(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Make messages valid: each call of a tool is followed by the one result that it has."""
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
    """A request with exactly the results of these calls, before all else that is in it."""
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
    """A message as it is stored: pictures are files, and instructions are those of today."""
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
    """Take texts without a word out of answers: some servers refuse to be sent them."""
    for message in messages:
        if isinstance(message, ModelResponse) and any(map(_is_blank, message.parts)):
            message.parts = [part for part in message.parts if not _is_blank(part)]


def _is_blank(part: object) -> bool:
    return isinstance(part, TextPart) and not part.content.strip()


def _is_said(message: ModelMessage) -> bool:
    """Whether it holds what a person said and nothing else, such as the results of tools."""
    if not isinstance(message, ModelRequest) or not message.parts:
        return False
    return all(isinstance(part, UserPromptPart) for part in message.parts)


def _text(messages: Sequence[ModelMessage]) -> str:
    """The words in some messages, one part of them a paragraph."""
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
