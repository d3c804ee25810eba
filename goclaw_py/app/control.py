"""The operator's view without a gateway: the database alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from goclaw_py.app.database import open_store
from goclaw_py.app.heartbeat import heartbeat_setup
from goclaw_py.app.jobs import account_places, job_rules
from goclaw_py.config.models import Settings
from goclaw_py.ports.control import Control
from goclaw_py.runtime.clock import SharedClock
from goclaw_py.runtime.control import StoreControl
from goclaw_py.runtime.heartbeat.service import desk_of
from goclaw_py.runtime.jobs.desk import JobDesk


@asynccontextmanager
async def open_control(settings: Settings, *, create: bool) -> AsyncIterator[Control]:
    """Work on the database directly; starts the embedded server for as long as it is needed."""
    async with open_store(settings, create=create) as store:
        clock = SharedClock()
        begun_s = clock.begin()
        if (there := await store.time()) is not None:
            clock.read(there, begun_s)
        jobs = JobDesk(store, clock, job_rules(settings), chats=store)
        beats = desk_of(store, clock, heartbeat_setup(settings), account_places(settings))
        yield StoreControl(store, clock, jobs, beats)
