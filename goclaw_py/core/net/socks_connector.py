"""Connections through a SOCKS5 proxy. The only module that uses aiohttp-socks (docs/adr/0042)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp_socks import (
    ProxyConnectionError,
    ProxyConnector,
    ProxyError,
    ProxyTimeoutError,
    ProxyType,
)

from goclaw_py.core.net.proxied_sessions import BEFORE_SENDING, ProxyFailed, proxy_failure
from goclaw_py.core.net.proxies import Proxy

if TYPE_CHECKING:
    from aiohttp import ClientRequest, ClientTimeout
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace


class SocksConnector(ProxyConnector):
    """The proxy also resolves the names of hosts. Raises ``ProxyFailed``."""

    def __init__(self, proxy: Proxy, connections: int) -> None:
        super().__init__(
            proxy.host,
            proxy.port,
            ProxyType.SOCKS5,
            proxy.user or None,
            proxy.password or None,
            rdns=True,
            limit=connections,
        )
        self._proxy = proxy

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109  the library's signature
    ) -> Connection:
        """Return a connection to the server of a request."""
        try:
            return await super().connect(req, traces, timeout)
        except ProxyTimeoutError:
            raise proxy_failure(self._proxy, TimeoutError()) from None
        except (ProxyConnectionError, ProxyError, *BEFORE_SENDING) as error:
            if "authentication" in str(error).lower():
                raise ProxyFailed(self._proxy.credentials_problem) from None
            raise proxy_failure(self._proxy, error) from None
