"""Where a gateway is reached over TCP, by the settings (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goclaw_py.config import Settings, web_token
from goclaw_py.ports.channel import Hook
from goclaw_py.web.front import Access
from goclaw_py.web.tcp import listen_tcp


@dataclass(frozen=True, slots=True)
class WebListener:
    """A socket that listens, and who may call the API there; None: nobody, only hooks are."""

    socket: socket.socket
    access: Access | None

    def close(self) -> None:
        """Stop listening. Calling it again is harmless."""
        self.socket.close()


def listen_web(
    settings: Settings, hooks: Sequence[Hook], env: Mapping[str, str]
) -> WebListener | None:
    """Listen at ``[web]`` if there is something to serve; None if there is not.

    Raises ``SettingError`` and ``CannotListen``.
    """
    web = settings.web
    if not hooks and not web.api:
        return None
    access = None
    if web.api:
        token = web_token(settings, env)
        access = Access(web.host, web.hosts, "" if token is None else token.get_secret_value())
    return WebListener(listen_tcp(web.host, web.port), access)
