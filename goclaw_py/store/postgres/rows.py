"""Conversion of database rows to values and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import orjson

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import HistoryEntry, OutboundMessage, Role, Sender, Target, TopicState
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import RunNote, Usage
from goclaw_py.records import (
    Chat,
    DeadLetter,
    Draft,
    DroppedMessage,
    InboxKind,
    InboxRow,
    LastActivity,
    NewInbox,
    Node,
    NodeState,
    OutboxRow,
    OutboxState,
    PairingRequest,
    Person,
    Session,
    Standing,
    StoredEntry,
    StoredRun,
    ToolCall,
    Topic,
    Unanswered,
)
from goclaw_py.scheduler.models import Mode
from goclaw_py.store.postgres.messages.message_json import (
    files_json,
    inbound,
    outbound,
    packed,
    sent_files,
)
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.text import storable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TargetColumns:
    """A target as its four columns, all null for none."""

    channel: str | None
    account: str | None
    chat: str | None
    thread: str | None

    @classmethod
    def of(cls, target: Target | None) -> TargetColumns:
        """Return the columns of a target."""
        if target is None:
            return cls(None, None, None, None)
        return cls(target.channel, target.account, target.chat, target.thread)


def from_row(kind: type[T], row: Row, /, **given: object) -> T:
    """Create a value from the columns that have the names of its fields, except those ``given``.

    Columns of enums hold their values.
    """
    for name, enum in _fields(kind):  # type: ignore[arg-type] # a class is hashable
        if name not in given:
            value = row[name]
            given[name] = value if enum is None or value is None else enum(value)
    return kind(**given)


@cache
def _fields(kind: type) -> tuple[tuple[str, type[Enum] | None], ...]:
    """Return the fields of a dataclass, each with its enum if it is one or None."""
    return tuple((name, _enum(hint)) for name, hint in get_type_hints(kind).items())


def _enum(hint: object) -> type[Enum] | None:
    kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type)]
    return next((kind for kind in kinds if issubclass(kind, Enum)), None)


def target(row: Row) -> Target | None:
    """Return the target in a row, if any."""
    return None if row["chat"] is None else from_row(Target, row)


def node(row: Row) -> Node:
    """Convert a row of ``nodes``."""
    return from_row(Node, row, state=_node_state(row["state"]))


def node_state_json(state: NodeState) -> str:
    """Return the value of the column ``state``."""
    return orjson.dumps(storable(state)).decode()


def _node_state(text: str) -> NodeState:
    """Parse the column ``state``, ignoring what another release may have added."""
    told = orjson.loads(text)
    known = {field.name: told[field.name] for field in fields(NodeState) if field.name in told}
    return NodeState(**known | {"places": tuple(known.get("places", ()))})


def inbox_row(row: Row) -> InboxRow:
    """Convert a row of ``inbox``."""
    dropped = None
    if row["outcome"] is not None:
        dropped = DroppedMessage(row["id"], Outcome(row["outcome"]), _reason(row))
    message, mode = inbound(row["message"]), queue_mode(row)
    return from_row(InboxRow, row, message=message, mode=mode, dropped=dropped)


def queue_mode(row: Row) -> Mode | None:
    """Return the queue mode that was chosen for a session."""
    return None if row["queue_mode"] is None else Mode(row["queue_mode"])


def unanswered(row: Row) -> Unanswered:
    """Convert a row of ``inbox`` without an answer."""
    message = inbound(row["message"])
    if row["finished_at"] is not None:
        return from_row(Unanswered, row, message=message)
    # A dropped row ends when its sender is notified.
    return from_row(Unanswered, row, message=message, outcome=None, reason=None)


def _reason(row: Row) -> Reason | None:
    return None if row["reason"] is None else Reason(row["reason"])


def dead_letter(row: Row) -> DeadLetter:
    """Convert a row of ``inbox`` for operators."""
    return from_row(DeadLetter, row, row=unanswered(row))


def usage_line(usage: Usage) -> dict[str, object]:
    """Return usage as JSON for statements."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
    }


def usage(row: Row) -> Usage:
    """Return the usage of a run, or of several together."""
    return Usage(
        requests=int(row["requests"]),
        input_tokens=int(row["input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        cached_tokens=int(row["cached_tokens"]),
        cost_usd=row["cost_usd"],
    )


def run(row: Row) -> StoredRun:
    """Convert a row of ``runs``."""
    return from_row(
        StoredRun,
        row,
        usage=None if row["requests"] is None else usage(row),
        payer=SessionKey(row["payer"] or row["session"]),
        submitted_at=row["submitted_at"] or row["started_at"],
        target=target(row),
        tools=calls(row["tools"]),
        # A newer release may know others.
        notes=tuple(note for note in RunNote if note in (row["notes"] or ())),
        prompt="",
    )


def calls(text: str | None) -> tuple[ToolCall, ...]:
    """Parse the column ``runs.tools``; null is none."""
    return () if text is None else tuple(map(_call, orjson.loads(text)))


def _call(given: dict[str, Any]) -> ToolCall:
    """Convert a tool call; unknown fields of a newer release are ignored."""
    return ToolCall(
        name=given["name"],
        arguments=given["arguments"],
        started_at=datetime.fromisoformat(given["started_at"]),
        side_effects=given["side_effects"],
        seconds=given["seconds"],
        ok=given["ok"],
        result=given["result"],
        uncertain=given.get("uncertain", False),
        text_before=given.get("text_before", 0),
    )


def session(row: Row) -> Session:
    """Convert a row of ``sessions`` with its two counts."""
    return from_row(Session, row, target=target(row), pinned=tuple(row["pinned"]))


def entry(row: Row) -> HistoryEntry:
    """Return the entry in a row of ``history``."""
    return HistoryEntry(Role(row["role"]), row["text"], row["native"], row["format"])


def stored_entry(row: Row) -> StoredEntry:
    """Convert a row of ``history``."""
    said = replace(entry(row), files=sent_files(row["files"]))
    return from_row(StoredEntry, row, entry=said)


def outbox_row(row: Row) -> OutboxRow:
    """Convert a row of ``outbox``."""
    state = outbox_state(row)
    sent_at = row["finished_at"] if state is OutboxState.SENT else None
    return from_row(OutboxRow, row, message=outbound(row["message"]), sent_at=sent_at, state=state)


def outbox_state(row: Row) -> OutboxState:
    """Return the state of a row of ``outbox``: its owner is sending it."""
    return OutboxState(row["state"]) if row["owner"] is None else OutboxState.SENDING


def outbox_columns(messages: Sequence[OutboundMessage]) -> tuple[list[str], ...]:
    """Return the four arrays for ``outbox.insert``."""
    targets = [message.target for message in messages]
    return (
        [place.channel for place in targets],
        [place.account for place in targets],
        [place.chat for place in targets],
        [packed(message) for message in messages],
    )


def person(row: Row) -> Person:
    """Convert a row of ``people``."""
    return from_row(Person, row, sender=_sender(row), standing=Standing(row["role"]))


def _sender(row: Row) -> Sender:
    return Sender(row["sender_id"], row["name"], row["username"])


def pairing_request(row: Row) -> PairingRequest:
    """Convert a row of ``pairing_requests``."""
    # A release that knew of no chats has stored "": in a direct chat it is the sender's id.
    chat_id = row["chat"] or row["sender_id"]
    return from_row(PairingRequest, row, sender=_sender(row), chat=chat_id)


def retained_json(wrote: Sequence[NewInbox]) -> str:
    """Return the messages of a person who requests access, for the column ``messages``."""
    lines = [
        {
            "message": orjson.Fragment(packed(row.message).encode()),
            "session": row.session,
            "agent": row.agent,
            "kind": row.kind,
        }
        for row in wrote
    ]
    return orjson.dumps(lines).decode()


def retained(text: str) -> list[NewInbox]:
    """The inverse of ``kept_json``."""
    return [
        NewInbox(
            inbound(orjson.dumps(line["message"]).decode()),
            SessionKey(line["session"]),
            AgentName(line["agent"]),
            InboxKind(line["kind"]),
        )
        for line in orjson.loads(text)
    ]


def chat(row: Row) -> Chat:
    """Convert a row of ``chats``."""
    return from_row(Chat, row)


def topic(row: Row) -> Topic:
    """Convert a row of ``topics``."""
    return Topic(
        Target(row["channel"], row["account"], row["chat"], row["thread"] or None),
        row["name"],
        TopicState(row["gone"]),
        row["notified"],
    )


def last_activity(row: Row) -> LastActivity:
    """Convert a row of ``sessions`` with its last activity."""
    place, sender_id, at = from_row(Target, row), row["last_sender"], row["last_heard_at"]
    return from_row(LastActivity, row, target=place, sender_id=sender_id, at=at)


def draft(row: Row) -> Draft:
    """Convert a row of ``drafts``."""
    return from_row(Draft, row, target=from_row(Target, row))


def stored_entry_columns(entries: Sequence[StoredEntry]) -> tuple[object, ...]:
    """Return the columns of history entries with their times and runs."""
    return (
        *entry_columns([one.entry for one in entries]),
        [one.at for one in entries],
        [one.run_id for one in entries],
    )


def entry_columns(entries: Sequence[HistoryEntry]) -> tuple[object, ...]:
    """Return the columns of history entries."""
    return (
        [entry.role for entry in entries],
        [entry.text for entry in entries],
        [entry.native for entry in entries],
        [entry.format for entry in entries],
        [files_json(entry.files) for entry in entries],
    )
