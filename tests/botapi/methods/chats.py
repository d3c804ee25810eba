"""What a bot does in a chat besides writing."""

from __future__ import annotations

from tests.botapi.methods.common import chat_of
from tests.botapi.rules import Json, Parameters, bad_request
from tests.botapi.world import GENERAL_TOPIC, PRESS_S, Standing, World

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
    "👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌👀🤝✍🤨🌚🌭💯🤣⚡🍌🏆💔😐🍓🍾💋🖕😈😴😭🤓👻🙈😇😨"
)
_ANSWER_LIMIT = 200


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
    press.alert = call.flag("show_alert")
    return True


def get_chat(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    full: Json = {
        **chat.json(),
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(
            [
                "unlimited_gifts",
                "limited_gifts",
                "unique_gifts",
                "premium_subscription",
                "gifts_from_channels",
            ],
            False,
        ),
    }
    if not chat.private:
        can_write = chat.standing is not Standing.MUTED
        full["permissions"] = {"can_send_messages": can_write}
    return full


def get_chat_administrators(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    if chat.private:
        raise bad_request("there are no administrators in the private chat")
    rights = dict.fromkeys(
        [
            "can_be_edited",
            "can_manage_chat",
            "can_change_info",
            "can_delete_messages",
            "can_invite_users",
            "can_restrict_members",
            "can_promote_members",
            "can_manage_video_chats",
            "can_post_stories",
            "can_edit_stories",
            "can_delete_stories",
        ],
        False,
    )
    creator, *_ = chat.admins
    owner: Json = {"status": "creator"}
    other: Json = {"status": "administrator", **rights}
    return [
        {
            "user": {"id": user_id, "is_bot": False, "first_name": name},
            "is_anonymous": False,
            **(owner if user_id == creator else other),
        }
        for user_id, name in chat.admins.items()
    ]


def leave_chat(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    if chat.private:
        raise bad_request("chat member status can't be changed in private chats")
    chat.standing = Standing.LEFT
    return True
