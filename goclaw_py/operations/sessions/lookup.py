"""Sessions that people name by a part of the key, or of the name of the chat, topic or job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from goclaw_py.core.display_names import display_name, needed_names
from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.session_keys import agent_of, chat_of, is_direct_chat
from goclaw_py.core.targets import parse_target
from goclaw_py.operations.lookup import only
from goclaw_py.records import SessionQuery, Store

_SEARCHED: Final = 1000
"""The number of sessions among which a part of a key is searched."""

_CANDIDATES: Final = 10
"""The number of sessions that an error lists as candidates."""


async def find_session(store: Store, part: str, unstored: Iterable[SessionKey] = ()) -> SessionKey:
    """Return the session with this key, of this chat (``telegram:5``), or with a part in its key.

    Otherwise that with this name, or a part in its name; of jobs that write to a chat only if
    nobody has written from it. ``unstored`` are sessions whose first request waits. Raises
    ``NotFound``, with the names of several candidates.
    """
    unstored = {*unstored}
    if part in unstored or await store.session(SessionKey(part)) is not None:
        return SessionKey(part)
    stored = await store.sessions(SessionQuery(limit=_SEARCHED))
    keys = {*unstored, *(one.key for one in stored)}
    target = parse_target(part)
    try:
        if of_chat := [one.key for one in stored if target is not None and one.target == target]:
            return session_named(_chats_if_any(of_chat), "", part)
        if any(part in key for key in keys):
            return session_named(keys, part)
        named = await store.sessions(SessionQuery(search=part, limit=_SEARCHED))
        known = await store.names({one.target for one in named if one.target})
        exact = [one for one in named if one.target and known.targets.get(one.target) == part]
        return session_named(_chats_if_any(one.key for one in exact or named), "", part)
    except NotFound as error:
        if not error.names:
            raise
        known = await store.names(*needed_names(error.names))
        shown = ", ".join(f"{key} ({display_name(key, known)})" for key in error.names)
        more = ", …" if error.text.endswith("…") else ""
        text = f"session {part!r} is not unique: {shown}{more}; give one of these keys"
        raise NotFound(text) from None


def _chats_if_any(keys: Iterable[SessionKey]) -> list[SessionKey]:
    """Return the sessions of people: a job has the target of a chat, but not its messages."""
    found = list(keys)
    return [key for key in found if chat_of(key) is not None] or found


def with_whole_id(keys: Iterable[SessionKey], part: str) -> list[SessionKey]:
    """Return the key that ends with a part as its last id; [] if none or several do."""
    found = [key for key in keys if part and key.endswith(f":{part}")]
    return found if len(found) == 1 else []


def session_named(keys: Iterable[SessionKey], part: str, wanted: str = "") -> SessionKey:
    """Return the session with this part in its key; for an agent's name, its only direct chat.

    The only key that ends with the part, as its last id, comes before those that go on after it.
    ``wanted`` is what was asked for, if that is not ``part``. Raises ``NotFound``, with the
    candidates, chats first.
    """
    found = [key for key in keys if part in key]
    if ending := with_whole_id(found, part):
        return ending[0]
    chats = [key for key in found if agent_of(key) == part and is_direct_chat(key)]
    candidates = sorted(
        chats if len(chats) == 1 else found, key=lambda key: (key not in chats, key)
    )
    asked = f"session {wanted or part!r}"
    return only(candidates, part, str, asked, "sessions list", most=_CANDIDATES)
