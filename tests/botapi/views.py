"""What people see in a chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.botapi.files import FileKind
from tests.botapi.rules import Json, is_object
from tests.botapi.world import Chat, World, sender_of, words_of

_TOPICS = ("forum_topic_created", "forum_topic_closed", "forum_topic_reopened")
_SERVICE = ("new_chat_members", "migrate_to_chat_id", "migrate_from_chat_id", *_TOPICS)


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message; ``data`` is what a press brings, or empty."""

    text: str
    data: str


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file in a message. ``name`` is empty where people see none."""

    kind: FileKind
    file_id: str
    name: str
    size: int
    album: str | None


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as people see it now.

    ``text`` is also a caption. ``html`` is what the bot made it of, None if that was plain text.
    ``service`` is the kind of a service message.
    """

    message_id: int
    mine: bool
    text: str
    html: str | None
    entities: Sequence[Mapping[str, object]]
    reply_to: int | None
    thread: int | None
    file: SeenFile | None
    buttons: Sequence[Sequence[Button]]
    reactions: Sequence[str]
    edited: bool
    preview: bool
    service: str | None


@dataclass(frozen=True, slots=True)
class SeenDraft:
    """A growing answer as the user sees it; ``seconds`` is how long it still stays."""

    id: int
    text: str
    thread: int | None
    can_stop: bool
    seconds: float


def view(world: World, chat: Chat) -> list[Seen]:
    """The messages of a chat, oldest first."""
    return [_seen(world, chat, message) for message in chat.messages.values()]


def drafts(world: World, chat: Chat) -> list[SeenDraft]:
    """The drafts that are still shown."""
    now = world.clock()
    return [
        SeenDraft(draft.id, draft.text, draft.thread, draft.can_stop, draft.until - now)
        for draft in chat.drafts.values()
        if draft.until > now
    ]


def _seen(world: World, chat: Chat, message: Json) -> Seen:
    number = message["message_id"]
    assert isinstance(number, int)
    replied, thread = message.get("reply_to_message"), message.get("message_thread_id")
    reply = replied.get("message_id") if is_object(replied) else None
    entities = message.get("entities", message.get("caption_entities", []))
    preview = message.get("link_preview_options")
    return Seen(
        message_id=number,
        mine=sender_of(message) == world.bot_id,
        text=words_of(message),
        html=chat.source.get(number),
        entities=entities if isinstance(entities, list) else [],
        # A topic's root is told as what each message in it replies to; nobody sees that.
        reply_to=reply if isinstance(reply, int) and reply != thread else None,
        thread=thread if isinstance(thread, int) else None,
        file=_file(message),
        buttons=_buttons(message.get("reply_markup")),
        reactions=[str(r.get("emoji")) for r in _objects(message.get("reactions"))],
        edited="edit_date" in message,
        preview=not (is_object(preview) and preview.get("is_disabled")),
        service=next((kind for kind in _SERVICE if kind in message), None),
    )


def _file(message: Json) -> SeenFile | None:
    for kind in FileKind:
        content = message.get(kind.value)
        if isinstance(content, list):
            content = content[-1]
        if is_object(content):
            size = content.get("file_size")
            album = message.get("media_group_id")
            return SeenFile(
                kind=kind,
                file_id=str(content["file_id"]),
                name=str(content.get("file_name", "")),
                size=size if isinstance(size, int) else 0,
                album=None if album is None else str(album),
            )
    return None


def _buttons(markup: object) -> list[list[Button]]:
    rows = markup.get("inline_keyboard") if is_object(markup) else None
    return [
        [Button(str(b.get("text")), str(b.get("callback_data", ""))) for b in _objects(row)]
        for row in (rows if isinstance(rows, list) else [])
    ]


def _objects(value: object) -> Iterator[Json]:
    for item in value if isinstance(value, list) else []:
        if is_object(item):
            yield item
