"""A chat channel, as the runtime sees it (SPEC CHAN-1).

A new channel is one module with a ``ChannelKind`` registered under the entry point group
``goclaw_py.channels``; nothing else changes. ``goclaw_py.testing.conformance`` is the suite that it
has to pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from goclaw_py.delivery.rate_limit import UNPACED, RateLimit
from goclaw_py.model.errors import Undeliverable
from goclaw_py.model.messages import (
    Attachment,
    Inbound,
    LostDraft,
    OutboundMessage,
    OutFile,
    PeerKind,
    Target,
)
from goclaw_py.model.run_events import RunSignal
from goclaw_py.scheduler.views import HEALTHY, ChannelHealth

MOST_IN_ALBUM = 10
"""How many files one album has at most, on any channel."""


class InboundHandler(Protocol):
    """Receives messages from a channel."""

    async def accept(self, batch: Sequence[Inbound]) -> None:
        """Commit a batch, all or nothing; only then may the channel confirm it (SPEC IO-1).

        Commands take effect at once, before the commit. Raises ``StoreUnavailable`` when the batch
        was not committed: keep it unconfirmed and offer it again, with what came meanwhile.
        Offering a message again is harmless.
        """


@dataclass(frozen=True, slots=True)
class WebRequest:
    """A request to a hook. Names of ``headers`` are in lower case."""

    method: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """What a hook answers. ``text`` is for people who look at it, never a secret."""

    status: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Hook:
    """A channel's place in the gateway's web server (SPEC CHAN-2).

    Args:
        path: The absolute path, of ``/``, letters, digits, ``-``, ``_`` and ``.``; other paths
            never reach ``handle``.
        handle: Called for requests to ``path`` of any method, many at a time. Raises nothing.
        most_bytes: Larger bodies are refused before ``handle`` sees them.
    """

    path: str
    handle: Callable[[WebRequest], Awaitable[WebAnswer]]
    most_bytes: int = 1 << 20


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

        It changes only while ``receive`` or ``until_retry`` runs, for the next ``receive``.
        Two processes that poll for one bot take each other's updates; the lease lets one of them
        wait (SPEC NODE-1).
        """

    @property
    def trusted(self) -> bool:
        """Whether whoever reaches this channel is the operator (a terminal of this machine)."""

    @property
    def handle(self) -> str | None:
        """The name that addresses a command to us (``/stop@handle``); None while unknown."""

    @property
    def health(self) -> ChannelHealth:
        """The state of the connection while ``receive`` runs, and what is wrong with it."""

    @property
    def hook(self) -> Hook | None:
        """Where it wants to be called from the web, or None. Never changes."""

    def reaches(self, chat: str) -> bool:
        """Whether sending to a chat makes sense now; while not, its messages simply wait."""

    def pace(self, chat: str) -> RateLimit:
        """How fast a chat may be written to (SPEC IO-4)."""

    def parts(self, text: str) -> list[str]:
        """Cut a reply, in Markdown, into the messages it takes here, as ``send`` takes rich ones.

        None if nothing is left of it.
        """

    def readable(self, part: str) -> str:
        """What a person reads of a message that ``parts`` made: without its markup."""

    async def probe(self) -> str:
        """Ask the server whether this account works, and change nothing; a line for operators.

        Needs no ``receive``. Raises ``ChannelError``.
        """

    async def receive(self, intake: InboundHandler) -> None:
        """Take messages in until cancelled.

        Survives network trouble on its own. Raises ``ChannelRefused`` when the server keeps
        refusing the account; a single refusal may be a mistake of the server. Returns to be called
        again with a new ``lease``.
        """

    async def until_retry(self) -> None:
        """After ``ChannelRefused``: return when ``receive`` is worth another call.

        That is so when the account has another token, or the server accepts the old one again.
        """

    async def send(self, message: OutboundMessage) -> str:
        """Send one message, or finish its draft, and return the channel's id of it.

        A draft that is gone is sent as a new message; one without text is removed. A message to
        reply to that is gone is no error. Raises a ``ChannelError`` whose class says what is known:
        ``NotSent``, ``MaybeSent``, ``RateLimited``, ``ChatMoved``, ``Undeliverable``, ``ChatGone``,
        ``ChannelRefused``; after ``close`` ``NotSent``. Cancelling it leaves the outcome unknown.
        """

    def album(self, file: OutFile) -> str:
        """Which files it may share an album with: those with the same answer; "" is none."""

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:
        """Send 2 to 10 files, which share one answer of ``album``, as one; their ids, in order.

        All go where the first one goes, as a reply to what that replies to. Raises as ``send``;
        ``Undeliverable`` if one of them is refused, and nothing is sent then.
        """

    def drafts(self, target: Target, peer: PeerKind) -> bool:
        """Whether ``post_draft`` and ``edit_draft`` may show a growing reply there."""

    async def post_draft(self, beginning: OutboundMessage) -> str:
        """Show the beginning of a reply, whose text is Markdown; returns the channel's id of it.

        Raises as ``send``.
        """

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        """Show more of a reply in its ``draft``; the text is all of it so far, in Markdown.

        Raises as ``send``.
        """

    async def find_draft(
        self, target: Target, lost: LostDraft, *, before: str | None, known: Collection[str]
    ) -> str | None:
        """Look for a draft that was posted and is as ``post_draft`` left it; the id of it.

        None if it is not there, or not close to the message after which, or ``before`` which it
        was posted. ``known`` are ids of other messages of ours, which are left alone. Raises a
        ``ChannelError`` if it cannot be looked for now.
        """

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Download a file that came with a message to a path that does not exist.

        Raises a ``ChannelError``, ``Undeliverable`` with a reason for people if it never works.
        Nothing is left at ``to`` then, nor after a cancellation.
        """

    async def administrators(self, chat: str) -> frozenset[str]:
        """The ids of those senders who administer a group, as far as the channel has such.

        Who writes in the name of the group itself is one without being listed. Raises a
        ``ChannelError``.
        """

    def signal(self, signal: RunSignal) -> None:
        """Tell what happens to a run. Returns at once; never raises; showing it is optional."""

    async def close(self) -> None:
        """Give back connections. Again is harmless."""


class PlainChannel:
    """A base class for channels without markup, drafts, files, albums or hooks."""

    @property
    def health(self) -> ChannelHealth:
        """Nothing is known to be wrong."""
        return HEALTHY

    @property
    def hook(self) -> Hook | None:
        """It is not called from the web."""
        return None

    async def probe(self) -> str:
        """There is no server to ask."""
        return "here"

    async def until_retry(self) -> None:
        """A refusal lasts until the gateway is restarted."""
        await asyncio.Event().wait()

    def pace(self, chat: str) -> RateLimit:  # noqa: ARG002
        """As fast as it takes it."""
        return UNPACED

    def readable(self, part: str) -> str:
        """It has no markup."""
        return part

    def album(self, file: OutFile) -> str:  # noqa: ARG002
        """It has no albums: files are sent one by one."""
        return ""

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:  # noqa: ARG002
        """Refused, so that the files are sent one by one."""
        raise Undeliverable("this channel has no albums")

    async def administrators(self, chat: str) -> frozenset[str]:  # noqa: ARG002
        """It has no groups."""
        return frozenset()

    def drafts(self, target: Target, peer: PeerKind) -> bool:  # noqa: ARG002
        """It shows no drafts; the other two are never called then."""
        return False

    async def post_draft(self, beginning: OutboundMessage) -> str:
        """Never called."""
        raise NotImplementedError

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        """Never called."""
        raise NotImplementedError

    async def find_draft(
        self,
        target: Target,  # noqa: ARG002
        lost: LostDraft,  # noqa: ARG002
        *,
        before: str | None,  # noqa: ARG002
        known: Collection[str],  # noqa: ARG002
    ) -> str | None:
        """There are none."""
        return None

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Never called: its messages have no attachments."""
        raise NotImplementedError


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
