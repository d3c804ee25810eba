"""Conversations of the console and the web chat: titles, deletion (SPEC CHAN-9, CHAN-13)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from goclaw_py.core.errors import NotAChat, SessionBusy
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import MAX_TITLE_CHARS, chat_of
from goclaw_py.core.text import visible_line
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.web_links import WEB_PLACE
from goclaw_py.gateway.forks import CONSOLE
from goclaw_py.records import NameKind, Place, SeenName, Store

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.1
"""Seconds between two attempts to delete, while runs end."""


def deletable_chat(key: SessionKey) -> Target:
    """Return the chat of a conversation that can be deleted. Raises ``NotAChat`` for others."""
    return _chat_in(key, "the console or the web chat", CONSOLE, WEB_PLACE)


def _chat_in(key: SessionKey, words: str, *places: Place) -> Target:
    chat = chat_of(key)
    if chat is None or (chat.channel, chat.account) not in places:
        raise NotAChat(f"session {key} is no conversation of {words}")
    return chat


async def rename(store: Store, clock: Clock, key: SessionKey, title: str) -> str:
    """Store the title of a conversation, or remove it; see ``Control.rename``."""
    # Operators see a conversation of the web chat by its person, who must not choose the name.
    chat, line = _chat_in(key, "the console", CONSOLE), visible_line(title)
    if len(line) > MAX_TITLE_CHARS:
        raise ValueError(f"a title has at most {MAX_TITLE_CHARS} characters, not {len(line)}")
    if line:
        named = SeenName(chat, line, kind=NameKind.GIVEN)
        await store.note_names([named], now=clock.now())
    else:
        await store.forget_name(chat)
    return line


async def delete(store: Store, key: SessionKey, *, wait_s: float) -> None:
    """Delete a stopped conversation, waiting for the end of its runs; see ``Control.delete``."""
    deletable_chat(key)
    deadline = asyncio.get_running_loop().time() + wait_s
    while not await store.delete_session(key):
        if asyncio.get_running_loop().time() >= deadline:
            raise SessionBusy(
                f"session {key} still has a run or a message that waits, so it was not deleted; "
                "try again in a moment"
            )
        await asyncio.sleep(_LOOK_S)
    log.info("session_deleted", extra={"session": key})
