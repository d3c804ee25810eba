"""The content of a message: text, files, or something unsupported (SPEC CHAN-6)."""

from __future__ import annotations

from channels.telegram.fields import (
    Fields,
    Malformed,
    clean_file_name,
    clean_mime,
    clean_name,
    list_or_empty,
    object_or_empty,
    optional_text,
    required_object,
    required_text,
    text_or_empty,
    whole_number,
)
from channels.telegram.inbound.markdown import link, marked
from channels.telegram.inbound.rich import rich_text
from channels.telegram.inbound.shared import chosen, details, service_text, shared_text
from goclaw_py.core.messages import Attachment, FileKind
from goclaw_py.core.text import is_blank, truncate
from goclaw_py.core.values import value

QUOTE_LIMIT = 4096
"""The longest quote in code points; only rich messages are longer than that."""

# An animation comes with a document too, a live photo with a photo: the first one found counts.
_FILES: dict[str, tuple[FileKind, str]] = {
    "animation": (FileKind.VIDEO, "video/mp4"),
    "video": (FileKind.VIDEO, ""),
    "video_note": (FileKind.VIDEO, "video/mp4"),
    "voice": (FileKind.VOICE, "audio/ogg"),
    "audio": (FileKind.AUDIO, ""),
    "document": (FileKind.DOCUMENT, ""),
}

# A venue comes with a location too: the first one found counts.
_UNSUPPORTED: dict[str, str] = {
    "venue": "a venue",
    "location": "a location",
    "contact": "a contact",
    "poll": "a poll",
    "dice": "a dice",
    "game": "a game",
    "invoice": "an invoice",
    "story": "a story",
    "sticker": "a sticker",
    "checklist": "a checklist",
    "giveaway": "a giveaway",
    "giveaway_winners": "the winners of a giveaway",
    "paid_media": "paid media",
    "rich_message": "a rich message",
}

_UNKNOWN = "this kind of message"

_REFERENCES = frozenset(["external_reply", "quote", "reply_to_story"])
"""Fields of a message that refers to something other than a message of its chat."""

SERVICE = frozenset(
    [
        "boost_added",
        "channel_chat_created",
        "chat_background_set",
        "chat_owner_changed",
        "chat_owner_left",
        "chat_shared",
        "checklist_tasks_added",
        "checklist_tasks_done",
        "community_chat_added",
        "community_chat_joined",
        "community_chat_removed",
        "connected_website",
        "delete_chat_photo",
        "direct_message_price_changed",
        "forum_topic_closed",
        "forum_topic_created",
        "forum_topic_edited",
        "forum_topic_reopened",
        "general_forum_topic_hidden",
        "general_forum_topic_unhidden",
        "gift",
        "gift_upgrade_sent",
        "giveaway_completed",
        "giveaway_created",
        "group_chat_created",
        "left_chat_member",
        "left_chat_participant",
        "managed_bot_created",
        "message_auto_delete_timer_changed",
        "migrate_from_chat_id",
        "migrate_to_chat_id",
        "new_chat_member",
        "new_chat_members",
        "new_chat_participant",
        "new_chat_photo",
        "new_chat_title",
        "paid_message_price_changed",
        "passport_data",
        "pinned_message",
        "poll_option_added",
        "poll_option_deleted",
        "proximity_alert_triggered",
        "refunded_payment",
        "successful_payment",
        "suggested_post_approval_failed",
        "suggested_post_approved",
        "suggested_post_declined",
        "suggested_post_paid",
        "suggested_post_refunded",
        "supergroup_chat_created",
        "unique_gift",
        "user_shared",
        "users_shared",
        "video_chat_ended",
        "video_chat_participants_invited",
        "video_chat_scheduled",
        "video_chat_started",
        "voice_chat_ended",
        "voice_chat_participants_invited",
        "voice_chat_scheduled",
        "voice_chat_started",
        "web_app_data",
        "write_access_allowed",
    ]
)
"""Fields of service messages (Bot API 10.3)."""


@value(frozen=True, slots=True)
class MessageContent:
    """The content of a message. ``entities`` are unchanged, with offsets into ``text``.

    ``rich``: the Markdown of a rich message, which has no entities. ``shared``: ``text`` is that
    of a position, contact or poll, whose later versions are ignored.
    """

    text: str = ""
    entities: object = None
    attachments: tuple[Attachment, ...] = ()
    unsupported: str = ""
    rich: str = ""
    shared: bool = False

    def markdown(self, begin: int = 0, end: int | None = None) -> str:
        """Return a part of the text as Markdown; of a rich message always all of it."""
        return self.rich or marked(self.text, self.entities, begin, end)

    @property
    def named(self) -> str:
        """The content that cannot be read, in square brackets; "" if all can."""
        return f"[{self.unsupported}]" if self.unsupported else ""


def read_content(message: Fields, *, direct: bool) -> MessageContent | None:
    """Return the content of a message; None for service messages. Raises ``Malformed``.

    Unknown newer content counts as a message only in a ``direct`` chat.
    """
    text = optional_text(message, "text")
    if text is not None:
        return MessageContent(text, message.get("entities"))
    caption = optional_text(message, "caption")
    attachments = _attachments(message)
    unsupported = "" if attachments else _unsupported(message)
    if caption or attachments:
        return MessageContent(
            caption or "", message.get("caption_entities"), attachments, unsupported
        )
    if words := rich_text(message.get("rich_message")):
        return MessageContent(words, rich=rich_text(message.get("rich_message"), markdown=True))
    if words := shared_text(message):
        # People tick tasks off, and write further ones.
        return MessageContent(words, shared="checklist" not in message)
    if emoji := text_or_empty(object_or_empty(message.get("sticker")).get("emoji")):
        return MessageContent(emoji)
    if unsupported:
        return MessageContent(unsupported=unsupported)
    return MessageContent(unsupported=_UNKNOWN) if direct and SERVICE.isdisjoint(message) else None


def read_quote(message: Fields, replied: Fields | None) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text, as Markdown, and the files of the message that this one replies to.

    Of the text only the selected part, if there is one. What is no text and no file is named in
    square brackets.
    """
    if replied is None and message.keys().isdisjoint(_REFERENCES):
        return "", ()
    # From another chat the server tells all but the text.
    about = replied or object_or_empty(message.get("external_reply"))
    content = _quoted(about)
    before = service_text(about, SERVICE)
    if "pinned_message" in about:
        content = _quoted(object_or_empty(about["pinned_message"]))
    selected = object_or_empty(message.get("quote"))
    if words := text_or_empty(selected.get("text")):
        return _shortened(MessageContent(words, selected.get("entities"))), content.attachments
    known = details(about) if content.unsupported else ""
    what = ": ".join(filter(None, [content.unsupported or _story(message), known]))
    named = [f"[{words}]" if words else "" for words in (before, what, chosen(message, about))]
    lines = [named[0], _shortened(content), *named[1:], read_links(about)]
    quote = "\n".join(filter(None, lines))
    if not (quote or content.attachments) and (address := _address_of(about)):
        return f"[{address}]", ()
    return quote, content.attachments


def _address_of(post: Fields) -> str:
    """Return the address of a message in another chat; "" if it has none that people can open."""
    chat, number = object_or_empty(post.get("chat")), whole_number(post.get("message_id"))
    name = clean_name(chat.get("username"))
    return f"https://t.me/{name}/{number}" if name and number and "origin" in post else ""


def _quoted(replied: Fields) -> MessageContent:
    """Return the content of a replied message, as far as it can be read."""
    readable = {
        key: value
        for key, value in replied.items()
        if key not in {"text", "caption"} or isinstance(value, str)
    }
    try:
        return read_content(readable, direct=False) or MessageContent()
    except Malformed:
        return MessageContent(text_or_empty(readable.get("caption")))


def _story(message: Fields) -> str:
    return _UNSUPPORTED["story"] if "reply_to_story" in message else ""


def _shortened(content: MessageContent) -> str:
    """Return a quote as Markdown; a longer one is cut, and says how much is missing."""
    if is_blank(content.text):
        return ""
    if len(content.text) <= QUOTE_LIMIT:
        return content.markdown()
    end = len(truncate(content.text, QUOTE_LIMIT)) - 1
    return f"{marked(content.text, content.entities, 0, end)}… [{len(content.text) - end:,} more]"


def read_links(message: Fields) -> str:
    """Return the buttons below a message that lead somewhere, as lines of Markdown."""
    rows = list_or_empty(object_or_empty(message.get("reply_markup")).get("inline_keyboard"))
    buttons = [object_or_empty(button) for row in rows for button in list_or_empty(row)]
    return "\n".join(
        link(clean_name(button.get("text")), address)
        for button in buttons
        if isinstance(address := _address_behind(button), str)
    )


def _address_behind(button: Fields) -> object:
    for key in ("login_url", "web_app"):
        if key in button:
            return object_or_empty(button[key]).get("url")
    return button.get("url")


def _unsupported(message: Fields) -> str:
    return next((words for key, words in _UNSUPPORTED.items() if key in message), "")


def _attachments(message: Fields) -> tuple[Attachment, ...]:
    if "photo" in message:
        return (_photo(message),)
    for key, (kind, mime) in _FILES.items():
        if key in message:
            return (_file(required_object(message, key), kind, mime),)
    return ()


def _photo(message: Fields) -> Attachment:
    """Return the largest size of a photo. Raises ``Malformed``."""
    sizes = [
        size
        for size in map(object_or_empty, list_or_empty(message.get("photo")))
        if isinstance(size.get("file_id"), str)
    ]
    if not sizes:
        raise Malformed("photo: no size of it")
    return _file(max(sizes, key=_extent), FileKind.PHOTO, "image/jpeg")


def _extent(size: Fields) -> tuple[int, int]:
    width, height = whole_number(size.get("width")), whole_number(size.get("height"))
    return _size(size) or 0, (width or 0) * (height or 0)


def _file(fields: Fields, kind: FileKind, mime: str) -> Attachment:
    return Attachment(
        kind=kind,
        ref=required_text(fields, "file_id"),
        name=clean_file_name(fields.get("file_name")),
        mime=clean_mime(fields.get("mime_type")) or mime,
        size=_size(fields),
    )


def _size(fields: Fields) -> int | None:
    size = whole_number(fields.get("file_size"))
    return None if size is None or size < 0 else size
