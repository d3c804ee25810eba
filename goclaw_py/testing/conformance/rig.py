"""What the author of a channel brings: the channel, and the world around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.ports.channel import Channel, ChannelKind


class Offer(StrEnum):
    """What a channel has beyond texts. What it has and does not claim is found."""

    DRAFTS = "drafts"
    """Replies grow in one message."""
    SENDS_FILES = "sends files"
    RECEIVES_FILES = "receives files"
    HOOK = "hook"
    """It is called from the web."""
    SETTINGS = "settings"
    """A ``ChannelKind`` makes it."""
    DELIVERS_AGAIN = "delivers again"
    """Its server may bring a message again that was confirmed."""
    MARKS_OLD = "marks old"
    """What an earlier process may have seen is marked as ``redelivered``."""


class Trouble(StrEnum):
    """What the world can do to a channel, from ``cause`` to ``calm``.

    Those that are about sending hold for sends and drafts alike.
    """

    AWAY = "away"
    """The server cannot be reached at all."""
    ANSWER_LOST = "answer lost"
    """The next request has its effect, but its answer does not come back."""
    HANGS = "hangs"
    """Sends to ``ann`` and downloads get no answer, until whoever asked goes away."""
    FLOOD = "flood"
    """The next message is refused for now; the server says how long to wait."""
    MESSAGE_REFUSED = "message refused"
    """The next message is refused for good; the chat is as it was."""
    CHAT_GONE = "chat gone"
    """``ann`` cannot be written to any more."""
    CHAT_MOVED = "chat moved"
    """``ann`` has another id now, and can be written to there."""
    ACCOUNT_REFUSED = "account refused"
    """The server does not accept us any more."""


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message of ours as people see it now.

    ``id`` is what ``Channel.send`` returned for it, ``text`` what is shown, without markup.
    ``file`` is the content of its file, None without one.
    """

    id: str
    text: str
    file: bytes | None = None


class Rig(ABC):
    """One channel with its server, for one check. To be inherited from.

    ``offers`` and ``troubles`` decide which checks apply; methods that only others need may stay
    as they are. Nothing may be receiving when a check begins.

    Attributes:
        channel: The channel; another object after ``restart``.
        ann: A chat that may be written to and in which somebody can write.
        ben: Another one.
        peer: With whom these chats are.
        patience_s: How long, on the loop's clock, anything may take to come about.
        largest_file: The size in bytes above which files are not fetched; None: there is no limit
            that could be tried.
        kind: What makes the channel (``Offer.SETTINGS``).
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
        """Let a person write, whether or not anybody receives. Returns at once."""

    @abstractmethod
    def unconfirmed(self) -> int:
        """How many messages of people the server still holds for us.

        For a server that does not hold any: how many people still wait to have theirs taken.
        """

    @abstractmethod
    def seen(self, chat: Target) -> list[SeenMessage]:
        """Our messages in a chat, oldest first."""

    @abstractmethod
    async def restart(self) -> None:
        """Close the channel and put a new one in its place, as another process would.

        The server goes on, with what it held.
        """

    async def cause(self, trouble: Trouble) -> None:
        """Begin a trouble, one of ``troubles``."""
        raise NotImplementedError(f"{self} cannot cause: {trouble}")

    async def calm(self) -> None:
        """End every trouble; returns when the server can be reached again."""
        raise NotImplementedError(f"{self} cannot end a trouble")

    def say_again(self) -> None:
        """Bring the last confirmed message once more (``Offer.DELIVERS_AGAIN``)."""
        raise NotImplementedError(f"{self} delivers nothing again")

    def say_file(self, chat: Target, content: bytes) -> None:
        """Let a person send a file (``Offer.RECEIVES_FILES``)."""
        raise NotImplementedError(f"{self} takes no files of people")

    def delete(self, chat: Target, message_id: str) -> None:
        """Let somebody delete a message of ours (``Offer.DRAFTS``)."""
        raise NotImplementedError(f"{self} deletes nothing")
