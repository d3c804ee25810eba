"""Rules compute; shells act; clocks are read in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tests.architecture.sources import Module, modules

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
    "goclaw_py.cli.client.jobs": "the desk of a gateway of this machine, seen from a command",
    "channels.console": "the default of a clock that can be given",
}

PURE = {
    "chats": "access_texts",
    "common": (
        "database_url datetimes dst durations formatting histogram jitter lru markdown "
        "markdown.blocks "
        "markdown.emphasis markdown.html_tags markdown.links markdown.literals markdown.pairs "
        "markdown.tables "
        "proxies rasters redaction storable text thoughts time_texts timezones"
    ),
    "delivery": "approval_texts help_text ok_token rate_limit texts wait_texts",
    "heartbeat": (
        "active_hours chat_texts checklist.checklist checklist.intervals "
        "checklist.lines checklist.parser decisions models mute "
        "status_texts target texts views"
    ),
    "jobs": (
        "cron.describe cron.expression cron.parser decisions "
        "execution_models job_json models policy reminders schedule texts view_texts"
    ),
    "scheduled_work": "models",
    "model": (
        "approvals budget chat_commands command_text display_names errors explanation ids messages "
        "outcomes owners pagination pairing_codes routes run_events run_steps session_keys targets "
        "tokens values web_links workspace_paths"
    ),
    "observability": "readiness",
    "runs": "event_buffer live_events speakers step_views usage_report",
    "scheduler": (
        "admission child_runs debounce effects lanes models run_views scheduler snapshots "
        "state_machine states texts timeouts timer_heap views"
    ),
}
"""Records and rules by feature: no I/O, no clock, no asyncio, no logging. The rest are shells."""

SEE_RECORDS_ONLY = ("ports", "store", "agents", "tools", "sources", "web", "config", "testing")
"""Packages that stand behind ports. Of features they see records and rules, never a shell."""

CONNECTS = {"goclaw_py.core.net.proxied_sessions", "goclaw_py.core.actors"}
"""Shells of no feature: for those who speak HTTP, and for those who need to know who acts."""

NAMES = {module.name for module in modules()}
PURE_NAMES = {
    f"goclaw_py.{package}.{name}" for package, names in PURE.items() for name in names.split()
}
FEATURES = tuple(f"goclaw_py.{package}" for package in (*PURE, "cluster", "gateway"))
pure = [module for module in modules() if module.name in PURE_NAMES]
behind_ports = [m for m in modules() if m.is_in(*(f"goclaw_py.{one}" for one in SEE_RECORDS_ONLY))]


def ours(module: Module) -> set[str]:
    """Modules of features that it imports, also by ``from package import module``."""
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & NAMES
            found |= inner or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith(FEATURES)}


def shells_seen_by(importers: Iterable[Module]) -> list[tuple[str, str]]:
    return [(m.name, name) for m in importers for name in sorted(ours(m) - PURE_NAMES - CONNECTS)]


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
