"""The few Bot API calls that the channel needs, whichever library makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from goclaw_py.model.errors import ChannelError, Undeliverable
from goclaw_py.model.messages import FileKind

TEXT_LIMIT = 4096
"""Longest text of a message. The server counts characters; UTF-16 units never count less."""

ROOM_FOR_LINE = 64
"""What parts of a text leave free for the line that tells that they were sent again."""

CAPTION_LIMIT = 1024
"""Longest text under a file, counted in the same way."""

GENERAL_TOPIC = 1
"""The thread of a forum's General topic, which ``sendMessage`` refuses."""


class PollConflict(ChannelError):
    """Another program takes this bot's updates: it polls too, or has set a webhook (409)."""


class MarkupRefused(Undeliverable):
    """The server cannot read the HTML of a text; without it the text may pass."""


class TextTooLong(Undeliverable):
    """The server counts a text as longer than we do; in smaller pieces it may pass."""


class MessageGone(Undeliverable):
    """The message to be edited is gone, or is too old to be edited."""


class FileTooBig(Undeliverable):
    """A file is larger than may be sent or fetched."""


@dataclass(frozen=True, slots=True)
class Bot:
    """The bot behind a token. ``username`` is without ``@``.

    ``reads_groups``: its privacy mode is off, so that it gets all messages of its groups.
    """

    id: int
    username: str
    reads_groups: bool = True


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """A chat, or one topic of it."""

    chat_id: int
    thread_id: int | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A text of at most ``TEXT_LIMIT`` units, without lone surrogates.

    ``html``: it is in Telegram's HTML, whose tags and entities do not count; else it is shown as it
    stands.
    """

    text: str
    html: bool = False


Buttons = Sequence[Sequence[tuple[str, str]]]
"""Rows of buttons under a message: what they say, and the data that a press brings (64 bytes)."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to send. ``name`` is what people see and save.

    Photos and voice messages are shown as such, anything else as a document.
    """

    kind: FileKind
    path: Path
    name: str
    mime: str = ""


@dataclass(frozen=True, slots=True)
class WebhookState:
    """The webhook that is set at the server.

    ``url`` is fit to be shown: without the token; "" if none is set. ``pending`` updates wait at
    the server, for a webhook or a poll. ``trouble`` is why the server could not deliver lately.
    """

    url: str = ""
    pending: int = 0
    trouble: str = ""


class BotClient(Protocol):
    """One bot's connection to the Bot API.

    Every method raises a ``ChannelError`` whose class says what is known: ``ChannelRefused`` only
    for the Bot API's own word, never for a proxy's 404; ``ChatGone`` for a chat that cannot be
    written to; ``TopicGone`` for a topic of it; ``ChatMoved`` for a group that became a supergroup.
    Neither its text nor anything chained to it holds the token (SPEC CHAN-8), though the server or
    a library may have quoted it. Cancelling a call leaves its outcome unknown.
    """

    async def get_me(self) -> Bot:
        """The bot that the token belongs to."""

    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        """The updates that wait, as they came, oldest first; at least one unless ``wait_s`` pass.

        ``offset`` confirms all updates before it. Raises ``PollConflict`` besides.
        """

    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        """Send a text and return the message's id. Links get no preview.

        A message to reply to that is gone is no error. Raises ``MarkupRefused`` besides.
        """

    async def edit_message(
        self, chat_id: int, message_id: int, text: Text, *, buttons: Buttons = ()
    ) -> None:
        """Give a message of ours another text; one that it has already is no error.

        An answer that is lost is ``NotSent``: an edit can be repeated. Raises ``MessageGone`` and
        ``MarkupRefused`` besides.
        """

    async def set_buttons(self, chat_id: int, message_id: int, buttons: Buttons) -> bool:
        """Give a message of ours other buttons, at least one; False if it has just these.

        Raises ``MessageGone`` and ``MaybeSent`` besides.
        """

    async def remove_buttons(self, chat_id: int, message_id: int) -> None:
        """Take the buttons below a message of ours away; one without any, or gone, is no error."""

    async def delete_message(self, chat_id: int, message_id: int) -> None:
        """Remove a message of ours; one that is gone is no error. A lost answer is ``NotSent``."""

    async def send_draft(self, place: ChatPlace, draft_id: int, text: Text) -> None:
        """Show a growing answer in a private chat for half a minute, with a stop button.

        ``draft_id`` is not 0; the same one replaces what it showed before. A lost answer is
        ``NotSent``.
        """

    async def send_file(
        self, place: ChatPlace, upload: Upload, *, caption: Text | None = None, reply_to: int | None
    ) -> int:
        """Send a file and return the message's id. ``caption`` has at most ``CAPTION_LIMIT``.

        A picture that the server does not take as one is sent as a document. Raises ``FileTooBig``
        and ``MarkupRefused`` besides, ``Undeliverable`` for a file that cannot be read.
        """

    async def send_album(
        self,
        place: ChatPlace,
        uploads: Sequence[Upload],
        *,
        captions: Sequence[Text | None],
        reply_to: int | None,
    ) -> list[int]:
        """Send 2 to 10 files as an album and return the ids of its messages, in order.

        Each is shown as what it is. Raises as ``send_file``, but sends nothing in another way: for
        any file that is not taken the whole is refused.
        """

    async def fetch_file(self, file_id: str, to: Path, *, limit_bytes: int) -> int:
        """Download a file and return its size; nothing is left at ``to`` if that fails.

        Uses connections of its own. Raises ``FileTooBig`` besides.
        """

    async def send_action(self, place: ChatPlace, action: str) -> None:
        """Show "typing…" or the like for five seconds. Uses connections of its own."""

    async def set_reaction(self, chat_id: int, message_id: int, emoji: str) -> None:
        """Put our reaction under a message, or take it away with "". As ``send_action``."""

    async def answer_press(self, press_id: str, text: str = "") -> None:
        """Tell the server that the press of a button was taken, and show ``text``.

        Uses connections of its own.
        """

    async def administrators(self, chat_id: int) -> frozenset[int]:
        """The users who administer a group, the bot perhaps among them."""

    async def set_commands(self, commands: Mapping[str, str]) -> None:
        """Publish the command menu: name without slash, description."""

    async def webhook(self) -> WebhookState:
        """The webhook that is set."""

    async def set_webhook(
        self, url: str, *, secret: str, kinds: Sequence[str], connections: int
    ) -> None:
        """Let the server send updates to ``url``, each with ``secret`` in a header."""

    async def delete_webhook(self) -> None:
        """Remove the webhook; updates that wait are kept."""

    async def close(self) -> None:
        """Give back connections."""
