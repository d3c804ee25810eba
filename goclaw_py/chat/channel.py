"""A chat channel, as the runtime sees it (SPEC CHAN-1).

A new channel is one module with a ``ChannelKind`` registered under the entry point group
``goclaw_py.channels``; nothing else changes. ``goclaw_py.testing.conformance`` is the suite that it
has to pass.

The rules of SPEC CHAN-1:

One protocol: receive (into the inbox), send, edit, activity (typing, reaction), capabilities. A new
channel is one module and passes the shipped conformance suite; no change elsewhere. A gateway is
ready once every channel has imported what it needs to receive, which happens while the database
starts. `/readyz` is 503 until each account has had an answer of its server, or has failed, or is
refused: a rolling restart waits until webhooks are taken, also if Telegram cannot be reached. One
that is lost later leaves it 200, and `/healthz` is always 200: no outage of Telegram makes an
orchestrator end or leave a gateway that has worked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from goclaw_py.chat.outbound.rate_limit import UNPACED, RateLimit
from goclaw_py.core.errors import Undeliverable
from goclaw_py.core.messages import (
    Attachment,
    Inbound,
    LostDraft,
    OutboundMessage,
    OutFile,
    PeerKind,
    Target,
)
from goclaw_py.core.run_events import RunSignal
from goclaw_py.scheduler.views import HEALTHY, ChannelHealth

MOST_IN_ALBUM = 10
"""The largest number of files in an album, on any channel."""


class InboundHandler(Protocol):
    """Receives messages from a channel."""

    async def accept(self, batch: Sequence[Inbound]) -> None:
        """Commit a batch in one transaction; only then may the channel confirm it (SPEC IO-1).

        Commands take effect before the commit. Raises ``StoreUnavailable`` if the batch was not
        committed: do not confirm it, and call again, also with messages that came in the meantime.
        Messages that are stored already are ignored.
        """


@dataclass(frozen=True, slots=True)
class WebRequest:
    """A request to a hook. Names of ``headers`` are in lower case."""

    method: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """The response of a hook. ``text`` is for people and never contains a secret."""

    status: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Hook:
    """An endpoint of a channel in the gateway's web server (SPEC CHAN-2).

    Args:
        path: The absolute path, of ``/``, letters, digits, ``-``, ``_`` and ``.``; other paths
            never reach ``handle``.
        handle: Called for requests of any method, many at a time. Raises nothing.
        most_bytes: The largest body; larger ones are refused before ``handle`` is called.
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
        """The account's name in the settings, ``default`` if there is only one."""

    @property
    def lease(self) -> str | None:
        """The name of the lease that ``receive`` needs, or None if it needs none.

        It changes only while ``receive`` or ``until_retry`` runs, for the next ``receive``. Two
        processes that poll for one bot take each other's updates; the lease lets one of them wait
        (SPEC NODE-1).
        """

    @property
    def identity(self) -> str | None:
        """Who the account is for the server, such as a bot; None if only one account can exist.

        Two accounts of the settings with the same one would take each other's messages. It changes
        only as ``lease`` does.
        """

    @property
    def trusted(self) -> bool:
        """Whether everybody on this channel is the operator (a terminal of this machine)."""

    @property
    def handle(self) -> str | None:
        """The bot's name in commands (``/stop@handle``); None while it is unknown."""

    @property
    def health(self) -> ChannelHealth:
        """The state of the connection while ``receive`` runs, with its problem if there is one."""

    @property
    def hook(self) -> Hook | None:
        """Its endpoint in the web server, or None. Never changes."""

    def reaches(self, chat: str) -> bool:
        """Return whether a chat can be reached now; while it cannot, its messages wait."""

    def chat_problem(self, chat: str) -> str:
        """Return why no chat can have this id, "" if one can; without using the network."""

    def pace(self, chat: str) -> RateLimit:
        """Return the rate limit of a chat (SPEC IO-4)."""

    def counts_everywhere(self, chat: str) -> bool:
        """Return whether ids of messages in a chat run on over others, for ``find_draft``."""

    def parts(self, text: str) -> list[str]:
        """Split a Markdown reply into messages that ``send`` accepts as rich text.

        Empty if nothing visible remains. A long text comes in a thread.
        """

    def readable(self, part: str) -> str:
        """Return the visible text of a message from ``parts``, without markup."""

    async def warm_up(self) -> None:
        """Import and prepare what ``receive`` needs, without using the network.

        Called once, while the database starts: the gateway is ready only afterwards.
        """

    async def probe(self) -> str:
        """Check the account with the server, and return a line for operators.

        Changes nothing, and does not need ``receive``. Raises ``ChannelError``.
        """

    async def receive(self, intake: InboundHandler) -> None:
        """Receive messages until cancelled.

        Recovers from network errors. Raises ``ChannelRefused`` if the server keeps refusing the
        account; a single refusal may be a mistake of the server. Returns if it must be called again
        with a new ``lease``.
        """

    async def until_retry(self) -> None:
        """After ``ChannelRefused``, wait until ``receive`` may succeed again.

        That is when the account has a new token, or the server accepts the old one again.
        """

    async def send(self, message: OutboundMessage) -> str:
        """Send a message, or complete its draft, and return the channel's id of it.

        A deleted draft is sent as a new message; a draft without text is removed. A deleted message
        to reply to is no error. Raises ``NotSent`` (also after ``close``), ``MaybeSent``,
        ``RateLimited``, ``ChatMoved``, ``Undeliverable``, ``ChatGone`` or ``ChannelRefused``.
        After a cancellation the outcome is unknown.
        """

    def album(self, file: OutFile) -> str:
        """Return a key: files with the same key may form an album. "" is no album."""

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:
        """Send 2 to 10 files with the same ``album`` key as one album; return their ids in order.

        Target and reply are those of the first message. Raises the errors of ``send``;
        ``Undeliverable`` if one file is refused, and then none is sent.
        """

    def drafts(self, target: Target, peer: PeerKind) -> bool:
        """Return whether a reply may be streamed there with ``post_draft`` and ``edit_draft``."""

    async def post_draft(self, beginning: OutboundMessage) -> str:
        """Post the beginning of a Markdown reply as a draft, and return the channel's id of it.

        Raises the errors of ``send``.
        """

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        """Update a draft; the text is the reply so far, in Markdown, at most 16,000 characters.

        Raises the errors of ``send``.
        """

    async def find_draft(
        self, target: Target, lost: LostDraft, *, before: str | None, known: Collection[str]
    ) -> str | None:
        """Search for a lost draft that has not been edited since ``post_draft``; return its id.

        It is searched near the message after which, or ``before`` which, it was posted; None if it
        is not there. ``known`` are the ids of our other messages, which are not touched; if the
        chat ``counts_everywhere``, those of all chats, with incoming ones. Raises a
        ``ChannelError`` if the search is not possible now.
        """

    async def unmark(
        self,
        message: OutboundMessage,
        sent: str,
        *,
        earlier: Collection[str],
        known: Collection[str],
    ) -> bool:
        """Show a message as it was written, without the line that it was sent again.

        Only if no copy of it can be in the chat between what was there ``earlier`` (not all of
        that) and ``sent``, its own id; otherwise, or if that is uncertain, returns False and
        changes nothing. ``known`` as for ``find_draft``. Raises a ``ChannelError``.
        """

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Download an attachment to a path that does not exist.

        Raises a ``ChannelError``; ``Undeliverable``, with a reason for people, if retrying cannot
        help. After an error or a cancellation there is no file at ``to``.
        """

    async def administrators(self, chat: str) -> frozenset[str]:
        """Return the sender ids of a group's administrators.

        Senders who write in the name of the group are administrators too, but are not listed.
        Raises a ``ChannelError``.
        """

    def signal(self, signal: RunSignal) -> None:
        """Notify the channel of a run's progress, which it may show. Never blocks or raises."""

    async def close(self) -> None:
        """Close connections. May be repeated."""


class PlainChannel:
    """A base class for channels without markup, drafts, files, albums or hooks."""

    lease: str | None = None

    @property
    def identity(self) -> str | None:
        """What the lease names."""
        return self.lease

    @property
    def health(self) -> ChannelHealth:
        """Always healthy."""
        return HEALTHY

    @property
    def hook(self) -> Hook | None:
        """None: it has no endpoint."""
        return None

    async def warm_up(self) -> None:
        """Do nothing: there is nothing to import."""

    async def probe(self) -> str:
        """Always succeed: there is no server."""
        return "here"

    async def until_retry(self) -> None:
        """Wait forever: a refusal lasts until the gateway is restarted."""
        await asyncio.Event().wait()

    def chat_problem(self, chat: str) -> str:  # noqa: ARG002
        """Nothing: any text is a chat."""
        return ""

    def pace(self, chat: str) -> RateLimit:  # noqa: ARG002
        """No limit."""
        return UNPACED

    def counts_everywhere(self, chat: str) -> bool:  # noqa: ARG002
        """Each chat counts by itself."""
        return False

    def readable(self, part: str) -> str:
        """Return ``part``: there is no markup."""
        return part

    def album(self, file: OutFile) -> str:  # noqa: ARG002
        """No albums: files are sent one by one."""
        return ""

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:  # noqa: ARG002
        """Raise ``Undeliverable``, so that the files are sent one by one."""
        raise Undeliverable("this channel has no albums")

    async def administrators(self, chat: str) -> frozenset[str]:  # noqa: ARG002
        """Return nothing: there are no groups."""
        return frozenset()

    def drafts(self, target: Target, peer: PeerKind) -> bool:  # noqa: ARG002
        """No drafts; the methods for drafts are never called."""
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
        """Return None: there are no drafts."""
        return None

    async def unmark(
        self,
        message: OutboundMessage,  # noqa: ARG002
        sent: str,  # noqa: ARG002
        *,
        earlier: Collection[str],  # noqa: ARG002
        known: Collection[str],  # noqa: ARG002
    ) -> bool:
        """Return False: the chat cannot be looked at."""
        return False

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Never called: messages have no attachments."""
        raise NotImplementedError


class ChannelKind(Protocol):
    """Creates the accounts of one kind of channel; the object that an entry point names."""

    @property
    def name(self) -> str:
        """The channel's name and its section under ``[channels]``."""

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        """Create an account from its settings, without using the network.

        ``options`` contains the section's keys that are not common to all channels. Raises
        ``SettingError``, with the key relative to the section, for an unknown key or wrong value.
        """
