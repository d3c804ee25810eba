"""The states of a turn, and every transition between them.

The rules of this file:

- It knows nothing but states: no messages, no clock, no store. What each state means for the
  database, and what causes a transition, is the theory in ``goclaw_py.chat.inbound``.
- ``TRANSITIONS`` is complete: what is not in it is a bug of the caller and raises
  ``IllegalTransition``. Only ``chat.inbound.turns`` changes the state of a turn.
- What the scheduler knows of a request (it collects, waits for its session or its lane, is being
  stopped) is not here a second time: all of it is QUEUED or RUNNING; ask the dispatcher.
- Of a turn that ends, another part may own what remains: a notice (DROPPED), a held turn (MERGED),
  the mailbox (RELEASED). So the end of its run changes nothing but ENDING.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class TurnState(Enum):
    """See ``goclaw_py.chat.inbound``. ``next`` are the states that may follow."""

    STORED = auto()
    QUEUED = auto()
    HELD = auto()
    RUNNING = auto()
    ENDING = auto()
    UNDOING = auto()
    STOPPED = auto()
    DROPPED = auto()
    MERGED = auto()
    RELEASED = auto()
    DONE = auto()

    next: tuple[TurnState, ...]


# Names of the module, because looking a member up in its enum costs as much as the comparison.
STORED, QUEUED, HELD = TurnState.STORED, TurnState.QUEUED, TurnState.HELD
RUNNING, ENDING, UNDOING = TurnState.RUNNING, TurnState.ENDING, TurnState.UNDOING
STOPPED, DROPPED, MERGED = TurnState.STOPPED, TurnState.DROPPED, TurnState.MERGED
RELEASED, DONE = TurnState.RELEASED, TurnState.DONE

TRANSITIONS: Mapping[TurnState, tuple[TurnState, ...]] = {
    STORED: (QUEUED, HELD, DROPPED, MERGED),
    QUEUED: (RUNNING, ENDING, DROPPED, MERGED, RELEASED),
    HELD: (QUEUED, ENDING, STOPPED, DROPPED, RELEASED),
    RUNNING: (ENDING, RELEASED),
    ENDING: (DONE, UNDOING, RELEASED),
    UNDOING: (MERGED, STOPPED, ENDING, RELEASED),
    STOPPED: (DONE, RELEASED),
    DROPPED: (DONE, RELEASED),
    MERGED: (),
    RELEASED: (),
    DONE: (),
}
"""Every allowed transition. A new turn is STORED."""

for _state, _following in TRANSITIONS.items():
    _state.next = _following
