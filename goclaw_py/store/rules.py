"""Decisions that both implementations of the store share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from goclaw_py.chats import access_texts
from goclaw_py.delivery import texts
from goclaw_py.model.ids import (
    AgentName,
    HeartbeatRunId,
    JobId,
    NodeId,
    OccurrenceId,
    RunId,
    SessionKey,
)
from goclaw_py.model.messages import InboundMessage, LostDraft, OutboundMessage, Target, person_at
from goclaw_py.model.outcomes import FAILURES, Outcome
from goclaw_py.model.pairing_codes import AccessVerdict, about_request
from goclaw_py.model.session_keys import chat_session, peer_of
from goclaw_py.ports.store import LaneShare, NewInbox, NewPairing, PairingRequest, SeenChat
from goclaw_py.store.text import storable

CRASHES_UNTIL_LAST: Final = 2
"""A row that crashed this many runs lets the others of its session go first (SPEC IO-2)."""

MESSAGES_KEPT: Final = 5
"""Of what somebody wrote who waits to be let in (SPEC CHAN-5)."""

DECIDED: Final = "decided"
"""The error of a message that was to ask an owner what another one has decided meanwhile."""

CALLS_KEPT: Final = timedelta(minutes=1)
"""How long questions between nodes are kept; nobody waits so long for an answer."""


def first_of_each(batch: Iterable[NewInbox]) -> list[NewInbox]:
    """Drop rows whose id, once stored, is that of an earlier row of the same batch."""
    seen: dict[tuple[str, ...], NewInbox] = {}
    for row in batch:
        target = row.message.target
        seen.setdefault(storable((target.channel, target.account, row.message.external_id)), row)
    return list(seen.values())


def first_request_of_each(pairings: Iterable[NewPairing]) -> list[NewPairing]:
    """One request of each sender of a batch, the first, with the newest of what they wrote."""
    seen: dict[tuple[str, ...], NewPairing] = {}
    for pairing in pairings:
        request = pairing.request
        key = storable((request.channel, request.account, request.sender.id))
        first = seen.setdefault(key, pairing)
        if first is not pairing:
            seen[key] = replace(first, rows=newest_kept((*first.rows, *pairing.rows)))
    return list(seen.values())


def newest_kept(rows: Sequence[NewInbox]) -> tuple[NewInbox, ...]:
    """What a request keeps of what its sender wrote."""
    return tuple(rows[-MESSAGES_KEPT:])


def opening(rows: Iterable[NewInbox], request_id: str) -> list[NewInbox]:
    """What somebody wrote who is let in now, as one turn: like the pieces of an album.

    The last piece bears no mark, so that nothing more is waited for.
    """
    *pieces, last = rows
    album = about_request(request_id)
    return [*(replace(row, message=replace(row.message, album=album)) for row in pieces), last]


def welcome(request: PairingRequest) -> OutboundMessage:
    """What somebody is told who is let in."""
    place = Target(request.channel, request.account, request.chat)
    return OutboundMessage(place, access_texts.WELCOME)


def called(request: PairingRequest) -> str:
    """What the chat of a request is called, for operators."""
    is_group = request.is_group
    return request.sender.name if is_group else access_texts.name(request.sender)


def decided(
    asked: OutboundMessage,
    external_id: str,
    request: PairingRequest,
    verdict: AccessVerdict,
    by: str,
) -> OutboundMessage:
    """What a message that asked an owner becomes when somebody has decided."""
    text = access_texts.decided(asked.text, request.peer, verdict, by)
    return OutboundMessage(asked.target, text, draft=external_id)


def apologies(
    lost: Sequence[tuple[int, SessionKey, InboundMessage]], text: str
) -> list[tuple[SessionKey, OutboundMessage]]:
    """One apology for each sender of a session, as a reply to the last message that was lost."""
    last: dict[tuple[SessionKey, str], InboundMessage] = {}
    for _, session, message in sorted(lost, key=lambda row: row[0]):
        last[session, message.sender.id] = message
    return [
        (session, OutboundMessage(message.target, text, reply_to=message.message_id))
        for (session, _), message in last.items()
    ]


def closing(
    run_id: RunId, target: Target, draft: str | LostDraft, outcome: Outcome
) -> OutboundMessage:
    """What finishes a draft of which nobody knows what it shows; it goes if there is an answer.

    So does one whose id nobody knows: people have read little of it.
    """
    if isinstance(draft, LostDraft):
        return OutboundMessage(target, "", run_id=run_id, lost=draft)
    text = "" if outcome is Outcome.COMPLETED else texts.cut_draft(outcome)
    return OutboundMessage(target, text, run_id=run_id, draft=draft)


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """Who asked for a run and for which job it works, itself or by a run above it."""

    sender: str | None = None
    job: JobId | None = None


NOBODY: Final = RunOrigin()

API_SENDER: Final = "api"
"""Whoever asks over the API: no channel knows more of them."""


def marked(
    messages: Iterable[OutboundMessage],
    *,
    occurrence: OccurrenceId | None = None,
    heartbeat_run: HeartbeatRunId | None = None,
) -> tuple[OutboundMessage, ...]:
    """The messages, each as one of what it tells of."""
    return tuple(
        replace(
            one,
            occurrence=one.occurrence or occurrence,
            heartbeat_run=one.heartbeat_run or heartbeat_run,
        )
        for one in messages
    )


def sender_of(message: InboundMessage) -> str:
    """Who has sent a message, as one text."""
    if message.source == "api":
        return API_SENDER
    return person_at(message.target, message.sender.id)


LETTERS: Final = FAILURES | {Outcome.DROPPED, Outcome.REJECTED}
"""Ends of messages that operators hear of: not those that somebody wanted."""

MOVED_AWAY: Final = "its chat has moved into a session of another node"
"""The error of a run that lost its session in a move."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose a session is, and which of its histories is read."""

    owner: NodeId | None
    fence: int
    epoch: int


def merged(old: Claim, new: Claim) -> Claim:
    """What becomes of two sessions that become one.

    The new one's owner keeps it, for messages come in there. The fence is higher than all that
    anybody has seen: whoever lost either session long ago stays out of both.
    """
    return Claim(
        owner=old.owner if new.owner is None else new.owner,
        fence=max(old.fence, new.fence) + 1,
        epoch=max(old.epoch, new.epoch),
    )


def merged_summary(old: str, new: str) -> str:
    """What stands for what two summaries stood for. The chat that has moved was there before."""
    return "\n\n".join(summary for summary in (old, new) if summary)


def merged_pins(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """What two conversations must not forget, once each."""
    return list(dict.fromkeys((*old, *new)))


def moved_key(
    key: SessionKey, agent: AgentName, old: Target, thread: str | None, new: str
) -> SessionKey:
    """The key of a session when its chat gets the id ``new``; the same if it has another form."""
    before = replace(old, thread=thread)
    if chat_session(agent, before, peer_of(key)) != key:
        return key
    return chat_session(agent, replace(before, chat=new), peer_of(key))


def last_sight_of_each(seen: Iterable[SeenChat]) -> list[SeenChat]:
    """Drop sights of a chat that has a later one in the same batch."""
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
    """What a node's share of a lane comes to.

    ``had``: places that it has and did not know. ``given_up``: places and waits that end. ``more``:
    for how many it is to line up.
    """

    had: list[int]
    given_up: list[int]
    more: int


def asked_of_lane(share: LaneShare, granted: Sequence[int], waiting: Sequence[int]) -> LaneAsk:
    """From what the node has by now, both in the order of the line."""
    known = {*share.held, *share.gone}
    fresh = [place for place in granted if place not in known]
    had = fresh[: share.wanted]
    still = max(share.wanted - len(had), 0)
    gone = [place for place in granted if place in share.gone]
    over = [*gone, *fresh[len(had) :], *waiting[still:]]
    return LaneAsk(had, over, max(still - len(waiting), 0))
