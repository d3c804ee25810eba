"""The registry of turns: every live turn of this process, by run, by row and by session.

The rules of this file:

- Each method is an event of the table in ``goclaw_py.chat.inbound``, checked against
  ``runs.turn_state``. Nothing else changes the state of a turn.
- A row belongs to one live turn. Who needs to know which, or whether a message is held or dropped,
  asks here, and keeps no list of its own.
- It decides nothing and does no I/O. Who holds a turn, or drops it, decides and then says so here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.records import DroppedMessage, InboxRow
from goclaw_py.runs.turn import Turn
from goclaw_py.runs.turn_state import (
    DONE,
    DROPPED,
    ENDING,
    HELD,
    MERGED,
    QUEUED,
    RELEASED,
    RUNNING,
    STOPPED,
    UNDOING,
    TurnState,
)
from goclaw_py.scheduler.states import IllegalTransition

DropKind = tuple[Outcome, Reason | None]
"""How messages were dropped; those with the same end share a notice."""


class Turns:
    """The live turns."""

    def __init__(self) -> None:
        self.by_run: dict[RunId, Turn] = {}
        """Turns from QUEUED until the end of their run is stored; others only read it."""
        self._by_row: dict[int, Turn] = {}
        """The turns that answer these rows, or whose notice ends them."""
        self._held: dict[Turn, None] = {}
        self._dropped: dict[SessionKey, dict[Turn, None]] = {}
        self._abandoned: set[Turn] = set()

    # ------------------------------------------------------------------ events

    def queue(self, turn: Turn) -> None:
        """The scheduler gets its request."""
        # The check is written out on the path of every message: a call would cost more than it.
        if QUEUED not in turn.state.next:
            raise illegal(turn, QUEUED)
        turn.state = QUEUED
        self.by_run[turn.id] = turn
        self._held.pop(turn, None)
        for row in turn.rows:
            self._by_row[row.id] = turn

    def start(self, run_id: RunId) -> Turn:
        """The task of its run has started."""
        turn = self.by_run[run_id]
        if RUNNING not in turn.state.next:
            raise illegal(turn, RUNNING)
        turn.state = RUNNING
        return turn

    def end(self, run_id: RunId) -> Turn:
        """The scheduler has ended its request; that is to be stored, unless it is released."""
        turn = self.by_run[run_id]
        if turn.state is not RELEASED:
            if ENDING not in turn.state.next:
                raise illegal(turn, ENDING)
            turn.state = ENDING
        return turn

    def leave(self, turn: Turn) -> None:
        """The end of its run is stored, or never will be: what is still ENDING is DONE."""
        if turn.state is QUEUED or turn.state is RUNNING:
            raise illegal(turn, DONE)
        del self.by_run[turn.id]
        if turn.abandoned is not None:
            self._abandoned.discard(turn)
        if turn.state is ENDING:
            turn.state = DONE
            for row in turn.rows:
                if self._by_row.get(row.id) is turn:
                    del self._by_row[row.id]
        elif turn.state is UNDOING:
            self.release([turn])  # after a bug nobody holds it, and a reload reads it again

    def abandon(self, turn: Turn) -> None:
        """Its task ignores its cancellation: its session goes on while its end is being stored."""
        turn.abandoned = asyncio.Event()
        self._abandoned.add(turn)

    def close(self, turn: Turn) -> None:
        """The end of its messages is stored."""
        if turn.state is RELEASED:
            return  # this node has expired while it was stored
        self._move(turn, DONE)
        self._forget_rows(turn)

    def hold(self, turn: Turn) -> None:
        """It waits for the provider of its agent."""
        self._move(turn, HELD)
        self._held[turn] = None
        self._assign(turn.rows, turn)

    def expire(self, turn: Turn) -> None:
        """It was held for too long."""
        self._move(turn, ENDING)

    def undo(self, turn: Turn) -> None:
        """Its run failed for the provider: once its end is stored, its messages get a new turn."""
        self._move(turn, UNDOING)

    def stop(self, turn: Turn) -> None:
        """It was stopped while it was held, or was about to be."""
        was_held = turn.state is HELD
        self._move(turn, STOPPED)
        if was_held:
            self._forget_rows(turn)  # the stop stores their end

    def drop(self, turn: Turn, ended: Ending) -> None:
        """It never runs; its sender is to be notified."""
        self._move(turn, DROPPED)
        turn.dropped = ended
        self._dropped.setdefault(turn.session, {})[turn] = None
        self._assign(turn.rows, turn)

    def shrink(self, turn: Turn, ended: Collection[int]) -> None:
        """Some of its rows had ended before its run began."""
        if ended:
            for row_id in ended:
                self._by_row.pop(row_id, None)
            turn.rows[:] = [row for row in turn.rows if row.id not in ended]

    def merge(self, turn: Turn, into: Turn) -> None:
        """Another turn answers its messages too."""
        self._move(turn, MERGED)
        self.by_run.pop(turn.id, None)
        into.rows += turn.rows
        self._assign(turn.rows, into)

    def replace(self, turn: Turn) -> None:
        """Its run is undone; a new turn gets its messages, and the same list of rows for edits."""
        self._move(turn, MERGED)

    def restart(self, turn: Turn, into: Turn) -> None:
        """Its run is cancelled for a later message: the turn of that has its messages first."""
        into.rows[:0] = turn.rows
        into.after = turn.ended
        self._assign(turn.rows, into)

    def append(self, row: InboxRow, turn: Turn) -> None:
        """A turn answers another row, which an interrupted run had with the others."""
        turn.rows.append(row)
        self._by_row[row.id] = turn

    def release(self, turns: Iterable[Turn]) -> None:
        """Their messages wait in their mailbox again, or belong to another process."""
        for turn in turns:
            if turn.state is not RELEASED:
                self._move(turn, RELEASED)
                self._forget_rows(turn)

    def release_held(self) -> None:
        """Release held turns, and hold none whose run is just ending: the process shuts down."""
        self.release(list(self._held))
        for turn in self.by_run.values():
            if turn.state is UNDOING:
                self._move(turn, ENDING)

    def release_dropped(self) -> None:
        """Release dropped turns: other processes notify their senders."""
        for turns in list(self._dropped.values()):
            self.release(list(turns))

    def release_all(self) -> None:
        """Release everything: this node has expired. Runs that end are refused by the store."""
        self.release_held()
        self.release_dropped()
        live = [turn for turn in self.by_run.values() if turn.state not in (MERGED, DONE)]
        self.release([*live, *self.all()])

    # ------------------------------------------------------------------ questions

    def of_runs(self, runs: Collection[RunId]) -> list[Turn]:
        """Return the turns of some requests whose end is not stored."""
        return [self.by_run[run_id] for run_id in runs if run_id in self.by_run]

    def of_row(self, row_id: int) -> Turn | None:
        """Return the live turn that has a row."""
        return self._by_row.get(row_id)

    def all(self) -> Collection[Turn]:
        """Return all turns that have rows, each once."""
        return {turn.id: turn for turn in self._by_row.values()}.values()

    def rows(self) -> set[int]:
        """Return the rows of all live turns."""
        return set(self._by_row)

    def held(self, agent: AgentName) -> list[Turn]:
        """Return the turns that wait for the provider of an agent, in the order of their coming."""
        return [turn for turn in self._held if turn.agent == agent]

    def has_held(self, session: SessionKey) -> bool:
        """Return whether turns of a session wait for a provider."""
        return bool(self._held) and any(t.session == session for t in self._held)

    def held_or_undone(self, session: SessionKey) -> list[Turn]:
        """Return the turns of a session that wait for a provider, or will; the oldest first."""
        undone = [t for t in self.by_run.values() if t.state is UNDOING and t.session == session]
        held = [turn for turn in self._held if turn.session == session]
        return [*undone, *sorted(held, key=first_row)]

    def is_undoing(self, agent: AgentName) -> bool:
        """Return whether turns of an agent will wait for its provider."""
        return any(t.state is UNDOING and t.agent == agent for t in self.by_run.values())

    def abandoned(self, session: SessionKey) -> Sequence[asyncio.Event]:
        """Return the ends of abandoned runs of a session that are being stored."""
        if not self._abandoned:
            return ()
        mine = (turn.abandoned for turn in self._abandoned if turn.session == session)
        return [end for end in mine if end is not None]

    def dropped(self, session: SessionKey) -> tuple[DroppedMessage, ...]:
        """Return the dropped messages of a session that wait for their notice."""
        # Asked at the start of each run, and most sessions have none.
        if session not in self._dropped:
            return ()
        return tuple(
            DroppedMessage(row.id, turn.dropped.outcome, turn.dropped.reason)
            for turn in self._dropped[session]
            if turn.dropped is not None
            for row in turn.rows
        )

    def waiting_for_notice(self, session: SessionKey, kind: DropKind) -> list[Turn]:
        """Return the dropped turns of a session with this outcome and reason."""
        return [
            turn
            for turn in self._dropped.get(session, ())
            if turn.dropped is not None and (turn.dropped.outcome, turn.dropped.reason) == kind
        ]

    # ------------------------------------------------------------------ inside

    def _move(self, turn: Turn, to: TurnState) -> None:
        if to not in turn.state.next:
            raise illegal(turn, to)
        if turn.state is HELD:
            del self._held[turn]
        elif turn.state is DROPPED:
            dropped = self._dropped[turn.session]
            del dropped[turn]
            if not dropped:
                del self._dropped[turn.session]
        turn.state = to

    def _assign(self, rows: Iterable[InboxRow], turn: Turn) -> None:
        for row in rows:
            self._by_row[row.id] = turn

    def _forget_rows(self, turn: Turn) -> None:
        for row in turn.rows:
            if self._by_row.get(row.id) is turn:
                del self._by_row[row.id]


def illegal(turn: Turn, to: TurnState) -> IllegalTransition:
    """Return the error for a transition that does not exist."""
    return IllegalTransition(f"{turn.id}: {turn.state} cannot become {to}")


def first_row(turn: Turn) -> int:
    """Return the id of the first row of a turn, by which older turns go first."""
    return turn.rows[0].id
