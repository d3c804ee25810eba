"""Groups and topics: made, renamed, closed, migrated; the bot added, muted, thrown out."""

from __future__ import annotations

from collections.abc import Sequence

from tests.botapi.people import People, user
from tests.botapi.rules import Json
from tests.botapi.world import GENERAL_TOPIC, Chat, Standing, quoted

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
        self.service(chat_id, {"new_chat_members": [self.world.me()]}, by=by)

    def kick(self, chat_id: int, *, by: int = _ADMIN) -> None:
        """Let somebody ban the bot from a group."""
        self._stand(self._chat(chat_id), user(by, "Ada", None), Standing.KICKED)

    def remove(self, chat_id: int, *, by: int = _ADMIN) -> None:
        """Let somebody take the bot out of a group; it may come back."""
        self._stand(self._chat(chat_id), user(by, "Ada", None), Standing.LEFT)

    def mute(self, chat_id: int, *, by: int = _ADMIN) -> None:
        """Take the right to write from the bot."""
        self._stand(self._chat(chat_id), user(by, "Ada", None), Standing.MUTED)

    def unmute(self, chat_id: int, *, by: int = _ADMIN) -> None:
        """Give it back."""
        self._stand(self._chat(chat_id), user(by, "Ada", None), Standing.MEMBER)

    def promote(self, chat_id: int, user_id: int, *, name: str = "Ann") -> None:
        """Make a user an administrator of a group; the bot is not told."""
        self._chat(chat_id).admins[user_id] = name

    def demote(self, chat_id: int, user_id: int) -> None:
        """Make them a plain member again."""
        del self._chat(chat_id).admins[user_id]

    def vanish(self, chat_id: int) -> None:
        """Let a chat be gone for the bot, which is not told."""
        self._chat(chat_id).standing = Standing.VANISHED

    def migrate(self, old: int, new: int, *, by: int = _ADMIN) -> None:
        """Turn a group into a supergroup, which has another id and begins empty."""
        before = self._chat(old)
        if before.kind != "group":
            raise ValueError("only a basic group can become a supergroup")
        after = self.world.chats[new] = Chat(new, "supergroup", before.title)
        self.service(old, {"migrate_to_chat_id": new}, by=by)
        before.moved_to = new
        self.service(after.id, {"migrate_from_chat_id": old}, by=by)

    def service(
        self, chat_id: int, content: Json, *, by: int = _ADMIN, thread: int | None = None
    ) -> Json:
        """Post a service message: ``{"group_chat_created": True}``, whatever the server may say."""
        chat = self._chat(chat_id)
        fields = self.world.in_topic(chat, thread)
        message = self.world.post(chat, user(by, "Ada", None), {**fields, **content})
        self.world.updates.tell("message", dict(message))
        return message

    def join(self, chat_id: int, user_id: int, *, name: str = "Bob") -> Json:
        """Let a user join a group."""
        members = [user(user_id, name, None)]
        return self.service(chat_id, {"new_chat_members": members}, by=user_id)

    def leave(self, chat_id: int, user_id: int, *, name: str = "Bob") -> Json:
        """Let a user leave a group."""
        return self.service(chat_id, {"left_chat_member": user(user_id, name, None)}, by=user_id)

    def rename(self, chat_id: int, title: str) -> Json:
        """Give a group another title."""
        self._chat(chat_id).title = title
        return self.service(chat_id, {"new_chat_title": title})

    def pin(self, chat_id: int, message_id: int) -> Json:
        """Pin a message."""
        pinned = quoted(self._chat(chat_id).messages[message_id])
        return self.service(chat_id, {"pinned_message": pinned})

    def open_topic(self, chat_id: int, thread: int, name: str = "Topic") -> None:
        """Make a topic, also in a private chat; its service message has the id ``thread``."""
        chat = self._chat(chat_id)
        chat.forum = True
        self.world.updates.tell("message", dict(self._open(chat, thread, name)))

    def rename_topic(self, chat_id: int, thread: int, name: str) -> None:
        """Give a topic another name; the service message of its beginning keeps the first one."""
        self.service(chat_id, {"forum_topic_edited": {"name": name}}, thread=thread)

    def close_topic(self, chat_id: int, thread: int) -> None:
        """Close a topic; 1 is General."""
        chat = self._chat(chat_id)
        chat.closed.add(thread)
        self._tell_topic(chat, thread, "forum_topic_closed")

    def reopen_topic(self, chat_id: int, thread: int) -> None:
        """Open a closed topic."""
        chat = self._chat(chat_id)
        chat.closed.discard(thread)
        self._tell_topic(chat, thread, "forum_topic_reopened")

    def delete_topic(self, chat_id: int, thread: int) -> None:
        """Delete a topic with its messages; the bot is not told."""
        chat = self._chat(chat_id)
        chat.topics.discard(thread)
        chat.closed.discard(thread)
        for number, message in list(chat.messages.items()):
            if message.get("message_thread_id") == thread:
                self.world.remove(chat, number)

    def _tell_topic(self, chat: Chat, thread: int, kind: str) -> None:
        # General has no thread: what happens to it is told in the chat itself.
        self.service(chat.id, {kind: {}}, thread=None if thread == GENERAL_TOPIC else thread)

    def _open(self, chat: Chat, thread: int, name: str) -> Json:
        chat.topics.add(thread)
        content: Json = {
            "message_thread_id": thread,
            "is_topic_message": True,
            "forum_topic_created": {"name": name, "icon_color": 7_322_096},
        }
        return self.world.post(chat, user(_ADMIN, "Ada", None), content, number=thread)
