"""Decisions that both implementations of the store share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage
from goclaw_py.ports.store import NewInbox, NewPairing
from goclaw_py.store.text import storable

CRASHES_UNTIL_LAST: Final = 2
"""A row that crashed this many runs lets the others of its session go first (SPEC IO-2)."""


def first_of_each(batch: Iterable[NewInbox]) -> list[NewInbox]:
    """Drop rows whose id, once stored, is that of an earlier row of the same batch."""
    seen: dict[tuple[str, ...], NewInbox] = {}
    for row in batch:
        target = row.message.target
        seen.setdefault(storable((target.channel, target.account, row.message.external_id)), row)
    return list(seen.values())


def first_request_of_each(pairings: Iterable[NewPairing]) -> list[NewPairing]:
    """Drop requests of a sender who has an earlier one in the same batch."""
    seen: dict[tuple[str, ...], NewPairing] = {}
    for pairing in pairings:
        request = pairing.request
        seen.setdefault(storable((request.channel, request.account, request.sender.id)), pairing)
    return list(seen.values())


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
