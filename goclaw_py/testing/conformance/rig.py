"""Interface that the author of a channel implements: the channel and its test server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from goclaw_py.chat.channel import Channel, ChannelKind
from goclaw_py.core.messages import PeerKind, Target


class Offer(StrEnum):
    """Features of a channel beyond texts.

    Checks also detect drafts and hooks that a channel has but its rig does not offer.
    """

    DRAFTS = "drafts"
    """The channel shows a growing reply by editing one message."""
    SENDS_FILES = "sends files"
    RECEIVES_FILES = "receives files"
    HOOK = "hook"
    """The channel has a webhook."""
    SETTINGS = "settings"
    """A ``ChannelKind`` builds the channel from settings."""
    DELIVERS_AGAIN = "delivers again"
    """The server may deliver a confirmed message again."""
    MARKS_OLD = "marks old"
    """Messages that an earlier process may have received are marked ``redelivered``."""


class Trouble(StrEnum):
    """Faults that a rig can cause, from ``cause`` to ``calm``.

    Troubles of sending apply to both sends and drafts.
    """

    AWAY = "away"
    """The server cannot be reached at all."""
    ANSWER_LOST = "answer lost"
    """The next request has its effect, but its answer does not come back."""
    HANGS = "hangs"
    """Sends to ``ann`` and downloads get no answer until the client disconnects."""
    FLOOD = "flood"
    """The next message is refused temporarily; the server says how long to wait."""
    MESSAGE_REFUSED = "message refused"
    """The next message is refused permanently; the chat still works."""
    CHAT_GONE = "chat gone"
    """Messages to ``ann`` are not possible any more."""
    CHAT_MOVED = "chat moved"
    """``ann`` has a new chat id, at which messages arrive."""
    ACCOUNT_REFUSED = "account refused"
    """The server does not accept the account any more."""


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message of the channel as people see it now.

    ``id`` is what ``Channel.send`` returned for it, ``text`` what is shown, without markup.
    ``file`` is the content of its file, None without one.
    """

    id: str
    text: str
    file: bytes | None = None


class Rig(ABC):
    """Base class: one channel with its server, for one check.

    ``offers`` and ``troubles`` decide which checks apply; a subclass may leave out methods that
    only other checks call. ``receive`` must not be running when a check starts.

    Attributes:
        channel: The channel; another object after ``restart``.
        ann: A chat to which the channel may write and in which a person can write.
        ben: Another such chat.
        peer: The kind of both chats.
        patience_s: The timeout of every wait, in seconds of the loop's clock.
        largest_file: The size in bytes above which files are not fetched; None: no limit that a
            check could test.
        kind: The kind that builds the channel (``Offer.SETTINGS``).
    """

    offers: frozenset[Offer] = frozenset()
    troubles: frozenset[Trouble] = frozenset()
    channel: Channel
    ann: Target
    ben: Target
    peer: PeerKind = PeerKind.DIRECT
    patience_s: float = 10.0
    largest_file: int | None = None
    kind: ChannelKind | None = None

    @abstractmethod
    def say(self, chat: Target, text: str) -> None:
        """Let a person write, whether or not the channel receives. Return at once."""

    @abstractmethod
    def unconfirmed(self) -> int:
        """Return how many messages of people the server still holds for the channel.

        For a server that holds no messages: how many people still wait to deliver theirs.
        """

    @abstractmethod
    def seen(self, chat: Target) -> list[SeenMessage]:
        """Return the messages of the channel in a chat, oldest first."""

    @abstractmethod
    async def restart(self) -> None:
        """Close the channel and replace it with a new one, as another process would.

        The server keeps running with the messages that it holds.
        """

    async def cause(self, trouble: Trouble) -> None:
        """Start a trouble, one of ``troubles``."""
        raise NotImplementedError(f"{self} cannot cause: {trouble}")

    async def calm(self) -> None:
        """End every trouble; return when the server can be reached again."""
        raise NotImplementedError(f"{self} cannot end a trouble")

    def say_again(self) -> None:
        """Deliver the last confirmed message again (``Offer.DELIVERS_AGAIN``)."""
        raise NotImplementedError(f"{self} delivers nothing again")

    def say_file(self, chat: Target, content: bytes) -> None:
        """Let a person send a file (``Offer.RECEIVES_FILES``)."""
        raise NotImplementedError(f"{self} takes no files of people")

    def delete(self, chat: Target, message_id: str) -> None:
        """Let a person delete a message of the channel (``Offer.DRAFTS``)."""
        raise NotImplementedError(f"{self} deletes nothing")
