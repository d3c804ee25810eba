"""An event loop in which the same work always takes the same steps, however busy the machine is.

Its time is virtual: it only passes when nothing is left to do. Sockets, PostgreSQL and threads are
real, but their answers are handed over together and in one order, once all of them are there. So
which calls share a transaction, and which timer is over first, does not depend on any clock.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from typing import Any

from tests.ledger.wire import Dialogue, Server, answers, message

_GUARD_S = 20.0
"""A guard against waiting for ever, no measure."""
_LOCK_S = 0.05
"""After so long without an answer of the database, see whether it waits for a lock."""
_APART_S = 1e-13
_SIZE = 1 << 18
_FLUSH = message(b"Q", b"select pg_stat_force_next_flush()\0")


class Followed(socket.socket):
    """A socket whose incoming bytes are kept until the loop hands them over."""

    network: Network
    number: int
    dialogue: Dialogue | None
    ends: tuple[Any, Any]

    def follow(self, network: Network) -> None:
        self.setblocking(False)
        self.network = network
        self.number = network.next_number()
        self.kept = bytearray()
        self.notices = bytearray()
        """What the database said by itself: notices, which come at any time."""
        self.is_over = False
        self.failure: OSError | None = None
        is_local = self.family == socket.AF_UNIX
        self.ends = ("", "") if is_local else (self.getsockname()[:2], self.getpeername()[:2])
        is_database = is_local and ".s.PGSQL" in str(self.getpeername())
        self.dialogue = network.dialogue() if is_database else None

    # ------------------------------------------------------------------ what transports call

    def send(self, data: Any, flags: int = 0, /) -> int:
        sent = super().send(data, flags)
        if self.dialogue is not None:
            self.dialogue.send(bytes(data[:sent]))
            self.network.is_stale = True
        if self.family != socket.AF_UNIX:
            self.network.flying[self.ends] += sent
        return sent

    def sendmsg(self, buffers: Any, *_: Any) -> int:
        return self.send(b"".join(buffers))

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        data = bytes(self.kept[:size])
        if not data and not self.is_over:
            raise BlockingIOError
        if not data and self.failure is not None:
            raise self.failure
        del self.kept[:size]
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0, /) -> int:
        data = self.recv(nbytes or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.network.forget(self)
        super().close()

    # ------------------------------------------------------------------ what the network calls

    def gather(self) -> None:
        """Read what is there."""
        try:
            data = super().recv(_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.is_over, self.failure = True, error
            self.network.ignore(self)
            return
        if not data:
            self.is_over = True
            self.network.ignore(self)
            return
        if self.dialogue is not None and self.dialogue.listens and not self.dialogue.awaited:
            self.notices += data
            return
        self.kept += data
        if self.family != socket.AF_UNIX:
            self.network.flying[self.ends[::-1]] -= len(data)
        if self.dialogue is not None:
            self.dialogue.receive(data)

    @property
    def waits(self) -> bool:
        return not self.is_over and self.dialogue is not None and bool(self.dialogue.awaited)

    def ask(self, request: bytes) -> None:
        """Ask something of the database beside the gateway, which sees only notices of it."""
        assert self.dialogue is not None
        self.setblocking(True)
        try:
            super().sendall(request)
            for kind, body in answers(self, self.notices):
                if kind == b"A":
                    self.kept += message(kind, body)
        finally:
            self.setblocking(False)


class Network:
    """All sockets of the process, and what is under way between their ends."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.statements: Counter[str] = Counter()
        self.flying: Counter[tuple[Any, Any]] = Counter()
        """Bytes from one end to another; only where both are here."""
        self.is_stale = False
        """Notices of the database may be under way."""
        self.watch: Server | None = None
        self._sockets: dict[int, Followed] = {}
        self._ready = selectors.DefaultSelector()
        self._number = 0

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def dialogue(self) -> Dialogue:
        return Dialogue(self.names, self.statements)

    def adopt(self, plain: socket.socket) -> Followed:
        """Follow a socket from now on."""
        family, kind, proto = plain.family, plain.type, plain.proto
        mine = Followed(family, kind, proto, fileno=plain.detach())
        mine.follow(self)
        self._sockets[mine.fileno()] = mine
        self._ready.register(mine, selectors.EVENT_READ)
        return mine

    def forget(self, one: Followed) -> None:
        if self._sockets.pop(one.fileno(), None) is not None and not one.is_over:
            self._ready.unregister(one)
        self.flying.pop(one.ends[::-1], None)

    def ignore(self, one: Followed) -> None:
        self._ready.unregister(one)

    def of(self, number: int) -> Followed | None:
        return self._sockets.get(number)

    def readable(self) -> list[Followed]:
        """Return the sockets of which something is to be handed over, the oldest first."""
        found = [one for one in self._sockets.values() if one.kept or one.is_over]
        return sorted(found, key=lambda one: one.number)

    def gather(self, timeout_s: float) -> bool:
        """Read everything that is there. Returns whether there was something."""
        found = self._ready.select(timeout_s)
        for key, _ in found:
            assert isinstance(key.fileobj, Followed)
            key.fileobj.gather()
        return bool(found)

    def is_busy(self) -> bool:
        """Whether something comes that nobody has to wait for."""
        for one in self._sockets.values():
            if one.dialogue is not None:
                if one.dialogue.awaited and not one.is_over:
                    return True
            elif self.flying[one.ends[::-1]] > 0:
                return True
        return False

    def under_way(self) -> str:
        """Say what is not there yet."""
        flying = {ends: size for ends, size in self.flying.items() if size > 0}
        asked = [one.dialogue.awaited for one in self._sockets.values() if one.dialogue]
        return f"{flying} bytes, answers {asked}"

    def waits_for_locks(self) -> bool:
        """Whether all that the database has to answer waits for what the gateway has to end."""
        pids = [one.dialogue.pid for one in self._sockets.values() if one.waits and one.dialogue]
        if self.watch is None or not pids or 0 in pids:
            return False
        among = ", ".join(map(str, pids))
        locked = "state = 'active' and wait_event_type = 'Lock'"
        query = f"select count(*) from pg_stat_activity where pid in ({among}) and {locked}"
        return self.watch.rows(query) == [[str(len(pids))]]

    def hear_notices(self) -> None:
        """Let the database deliver the notices of what has been committed."""
        self.is_stale = False
        for one in self._databases():
            if one.dialogue is not None and one.dialogue.listens:
                one.ask(message(b"S"))

    def flush_counters(self) -> None:
        """Let each connection report its counters now, and not within the next seconds."""
        for one in self._databases():
            one.ask(_FLUSH)

    def _databases(self) -> list[Followed]:
        found = [one for one in self._sockets.values() if one.dialogue and not one.is_over]
        return sorted(found, key=lambda one: one.number)


class _Selector(selectors.DefaultSelector):
    """Hands over what is there once nothing else is under way."""

    loop: SteadyLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        loop = self.loop
        if loop.on_turn is not None:
            loop.on_turn()
        if timeout is not None and timeout <= 0:
            return []
        while not (found := self._settled()):
            if loop.network.is_stale:
                loop.network.hear_notices()
            elif timeout is not None:
                loop.virtual_now += timeout
                return []
            else:
                super().select(0.01)
        return found

    def _settled(self) -> list[tuple[selectors.SelectorKey, int]]:
        loop, network = self.loop, self.loop.network
        waited_s = 0.0
        while network.is_busy() or loop.threads:
            if loop.threads and (found := self._outside(0)):
                return found  # perhaps the end of a thread: what else is there waits for it
            step_s = 0.002 if loop.threads else _LOCK_S
            waited_s = 0.0 if network.gather(step_s) else waited_s + step_s
            if waited_s >= _LOCK_S and not loop.threads and network.waits_for_locks():
                break
            if waited_s > _GUARD_S:
                raise RuntimeError(
                    f"waited in vain for {network.under_way()}, {loop.threads} threads"
                )
        network.gather(0)
        return self._outside(0) + self._inside()

    def _outside(self, timeout_s: float) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready, but for reading from sockets that are followed."""
        ready = []
        for key, events in super().select(timeout_s):
            if self.loop.network.of(key.fd) is not None:
                events &= selectors.EVENT_WRITE  # noqa: PLW2901
            if events:
                ready.append((key, events))
        return sorted(ready, key=lambda pair: pair[0].fd)

    def _inside(self) -> list[tuple[selectors.SelectorKey, int]]:
        keys = self.get_map()
        return [
            (key, selectors.EVENT_READ)
            for one in self.loop.network.readable()
            if (key := keys.get(one.fileno())) and key.events & selectors.EVENT_READ
        ]


class SteadyLoop(asyncio.SelectorEventLoop):
    """The loop. ``virtual_now`` is its clock, in seconds from 0."""

    def __init__(self) -> None:
        self.network = Network()
        self.virtual_now = 0.0
        self.threads = 0
        self._timers = 0
        self.on_turn: Callable[[], None] | None = None
        """Called before each turn."""
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)
        # That of the machine, 1 ns, is less than two numbers of this size may differ by.
        self._clock_resolution = 1e-7

    def time(self) -> float:
        return self.virtual_now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self.virtual_now < when < self.virtual_now + self._clock_resolution:
            self.virtual_now = when
        # Of two timers for the same instant the older one is first.
        self._timers += 1
        when += _APART_S * self._timers
        return super().call_at(when, callback, *args, context=context)

    def _make_socket_transport(self, sock: socket.socket, *args: Any, **more: Any) -> Any:
        return super()._make_socket_transport(  # type: ignore[misc]
            self.network.adopt(sock), *args, **more
        )

    def run_in_executor(self, executor: Executor | None, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """Run in a thread; everything waits for its end."""
        self.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _future: object) -> None:
        self.threads -= 1
