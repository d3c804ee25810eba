"""The core computes; clocks are read in one place."""

from __future__ import annotations

import pytest

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
    "goclaw_py.runtime.clock": "the Clock",
    "goclaw_py.app.schema": "dates a migration before there is a gateway with a clock",
    "goclaw_py.cli.remote_jobs": "the desk of a gateway of this machine, seen from a command",
    "channels.console": "the default of a clock that can be given",
}

core = [module for module in modules() if module.is_in("goclaw_py.core")]


def wall_clock_reads(module: Module) -> list[str]:
    return [call for call in module.calls() if call.endswith(WALL_CLOCK)]


@pytest.mark.parametrize("module", core, ids=lambda module: module.name)
def test_the_core_imports_nothing_that_touches_the_world(module: Module) -> None:
    """SPEC QUEUE-12."""
    assert {name.partition(".")[0] for name in module.imports()} & IMPURE == set()


@pytest.mark.parametrize("module", core, ids=lambda module: module.name)
def test_the_core_reads_no_clock_and_no_file_and_prints_nothing(module: Module) -> None:
    """SPEC QUEUE-12."""
    assert [call for call in module.calls() if call in WORLD] == []
    assert wall_clock_reads(module) == []


def test_the_wall_clock_is_read_only_where_it_has_to_be() -> None:
    assert {m.name for m in modules() if wall_clock_reads(m)} <= READS_THE_WALL_CLOCK.keys()
    assert any(m.is_in("goclaw_py.runtime.clock") and wall_clock_reads(m) for m in modules())
