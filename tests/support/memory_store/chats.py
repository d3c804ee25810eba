"""Chats: decisions about them, whether they can be reached, last activity of people."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.approvals import about_approval
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import OutboundMessage, PeerKind, Role, Target, TopicState
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.pagination import Cursor
from goclaw_py.records import (
    ALL_ACTIVITY,
    ActivityQuery,
    Aside,
    Chat,
    InboxKind,
    LastActivity,
    ListedOwner,
    Notice,
    OutboxState,
    Place,
    SeenChat,
    Topic,
)
from goclaw_py.records.people import AccessVerdict, Standing
from goclaw_py.store.rules import last_sight_of_each
from goclaw_py.store.text import storable
from tests.support.memory_store import access_requests
from tests.support.memory_store.cluster.transfers import MemoryTransfers
from tests.support.memory_store.pages import newest
from tests.support.memory_store.tables import ChatKey, MemoryPart

_FAILED = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST, Outcome.ABANDONED, Outcome.REJECTED)


class MemoryChats(MemoryPart):
    """Implements ``ChatStore``."""

    async def asides(self, session: SessionKey, *, limit: int = 50) -> list[Aside]:
        here = self._db.sessions.get(storable(session))
        if here is None:
            return []
        runs = [run for run in self._db.runs.values() if run.new.session == here.key]
        runs.sort(key=lambda run: (run.new.started_at, run.new.id))
        failed = {one.new.id for one in runs[-limit:] if one.end and one.end.outcome in _FAILED}
        typed = [
            (one.received_at, 0, one.id, Aside(one.received_at, Role.USER, text, external_id))
            for one in self._db.inbox.values()
            if one.session == here.key
            and one.kind is InboxKind.COMMAND
            and one.finished_at is not None
            and one.message.press is None
            for text, external_id in [(one.message.text, one.message.external_id)]
        ]
        alone, waiting, of_failed = [], [], []
        asking = {
            about_approval(one.id): one.session
            for one in (record.approval for record in self._db.approvals.questions.values())
            if one.decision is None
        }
        for row in self._db.outbox.values():
            said = row.message
            aside = Aside(
                row.created_at,
                Role.ASSISTANT,
                said.text,
                row.external_id or "",
                said.draft,
                said.run_id,
                said.rich,
            )
            line = row.created_at, 1, row.id, aside
            is_ours = here.target is not None and row.chat == _key(here.target)
            is_question = (said.alert or "").startswith("approval:")
            has_author = said.run_id or said.occurrence or said.heartbeat_run or is_question
            if row.state is not OutboxState.SENT:
                continue
            waits = asking.get(said.alert)
            if is_ours and waits is not None and (waits != here.key or not said.buttons):
                waiting.append(line)
            elif is_ours and row.session in (None, here.key) and not has_author:
                alone.append(line)
            elif said.run_id in failed:
                of_failed.append(line)
        lines = [*typed[-limit:], *alone[-limit:], *waiting, *of_failed]
        found = sorted(lines, key=lambda one: one[:3])
        return [one for at, _, _, one in found if at >= here.created_at and one.text]

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        return newest(self._db.chats.values(), limit, before)

    async def chat(self, target: Target) -> Chat | None:
        return self._db.chats.get(_key(storable(target)))

    async def marked_chats(self) -> list[Chat]:
        marked = [chat for chat in self._db.chats.values() if chat.allowed is not None or chat.gone]
        return newest(marked, len(marked), None)

    async def undecided(
        self, places: Collection[Place], *, besides: Collection[Target] = ()
    ) -> int:
        settled = {_key(storable(target)) for target in besides}
        return sum(
            (key[0], key[1]) in places
            and key not in settled
            and chat.peer is PeerKind.GROUP
            and chat.allowed is None
            and not chat.gone
            for key, chat in self._db.chats.items()
        )

    async def note_chats(self, seen: Sequence[SeenChat], *, now: datetime) -> None:
        for chat in storable(tuple(last_sight_of_each(seen))):
            key = _key(chat.target)
            known = self._db.chats.get(key) or _unknown(key, chat.peer, now)
            self._db.chats[key] = replace(
                known,
                peer=chat.peer,
                name=chat.name or known.name,
                last_seen_at=max(known.last_seen_at, now),
                unmentioned_at=now if chat.unmentioned else known.unmentioned_at,
            )

    async def allow_chat(
        self, channel: str, account: str, chat: str, *, allowed: bool, now: datetime
    ) -> None:
        key = storable((channel, account, chat))
        verdict = AccessVerdict.APPROVE if allowed else AccessVerdict.DENY
        request = access_requests.of_chat(self._db, Target(*key), verdict)
        if request is not None:
            await access_requests.decide_chat(self._db, request, verdict, "", now)
            return
        known = self._db.chats.get(key) or _unknown(key, PeerKind.GROUP, now)
        self._db.chats[key] = replace(known, allowed=allowed)
        self._db.notify(Notice.PEOPLE)

    async def mark_chat(self, target: Target, peer: PeerKind, *, gone: str, now: datetime) -> None:
        key = _key(storable(target))
        known = self._db.chats.get(key) or _unknown(key, peer, now)
        if known.gone != storable(gone):
            self._db.chats[key] = replace(known, gone=storable(gone))
            self._db.notify(Notice.PEOPLE)

    async def topic(self, target: Target) -> Topic:
        target = storable(target)
        return self._db.topics.get(target, Topic(target))

    async def gone_topics(self) -> list[Topic]:
        gone = [topic for topic in self._db.topics.values() if topic.state]
        return sorted(gone, key=lambda topic: (*_key(topic.target), topic.target.thread or ""))

    async def note_topic(
        self,
        target: Target,
        *,
        name: str = "",
        renamed: bool = False,
        state: TopicState | None = None,
    ) -> None:
        target, name = storable((target, name))
        known = await self.topic(target)
        new = replace(
            known,
            name=name if name and (renamed or not known.name) else known.name,
            state=known.state if state is None else state,
        )
        if new != known:
            self._db.topics[target] = replace(new, told=new.told and bool(new.state))
        if new.state is not known.state:
            self._db.notify(Notice.PEOPLE)

    async def notify_topic_gone(
        self, target: Target, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        topic = await self.topic(target)
        if topic.told or not topic.state:
            return False
        self._db.topics[topic.target] = replace(topic, told=True)
        self._db.enqueue(storable(tuple(say)), session=None, now=now)
        return True

    async def move_chat(
        self, channel: str, account: str, *, old: str, new: str, now: datetime
    ) -> bool:
        channel, account, old, new = storable((channel, account, old, new))
        if old == new or not MemoryTransfers(self._db, Target(channel, account, old), new).move(
            now
        ):
            return False
        self._db.notify(Notice.PEOPLE, Notice.OUTBOX, Notice.INBOX, Notice.CRON)
        return True

    async def activity(self, query: ActivityQuery = ALL_ACTIVITY) -> list[LastActivity]:
        found = (
            record.heard
            for record in self._db.sessions.values()
            if record.heard is not None
            and query.agent in (None, record.agent)
            and (not query.direct or record.heard.peer is PeerKind.DIRECT)
            and (query.owners is None or self._is_owner(record.heard, query.owners))
            and self._is_listed(record.heard.target, gone=query.gone)
        )
        return newest(found, query.limit, query.before)

    def _is_owner(self, heard: LastActivity, listed: Collection[ListedOwner]) -> bool:
        place = heard.target.channel, heard.target.account
        person = self._db.people.get((*place, heard.sender_id))
        approved = person is not None and person.standing is Standing.OWNER
        return approved or (*place, None) in listed or (*place, heard.sender_id) in listed

    def _is_listed(self, target: Target, *, gone: bool) -> bool:
        chat = self._db.chats.get(_key(target))
        if chat is None:
            return not gone
        return chat.allowed is not False and bool(chat.gone) is gone


def _key(target: Target) -> ChatKey:
    return target.channel, target.account, target.chat


def _unknown(key: ChatKey, peer: PeerKind, now: datetime) -> Chat:
    return Chat(*key, peer, "", None, "", now, now)
