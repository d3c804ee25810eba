"""The conversations that the chat of the dashboard shows: those of the console (SPEC CHAN-9).

The page takes conversations, agents and files only from here, so that this is the one place which
decides what a person may see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final

from goclaw_py.model.errors import NotFound
from goclaw_py.model.ids import MAIN_AGENT, AgentName
from goclaw_py.model.messages import Target
from goclaw_py.model.session_keys import chat_of
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import Session
from goclaw_py.ports.terminals import Uploads
from goclaw_py.web.pages.rendering import Read

LISTED: Final = 100

_CHANNEL: Final = "console"
_KEYS: Final = f":{_CHANNEL}:direct:"


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
        return self.title or self.name


@dataclass(frozen=True, slots=True)
class StoredConversation(Conversation):
    """A conversation in which something was said."""

    session: Session


class Conversations:
    """Finds conversations."""

    def __init__(self, control: Control, parts: SiteParts) -> None:
        self._control = control
        self.parts = parts

    async def find(self, name: str, agent: str = "") -> Conversation:
        """Return a conversation by the name of its chat; it keeps its agent.

        ``agent`` is the choice for a new one. Raises ``NotFound`` for an agent that is not there.
        """
        found = await self._control.sessions(limit=LISTED, search=_KEYS + name)
        session = next((one for one in found if _name_of(one) == name), None)
        if session is not None:
            return (await self._titled([session]))[0]
        if agent and agent not in self.parts.agents:
            raise NotFound(f"there is no agent {agent[:64]!r}")
        return Conversation(name, AgentName(agent) if agent else self.parts.default, "", None)

    async def stored(self, name: str) -> StoredConversation:
        """Return a conversation in which something was said. Raises ``NotFound``."""
        found = await self.find(name)
        if not isinstance(found, StoredConversation):
            raise NotFound(f"there is no conversation {name}")
        return found

    async def all(self) -> list[StoredConversation]:
        """Return the conversations, the most recently active one first."""
        newest: dict[str, Session] = {}
        for session in await self._control.sessions(limit=LISTED, search=_KEYS):
            if name := _name_of(session):
                newest.setdefault(name, session)
        return await self._titled(list(newest.values()))

    async def _titled(self, sessions: list[Session]) -> list[StoredConversation]:
        names = await self._control.names([session.key for session in sessions])
        return [
            StoredConversation(
                name := _name_of(session),
                session.agent,
                # Without a title it has the name that any chat of a channel has.
                "" if (title := names[session.key]) == f"{_CHANNEL} {name}" else title,
                session,
            )
            for session in sessions
        ]


def _name_of(session: Session) -> str:
    """Return the name of a conversation of the console; "" for other sessions."""
    match chat_of(session.key):
        case Target(channel, _, chat, None) if channel == _CHANNEL:
            return chat
        case _:
            return ""
