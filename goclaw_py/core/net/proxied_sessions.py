"""HTTP sessions of aiohttp, direct or through a proxy."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from goclaw_py.core.net.proxies import Proxy

if TYPE_CHECKING:
    from aiohttp import ClientRequest, ClientTimeout
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

BEFORE_SENDING: Final = (aiohttp.ClientError, OSError)
"""What a connector raises, among it ``TimeoutError``, while nothing is sent yet."""


class ProxyFailed(aiohttp.ClientConnectionError):
    """A proxy gave no connection, so nothing was sent. The text names it, without credentials."""


def proxied_session(
    proxy: Proxy | None, *, connections: int = 100, **options: Any
) -> aiohttp.ClientSession:
    """Create a session with at most so many connections, all of them through the proxy.

    With a proxy, ``ProxyFailed`` stands for each failure before a request is sent.
    """
    if proxy is None:
        connector = aiohttp.TCPConnector(limit=connections)
    elif proxy.scheme == "http":
        connector = _HttpProxyConnector(proxy, connections)
        options["proxy"] = proxy.address
    else:
        # Only for those who use it: it costs time and memory at the start.
        from goclaw_py.core.net.socks_connector import SocksConnector  # noqa: PLC0415

        connector = SocksConnector(proxy, connections)
    return aiohttp.ClientSession(connector=connector, **options)


def proxy_refusal(proxy: Proxy, status: int) -> str:
    """Return what an error status of the proxy itself means."""
    if status != 407:
        return f"the proxy {proxy} refuses the connection: HTTP {status}"
    return f"{proxy.credentials_problem}: HTTP 407"


def proxy_failure(proxy: Proxy, error: Exception) -> ProxyFailed:
    """Return our error for one that a connector has raised."""
    match error:
        case aiohttp.ClientHttpProxyError():
            words = proxy_refusal(proxy, error.status)
        case aiohttp.ClientProxyConnectionError():
            reason = error.os_error.strerror or type(error.os_error).__name__
            words = f"the proxy {proxy} cannot be reached: {reason}"
        case TimeoutError():
            words = f"the proxy {proxy} gives no connection in time"
        case _:
            reason = " ".join(str(error).split()) or type(error).__name__
            words = f"the proxy {proxy} gives no connection: {reason}"
    return ProxyFailed(words)


class _HttpProxyConnector(aiohttp.TCPConnector):
    def __init__(self, proxy: Proxy, connections: int) -> None:
        super().__init__(limit=connections)
        self._proxy = proxy
        self._headers: dict[str, str] = {}
        if proxy.has_credentials:
            credentials = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
            self._headers["Proxy-Authorization"] = f"Basic {credentials}"

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109  the library's signature
    ) -> Connection:
        # The library would send the headers of all requests, among them a server's token, to the
        # proxy that is asked for a tunnel. Without a tunnel the request itself has the credentials.
        req.proxy_headers = type(req.headers)(self._headers)
        if not req.is_ssl():
            req.headers.update(self._headers)
        try:
            return await super().connect(req, traces, timeout)
        except BEFORE_SENDING as error:
            raise proxy_failure(self._proxy, error) from None
