"""Tools that write and edit files of the workspace (SPEC SEC-4)."""

from __future__ import annotations

import threading
from typing import Annotated, Final

from pydantic import Field

from goclaw_py.ports.tools import ToolContext
from goclaw_py.tools.arguments import Arguments
from goclaw_py.tools.files import FilePath, as_text
from goclaw_py.tools.tool import Tool, in_workspace
from goclaw_py.workspace import Workspace, WorkspaceError

MAX_WRITTEN_BYTES: Final = 1_000_000

Text = Annotated[str, Field(max_length=MAX_WRITTEN_BYTES)]


class Written(Arguments):
    """Arguments of ``write_file``."""

    path: FilePath = Field(description="The path of the file, relative to the workspace.")
    text: Text = Field(description="The complete new content of the file.")


class WriteFile(Tool[Written]):
    """Creates or replaces a file."""

    name = "write_file"
    description = (
        "Write a text file in your workspace and create missing folders. An existing file is "
        "replaced."
    )
    arguments = Written

    async def call(self, arguments: Written, here: ToolContext) -> str:
        """Write the file atomically."""
        path = arguments.path

        def write(workspace: Workspace) -> str:
            data = _data(path, arguments.text)
            replaced = workspace.write(path, data)
            return f"{'Replaced' if replaced else 'Wrote'} {path}, {len(data):,} bytes."

        return await in_workspace(here, write)


class EditArguments(Arguments):
    """Arguments of ``edit_file``."""

    path: FilePath = Field(description="The path of the file, relative to the workspace.")
    old: Annotated[Text, Field(min_length=1)] = Field(
        description="The passage to replace, exactly as in the file. Include enough "
        "surrounding text that it occurs only once."
    )
    new: Text = Field(description="The text that replaces it.")


class EditFile(Tool[EditArguments]):
    """Replaces one passage of a file."""

    name = "edit_file"
    description = "Replace one passage of a text file in your workspace."
    arguments = EditArguments

    def __init__(self) -> None:
        # Models request several edits of one file at once; none may overwrite another one. It is a
        # lock of threads, because files are edited in threads, perhaps of several event loops.
        self._turn = threading.Lock()

    async def call(self, arguments: EditArguments, here: ToolContext) -> str:
        """Replace the passage if it occurs exactly once."""

        def edit(workspace: Workspace) -> str:
            with self._turn:
                return _edit(workspace, arguments)

        return await in_workspace(here, edit)


def _edit(workspace: Workspace, change: EditArguments) -> str:
    path = change.path
    if change.old == change.new:
        raise WorkspaceError(path, "old and new are the same; nothing was changed")
    before = workspace.read(path, MAX_WRITTEN_BYTES)
    text = as_text(path, before.data)
    start = text.find(change.old)
    # Not only ``count``, which does not count overlapping occurrences.
    if start < 0 or text.find(change.old, start + 1) >= 0:
        times = max(text.count(change.old), 2)
        found = "was not found" if start < 0 else f"occurs {times:,} times, not once"
        raise WorkspaceError(path, f"nothing was changed, because old {found}")
    data = _data(path, text[:start] + change.new + text[start + len(change.old) :])
    workspace.write(path, data, expected=before.version)
    line = text.count("\n", 0, start) + 1
    return f"Changed {path} at line {line:,}; the file now has {len(data):,} bytes."


def _data(path: str, text: str) -> bytes:
    data = text.encode()
    if len(data) > MAX_WRITTEN_BYTES:
        reason = f"would have {len(data):,} bytes; the maximum is {MAX_WRITTEN_BYTES:,}"
        raise WorkspaceError(path, reason)
    return data
