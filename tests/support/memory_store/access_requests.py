"""The effects of decisions about access requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.records import Chat, NewInbox, Notice, OutboxState, PairingRequest, Person, Standing
from goclaw_py.records.people import AccessVerdict, about_request
from goclaw_py.store import rules
from tests.support.memory_store.inbox import MemoryInbox
from tests.support.memory_store.outbox import MemoryOutbox
from tests.support.memory_store.tables import MemoryDatabase, PersonKey


async def admit(
    db: MemoryDatabase, request: PairingRequest, standing: Standing, by: str, now: datetime
) -> Person:
    """Approve the person of a request: notify them, and put their messages into the inbox."""
    key = _key(request)
    person = Person(request.channel, request.account, request.sender, standing, now)
    db.people[key] = person
    rows = remove(db, request)
    db.enqueue([rules.welcome(request)], session=None, now=now)
    if rows:
        # No node works on it: whichever owns the session, or looks first, takes it up.
        await MemoryInbox(db).accept(rules.opening(rows, request.id), node=NodeId(""), now=now)
    is_guest = standing is Standing.GUEST
    await close(db, request, AccessVerdict.GUEST if is_guest else AccessVerdict.APPROVE, by, now)
    db.notify(Notice.PEOPLE)
    return person


async def decide_chat(
    db: MemoryDatabase, request: PairingRequest, verdict: AccessVerdict, by: str, now: datetime
) -> None:
    """Allow a group, which is told so, or deny a group or a person, which are not."""
    if verdict is not AccessVerdict.DENY:
        db.enqueue([rules.welcome(request)], session=None, now=now)
    key = request.channel, request.account, request.chat
    seen = request.created_at, request.created_at
    known = db.chats.get(key) or Chat(*key, request.peer, rules.called(request), None, "", *seen)
    db.chats[key] = replace(known, allowed=verdict is not AccessVerdict.DENY)
    remove(db, request)
    await close(db, request, verdict, by, now)
    db.notify(Notice.PEOPLE)


def of_chat(db: MemoryDatabase, chat: Target, verdict: AccessVerdict) -> PairingRequest | None:
    """Return the request of a chat that a decision about the chat ends."""
    return next(
        (
            request
            for request in db.requests.values()
            if (request.channel, request.account, request.chat)
            == (chat.channel, chat.account, chat.chat)
            and (request.is_group or verdict is AccessVerdict.DENY)
        ),
        None,
    )


def remove(db: MemoryDatabase, request: PairingRequest) -> list[NewInbox]:
    """Remove a request; return the messages that were kept with it."""
    del db.requests[_key(request)]
    return db.kept.pop(_key(request), [])


async def close(
    db: MemoryDatabase, request: PairingRequest, verdict: AccessVerdict, by: str, now: datetime
) -> None:
    """Show the decision in the messages that asked owners, or drop those that were not sent."""
    await show(
        db,
        about_request(request.id),
        partial(rules.decided, request=request, verdict=verdict, by=by),
        now,
    )


async def show(
    db: MemoryDatabase,
    about: str,
    edited: Callable[[OutboundMessage, str], OutboundMessage],
    now: datetime,
) -> None:
    """Edit the messages that asked a question, or drop those that were not sent."""
    asked = [db.outbox[row] for row in db.heartbeat_runs.alerts.get(about, ())]
    waiting = [row for row in asked if row.state is OutboxState.WAITING]
    await MemoryOutbox(db).drop_outbox([row.id for row in waiting], now=now)
    for row in waiting:
        row.error = rules.DECIDED
    said = [
        edited(row.message, row.external_id)
        for row in asked
        if row.state is OutboxState.SENT and row.external_id is not None
    ]
    db.enqueue(said, session=None, now=now)


def _key(request: PairingRequest) -> PersonKey:
    return request.channel, request.account, request.sender.id
