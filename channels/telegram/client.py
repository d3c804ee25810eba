"""The Bot API calls that the channel needs, for both libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from goclaw_py.core.errors import ChannelError, Undeliverable
from goclaw_py.core.messages import FileKind
from goclaw_py.core.values import value

TEXT_LIMIT = 4096
"""The longest text. The server counts characters; UTF-16 units never count less."""

ROOM_FOR_LINE = 64
"""The room in each part for the line that it may appear twice."""

CAPTION_LIMIT = 1024
"""The longest caption of a file, counted in the same way."""

GENERAL_TOPIC = 1
"""The thread of a forum's General topic, which ``sendMessage`` refuses."""


class PollConflict(ChannelError):
    """Another program receives this bot's updates: it polls too, or has set a webhook (409)."""


class MarkupRefused(Undeliverable):
    """The server cannot parse the HTML of a text; it may accept it without markup."""


class TextTooLong(Undeliverable):
    """The server counts a text as too long; it may accept smaller pieces."""


class MessageGone(Undeliverable):
    """The message to edit is deleted or too old."""


class FileTooBig(Undeliverable):
    """A file is larger than the limit for sending or downloading."""


@dataclass(frozen=True, slots=True)
class Bot:
    """The bot of a token. ``username`` is without ``@``.

    ``reads_groups``: its privacy mode is off, so it gets all messages of its groups.
    """

    id: int
    username: str
    reads_groups: bool = True


@value(frozen=True, slots=True)
class ChatPlace:
    """A chat, or one topic of it."""

    chat_id: int
    thread_id: int | None = None

    def in_forum(self) -> ChatPlace:
        """Return it as a forum has to be told to show "typing…", unlike where messages go."""
        return self if self.thread_id is not None else ChatPlace(self.chat_id, GENERAL_TOPIC)


@value(frozen=True, slots=True)
class Text:
    """A text of at most ``TEXT_LIMIT`` units, without lone surrogates.

    ``html``: it is Telegram's HTML, whose tags and entities do not count; otherwise it is plain.
    """

    text: str
    html: bool = False


Buttons = Sequence[Sequence[tuple[str, str]]]
"""Rows of buttons below a message: labels, and the data of a press (64 bytes)."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to send. ``name`` is the file name for people.

    Photos and voice messages are sent as such, others as documents.
    """

    kind: FileKind
    path: Path
    name: str
    mime: str = ""


@dataclass(frozen=True, slots=True)
class WebhookState:
    """The webhook of the server.

    ``url`` is without the token; "" if none is set. ``pending`` updates wait at the server, for a
    webhook or a poll. ``trouble`` is the last delivery error.
    """

    url: str = ""
    pending: int = 0
    trouble: str = ""


class BotClient(Protocol):
    """A bot's connection to the Bot API.

    Every method raises a ``ChannelError``: ``ChannelRefused`` only for the Bot API's own refusal,
    not for a proxy's 404; ``ChatGone`` for a chat that cannot be reached; ``TopicGone`` for its
    topic; ``ChatMoved`` for a group that became a supergroup. Neither its text nor its causes
    contain the token (SPEC CHAN-8), even if the server or a library has quoted it. After a
    cancellation the outcome is unknown.
    """

    async def get_me(self) -> Bot:
        """Return the bot of the token."""

    async def get_updates(
        self, *, offset: int | None, wait_s: int, kinds: Sequence[str]
    ) -> list[object]:
        """Return waiting updates, unparsed, the oldest first; waits up to ``wait_s`` for one.

        ``offset`` confirms all updates before it. Also raises ``PollConflict``.
        """

    async def send_message(
        self, place: ChatPlace, text: Text, *, reply_to: int | None = None, buttons: Buttons = ()
    ) -> int:
        """Send a text and return the message's id, without link previews.

        A deleted message to reply to is no error. Also raises ``MarkupRefused``.
        """

    async def edit_message(
        self, chat_id: int, message_id: int, text: Text, *, buttons: Buttons = ()
    ) -> None:
        """Edit a message of ours; an unchanged text is no error.

        A lost response is ``NotSent``: an edit can be repeated. Also raises ``MessageGone`` and
        ``MarkupRefused``.
        """

    async def edit_caption(self, chat_id: int, message_id: int, caption: Text | None) -> None:
        """Edit the caption of a file of ours, or remove it; an unchanged one is no error.

        Buttons are removed. Raises the errors of ``edit_message``.
        """

    async def set_buttons(self, chat_id: int, message_id: int, buttons: Buttons) -> bool:
        """Replace the buttons of a message of ours; False if it has these already.

        Also raises ``MessageGone`` and ``MaybeSent``.
        """

    async def remove_buttons(self, chat_id: int, message_id: int) -> None:
        """Remove the buttons of a message of ours; no buttons, or no message, is no error."""

    async def delete_message(self, chat_id: int, message_id: int) -> None:
        """Delete a message of ours; a deleted one is no error. A lost response is ``NotSent``."""

    async def send_draft(self, place: ChatPlace, draft_id: int, text: Text) -> None:
        """Show a native draft in a private chat for half a minute, with a stop button.

        ``draft_id`` is not 0; the same id replaces the draft. A lost response is ``NotSent``.
        """

    async def send_file(
        self, place: ChatPlace, upload: Upload, *, caption: Text | None = None, reply_to: int | None
    ) -> int:
        """Send a file and return the message's id. ``caption`` has at most ``CAPTION_LIMIT``.

        A picture that the server refuses is sent as a document. Also raises ``FileTooBig`` and
        ``MarkupRefused``, and ``Undeliverable`` for an unreadable file.
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

        Raises the errors of ``send_file``; if one file is refused, none is sent.
        """

    async def fetch_file(self, file_id: str, to: Path, *, limit_bytes: int) -> int:
        """Download a file and return its size; after an error there is no file at ``to``.

        Uses separate connections. Also raises ``FileTooBig``.
        """

    async def send_action(self, place: ChatPlace, action: str) -> None:
        """Show "typing…" or similar for five seconds. Uses separate connections."""

    async def set_reaction(self, chat_id: int, message_id: int, emoji: str) -> None:
        """Set our reaction to a message, "" to remove it. As ``send_action``."""

    async def answer_press(self, press_id: str, text: str = "") -> None:
        """Confirm a button press to the server, and show ``text``.

        Uses separate connections.
        """

    async def administrators(self, chat_id: int) -> frozenset[int]:
        """Return the users who administer a group, perhaps including the bot."""

    async def set_commands(
        self, commands: Mapping[str, str], *, chat_id: int | None = None
    ) -> None:
        """Publish the command menu of a chat, None for all others: name without slash, words."""

    async def webhook(self) -> WebhookState:
        """Return the present webhook."""

    async def set_webhook(
        self, url: str, *, secret: str, kinds: Sequence[str], connections: int
    ) -> None:
        """Let the server send updates to ``url``, each with ``secret`` in a header."""

    async def delete_webhook(self) -> None:
        """Remove the webhook; waiting updates are kept."""

    async def close(self) -> None:
        """Close connections."""
