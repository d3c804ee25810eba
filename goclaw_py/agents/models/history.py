"""A session's history as pydantic-ai messages, and back. Imports heavy libraries."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from goclaw_py.ports.agent import HistoryEntry, Role

FORMAT = "pydantic-ai"

BETWEEN_PARTS = "\n\n"
"""Between two texts of one reply."""


def to_entries(
    prompt: str, reply: str, messages: Sequence[ModelMessage]
) -> tuple[HistoryEntry, ...]:
    """Make the entries of a finished run: two, and two more for each time it was steered.

    ``messages`` are the new ones of the run. The first, which asks, is the native form of the
    user's entry; those that follow are that of the assistant's, until a person speaks again. So the
    entries of a session, each read on its own and in order, give exactly the messages that the
    model saw.
    """
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


def to_messages(history: Sequence[HistoryEntry]) -> list[ModelMessage]:
    """Read entries; those of other loops, or no longer readable ones, from their plain text."""
    return [message for entry in history for message in _load(entry)]


def _is_said(message: ModelMessage) -> bool:
    """Whether it holds what a person said and nothing else, such as the results of tools."""
    if not isinstance(message, ModelRequest) or not message.parts:
        return False
    return all(isinstance(part, UserPromptPart) for part in message.parts)


def _text(messages: Sequence[ModelMessage]) -> str:
    """The words in some messages, one part of them a paragraph."""
    texts = [
        str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, TextPart | UserPromptPart)
    ]
    return BETWEEN_PARTS.join(text for text in texts if text)


def _dump(messages: Sequence[ModelMessage]) -> bytes:
    return ModelMessagesTypeAdapter.dump_json(list(messages))


def _load(entry: HistoryEntry) -> list[ModelMessage]:
    if entry.format == FORMAT and entry.native is not None:
        try:
            return ModelMessagesTypeAdapter.validate_json(entry.native)
        except ValidationError:
            # Written by a release that this one cannot read: the words are still there.
            return [_plain(entry)]
    return [_plain(entry)]


def _plain(entry: HistoryEntry) -> ModelMessage:
    match entry.role:
        case Role.USER:
            return ModelRequest(parts=[UserPromptPart(entry.text)])
        case Role.ASSISTANT:
            return ModelResponse(parts=[TextPart(entry.text)])
