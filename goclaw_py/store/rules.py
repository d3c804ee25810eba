"""Rules that both stores share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final

from goclaw_py.chat.access import access_texts
from goclaw_py.chat.outbound import approval_texts, texts
from goclaw_py.core.approvals import Decision
from goclaw_py.core.ids import (
    AgentName,
    HeartbeatRunId,
    NodeId,
    OccurrenceId,
    RunId,
    SessionKey,
)
from goclaw_py.core.messages import (
    HistoryEntry,
    InboundMessage,
    LostDraft,
    OutboundMessage,
    Role,
    Target,
)
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.session_keys import chat_session, peer_of
from goclaw_py.records import (
    LaneShare,
    NewInbox,
    NewPairing,
    PairingRequest,
    SeenChat,
    StoredEntry,
    ToolCall,
)
from goclaw_py.records.people import AccessVerdict, about_request
from goclaw_py.store.text import storable

MESSAGES_KEPT: Final = 5
"""The number of messages that are kept for a person who waits for approval (SPEC CHAN-5)."""

DECIDED: Final = "decided"
"""The error of a message with a question that was decided before it was sent."""

UNATTENDED: Final = "its node had forgotten it: it was stored as running, and nothing ran it"
"""The error of a run that its own node has ended as lost."""

CALLS_KEPT: Final = timedelta(minutes=1)
"""How long calls between nodes are kept; no caller waits longer."""


def first_request_of_each(pairings: Iterable[NewPairing]) -> list[NewPairing]:
    """Return the first request of each sender in a batch, with the sender's newest messages."""
    seen: dict[tuple[str, ...], NewPairing] = {}
    for pairing in pairings:
        request = pairing.request
        key = storable((request.channel, request.account, request.sender.id))
        first = seen.setdefault(key, pairing)
        if first is not pairing:
            seen[key] = replace(first, rows=newest_retained((*first.rows, *pairing.rows)))
    return list(seen.values())


def newest_retained(rows: Sequence[NewInbox]) -> tuple[NewInbox, ...]:
    """Return the messages of a sender that a request keeps."""
    return tuple(rows[-MESSAGES_KEPT:])


def opening(rows: Iterable[NewInbox], request_id: str) -> list[NewInbox]:
    """Return the messages of an approved person as one turn, like the parts of an album.

    The last one has no album mark, so that the turn does not wait for more.
    """
    *pieces, last = rows
    album = about_request(request_id)
    return [*(replace(row, message=replace(row.message, album=album)) for row in pieces), last]


def welcome(request: PairingRequest) -> OutboundMessage:
    """Return the message that tells a person, or a group, of their approval."""
    place = Target(request.channel, request.account, request.chat)
    text = access_texts.GROUP_WELCOME if request.is_group else access_texts.WELCOME
    return OutboundMessage(place, text)


def called(request: PairingRequest) -> str:
    """Return the name of a request's chat, for operators."""
    is_group = request.is_group
    return request.sender.name if is_group else access_texts.name(request.sender)


def decided(
    question: OutboundMessage,
    external_id: str,
    request: PairingRequest,
    verdict: AccessVerdict,
    by: str,
) -> OutboundMessage:
    """Return the message to an owner about a request, edited to show the decision."""
    text = access_texts.decided(question.text, request.peer, verdict, by)
    return OutboundMessage(question.target, text, draft=external_id)


def answered(
    question: OutboundMessage, external_id: str, decision: Decision, by: str
) -> OutboundMessage:
    """Return a message that asked about a tool call, edited to show the answer."""
    text = approval_texts.answered(question.text, decision, by)
    return OutboundMessage(question.target, text, draft=external_id)


@dataclass(frozen=True, slots=True)
class StoppedMessage:
    """The text of a message whose run had asked a person, and was stopped."""

    run: RunId
    received_at: datetime
    text: str


def stopped_while_waiting(
    messages: Sequence[StoppedMessage], words: Mapping[RunId, str], now: datetime
) -> list[StoredEntry]:
    """Return the history of turns that were stopped while they waited for an answer.

    The messages of a turn, which stand together, are its prompt, at the time of the first one.
    ``words``: what runs had said before they asked.
    """
    entries: list[StoredEntry] = []
    for run, group in groupby(messages, attrgetter("run")):
        turn = list(group)
        prompt = HistoryEntry(Role.USER, "\n".join(filter(None, (one.text for one in turn))))
        reply = texts.interrupted_reply(words.get(run, ""), Outcome.CANCELLED)
        answer = StoredEntry(HistoryEntry(Role.ASSISTANT, reply), now, run)
        entries += [StoredEntry(prompt, turn[0].received_at, run), answer]
    return entries


@dataclass(frozen=True, slots=True)
class LostMessage:
    """An inbox row whose attempts are used up, with its last run."""

    id: int
    session: SessionKey
    message: InboundMessage
    run: RunId


def apologies(
    lost: Iterable[LostMessage], text: str, calls: Mapping[RunId, Sequence[ToolCall]]
) -> list[tuple[SessionKey, OutboundMessage]]:
    """Return one apology per sender and session, as a reply to the last lost message.

    It says what was done; ``calls`` are the tool calls of each run and of those that it follows.
    """
    groups: dict[tuple[SessionKey, str], list[LostMessage]] = {}
    for row in sorted(lost, key=lambda row: row.id):
        groups.setdefault((row.session, row.message.sender.id), []).append(row)
    said: list[tuple[SessionKey, OutboundMessage]] = []
    for (session, _), rows in groups.items():
        runs = dict.fromkeys(row.run for row in rows)
        done = texts.done_before([call for run in runs for call in calls.get(run, ())])
        whole = "\n".join(filter(None, [text, done]))
        last = rows[-1].message
        said.append((session, OutboundMessage(last.target, whole, reply_to=last.message_id)))
    return said


def closing(
    run_id: RunId, target: Target, draft: str | LostDraft, outcome: Outcome
) -> OutboundMessage:
    """Return the message that completes a draft with unknown text; an answer removes the draft.

    A lost draft is removed too: people have read little of it.
    """
    if isinstance(draft, LostDraft):
        return OutboundMessage(target, "", run_id=run_id, lost=draft)
    text = "" if outcome is Outcome.COMPLETED else texts.interrupted_draft(outcome)
    return OutboundMessage(target, text, run_id=run_id, draft=draft)


def marked(
    messages: Iterable[OutboundMessage],
    *,
    occurrence: OccurrenceId | None = None,
    heartbeat_run: HeartbeatRunId | None = None,
) -> tuple[OutboundMessage, ...]:
    """Return the messages, marked with the occurrence or heartbeat run that they report."""
    if occurrence is None and heartbeat_run is None:
        return tuple(messages)
    return tuple(
        replace(
            one,
            occurrence=one.occurrence or occurrence,
            heartbeat_run=one.heartbeat_run or heartbeat_run,
        )
        for one in messages
    )


MOVED_AWAY: Final = "its chat has moved into a session of another node"
"""The error of a run that lost its session in a move."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The owner of a session, and its epoch."""

    owner: NodeId | None
    fence: int
    epoch: int


def merged(old: Claim, new: Claim) -> Claim:
    """Return the claim of two merged sessions.

    The owner of the new chat's session keeps it, because messages arrive there. The fence is higher
    than both, so that all earlier owners are fenced.
    """
    return Claim(
        owner=old.owner if new.owner is None else new.owner,
        fence=max(old.fence, new.fence) + 1,
        epoch=max(old.epoch, new.epoch),
    )


def merged_summary(old: str, new: str) -> str:
    """Return the summary of two merged conversations, that of the moved chat first."""
    return "\n\n".join(summary for summary in (old, new) if summary)


def merged_pins(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """Return the pinned facts of two merged conversations, without duplicates."""
    return list(dict.fromkeys((*old, *new)))


def moved_key(
    key: SessionKey, agent: AgentName, old: Target, thread: str | None, new: str
) -> SessionKey:
    """Return a session key with the chat id ``new``; unchanged if it has another form."""
    before = replace(old, thread=thread)
    if chat_session(agent, before, peer_of(key)) != key:
        return key
    return chat_session(agent, replace(before, chat=new), peer_of(key))


def last_sight_of_each(seen: Iterable[SeenChat]) -> list[SeenChat]:
    """Drop observations of a chat that has a later one in the same batch."""
    last: dict[tuple[str, ...], SeenChat] = {}
    for chat in seen:
        target = chat.target
        key = storable((target.channel, target.account, target.chat))
        known = last.get(key)
        unmentioned = chat.unmentioned or (known is not None and known.unmentioned)
        last[key] = replace(chat, unmentioned=unmentioned)
    return list(last.values())


@dataclass(frozen=True, slots=True)
class LaneAsk:
    """The result of comparing a node's request for lane slots with what is stored.

    ``had``: slots that it has and did not know. ``given_up``: slots and requests that end.
    ``more``: the number of new requests.
    """

    had: list[int]
    given_up: list[int]
    more: int


def lane_request(share: LaneShare, granted: Sequence[int], waiting: Sequence[int]) -> LaneAsk:
    """Compare a request with the node's stored slots and requests, both in queue order."""
    known = {*share.held, *share.gone}
    fresh = [place for place in granted if place not in known]
    had = fresh[: share.wanted]
    still = max(share.wanted - len(had), 0)
    gone = [place for place in granted if place in share.gone]
    over = [*gone, *fresh[len(had) :], *waiting[still:]]
    return LaneAsk(had, over, max(still - len(waiting), 0))


def is_restarted(outcome: Outcome | str | None, reason: Reason | str | None) -> bool:
    """Return whether a run ended by a crash or a shutdown, so that its messages run again."""
    return outcome == Outcome.LOST or reason == Reason.SHUTDOWN
