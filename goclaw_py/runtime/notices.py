"""Telling people about messages that will not be answered: one line, not one for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from goclaw_py.core import wording
from goclaw_py.core.effects import Ended
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Store
from goclaw_py.runtime.retry import until_available

FIRST_AFTER_S = 1.0
"""A flood arrives within moments: a first notice waits this long to name all of it."""

APART_S = 10.0
"""The least time between two notices in one session (SPEC QUEUE-5)."""


@dataclass(slots=True)
class _Gathered:
    target: Target
    ended: Ended
    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class Notices:
    """Gathers what was dropped, by session.

    The inbox rows stay pending until their notice is stored with them, in one transaction: a crash
    in between drops nothing silently, the messages are taken up again.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._gathered: dict[SessionKey, _Gathered] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(
        self,
        session: SessionKey,
        target: Target,
        ended: Ended,
        rows: Sequence[int],
        texts: Sequence[str],
    ) -> None:
        """Note messages that ended without an answer."""
        gathered = self._gathered.get(session)
        if gathered is None:
            gathered = self._gathered[session] = _Gathered(target, ended)
            task = asyncio.create_task(self._tell_until_quiet(session), name=f"notice {session}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        gathered.ended = ended
        gathered.rows += rows
        gathered.texts += texts

    def forget(self) -> None:
        """Tell nothing of all this: the messages belong to another process, which answers them."""
        for task in self._tasks:
            task.cancel()
        self._gathered.clear()

    async def flush(self) -> None:
        """Store every notice now."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for gathered in list(self._gathered.values()):
            await self._tell(gathered)
        self._gathered.clear()

    async def _tell_until_quiet(self, session: SessionKey) -> None:
        gathered = self._gathered[session]
        await asyncio.sleep(FIRST_AFTER_S)
        while gathered.rows:
            await self._tell(gathered)
            await asyncio.sleep(APART_S)
        del self._gathered[session]

    async def _tell(self, gathered: _Gathered) -> None:
        rows, texts = list(gathered.rows), list(gathered.texts)
        ended, now = gathered.ended, self._clock.now()
        if not rows:
            return
        text = wording.dropped(texts, ended.reason)
        say = OutboundMessage(target=gathered.target, text=text)
        await until_available(
            lambda: self._store.settle(rows, ended.outcome, now=now, reason=ended.reason, say=[say])
        )
        # More may have come while this was stored.
        del gathered.rows[: len(rows)]
        del gathered.texts[: len(texts)]
