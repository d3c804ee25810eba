"""Trying again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    before_sleep_log,
    retry_if_exception_type,
    wait_exponential_jitter,
)

from goclaw_py.core.errors import StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

_STORE_WAIT = wait_exponential_jitter(multiplier=0.1, max=5, jitter=0.1)


async def until_available(operation: Callable[[], Awaitable[T]]) -> T:
    """Repeat a store operation while the database is away; any other error passes through.

    Only for operations that may be repeated after an unknown outcome. Waits 0.1 s at first, at most
    5 s. Cancel it to give up.
    """
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=_STORE_WAIT,
        before_sleep=before_sleep_log(log, logging.DEBUG),
        reraise=True,
    ):
        with attempt:
            return await operation()
    raise AssertionError("the retrying never ends without a result or an error")


def send_delay_s(failures: int, most_s: float) -> float:
    """How long to wait after the n-th failed try to send: 1 s doubling to ``most_s``, jittered."""
    state = RetryCallState(retry_object=AsyncRetrying(), fn=None, args=(), kwargs={})
    state.attempt_number = max(1, failures)
    return float(wait_exponential_jitter(multiplier=1, max=most_s, jitter=0.5)(state))
