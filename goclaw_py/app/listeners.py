"""The TCP listener of a gateway (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from goclaw_py.chat.channel import Hook
from goclaw_py.config import Settings, openid_secret, web_token
from goclaw_py.config.sign_in import GroupRules, WebProxy
from goclaw_py.core.actors import AccessRole
from goclaw_py.web.front import WebAccess
from goclaw_py.web.group_roles import GroupRoles
from goclaw_py.web.openid.client import OpenIdClient
from goclaw_py.web.proxies import TrustedProxy
from goclaw_py.web.tcp import CannotListen, listen_tcp

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebListener:
    """A listening socket, and the access rules of its API; None: only webhooks are served."""

    socket: socket.socket
    access: WebAccess | None

    def close(self) -> None:
        """Stop listening. Calling it again is harmless."""
        self.socket.close()


def listen_web(
    settings: Settings, hooks: Sequence[Hook], env: Mapping[str, str], say: Callable[[str], None]
) -> WebListener | None:
    """Listen at the address of ``[web]``; return None if there is nothing to serve.

    If the default address is already in use, the gateway starts anyway, and ``say`` reports it.
    Raises ``SettingError`` and ``CannotListen``.
    """
    web = settings.web
    serves_api = web.serves_api(has_hooks=bool(hooks))
    if not hooks and not serves_api:
        return None
    access = None
    if serves_api:
        token = web_token(settings, env)
        url = (web.public_url or "").rstrip("/")
        names = filter(None, (*web.hosts, urlsplit(url).hostname))
        secret = "" if token is None else token.get_secret_value()
        access = WebAccess(
            web.host,
            tuple(names),
            secret,
            public_url=url,
            proxy=trusted_proxy(web.proxy),
            openid=openid_client(settings, env),
        )
    try:
        return WebListener(listen_tcp(web.host, web.port), access)
    except CannotListen as error:
        if hooks or not web.is_chance:
            raise
        log.warning("dashboard_unavailable", extra={"error": str(error)})
        say(f"The dashboard is not available: {error}.")
        return None


def trusted_proxy(given: WebProxy) -> TrustedProxy | None:
    """Return who is trusted to sign people in; None: nobody."""
    if not given.addresses:
        return None
    return TrustedProxy(
        given.addresses,
        _group_roles(given),
        user_header=given.user_header,
        groups_header=given.groups_header,
        sign_out_url=given.sign_out_url or "",
    )


def openid_client(settings: Settings, env: Mapping[str, str]) -> OpenIdClient | None:
    """Return how an OpenID provider knows us; None: there is none. Raises ``SettingError``."""
    given, secret = settings.web.openid, openid_secret(settings, env)
    if given.issuer is None or given.client_id is None:
        return None
    return OpenIdClient(
        issuer=given.issuer,
        client_id=given.client_id,
        public_url=(settings.web.public_url or "").rstrip("/"),
        secret="" if secret is None else secret.get_secret_value(),
        label=given.name,
        scopes=given.scopes,
        groups_claim=given.groups_claim,
        name_claim=given.name_claim,
        emails=given.emails,
        roles=_group_roles(given),
    )


def _group_roles(given: GroupRules) -> GroupRoles:
    groups = {
        AccessRole.ADMIN: frozenset(given.admin_groups),
        AccessRole.OPERATOR: frozenset(given.operator_groups),
        AccessRole.VIEWER: frozenset(given.viewer_groups),
    }
    return GroupRoles(groups, given.default_role, viewers_read_text=given.viewers_read_text)
