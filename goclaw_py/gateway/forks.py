"""Forks: copies of conversations that go on by themselves (SPEC OPS-8)."""

from __future__ import annotations

import logging
from typing import Final

from goclaw_py.core.errors import NotRewindable
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT, chat_session
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.operations.control import SessionFork
from goclaw_py.records import Place, Session, Store, StoredRun
from goclaw_py.runs.session_settings import ChatRules

log = logging.getLogger(__name__)

CONSOLE: Final[Place] = ("console", DEFAULT_ACCOUNT)
"""Always there, only for operators, and free to name its chats."""


async def fork(
    store: Store, clock: Clock, session: Session, at: StoredRun | None, console: ChatRules | None
) -> SessionFork:
    """Copy the history of a session into a new session of the console.

    ``at`` is the run of the session at whose end the copy stops. ``console`` are the rules of the
    console, None if they are not known. Raises ``NotRewindable``.
    """
    if at is not None and at.session != session.key:
        raise NotRewindable(f"run {at.id} belongs to session {at.session}, not {session.key}")
    if at is not None and not await store.run_history(at.id):
        why = "is in progress" if at.outcome is None else "added nothing to the history"
        raise NotRewindable(f"run {at.id} {why}, so a conversation cannot be forked at its end")
    if at is None and not session.entries:
        raise NotRewindable(f"session {session.key} has no history to copy")
    chat = f"fork-{new_id(clock)}"
    target = Target(*CONSOLE, chat)
    key = chat_session(session.agent, target, PeerKind.DIRECT)
    run = None if at is None else at.id
    entries = await store.fork_session(session.key, key, target, run=run, now=clock.now())
    log.info("session_forked", extra={"session": key, "from": session.key, "run_id": run})
    is_open = session.agent == (MAIN_AGENT if console is None else console.agent)
    return SessionFork(key, session.key, entries, chat if is_open else None)
