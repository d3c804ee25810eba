"""Checks of files and folders: permissions, and whether they are writable."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from goclaw_py.cli.doctor.finding import DoctorFacts, Finding
from goclaw_py.model.ids import AgentName

_BY_OTHERS: Final = stat.S_IRGRP | stat.S_IROTH
_WRITE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_LISTED: Final = 3


def check_folder(folder: Path) -> Finding:
    """Check that the state folder is writable, or can be created."""
    try:
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
        is_new = nearest != folder
        fact = f"{folder} does not exist yet" if is_new else str(folder)
        cure = "goclaw run creates it" if is_new else ""
        return Finding("state folder", fact, cure, is_hint=True)
    except OSError as error:
        cure = "make it writable, or set state.folder"
        return Finding("state folder", f"{folder}: {error.strerror}", cure)


def check_folder_rights(world: DoctorFacts) -> Iterator[Finding]:
    """Check that other users can neither change the state folder nor read its files."""
    folder = world.settings.state_folder
    if not folder.is_dir():
        return  # ``check_folder`` reports why
    mode = folder.stat().st_mode
    cure = f"chmod 700 {folder}"
    if mode & _WRITE_BY_OTHERS:
        yield Finding("state folder permissions", f"other users can write to {folder}", cure)
        return
    is_closed = not mode & (stat.S_IXGRP | stat.S_IXOTH)
    open_files = [] if is_closed else [one.name for one in folder.iterdir() if _is_readable(one)]
    if open_files:
        fact = f"other users can read {', '.join(sorted(open_files)[:_LISTED])} in {folder}"
        yield Finding("state folder permissions", fact, cure, is_hint=True)
    else:
        yield Finding("state folder permissions", "other users cannot read its files")


def _is_readable(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & _BY_OTHERS)


def check_secret_files(world: DoctorFacts) -> Iterator[Finding]:
    """Check that secret files exist, and that only their owner can read them (SPEC SEC-2)."""
    from goclaw_py.config.secrets import secret_files  # noqa: PLC0415

    subject = "secret files"
    files = sorted(secret_files(world.settings))
    if world.settings.file is not None and _holds_secret(world):
        files.append(world.settings.file)
    is_well = True
    for file in files:
        try:
            mode = file.expanduser().stat().st_mode
        except OSError as error:
            cure = "create the file, or fix the setting"
            yield Finding(subject, f"{file}: {error.strerror}", cure)
        else:
            if not mode & _BY_OTHERS:
                continue
            yield Finding(subject, f"other users can read {file}", f"chmod 600 {file}")
        is_well = False
    if is_well:
        words = "readable by their owner only" if files else "none: secrets are in the environment"
        yield Finding(subject, words)


def _holds_secret(world: DoctorFacts) -> bool:
    """Return whether the settings file itself contains a secret."""
    from goclaw_py.config.secrets import secrets_in  # noqa: PLC0415

    assert world.settings.file is not None
    return bool(secrets_in(world.settings.file.read_text("utf-8")))


def check_log(world: DoctorFacts) -> Iterator[Finding]:
    """Check that the log file is writable."""
    file = world.settings.log.file
    if file is None:
        yield Finding("log", "standard error, or goclaw.log in the state folder for `goclaw run`")
        return
    there = file if file.exists() else next(p for p in file.parents if p.exists())
    is_possible = there.is_file() if there == file else there.is_dir()
    if not is_possible or not os.access(there, os.W_OK):
        fact = f"{file} is not writable"
        yield Finding("log", fact, "make it writable, or fix log.file")
    else:
        yield Finding("log", str(file))


def check_workspaces(world: DoctorFacts) -> Iterator[Finding]:
    """Check that each agent has a workspace folder that it can use."""
    for name in map(AgentName, world.settings.agents):
        folder = world.settings.workspace(name)
        subject = f"agent {name}, workspace"
        if not folder.exists():
            yield Finding(subject, f"{folder} does not exist", f"mkdir -p {folder}", is_hint=True)
        elif not folder.is_dir():
            cure = f"move it away, or fix agents.{name}.workspace"
            yield Finding(subject, f"{folder} is not a folder", cure)
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            cure = f"make it readable and writable, or fix agents.{name}.workspace"
            yield Finding(subject, f"this user cannot read and write {folder}", cure)
        else:
            yield Finding(subject, str(folder))
