"""Which proxy a connection goes through, and what may be shown of it (SPEC CHAN-15, SEC-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from goclaw_py.core.redaction import HIDDEN

if TYPE_CHECKING:
    from ssl import SSLContext

_SCHEMES: Final = {"http": "http", "socks": "socks5", "socks5": "socks5", "socks5h": "socks5"}
"""Desktops write ``socks``. With each of them the proxy resolves the names of hosts: where a
service is blocked, the names of its hosts often are, too."""
_PORTS: Final = {"http": 80, "socks5": 1080, "https": 443}
_MOST_OF_SOCKS: Final = 255
_SOCKS_SENDS: Final = (
    f"must have a user name and a password of at most {_MOST_OF_SOCKS} ASCII signs, for SOCKS5"
)
_ALLOWED: Final = (
    "must be an http or socks5 proxy, such as http://proxy.example:3128 or "
    "socks5://user:password@proxy.example:1080 (in a password, @ is %40, / is %2F and # is %23)"
)


@cache
def tls_context() -> SSLContext:
    """Return the context of all connections over httpx2, made at its first use.

    Reading the certificates of all authorities takes 25 ms, and each context keeps a copy of them.
    """
    # Imported late: who has no model over HTTP needs no client.
    import httpx2  # noqa: PLC0415

    return httpx2.create_ssl_context()


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy. ``variable`` is the one that names it; "" for a setting."""

    scheme: str
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    variable: str = ""

    @property
    def address(self) -> str:
        """Return the address without user name and password."""
        return f"{self.scheme}://{self._place}"

    @property
    def has_credentials(self) -> bool:
        """Return whether there is a user name or a password."""
        return bool(self.user or self.password)

    @property
    def credentials_problem(self) -> str:
        """Return what is wrong if it asks for user name and password, or refuses them."""
        verb = "does not accept the" if self.has_credentials else "needs a"
        return f"the proxy {self} {verb} user name and password"

    def __str__(self) -> str:
        """Return the address with masked credentials, and the variable."""
        masked = f"{HIDDEN}@" if self.has_credentials else ""
        named = f" ({self.variable})" if self.variable else ""
        return f"{self.scheme}://{masked}{self._place}{named}"

    @property
    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_proxy(text: str, variable: str = "") -> Proxy:
    """Parse a proxy; without a scheme it is ``http``.

    Raises ``ValueError`` with what is allowed, which never quotes the text.
    """
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise ValueError(_ALLOWED) from None
    scheme = _SCHEMES.get(parts.scheme)
    is_bare = parts.path in {"", "/"} and not parts.query and not parts.fragment
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if (
        scheme is None
        or not parts.hostname
        or port == 0
        or not is_bare
        or not text.isprintable()
        or " " in text
        or ":" in user
    ):
        raise ValueError(_ALLOWED)
    if scheme == "socks5" and not all(
        word.isascii() and len(word) <= _MOST_OF_SOCKS for word in (user, password)
    ):
        raise ValueError(_SOCKS_SENDS)
    return Proxy(scheme, parts.hostname, port or _PORTS[scheme], user, password, variable)


def proxy_for(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment names for an address; None for a direct connection.

    Reads HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in lower case first. This machine itself
    is never behind a proxy. Raises ``ValueError``, which names the variable.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    variable = _first(environ, f"{parts.scheme}_proxy") or _first(environ, "all_proxy")
    if variable is None or is_loopback(host):
        return None
    port = parts.port or _PORTS.get(parts.scheme)
    excepted = _first(environ, "no_proxy")
    if excepted is not None and _is_excepted(host, port, environ[excepted]):
        return None
    try:
        return read_proxy(environ[variable], variable)
    except ValueError as error:
        raise ValueError(f"the variable {variable} {error}") from None


def is_loopback(host: str) -> bool:
    """Return whether this is a name or an address of this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _first(environ: Mapping[str, str], name: str) -> str | None:
    """Return the spelling of a variable that has a value; an empty one in lower case wins, too."""
    spelling = name if name in environ else name.upper()
    return spelling if environ.get(spelling, "").strip() else None


def _is_excepted(host: str, port: int | None, names: str) -> bool:
    """Return whether NO_PROXY has a host: by name, domain, address, network, or with a port."""
    for name in names.lower().replace(",", " ").split():
        if name == "*" or _is_in_network(host, name):
            return True
        domain = name.removeprefix("*").lstrip(".")
        if domain and any(
            place == domain or place.endswith(f".{domain}") for place in (host, f"{host}:{port}")
        ):
            return True
    return False


def _is_in_network(host: str, name: str) -> bool:
    try:
        return ip_address(host) in ip_network(name.strip("[]"), strict=False)
    except ValueError:
        return False
