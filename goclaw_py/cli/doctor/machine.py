"""Checks of this machine."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import goclaw_py
from goclaw_py.cli.doctor.finding import DoctorFacts, Finding
from goclaw_py.common.timezones import zone
from goclaw_py.model.errors import UnknownZone

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


def check_zones(world: DoctorFacts) -> Iterator[Finding]:
    """Check that time zones are installed, and that the configured one exists."""
    from goclaw_py.config import job_profile  # noqa: PLC0415

    if not world.machine.zones:
        cure = "pip install tzdata, or install the tzdata package of your system"
        yield Finding("time zones", "none installed on this machine", cure)
        return
    name = job_profile(world.settings, world.env).zone
    try:
        zone(name)
    except UnknownZone as error:
        yield Finding(
            "time zones",
            str(error),
            "set scheduler.timezone to an IANA name, such as Europe/Berlin",
        )
    else:
        yield Finding("time zones", f"{world.machine.zones} installed; jobs use {name}")


def check_open_files(world: DoctorFacts) -> Iterator[Finding]:
    """Check the limit of open files, which includes connections."""
    limit = world.machine.open_files
    fact = f"at most {limit}" if limit >= 0 else "no limit"
    cure = "raise it: ulimit -n 4096, or LimitNOFILE=4096 in the systemd unit"
    is_low = 0 <= limit < USUAL_FILES
    yield Finding("open files", fact, cure if is_low else "", is_hint=limit >= FEW_FILES)


def check_memory(world: DoctorFacts) -> Iterator[Finding]:
    """Check that memory is available: without it the system kills the gateway."""
    left = world.machine.memory
    if left is None:
        yield Finding("memory", "not reported by this system")
        return
    cure = "stop other programs, or add memory or swap; a gateway needs about 150 MB"
    is_low = left < LITTLE_MEMORY
    yield Finding("memory", f"{left // MB} MB available", cure if is_low else "", is_hint=True)


def check_user(world: DoctorFacts) -> Iterator[Finding]:
    """Check that programs of agents do not run as root."""
    machine = world.machine
    if machine.is_root and not machine.in_container:
        cure = "run goclaw as a separate user, because tools of agents have all its rights"
        yield Finding("user", "root", cure, is_hint=True)
    else:
        yield Finding("user", "root, in a container" if machine.is_root else "not root")


def check_event_loop(world: DoctorFacts) -> Iterator[Finding]:
    """Check that uvloop, the faster event loop, is installed."""
    if world.machine.has_uvloop:
        yield Finding("event loop", "uvloop")
    else:
        cure = "pip install uvloop, if it supports your system: more messages per second"
        yield Finding("event loop", "asyncio", cure, is_hint=True)


def check_room(world: DoctorFacts) -> Iterator[Finding]:
    """Check the free space on the disk of the state folder."""
    folder = world.settings.state_folder
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    cure = f"free space on the disk of {there}, or set state.folder" if free < LITTLE_ROOM else ""
    yield Finding("disk", f"{free // MB:,} MB free at {there}", cure, is_hint=free >= NO_ROOM)
