"""The conversations that the chat shows: those of the console, or of a guest (SPEC CHAN-9).

The page takes conversations, agents and files only from here, so that this is the one place which
decides what a person may see.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from goclaw_py.chat.terminals import Uploads
from goclaw_py.core.display_names import NEW_CONVERSATION, title_from
from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import MAIN_AGENT, AgentName, SessionKey
from goclaw_py.core.messages import Role, Target
from goclaw_py.core.session_keys import (
    CONSOLE,
    DEFAULT_ACCOUNT,
    FIRST_CHAT,
    chat_of,
    is_chat_name,
    is_made_name,
)
from goclaw_py.core.text import truncate
from goclaw_py.core.web_links import (
    FIRST_CONVERSATION,
    WEB,
    WEB_PLACE,
    chat_of_guest,
    conversation_of,
    searched_part,
)
from goclaw_py.operations.control import Control
from goclaw_py.records import (
    MessageFilter,
    OutboxQuery,
    RunQuery,
    Session,
    SessionQuery,
    StoredRun,
)
from goclaw_py.web.pages.parameters import refused
from goclaw_py.web.pages.rendering import Read

LISTED: Final = 100

_MOST: Final = 1000
_MOST_FOUND: Final = 20
"""The number of conversations that are found by what was said in them."""
_WEEK_DAYS: Final = 7
_HIT_CHARS: Final = 80
_WORDS_BEFORE: Final = 30


@dataclass(frozen=True, slots=True)
class SiteParts:
    """What the pages need besides the operations.

    Args:
        read: Returns the text of a message as people in its chat read it.
        agents: The agents that a conversation may be with, each with its model.
        workspaces: The folder of each agent, for files.
        uploads: Takes the files of messages; None: there are none.
        default: The agent of conversations that were started without a choice.
    """

    read: Read = attrgetter("text")
    agents: Mapping[AgentName, str] = field(default_factory=dict)
    workspaces: Mapping[AgentName, Path] = field(default_factory=dict)
    uploads: Uploads | None = None
    default: AgentName = MAIN_AGENT


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation. ``title`` is "" if it has none; ``session`` is None while it is new."""

    name: str
    agent: AgentName
    title: str
    session: Session | None

    @property
    def heading(self) -> str:
        """What people call it."""
        return self.title or (NEW_CONVERSATION if is_made_name(self.name) else self.name)


@dataclass(frozen=True, slots=True)
class StoredConversation(Conversation):
    """A conversation in which something was said; ``hit``: what a search has found there."""

    session: Session
    hit: str = ""


class Conversations:
    """Finds the operator's conversations, which are those of the console."""

    guest = ""
    """The guest whose conversations these are; "" is the operator."""
    channel = CONSOLE
    first = FIRST_CHAT
    """The conversation that is shown if none is named."""

    def __init__(self, control: Control, parts: SiteParts) -> None:
        self.control = control
        self.parts = parts
        self.agents: Mapping[AgentName, str] = parts.agents
        """The agents among which the person chooses, each with its model."""

    def name(self, query: Mapping[str, str]) -> str:
        """Return the name of a conversation in an address. Raises ``HTTPException`` (422)."""
        name = query.get("name", self.first)
        try:
            self.chat(name)
        except ValueError as error:
            raise refused("Conversation", name, "a name: 1 to 64 of A-Z a-z 0-9 . _ -") from error
        return name

    def chat(self, name: str) -> Target:
        """Return the chat of a conversation. Raises ``ValueError`` for an impossible name."""
        if not is_chat_name(name):
            raise ValueError("a chat name has 1 to 64 characters of A-Z a-z 0-9 . _ -")
        return Target(CONSOLE, DEFAULT_ACCOUNT, name)

    async def find(self, name: str, agent: str = "") -> Conversation:
        """Return a conversation by its name; it keeps its agent.

        ``agent`` is the choice for a new one. Raises ``NotFound`` for an agent that is not there.
        """
        chat = self.chat(name)
        found = await self.control.sessions.list(SessionQuery(search=_part(chat), limit=_MOST))
        session = next((one for one in found if chat_of(one.key) == chat), None)
        if session is not None:
            return (await self._titled([session]))[0]
        if agent and agent not in self.agents:
            raise NotFound(f"there is no agent {agent[:64]!r}")
        return Conversation(name, AgentName(agent) if agent else self.parts.default, "", None)

    async def stored(self, name: str) -> StoredConversation:
        """Return a conversation in which something was said. Raises ``NotFound``."""
        found = await self.find(name)
        if not isinstance(found, StoredConversation):
            raise NotFound(f"there is no conversation {name}")
        return found

    async def all(self, search: str = "") -> list[StoredConversation]:
        """Return the conversations, the most recently active one first.

        ``search``: only those with this text in their title, their name or a message, whatever the
        case.
        """
        found = await self.control.sessions.list(
            SessionQuery(channel=CONSOLE, search=search, limit=LISTED)
        )
        more = await self._with_text(search, found)
        hits = {session.key: hit for session, hit in more}
        both = [*found, *(session for session, _ in more)]
        both.sort(key=attrgetter("last_active_at"), reverse=True)
        titled = await self._titled(self._newest(both if more else found))
        return [replace(one, hit=hits.get(one.session.key, "")) for one in titled]

    async def new_name(self, now: datetime) -> str:
        """Return a name for a new conversation."""
        return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"

    def owns(self, session: SessionKey) -> bool:
        """Return whether a session is one of these conversations."""
        return bool(self.name_of(session))

    def name_of(self, session: SessionKey) -> str:
        """Return the name of a conversation; "" for other sessions."""
        chat = chat_of(session)
        return "" if chat is None else self.name_in(chat)

    def name_in(self, chat: Target) -> str:
        """Return the name of the conversation in a chat; "" for other chats."""
        return chat.chat if (chat.channel, chat.thread) == (CONSOLE, None) else ""

    async def _with_text(self, search: str, found: Iterable[Session]) -> list[tuple[Session, str]]:
        """Return further conversations in which a text was said, with the words around it."""
        if not search:
            return []
        known = {session.key for session in found}
        only = MessageFilter(channel=self.channel, text=search)
        asked, sent = await asyncio.gather(
            self.control.runs.list(RunQuery(search=search, limit=_MOST)),
            self.control.deliveries.outbox(OutboxQuery(only=only, limit=_MOST)),
        )
        texts = {run.session: run.prompt for run in asked if self.owns(run.session)}
        answers_in = {one.message.target: one.message for one in sent}
        answered = {
            message.run_id: message.text
            for chat, message in answers_in.items()
            if message.run_id and self.name_in(chat)
        }
        runs = list(answered)[:_MOST_FOUND]
        for run in await asyncio.gather(*map(self.control.runs.get, runs), return_exceptions=True):
            if isinstance(run, StoredRun):  # the others were deleted
                texts.setdefault(run.session, answered[run.id])
        more = [key for key in texts if key not in known][:_MOST_FOUND]
        read = (self.control.sessions.get(key) for key in more)
        answers = await asyncio.gather(*read, return_exceptions=True)
        return [
            (one, words_around(search, texts[one.key]))
            for one in answers
            if isinstance(one, Session)  # as above
        ]

    def _newest(self, sessions: list[Session]) -> list[Session]:
        """Return the most recently active session of each conversation."""
        newest: dict[str, Session] = {}
        for session in sessions:
            if name := self.name_of(session.key):
                newest.setdefault(name, session)
        return list(newest.values())

    async def _titled(self, sessions: list[Session]) -> list[StoredConversation]:
        names = await self.control.sessions.names([session.key for session in sessions])
        return [
            StoredConversation(
                name := self.name_of(session.key),
                session.agent,
                # Without a title it has the name that any chat of a channel has.
                ""
                if (title := names[session.key]) in (NEW_CONVERSATION, f"{CONSOLE} {name}")
                else title,
                session,
            )
            for session in sessions
        ]


class GuestConversations(Conversations):
    """Finds the conversations of an invited person.

    What a guest names is a conversation of theirs, whatever it is, so that no name leads to a chat
    of somebody else (SPEC CHAN-13).
    """

    channel = WEB
    first = FIRST_CONVERSATION

    def __init__(self, control: Control, parts: SiteParts, guest: str) -> None:
        super().__init__(control, parts)
        self.guest = guest
        self.agents = {}  # a guest chooses none, and sees no model
        self._titles: dict[tuple[SessionKey, datetime], str] = {}
        """Titles by session and the time at which it was created."""

    def chat(self, name: str) -> Target:
        return Target(*WEB_PLACE, chat_of_guest(self.guest, name))

    async def all(self, search: str = "") -> list[StoredConversation]:
        # The search finds other people whose names begin like this one, too.
        chat = Target(*WEB_PLACE, self.guest)
        found = await self.control.sessions.list(SessionQuery(search=_part(chat), limit=_MOST))
        titled = await self._titled(self._newest(found))
        hits = {session.key: hit for session, hit in await self._with_text(search, ())}
        return [
            replace(one, hit=hits.get(one.session.key, ""))
            for one in titled
            if one.session.key in hits or search.casefold() in one.heading.casefold()
        ]

    def name_in(self, chat: Target) -> str:
        if (chat.channel, chat.thread) != (WEB, None):
            return ""
        return conversation_of(self.guest, chat.chat) or ""

    async def find(self, name: str, agent: str = "") -> Conversation:
        found = await super().find(name, agent)
        return replace(found, title=found.title or _numbered(name))

    async def new_name(self, now: datetime) -> str:  # noqa: ARG002
        """Return the next number: operators see these chats by the person, who needs a name."""
        known = {one.name for one in await self.all()}
        return next(name for name in map(str, count(2)) if name not in known)

    async def _titled(self, sessions: list[Session]) -> list[StoredConversation]:
        return [
            StoredConversation(self.name_of(one.key), one.agent, await self._title(one), one)
            for one in sessions
        ]

    async def _title(self, session: Session) -> str:
        """Return the first words of a conversation, which operators do not see as its name."""
        key, sessions = (session.key, session.created_at), self.control.sessions
        if key not in self._titles:
            history = await sessions.history(session.key, limit=_MOST, whole=True)
            said = next((one.entry.text for one in history if one.entry.role is Role.USER), "")
            if not said:
                queue = await sessions.queue(session.key)
                waits = (*queue.unanswered, *queue.messages)
                first = min(waits, key=attrgetter("received_at"), default=None)
                said = first.message.text if first else ""
            if title := title_from(said):
                self._titles[key] = title
        return self._titles.get(key) or _numbered(self.name_of(session.key))


def _numbered(name: str) -> str:
    """Return the title of a guest's conversation, "" for a name that a person has made up."""
    number = "1" if name == FIRST_CONVERSATION else name
    return f"Conversation {number}" if number.isdigit() else ""


def words_around(search: str, text: str) -> str:
    """Return what stands around a text on one line, "" if it is not there."""
    line = " ".join(text.split())
    at = line.lower().find(search.lower())
    if at < 0:
        return ""
    start = max(0, at - _WORDS_BEFORE)
    begin = (line.find(" ", start, at) + 1) or start if start else 0
    return truncate(("…" if begin else "") + line[begin:], _HIT_CHARS)


def _part(chat: Target) -> str:
    """Return what is in the keys of the sessions of a chat, and of those with a longer name."""
    return f":{chat.channel}:direct:{searched_part(chat.chat)}"


def by_day(
    conversations: Iterable[StoredConversation], now: datetime, zone: ZoneInfo
) -> list[tuple[str, list[StoredConversation]]]:
    """Return conversations, the newest first, by the day of their last activity in words."""
    today = now.astimezone(zone).date()

    def day(one: StoredConversation) -> str:
        return _day_words(one.session.last_active_at.astimezone(zone).date(), today)

    return [(words, list(group)) for words, group in groupby(conversations, day)]


def _day_words(day: date, today: date) -> str:
    """Return "Today", "Yesterday", "Previous 7 days", or the month."""
    ago = (today - day).days
    if ago <= 1:
        return "Yesterday" if ago == 1 else "Today"
    if ago <= _WEEK_DAYS:
        return "Previous 7 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"
