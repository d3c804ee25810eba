"""Chats: which groups are allowed, which cannot be written to, where people spoke last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, PeerKind, Role, Target, TopicState
from goclaw_py.core.pagination import Cursor
from goclaw_py.records.nodes import Place


@dataclass(frozen=True, slots=True)
class Chat:
    """A stored chat.

    ``allowed`` is the operator's decision about it, None if there is none. ``gone`` is the reason
    why nothing can be sent to it, "" if it can.
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
    """When an allowed group last had a message that was not for the bot (± 10 s)."""

    @property
    def cursor(self) -> Cursor:
        """The position in a list; each message moves it."""
        return Cursor(self.last_seen_at, (self.channel, self.account, self.chat))


@dataclass(frozen=True, slots=True)
class SeenChat:
    """A chat as observed in an incoming message. ``target`` has no thread.

    ``unmentioned``: the message was not for the bot.
    """

    target: Target
    peer: PeerKind
    name: str
    unmentioned: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a chat; without a thread, the general topic.

    ``told``: people were notified that its messages go to another topic.
    """

    target: Target
    name: str = ""
    state: TopicState = TopicState.OPEN
    told: bool = False


@dataclass(frozen=True, slots=True)
class LastActivity:
    """The last message of an approved person in a chat or thread."""

    target: Target
    peer: PeerKind
    agent: AgentName
    sender_id: str
    at: datetime

    @property
    def cursor(self) -> Cursor:
        """The position in a list; each message moves it."""
        there = self.target
        place = (there.channel, there.account, there.chat, there.thread or "")
        return Cursor(self.at, (*place, self.agent, self.sender_id))


ListedOwner = tuple[str, str, str | None]
"""Channel, account and id of an owner by the settings; None: everybody at the account is one."""


class ChatAccounts(Protocol):
    """The channel accounts in the settings, as they are now."""

    @property
    def places(self) -> Collection[Place]: ...

    @property
    def owners(self) -> Collection[ListedOwner]: ...


@dataclass(frozen=True, slots=True)
class FixedAccounts:
    """``ChatAccounts`` that do not change."""

    places: Collection[Place] = ()
    owners: Collection[ListedOwner] = ()


NO_ACCOUNTS: Final = FixedAccounts()


@dataclass(frozen=True, slots=True)
class ActivityQuery:
    """Selects rows of the last activity of people.

    Args:
        agent: Only in sessions of this agent.
        direct: Only in direct chats.
        owners: Only where an owner wrote last: somebody approved as owner, or one of these.
        gone: Only chats that cannot be written to, instead of those that can.
        before: The position after which the page starts.
    """

    agent: AgentName | None = None
    direct: bool = False
    owners: Collection[ListedOwner] | None = None
    gone: bool = False
    limit: int = 20
    before: Cursor | None = None


ALL_ACTIVITY: Final = ActivityQuery()


@dataclass(frozen=True, slots=True)
class Aside:
    """What stands in a chat and in no history: the agent does not remember it.

    A command of a person; a message that no run, job or heartbeat has written, such as the answer
    to a command; a message of a run that failed.

    Args:
        id: Of a command its external id, of a message the channel's id.
        replaces: The channel's id of an earlier message that it replaces, if it does.
        run_id: The run that failed.
        rich: Whether the text is Markdown.
    """

    at: datetime
    role: Role
    text: str
    id: str
    replaces: str | None = None
    run_id: RunId | None = None
    rich: bool = False


class ChatStore(Protocol):
    """Chats (SPEC CHAN-5, CHAN-7, HB-8)."""

    async def asides(self, session: SessionKey, *, limit: int = 50) -> list[Aside]:
        """Return what stands beside the whole history of a session, in order.

        The newest ``limit`` of each kind. Of questions to people only those of other conversations.
        """

    async def chats(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Chat]:
        """Return stored chats, the most recently seen first."""

    async def chat(self, target: Target) -> Chat | None:
        """Return a chat, or None if it is not stored; the thread is ignored."""

    async def marked_chats(self) -> list[Chat]:
        """Return chats that are allowed, denied or gone, the most recently seen first."""

    async def undecided(
        self, places: Collection[Place], *, besides: Collection[Target] = ()
    ) -> int:
        """Count the groups of these places that are not gone and were neither allowed nor denied.

        ``besides``: chats that do not count.
        """

    async def note_chats(self, seen: Sequence[SeenChat], *, now: datetime) -> None:
        """Store chats with their present names; decisions about them stay."""

    async def allow_chat(
        self, channel: str, account: str, chat: str, *, allowed: bool, now: datetime
    ) -> None:
        """Allow or deny a chat; a chat that is not stored is stored as a group.

        Its access request is removed, unless a direct chat is allowed, and the messages that asked
        the owners show the decision. Sends ``Notice.PEOPLE``.
        """

    async def mark_chat(self, target: Target, peer: PeerKind, *, gone: str, now: datetime) -> None:
        """Store why nothing can be sent to a chat, "" if it can; the thread is ignored.

        Sends ``Notice.PEOPLE``, unless this was stored already.
        """

    async def topic(self, target: Target) -> Topic:
        """Return a topic; a topic that is not stored is open."""

    async def gone_topics(self) -> list[Topic]:
        """Return all topics that are closed or deleted."""

    async def note_topic(
        self,
        target: Target,
        *,
        name: str = "",
        renamed: bool = False,
        state: TopicState | None = None,
    ) -> None:
        """Store a topic's first name (with ``renamed``, its new name) and its state unless None.

        Opening a topic again resets ``told``. Sends ``Notice.PEOPLE`` if the state has changed.
        """

    async def notify_topic_gone(
        self, target: Target, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """Notify people once that a topic's messages go to another topic.

        Returns False if they were notified before, or the topic is open.
        """

    async def move_chat(
        self, channel: str, account: str, *, old: str, new: str, now: datetime
    ) -> bool:
        """Move everything that belongs to a chat to its new id, in one transaction.

        This covers sessions with their history, waiting inbox and outbox rows, runs, drafts, and
        the decision about the chat. Two sessions of the same key are merged, the older history
        first. Returns False if nothing has the old id. Sends ``Notice.PEOPLE`` and
        ``Notice.OUTBOX``.
        """

    async def activity(self, query: ActivityQuery = ALL_ACTIVITY) -> list[LastActivity]:
        """Return the last activity of approved people per chat and thread, newest first (HB-8).

        Chats that are denied are excluded, and those that are gone, unless these are asked for.
        """
