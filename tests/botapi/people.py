"""What people do: write, send files, press buttons, edit, forward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from tests.botapi import markup
from tests.botapi.files import Blob, FileKind
from tests.botapi.rules import Json, units
from tests.botapi.world import (
    TEXT_LIMIT,
    Chat,
    Press,
    Standing,
    World,
    quoted,
    sender_of,
    with_text,
    words_of,
)


class Writing(TypedDict, total=False):
    """How somebody writes. Without ``chat_id`` it is in the private chat with the bot."""

    chat_id: int
    name: str
    username: str | None
    thread: int | None
    reply_to: int | None
    """A message of the same chat."""
    quote: str
    """The part of it that is quoted."""


@dataclass(frozen=True, slots=True)
class Pressed:
    """A press of a button, on the emulator's clock. ``waited_s`` is None before an answer."""

    id: str
    user_id: int
    chat_id: int
    data: str
    pressed_at: float
    waited_s: float | None
    text: str


class People:
    """Controls for users. Every id of a message is one in its chat."""

    world: World

    def say(self, user_id: int, text: str, **how: Unpack[Writing]) -> list[Json]:
        """Let a user write, in as many messages as it takes; takes back a block of the bot."""
        pieces = [text[at : at + TEXT_LIMIT] for at in range(0, len(text), TEXT_LIMIT)]
        return [
            self._tell(user_id, with_text(markup.plain_as_typed(piece)), how) for piece in pieces
        ]

    def send(
        self,
        user_id: int,
        kind: FileKind,
        *,
        caption: str = "",
        content: Blob | None = None,
        file_name: str = "",
        mime: str = "",
        size: int | None = None,
        album: str | None = None,
        **how: Unpack[Writing],
    ) -> Json:
        """Let a user send a file.

        Without ``content`` a small one is made, or one of ``size`` bytes. ``size`` with ``content``
        is what the server says of it. ``album``: the ``media_group_id``.
        """
        file = self.world.files.keep(kind, content, name=file_name, mime=mime, size=size)
        fields: Json = {kind.value: file.json()}
        if album is not None:
            fields["media_group_id"] = album
        text = markup.plain_as_typed(caption)
        return self._tell(user_id, {**fields, **with_text(text, caption=True)}, how)

    def album(
        self,
        user_id: int,
        kinds: Sequence[FileKind],
        *,
        caption: str = "",
        **how: Unpack[Writing],
    ) -> list[Json]:
        """Let a user send an album: one update for each file; the first has the caption."""
        group = f"{self.world.number():019d}"
        return [
            self.send(user_id, kind, caption="" if place else caption, album=group, **how)
            for place, kind in enumerate(kinds)
        ]

    def send_other(self, user_id: int, content: Json, **how: Unpack[Writing]) -> Json:
        """Let a user send anything: the message has these fields (``OTHER`` has examples)."""
        return self._tell(user_id, content, how)

    def edit(self, user_id: int, message_id: int, text: str, *, chat_id: int | None = None) -> Json:
        """Let a user change the text or caption of an earlier message of theirs."""
        chat = self._chat(user_id if chat_id is None else chat_id)
        message = chat.messages[message_id]
        if sender_of(message) != user_id:
            raise ValueError("only one's own messages can be edited")
        has_text = "text" in message
        for key in ("text", "entities", "caption", "caption_entities"):
            message.pop(key, None)
        message.update(with_text(markup.plain_as_typed(text), caption=not has_text))
        message["edit_date"] = self.world.now()
        self.world.updates.tell("edited_message", _shown(chat, message_id))
        return message

    def delete(self, chat_id: int, message_id: int) -> None:
        """Let somebody delete a message, whoever wrote it; the bot is not told."""
        self.world.remove(self._chat(chat_id), message_id)

    def press(
        self,
        user_id: int,
        message_id: int,
        data: str,
        *,
        chat_id: int | None = None,
        name: str = "Ann",
        username: str | None = None,
    ) -> str:
        """Let anybody press a button under a message of the bot; returns the press's id.

        The button need not be there any more: an old screen may still show it.
        """
        chat = self._chat(user_id if chat_id is None else chat_id)
        press = Press(
            id=f"press{self.world.number()}",
            user_id=user_id,
            chat_id=chat.id,
            data=data,
            pressed_at=self.world.clock(),
        )
        self.world.presses[press.id] = press
        content: Json = {
            "id": press.id,
            "from": user(user_id, chat.title if chat.private else name, username),
            "message": _shown(chat, message_id),
            "data": data,
            "chat_instance": str(chat.id),
        }
        self.world.updates.tell("callback_query", content)
        return press.id

    def presses(self) -> list[Pressed]:
        """Every press, and how and how soon it was answered."""
        return [
            Pressed(
                id=p.id,
                user_id=p.user_id,
                chat_id=p.chat_id,
                data=p.data,
                pressed_at=p.pressed_at,
                waited_s=None if p.answered_at is None else p.answered_at - p.pressed_at,
                text=p.text,
            )
            for p in self.world.presses.values()
        ]

    def block(self, user_id: int) -> None:
        """Let a user block the bot."""
        chat = self._chat(user_id)
        self._stand(chat, user(user_id, chat.title, chat.username), Standing.BLOCKED)

    def unblock(self, user_id: int) -> None:
        """Let a user take that back."""
        chat = self._chat(user_id)
        self._stand(chat, user(user_id, chat.title, chat.username), Standing.MEMBER)

    def _chat(self, chat_id: int) -> Chat:
        chat = self.world.chats.get(chat_id)
        if chat is None:
            raise ValueError(f"there is no chat {chat_id}; add_group makes one")
        return chat

    def _stand(self, chat: Chat, by: Json, standing: Standing) -> None:
        """Change how the bot stands in a chat, and tell it."""
        old, chat.standing = chat.standing, standing
        if old is standing:
            return
        change: Json = {"chat": chat.json(), "from": by, "date": self.world.now()}
        change |= {"old_chat_member": self._member(old), "new_chat_member": self._member(standing)}
        self.world.updates.tell("my_chat_member", change)

    def _member(self, standing: Standing) -> Json:
        member: Json = {"user": self.world.me(), "status": _STATUS[standing]}
        if standing in {Standing.BLOCKED, Standing.KICKED}:
            member["until_date"] = 0
        return member

    def _tell(self, user_id: int, content: Json, how: Writing) -> Json:
        """Put a user's message into a chat, and tell the bot."""
        name, username = how.get("name", "Ann"), how.get("username")
        chat_id = how.get("chat_id")
        if chat_id is None:
            chat = self.world.chats.setdefault(user_id, Chat(user_id, "private", name, username))
            if chat.standing is Standing.BLOCKED:
                self.unblock(user_id)
            chat.standing = Standing.MEMBER
        else:
            chat = self._chat(chat_id)
        sender = user(user_id, name, username)
        fields = self.world.in_topic(chat, how.get("thread")) | self._reply(chat, how)
        message = self.world.post(chat, sender, {**fields, **content})
        if chat.standing is not Standing.KICKED:
            # The bot does not hear what is said where it was thrown out.
            self.world.updates.tell("message", dict(message))
        return message

    def _reply(self, chat: Chat, how: Writing) -> Json:
        number = how.get("reply_to")
        if number is None:
            return {}
        replied = chat.messages[number]
        fields: Json = {"reply_to_message": quoted(replied)}
        if quote := how.get("quote"):
            before, found, _ = words_of(replied).partition(quote)
            if not found:
                raise ValueError("only a part of the message can be quoted")
            fields["quote"] = {"text": quote, "position": units(before), "is_manual": True}
        return fields


_NOT_SO = ("is_closed", "allows_multiple_answers", "members_only")
_POLL: Json = {
    "id": "1",
    "question": "Tea?",
    "options": [
        {"persistent_id": str(place), "text": text, "voter_count": 0}
        for place, text in enumerate(["yes", "no"])
    ],
    "total_voter_count": 0,
    "type": "regular",
    **dict.fromkeys(["is_anonymous", "allows_revoting"], True),
    **dict.fromkeys(_NOT_SO, False),
}
OTHER: Mapping[str, Json] = {
    "location": {"location": {"latitude": 48.1, "longitude": 11.6}},
    "contact": {"contact": {"phone_number": "+4912345", "first_name": "Bob"}},
    "dice": {"dice": {"emoji": "🎲", "value": 4}},
    "poll": {"poll": _POLL},
}
"""Messages that are no files, by kind."""

_STATUS = {
    Standing.MEMBER: "member",
    Standing.BLOCKED: "kicked",
    Standing.KICKED: "kicked",
}


def user(user_id: int, name: str, username: str | None) -> Json:
    """A person as the server shows them."""
    shown: Json = {"id": user_id, "is_bot": False, "first_name": name, "language_code": "en"}
    return {**shown, "username": username} if username else shown


def _shown(chat: Chat, number: int) -> Json:
    """A message as an update brings it; of one that is gone only its place is told."""
    message = chat.messages.get(number)
    if message is None:
        return {"chat": chat.json(), "message_id": number, "date": 0}
    return {key: value for key, value in message.items() if key != "reactions"}
