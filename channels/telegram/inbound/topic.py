"""Topics: their names, and whether they accept messages (SPEC CHAN-6)."""

from __future__ import annotations

from typing import Final

from channels.telegram.fields import Fields, clean_name, object_or_empty, required_object
from channels.telegram.inbound.chat import name_of, read_chat, read_thread
from goclaw_py.core.messages import PeerKind, TopicChanged, TopicState

_CREATED: Final = "forum_topic_created"
_CHANGES: Final[dict[str, TopicState | None]] = {
    _CREATED: TopicState.OPEN,
    "forum_topic_edited": None,
    "forum_topic_closed": TopicState.CLOSED,
    "forum_topic_reopened": TopicState.OPEN,
}


def read_topic(message: Fields, peer: PeerKind, account: str) -> TopicChanged | None:
    """Convert a service message about a topic; None for others. Raises ``Malformed``.

    Deletions of topics are not reported.
    """
    for field, state in _CHANGES.items():
        if field in message:
            chat = required_object(message, "chat")
            target = read_chat(chat, account, read_thread(message))
            name = clean_name(object_or_empty(message[field]).get("name"))
            return TopicChanged(target, peer, name, bool(name), state, name_of(chat))
    return None


def topic_name(message: Fields, thread: int | None) -> str:
    """Return the name of a message's topic at its creation; "" if unknown.

    A message without a reply contains the service message of its topic.
    """
    if thread is None:
        return ""
    created = object_or_empty(object_or_empty(message.get("reply_to_message")).get(_CREATED))
    return clean_name(created.get("name"))
