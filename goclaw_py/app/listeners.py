"""Where a gateway is reached over TCP, by the settings (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from goclaw_py.config import Settings, web_token
from goclaw_py.ports.channel import Hook
from goclaw_py.web.front import WebAccess
from goclaw_py.web.tcp import CannotListen, listen_tcp

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebListener:
    """A socket that listens, and who may call the API there; None: nobody, only hooks are."""

    socket: socket.socket
    access: WebAccess | None

    def close(self) -> None:
        """Stop listening. Calling it again is harmless."""
        self.socket.close()


def listen_web(
    settings: Settings, hooks: Sequence[Hook], env: Mapping[str, str], say: Callable[[str], None]
) -> WebListener | None:
    """Listen at ``[web]`` if there is something to serve; None if there is not.

    Where nothing is set, an address that is taken is no reason not to start: ``say`` tells it.
    Raises ``SettingError`` and ``CannotListen``.
    """
    web = settings.web
    serves_api = web.serves_api(has_hooks=bool(hooks))
    if not hooks and not serves_api:
        return None
    access = None
    if serves_api:
        token = web_token(settings, env)
        access = WebAccess(web.host, web.hosts, "" if token is None else token.get_secret_value())
    try:
        return WebListener(listen_tcp(web.host, web.port), access)
    except CannotListen as error:
        if hooks or not web.is_chance:
            raise
        log.warning("dashboard_unavailable", extra={"error": str(error)})
        say(f"There is no dashboard: {error}.")
        return None
