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


def to_entries(
    prompt: str, reply: str, messages: Sequence[ModelMessage]
) -> tuple[HistoryEntry, HistoryEntry]:
    """Make the two entries of a finished run.

    ``messages`` are the new ones of the run. The first, which asks, is the native form of the
    user's entry; all others are that of the assistant's. So the entries of a session, each read on
    its own and in order, give exactly the messages that the model saw.
    """
    return (
        HistoryEntry(Role.USER, prompt, _dump(messages[:1]), FORMAT),
        HistoryEntry(Role.ASSISTANT, reply, _dump(messages[1:]), FORMAT),
    )


def to_messages(history: Sequence[HistoryEntry]) -> list[ModelMessage]:
    """Read entries; those of other loops, or no longer readable ones, from their plain text."""
    return [message for entry in history for message in _load(entry)]


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
