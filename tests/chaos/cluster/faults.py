"""Lets happen to nodes and the database what a script says, each fault in a thread of its own."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from goclaw_py.store.postgres import Address, connection
from tests.chaos.cluster.books import Books
from tests.chaos.cluster.lines import State
from tests.chaos.cluster.nodes import Node
from tests.chaos.cluster.script import OF_DATABASE, Fault, Kind
from tests.chaos.cluster.server import Server
from tests.support.process import GUARD_S

ENDS_S: Final = 60.0
"""A guard: a process that was asked to end and has not by then does not end."""
_LOOK_S: Final = 0.02
_LOCKS: Final = (
    "select from sessions order by key for update",
    "select from inbox where state = 'pending' order by id for update",
)
"""In the order in which gateways lock them."""
_LATENCY_S: Final = 0.15
_LINES: Final[Mapping[Kind, State]] = {
    Kind.CUT: State.CUT,
    Kind.SILENCE: State.SILENT,
    Kind.SLOW: State.SLOW,
    Kind.DEAF: State.DEAF,
}


@dataclass(frozen=True, slots=True)
class Away:
    """A node that died or was asked to end: when, its process, and whose work waited there."""

    kind: Kind
    pid: int
    at: float
    waiting: frozenset[str]


class Faults:
    """The faults of one round; ``begun`` is when it began, on the steady clock."""

    def __init__(self, nodes: Sequence[Node], server: Server, address: Address) -> None:
        self._nodes = nodes
        self._server = server
        self._address = address
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self.away: list[Away] = []
        self.frozen: set[int] = set()
        self.troubles: list[str] = []
        self._killed: set[int] = set()
        """Programs that were killed, perhaps while they took long to end."""
        self._ended: set[int] = set()
        """Programs that were asked to end: asked again, one does so at once."""
        self._starting = threading.Lock()

    def begin(self, faults: Sequence[Fault], begun: float) -> None:
        """Let all of them happen when their time has come."""
        for fault in faults:
            thread = threading.Thread(target=self._run, args=(fault, begun), name=str(fault))
            thread.start()
            self._threads.append(thread)

    def join(self) -> None:
        """Wait until all of them are undone."""
        for thread in self._threads:
            thread.join()

    def end(self) -> None:
        """Undo what is left of them, whatever has become of the round; nothing is started then."""
        self._over.set()
        self.join()

    def _run(self, fault: Fault, begun: float) -> None:
        try:
            if self._is_over_by(begun + fault.at_s):
                return
            undo = self._begin(fault)
            is_over = self._is_over_by(begun + fault.until_s)
            if not (is_over and fault.kind in (Kind.KILL, Kind.END)):
                undo()
        except Exception as error:  # told with the round; the others have to be undone
            self.troubles.append(f"{fault}: {error!r}")

    def _is_over_by(self, moment: float) -> bool:
        """Wait until a moment; whether the round was over before it."""
        return self._over.wait(max(0.0, moment - time.monotonic()))

    def _wait(self, look: Callable[[], bool], limit_s: float) -> bool:
        """Wait until something is so, or the round is over; whether it is so."""
        end = time.monotonic() + limit_s
        while not look():
            if self._over.wait(_LOOK_S) or time.monotonic() > end:
                return look()
        return True

    def _begin(self, fault: Fault) -> Callable[[], None]:
        """Let it happen; what undoes it."""
        if fault.kind in OF_DATABASE:
            return self._befall_database(fault.kind)
        assert fault.node is not None
        node = self._nodes[fault.node]
        if fault.kind in _LINES:
            node.line.set(_LINES[fault.kind], latency_s=_LATENCY_S)
            return lambda: node.line.set(State.OPEN)
        if fault.kind is Kind.FULL:
            node.fill_disk()
            return node.empty_disk
        if fault.kind is Kind.CLOCK:
            node.set_clock(fault.jump_s)
            return lambda: node.set_clock(0)
        if fault.kind is Kind.FREEZE:
            self.frozen.add(node.pid)
            node.send(signal.SIGSTOP)
            return lambda: node.send(signal.SIGCONT)
        return self._end(node, fault.kind)

    def _end(self, node: Node, kind: Kind) -> Callable[[], None]:
        if kind is Kind.END:
            # A program that is still being loaded knows of no signal.
            self._wait(
                lambda: not node.alive() or (node.is_ready and node.pid not in self._ended), GUARD_S
            )
            self._ended.add(node.pid)
        waiting = self._waiting(node.pid, begun=kind is Kind.KILL)
        self.away.append(Away(kind, node.pid, time.monotonic(), waiting))
        program = node.program
        assert program is not None
        if kind is Kind.KILL:
            self._killed.add(program.pid)
            program.kill()
        else:
            node.send(signal.SIGTERM)
            if not self._wait(lambda: not program.alive(), ENDS_S):
                self.troubles.append(f"node {node.number} has not ended in {ENDS_S:g} s")
                program.kill()
            elif (code := program.wait()) != 0 and program.pid not in self._killed:
                self.troubles.append(f"node {node.number} ended with {code} when it was asked to")
        return partial(self._start, node)

    def _start(self, node: Node) -> None:
        """Start a node, unless another fault that ended it has done so."""
        with self._starting:
            if not node.alive():
                node.start()

    def _befall_database(self, kind: Kind) -> Callable[[], None]:
        if kind is Kind.PAUSE:
            self._server.freeze()
            return self._server.thaw
        if kind is Kind.LOCKS:
            return self._lock()
        self._server.end(signal.SIGINT if kind is Kind.RESTART else signal.SIGQUIT)
        return self._server.start

    def _lock(self) -> Callable[[], None]:
        """Hold what any work on a session needs, as a careless operator's transaction does."""
        runner = asyncio.Runner()
        held = AsyncExitStack()

        async def hold() -> None:
            opened = await held.enter_async_context(connection(self._address))
            for sql in ("begin", "set local lock_timeout = 0", *_LOCKS):
                await opened.fetch(sql)

        def let_go() -> None:
            try:
                runner.run(held.aclose())
            finally:
                runner.close()

        try:
            runner.run(hold())
        except BaseException:
            let_go()
            raise
        return let_go

    def _waiting(self, pid: int, *, begun: bool) -> frozenset[str]:
        """The sessions in which something waits for this process; ``begun``: or is worked on."""

        async def ask() -> frozenset[str]:
            async with asyncio.timeout(1), connection(self._address) as opened:
                return await Books(opened).waiting(pid, begun=begun)

        try:
            return asyncio.run(ask())
        except Exception:  # the database may be away as well: nothing is measured then
            return frozenset()
