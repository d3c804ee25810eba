"""The few Bot API calls that the channel needs, whichever library makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from goclaw_py.core.errors import ChannelError

TEXT_LIMIT = 4096
"""Longest text of a message. The server counts characters; UTF-16 units never count less."""

GENERAL_TOPIC = 1
"""The thread of a forum's General topic, which ``sendMessage`` refuses."""


class PollConflict(ChannelError):
    """Another program takes this bot's updates: it polls too, or has set a webhook (409)."""


@dataclass(frozen=True, slots=True)
class Bot:
    """The bot behind a token. ``username`` is without ``@``."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Place:
    """A chat, or one topic of it."""

    chat_id: int
    thread_id: int | None = None


class BotClient(Protocol):
    """One bot's connection to the Bot API.

    Every method raises a ``ChannelError`` whose class says what is known: ``ChannelRefused`` only
    for the Bot API's own word, never for a proxy's 404. Neither its text nor anything chained to
    it holds the token (SPEC CHAN-8), though the server or a library may have quoted it.
    """

    async def get_me(self) -> Bot:
        """The bot that the token belongs to."""

    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        """The updates that wait, as they came, oldest first; at least one unless ``wait_s`` pass.

        ``offset`` confirms all updates before it. Raises ``PollConflict`` besides.
        """

    async def send_message(self, place: Place, text: str, *, reply_to: int | None) -> int:
        """Send a text as it is and return the message's id. ``text`` has no lone surrogates.

        A message to reply to that is gone is no error.
        """

    async def send_typing(self, place: Place) -> None:
        """Show "typing…" for five seconds. Uses connections of its own."""

    async def set_commands(self, commands: Mapping[str, str]) -> None:
        """Publish the command menu: name without slash, description."""

    async def webhook(self) -> str:
        """The URL of the webhook that is set, fit to be shown: without the token; or ""."""

    async def delete_webhook(self) -> None:
        """Remove the webhook; updates that wait are kept."""

    async def close(self) -> None:
        """Give back connections."""
