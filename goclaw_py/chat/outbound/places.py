"""Names of chats and topics, and where their messages are read."""

from __future__ import annotations

from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.records import ChatStore


async def place_name(store: ChatStore, target: Target) -> str:
    """Return the name of a chat or topic for people. Raises ``StoreUnavailable``."""
    found = await store.chat(target)
    name = found.name if found else ""
    is_direct = found is not None and found.peer is PeerKind.DIRECT
    if target.thread is None:
        kind = "a private chat" if is_direct else "another chat"
        return name or f"{kind} on {target.channel.capitalize()}"
    topic = (await store.topic(target)).name
    which = f"the topic {topic}" if topic else "a topic"
    return f"{which} in {name}" if name and not is_direct else which


async def chat_words(store: ChatStore, target: Target, here: Target) -> str:
    """Return what people in the chat ``here`` call a chat: ``this chat``, ``Ann's chat``, a name.

    Raises ``StoreUnavailable``.
    """
    if target == here:
        return "this chat"
    found = await store.chat(target)
    if found is not None and found.peer is PeerKind.DIRECT and found.name:
        return f"{found.name}'s chat"
    return await place_name(store, target)


async def where_read(store: ChatStore, target: Target) -> Target:
    """Return the topic in which messages to ``target`` appear. Raises ``StoreUnavailable``."""
    if target.thread is None or not (await store.topic(target)).state:
        return target
    return target.whole_chat
