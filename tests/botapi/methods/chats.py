"""What a bot does in a chat besides writing."""

from __future__ import annotations

from tests.botapi.methods.common import chat_of
from tests.botapi.rules import Json, Parameters, bad_request
from tests.botapi.world import GENERAL_TOPIC, PRESS_S, World

_SENT = ("photo", "video", "voice", "document", "video_note")
_RECORDED = ("video", "voice", "video_note")
ACTIONS = frozenset(
    ["typing", "choose_sticker", "find_location"]
    + [f"upload_{kind}" for kind in _SENT]
    + [f"record_{kind}" for kind in _RECORDED]
)
REACTIONS = frozenset(
    "👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌👀🤝✍🤨🌚🌭💯🤣⚡🍌🏆💔😐🍓🍾💋🖕😈😴😭🤓👻🙈😇😨"
)
_ANSWER_LIMIT = 200
_IN_GROUPS = ("manage_chat", "change_info", "delete_messages", "invite_users", "manage_video_chats")
_OVER_PEOPLE = ("be_edited", "restrict_members", "promote_members")
_IN_STORIES = ("post_stories", "edit_stories", "delete_stories")
_RIGHTS = [f"can_{right}" for right in _IN_GROUPS + _OVER_PEOPLE + _IN_STORIES]


def send_chat_action(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    thread = call.number("message_thread_id")
    if thread not in {0, GENERAL_TOPIC} and thread not in chat.topics:
        raise bad_request("message thread not found")
    if call.text("action") not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    return True


def set_message_reaction(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
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
    press = world.presses.get(call.text("callback_query_id"))
    now = world.clock()
    if press is None or press.answered_at is not None or now > press.pressed_at + PRESS_S:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    text = call.text("text")
    if len(text) > _ANSWER_LIMIT:
        raise bad_request("MESSAGE_TOO_LONG")
    press.answered_at = now
    press.text = text
    return True


def get_chat_administrators(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    if chat.private:
        raise bad_request("there are no administrators in the private chat")
    creator, *_ = chat.admins
    owner: Json = {"status": "creator"}
    other: Json = {"status": "administrator", **dict.fromkeys(_RIGHTS, False)}
    return [
        {
            "user": {"id": user_id, "is_bot": False, "first_name": name},
            "is_anonymous": False,
            **(owner if user_id == creator else other),
        }
        for user_id, name in chat.admins.items()
    ]
