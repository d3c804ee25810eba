"""Groups and topics: made, closed, migrated; the bot added and thrown out."""

from __future__ import annotations

from collections.abc import Sequence

from tests.botapi.people import People, user
from tests.botapi.rules import Json
from tests.botapi.world import GENERAL_TOPIC, Chat, Standing

_ADMIN = 1


class Places(People):
    """Controls for chats. ``by`` is the user who does it; the administrator has the id 1."""

    def add_group(
        self, chat_id: int, title: str, *, topics: Sequence[int] = (), kind: str = "supergroup"
    ) -> None:
        """Have the bot in a group since long ago; with ``topics`` it is a forum.

        ``kind`` may also be ``group``, which can be migrated.
        """
        chat = Chat(chat_id, kind, title, forum=bool(topics))
        self.world.chats[chat_id] = chat
        for thread in topics:
            self._open(chat, thread, f"Topic {thread}")

    def invite(self, chat_id: int, *, by: int = _ADMIN) -> None:
        """Let somebody add the bot to a group."""
        chat = self._chat(chat_id)
        self._stand(chat, user(by, "Ada", None), Standing.MEMBER)
        self._service(chat_id, {"new_chat_members": [self.world.me()]}, by=by)

    def kick(self, chat_id: int, *, by: int = _ADMIN) -> None:
        """Let somebody ban the bot from a group."""
        self._stand(self._chat(chat_id), user(by, "Ada", None), Standing.KICKED)

    def unmute(self, chat_id: int, *, by: int = _ADMIN) -> None:
        """Let it write again, without a word in the chat."""
        self._stand(self._chat(chat_id), user(by, "Ada", None), Standing.MEMBER)

    def promote(self, chat_id: int, user_id: int, *, name: str = "Ann") -> None:
        """Make a user an administrator of a group; the bot is not told."""
        self._chat(chat_id).admins[user_id] = name

    def demote(self, chat_id: int, user_id: int) -> None:
        """Make them a plain member again."""
        del self._chat(chat_id).admins[user_id]

    def migrate(self, old: int, new: int, *, by: int = _ADMIN) -> None:
        """Turn a group into a supergroup, which has another id and begins empty."""
        before = self._chat(old)
        if before.kind != "group":
            raise ValueError("only a basic group can become a supergroup")
        after = self.world.chats[new] = Chat(new, "supergroup", before.title)
        self._service(old, {"migrate_to_chat_id": new}, by=by)
        before.moved_to = new
        self._service(after.id, {"migrate_from_chat_id": old}, by=by)

    def open_topic(self, chat_id: int, thread: int, name: str = "Topic") -> None:
        """Make a topic, also in a private chat; its service message has the id ``thread``."""
        chat = self._chat(chat_id)
        chat.forum = True
        self.world.updates.tell("message", dict(self._open(chat, thread, name)))

    def close_topic(self, chat_id: int, thread: int) -> None:
        """Close a topic; 1 is General."""
        chat = self._chat(chat_id)
        chat.closed.add(thread)
        self._tell_topic(chat, thread, "forum_topic_closed")

    def delete_topic(self, chat_id: int, thread: int) -> None:
        """Delete a topic with its messages; the bot is not told."""
        chat = self._chat(chat_id)
        chat.topics.discard(thread)
        chat.closed.discard(thread)
        for number, message in list(chat.messages.items()):
            if message.get("message_thread_id") == thread:
                self.world.remove(chat, number)

    def _service(
        self, chat_id: int, content: Json, *, by: int = _ADMIN, thread: int | None = None
    ) -> Json:
        """Post a service message."""
        chat = self._chat(chat_id)
        fields = self.world.in_topic(chat, thread)
        message = self.world.post(chat, user(by, "Ada", None), {**fields, **content})
        self.world.updates.tell("message", dict(message))
        return message

    def _tell_topic(self, chat: Chat, thread: int, kind: str) -> None:
        # General has no thread: what happens to it is told in the chat itself.
        self._service(chat.id, {kind: {}}, thread=None if thread == GENERAL_TOPIC else thread)

    def _open(self, chat: Chat, thread: int, name: str) -> Json:
        chat.topics.add(thread)
        content: Json = {
            "message_thread_id": thread,
            "is_topic_message": True,
            "forum_topic_created": {"name": name, "icon_color": 7_322_096},
        }
        return self.world.post(chat, user(_ADMIN, "Ada", None), content, number=thread)
