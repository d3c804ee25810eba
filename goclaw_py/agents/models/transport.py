"""Retries of HTTP requests to a model server (SPEC AGENT-8). Heavy imports."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

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
from goclaw_py.agents.models.error_bodies import with_true_status
from goclaw_py.agents.models.responses.limits import ask_for_limited, limited
from goclaw_py.core.net.proxies import Proxy, proxy_for, tls_context

_log = logging.getLogger(__name__)

CONNECT_S = 10.0

_PROXY = "goclaw_proxy"
"""Marks errors and responses that came through a proxy, with what is known of it."""

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
    transport = AsyncHTTPX2TenacityTransport(config, wrapped=_ReadFailures(os.environ))
    return create_async_httpx2_client(timeout=timeout(retry), transport=transport)


class _Tries(stop_base):
    """Stops after a number of tries, which scheduled runs have more of."""

    def __init__(self, tries: int) -> None:
        self._tries = tries

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.attempt_number >= self._tries + more_tries.get()


class _ReadFailures(httpx2.AsyncHTTPTransport):
    """Raises transient failures after reading the provider's error text.

    The library reads no variables for proxies where it is given a transport, so this one sends a
    request through the proxy that the environment names for its server.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(verify=tls_context(), limits=_LIMITS)
        self._environ = environ
        self._routes: dict[tuple[str, str, int | None], Proxy | None] = {}
        self._through: dict[Proxy, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        server = (url.scheme, url.host, url.port)
        if server not in self._routes:
            self._routes[server] = self._proxy(request)
        proxy = self._routes[server]
        ask_for_limited(request)
        if proxy is None:
            response = await super().handle_async_request(request)
        else:
            response = await self._send_through(proxy, request)
        try:
            response = await with_true_status(limited(response))
            if _is_transient(response):
                response.request = request
                await response.aread()
                raise httpx2.HTTPStatusError("transient", request=request, response=response)
        except BaseException:
            await response.aclose()
            raise
        return response

    async def aclose(self) -> None:
        await super().aclose()
        for transport in self._through.values():
            await transport.aclose()

    def _proxy(self, request: httpx2.Request) -> Proxy | None:
        try:
            return proxy_for(str(request.url), self._environ)
        except ValueError as error:
            raise _named(httpx2.ProxyError("", request=request), str(error)) from None

    async def _send_through(self, proxy: Proxy, request: httpx2.Request) -> httpx2.Response:
        if proxy not in self._through:
            auth = (proxy.user, proxy.password) if proxy.has_credentials else None
            self._through[proxy] = httpx2.AsyncHTTPTransport(
                verify=tls_context(), limits=_LIMITS, proxy=httpx2.Proxy(proxy.address, auth=auth)
            )
        try:
            async with _closed_after_failure(request):
                response = await self._through[proxy].handle_async_request(request)
        except httpx2.TransportError as error:
            raise _named(error, _failure(proxy, str(error) or type(error).__name__)) from None
        except Exception as error:
            # A boundary: the library's SOCKS lets errors of its parts through, such as one about
            # a proxy that hangs up.
            words = _failure(proxy, type(error).__name__)
            raise _named(httpx2.ProxyError("", request=request), words) from None
        if response.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            await response.aclose()
            words = f"{proxy.credentials_problem}: HTTP 407"
            raise _named(httpx2.ProxyError("", request=request), words)
        if response.is_error:
            response.extensions[_PROXY] = f"through the proxy {proxy}"
        return response


@asynccontextmanager
async def _closed_after_failure(request: httpx2.Request) -> AsyncIterator[None]:
    """Close a new connection if a request fails: the library forgets one to a SOCKS proxy."""
    opened: list[Any] = []

    async def trace(event: str, facts: Mapping[str, Any]) -> None:
        if event.endswith("connect_tcp.complete"):
            opened.append(facts["return_value"])

    request.extensions = {**request.extensions, "trace": trace}
    try:
        yield
    except BaseException:
        for stream in opened:
            await stream.aclose()
        raise


def proxy_words(error: BaseException) -> str:
    """Return what an error or its causes know about a proxy; "" without one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(found := getattr(cause, _PROXY, None), str):
            return found
        response = getattr(cause, "response", None)
        if isinstance(response, httpx2.Response) and _PROXY in response.extensions:
            return str(response.extensions[_PROXY])
        cause = cause.__cause__
    return ""


def _failure(proxy: Proxy, reason: str) -> str:
    lower = reason.lower()
    if lower.startswith("407 ") or "username" in lower or "no acceptable methods" in lower:
        return proxy.credentials_problem
    return f"through the proxy {proxy}: {reason}"


def _named(error: httpx2.TransportError, words: str) -> httpx2.TransportError:
    """Mark an error: libraries of providers wrap it, and say only that there is no connection."""
    setattr(error, _PROXY, words)
    return error


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
