"""The exit codes, and which error ends with which."""

from __future__ import annotations

from enum import IntEnum

from goclaw_py.core.errors import (
    BadJob,
    BadSchedule,
    BadUsageQuery,
    HeartbeatError,
    NoGateway,
    SettingError,
    StoreUnavailable,
)


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    """The command failed, or found nothing of that name."""
    USAGE = 2
    """The command line or a setting is wrong."""
    UNREACHABLE = 3
    """No gateway is running, or the database cannot be reached."""
    INTERRUPTED = 130
    """Interrupted by Ctrl-C."""
    TERMINATED = 143
    """Terminated by SIGTERM."""


EXPLAINED = (
    "Exit codes: 0 success, 1 failed or not found, 2 wrong usage or setting, "
    "3 gateway or database not reachable, 130 Ctrl-C, 143 SIGTERM."
)


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    # Only HeartbeatError itself is wrong usage; its subclasses report a missing agent and such.
    if (
        isinstance(error, SettingError | BadSchedule | BadJob | BadUsageQuery)
        or type(error) is HeartbeatError
    ):
        return ExitCode.USAGE
    if isinstance(error, NoGateway | StoreUnavailable):
        return ExitCode.UNREACHABLE
    return ExitCode.FAILED
