"""What the exit code says."""

from __future__ import annotations

from enum import IntEnum

from goclaw_py.model.errors import (
    BadJob,
    BadSchedule,
    BadUsageQuery,
    HeartbeatError,
    SettingError,
    StoreUnavailable,
)


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    """It did not work, or nothing has that name."""
    USAGE = 2
    """The command line or a setting is wrong."""
    UNREACHABLE = 3
    """No gateway runs, or the database cannot be reached."""
    INTERRUPTED = 130
    """Broken off by Ctrl-C."""
    TERMINATED = 143
    """Broken off by SIGTERM."""


EXPLAINED = (
    "Exit codes: 0 done, 1 failed or not found, 2 wrong usage or setting, "
    "3 no gateway or database to reach, 130 Ctrl-C, 143 SIGTERM."
)


def code_of(error: BaseException) -> ExitCode:
    """The exit code for an error."""
    from goclaw_py.ports.control import NoGateway  # noqa: PLC0415  (not needed for --help)

    # What is more than a heartbeat error was well asked for: it is not there, or has no room.
    if (
        isinstance(error, SettingError | BadSchedule | BadJob | BadUsageQuery)
        or type(error) is HeartbeatError
    ):
        return ExitCode.USAGE
    if isinstance(error, NoGateway | StoreUnavailable):
        return ExitCode.UNREACHABLE
    return ExitCode.FAILED
