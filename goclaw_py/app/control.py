"""Operator commands without a running gateway, directly on the database."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from goclaw_py.app.database import open_store
from goclaw_py.app.gateway_config import account_places, chat_accounts, heartbeat_setup, job_rules
from goclaw_py.app.progress import OnProgress, ignore_progress
from goclaw_py.config.models import Settings
from goclaw_py.config.secrets import known_secrets
from goclaw_py.core.redaction import Redactor
from goclaw_py.core.time.clocks import SharedClock
from goclaw_py.gateway.audit.log import StoredAuditLog
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.operations.control import Control
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.operations.settings.live import LiveSettings
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.records import Place
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.schedule.heartbeat.module import service_of


@asynccontextmanager
async def open_control(
    settings: Settings, *, create: bool, on_progress: OnProgress = ignore_progress
) -> AsyncIterator[Control]:
    """Open the database directly; starts the embedded server for as long as it is needed."""
    async with open_store(settings, create=create, on_progress=on_progress) as store:
        clock = SharedClock()
        begun_s = clock.begin()
        if (there := await store.time()) is not None:
            clock.read(there, begun_s)
        jobs = JobService(store, clock, job_rules(settings), gateway=store)
        heartbeats = service_of(store, clock, heartbeat_setup(settings), chat_accounts(settings))
        rules = partial(_chat_rules, settings)
        live = LiveSettings(settings, store, _Validator(settings))
        edits = SettingsService(live, store, clock)
        control = StoreControl(store, clock, jobs, heartbeats, chat_rules=rules, settings=edits)
        hide = Redactor(known_secrets(settings, os.environ))
        yield StoredAuditLog(store, clock, lambda: "", hide).control(control)


class _Validator:
    """Validates edited settings as a gateway does; there is nothing to apply them to."""

    def __init__(self, settings: Settings) -> None:
        self._base = settings

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Raise ``SettingError`` for what only the parts can validate."""
        if settings is not self._base:
            # Imported here, because most commands do not need it.
            from goclaw_py.app.parts import build_agents  # noqa: PLC0415

            build_agents(settings)
            _chat_rules(settings)
        return lambda: None

    async def finish(self) -> None:
        """Do nothing."""


def _chat_rules(settings: Settings) -> Mapping[Place, ChatRules]:
    """Return the chat rules; imported here because only ``goclaw why`` needs them."""
    from goclaw_py.app.parts import chat_rules  # noqa: PLC0415
    from goclaw_py.core.session_keys import CONSOLE  # noqa: PLC0415

    return chat_rules(settings, {place: place[0] == CONSOLE for place in account_places(settings)})
