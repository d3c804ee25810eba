"""The list of all checks, and running them one after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from goclaw_py.cli.context import Cli
from goclaw_py.cli.doctor import agents, channels, database, files, machine, work
from goclaw_py.cli.doctor.finding import Finding, Level, Machine, World
from goclaw_py.cli.doctor.gather import look_around, this_machine
from goclaw_py.model.errors import SettingError

if TYPE_CHECKING:
    from goclaw_py.common.redaction import Hider
    from goclaw_py.config import Settings


@dataclass(frozen=True, slots=True)
class Report:
    """A finding as JSON. ``id`` names the check and does not change between releases."""

    id: str
    level: Level
    subject: str
    fact: str
    cure: str


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its id, as listed in ``docs/guide/troubleshooting.md``."""

    id: str
    find: Callable[[World], Iterator[Finding]]


FIRST: Final = ("python", "channels-package", "settings", "state-folder")
"""Checks that run before anything is asked of other processes."""

CHECKS: Final = (
    Check("state-folder-rights", files.check_folder_rights),
    Check("secret-files", files.check_secret_files),
    Check("disk", machine.check_room),
    Check("log", files.check_log),
    Check("time-zones", machine.check_zones),
    Check("open-files", machine.check_open_files),
    Check("memory", machine.check_memory),
    Check("user", machine.check_user),
    Check("event-loop", machine.check_event_loop),
    Check("parts", agents.check_parts),
    Check("channels", channels.check_channels),
    Check("webhooks", channels.check_webhooks),
    Check("web-address", channels.check_address),
    Check("web-token", channels.check_token),
    Check("web-names", channels.check_names),
    Check("models", agents.check_keys),
    Check("budgets", agents.check_budgets),
    Check("programs", agents.check_programs),
    Check("tool-servers", agents.check_tool_servers),
    Check("workspaces", files.check_workspaces),
    Check("instructions", agents.check_instructions),
    Check("heartbeats", agents.check_heartbeats),
    Check("checklists", agents.check_checklists),
    Check("database-programs", database.check_binaries),
    Check("database", database.check_database),
    Check("migrations", database.check_migrations),
    Check("database-server", database.check_version),
    Check("database-rights", database.check_rights),
    Check("database-writes", database.check_writes),
    Check("database-notices", database.check_notices),
    Check("database-clock", database.check_clock),
    Check("database-connections", database.check_connections),
    Check("gateway", work.check_gateway),
    Check("release", work.check_release),
    Check("settings-in-use", work.check_age),
    Check("owners", channels.check_owners),
    Check("groups", channels.check_groups),
    Check("jobs", work.check_jobs),
    Check("deliveries", work.check_deliveries),
    Check("messages", work.check_unanswered),
)


def examine(options: Cli) -> Iterator[Report]:
    """Run all checks, starting with those that others depend on."""
    here = this_machine()
    yield from _reports("python", [machine.check_python(here.python)])
    yield from _reports("channels-package", [machine.check_channels_package()])
    try:
        settings = options.settings()
    except SettingError as error:
        wrong = [Finding("settings", each, "fix this setting") for each in _lines(error)]
        yield from _reports("settings", wrong)
        return
    yield from _examined(settings, here)


def _lines(error: SettingError) -> list[str]:
    return str(error).splitlines()


def _examined(settings: Settings, here: Machine) -> Iterator[Report]:
    from goclaw_py.cli import composition  # noqa: PLC0415

    # Answers of other programs may quote one of our secrets (SPEC SEC-2).
    hide = composition.hider(settings)
    shown = str(settings.file or "no file, using the defaults")
    yield from _reports("settings", [Finding("settings", shown)])
    yield from _reports("state-folder", [files.check_folder(settings.state_folder)], hide)
    world = asyncio.run(look_around(settings, dict(os.environ), here))
    for check in CHECKS:
        yield from _reports(check.id, found(check, world), hide)


def found(check: Check, world: World) -> list[Finding]:
    """Return the findings of a check. An exception in it becomes a finding, too."""
    try:
        return list(check.find(world))
    except Exception as error:
        # A boundary: a bug in one check must not stop the others.
        fact = f"this check failed with a bug: {type(error).__name__}: {error}"
        return [Finding(check.id, fact, "report this bug and quote this line", is_hint=True)]


def _reports(id_: str, findings: Iterable[Finding], hide: Hider | None = None) -> Iterator[Report]:
    for one in findings:
        fact = one.fact if hide is None else hide(one.fact)
        yield Report(id_, one.level, one.subject, fact, one.cure)
