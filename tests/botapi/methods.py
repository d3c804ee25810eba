"""The methods of the Bot API that change or tell something at once (all but ``getUpdates``)."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.botapi.markup import plain_text
from tests.botapi.rules import Json, Parameters, bad_request
from tests.botapi.world import TEXT_LIMIT, Chat, World

ACTIONS = frozenset(
    [
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    ]
)
REACTIONS = frozenset(
    [
        "👍",
        "👎",
        "❤",
        "🔥",
        "🥰",
        "👏",
        "😁",
        "🤔",
        "🤯",
        "😱",
        "🤬",
        "😢",
        "🎉",
        "🤩",
        "🤮",
        "💩",
        "🙏",
        "👌",
        "👀",
        "🤝",
        "✍",
    ]
)
_NAME = re.compile(r"[a-z0-9_]{1,32}")
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)


def get_me(world: World, _call: Parameters) -> object:
    return world.me()


def send_message(world: World, call: Parameters) -> object:
    chat = _chat(world, call)
    text = _text(call)
    more: Json = {}
    if thread := call.number("message_thread_id"):
        if thread not in chat.topics:
            raise bad_request("message thread not found")
        more = {"message_thread_id": thread, "is_topic_message": True}
    reply = call.fields("reply_parameters")
    if reply:
        replied = chat.messages.get(int(str(reply.get("message_id", 0))))
        if replied is not None:
            more["reply_to_message"] = {
                key: value for key, value in replied.items() if key != "reply_to_message"
            }
        elif not reply.get("allow_sending_without_reply"):
            raise bad_request("message to be replied not found")
    if markup := call.fields("reply_markup"):
        more["reply_markup"] = markup
    return world.post(chat, world.me(), text, more)


def edit_message_text(world: World, call: Parameters) -> object:
    chat = _chat(world, call)
    text = _text(call)
    message = chat.messages.get(call.number("message_id"))
    if message is None:
        raise bad_request("message to edit not found")
    if message["from"] != world.me():
        raise bad_request("message can't be edited")
    markup = call.fields("reply_markup")
    if message["text"] == text and message.get("reply_markup", {}) == markup:
        raise bad_request(_NOT_MODIFIED)
    message["text"] = text
    message["edit_date"] = world.now()
    if markup:
        message["reply_markup"] = markup
    else:
        message.pop("reply_markup", None)
    return message


def send_chat_action(world: World, call: Parameters) -> object:
    chat = _chat(world, call)
    thread = call.number("message_thread_id")
    if thread not in {0, 1} and thread not in chat.topics:
        raise bad_request("message thread not found")
    if call.text("action") not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    return True


def set_my_commands(world: World, call: Parameters) -> object:
    commands: list[Json] = []
    for entry in call.items("commands"):
        if not isinstance(entry, dict):
            raise bad_request("expected an Object as bot command")
        if not _NAME.fullmatch(str(entry.get("command", ""))):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(entry.get("description", ""))) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        commands.append(entry)
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    world.commands = commands
    return True


def delete_webhook(world: World, call: Parameters) -> object:
    world.webhook = ""
    if call.flag("drop_pending_updates"):
        world.updates.clear()
    return True


def get_webhook_info(world: World, _call: Parameters) -> object:
    return {
        "url": world.webhook,
        "has_custom_certificate": False,
        "pending_update_count": len(world.updates),
    }


def set_message_reaction(world: World, call: Parameters) -> object:
    chat = _chat(world, call)
    message = chat.messages.get(call.number("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    reactions = call.items("reaction")
    if len(reactions) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    for reaction in reactions:
        if not isinstance(reaction, dict) or reaction.get("emoji") not in REACTIONS:
            raise bad_request("REACTION_INVALID")
    message["reactions"] = reactions
    return True


def answer_callback_query(world: World, call: Parameters) -> object:
    press = call.text("callback_query_id")
    if press not in world.presses:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    world.presses.remove(press)
    return True


METHODS: dict[str, Callable[[World, Parameters], object]] = {
    "getMe": get_me,
    "sendMessage": send_message,
    "editMessageText": edit_message_text,
    "sendChatAction": send_chat_action,
    "setMyCommands": set_my_commands,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
    "setMessageReaction": set_message_reaction,
    "answerCallbackQuery": answer_callback_query,
}


def _chat(world: World, call: Parameters) -> Chat:
    place = call.written("chat_id")
    if not place:
        raise bad_request("chat_id is empty")
    if not place.removeprefix("-").isdigit():
        raise bad_request("chat not found")
    return world.chat(int(place))


def _text(call: Parameters) -> str:
    """The text that will be seen; the server trims it and counts code points."""
    text = call.text("text")
    match call.text("parse_mode").lower():
        case "":
            pass
        case "html":
            text = plain_text(text)
        case _:
            raise bad_request("unsupported parse_mode")
    text = text.strip()
    if not text:
        raise bad_request("message text is empty")
    if len(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    return text
