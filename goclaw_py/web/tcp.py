"""Listening at a TCP address, with errors that say what to do."""

from __future__ import annotations

import errno
import socket
from typing import Final

from goclaw_py.core.errors import GoclawError

_BACKLOG: Final = 128


class CannotListen(GoclawError):
    """The address in the settings cannot be used."""


def listen_tcp(host: str, port: int) -> socket.socket:
    """Listen at ``web.host`` and ``web.port``; port 0 is any free one.

    ``host`` is a name or an address. For a name with several addresses the first IPv4 one is used;
    ``::`` is every address of both kinds. Raises ``CannotListen``.
    """
    family, address = _resolve(host, port)
    both = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server(
            address, family=family, backlog=_BACKLOG, dualstack_ipv6=both
        )
    except OSError as error:
        raise CannotListen(_words(host, port, error)) from error
    # Every connection has it from here. Without it the end of an answer waits 40 ms for the
    # acknowledgement of its beginning: asyncio sees no TCP in a socket that was made like this.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.settimeout(0)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket, for people."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str | int | bytes, ...]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name that no encoding of DNS can hold is a UnicodeError.
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "this is not a host name"
        raise CannotListen(
            f"web.host = {host!r}: {reason}; set 127.0.0.1 or an address of this machine"
        ) from error
    family, *_, address = min(found, key=lambda one: one[0] is not socket.AF_INET)
    return family, address


def _words(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"web.port = {port}: another program already listens there; "
                "stop it, or set another port"
            )
        case errno.EADDRNOTAVAIL:
            return (
                f"web.host = {host!r}: this machine does not have this address; "
                "set 127.0.0.1 or an address of this machine"
            )
        case errno.EACCES | errno.EPERM:
            return (
                f"web.port = {port}: this user is not allowed to listen there; set a port of "
                "1024 or above, and use a reverse proxy in front of it"
            )
        case _:
            return f"cannot listen at web.host = {host!r}, web.port = {port}: {error.strerror}"
