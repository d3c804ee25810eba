"""Retries of HTTP requests to a model server (SPEC AGENT-8). Heavy imports."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from http import HTTPStatus

import httpx2
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.retries import AsyncHTTPX2TenacityTransport, RetryConfig, wait_retry_after
from tenacity import (
    RetryCallState,
    retry_if_exception_type,
    stop_before_delay,
    wait_exponential,
    wait_random,
)
from tenacity.stop import stop_base

from goclaw_py.agents.models.connection import RetryPolicy

_log = logging.getLogger(__name__)

CONNECT_S = 10.0

_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=50.0)
"""A stream holds a connection. The default would fail the 101st concurrent run, and close idle
connections after 5 s, so that most messages of people would wait for a new one."""

MORE_TRIES = 2
"""Tries of each request in a scheduled run that it has more than one of a chat.

Such a run is not repeated as a whole for what failed so often, and nobody waits for it."""

more_tries: ContextVar[int] = ContextVar("more_tries", default=0)
"""How many more tries the requests of the present run have."""

_LONGEST_WAIT_S = 86_400.0
_TRANSIENT = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
)


def timeout(retry: RetryPolicy) -> httpx2.Timeout:
    """Return the time limits of a request."""
    return httpx2.Timeout(retry.silence_s, connect=CONNECT_S, pool=CONNECT_S)


def retrying_client(retry: RetryPolicy) -> httpx2.AsyncClient:
    """Create an HTTP client that retries transient failures.

    A request that keeps failing ends with the server's last response, body included, so that the
    provider's library can distinguish a used-up quota from a busy server. Cancelling ends a wait.
    """
    config = RetryConfig(
        retry=retry_if_exception_type((httpx2.HTTPStatusError, httpx2.TransportError)),
        # Never capped to `within_s`: asking earlier than the server wants would only fail again.
        wait=wait_retry_after(
            fallback_strategy=wait_exponential(multiplier=retry.first_wait_s, max=30)
            + wait_random(0, retry.first_wait_s),
            max_wait=_LONGEST_WAIT_S,
        ),
        stop=_Tries(retry.tries) | stop_before_delay(retry.within_s),
        before_sleep=_note,
        retry_error_callback=_last_response,
    )
    transport = AsyncHTTPX2TenacityTransport(config, wrapped=_ReadFailures(limits=_LIMITS))
    return create_async_httpx2_client(timeout=timeout(retry), transport=transport)


class _Tries(stop_base):
    """Stops after a number of tries, which scheduled runs have more of."""

    def __init__(self, tries: int) -> None:
        self._tries = tries

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.attempt_number >= self._tries + more_tries.get()


class _ReadFailures(httpx2.AsyncHTTPTransport):
    """Raises transient failures after reading the provider's error text."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if _is_transient(response):
            response.request = request
            await response.aread()
            raise httpx2.HTTPStatusError("transient", request=request, response=response)
        return response


def _is_transient(response: httpx2.Response) -> bool:
    advice = response.headers.get("x-should-retry", "").lower()
    if advice in {"true", "false"}:
        return advice == "true" and response.is_error
    return response.status_code in _TRANSIENT or response.is_server_error


def _last_response(state: RetryCallState) -> httpx2.Response:
    """Return the response of the last try. Raises the error of a try without response."""
    assert state.outcome is not None
    error = state.outcome.exception()
    if isinstance(error, httpx2.HTTPStatusError):
        return error.response
    assert error is not None
    raise error


def _note(state: RetryCallState) -> None:
    assert state.outcome is not None
    error = state.outcome.exception()
    status = error.response.status_code if isinstance(error, httpx2.HTTPStatusError) else None
    _log.warning(
        "model_request_retry",
        extra={
            "status": status,
            "error": type(error).__name__,
            "attempt": state.attempt_number,
            "retry_in_s": round(state.upcoming_sleep, 1),
        },
    )
