"""A chat channel, as the runtime sees it (SPEC CHAN-1).

A new channel is one module with a ``ChannelKind`` registered under the entry point group
``goclaw_py.channels``; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from goclaw_py.core.events import RunSignal
from goclaw_py.core.messages import InboundMessage, OutboundMessage


class Intake(Protocol):
    """Where a channel hands over what it received."""

    async def accept(self, batch: Sequence[InboundMessage]) -> None:
        """Commit a batch, all or nothing; only then may the channel confirm it (SPEC IO-1).

        Commands take effect at once, before the commit. Raises ``StoreUnavailable`` when the batch
        was not committed: keep it unconfirmed and offer it again, with what came meanwhile.
        Offering a message again is harmless.
        """


class Channel(Protocol):
    """One account of a channel."""

    @property
    def name(self) -> str:
        """The channel's name, for example ``telegram``."""

    @property
    def account(self) -> str:
        """The account's name in the settings; ``default`` where there is only one."""

    @property
    def lease(self) -> str | None:
        """The name of the lease without which ``receive`` must not run, or None.

        Two processes that poll for one bot take each other's updates; the lease lets one of them
        wait (SPEC NODE-1).
        """

    @property
    def trusted(self) -> bool:
        """Whether whoever reaches this channel is the operator (a terminal of this machine)."""

    @property
    def handle(self) -> str | None:
        """The name that addresses a command to us (``/stop@handle``); None while unknown."""

    def reaches(self, chat: str) -> bool:
        """Whether sending to a chat makes sense now; while not, its messages simply wait."""

    def parts(self, text: str) -> list[str]:
        """Cut a reply into the messages it takes on this channel: none if nothing is left of it."""

    async def receive(self, intake: Intake) -> None:
        """Take messages in until cancelled.

        Survives network trouble on its own. Raises ``ChannelRefused`` when it cannot go on.
        """

    async def send(self, message: OutboundMessage) -> str:
        """Send one message and return the channel's id of it.

        Raises a ``ChannelError`` whose class says what is known: ``NotSent``, ``MaybeSent``,
        ``RateLimited``, ``Undeliverable``, ``ChannelRefused``. Cancelling it leaves the outcome
        unknown.
        """

    def signal(self, signal: RunSignal) -> None:
        """Tell what happens to a run. Returns at once; never raises; showing it is optional."""

    async def close(self) -> None:
        """Give back connections."""


class ChannelKind(Protocol):
    """Makes the accounts of one kind of channel. The entry point names such an object."""

    @property
    def name(self) -> str:
        """The channel's name and its section under ``[channels]``."""

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        """Make one account from its settings, without touching the network.

        ``options`` holds the keys of the section that are not common to all channels. Raises
        ``SettingError`` with the key relative to the section for an unknown key or a wrong value.
        """
