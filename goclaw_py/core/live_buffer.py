"""What waits for one who follows runs: text grows together, and there is never too much."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from goclaw_py.core.ids import RunId
from goclaw_py.core.live import LiveMissed, LiveText, RunEvent
from goclaw_py.core.text import well_formed

TEXT_S = 0.5
"""How long the text of a run is gathered before it is shown, in seconds."""

PIECE_CHARS = 2_000
"""A piece of text that is so long takes in no more."""

MOST_CHARS = 64 * 1024
"""How much text may wait, in characters. One piece is kept, however long it is."""

MOST_EVENTS = 1_000
"""How many events may wait, pieces of text included."""


@dataclass(slots=True, eq=False)
class _Piece:
    """Text of one run that still grows."""

    begin: LiveText
    due: float
    texts: list[str]
    chars: int


class LiveBuffer:
    """Keeps the events of each run in order. ``now`` never goes back."""

    def __init__(self) -> None:
        self._numbers = count()
        self._events: OrderedDict[int, RunEvent] = OrderedDict()
        self._texts: deque[int] = deque()
        """The numbers of those events that are text."""
        self._growing: dict[RunId, _Piece] = {}
        """The oldest first."""
        self._chars = 0
        self._missed = 0
        self._missed_at: datetime

    def put(self, event: RunEvent, now: float) -> None:
        """Add an event. Text goes on what its run has said just before."""
        if isinstance(event, LiveText):
            if event.text:
                self._grow(event, now)
        else:
            self._complete(event.run.id)
            self._push(event)
        self._make_room()

    def take(self, now: float) -> RunEvent | LiveMissed | None:
        """The next event, None if there is none yet; see ``due``."""
        if self._missed:
            missed, self._missed = self._missed, 0
            return LiveMissed(self._missed_at, missed)
        while self.due is not None and self.due <= now:
            self._complete(next(iter(self._growing)))
        if not self._events:
            return None
        _, event = self._events.popitem(last=False)
        if isinstance(event, LiveText):
            self._texts.popleft()
            self._chars -= len(event.text)
        return event

    @property
    def is_ready(self) -> bool:
        """Whether something can be taken before ``due``."""
        return bool(self._events or self._missed)

    @property
    def due(self) -> float | None:
        """When the oldest piece of text that still grows can be taken."""
        for piece in self._growing.values():
            return piece.due
        return None

    def flush(self) -> None:
        """Nothing will be added: what grows is complete."""
        for run_id in list(self._growing):
            self._complete(run_id)

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
        self._chars += len(event.text)

    def _complete(self, run_id: RunId) -> None:
        piece = self._growing.pop(run_id, None)
        if piece is not None:
            text = well_formed("".join(piece.texts))
            self._chars += len(text) - piece.chars
            self._texts.append(self._push(LiveText(piece.begin.at, piece.begin.run, text)))

    def _push(self, event: RunEvent) -> int:
        number = next(self._numbers)
        self._events[number] = event
        return number

    def _make_room(self) -> None:
        while self._chars > MOST_CHARS and len(self._texts) + len(self._growing) > 1:
            self._lose_text()
        while len(self._events) + len(self._growing) > MOST_EVENTS:
            if self._texts or not self._events:
                self._lose_text()
            else:
                _, event = self._events.popitem(last=False)
                self._lose(event.at)

    def _lose_text(self) -> None:
        if self._texts:
            event = self._events.pop(self._texts.popleft())
            assert isinstance(event, LiveText)
            self._chars -= len(event.text)
            self._lose(event.at)
        else:
            piece = self._growing.pop(next(iter(self._growing)))
            self._chars -= piece.chars
            self._lose(piece.begin.at)

    def _lose(self, at: datetime) -> None:
        self._missed += 1
        self._missed_at = at
