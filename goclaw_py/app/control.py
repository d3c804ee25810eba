"""Operator commands without a running gateway, directly on the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from goclaw_py.app.database import open_store
from goclaw_py.app.gateway_config import account_places, heartbeat_setup, job_rules
from goclaw_py.app.progress import Tell, untold
from goclaw_py.chats.session_settings import ChatRules
from goclaw_py.common.clock import SharedClock
from goclaw_py.config.models import Settings
from goclaw_py.gateway.service import StoreControl
from goclaw_py.heartbeat.module import service_of
from goclaw_py.jobs.service import GatewayJobService
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import Place


@asynccontextmanager
async def open_control(
    settings: Settings, *, create: bool, tell: Tell = untold
) -> AsyncIterator[Control]:
    """Open the database directly; starts the embedded server for as long as it is needed."""
    async with open_store(settings, create=create, tell=tell) as store:
        clock = SharedClock()
        begun_s = clock.begin()
        if (there := await store.time()) is not None:
            clock.read(there, begun_s)
        jobs = GatewayJobService(store, clock, job_rules(settings), chats=store)
        heartbeats = service_of(store, clock, heartbeat_setup(settings), account_places(settings))
        rules = partial(_chat_rules, settings)
        yield StoreControl(store, clock, jobs, heartbeats, chat_rules=rules)


def _chat_rules(settings: Settings) -> Mapping[Place, ChatRules]:
    """Return the chat rules; imported here because only ``goclaw why`` needs them."""
    from goclaw_py.app.parts import CONSOLE, chat_rules  # noqa: PLC0415

    return chat_rules(settings, {place: place[0] == CONSOLE for place in account_places(settings)})
