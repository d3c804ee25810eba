"""The newest events of runs, numbered and limited; pieces of text are joined."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from goclaw_py.core.ids import RunId
from goclaw_py.core.text import well_formed
from goclaw_py.runs.events.live import LiveText, RunEvent

TEXT_S = 0.5
"""How many seconds the text of a run is collected before it is published."""

PIECE_CHARS = 2_000
"""A piece of text of this length is complete."""

MOST_CHARS = 256 * 1024
"""The number of characters that are kept. One piece is kept, whatever its length."""

MOST_EVENTS = 4_000
"""The number of events that are kept, including pieces of text."""

Hear = Callable[[int, RunEvent], None]


@dataclass(slots=True, eq=False)
class _Piece:
    """Text of a run that is being collected."""

    begin: LiveText
    due: float
    texts: list[str]
    chars: int


class EventBuffer:
    """Keeps the events of each run in order. ``now`` never goes back.

    An event gets its number when it is complete, so smaller numbers were published earlier. Old
    text is deleted before anything else, the oldest first.

    Args:
        origin: The prefix of all ids.
        lost: Called with each event that is no longer kept.
    """

    def __init__(self, origin: str, lost: Hear) -> None:
        self._origin = origin
        self._lost = lost
        self._events: OrderedDict[int, RunEvent] = OrderedDict()
        self._texts: deque[int] = deque()
        """The numbers of events with text."""
        self._growing: dict[RunId, _Piece] = {}
        """The oldest first."""
        self._chars = 0
        self.last = 0
        """The number of the newest event; 0 before the first one."""

    def add(self, event: RunEvent, now: float) -> None:
        """Add an event. Text is appended to what its run has just said."""
        if isinstance(event, LiveText):
            if event.text:
                self._grow(event, now)
        else:
            self._complete(event.run.id)
            self._push(event)

    def settle(self, now: float) -> None:
        """Complete the text that is due; see ``due``."""
        while self.due is not None and self.due <= now:
            self._complete(next(iter(self._growing)))

    @property
    def due(self) -> float | None:
        """Return when the oldest incomplete piece of text must be completed."""
        for piece in self._growing.values():
            return piece.due
        return None

    def flush(self) -> None:
        """Complete all text."""
        for run_id in list(self._growing):
            self._complete(run_id)

    def forget(self) -> None:
        """Delete all events. A number is skipped, so that the gap is visible."""
        self._events.clear()
        self._texts.clear()
        self._growing.clear()
        self._chars = 0
        self.last += 1

    def id_of(self, number: int) -> str:
        """Return the ``id`` of an event."""
        return f"{self._origin}-{number}"

    def get(self, number: int) -> RunEvent | None:
        """Return an event by its number, None if it is not kept."""
        return self._events.get(number)

    def has_gap_after(self, number: int) -> int:
        """Return how many events after a number are not kept."""
        if not self._events or number >= self.last:
            return 0
        kept = sum(one > number for one in reversed(self._events))
        return self.last - number - kept

    # ------------------------------------------------------------------ inside

    def _grow(self, event: LiveText, now: float) -> None:
        piece = self._growing.get(event.run.id)
        if piece is not None and (piece.due <= now or piece.chars >= PIECE_CHARS):
            self._complete(event.run.id)
            piece = None
        if piece is None:
            piece = self._growing[event.run.id] = _Piece(event, now + TEXT_S, [], 0)
        piece.texts.append(event.text)
        piece.chars += len(event.text)

    def _complete(self, run_id: RunId) -> None:
        piece = self._growing.pop(run_id, None)
        if piece is not None:
            text = well_formed("".join(piece.texts))
            self._chars += len(text)
            self._texts.append(self.last + 1)
            self._push(LiveText(piece.begin.at, piece.begin.run, text))

    def _push(self, event: RunEvent) -> None:
        self.last += 1
        self._events[self.last] = replace(event, id=self.id_of(self.last))
        while self._chars > MOST_CHARS and len(self._texts) > 1:
            self._lose(self._texts[0])
        while len(self._events) > MOST_EVENTS:
            self._lose(self._least())

    def _least(self) -> int:
        """Return the event to delete next: old text, otherwise the oldest event.

        New text is not deleted first: a full buffer without old text would lose each piece at once.
        """
        if self._texts and self._texts[0] <= self.last - MOST_EVENTS // 2:
            return self._texts[0]
        return next(iter(self._events))

    def _lose(self, number: int) -> None:
        event = self._events.pop(number)
        if isinstance(event, LiveText):
            self._texts.popleft()
            self._chars -= len(event.text)
        self._lost(number, event)
