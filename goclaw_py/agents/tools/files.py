"""Tools that read, list, send, write and edit files of the workspace (SPEC SEC-4)."""

from __future__ import annotations

import os
import re
import threading
from fnmatch import fnmatchcase
from mimetypes import guess_type
from pathlib import PurePath
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from goclaw_py.agents.tools.arguments import NOT_BLANK, Arguments
from goclaw_py.agents.tools.tool import CHECKLIST_IS_OF_OWNERS, Tool, in_workspace
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.messages import FileKind, OutFile
from goclaw_py.core.text import count
from goclaw_py.core.workspace.files import (
    MAX_LOOKED_AT,
    EntryKind,
    FolderEntry,
    Workspace,
    WorkspaceError,
    shown,
)
from goclaw_py.core.workspace.paths import MAX_PATH_BYTES, split_file_path
from goclaw_py.runs.toolbox import ToolContext

CHECKLIST_FILE: Final = "heartbeat.md"
"""In lower case: not every file system distinguishes names by case."""

MAX_READ_CHARS: Final = 50_000
MAX_READ_BYTES: Final = 10_000_000
MAX_LISTED: Final = 500
MAX_SENT_BYTES: Final = 50_000_000
MAX_PHOTO_BYTES: Final = 10_000_000
_LONGEST_PATH: Final = 4 * MAX_PATH_BYTES
_LONGEST_NAME: Final = 120

FilePath = Annotated[str, Field(max_length=_LONGEST_PATH)]

_KINDS: Final = {
    ".jpg": (FileKind.PHOTO, "image/jpeg"),
    ".jpeg": (FileKind.PHOTO, "image/jpeg"),
    ".png": (FileKind.PHOTO, "image/png"),
    ".webp": (FileKind.PHOTO, "image/webp"),
    ".oga": (FileKind.VOICE, "audio/ogg"),
    ".ogg": (FileKind.VOICE, "audio/ogg"),
    ".mp3": (FileKind.AUDIO, "audio/mpeg"),
    ".m4a": (FileKind.AUDIO, "audio/mp4"),
    ".mp4": (FileKind.VIDEO, "video/mp4"),
}
"""All other files are documents: channels show and play only these types."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Passage(Arguments):
    """Arguments of ``read_file``."""

    path: FilePath = Field(description="The path of the file, relative to the workspace.")
    offset_line: int = Field(default=1, ge=1, description="The first line to read, counted from 1.")
    limit_lines: int | None = Field(
        default=None, ge=1, description="The maximum number of lines to read."
    )


class ReadFile(Tool[Passage]):
    """Returns the unchanged text of a file, so that passages can be passed to ``edit_file``."""

    name = "read_file"
    description = (
        "Read a text file of your workspace. Long text is cut; a note in square brackets at the "
        "end then says from which line to continue."
    )
    side_effects = False
    arguments = Passage

    async def call(self, arguments: Passage, here: ToolContext) -> str:
        """Read the file, or a part of it."""

        def read(workspace: Workspace) -> str:
            data = workspace.read(arguments.path, MAX_READ_BYTES).data
            return _passage(as_text(arguments.path, data), arguments)

        return await in_workspace(here, read)


def as_text(path: str, data: bytes) -> str:
    """Decode a file. Raises ``WorkspaceError`` if it is not a text file."""
    reason = f"is a binary file, not text ({len(data):,} bytes)"
    if b"\0" in data:
        raise WorkspaceError(path, reason)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise WorkspaceError(path, f"{reason}, or not in UTF-8") from error


def _passage(text: str, wanted: Passage) -> str:
    # Not ``splitlines``, which also splits at characters that editors show within a line.
    lines = _LINE.findall(text)
    total, first = len(lines), wanted.offset_line
    if not total:
        return "[the file is empty]"
    if first > total:
        raise WorkspaceError(wanted.path, f"has only {total:,} lines")
    rest = lines[first - 1 :][: wanted.limit_lines]
    kept: list[str] = []
    room = MAX_READ_CHARS
    for line in rest:
        if len(line) > room:
            break
        kept.append(line)
        room -= len(line)
    if not kept:
        left_out = len(rest[0].rstrip("\n")) - MAX_READ_CHARS
        kept = [
            f"{rest[0][:MAX_READ_CHARS]}\n[line {first:,} was cut: {left_out:,} more characters]"
        ]
    last = first + len(kept) - 1
    read = "".join(kept)
    if first == 1 and last == total:
        return read
    more = f"; continue with offset_line {last + 1}" if last < total else ""
    line_end = "" if read.endswith("\n") else "\n"
    return f"{read}{line_end}[lines {first:,} to {last:,} of {total:,}{more}]"


class Folder(Arguments):
    """Arguments of ``list_files``."""

    path: FilePath = Field(
        default=".", description="The path of the folder, relative to the workspace."
    )
    pattern: Annotated[str, Field(max_length=200), NOT_BLANK] | None = Field(
        default=None,
        description="Search the folder and all its subfolders for files whose name matches "
        "this pattern, such as *.md. If the pattern contains a /, it must match the path "
        "relative to the folder, such as notes/*.md. * matches any characters, ? matches "
        "one character.",
    )


class ListFiles(Tool[Folder]):
    """Lists a folder, or finds files by name."""

    name = "list_files"
    description = "List a folder of your workspace with file sizes, or find files by name."
    side_effects = False
    arguments = Folder

    async def call(self, arguments: Folder, here: ToolContext) -> str:
        """List the folder, or the files that match."""
        pattern = arguments.pattern

        def entries(workspace: Workspace) -> list[FolderEntry]:
            found = workspace.entries(arguments.path, deep=pattern is not None)
            return list(found)

        found = await in_workspace(here, entries)
        named = [e for e in found if pattern is None or _matches(e, pattern)]
        lines = [_line(entry) for entry in named[:MAX_LISTED]]
        if len(named) > MAX_LISTED:
            lines.append(f"[{len(named) - MAX_LISTED:,} more; use a pattern or a subfolder]")
        if len(found) >= MAX_LOOKED_AT:
            lines.append(f"[only the first {MAX_LOOKED_AT:,} names were searched]")
        return "\n".join(lines) or (
            "[the folder is empty]" if pattern is None else "[no matching file]"
        )


def _matches(entry: FolderEntry, pattern: str) -> bool:
    name = entry.path if "/" in pattern else entry.path.rpartition("/")[2]
    return entry.kind is EntryKind.FILE and fnmatchcase(name, pattern)


def _line(entry: FolderEntry) -> str:
    match entry.kind:
        case EntryKind.FILE:
            return f"{shown(entry.path)}  {count(entry.size, 'byte')}"
        case EntryKind.FOLDER:
            return f"{shown(entry.path)}/"
        case EntryKind.LINK:
            return f"{shown(entry.path)}  (a link; links are not followed)"
        case EntryKind.SPECIAL:
            return f"{shown(entry.path)}  (not a regular file)"


def _plain_name(name: str) -> str:
    if "/" in name or any(char < " " for char in name):
        raise ValueError("must be a file name without / and control characters")
    return name


ShownName = Annotated[str, Field(max_length=_LONGEST_NAME), NOT_BLANK, AfterValidator(_plain_name)]


class SendFileArguments(Arguments):
    """Arguments of ``send_file``."""

    path: FilePath = Field(description="The path of the file, relative to the workspace.")
    name: ShownName | None = Field(
        default=None, description="The file name that the user sees. Default: the name of the file."
    )


class SendFile(Tool[SendFileArguments]):
    """Attaches a file to the reply. It is sent only when the run completes."""

    name = "send_file"
    description = "Send a file of your workspace to the user, together with your answer."
    side_effects = False
    acts_on_run = True
    arguments = SendFileArguments

    async def call(self, arguments: SendFileArguments, here: ToolContext) -> str:
        """Attach it to the reply."""

        def find_file(workspace: Workspace) -> OutFile:
            with workspace.reading(arguments.path) as file:
                size_bytes = os.fstat(file.fileno()).st_size
            path = workspace.root.joinpath(*split_file_path(arguments.path, str(workspace.root)))
            kind, mime = _kind(path, size_bytes)
            return OutFile(kind, str(path), arguments.name or path.name, mime)

        async with here.attaching:
            file = await in_workspace(here, find_file)
            here.attach(file)
        return f"{file.name} will be sent with your answer."


def _kind(path: PurePath, size_bytes: int) -> tuple[FileKind, str]:
    """Return kind and MIME type of a file. Raises ``WorkspaceError`` if it cannot be sent."""
    if not size_bytes:
        raise WorkspaceError(path.name, "is empty; empty files cannot be sent")
    if size_bytes > MAX_SENT_BYTES:
        reason = f"has {size_bytes:,} bytes; the maximum is {MAX_SENT_BYTES:,}"
        raise WorkspaceError(path.name, reason)
    if found := _KINDS.get(path.suffix.lower()):
        too_big = found[0] is FileKind.PHOTO and size_bytes > MAX_PHOTO_BYTES
        return (FileKind.DOCUMENT, found[1]) if too_big else found
    # Pass only the suffix: the function also accepts URLs, and a name could be "data:…".
    mime, packed = guess_type(f"file{path.suffix}")
    return FileKind.DOCUMENT, mime if mime and not packed else ""


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
        _check_checklist(path, here)

        def write(workspace: Workspace) -> str:
            data = _data(path, arguments.text)
            replaced = workspace.write(path, data)
            return f"{'Replaced' if replaced else 'Wrote'} {path}, {count(len(data), 'byte')}."

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
        _check_checklist(arguments.path, here)

        def edit(workspace: Workspace) -> str:
            with self._turn:
                return _edit(workspace, arguments)

        return await in_workspace(here, edit)


def _check_checklist(path: str, here: ToolContext) -> None:
    """Raise ``ToolFailed`` if a run may not change a file: the checklist works without a person."""
    if PurePath(path).name.casefold() == CHECKLIST_FILE and not here.may_change_checklist:
        raise ToolFailed(CHECKLIST_IS_OF_OWNERS)


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
    return f"Changed {path} at line {line:,}; the file now has {count(len(data), 'byte')}."


def _data(path: str, text: str) -> bytes:
    data = text.encode()
    if len(data) > MAX_WRITTEN_BYTES:
        reason = f"would have {len(data):,} bytes; the maximum is {MAX_WRITTEN_BYTES:,}"
        raise WorkspaceError(path, reason)
    return data
