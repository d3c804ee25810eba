"""The methods of the Bot API that change or tell something at once (all but ``getUpdates``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.botapi.files import FileKind
from tests.botapi.methods import chats, media, messages, settings
from tests.botapi.rules import Parameters
from tests.botapi.world import World

METHODS: dict[str, Callable[[World, Parameters], object]] = {
    "getMe": settings.get_me,
    "sendMessage": messages.send_message,
    "sendMessageDraft": messages.send_message_draft,
    "editMessageText": messages.edit_message_text,
    "editMessageCaption": messages.edit_message_caption,
    "editMessageReplyMarkup": messages.edit_message_reply_markup,
    "deleteMessage": messages.delete_message,
    "sendPhoto": partial(media.send_file, kind=FileKind.PHOTO),
    "sendDocument": partial(media.send_file, kind=FileKind.DOCUMENT),
    "sendVoice": partial(media.send_file, kind=FileKind.VOICE),
    "sendMediaGroup": media.send_media_group,
    "getFile": media.get_file,
    "sendChatAction": chats.send_chat_action,
    "setMessageReaction": chats.set_message_reaction,
    "answerCallbackQuery": chats.answer_callback_query,
    "getChatAdministrators": chats.get_chat_administrators,
    "setMyCommands": settings.set_my_commands,
    "setWebhook": settings.set_webhook,
    "deleteWebhook": settings.delete_webhook,
    "getWebhookInfo": settings.get_webhook_info,
}
