"""What holds for all tests: which ones are slow, virtual time, and how many random examples.

Tests run in virtual time unless they are marked ``real_time``. ``HYPOTHESIS_PROFILE`` names how
many random examples each property gets: ``quick`` (the default), ``thorough`` or ``deep``.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import HealthCheck, settings

from goclaw_py.testing.loop import VirtualLoop

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts jobs in the background so, and all that they start would ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A loaded machine is slow now and then; that is no property of the code.
_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

for _name, _examples in (("quick", 25), ("thorough", 100), ("deep", 4000)):
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, suppress_health_check=_SLOW_IS_FINE
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# On a loaded machine a command may take seconds. What it would then write is no part of its result.
os.environ["GOCLAW_PROGRESS"] = "off"

# Tests connect to this machine only, and those of proxies name their own.
for _name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
    os.environ.pop(_name, None)
    os.environ.pop(_name.upper(), None)

pytest_plugins = ["tests.support.postgres", "tests.support.stores"]


SLOW = (
    "browser",
    "chaos",
    "deploy",
    "e2e",
    "integration/test_api_schema.py",
    "integration/test_embedded.py",
    "integration/test_embedded_places.py",
    "integration/test_embedded_rights.py",
    "integration/test_models_mcp.py",
    "property/test_mutations.py",
    "simulation",
    "tools/test_faults.py",
    "unit/bench",
)
"""Folders and files whose tests ``make test`` leaves to ``make check``, except ``smoke`` ones."""

_TESTS = Path(__file__).parent
_SLOW_PATHS = frozenset(_TESTS / name for name in SLOW)


@cache
def _is_slow(path: Path) -> bool:
    return not _SLOW_PATHS.isdisjoint([path, *path.parents])


def pytest_configure() -> None:
    # Collecting makes a million objects that live until the end: none is garbage.
    gc.disable()
    # Every log line that a test passes is made: one with a fact of a reserved name would raise.
    # The option of pytest would set this three times for each test.
    logging.getLogger().setLevel(logging.INFO)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_slow(item.path) and item.get_closest_marker("smoke") is None:
            item.add_marker("slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what ``make test`` leaves out: slow tests need the largest libraries."""
    leaves_out = config.option.markexpr == "not slow" and collection_path.name.startswith("test_")
    if leaves_out and _is_slow(collection_path):
        return "mark.smoke" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: half of the time tests wait for other processes."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what a worker has reached: xdist kills one that takes more than 10 s to end."""
    if hasattr(session.config, "workerinput") and (measured := coverage.Coverage.current()):
        measured.stop()
        measured.save()


def pytest_runtest_logfinish() -> None:
    if (apps := sys.modules.get("tests.support.apps")) is not None:
        apps.reclaim_all()


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("real_time"):
        return {"real": asyncio.new_event_loop}
    factory: Any = VirtualLoop
    return {"virtual": factory}
