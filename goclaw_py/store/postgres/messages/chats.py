"""Chats: decisions about them, whether they can be reached, last activity of people."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target, TopicState
from goclaw_py.core.pagination import Cursor
from goclaw_py.records import (
    ALL_ACTIVITY,
    ActivityQuery,
    Aside,
    Chat,
    LastActivity,
    Notice,
    Place,
    SeenChat,
    Topic,
)
from goclaw_py.records.people import AccessVerdict
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.cluster.transfers import move
from goclaw_py.store.postgres.messages import access_requests
from goclaw_py.store.postgres.pages import place
from goclaw_py.store.postgres.part import PostgresPart, enqueue, notify, place_columns
from goclaw_py.store.rules import last_sight_of_each
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("chats")
_PEOPLE = queries("people")


class PostgresChats(PostgresPart):
    """Implements ``ChatStore``."""

    async def asides(self, session: SessionKey, *, limit: int = 50) -> list[Aside]:
        found = await self._pool.fetch(_SQL["asides"], session, limit)
        return [rows.from_row(Aside, row) for row in found]

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        found = await self._pool.fetch(_SQL["chats"], limit, *place(before, keys=3))
        return [rows.chat(row) for row in found]

    async def chat(self, target: Target) -> Chat | None:
        key = storable((target.channel, target.account, target.chat))
        row = await self._pool.row(_SQL["chat"], *key)
        return None if row is None else rows.chat(row)

    async def marked_chats(self) -> list[Chat]:
        return [rows.chat(row) for row in await self._pool.fetch(_SQL["marked"])]

    async def undecided(
        self, places: Collection[Place], *, besides: Collection[Target] = ()
    ) -> int:
        row = await self._pool.row(
            _SQL["undecided"],
            *place_columns(places),
            [target.channel for target in besides],
            [target.account for target in besides],
            [target.chat for target in besides],
        )
        count: int = 0 if row is None else row["count"]
        return count

    async def note_chats(self, seen: Sequence[SeenChat], *, now: datetime) -> None:
        chats = last_sight_of_each(seen)
        if not chats:
            return
        await self._pool.fetch(
            _SQL["note"],
            [chat.target.channel for chat in chats],
            [chat.target.account for chat in chats],
            [chat.target.chat for chat in chats],
            [chat.peer for chat in chats],
            [chat.name for chat in chats],
            now,
            [chat.unmentioned for chat in chats],
        )

    async def allow_chat(
        self, channel: str, account: str, chat: str, *, allowed: bool, now: datetime
    ) -> None:
        verdict = AccessVerdict.APPROVE if allowed else AccessVerdict.DENY
        async with self._pool.transaction() as connection:
            taken = await connection.row(
                _PEOPLE["pop_request_of_chat"], channel, account, chat, allowed
            )
            if taken is not None:
                await access_requests.decide_chat(connection, taken, verdict, by="", now=now)
            await connection.fetch(_SQL["allow"], channel, account, chat, allowed, now)
            await notify(connection, [Notice.PEOPLE])

    async def mark_chat(self, target: Target, peer: PeerKind, *, gone: str, now: datetime) -> None:
        async with self._pool.transaction() as connection:
            news = await connection.row(
                _SQL["mark"], target.channel, target.account, target.chat, peer, gone, now
            )
            if news is not None:
                await notify(connection, [Notice.PEOPLE])

    async def topic(self, target: Target) -> Topic:
        row = await self._pool.row(_SQL["topic"], *_topic_key(target))
        return Topic(target) if row is None else rows.topic(row)

    async def gone_topics(self) -> list[Topic]:
        return [rows.topic(row) for row in await self._pool.fetch(_SQL["gone_topics"])]

    async def note_topic(
        self,
        target: Target,
        *,
        name: str = "",
        renamed: bool = False,
        state: TopicState | None = None,
    ) -> None:
        async with self._pool.transaction() as connection:
            key = _topic_key(target)
            if await connection.row(_SQL["note_topic"], *key, name, renamed, state) is not None:
                await notify(connection, [Notice.PEOPLE])

    async def notify_topic_gone(
        self, target: Target, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["mark_notified"], *_topic_key(target)) is None:
                return False
            await enqueue(connection, say, session=None, now=now)
        return True

    async def move_chat(
        self, channel: str, account: str, *, old: str, new: str, now: datetime
    ) -> bool:
        """Move a chat's data, and send ``Notice.INBOX`` and ``Notice.CRON`` too.

        Ids of messages are not valid in the new chat, so replies, edits and drafts lose them. A run
        in progress ends in the session of the new chat. If the two sessions belong to two nodes,
        the node of the new chat keeps both; the other node's run is ``lost`` and fenced, and its
        messages wait again without counting an attempt.
        """
        if old == new:
            return False
        async with self._pool.transaction() as connection:
            moved = await move(connection, Target(channel, account, old), new, now=now)
            if moved:
                await notify(connection, [Notice.PEOPLE, Notice.OUTBOX, Notice.INBOX, Notice.CRON])
        return moved

    async def activity(self, query: ActivityQuery = ALL_ACTIVITY) -> list[LastActivity]:
        owners = sorted(query.owners or (), key=repr)
        found = await self._pool.fetch(
            _SQL["last_activity"],
            query.agent,
            query.direct,
            query.limit,
            *place(query.before, keys=6),
            query.gone,
            query.owners is not None,
            *([owner[column] for owner in owners] for column in range(3)),
        )
        return [rows.last_activity(row) for row in found]


def _topic_key(target: Target) -> tuple[str, str, str, str]:
    return target.channel, target.account, target.chat, target.thread or ""
