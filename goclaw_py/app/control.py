"""The operator's view without a gateway: the database alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from goclaw_py.app.database import open_store
from goclaw_py.app.jobs import job_rules
from goclaw_py.config.models import Settings
from goclaw_py.ports.control import Control
from goclaw_py.runtime.clock import SystemClock
from goclaw_py.runtime.control import StoreControl
from goclaw_py.runtime.jobs.desk import JobDesk


@asynccontextmanager
async def open_control(settings: Settings) -> AsyncIterator[Control]:
    """Work on the database directly; starts the embedded server for as long as it is needed."""
    async with open_store(settings) as store:
        clock = SystemClock()
        yield StoreControl(store, clock, JobDesk(store, clock, job_rules(settings)))
