"""Which connections and event streams a server keeps, and which of them make room for others.

Anybody can connect, and say for as long as they like nothing, half of a request, or that they do
not read the answer. Whoever waits like that makes room for new ones, the oldest first, so that no
number of them keeps out the operator, a hook or a probe (SPEC SEC-5).

The rules of SPEC SEC-5:

No number of connections keeps out who may come in. Of the 512 connections of a server (fewer if
the process may not open 1,088 files) a quarter is only for *known* ones, over which a request with
the token, a sign-in or a hook that accepted it has come; an address (of IPv6: its /64) has 64
others. A new connection beyond that ends the one that waits longest: it has sent no request, half
of a head or body, or does not read its answer; first one of the same address, then others, known
ones last. A request in progress is never ended for another one; if all are in progress, a new one
gets 503. A head has 10 s, the body of an unknown peer and an answer that is not read on 30 s; an
idle connection is kept for 130 s if it is known, else for 5 s. Event streams: half as many as
connections, half of these for one address, else 503.
"""

from __future__ import annotations

import ipaddress
import resource
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

MOST_CONNECTIONS: Final = 512
"""The number of strangers' connections, if the process may open enough files."""

FRESH_S: Final = 1.0
"""Seconds for which one more connection of a peer than it should have is not evicted for that."""

_OTHER_FILES: Final = 64
"""The files that a gateway needs for everything else."""

_FEWEST: Final = 8
_KNOWN: Final = "goclaw.known"
_STREAMS: Final = "goclaw.streams"


def most_connections() -> int:
    """Return how many connections a server of this process may have."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(max((files - _OTHER_FILES) // 2, _FEWEST), MOST_CONNECTIONS)


def address_of(scope: Mapping[str, Any]) -> str:
    """Return the address of the client of a request; "" if it has none, as over a local socket."""
    client = scope.get("client")
    return client[0] if client else ""


def header_values(scope: Mapping[str, Any], name: bytes) -> list[bytes]:
    """Return all values of a header, whose name is in lower case, without blanks around them."""
    return [value.strip(b" \t") for key, value in scope["headers"] if key.lower() == name]


def peer_of(client: tuple[str, int] | None) -> str:
    """Return who has an address: of IPv6 all addresses of a network are one, anybody has them."""
    if client is None:
        return ""
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return client[0]
    if isinstance(address, ipaddress.IPv4Address):
        return client[0]
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def note_known(scope: MutableMapping[str, Any]) -> None:
    """Note that a request is from somebody who may: its connection makes room last."""
    scope.setdefault("state", {})[_KNOWN] = True


def is_known(scope: Mapping[str, Any]) -> bool:
    """Return whether this was noted."""
    return _KNOWN in scope.get("state", ())


class PeerConnection(Protocol):
    """A connection of a server."""

    peer: str

    @property
    def is_known(self) -> bool:
        """Return whether a request came over it that was accepted as somebody's who may."""

    def evict(self) -> None:
        """End it at once."""


class Connections:
    """All connections of a server.

    Of ``most`` a quarter is only for known ones, and a peer has an eighth without being known. One
    that waits is evicted for a new one: first those of the same peer, then unknown ones. Times are
    those of the event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_unknown = most - most // 4
        self._most_of_peer = most // 8
        self._all: set[PeerConnection] = set()
        self._waiting: dict[PeerConnection, float] = {}
        """Those for which nothing is done, and since when; the one that waits longest is first."""

    def add(self, new: PeerConnection, now: float) -> bool:
        """Add a connection; return False if there is no room for it."""
        if len(self._all) >= self._most_of_peer and not self._make_room(new.peer, now):
            return False
        self._all.add(new)
        self._waiting[new] = now
        return True

    def remove(self, connection: PeerConnection) -> None:
        """Forget a connection."""
        self._all.discard(connection)
        self._waiting.pop(connection, None)

    def begin_work(self, connection: PeerConnection) -> None:
        """Note that a request is complete, and the gateway works on it."""
        self._waiting.pop(connection, None)

    def begin_wait(self, connection: PeerConnection, now: float) -> None:
        """Note that the next step is the peer's: it has its answer, or has to read it."""
        if connection in self._all:
            self._waiting.pop(connection, None)
            self._waiting[connection] = now

    def _make_room(self, peer: str, now: float) -> bool:
        unknown = [one for one in self._all if not one.is_known]
        is_full = len(unknown) >= self._most_unknown or len(self._all) >= self._most

        def is_of_peer(one: PeerConnection) -> bool:
            # A proxy may open a hundred at once, each for a request that is about to come.
            is_over = is_full or now - self._waiting[one] > FRESH_S
            return one.peer == peer and not one.is_known and is_over

        is_crowd = sum(one.peer == peer for one in unknown) >= self._most_of_peer
        if (is_crowd and self._evict(is_of_peer)) or not is_full:
            return True
        if self._evict(lambda one: not one.is_known) or len(self._all) < self._most:
            return True
        return self._evict(lambda _: True)

    def _evict(self, may_go: Callable[[PeerConnection], bool]) -> bool:
        found = next(filter(may_go, self._waiting), None)
        if found is None:
            return False
        self.remove(found)
        found.evict()
        return True


class Streams:
    """The event streams of a server. Each holds a connection, and browsers open them again."""

    def __init__(self, most: int) -> None:
        self._most = most // 2
        self._most_of_peer = max(most // 4, 1)
        self._open: Counter[str] = Counter()

    @contextmanager
    def room_for(self, peer: str) -> Iterator[bool]:
        """Count a stream while it is open; False if there is no room for it."""
        if self._open.total() >= self._most or self._open[peer] >= self._most_of_peer:
            yield False
            return
        self._open[peer] += 1
        try:
            yield True
        finally:
            self._open[peer] -= 1
            if not self._open[peer]:
                del self._open[peer]


@contextmanager
def stream_room(scope: Mapping[str, Any]) -> Iterator[bool]:
    """Count the stream that a request asks for; False if its server has no room for it."""
    streams: Streams | None = scope.get("state", {}).get(_STREAMS)
    if streams is None:
        yield True
        return
    with streams.room_for(peer_of(scope.get("client"))) as has_room:
        yield has_room


def with_streams(state: MutableMapping[str, Any], streams: Streams) -> None:
    """Let the requests of a server find its streams."""
    state[_STREAMS] = streams
