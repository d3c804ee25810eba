"""Reverse proxies in front of the gateway that sign people in (SPEC SEC-10).

Anybody can send their headers. So they count only if the peer of the TCP connection is a trusted
proxy; such a proxy removes what a browser sends under the same names.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable
from typing import Final

from starlette.types import Scope

from goclaw_py.core.actors import Actor
from goclaw_py.web.connections import address_of, header_values
from goclaw_py.web.group_roles import GroupRoles, is_name

log = logging.getLogger(__name__)

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORWARDED_FOR: Final = b"x-forwarded-for"
_VIA_PROXY: Final = "goclaw.via_proxy"
_MOST_LOGGED: Final = 100
"""Addresses of strangers whose headers are logged, each once."""


class ProxyRefusal(Exception):
    """A person whom a trusted proxy names is refused, with this status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class TrustedProxy:
    """Reads the headers of trusted proxies.

    Args:
        networks: Where the proxies are.
        user_header: The header with the name of the person.
        groups_header: The header with their groups, separated by commas.
        roles: The roles of groups.
        sign_out_url: Where people sign out; "" if it is not known.
    """

    def __init__(
        self,
        networks: Iterable[str],
        roles: GroupRoles,
        *,
        user_header: str = "Remote-User",
        groups_header: str = "Remote-Groups",
        sign_out_url: str = "",
    ) -> None:
        self._networks = [ipaddress.ip_network(each) for each in networks]
        self._roles = roles
        self._user = user_header.lower().encode()
        self._groups = groups_header.lower().encode()
        self.sign_out_url = sign_out_url
        self._logged = set[str]()

    def note_client(self, scope: Scope) -> None:
        """Note whether a request comes through a trusted proxy, and replace the client's address.

        Everything after this sees the address of whoever is behind the proxy.
        """
        client = scope.get("client")
        peer = None if client is None else _address(client[0])
        if peer is not None and self._trusts(peer):
            scope.setdefault("state", {})[_VIA_PROXY] = True
            behind = self._behind(peer, scope)
            if behind != peer:
                scope["client"] = str(behind), 0
        elif header_values(scope, self._user):
            self._log_ignored(address_of(scope))

    def person(self, scope: Scope) -> Actor | None:
        """Return the person whom the proxy names; None if it names nobody.

        Raises ``ProxyRefusal``.
        """
        if _VIA_PROXY not in scope.get("state", ()):
            return None
        user, groups = self._only(self._user, scope), self._only(self._groups, scope)
        if not user:
            return None
        if not is_name(user):
            raise ProxyRefusal(400, f"the header {self._user.decode()} is not a name")
        named = (each.strip() for each in groups.split(","))
        found = self._roles.person(user, filter(None, named), scope["client"][0])
        if found is None:
            text = f"{user} has no role here: no group of theirs is named in [web.proxy]"
            raise ProxyRefusal(403, text)
        return found

    def _only(self, name: bytes, scope: Scope) -> str:
        """Return a header; "" if it is missing. A repeated one is partly that of a stranger."""
        found = header_values(scope, name)
        if len(found) > 1:
            raise ProxyRefusal(400, f"the header {name.decode()} is repeated")
        try:
            return found[0].decode() if found else ""
        except UnicodeDecodeError as error:
            raise ProxyRefusal(400, f"the header {name.decode()} is not UTF-8") from error

    def _trusts(self, address: IPAddress) -> bool:
        return any(address in network for network in self._networks)

    def _behind(self, peer: IPAddress, scope: Scope) -> IPAddress:
        """Return the nearest hop that is no trusted proxy: those before it can say anything."""
        found = peer
        for hop in reversed(b",".join(header_values(scope, _FORWARDED_FOR)).split(b",")):
            address = _address(hop.strip().decode("latin-1"))
            if address is None:
                break
            found = address
            if not self._trusts(address):
                break
        return found

    def _log_ignored(self, address: str) -> None:
        if address not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(address)
            log.warning("proxy_headers_ignored", extra={"address": address})


def _address(text: str) -> IPAddress | None:
    """Return the address of a hop, without a port or zone; None if it is none."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
