"""Forgets what is too old, now and then (SPEC DB-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from goclaw_py.core.errors import StoreUnavailable

log = logging.getLogger(__name__)

_TIDY_S = 3600.0
_TIDY_STEPS = 20


async def keep_tidy(sweep: Callable[[], Awaitable[int]]) -> None:
    """Sweep in steps, each of which says how much went. Runs until cancelled."""
    while True:
        await asyncio.sleep(_TIDY_S)
        try:
            for _ in range(_TIDY_STEPS):
                if not await sweep():
                    break
        except StoreUnavailable as error:
            log.debug("tidying waits for the database: %s", error)
