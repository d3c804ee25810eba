"""Instructions from files in the workspace, such as ``AGENTS.md``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.text import truncate
from goclaw_py.core.workspace.files import NotThere, Version, Workspace, WorkspaceError

DEFAULT_FILE: Final = "AGENTS.md"
MAX_CHARS: Final = 20_000
_UNREADABLE: Final = "My instructions cannot be read. My operator can find the cause."
_MAX_BYTES_A_CHARACTER: Final = 4


@dataclass(frozen=True, slots=True)
class _Text:
    """The beginning of a file; ``whole``: it is the whole file."""

    version: Version
    text: str
    whole: bool


class _Changed(Exception):
    """A file must be read, which needs a thread."""


class Instructions:
    """Reads the instructions of agents, and reads changed files again.

    Args:
        workspaces: The folder of each agent.
        files: The files of an agent, in order, which must exist. The default is ``AGENTS.md``, if
            it exists.
        max_chars: The length of all files of an agent together; at least 1. A note replaces what is
            left out.
    """

    def __init__(
        self,
        workspaces: Mapping[AgentName, Path],
        files: Mapping[AgentName, tuple[str, ...] | None],
        max_chars: int = MAX_CHARS,
    ) -> None:
        self._workspaces = workspaces
        self._files = files
        self._max_chars = max_chars
        self._known: dict[tuple[AgentName, str], _Text] = {}

    async def read(self, agent: AgentName) -> tuple[str, ...]:
        """Return the texts of the agent's files, in order, without blank ones.

        Invalid UTF-8 becomes U+FFFD: a wrong byte must not silence an agent. Paths are limited to
        the workspace and follow no links (SPEC SEC-4). Raises ``AgentError``, whose cause names the
        file.
        """
        try:
            # At every run: files that have not changed, or are not there, take no time.
            return self._read(agent, may_load=False)
        except _Changed:
            return await asyncio.to_thread(self._read, agent, may_load=True)

    def _read(self, agent: AgentName, *, may_load: bool) -> tuple[str, ...]:
        configured = self._files.get(agent)
        room = self._max_chars
        texts = []
        for path in (DEFAULT_FILE,) if configured is None else configured:
            try:
                found = self._text(agent, path, may_load=may_load)
            except NotThere as error:
                if configured is None:
                    return ()
                raise _unreadable(agent, error) from error
            except WorkspaceError as error:
                raise _unreadable(agent, error) from error
            text = found.text.strip()
            if text:
                texts.append(self._fitted(path, text, room, whole=found.whole))
                room = max(room - len(text), 0)
        return tuple(texts)

    def _fitted(self, path: str, text: str, room: int, *, whole: bool) -> str:
        if whole and len(text) <= room:
            return text
        most = f"instructions are at most {self._max_chars:,} characters"
        if not room:
            return f"[{path} is omitted: {most}]"
        return f"{truncate(text, room)}\n[{path} is cut here: {most}]"

    def _text(self, agent: AgentName, path: str, *, may_load: bool) -> _Text:
        """Return the beginning of a file, up to the limit. Raises ``_Changed``."""
        workspace = self._workspaces[agent]
        # Only a text that was read before is returned by this, so a link cannot lead to another.
        known, version = self._known.get((agent, path)), _version(workspace, path)
        if known is not None and known.version == version:
            return known
        if not may_load:
            raise _Changed
        with Workspace(workspace.absolute()).reading(path) as file:
            version = Version.of(os.fstat(file.fileno()))
            # One character more: half of one may stand at the end of what is read.
            most = (self._max_chars + 1) * _MAX_BYTES_A_CHARACTER
            data = file.read(most + 1)
        text = data[:most].decode("utf-8-sig", "replace")
        # Two runs may read it at once: then the same is noted twice.
        self._known[agent, path] = found = _Text(version, text, whole=len(data) <= most)
        return found


def _version(workspace: Path, path: str) -> Version | None:
    """Return the version of what has this name, None if that is unknown. Raises ``NotThere``."""
    try:
        return Version.of(os.lstat(os.path.join(workspace, path)))  # noqa: PTH118 - at every run
    except FileNotFoundError:
        raise NotThere(path) from None
    except (OSError, ValueError):
        return None  # to read it tells what is wrong


def _unreadable(agent: AgentName, error: WorkspaceError) -> AgentError:
    return AgentError(_UNREADABLE, f"agent {agent}: instructions: {error}")
