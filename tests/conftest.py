"""Virtual time for every asyncio test, unless it is marked ``real_time``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from goclaw_py.testing.loop import VirtualLoop

pytest_plugins = ["tests.support.postgres", "tests.support.stores"]


def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: half of the time tests wait for other processes."""
    return 2 * (os.cpu_count() or 1)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("real_time"):
        return {"real": asyncio.new_event_loop}
    factory: Any = VirtualLoop
    return {"virtual": factory}
