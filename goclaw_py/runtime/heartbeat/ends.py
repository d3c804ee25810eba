"""How the end of a beat is stored, in the name of the node that has claimed it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from goclaw_py.core.beats import BeatEnd
from goclaw_py.core.errors import Fenced, NeverBegan
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.ports.store import BeatStore, RunEnd
from goclaw_py.runtime.heartbeat.held import Held, facts_of
from goclaw_py.runtime.retry import until_available, until_stored

log = logging.getLogger(__name__)


class EndStore(BeatStore, Protocol):
    """What is written here."""

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """See ``ports.store.RunStore``."""


class Ends:
    """Stores ends; waits for the database."""

    def __init__(self, store: EndStore) -> None:
        self._store = store

    async def store(
        self, held: Held, end: BeatEnd, run: RunEnd | None, say: Sequence[OutboundMessage]
    ) -> bool:
        """Store an end, with that of its ``run`` and what is said of it, in one transaction.

        An end that cannot be stored because of a bug is stored barely. False if nothing is said:
        then, and if the beat belongs to somebody else by now.
        """
        try:
            await until_available(lambda: self._store_end(held, end, run, say))
        except Fenced:
            log.warning("another process has this beat by now", extra=facts_of(held))
            return False
        except Exception:
            # A boundary: what met the bug may be what was said.
            log.exception(
                "the end of a beat was not stored; storing it barely", extra=facts_of(held)
            )
        else:
            return True
        bare = replace(end, reply="", detail="its end could not be stored", events=(), done=())
        try:
            await until_stored(lambda: self._store_end(held, bare, None, ()), facts_of(held))
        except Fenced:
            log.warning("another process has this beat by now", extra=facts_of(held))
        return False

    async def store_run(self, held: Held, run: RunEnd | None) -> None:
        """Store the end of an attempt that another one follows."""
        if run is None:
            return
        try:
            await until_available(lambda: self._store.finish_run(run, node=held.node))
        except (Fenced, NeverBegan) as error:
            log.debug("the end of an attempt was not stored: %s", error)

    async def give_back(self, held: Held) -> None:
        """Let it be claimed again."""
        try:
            await until_available(lambda: self._store.give_back_beats([held.id], node=held.node))
        except Fenced as error:
            log.debug("a beat is another process's already: %s", error)

    async def _store_end(
        self, held: Held, end: BeatEnd, run: RunEnd | None, say: Sequence[OutboundMessage]
    ) -> None:
        if run is not None:
            try:
                await self._store.finish_run(replace(run, beat=end, say=tuple(say)), node=held.node)
            except NeverBegan:
                run = None
        if run is None:
            await self._store.tell_of_beat(end, say, node=held.node)
