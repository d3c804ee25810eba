"""Notices about dropped messages: one line for several messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from goclaw_py.chat.outbound import texts as wording
from goclaw_py.core.ids import NodeId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import DroppedMessage, InboxRow, Store
from goclaw_py.runs.turn import told

log = logging.getLogger(__name__)

FIRST_AFTER_S = 1.0
"""A first notice waits this long, so that it covers all of a flood."""

APART_S = 10.0
"""The shortest time between two notices in a session (SPEC QUEUE-5)."""


_Kind = tuple[Outcome, Reason | None]
"""How messages ended; those with the same end share a notice."""


@dataclass(slots=True)
class _Gathered:
    target: Target
    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class DropNotices:
    """Collects dropped messages, by session and outcome.

    The inbox rows stay pending until their notice is stored with them in one transaction, so that a
    crash drops nothing silently. Rows that a later run has passed by then are announced, and not
    answered after it (see ``NewRun.dropped``).
    """

    def __init__(self, store: Store, clock: Clock, node: Callable[[], NodeId]) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._gathered: dict[SessionKey, dict[_Kind, _Gathered]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(
        self,
        session: SessionKey,
        target: Target,
        ended: Ending,
        rows: Sequence[int],
        texts: Sequence[str],
    ) -> None:
        """Add messages that ended without an answer."""
        self._add(session, target, (ended.outcome, ended.reason), rows, texts)

    def overflowed(self, session: SessionKey, target: Target, texts: Sequence[str]) -> None:
        """Add messages that start another turn because the previous one was full; they wait."""
        self._add(session, target, (Outcome.COMPLETED, None), [], texts)

    def take_up(self, row: InboxRow, dropped: DroppedMessage) -> None:
        """Add a message whose process ended before it announced the drop."""
        kind = (dropped.outcome, dropped.reason)
        self._add(row.session, row.message.target, kind, [row.id], told([row]))

    def _add(
        self,
        session: SessionKey,
        target: Target,
        kind: _Kind,
        rows: Sequence[int],
        texts: Sequence[str],
    ) -> None:
        endings = self._gathered.get(session)
        if endings is None:
            endings = self._gathered[session] = {}
            task = asyncio.create_task(self._tell_until_quiet(session), name=f"notice {session}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        gathered = endings.setdefault(kind, _Gathered(target))
        gathered.rows += rows
        gathered.texts += texts

    def rows(self) -> set[int]:
        """Return the inbox rows of messages that wait for their notice."""
        gathered = (group for endings in self._gathered.values() for group in endings.values())
        return {row for group in gathered for row in group.rows}

    def dropped(self, session: SessionKey) -> tuple[DroppedMessage, ...]:
        """Return the dropped messages of a session that wait for their notice."""
        return tuple(
            DroppedMessage(row, *ending)
            for ending, gathered in self._gathered.get(session, {}).items()
            for row in gathered.rows
        )

    def sessions(self) -> set[SessionKey]:
        """Return the sessions of these messages."""
        return {key for key, endings in self._gathered.items() if endings}

    def forget(self) -> None:
        """Forget everything: the messages belong to another process, which announces them."""
        for task in self._tasks:
            task.cancel()
        self._gathered.clear()

    async def flush(self) -> None:
        """Store every notice now. Rows whose notice meets a bug stay pending."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session, endings in list(self._gathered.items()):
            for ending in list(endings):
                await self._tell(session, endings, ending)
        self._gathered.clear()

    async def _tell_until_quiet(self, session: SessionKey) -> None:
        endings = self._gathered[session]
        await asyncio.sleep(FIRST_AFTER_S)
        while endings:
            await self._tell(session, endings, next(iter(endings)))
            await asyncio.sleep(APART_S)
        del self._gathered[session]

    async def _tell(
        self, session: SessionKey, endings: dict[_Kind, _Gathered], ending: _Kind
    ) -> None:
        """Store a notice. What it has no room for is announced later."""
        gathered = endings[ending]
        rows, texts = list(gathered.rows), list(gathered.texts)
        (outcome, reason), now, node = ending, self._clock.now(), self._node()
        is_split = outcome is Outcome.COMPLETED
        text = wording.overflowed(texts) if is_split else wording.dropped(texts, reason)
        say = [OutboundMessage(target=gathered.target, text=text)]
        try:
            await retry_until_available(
                lambda: self._store.settle(
                    rows, outcome, now=now, reason=reason, say=say, node=node
                )
            )
        except Exception:
            # A boundary: one bug must not end the notices of a session.
            facts = {"session": session, "messages": len(rows), "outcome": outcome}
            log.exception("notice_not_stored", extra=facts)
        else:
            # More may have come while this was stored.
            del gathered.rows[: len(rows)]
            del gathered.texts[: len(texts)]
        del endings[ending]
        if gathered.rows or gathered.texts:
            endings[ending] = gathered
