"""What systemd and launchd need to run the gateway as a service of one user (SPEC OPS-10)."""

from __future__ import annotations

import math
import plistlib
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from goclaw_py.config import Settings
from goclaw_py.core.errors import GoclawError

Words = tuple[str, ...]

SYSTEMD_NAME: Final = "goclaw.service"
LAUNCHD_NAME: Final = "org.goclaw.gateway"

_SIGNATURE: Final = "# Written by goclaw service install.\n"

# The same as in deploy/goclaw.service, as far as a service of a user can have it.
_UNIT: Final = """\
{signature}[Unit]
Description=goclaw, the runtime between chat channels and an AI agent

[Service]
# Reports when it is ready, and regularly that it is alive. While the database is away the start
# takes as long as that.
Type=notify
WatchdogSec=60
TimeoutStartSec=300
ExecStart={command}
{environment}
Restart=on-failure
RestartSec=5
# A wrong setting: another start does not help.
RestartPreventExitStatus=2
# shutdown.wait + runs.cancel_grace + 15 s, at least 75 s.
TimeoutStopSec={stop_s}
# The signal is for the gateway, which stops its own database last.
KillMode=mixed
UMask=0077

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class WriteServiceFile:
    """Writes a file that only its owner can read."""

    file: Path
    text: str


@dataclass(frozen=True, slots=True)
class DeleteServiceFile:
    """Deletes a file."""

    file: Path


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Runs a command."""

    words: Words
    may_fail: bool = False


Step = WriteServiceFile | DeleteServiceFile | RunCommand


@dataclass(frozen=True, slots=True)
class UserService:
    """A service: its file, and the steps of its manager."""

    manager: str
    file: Path
    install: tuple[Step, ...]
    """Also restart a service that is running."""
    uninstall: tuple[Step, ...]
    reach: Words
    """A command that fails if the manager cannot be reached."""
    state: Words
    """A command that succeeds and prints ``running_word`` if the service is running."""
    running_word: str
    log: str
    """The command that shows the log."""
    hint: str = ""
    signature: str = ""
    """The beginning of a file that we wrote."""


def user_service(
    settings: Settings, env: Mapping[str, str], platform: str, uid: int
) -> UserService:
    """Return the service for the manager of a platform (``sys.platform``)."""
    variables = {"GOCLAW_HOME": str(settings.home), "PATH": env.get("PATH", "")}
    if settings.file is not None and settings.file != settings.home / "goclaw.toml":
        variables["GOCLAW_CONFIG"] = str(settings.file)
    # -P: a folder with the name of one of our packages in the home folder would hide it.
    command = (sys.executable, "-P", "-m", "goclaw_py", "run", "--no-console")
    for text in (*command, *variables.values()):
        if not text.isprintable():
            raise GoclawError(f"no service can be installed with this path: {text!r}")
    stop_s = max(75, math.ceil(settings.shutdown.wait_s + settings.runs.cancel_grace_s + 15))
    home = Path(env.get("HOME") or Path.home())
    if platform == "darwin":
        return _launchd(command, variables, stop_s, home / "Library", uid)
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    return _systemd(command, variables, stop_s, config)


def _systemd(
    command: Words, variables: Mapping[str, str], stop_s: int, config: Path
) -> UserService:
    environment = "\n".join(
        f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()
    )
    program = command[0]
    if set(program) & set("\"'\\"):
        raise GoclawError(f"systemd starts no program with a quote or backslash: {program}")
    # A dollar sign has a meaning only in arguments, and ours have none.
    words = " ".join(map(_quoted, command))
    text = _UNIT.format(signature=_SIGNATURE, command=words, environment=environment, stop_s=stop_s)
    file = config / "systemd" / "user" / SYSTEMD_NAME
    ctl = ("systemctl", "--user")
    read_again = RunCommand((*ctl, "daemon-reload"))
    return UserService(
        manager="systemd",
        file=file,
        install=(
            WriteServiceFile(file, text),
            read_again,
            RunCommand((*ctl, "enable", SYSTEMD_NAME)),
            RunCommand((*ctl, "restart", SYSTEMD_NAME)),
        ),
        uninstall=(
            RunCommand((*ctl, "disable", "--now", SYSTEMD_NAME)),
            DeleteServiceFile(file),
            read_again,
        ),
        reach=(*ctl, "show-environment"),
        state=(*ctl, "is-active", SYSTEMD_NAME),
        running_word="active",
        log="journalctl --user --unit goclaw --follow",
        hint="to keep it running while you are logged out: loginctl enable-linger",
        signature=_SIGNATURE,
    )


def _quoted(text: str) -> str:
    """Quote for systemd, in which a percent sign starts a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _launchd(
    command: Words, variables: Mapping[str, str], stop_s: int, library: Path, uid: int
) -> UserService:
    file = library / "LaunchAgents" / f"{LAUNCHD_NAME}.plist"
    log = str(library / "Logs" / "goclaw.log")
    text = plistlib.dumps(
        {
            "Label": LAUNCHD_NAME,
            "ProgramArguments": list(command),
            "EnvironmentVariables": dict(variables),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": stop_s,
            "Umask": 0o077,
            "StandardErrorPath": log,
            "StandardOutPath": log,
        }
    ).decode()
    domain = f"gui/{uid}"
    # A plist is read only when it is loaded. On a first installation nothing is.
    unload = RunCommand(("launchctl", "bootout", f"{domain}/{LAUNCHD_NAME}"), may_fail=True)
    load = RunCommand(("launchctl", "bootstrap", domain, str(file)))
    return UserService(
        manager="launchd",
        file=file,
        install=(WriteServiceFile(file, text), unload, load),
        uninstall=(unload, DeleteServiceFile(file)),
        reach=("launchctl", "print", domain),
        state=("launchctl", "print", f"{domain}/{LAUNCHD_NAME}"),
        running_word="state = running",
        log=shlex.join(("tail", "-f", log)),
    )
