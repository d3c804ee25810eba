"""Converts updates of Telegram.

Updates are parsed one by one and field by field from raw JSON, so that a malformed or unknown one
affects no other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from channels.telegram.client import Bot
from channels.telegram.fields import (
    Fields,
    Malformed,
    clean,
    instant,
    list_or_empty,
    object_or_empty,
    required_number,
    required_object,
    required_text,
    text_or_empty,
    whole_number,
)
from channels.telegram.inbound.chat import (
    CHANNEL,
    UpdateContext,
    name_of,
    person,
    read_chat,
    read_peer,
    read_thread,
    without_general,
)
from channels.telegram.inbound.message import read_message
from goclaw_py.core.messages import ChatReached, Inbound, InboundMessage, PeerKind

__all__ = ["CHANNEL", "KINDS", "PRESS", "Malformed", "parse_update", "press_of", "update_id"]

PRESS = "press:"
"""The prefix of the external id of a press, before the server's id."""

_NO_TIME = datetime.fromtimestamp(0, UTC)
"""Telegram does not tell when a button was pressed or an answer was stopped."""

_BLOCKED = "the bot was blocked"
_REMOVED = "the bot was removed"
_MUTED = "the bot is not allowed to write"


def update_id(update: object) -> int | None:
    """Return the id that confirms an update, or None."""
    return whole_number(object_or_empty(update).get("update_id"))


def press_of(update: object) -> tuple[str, str] | None:
    """Return the server's id of a button press, and the button's data; None for others."""
    query = object_or_empty(object_or_empty(update).get("callback_query"))
    number = text_or_empty(query.get("id"))
    return (number, text_or_empty(query.get("data"))) if number else None


def parse_update(
    update: object, *, account: str, bot: Bot, redelivered: bool = False
) -> Inbound | None:
    """Convert an update; None if it is not for us. Raises ``Malformed``.

    ``redelivered`` as in ``InboundMessage``. A press has the time of its message, a stopped answer
    1970.
    """
    if not isinstance(update, dict):
        raise Malformed("update: no object")
    arrival = UpdateContext(account, bot, update_id(update), redelivered)
    for kind, read in _READERS.items():
        if kind in update:
            return read(required_object(update, kind), arrival)
    return None


def _edit(message: Fields, arrival: UpdateContext) -> Inbound | None:
    return read_message(message, arrival, edited=True)


def _press(query: Fields, arrival: UpdateContext) -> InboundMessage | None:
    """Convert a button press on a message that we may answer."""
    number = required_text(query, "id")
    if "message" not in query or "data" not in query:
        return None
    message = required_object(query, "message")
    data = required_text(query, "data")
    chat = required_object(message, "chat")
    peer = read_peer(chat)
    if peer is None:
        return None
    under = required_number(message, "message_id")
    return InboundMessage(
        external_id=f"{PRESS}{number}",
        target=read_chat(chat, arrival.account, read_thread(message)),
        peer=peer,
        sender=person(required_object(query, "from")),
        text=_label(message, data) or data,
        sent_at=instant(message, "date") if "date" in message else _NO_TIME,
        reply_to=str(under) if under else None,
        redelivered=arrival.redelivered,
        press=data,
        place_name=name_of(chat),
    )


def _label(message: Fields, data: str) -> str:
    """Return the label of the button with this data; "" if the message has it no longer."""
    markup = object_or_empty(message.get("reply_markup"))
    for row in list_or_empty(markup.get("inline_keyboard")):
        for button in map(object_or_empty, list_or_empty(row)):
            label, value = button.get("text"), button.get("callback_data")
            if isinstance(label, str) and isinstance(value, str) and clean(value) == data:
                return clean(label)
    return ""


def _membership(change: Fields, arrival: UpdateContext) -> ChatReached | None:
    """Convert a change of our membership: whether we can send to a chat (SPEC CHAN-7)."""
    chat = required_object(change, "chat")
    peer = read_peer(chat)
    member = required_object(change, "new_chat_member")
    gone = _gone(required_text(member, "status"), member, peer)
    if peer is None or gone is None:
        return None
    return ChatReached(read_chat(chat, arrival.account), peer, gone, name_of(chat))


def _gone(status: str, member: Fields, peer: PeerKind | None) -> str | None:
    """Return why we cannot send any more, "" if we can; None for an unknown status."""
    match status:
        case "member" | "administrator" | "creator":
            return ""
        case "left" | "kicked":
            return _BLOCKED if peer is PeerKind.DIRECT else _REMOVED
        case "restricted" if member.get("is_member") is False:
            return _REMOVED
        case "restricted":
            return "" if member.get("can_send_messages") is True else _MUTED
        case _:
            return None


def _stopped(stop: Fields, arrival: UpdateContext) -> InboundMessage | None:
    """Convert a press of the native stop button of a draft to a ``/stop`` of the chat's owner."""
    chat = required_object(stop, "chat")
    if read_peer(chat) is not PeerKind.DIRECT:
        return None
    draft = required_number(stop, "draft_id")
    if arrival.update is None:
        raise Malformed("update_id: no whole number")
    thread = required_number(stop, "message_thread_id") if "message_thread_id" in stop else None
    target = read_chat(chat, arrival.account, without_general(thread))
    return InboundMessage(
        external_id=f"stop:{target.chat}:{draft}:{arrival.update}",
        target=target,
        peer=PeerKind.DIRECT,
        sender=person(chat),
        text="/stop",
        sent_at=_NO_TIME,
        redelivered=arrival.redelivered,
        place_name=name_of(chat),
    )


_READERS: dict[str, Callable[[Fields, UpdateContext], Inbound | None]] = {
    "message": read_message,
    "edited_message": _edit,
    "callback_query": _press,
    "my_chat_member": _membership,
    "stopped_message_generation": _stopped,
}

KINDS: tuple[str, ...] = tuple(_READERS)
"""The kinds of updates that the channel requests."""
