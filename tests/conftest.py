"""What holds for all tests: virtual time, unless one is marked ``real_time``; patience.

``GOCLAW_HYPOTHESIS=deep`` tries many more random examples of each law.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import coverage
import pytest
from hypothesis import HealthCheck, settings

from goclaw_py.testing.loop import VirtualLoop

# A loaded machine is slow now and then; that is no property of the code.
_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

for _name, _examples in (("default", 100), ("deep", 4000)):
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, suppress_health_check=_SLOW_IS_FINE
    )
settings.load_profile(os.environ.get("GOCLAW_HYPOTHESIS", "default"))

pytest_plugins = ["tests.support.postgres", "tests.support.stores"]


def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: half of the time tests wait for other processes."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """Tests live until the end: a look for garbage need not look at thousands of them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what a worker has reached: xdist kills one that takes more than 10 s to end."""
    if hasattr(session.config, "workerinput") and (measured := coverage.Coverage.current()):
        measured.stop()
        measured.save()


def pytest_runtest_logfinish() -> None:
    if (apps := sys.modules.get("tests.support.apps")) is not None:
        apps.take_back_all()


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("real_time"):
        return {"real": asyncio.new_event_loop}
    factory: Any = VirtualLoop
    return {"virtual": factory}
