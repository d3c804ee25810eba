"""What operators do with sessions (SPEC OPS-4, OPS-8, CRON-19)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from goclaw_py.core.actors import Least
from goclaw_py.core.display_names import KnownNames, display_name, needed_names, title_from
from goclaw_py.core.errors import (
    NoGateway,
    NotAccepted,
    NotAChat,
    NotFound,
    NotRewindable,
    SessionBusy,
    StoreUnavailable,
)
from goclaw_py.core.ids import MAIN_AGENT, AgentName, RunId, SessionKey
from goclaw_py.core.messages import PeerKind, Role, Target
from goclaw_py.core.session_keys import (
    DEFAULT_ACCOUNT,
    MAX_TITLE_CHARS,
    chat_of,
    chat_session,
    is_made_name,
    peer_of,
)
from goclaw_py.core.text import visible_line
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.core.web_links import WEB_PLACE
from goclaw_py.operations.declare import operation
from goclaw_py.operations.lookup import only
from goclaw_py.operations.sessions import changes
from goclaw_py.operations.sessions.lookup import find_session
from goclaw_py.records import (
    NEWEST_SESSIONS,
    Aside,
    NameKind,
    Place,
    RunQuery,
    SeenName,
    Session,
    SessionQuery,
    Store,
    StoredEntry,
    StoredRun,
    Unanswered,
)
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.snapshots import in_line
from goclaw_py.scheduler.views import RunView, StopReport

if TYPE_CHECKING:
    from goclaw_py.operations.sessions.live import LiveSessions

log = logging.getLogger(__name__)

CONSOLE: Final[Place] = ("console", DEFAULT_ACCOUNT)
"""Always there, only for operators, and free to name its chats."""

_READ_FOR_TITLE: Final = 1000
_RUNNING_SHOWN: Final = 1000
_WAITING_SHOWN: Final = 50
_UNANSWERED_SHOWN: Final = 20
_ENDS_WITHIN_S: Final = 15.0
"""How long the deletion of a conversation waits for its runs: longer than ``cancel_grace``."""

_RETRY_S: Final = 0.1
"""Seconds between two attempts to delete, while runs end."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A message that was stored and will be answered.

    ``run`` is the run that will answer it, None if another node owns its session.
    """

    session: SessionKey
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class SessionFork:
    """A new session with a copy of another one's history.

    Args:
        origin: The session that was copied.
        entries: The number of history entries in the copy.
        chat: The name of its console chat; None if its agent does not answer at the console.
    """

    session: SessionKey
    origin: SessionKey
    entries: int
    chat: str | None


@dataclass(frozen=True, slots=True)
class QueueView:
    """The running, waiting and unanswered messages of a session at one instant (SPEC OPS-4).

    ``live`` is False if no gateway answered: then ``running`` comes from the database, and
    ``waiting`` is empty.
    """

    session: SessionKey
    at: datetime
    live: bool
    running: tuple[RunView, ...]
    waiting: tuple[RunView, ...]
    """The next one first."""
    policy: QueuePolicy | None
    """The queue policy of the session's newest request, None without one."""
    messages: tuple[Unanswered, ...]
    """The oldest messages that have not ended, including those of a run in progress."""
    unanswered: tuple[Unanswered, ...]
    """The newest messages that ended without an answer."""
    unmentioned_at: datetime | None = None
    """When its group last had a message that was not for the bot."""


class Sessions:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process.

    Args:
        console_agent: Returns the agent of the console.
        live: What only a running gateway can do; None where none is running.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        console_agent: Callable[[], AgentName] = lambda: MAIN_AGENT,
        live: LiveSessions | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._console_agent = console_agent
        self._live = live

    @operation("GET /api/sessions/{key:path}/history", Least.TEXT)
    async def history(
        self, key: SessionKey, *, limit: int = 200, whole: bool = False
    ) -> list[StoredEntry]:
        """Return a session's history since its last reset, the oldest entry first.

        ``whole``: also what was said before it.
        """
        return await self._store.history(key, limit=limit, whole=whole)

    @operation("GET /api/sessions/{key:path}/asides", Least.TEXT)
    async def asides(self, key: SessionKey, *, limit: int = 50) -> list[Aside]:
        """Return commands, and messages that no run has written, in order.

        The newest ``limit`` of each kind; with messages of failed runs.
        """
        return await self._store.asides(key, limit=limit)

    @operation("GET /api/sessions/{key:path}/queue", Least.VIEWER)
    async def queue(self, key: str) -> QueueView:
        """Return the queue of a session by key or unique part of a key. Raises ``NotFound``.

        Without a gateway it is that of the database.
        """
        requests = () if self._live is None else self._live.requests()
        found = await find_session(self._store, key, (one.session for one in requests))
        live = [one for one in requests if one.session == found]
        now = self._clock.now()
        messages = await self._store.unanswered(found, ended=False, limit=_WAITING_SHOWN)
        ended = await self._store.unanswered(found, ended=True, limit=_UNANSWERED_SHOWN)
        # One may end between these two.
        known = {one.id for one in ended}
        messages = [one for one in messages if one.id not in known]
        running = tuple(run for run in live if run.waits_for is None)
        if not live:
            # Another process may be working on it.
            query = RunQuery(session=found, active=True, limit=_RUNNING_SHOWN)
            running = tuple(run.view(now) for run in reversed(await self._store.runs(query)))
        return QueueView(
            session=found,
            at=now,
            live=self._live is not None,
            running=running,
            waiting=in_line(live),
            policy=None if self._live is None else self._live.policy(found),
            messages=tuple(messages),
            unanswered=tuple(ended),
            unmentioned_at=await self._unmentioned_at(found),
        )

    async def _unmentioned_at(self, key: SessionKey) -> datetime | None:
        session = await self._store.session(key)
        if session is None or session.target is None or peer_of(key) is not PeerKind.GROUP:
            return None
        chat = await self._store.chat(session.target)
        return None if chat is None else chat.unmentioned_at

    @operation("POST /api/sessions/{key:path}/stop", Least.OPERATOR, changes.STOP)
    async def stop(
        self, key: SessionKey, *, everything: bool, run: RunId | None = None
    ) -> StopReport:
        """Stop as an owner's ``/stop`` (``everything``: ``/stopall``) in the session's chat does.

        With ``run`` that run is stopped, or nothing if it has ended. Waiting parts of answers are
        dropped too. Raises ``NoGateway``.
        """
        if self._live is None:
            raise NoGateway(f"no gateway is running here, so nothing runs in {key}")
        return await self._live.stop(key, everything=everything, run=run)

    @operation("POST /api/sessions/{key:path}/messages", Least.OPERATOR, changes.SEND)
    async def send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        """Send a message to the agent as if it came from the chat of a stored session (CRON-19).

        The reply goes to that chat; in the session of a job it goes to the job's target, or only
        into the history if the job has none. ``key`` is the whole key; ``text`` is never a command.
        Raises ``NotFound``, ``NotAChat``, ``NoGateway``, and ``SessionBusy`` if the session is busy
        and ``queue`` is False.
        """
        if self._live is None:
            raise NoGateway("no gateway is running here, so nobody would work on it")
        return await self._live.send(key, text, queue=queue)

    @operation("POST /api/sessions/{key:path}/reset", Least.OPERATOR, changes.RESET)
    async def reset(self, key: SessionKey) -> None:
        """Cancel the running and waiting runs of a session, and start a new history."""
        if self._live is None:
            await self._store.reset_session(key, now=self._clock.now())
        else:
            await self._live.reset(key)

    @operation("PUT /api/sessions/{key:path}/title", Least.OPERATOR, changes.RENAME, key="title")
    async def rename(self, key: SessionKey, title: str) -> str:
        """Give a conversation of the console a title; return it without invisible characters.

        "" brings back its first words, if it has a made name. Raises ``NotFound``, ``NotAChat`` for
        any other session, and ``NotAccepted`` for a title of more than ``MAX_TITLE_CHARS``.
        """
        session = await self.get(key)
        # Operators see a conversation of the web chat by its person, who must not choose the name.
        chat, line = _chat_in(session.key, "the console", CONSOLE), visible_line(title)
        if len(line) > MAX_TITLE_CHARS:
            raise NotAccepted(f"a title has at most {MAX_TITLE_CHARS} characters, not {len(line)}")
        kind = NameKind.GIVEN
        if not line:
            await self._store.forget_name(chat)
            if is_made_name(chat.chat):
                said = await self._store.history(session.key, limit=_READ_FOR_TITLE, whole=True)
                asked = (one.entry.text for one in said if one.entry.role is Role.USER)
                line, kind = title_from(next(asked, "")), NameKind.GUESSED
        if line:
            await self._store.note_names([SeenName(chat, line, kind=kind)], now=self._clock.now())
        return line

    @operation("DELETE /api/sessions/{key:path}", Least.OPERATOR, changes.DELETE)
    async def delete(self, key: SessionKey) -> None:
        """Stop a conversation of the console or the web chat, and delete what was said in it.

        Its title is deleted too; the usage of its runs is kept. Raises ``NotFound``, ``NotAChat``
        for any other session, and ``SessionBusy`` if a run does not end in time, or nothing can
        stop it here.
        """
        session = (await self.get(key)).key
        chat = deletable_chat(session)
        if self._live is not None:
            await self._live.reset(session)
        now_s = asyncio.get_running_loop().time
        deadline = now_s() + (0.0 if self._live is None else _ENDS_WITHIN_S)
        while not await self._store.delete_session(session):
            if now_s() >= deadline:
                raise SessionBusy(
                    f"session {session} still has a run or a message that waits, so it was not "
                    "deleted; try again in a moment"
                )
            await asyncio.sleep(_RETRY_S)
        log.info("session_deleted", extra={"session": session})
        if self._live is not None:
            self._live.forget_title(chat)

    @operation("POST /api/sessions/{key:path}/fork", Least.OPERATOR, changes.FORK)
    async def fork(self, key: SessionKey, *, at: str | None = None) -> SessionFork:
        """Copy a session's history, summary and pinned facts into a new session of the console.

        ``at`` is the beginning of the id of a run of the session: the copy is what was remembered
        when it ended, also if it was undone since. The original is unchanged. Raises ``NotFound``,
        and ``NotRewindable`` if there is nothing to copy.
        """
        session = await self.get(key)
        run = None if at is None else (await self._run_to_fork_at(session, at)).id
        if run is None and not session.entries:
            raise NotRewindable(f"session {session.key} has no history to copy")
        chat = f"fork-{new_id(self._clock)}"
        target = Target(*CONSOLE, chat)
        copy = chat_session(session.agent, target, PeerKind.DIRECT)
        now = self._clock.now()
        entries = await self._store.fork_session(session.key, copy, target, run=run, now=now)
        log.info("session_forked", extra={"session": copy, "from": session.key, "run_id": run})
        is_open = session.agent == self._console_agent()
        return SessionFork(copy, session.key, entries, chat if is_open else None)

    async def _run_to_fork_at(self, session: Session, at: str) -> StoredRun:
        """Return the run of a session at whose end a copy stops. Raises ``NotRewindable``."""
        found = await self._store.find_run(at)
        run = only(found, at, lambda one: one.id, f"run {at!r}", "runs list")
        if run.session != session.key:
            raise NotRewindable(f"run {run.id} belongs to session {run.session}, not {session.key}")
        if not await self._store.run_history(run.id):
            why = "is in progress" if run.outcome is None else "added nothing to the history"
            raise NotRewindable(
                f"run {run.id} {why}, so a conversation cannot be forked at its end"
            )
        return run

    @operation("POST /api/names", Least.VIEWER, key="names")
    async def names(self, keys: Collection[str]) -> dict[str, str]:
        """Return the display names of sessions, by key, and of people (``channel/account/id``).

        While the database is unavailable they are made from the ids alone.
        """
        targets, jobs = needed_names(keys)
        known = KnownNames()
        if targets or jobs:
            # Without the database ids are shown: the status of a gateway is needed most then.
            with suppress(StoreUnavailable):
                known = await self._store.names(targets, jobs)
                if self._live is not None:
                    self._live.remember(known)
        return {key: display_name(key, known) for key in keys}

    @operation("GET /api/sessions/{key:path}", Least.VIEWER)
    async def get(self, key: str) -> Session:
        """Return a session by key or unique part of a key. Raises ``NotFound``."""
        found = await self._store.session(SessionKey(key))
        if found is None:
            found = await self._store.session(await find_session(self._store, key))
        if found is None:
            raise NotFound(f"session {key!r} is gone", hint="; see: goclaw sessions list")
        return found

    # The last one: below it, ``list`` in a signature would be this method.
    @operation("GET /api/sessions", Least.VIEWER)
    async def list(self, query: SessionQuery = NEWEST_SESSIONS) -> list[Session]:
        """Return sessions, the most recently active first."""
        return await self._store.sessions(query)


def deletable_chat(key: SessionKey) -> Target:
    """Return the chat of a conversation that may be deleted. Raises ``NotAChat`` for others."""
    return _chat_in(key, "the console or the web chat", CONSOLE, WEB_PLACE)


def _chat_in(key: SessionKey, words: str, *places: Place) -> Target:
    """Return the chat of a conversation. Raises ``NotAChat`` for one that is at no such place."""
    chat = chat_of(key)
    if chat is None or (chat.channel, chat.account) not in places:
        raise NotAChat(f"session {key} is no conversation of {words}")
    return chat
