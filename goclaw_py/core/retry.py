"""Retries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    before_sleep_log,
    retry_if_exception,
    retry_if_exception_type,
    stop_after_attempt,
    stop_never,
    wait_exponential,
    wait_exponential_jitter,
    wait_random,
)
from tenacity.wait import wait_base

from goclaw_py.core.errors import Fenced, StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

_STORE_WAIT = wait_exponential_jitter(multiplier=0.1, max=1, jitter=0.1)
_BUG_WAIT = wait_exponential(multiplier=1, max=30)
_ATTEMPT_WAIT = wait_exponential(multiplier=2, max=30)


async def retry_until_available(operation: Callable[[], Awaitable[T]]) -> T:
    """Repeat a store operation while the database is unavailable.

    Other errors are raised. Only for operations that may be repeated after an unknown outcome.
    Waits 0.1 s at first, at most about 1 s. Cancel it to give up.
    """
    try:
        # As a rule this is all; tenacity's bookkeeping costs as much time as a statement.
        return await operation()
    except StoreUnavailable as error:
        operation = _after(error, operation)
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=_STORE_WAIT,
        before_sleep=before_sleep_log(log, logging.DEBUG),
        reraise=True,
    ):
        with attempt:
            return await operation()
    raise AssertionError("the retrying never ends without a result or an error")


async def hedged(operation: Callable[[], Coroutine[Any, Any, T]], *, every_s: float) -> T:
    """Return the first result of an operation that is started again every ``every_s``.

    Only for operations that may be repeated after an unknown outcome. It fails with the error of
    the last attempt in progress; attempts whose result is not needed are cancelled.
    """
    under_way = {asyncio.create_task(operation())}
    try:
        while True:
            ended, under_way = await asyncio.wait(
                under_way, timeout=every_s, return_when=asyncio.FIRST_COMPLETED
            )
            answers = [one for one in ended if one.exception() is None]
            if answers or not under_way:
                return (answers or list(ended))[0].result()
            if not ended:
                under_way.add(asyncio.create_task(operation()))
    finally:
        for one in under_way:
            one.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def until_stored(
    operation: Callable[[], Awaitable[None]],
    facts: Mapping[str, object],
    *,
    tries: int | None = None,
) -> None:
    """Repeat a store operation after any error except ``Fenced``; log errors with ``facts``.

    For writes without which something would wait until a restart; they must be repeatable after an
    unknown outcome. While the database is unavailable it waits like ``retry_until_available``;
    after other errors 1 s, doubling to 30 s. ``tries`` limits the other errors: the last one is
    raised. Cancel it to give up.
    """

    def log_retry(state: RetryCallState) -> None:
        error = None if state.outcome is None else state.outcome.exception()
        again = {**facts, "attempt": state.attempt_number, "retry_in_s": state.upcoming_sleep}
        log.error("store_write_retry", extra=again, exc_info=error)

    try:
        await retry_until_available(operation)
    except Fenced:
        raise
    except Exception as error:
        operation = _after(error, operation)
    else:
        return
    async for attempt in AsyncRetrying(
        retry=retry_if_exception(_is_bug),
        wait=_BUG_WAIT,
        stop=stop_never if tries is None else stop_after_attempt(tries),
        before_sleep=log_retry,
        reraise=True,
    ):
        with attempt:
            await retry_until_available(operation)


def _after(failed: Exception, operation: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Return an operation whose first call raises the error of an earlier attempt."""
    tried = [failed]

    async def again() -> T:
        if tried:
            raise tried.pop()
        return await operation()

    return again


def _is_bug(error: BaseException) -> bool:
    return isinstance(error, Exception) and not isinstance(error, Fenced)


def attempt_delay_s(failures: int) -> float:
    """Return the delay after the n-th failed attempt: 2 s doubling to 30 s, ± 25 %.

    Source: SPEC CRON-7; goclaw's document, *Retry*.
    """
    base_s = _wait_s(_ATTEMPT_WAIT, failures)
    return _wait_s(wait_random(0.75 * base_s, 1.25 * base_s), failures)


def send_delay_s(failures: int, most_s: float) -> float:
    """Return the delay after the n-th failed send: 1 s doubling to ``most_s``, with jitter."""
    return _wait_s(wait_exponential_jitter(multiplier=1, max=most_s, jitter=0.5), failures)


def _wait_s(wait: wait_base, failures: int) -> float:
    state = RetryCallState(retry_object=AsyncRetrying(), fn=None, args=(), kwargs={})
    state.attempt_number = max(1, failures)
    return float(wait(state))
