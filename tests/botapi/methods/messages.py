"""Texts: sent, edited, deleted, drafted."""

from __future__ import annotations

from tests.botapi.buttons import keyboard
from tests.botapi.files import FileKind
from tests.botapi.markup import Formatted
from tests.botapi.methods.common import caption_of, chat_of, deliver, formatted
from tests.botapi.rules import Json, Parameters, bad_request
from tests.botapi.world import (
    DRAFT_S,
    TEXT_LIMIT,
    Chat,
    Draft,
    World,
    sender_of,
    with_text,
    words_of,
)

_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)


def send_message(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    text = _text(call, "message is too long")
    content = with_text(text)
    if preview := call.fields("link_preview_options"):
        content["link_preview_options"] = preview
    return deliver(world, call, chat, [content])[0]


def send_message_draft(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    if not chat.private:
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    number = call.number("draft_id")
    if number == 0:
        raise bad_request("draft_id must be non-zero")
    thread = call.number("message_thread_id")
    if thread and thread not in chat.topics:
        raise bad_request("message thread not found")
    text = formatted(call, "text").text
    if len(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    until = world.clock() + DRAFT_S
    chat.drafts[thread] = Draft(number, text, thread or None, call.flag("can_stop"), until)
    return True


def edit_message_text(world: World, call: Parameters) -> object:
    chat, message = _to_edit(world, call)
    text = _text(call, "MESSAGE_TOO_LONG")
    if "text" not in message:
        raise bad_request("there is no text in the message to edit")
    _change(world, chat, message, with_text(text) | _buttons(call))
    _keep_source(chat, message, call)
    return message


def edit_message_caption(world: World, call: Parameters) -> object:
    chat, message = _to_edit(world, call)
    caption = caption_of(call)
    if not any(kind.value in message for kind in FileKind):
        raise bad_request("there is no caption in the message to edit")
    _change(world, chat, message, with_text(caption, caption=True) | _buttons(call))
    _keep_source(chat, message, call, "caption")
    return message


def edit_message_reply_markup(world: World, call: Parameters) -> object:
    chat, message = _to_edit(world, call)
    kept = {key: message[key] for key in _TEXT_FIELDS if key in message}
    _change(world, chat, message, kept | _buttons(call))
    return message


def delete_message(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    number = call.number("message_id")
    if not number:
        raise bad_request("message identifier is not specified")
    message = chat.messages.get(number)
    if message is None:
        raise bad_request("message to delete not found")
    if not _may_delete(world, chat, message):
        raise bad_request("message can't be deleted")
    world.remove(chat, number)
    return True


def _may_delete(world: World, chat: Chat, message: Json) -> bool:
    return chat.private or sender_of(message) == world.bot_id


_TEXT_FIELDS = ("text", "entities", "caption", "caption_entities")
_COMPARED = (*_TEXT_FIELDS, "reply_markup")


def _to_edit(world: World, call: Parameters) -> tuple[Chat, Json]:
    chat = chat_of(world, call)
    number = call.number("message_id")
    if not number:
        raise bad_request("message identifier is not specified")
    message = chat.messages.get(number)
    if message is None:
        raise bad_request("message to edit not found")
    if sender_of(message) != world.bot_id:
        raise bad_request("message can't be edited")
    return chat, message


def _buttons(call: Parameters) -> Json:
    """An edit without a keyboard takes the old one away."""
    buttons = keyboard(call)
    return {"reply_markup": buttons} if buttons else {}


def _change(world: World, chat: Chat, message: Json, new: Json) -> None:
    if {key: message[key] for key in _COMPARED if key in message} == new:
        raise bad_request(_NOT_MODIFIED)
    before = words_of(message)
    for key in _COMPARED:
        message.pop(key, None)
    message.update(new)
    message["edit_date"] = world.now()
    if words_of(message) != before:
        number = message["message_id"]
        assert isinstance(number, int)
        world.sightings.show(chat.id, number, words_of(message), world.clock())


def _keep_source(chat: Chat, message: Json, call: Parameters, field: str = "text") -> None:
    number = message["message_id"]
    assert isinstance(number, int)
    chat.source.pop(number, None)
    if call.text("parse_mode"):
        chat.source[number] = call.text(field)


def _text(call: Parameters, too_long: str) -> Formatted:
    """The text that will be seen; the server trims it and counts code points."""
    text = formatted(call, "text")
    if not text.text:
        raise bad_request("message text is empty")
    if len(text.text) > TEXT_LIMIT:
        raise bad_request(too_long)
    return text
