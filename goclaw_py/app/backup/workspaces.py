"""Back up and restore the files in the workspaces of agents.

All functions block.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from goclaw_py.config import Settings, secret_files
from goclaw_py.core.errors import BackupError
from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.workspace.paths import BadPath, split_file_path

_TEMPORARY: Final = ".goclaw-tmp"
"""The suffix of temporary files, which ``goclaw_py.core.workspace.files`` hides."""
_NAMED: Final = 3
# A pipe without a writer would block, and a terminal would become our controlling terminal.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def workspaces(settings: Settings) -> dict[AgentName, Path]:
    """Return the existing workspace folders, except those inside of another workspace."""
    found: dict[AgentName, Path] = {}
    for name in sorted(settings.agents, key=lambda name: (name != MAIN_AGENT, name)):
        agent = AgentName(name)
        root = settings.workspace(agent).resolve()
        if root.is_dir() and root not in found.values():
            found[agent] = root
    roots = list(found.values())
    return {
        agent: root
        for agent, root in found.items()
        if not any(root != other and root.is_relative_to(other) for other in roots)
    }


def never_saved(settings: Settings, archive: Path) -> set[Path]:
    """Return the paths that are never backed up: state, settings, secrets and the backup."""
    paths = {settings.state_folder, archive, *secret_files(settings)}
    return {path.resolve() for path in paths | ({settings.file} if settings.file else set())}


# ---------------------------------------------------------------------------- backup


@dataclass(slots=True)
class LeftOut:
    """Files that are left out of a backup, by reason."""

    _paths: dict[str, list[str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, path: str) -> None:
        """Add a file; only the first few names are stored."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if self._counts[reason] <= _NAMED:
            self._paths.setdefault(reason, []).append(path)

    def words(self) -> Iterator[str]:
        """Return one sentence for each reason."""
        for reason, paths in self._paths.items():
            more = self._counts[reason] - len(paths)
            shown = ", ".join(path if path.isprintable() else ascii(path) for path in paths)
            yield f"left out, {reason}: {shown}{f' and {more} more' if more else ''}"


def files_in(
    root: Path, leave_out: Collection[Path], left_out: LeftOut
) -> Generator[tuple[str, BinaryIO], None, None]:
    """Iterate over the regular files with their paths; each is open until the next step.

    Links are not followed. Files that are created or deleted meanwhile may be missing.
    """

    def unreadable(error: OSError) -> None:
        left_out.add("cannot be read", str(error.filename))

    for folder, folders, names, number in os.fwalk(root, onerror=unreadable):
        here = Path(folder)
        for name in folders:
            if (here / name).is_symlink():
                left_out.add("links", str(here / name))
        # Changed in place, because the walk continues with this list.
        folders[:] = sorted(name for name in folders if not _is_skipped(here / name, leave_out))
        for name in sorted(names):
            path = here / name
            if not _is_skipped(path, leave_out):
                with _opened(name, number, str(path), left_out) as file:
                    if file is not None:
                        yield str(path.relative_to(root)), file


def _is_skipped(path: Path, leave_out: Collection[Path]) -> bool:
    return path.name.endswith(_TEMPORARY) or path in leave_out


@contextmanager
def _opened(name: str, folder: int, path: str, left_out: LeftOut) -> Iterator[BinaryIO | None]:
    file = None
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            file = os.fdopen(os.open(name, _OPEN, dir_fd=folder), "rb")
        else:
            left_out.add("links" if stat.S_ISLNK(mode) else "not regular files", path)
    except FileNotFoundError:
        pass
    except OSError:
        left_out.add("cannot be read", path)
    if file is None:
        yield None
        return
    with file:
        yield file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None


def is_storable(path: str) -> bool:
    """Whether a path can be stored in a backup: not too deep, without invalid names."""
    try:
        return "/".join(split_file_path(path)) == path
    except BadPath:
        return False


# ---------------------------------------------------------------------------- restore


def homes_of(settings: Settings, agents: Collection[str], archive: Path) -> dict[str, Path]:
    """Return the target folders of agents' files.

    Raises ``BackupError`` if files would be lost there that no backup contains.
    """
    roots = {agent: _home_of(settings, agent).resolve() for agent in sorted(agents)}
    kept = never_saved(settings, archive)
    for agent, root in roots.items():
        inside = next((path for path in sorted(kept) if path.is_relative_to(root)), None)
        if inside is not None:
            raise BackupError(
                f"the workspace of {agent} contains {inside}: move it, or restore with --no-files"
            )
        for other, other_root in roots.items():
            if other != agent and other_root.is_relative_to(root):
                raise BackupError(
                    f"the workspace of {other} is inside that of {agent}: restore with --no-files"
                )
    return roots


def _home_of(settings: Settings, agent: str) -> Path:
    if agent in settings.agents:
        return settings.workspace(AgentName(agent))
    return settings.home / "workspaces" / agent


def filled(roots: Mapping[str, Path]) -> list[Path]:
    """Return the folders that are not empty."""
    return [root for root in roots.values() if root.is_dir() and any(_entries(root))]


def _entries(root: Path) -> Iterator[Path]:
    return (path for path in root.iterdir() if not path.name.endswith(_TEMPORARY))


class Staging:
    """Temporary folders for the restored files, which then replace the old ones.

    They are inside the workspace, which may be a separate volume, so that all moves stay within
    one file system.
    """

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = roots
        self._folders: dict[str, Path] = {}
        self._moved: list[tuple[Path, Path]] = []
        self._made: list[Path] = []

    def prepare(self) -> None:
        """Create the temporary folders. Raises ``OSError``."""
        for agent, root in self._roots.items():
            missing = [path for path in (root, *root.parents) if not path.exists()]
            root.mkdir(parents=True, exist_ok=True)
            self._made += missing
            folder = root / f".{secrets.token_hex(8)}{_TEMPORARY}"
            folder.mkdir(mode=0o700)
            self._folders[agent] = folder
            for name in ("new", "old"):
                (folder / name).mkdir()

    def takes(self, agent: str) -> bool:
        """Whether the files of this agent are restored."""
        return agent in self._folders

    def add(self, agent: str, path: str, mode: int, pieces: Iterator[bytes]) -> None:
        """Write a file; ``path`` must not lead outside. Raises ``OSError``."""
        file = self._folders[agent] / "new" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, _NEW, 0o600), "wb") as out:
            for piece in pieces:
                out.write(piece)
            os.fchmod(out.fileno(), mode)
            out.flush()
            os.fsync(out.fileno())

    def swap(self) -> None:
        """Replace the old files by the new ones. Raises ``OSError``; then call ``undo``."""
        for agent, root in self._roots.items():
            folder = self._folders[agent]
            for entry in sorted(_entries(root)):
                self._move(entry, folder / "old" / entry.name)
            for entry in sorted((folder / "new").iterdir()):
                self._move(entry, root / entry.name)

    def undo(self) -> None:
        """Move the old files back, and delete the new ones."""
        while self._moved:
            here, there = self._moved.pop()
            there.rename(here)
        self.clear()
        for folder in self._made:
            with suppress(OSError):  # not empty: other files were added
                folder.rmdir()

    def clear(self) -> None:
        """Delete the temporary folders."""
        for folder in self._folders.values():
            shutil.rmtree(folder, ignore_errors=True)

    def _move(self, here: Path, there: Path) -> None:
        here.rename(there)
        self._moved.append((here, there))


def pieces_of(read: Callable[[], bytes], count: Callable[[int], None]) -> Iterator[bytes]:
    """Iterate over the results of ``read`` until it is empty; ``count`` gets each size."""
    while data := read():
        count(len(data))
        yield data
