"""Notices about dropped turns: one line for several messages.

Which messages wait for a notice is the state DROPPED in ``turns``. Here are the lines to say, which
people read in the order in which they were dropped.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from goclaw_py.chat.inbound.turns import DropKind, Turns
from goclaw_py.chat.outbound import texts as wording
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Ending, Outcome
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import DroppedMessage, InboxRow
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.turn import Turn

log = logging.getLogger(__name__)

FIRST_AFTER_S = 1.0
"""A first notice waits this long, so that it covers all of a flood."""

APART_S = 10.0
"""The shortest time between two notices in a session (SPEC QUEUE-5)."""


@dataclass(slots=True)
class _Lines:
    target: Target
    texts: list[str] = field(default_factory=list)


class DropNotices:
    """Notifies senders of turns that are dropped, by session and outcome.

    The inbox rows stay pending until their notice is stored with them in one transaction, so that a
    crash drops nothing silently. Rows that a later run has passed by then are announced, and not
    answered after it (see ``NewRun.dropped``).
    """

    def __init__(self, store: BoundStore, clock: Clock, turns: Turns) -> None:
        self.turns = turns
        self._store = store
        self._clock = clock
        self._lines: dict[SessionKey, dict[DropKind, _Lines]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def drop(self, turn: Turn, ended: Ending) -> None:
        """Notify the sender of a turn that never runs."""
        self.turns.drop(turn, ended)
        self._add(turn, (ended.outcome, ended.reason))

    def overflowed(self, turn: Turn) -> None:
        """Tell the sender of a turn that waits why it is not a part of the previous one."""
        self._add(turn, (Outcome.COMPLETED, None))

    def resume(self, row: InboxRow, dropped: DroppedMessage) -> None:
        """Drop a message again whose process ended before it announced the drop."""
        run_id = row.last_run or RunId("")
        turn = Turn(run_id, row.session, row.agent, [row])
        self.drop(turn, Ending(run_id, dropped.outcome, dropped.reason))

    def _add(self, turn: Turn, kind: DropKind) -> None:
        session = turn.session
        kinds = self._lines.get(session)
        if kinds is None:
            kinds = self._lines[session] = {}
            task = asyncio.create_task(self._notify_until_quiet(session), name=f"notice {session}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        kinds.setdefault(kind, _Lines(turn.target)).texts += turn.texts

    def sessions(self) -> set[SessionKey]:
        """Return the sessions in which a notice is due."""
        return {key for key, kinds in self._lines.items() if kinds}

    def forget(self) -> None:
        """Forget everything: the messages belong to another process, which announces them."""
        for task in self._tasks:
            task.cancel()
        self._lines.clear()
        self.turns.release_dropped()

    async def flush(self) -> None:
        """Store every notice now. Rows whose notice meets a bug stay pending."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session, kinds in list(self._lines.items()):
            for kind in list(kinds):
                await self._store_notice(session, kinds, kind)
        self._lines.clear()

    async def _notify_until_quiet(self, session: SessionKey) -> None:
        kinds = self._lines[session]
        await asyncio.sleep(FIRST_AFTER_S)
        while kinds:
            await self._store_notice(session, kinds, next(iter(kinds)))
            await asyncio.sleep(APART_S)
        del self._lines[session]

    async def _store_notice(
        self, session: SessionKey, kinds: dict[DropKind, _Lines], kind: DropKind
    ) -> None:
        """Store a notice. What comes meanwhile is announced later."""
        lines, turns = kinds[kind], self.turns.waiting_for_notice(session, kind)
        rows, texts = [row.id for turn in turns for row in turn.rows], list(lines.texts)
        (outcome, reason), now, node = kind, self._clock.now(), self._store.node()
        is_split = outcome is Outcome.COMPLETED
        text = wording.overflowed(texts) if is_split else wording.dropped(texts, reason)
        say = [OutboundMessage(target=lines.target, text=text)]
        try:
            await self._store.retried.settle(
                rows, outcome, now=now, reason=reason, say=say, node=node
            )
        except Exception:
            # A boundary: one bug must not end the notices of a session.
            facts = {"session": session, "messages": len(rows), "outcome": outcome}
            log.exception("notice_not_stored", extra=facts)
        else:
            for turn in turns:
                self.turns.close(turn)
            del lines.texts[: len(texts)]
        del kinds[kind]
        if lines.texts:
            kinds[kind] = lines
