"""The effects of decisions about access requests, within the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from goclaw_py.core.messages import OutboundMessage
from goclaw_py.records import Notice, Person
from goclaw_py.records.people import AccessVerdict, about_request
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.messages.accept import enter
from goclaw_py.store.postgres.messages.message_json import outbound
from goclaw_py.store.postgres.part import enqueue, notify
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.sql import queries

_SQL = queries("people")


async def admit(
    connection: Connection,
    removed: Row,
    verdict: AccessVerdict,
    *,
    by: str,
    now: datetime,
) -> Person:
    """Approve the person of a removed request."""
    request = rows.pairing_request(removed)
    person = await connection.row(
        _SQL["approve"],
        request.channel,
        request.account,
        request.sender.id,
        request.sender.name,
        request.sender.username,
        verdict is AccessVerdict.GUEST,
        now,
    )
    assert person is not None
    await enqueue(connection, [rules.welcome(request)], session=None, now=now)
    wrote = rows.retained(removed["messages"])
    if wrote:
        await enter(connection, rules.opening(wrote, request.id), now=now)
    await _close(connection, removed, verdict, by=by, now=now)
    return rows.person(person)


async def decide_chat(
    connection: Connection, removed: Row, verdict: AccessVerdict, *, by: str, now: datetime
) -> None:
    """Allow a group, which is told so, or deny a group or a person, whose request was removed."""
    request = rows.pairing_request(removed)
    if verdict is not AccessVerdict.DENY:
        await enqueue(connection, [rules.welcome(request)], session=None, now=now)
    await connection.fetch(
        _SQL["decide_chat"],
        request.channel,
        request.account,
        request.chat,
        request.peer,
        rules.called(request),
        verdict is not AccessVerdict.DENY,
        request.created_at,
    )
    await _close(connection, removed, verdict, by=by, now=now)


async def _close(
    connection: Connection, removed: Row, verdict: AccessVerdict, *, by: str, now: datetime
) -> None:
    """Show the decision in the messages that asked owners, or drop those that were not sent."""
    request = rows.pairing_request(removed)
    edited = partial(rules.decided, request=request, verdict=verdict, by=by)
    await show(connection, about_request(request.id), edited, now=now)
    await notify(connection, [Notice.PEOPLE])


async def show(
    connection: Connection,
    about: str,
    edited: Callable[[OutboundMessage, str], OutboundMessage],
    *,
    now: datetime,
) -> None:
    """Edit the messages that asked a question, or drop those that were not sent."""
    dropped = await connection.fetch(_SQL["drop_request_messages"], about, now, rules.DECIDED)
    asked = await connection.fetch(_SQL["request_messages"], about)
    said = [edited(outbound(row["message"]), row["external_id"]) for row in asked]
    await enqueue(connection, said, session=None, now=now)
    if dropped:
        await notify(connection, [Notice.OUTBOX])
