"""Rules compute; shells act; clocks are read in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tests.architecture.sources import Module, modules, nouns

IMPURE = {
    "asyncio",
    "builtins",
    "concurrent",
    "contextvars",
    "importlib",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "queue",
    "random",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "warnings",
}
WALL_CLOCK = ("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time")
WORLD = ("open", "print", "input", "exec", "eval", "__import__", "uuid4", "uuid.uuid4")

READS_THE_WALL_CLOCK = {
    "goclaw_py.core.time.clocks": "the Clock",
    "goclaw_py.app.schema": "dates a migration before there is a gateway with a clock",
    "channels.console": "the default of a clock that can be given",
}

PURE = {
    "chat": (
        "access.access_texts outbound.approval_texts outbound.ok_token "
        "outbound.rate_limit outbound.texts outbound.wait_texts rasters stop.plan"
    ),
    "core": (
        "approvals budget chat_commands command_text containers display_names errors ids "
        "markdown markdown.blocks markdown.emphasis markdown.html_tags markdown.links "
        "markdown.literals markdown.pairs markdown.tables messages net.database_url "
        "net.proxies outcomes pagination redaction run_events run_steps session_keys storable "
        "targets text time.datetimes time.durations time.texts time.zones values web_links "
        "workspace.paths"
    ),
    "observability": "log_lines readiness",
    "runs": "events.buffer events.live speakers step_views thoughts usage_report",
    "schedule": (
        "cron.describe cron.expression cron.parser forecast forecast_models heartbeat.active_hours "
        "heartbeat.chat_texts heartbeat.checklist.checklist heartbeat.checklist.intervals "
        "heartbeat.checklist.lines heartbeat.checklist.parser heartbeat.decisions heartbeat.grid "
        "heartbeat.models heartbeat.mute heartbeat.status_texts heartbeat.target "
        "heartbeat.texts heartbeat.views jitter jobs.decisions jobs.execution_models "
        "jobs.job_json jobs.job_rules jobs.models jobs.policy jobs.reminders jobs.schedule "
        "jobs.texts jobs.view_texts models"
    ),
    "scheduler": (
        "admission child_runs debounce effects lanes models operator_warnings run_views scheduler "
        "snapshots state_machine states texts timeouts timer_heap views"
    ),
}
"""Records and rules by feature: no I/O, no clock, no asyncio, no logging. The rest are shells."""

SEE_RECORDS_ONLY = (
    "operations", "records", "store", "agents", "schedule.sources", "web", "config", "testing",
)  # fmt: skip
"""Packages that features reach by protocols. They see records and rules of them, never a shell."""

PROTOCOLS = {
    "goclaw_py.chat.channel",
    "goclaw_py.chat.terminals",
    "goclaw_py.core.time.clock",
    "goclaw_py.runs.agent_loop",
    "goclaw_py.runs.toolbox",
}
"""What a channel, an agent loop, its tools and a clock are to the features."""

OF_ALL = {
    "goclaw_py.core.actors",
    "goclaw_py.core.concurrency",
    "goclaw_py.core.net.proxied_sessions",
    "goclaw_py.core.retry",
    "goclaw_py.core.time.machine_zone",
    "goclaw_py.core.workspace.files",
}
"""Shells of no feature: who acts, threads, HTTP sessions, retries, files, the machine's zone."""

NAMES = {module.name for module in modules()}
PURE_NAMES = {
    f"goclaw_py.{package}.{name}" for package, names in PURE.items() for name in names.split()
}
SEEN = PURE_NAMES | PROTOCOLS | OF_ALL
FEATURES = tuple(f"goclaw_py.{package}" for package in (*PURE, "cluster", "gateway"))
SOURCES = "goclaw_py.schedule.sources"
pure = [module for module in modules() if module.name in PURE_NAMES]
behind_ports = [
    module
    for module in modules()
    if module.is_in(*(f"goclaw_py.{one}" for one in SEE_RECORDS_ONLY))
    # A folder of `operations` is all that operators do with one noun: not a protocol, but its only
    # implementation, with its routes, commands and page.
    and not module.is_in(*nouns())
]


def ours(module: Module) -> set[str]:
    """Modules of features that it imports, also by ``from package import module``."""
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & NAMES
            found |= inner or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith(FEATURES) and not name.startswith(SOURCES)}


def shells_seen_by(importers: Iterable[Module]) -> list[tuple[str, str]]:
    return [(m.name, name) for m in importers for name in sorted(ours(m) - SEEN)]


def wall_clock_reads(module: Module) -> list[str]:
    return [call for call in module.calls() if call.endswith(WALL_CLOCK)]


def test_a_rule_imports_nothing_that_touches_the_world() -> None:
    """SPEC QUEUE-12."""
    imported = [(m.name, name) for m in pure for name in m.imports()]
    assert [one for one in imported if one[1].partition(".")[0] in IMPURE] == []
    assert shells_seen_by(pure) == []


def test_a_rule_reads_no_clock_and_no_file_and_prints_nothing() -> None:
    """SPEC QUEUE-12."""
    assert [(m.name, call) for m in pure for call in m.calls() if call in WORLD] == []
    assert [(m.name, call) for m in pure for call in wall_clock_reads(m)] == []


def test_what_stands_behind_a_port_sees_no_shell() -> None:
    assert shells_seen_by(behind_ports) == []


def test_every_pure_module_exists() -> None:
    assert {module.name for module in pure} == PURE_NAMES


def test_the_wall_clock_is_read_only_where_it_has_to_be() -> None:
    assert {m.name for m in modules() if wall_clock_reads(m)} <= READS_THE_WALL_CLOCK.keys()
    assert any(m.is_in("goclaw_py.core.time.clocks") and wall_clock_reads(m) for m in modules())
