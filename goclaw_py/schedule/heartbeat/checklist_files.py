"""The checklists of agents: HEARTBEAT.md in their workspaces (SPEC HB-3)."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from goclaw_py.core.errors import BadChecklist, ChecklistChanged, UnknownAgent
from goclaw_py.core.ids import AgentName
from goclaw_py.core.text import well_formed
from goclaw_py.core.workspace.files import NotThere, Version, Workspace, WorkspaceError
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse, with_done, with_item
from goclaw_py.schedule.heartbeat.models import Skip

FILE: Final = "HEARTBEAT.md"
MAX_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class ChecklistProblem:
    """The checklist cannot be read.

    Args:
        skip: ``NO_FILE`` or ``UNREADABLE``.
        detail: Why, for people.
    """

    skip: Skip
    detail: str


class _Changed(Exception):
    """The file must be read, which needs a thread."""


class ChecklistFiles:
    """Reads and changes checklists; an unchanged file is not read again.

    Paths do not follow links (SPEC SEC-4). Each method raises ``UnknownAgent`` for an agent without
    a workspace.

    Args:
        workspaces: The folder of each agent.
    """

    def __init__(self, workspaces: Mapping[AgentName, Path]) -> None:
        self._workspaces = workspaces
        self._known: dict[AgentName, tuple[Version, Checklist | ChecklistProblem]] = {}
        # Held by threads: a task may be cancelled while its thread continues.
        self._locks: defaultdict[AgentName, Lock] = defaultdict(Lock)

    async def read(self, agent: AgentName) -> Checklist | ChecklistProblem:
        """Return the checklist, or why it cannot be read."""
        workspace = self._workspace(agent)
        try:
            # At every run: a look at a file that has not changed, or is not there, takes no time.
            return self._read(agent, workspace, may_load=False)
        except _Changed:
            return await asyncio.to_thread(self._read, agent, workspace, may_load=True)

    async def add(self, agent: AgentName, text: str) -> Checklist:
        """Append an item, creating the file if needed.

        Raises ``BadChecklist``, as do the other changes. Concurrent changes are serialized.
        """
        return await self._change(agent, lambda old: with_item(old, text))

    async def complete(
        self, agent: AgentName, number: int, expected: str | None = None
    ) -> Checklist:
        """Check off an item by its number.

        Raises ``ChecklistChanged`` if ``expected`` is given and is not the version of the list.
        """
        return await self._change(agent, lambda old: with_done(old, number), expected)

    async def write(self, agent: AgentName, text: str, expected: str | None = None) -> Checklist:
        """Replace the whole file, unless the present one cannot be read.

        Raises ``ChecklistChanged`` if ``expected`` is given and is not the version of the list.
        """
        return await self._change(agent, lambda _: text, expected)

    def _workspace(self, agent: AgentName) -> Workspace:
        try:
            return Workspace(self._workspaces[agent].absolute())
        except KeyError as error:
            raise UnknownAgent(agent) from error

    def _read(
        self, agent: AgentName, workspace: Workspace, *, may_load: bool
    ) -> Checklist | ChecklistProblem:
        """Return the checklist; raise ``_Changed`` if it must be loaded and may not."""
        try:
            with workspace.reading(FILE) as file:
                version = Version.of(os.fstat(file.fileno()))
            known = self._known.get(agent)
            if known is not None and known[0] == version:
                return known[1]
            if version.size > MAX_BYTES:
                return _too_large(version.size)
            if not may_load:
                raise _Changed
            content = workspace.read(FILE, MAX_BYTES)
        except WorkspaceError as error:
            return _trouble(error)
        found = _checklist(content.data)
        # Two heartbeat runs may read it at once: then the same is noted twice.
        self._known[agent] = content.version, found
        return found

    async def _change(
        self, agent: AgentName, change: Callable[[str], str], expected: str | None = None
    ) -> Checklist:
        workspace, lock = self._workspace(agent), self._locks[agent]
        return await asyncio.to_thread(_replace, lock, workspace, change, expected)


def _replace(
    lock: Lock, workspace: Workspace, change: Callable[[str], str], expected: str | None
) -> Checklist:
    with lock:
        old, version = _current(workspace)
        if expected not in (None, old.version):
            raise ChecklistChanged
        new = well_formed(change(old.text))
        data = new.encode()
        found = _too_large(len(data)) if len(data) > MAX_BYTES else _checklist(data)
        if isinstance(found, ChecklistProblem):
            raise BadChecklist(found.detail)
        try:
            if version is None:
                workspace.root.mkdir(parents=True, exist_ok=True)
            workspace.write(FILE, data, expected=version)
        except WorkspaceError as error:
            raise BadChecklist(str(error)) from error
        except OSError as error:
            raise BadChecklist(f"{workspace.root}: {error.strerror}") from error
    return found


def _current(workspace: Workspace) -> tuple[Checklist, Version | None]:
    """Return the checklist to change, with its file version, None without a file.

    Raises ``BadChecklist``.
    """
    try:
        content = workspace.read(FILE, MAX_BYTES)
    except NotThere:
        return parse(""), None
    except WorkspaceError as error:
        raise BadChecklist(str(error)) from error
    found = _checklist(content.data)
    if isinstance(found, ChecklistProblem):
        raise BadChecklist(found.detail)
    return found, content.version


def _checklist(data: bytes) -> Checklist | ChecklistProblem:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ChecklistProblem(Skip.UNREADABLE, f"{FILE}: is no text in UTF-8")
    if "\0" in text:
        return ChecklistProblem(Skip.UNREADABLE, f"{FILE}: is no text: there is a NUL in it")
    return parse(text)


def _trouble(error: WorkspaceError) -> ChecklistProblem:
    skip = Skip.NO_FILE if isinstance(error, NotThere) else Skip.UNREADABLE
    return ChecklistProblem(skip, str(error))


def _too_large(size: int) -> ChecklistProblem:
    reason = f"{size:,} bytes are too many; the most that can be taken is {MAX_BYTES:,}"
    return ChecklistProblem(Skip.UNREADABLE, f"{FILE}: {reason}")
