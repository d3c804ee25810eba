"""What the methods that send have in common."""

from __future__ import annotations

from tests.botapi import markup
from tests.botapi.buttons import keyboard
from tests.botapi.markup import Formatted
from tests.botapi.rules import Json, Parameters, bad_request
from tests.botapi.world import CAPTION_LIMIT, GENERAL_TOPIC, Chat, World, quoted


def chat_of(world: World, call: Parameters) -> Chat:
    """The chat that a call names, if the bot may act in it. Raises ``Refusal``."""
    place = call.written("chat_id")
    if not place:
        raise bad_request("chat_id is empty")
    if not place.removeprefix("-").isdigit():
        raise bad_request("chat not found")
    return world.chat(int(place))


def formatted(call: Parameters, name: str) -> Formatted:
    """The text that will be seen, and its entities. Raises ``Refusal``."""
    match call.text("parse_mode").lower():
        case "html":
            return markup.html(call.text(name))
        case "":
            return markup.plain(call.text(name))
    raise bad_request("unsupported parse_mode")


def caption_of(call: Parameters) -> Formatted:
    """The caption that will be seen below a file. Raises ``Refusal``."""
    caption = formatted(call, "caption")
    if len(caption.text) > CAPTION_LIMIT:
        raise bad_request("message caption is too long")
    return caption


def deliver(world: World, call: Parameters, chat: Chat, contents: list[Json]) -> list[Json]:
    """Post messages of the bot with what all of them may have: thread, reply, keyboard."""
    thread = call.number("message_thread_id")
    if thread and thread not in chat.topics:
        raise bad_request("message thread not found")
    if (thread or (chat.forum and GENERAL_TOPIC)) in chat.closed:
        raise bad_request("TOPIC_CLOSED")
    more = {**world.in_topic(chat, thread), **_reply(chat, call)}
    if buttons := keyboard(call):
        more["reply_markup"] = buttons
    chat.drafts.pop(thread, None)
    source = call.text("text" if call.has("text") else "caption")
    messages = [world.post(chat, world.me(), {**content, **more}) for content in contents]
    if source and call.text("parse_mode"):
        chat.source[_number(messages[0])] = source
    return messages


def _reply(chat: Chat, call: Parameters) -> Json:
    parameters = call.fields("reply_parameters")
    number = Parameters(parameters).number("message_id")
    if not number:
        return {}
    replied = chat.messages.get(number)
    if replied is not None:
        return {"reply_to_message": quoted(replied)}
    if parameters.get("allow_sending_without_reply"):
        return {}
    raise bad_request("message to be replied not found")


def _number(message: Json) -> int:
    number = message["message_id"]
    assert isinstance(number, int)
    return number
