"""Looking at the files of the workspace, and sending them (SPEC SEC-4)."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from mimetypes import guess_type
from pathlib import PurePath
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from goclaw_py.model.messages import FileKind, OutFile
from goclaw_py.model.workspace_paths import MAX_PATH_BYTES, split_file_path
from goclaw_py.ports.tools import ToolContext
from goclaw_py.tools.arguments import NOT_BLANK, Arguments
from goclaw_py.tools.tool import Tool, in_workspace
from goclaw_py.workspace import (
    MAX_LOOKED_AT,
    EntryKind,
    FolderEntry,
    Workspace,
    WorkspaceError,
    shown,
)

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
"""Anything else is a document: channels are particular about what they show and play."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Passage(Arguments):
    """Arguments of ``read_file``."""

    path: FilePath = Field(description="The file, relative to the workspace.")
    offset_line: int = Field(default=1, ge=1, description="The first line to read, from 1.")
    limit_lines: int | None = Field(default=None, ge=1, description="How many lines to read.")


class ReadFile(Tool[Passage]):
    """Gives the text of a file as it stands, so that parts of it can be given to ``edit_file``."""

    name = "read_file"
    description = (
        "Read a text file of your workspace. What is too long is cut, with a note in square "
        "brackets at the end that says where to go on."
    )
    side_effects = False
    arguments = Passage

    async def call(self, arguments: Passage, here: ToolContext) -> str:
        """Read it, or a part of it."""

        def read(workspace: Workspace) -> str:
            data = workspace.read(arguments.path, MAX_READ_BYTES).data
            return _passage(as_text(arguments.path, data), arguments)

        return await in_workspace(here, read)


def as_text(path: str, data: bytes) -> str:
    """Decode a file. Raises ``WorkspaceError`` if it is none of text."""
    reason = f"is not text but binary, {len(data):,} bytes"
    if b"\0" in data:
        raise WorkspaceError(path, reason)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise WorkspaceError(path, f"{reason}; at least it is not UTF-8") from error


def _passage(text: str, wanted: Passage) -> str:
    # Not ``splitlines``, which also splits at characters that an editor shows inside of a line.
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
            f"{rest[0][:MAX_READ_CHARS]}\n[line {first:,} is cut: {left_out:,} more characters]"
        ]
    last = first + len(kept) - 1
    read = "".join(kept)
    if first == 1 and last == total:
        return read
    more = f"; go on with offset_line {last + 1}" if last < total else ""
    line_end = "" if read.endswith("\n") else "\n"
    return f"{read}{line_end}[lines {first:,} to {last:,} of {total:,}{more}]"


class Folder(Arguments):
    """Arguments of ``list_files``."""

    path: FilePath = Field(default=".", description="The folder, relative to the workspace.")
    pattern: Annotated[str, Field(max_length=200), NOT_BLANK] | None = Field(
        default=None,
        description="Search in all folders below too, for files whose name matches this, such as "
        "*.md; with a / in it their path from the folder has to match, such as notes/*.md. "
        "* is anything, ? one character.",
    )


class ListFiles(Tool[Folder]):
    """Lists a folder, or finds files by name."""

    name = "list_files"
    description = "List a folder of your workspace with the sizes of its files."
    side_effects = False
    arguments = Folder

    async def call(self, arguments: Folder, here: ToolContext) -> str:
        """List it."""
        pattern = arguments.pattern

        def entries(workspace: Workspace) -> list[FolderEntry]:
            found = workspace.entries(arguments.path, deep=pattern is not None)
            return list(found)

        found = await in_workspace(here, entries)
        named = [e for e in found if pattern is None or _matches(e, pattern)]
        lines = [_line(entry) for entry in named[:MAX_LISTED]]
        if len(named) > MAX_LISTED:
            lines.append(f"[{len(named) - MAX_LISTED:,} more; give a pattern or another folder]")
        if len(found) >= MAX_LOOKED_AT:
            lines.append(f"[only the first {MAX_LOOKED_AT:,} names were looked at]")
        return "\n".join(lines) or ("[the folder is empty]" if pattern is None else "[no file]")


def _matches(entry: FolderEntry, pattern: str) -> bool:
    name = entry.path if "/" in pattern else entry.path.rpartition("/")[2]
    return entry.kind is EntryKind.FILE and fnmatchcase(name, pattern)


def _line(entry: FolderEntry) -> str:
    match entry.kind:
        case EntryKind.FILE:
            return f"{shown(entry.path)}  {entry.size:,} bytes"
        case EntryKind.FOLDER:
            return f"{shown(entry.path)}/"
        case EntryKind.LINK:
            return f"{shown(entry.path)}  (a link, which is never followed)"
        case EntryKind.SPECIAL:
            return f"{shown(entry.path)}  (no file)"


def _plain_name(name: str) -> str:
    if "/" in name or any(char < " " for char in name):
        raise ValueError("must be a name, without / and line breaks")
    return name


ShownName = Annotated[str, Field(max_length=_LONGEST_NAME), NOT_BLANK, AfterValidator(_plain_name)]


class SendFileArguments(Arguments):
    """Arguments of ``send_file``."""

    path: FilePath = Field(description="The file, relative to the workspace.")
    name: ShownName | None = Field(
        default=None, description="What the user sees as its name; else its own."
    )


class SendFile(Tool[SendFileArguments]):
    """Lets a file be sent with the reply. Nothing has happened until the run has completed."""

    name = "send_file"
    description = "Send a file of your workspace to the user, together with your answer."
    side_effects = False
    arguments = SendFileArguments

    async def call(self, arguments: SendFileArguments, here: ToolContext) -> str:
        """Attach it to the reply."""

        def look(workspace: Workspace) -> OutFile:
            with workspace.reading(arguments.path) as file:
                size_bytes = os.fstat(file.fileno()).st_size
            path = workspace.root.joinpath(*split_file_path(arguments.path, str(workspace.root)))
            kind, mime = _kind(path, size_bytes)
            return OutFile(kind, str(path), arguments.name or path.name, mime)

        async with here.attaching:
            file = await in_workspace(here, look)
            here.attach(file)
        return f"{file.name} will be sent with your answer."


def _kind(path: PurePath, size_bytes: int) -> tuple[FileKind, str]:
    """What a file is to people, and its type. Raises ``WorkspaceError`` if it cannot be sent."""
    if not size_bytes:
        raise WorkspaceError(path.name, "is empty, so it cannot be sent")
    if size_bytes > MAX_SENT_BYTES:
        reason = f"has {size_bytes:,} bytes; the most that can be sent is {MAX_SENT_BYTES:,}"
        raise WorkspaceError(path.name, reason)
    if found := _KINDS.get(path.suffix.lower()):
        too_big = found[0] is FileKind.PHOTO and size_bytes > MAX_PHOTO_BYTES
        return (FileKind.DOCUMENT, found[1]) if too_big else found
    # By its ending alone: the function takes addresses, and "data:…" would be one.
    mime, packed = guess_type(f"file{path.suffix}")
    return FileKind.DOCUMENT, mime if mime and not packed else ""
