"""Rows of the database to values and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import orjson

from goclaw_py.model.ids import AgentName, LaneName, NodeId, OccurrenceId, RunId, SessionKey
from goclaw_py.model.messages import OutboundMessage, PeerKind, Sender, Target, TopicState
from goclaw_py.model.outcomes import Outcome, Reason, Trigger
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.store import (
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
    RunSpan,
    Session,
    Standing,
    StoredEntry,
    StoredRun,
    Topic,
    Unanswered,
)
from goclaw_py.scheduler.models import Mode
from goclaw_py.store.postgres.messages.message_json import inbound, outbound, packed
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.postgres.runs.tools import calls
from goclaw_py.store.text import storable


@dataclass(frozen=True, slots=True)
class TargetColumns:
    """A target as the four columns that hold it, all null for none."""

    channel: str | None
    account: str | None
    chat: str | None
    thread: str | None

    @classmethod
    def of(cls, target: Target | None) -> TargetColumns:
        """Its columns."""
        if target is None:
            return cls(None, None, None, None)
        return cls(target.channel, target.account, target.chat, target.thread)


def target(row: Row) -> Target | None:
    """The place that a row names, if any."""
    if row["chat"] is None:
        return None
    return Target(row["channel"], row["account"], row["chat"], row["thread"])


def node(row: Row) -> Node:
    """A row of ``nodes``."""
    return Node(
        id=NodeId(row["id"]),
        host=row["host"],
        pid=row["pid"],
        release=row["release"],
        started_at=row["started_at"],
        lease_until=row["lease_until"],
        state=_node_state(row["state"]),
    )


def node_state_json(state: NodeState) -> str:
    """For the column ``state``."""
    return orjson.dumps(storable(state)).decode()


def _node_state(text: str) -> NodeState:
    """As far as this release knows it; another one may have told it."""
    told = orjson.loads(text)
    known = {field.name: told[field.name] for field in fields(NodeState) if field.name in told}
    return NodeState(**known | {"places": tuple(known.get("places", ()))})


def inbox_row(row: Row) -> InboxRow:
    """A row of ``inbox``."""
    return InboxRow(
        id=row["id"],
        message=inbound(row["message"]),
        session=SessionKey(row["session"]),
        agent=AgentName(row["agent"]),
        kind=InboxKind(row["kind"]),
        attempts=row["attempts"],
        received_at=row["received_at"],
        mode=queue_mode(row),
        dropped=None
        if row["outcome"] is None
        else DroppedMessage(row["id"], Outcome(row["outcome"]), _reason(row)),
    )


def queue_mode(row: Row) -> Mode | None:
    """The queue mode that was chosen for a session."""
    return None if row["queue_mode"] is None else Mode(row["queue_mode"])


def unanswered(row: Row) -> Unanswered:
    """A row of ``inbox`` without an answer."""
    # One that was dropped ends when its sender is told.
    has_ended = row["finished_at"] is not None
    return Unanswered(
        id=row["id"],
        message=inbound(row["message"]),
        run_id=None if row["run_id"] is None else RunId(row["run_id"]),
        received_at=row["received_at"],
        finished_at=row["finished_at"],
        outcome=Outcome(row["outcome"]) if has_ended else None,
        reason=_reason(row) if has_ended else None,
    )


def _reason(row: Row) -> Reason | None:
    return None if row["reason"] is None else Reason(row["reason"])


def letter(row: Row) -> DeadLetter:
    """A row of ``inbox`` for operators."""
    return DeadLetter(
        row=unanswered(row),
        session=SessionKey(row["session"]),
        agent=AgentName(row["agent"]),
        attempts=row["attempts"],
    )


def usage_line(usage: Usage) -> dict[str, object]:
    """What was used, as statements take it in JSON."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
    }


def usage(row: Row) -> Usage:
    """The usage of a run, or a sum of several."""
    return Usage(
        requests=int(row["requests"]),
        input_tokens=int(row["input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        cached_tokens=int(row["cached_tokens"]),
        cost_usd=row["cost_usd"],
    )


def run(row: Row) -> StoredRun:
    """A row of ``runs``."""
    return StoredRun(
        id=RunId(row["id"]),
        session=SessionKey(row["session"]),
        agent=AgentName(row["agent"]),
        trigger=Trigger(row["trigger"]),
        lane=LaneName(row["lane"]),
        node=NodeId(row["node"]),
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        reason=_reason(row),
        error=row["error"],
        usage=None if row["requests"] is None else usage(row),
        model=row["model"],
        parent=None if row["parent"] is None else RunId(row["parent"]),
        payer=SessionKey(row["payer"] or row["session"]),
        submitted_at=row["submitted_at"] or row["started_at"],
        target=target(row),
        first_text_at=row["first_text_at"],
        tools=calls(row["tools"]),
        occurrence=None if row["occurrence"] is None else OccurrenceId(row["occurrence"]),
    )


def run_span(row: Row) -> RunSpan:
    """A row of a query that names its columns."""
    return RunSpan(
        id=RunId(row["id"]),
        session=SessionKey(row["session"]),
        agent=AgentName(row["agent"]),
        lane=LaneName(row["lane"]),
        trigger=Trigger(row["trigger"]),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        parent=None if row["parent"] is None else RunId(row["parent"]),
        submitted_at=row["submitted_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        cost_usd=row["cost_usd"],
    )


def session(row: Row) -> Session:
    """A row of ``sessions`` with its two counts."""
    return Session(
        key=SessionKey(row["key"]),
        agent=AgentName(row["agent"]),
        target=target(row),
        created_at=row["created_at"],
        last_active_at=row["last_active_at"],
        owner=None if row["owner"] is None else NodeId(row["owner"]),
        fence=row["fence"],
        waiting=row["waiting"],
        entries=row["entries"],
        summaries=row["summaries"],
        pinned=tuple(row["pinned"]),
    )


def entry(row: Row) -> HistoryEntry:
    """What a row of ``history`` says."""
    return HistoryEntry(Role(row["role"]), row["text"], row["native"], row["format"])


def stored_entry(row: Row) -> StoredEntry:
    """A row of ``history``."""
    return StoredEntry(
        entry=entry(row),
        at=row["at"],
        run_id=None if row["run_id"] is None else RunId(row["run_id"]),
    )


def outbox_row(row: Row) -> OutboxRow:
    """A row of ``outbox``."""
    state = OutboxState(row["state"])
    return OutboxRow(
        id=row["id"],
        message=outbound(row["message"]),
        session=None if row["session"] is None else SessionKey(row["session"]),
        state=state,
        attempts=row["attempts"],
        possible_duplicate=row["possible_duplicate"],
        fence=row["fence"],
        created_at=row["created_at"],
        next_attempt_at=row["next_attempt_at"],
        sent_at=row["finished_at"] if state is OutboxState.SENT else None,
        external_id=row["external_id"],
        error=row["error"],
    )


def outbox_columns(messages: Sequence[OutboundMessage]) -> tuple[list[str], ...]:
    """The four arrays that ``outbox.insert`` takes."""
    targets = [message.target for message in messages]
    return (
        [place.channel for place in targets],
        [place.account for place in targets],
        [place.chat for place in targets],
        [packed(message) for message in messages],
    )


def person(row: Row) -> Person:
    """A row of ``people``."""
    return Person(
        channel=row["channel"],
        account=row["account"],
        sender=Sender(row["sender_id"], row["name"], row["username"]),
        standing=Standing(row["role"]),
        approved_at=row["approved_at"],
    )


def pairing_request(row: Row) -> PairingRequest:
    """A row of ``pairing_requests``."""
    return PairingRequest(
        channel=row["channel"],
        account=row["account"],
        sender=Sender(row["sender_id"], row["name"], row["username"]),
        code_hash=row["code_hash"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        id=row["id"],
        # A release that knew of no chats has stored "": in a direct chat it is the sender's id.
        chat=row["chat"] or row["sender_id"],
        peer=PeerKind(row["peer"]),
    )


def kept_json(wrote: Sequence[NewInbox]) -> str:
    """What somebody wrote who asks for access, for the column ``messages``."""
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


def kept(text: str) -> list[NewInbox]:
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
    """A row of ``chats``."""
    return Chat(
        channel=row["channel"],
        account=row["account"],
        chat=row["chat"],
        peer=PeerKind(row["peer"]),
        name=row["name"],
        allowed=row["allowed"],
        gone=row["gone"],
        first_seen_at=row["first_seen_at"],
        last_seen_at=row["last_seen_at"],
        unmentioned_at=row["unmentioned_at"],
    )


def topic(row: Row) -> Topic:
    """A row of ``topics``."""
    return Topic(
        Target(row["channel"], row["account"], row["chat"], row["thread"] or None),
        row["name"],
        TopicState(row["gone"]),
        row["notified"],
    )


def heard(row: Row) -> LastActivity:
    """A row of ``sessions`` in which somebody spoke."""
    return LastActivity(
        target=Target(row["channel"], row["account"], row["chat"], row["thread"]),
        peer=PeerKind(row["peer"]),
        agent=AgentName(row["agent"]),
        sender_id=row["last_sender"],
        at=row["last_heard_at"],
    )


def draft(row: Row) -> Draft:
    """A row of ``drafts``."""
    return Draft(
        run_id=RunId(row["run_id"]),
        target=Target(row["channel"], row["account"], row["chat"], row["thread"]),
        external_id=row["external_id"],
    )
