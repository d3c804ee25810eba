"""The list of all checks, and running them one after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from goclaw_py.cli.context import Cli
from goclaw_py.cli.doctor import agents, channels, database, machine, sign_in, work
from goclaw_py.cli.doctor.finding import DoctorFacts, Finding, Level, MachineFacts
from goclaw_py.cli.doctor.gather import gather, this_machine
from goclaw_py.config import Settings
from goclaw_py.config.secrets import known_secrets
from goclaw_py.core.errors import SettingError
from goclaw_py.core.redaction import Redactor


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """A finding as JSON. ``id`` names the check and does not change between releases."""

    id: str
    level: Level
    subject: str
    fact: str
    cure: str


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """A check and its id, as listed in ``docs/guide/troubleshooting.md``."""

    id: str
    find: Callable[[DoctorFacts], Iterator[Finding]]
    by_variables: bool = False
    """Whether it needs secrets and variables, which a running gateway may have from elsewhere."""


FIRST: Final = ("python", "channels-package", "settings", "state-folder")
"""Checks that run before anything is asked of other processes."""

CHECKS: Final = (
    DoctorCheck("state-folder-rights", machine.check_folder_rights),
    DoctorCheck("secret-files", machine.check_secret_files),
    DoctorCheck("disk", machine.check_room),
    DoctorCheck("log", machine.check_log),
    DoctorCheck("time-zones", machine.check_zones),
    DoctorCheck("open-files", machine.check_open_files),
    DoctorCheck("memory", machine.check_memory),
    DoctorCheck("user", machine.check_user),
    DoctorCheck("event-loop", machine.check_event_loop),
    DoctorCheck("parts", agents.check_parts),
    DoctorCheck("channels", channels.check_channels),
    DoctorCheck("webhooks", channels.check_webhooks),
    DoctorCheck("web-address", channels.check_address),
    DoctorCheck("web-token", channels.check_token, by_variables=True),
    DoctorCheck("web-names", channels.check_names),
    DoctorCheck("web-sign-in", sign_in.check_sign_in, by_variables=True),
    DoctorCheck("models", agents.check_keys, by_variables=True),
    DoctorCheck("budgets", agents.check_budgets),
    DoctorCheck("programs", agents.check_programs),
    DoctorCheck("tool-servers", agents.check_tool_servers),
    DoctorCheck("workspaces", machine.check_workspaces),
    DoctorCheck("instructions", agents.check_instructions),
    DoctorCheck("heartbeats", agents.check_heartbeats),
    DoctorCheck("checklists", agents.check_checklists),
    DoctorCheck("database-programs", database.check_binaries),
    DoctorCheck("database", database.check_database),
    DoctorCheck("migrations", database.check_migrations),
    DoctorCheck("database-server", database.check_version),
    DoctorCheck("database-rights", database.check_rights),
    DoctorCheck("database-writes", database.check_writes),
    DoctorCheck("database-notices", database.check_notices),
    DoctorCheck("database-clock", database.check_clock),
    DoctorCheck("database-connections", database.check_connections),
    DoctorCheck("database-vacuum", database.check_vacuum),
    DoctorCheck("gateway", work.check_gateway),
    DoctorCheck("release", work.check_release),
    DoctorCheck("settings-in-use", work.check_age),
    DoctorCheck("owners", channels.check_owners),
    DoctorCheck("groups", channels.check_groups),
    DoctorCheck("jobs", work.check_jobs),
    DoctorCheck("deliveries", work.check_deliveries),
    DoctorCheck("messages", work.check_unanswered),
)


_ELSEWHERE: Final = "(in this shell; the gateway may have it from its own variables)"
_COMPARE: Final = "run goclaw doctor with the variables of the gateway"


def examine(options: Cli) -> Iterator[DoctorReport]:
    """Run all checks, starting with those that others depend on."""
    here = this_machine()
    yield from _reports("python", [machine.check_python(here.python)])
    yield from _reports("channels-package", [machine.check_channels_package()])
    try:
        settings = options.settings_in_effect()
    except SettingError as error:
        lines = str(error).splitlines()
        wrong = [Finding("settings", each, "fix this setting") for each in lines]
        yield from _reports("settings", wrong)
        return
    yield from _examined(settings, here)


def _examined(settings: Settings, here: MachineFacts) -> Iterator[DoctorReport]:
    # Answers of other programs may quote one of our secrets (SPEC SEC-2).
    hide = Redactor(known_secrets(settings, os.environ))
    shown = str(settings.file or "no file, using the defaults")
    yield from _reports("settings", [Finding("settings", shown)])
    yield from _reports("state-folder", [machine.check_folder(settings.state_folder)], hide)
    facts = asyncio.run(gather(settings, dict(os.environ), here))
    for check in CHECKS:
        yield from _reports(check.id, found(check, facts), hide)


def found(check: DoctorCheck, facts: DoctorFacts) -> list[Finding]:
    """Return the findings of a check. An exception in it becomes a finding, too."""
    try:
        findings = list(check.find(facts))
    except Exception as error:
        # A boundary: a bug in one check must not stop the others.
        fact = f"this check failed with a bug: {type(error).__name__}: {error}"
        return [Finding(check.id, fact, "report this bug and quote this line", is_hint=True)]
    if not check.by_variables or not work.was_accepted(facts):
        return findings
    return [
        replace(one, fact=f"{one.fact} {_ELSEWHERE}", cure=_COMPARE, is_hint=True)
        if one.level is Level.WRONG
        else one
        for one in findings
    ]


def _reports(
    id_: str, findings: Iterable[Finding], hide: Redactor | None = None
) -> Iterator[DoctorReport]:
    for one in findings:
        fact = one.fact if hide is None else hide(one.fact)
        yield DoctorReport(id_, one.level, one.subject, fact, one.cure)
