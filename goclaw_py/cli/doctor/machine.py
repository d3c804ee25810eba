"""Checks of this machine: Python, memory, and the files of goclaw."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import goclaw_py
from goclaw_py.cli.doctor.finding import DoctorFacts, Finding
from goclaw_py.config import job_profile
from goclaw_py.config.secrets import secret_files, secrets_in
from goclaw_py.core.errors import UnknownZone
from goclaw_py.core.ids import AgentName
from goclaw_py.core.time.zones import zone

OLDEST: Final = (3, 11)
FIRST_TOO_NEW: Final = (3, 15)
MB: Final = 1 << 20
FEW_FILES: Final = 256
USUAL_FILES: Final = 1024
LITTLE_MEMORY: Final = 200 * MB
NO_ROOM: Final = 200 * MB
LITTLE_ROOM: Final = 1024 * MB


def check_python(version: tuple[int, int]) -> Finding:
    """Check the version of Python."""
    fact = ".".join(str(part) for part in version)
    if OLDEST <= version < FIRST_TOO_NEW:
        return Finding("python", fact)
    return Finding(
        "python", fact, "install Python 3.11 to 3.14 and create a new environment with it"
    )


def check_channels_package() -> Finding:
    """Check that ``channels`` is our package: Django Channels has the same import name."""
    ours = Path(goclaw_py.__file__).resolve().parent.parent / "channels"
    spec = importlib.util.find_spec("channels")
    places = (
        [] if spec is None else [Path(p).resolve() for p in spec.submodule_search_locations or ()]
    )
    if ours in places:
        return Finding("channels package", str(ours))
    found = ", ".join(str(place) for place in places) or "missing"
    cure = "install goclaw_py in a separate environment"
    return Finding("channels package", f"{found} instead of {ours}", cure)


def check_zones(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that time zones are installed, and that the configured one exists."""
    if not facts.machine.zones:
        cure = "pip install tzdata, or install the tzdata package of your system"
        yield Finding("time zones", "none installed on this machine", cure)
        return
    name = job_profile(facts.settings, facts.env).zone
    try:
        zone(name)
    except UnknownZone as error:
        yield Finding(
            "time zones",
            str(error),
            "set scheduler.timezone to an IANA name, such as Europe/Berlin",
        )
    else:
        yield Finding("time zones", f"{facts.machine.zones} installed; jobs use {name}")


def check_open_files(facts: DoctorFacts) -> Iterator[Finding]:
    """Check the limit of open files, which includes connections."""
    limit = facts.machine.open_files
    fact = f"at most {limit}" if limit >= 0 else "no limit"
    cure = "raise it: ulimit -n 4096, or LimitNOFILE=4096 in the systemd unit"
    is_low = 0 <= limit < USUAL_FILES
    yield Finding("open files", fact, cure if is_low else "", is_hint=limit >= FEW_FILES)


def check_memory(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that memory is available: without it the system kills the gateway."""
    left = facts.machine.memory
    if left is None:
        yield Finding("memory", "not reported by this system")
        return
    cure = "stop other programs, or add memory or swap; a gateway needs about 150 MB"
    is_low = left < LITTLE_MEMORY
    yield Finding("memory", f"{left // MB} MB available", cure if is_low else "", is_hint=True)


def check_user(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that programs of agents do not run as root."""
    machine = facts.machine
    if machine.is_root and not machine.in_container:
        cure = "run goclaw as a separate user, because tools of agents have all its rights"
        yield Finding("user", "root", cure, is_hint=True)
    else:
        yield Finding("user", "root, in a container" if machine.is_root else "not root")


def check_event_loop(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that uvloop, the faster event loop, is installed."""
    if facts.machine.has_uvloop:
        yield Finding("event loop", "uvloop")
    else:
        cure = "pip install uvloop, if it supports your system: more messages per second"
        yield Finding("event loop", "asyncio", cure, is_hint=True)


def check_room(facts: DoctorFacts) -> Iterator[Finding]:
    """Check the free space on the disk of the state folder."""
    folder = facts.settings.state_folder
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    cure = f"free space on the disk of {there}, or set state.folder" if free < LITTLE_ROOM else ""
    yield Finding("disk", f"{free // MB:,} MB free at {there}", cure, is_hint=free >= NO_ROOM)


# ---------------------------------------------------------------------------- files

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


def check_folder_rights(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that other users can neither change the state folder nor read its files."""
    folder = facts.settings.state_folder
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


def check_secret_files(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that secret files exist, and that only their owner can read them (SPEC SEC-2)."""
    subject = "secret files"
    files = sorted(secret_files(facts.settings))
    if facts.settings.file is not None and _holds_secret(facts):
        files.append(facts.settings.file)
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
        words = "readable by their owner only" if files else "none in use"
        yield Finding(subject, words)


def _holds_secret(facts: DoctorFacts) -> bool:
    """Return whether the settings file itself contains a secret."""
    assert facts.settings.file is not None
    return bool(secrets_in(facts.settings.file.read_text("utf-8-sig")))


def check_log(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the log file is writable."""
    file = facts.settings.log.file
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


def check_workspaces(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that each agent has a workspace folder that it can use."""
    for name in map(AgentName, facts.settings.agents):
        folder = facts.settings.workspace(name)
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
