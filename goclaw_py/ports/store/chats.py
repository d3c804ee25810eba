"""Chats: which groups are allowed, which cannot be written to, where people spoke last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import OutboundMessage, PeerKind, Target, TopicState
from goclaw_py.model.pagination import Cursor
from goclaw_py.ports.store.nodes import Place


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat that something is known about.

    ``allowed``: what the operator said about this chat, None if nothing. ``gone``: why it cannot
    be written to, "" if it can.
    """

    channel: str
    account: str
    chat: str
    peer: PeerKind
    name: str
    allowed: bool | None
    gone: str
    first_seen_at: datetime
    last_seen_at: datetime
    unmentioned_at: datetime | None = None
    """When something was said in an allowed group that was not meant for the bot (± 10 s)."""

    @property
    def cursor(self) -> Cursor:
        """Its place in a list, which every message there changes."""
        return Cursor(self.last_seen_at, (self.channel, self.account, self.chat))


@dataclass(frozen=True, slots=True)
class SeenChat:
    """A chat as somebody wrote in it. ``target`` names no thread.

    ``unmentioned``: what was written was not meant for the bot.
    """

    target: Target
    peer: PeerKind
    name: str
    unmentioned: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that something is known about; without a thread it is the general one of its chat.

    ``told``: people were told that what is for it goes elsewhere.
    """

    target: Target
    name: str = ""
    state: TopicState = TopicState.OPEN
    told: bool = False


@dataclass(frozen=True, slots=True)
class LastActivity:
    """Where a permitted person spoke, and when last."""

    target: Target
    peer: PeerKind
    agent: AgentName
    sender_id: str
    at: datetime

    @property
    def cursor(self) -> Cursor:
        """Its place in a list, which every message there changes."""
        there = self.target
        place = (there.channel, there.account, there.chat, there.thread or "")
        return Cursor(self.at, (*place, self.agent, self.sender_id))


class ChatStore(Protocol):
    """Chats (SPEC CHAN-5, CHAN-7, HB-8)."""

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        """Known chats, the last seen first."""

    async def chat(self, target: Target) -> Chat | None:
        """What is known of a chat; the thread is ignored."""

    async def marked_chats(self) -> list[Chat]:
        """All that were decided about or cannot be written to, the last seen first."""

    async def undecided(
        self, places: Collection[Place], *, besides: Collection[Target] = ()
    ) -> int:
        """How many groups of these places nobody has allowed or denied, though they are there.

        ``besides``: chats that do not count.
        """

    async def note_chats(self, seen: Sequence[SeenChat], *, now: datetime) -> None:
        """Know chats, with their names as they are now; what was decided about them stays."""

    async def allow_chat(
        self, channel: str, account: str, chat: str, *, allowed: bool, now: datetime
    ) -> None:
        """Decide whether the agent listens in a chat; one never seen is stored as a group.

        The chat's request for access goes with it, except when a direct chat is allowed: the
        owners who were asked see that it is decided. Sends ``Notice.PEOPLE``.
        """

    async def mark_chat(self, target: Target, peer: PeerKind, *, gone: str, now: datetime) -> None:
        """Note that a chat cannot be written to, or with "" that it can; the thread is ignored.

        Sends ``Notice.PEOPLE``. Nothing is written if it is so already.
        """

    async def topic(self, target: Target) -> Topic:
        """What is known of a topic; one that nothing is known about is open."""

    async def gone_topics(self) -> list[Topic]:
        """All that are closed or deleted."""

    async def note_topic(
        self,
        target: Target,
        *,
        name: str = "",
        renamed: bool = False,
        state: TopicState | None = None,
    ) -> None:
        """Know a topic: a first name or, if ``renamed``, another one, and its state unless None.

        A topic that is open again may be told of once more. Sends ``Notice.PEOPLE`` if the state
        is news.
        """

    async def tell_topic_gone(
        self, target: Target, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """Say once that what is for a topic goes elsewhere; False if it was told, or is open."""

    async def move_chat(
        self, channel: str, account: str, *, old: str, new: str, now: datetime
    ) -> bool:
        """Let everything that belongs to a chat belong to its new id, in one transaction.

        Sessions with their history, messages that wait in either direction, runs, drafts, what was
        decided about the chat. Where a session of the new id exists already, both become one: the
        older history first. False if nothing of the old id is left to move. Sends
        ``Notice.PEOPLE`` and ``Notice.OUTBOX``.
        """

    async def heard(
        self,
        *,
        agent: AgentName | None = None,
        direct: bool = False,
        limit: int = 20,
        before: Cursor | None = None,
    ) -> list[LastActivity]:
        """Chats and threads in which a permitted person spoke, the last one first (SPEC HB-8).

        Only of ``agent`` if given, only direct chats with ``direct``; chats that are gone or denied
        are left out.
        """
