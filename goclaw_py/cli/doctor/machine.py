"""Checks of this machine."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import goclaw_py
from goclaw_py.cli.doctor.finding import Finding, World

OLDEST: Final = (3, 11)
FIRST_TOO_NEW: Final = (3, 15)
MB: Final = 1 << 20
FEW_FILES: Final = 256
USUAL_FILES: Final = 1024
LITTLE_MEMORY: Final = 200 * MB
NO_ROOM: Final = 200 * MB
LITTLE_ROOM: Final = 1024 * MB


def check_python(version: tuple[int, int]) -> Finding:
    """The release of Python."""
    fact = ".".join(str(part) for part in version)
    if OLDEST <= version < FIRST_TOO_NEW:
        return Finding("python", fact)
    return Finding("python", fact, "install Python 3.11 to 3.14 and make a new environment with it")


def check_channels_package() -> Finding:
    """Whether ``channels`` is ours: Django Channels has the same import name."""
    ours = Path(goclaw_py.__file__).resolve().parent.parent / "channels"
    spec = importlib.util.find_spec("channels")
    places = (
        [] if spec is None else [Path(p).resolve() for p in spec.submodule_search_locations or ()]
    )
    if ours in places:
        return Finding("channels package", str(ours))
    found = ", ".join(str(place) for place in places) or "missing"
    cure = "install goclaw_py into an environment of its own"
    return Finding("channels package", f"{found} instead of {ours}", cure)


def check_zones(world: World) -> Iterator[Finding]:
    """Whether the names of time zones are known, and the one that the settings lead to."""
    from goclaw_py.common.timezones import zone  # noqa: PLC0415
    from goclaw_py.config import job_profile  # noqa: PLC0415
    from goclaw_py.model.errors import UnknownZone  # noqa: PLC0415

    if not world.machine.zones:
        cure = "pip install tzdata, or install the package tzdata of your system"
        yield Finding("time zones", "none are known on this machine", cure)
        return
    name = job_profile(world.settings, world.env).zone
    try:
        zone(name)
    except UnknownZone as error:
        yield Finding("time zones", str(error), "set scheduler.timezone to an IANA name")
    else:
        yield Finding("time zones", f"{world.machine.zones} are known; jobs use {name}")


def check_open_files(world: World) -> Iterator[Finding]:
    """Whether there is room for connections."""
    limit = world.machine.open_files
    fact = f"at most {limit}" if limit >= 0 else "no limit"
    cure = "raise it: ulimit -n 4096, or LimitNOFILE=4096 in the systemd unit"
    is_low = 0 <= limit < USUAL_FILES
    yield Finding("open files", fact, cure if is_low else "", is_hint=limit >= FEW_FILES)


def check_memory(world: World) -> Iterator[Finding]:
    """Whether there is memory left: the system ends a process for which there is none."""
    left = world.machine.memory
    if left is None:
        yield Finding("memory", "this system does not tell")
        return
    cure = "end other programs, or add memory or swap; a gateway takes some 150 MB"
    is_low = left < LITTLE_MEMORY
    yield Finding("memory", f"{left // MB} MB left", cure if is_low else "", is_hint=True)


def check_user(world: World) -> Iterator[Finding]:
    """Whether agents' programs would run as root."""
    machine = world.machine
    if machine.is_root and not machine.in_container:
        cure = "run it as a user of its own; agents' tools may do all that this user may"
        yield Finding("user", "root", cure, is_hint=True)
    else:
        yield Finding("user", "root, in a container" if machine.is_root else "not root")


def check_event_loop(world: World) -> Iterator[Finding]:
    """Whether the fast event loop is there."""
    if world.machine.has_uvloop:
        yield Finding("event loop", "uvloop")
    else:
        cure = "pip install uvloop, if your system has it: more messages a second"
        yield Finding("event loop", "that of Python", cure, is_hint=True)


def check_room(world: World) -> Iterator[Finding]:
    """Whether the disk of the state folder has room."""
    folder = world.settings.state_folder
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    cure = f"make room on the disk of {there}, or set state.folder" if free < LITTLE_ROOM else ""
    yield Finding("disk", f"{free // MB:,} MB free at {there}", cure, is_hint=free >= NO_ROOM)
