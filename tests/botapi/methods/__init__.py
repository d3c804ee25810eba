"""The methods of the Bot API that change or tell something at once (all but ``getUpdates``)."""

from __future__ import annotations

from collections.abc import Callable

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
    "deleteMessages": messages.delete_messages,
    "sendPhoto": media.send_photo,
    "sendDocument": media.send_document,
    "sendVoice": media.send_voice,
    "sendMediaGroup": media.send_media_group,
    "getFile": media.get_file,
    "sendChatAction": chats.send_chat_action,
    "setMessageReaction": chats.set_message_reaction,
    "answerCallbackQuery": chats.answer_callback_query,
    "getChat": chats.get_chat,
    "getChatAdministrators": chats.get_chat_administrators,
    "leaveChat": chats.leave_chat,
    "setMyCommands": settings.set_my_commands,
    "getMyCommands": settings.get_my_commands,
    "deleteMyCommands": settings.delete_my_commands,
    "setWebhook": settings.set_webhook,
    "deleteWebhook": settings.delete_webhook,
    "getWebhookInfo": settings.get_webhook_info,
}
