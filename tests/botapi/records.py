"""What happened: every call, every delivery, every text that could be read."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.botapi.faults import FaultKind


@dataclass(frozen=True, slots=True)
class Call:
    """One call that the emulator received.

    ``at`` is the emulator's clock in seconds; ``status`` is None while it is being handled, and 0
    if the server's own answer never left. A download is the method ``download``. Of an uploaded
    file the parameters hold name, kind and size.
    """

    at: float
    method: str
    parameters: Mapping[str, object]
    status: int | None
    result: object
    fault: FaultKind | None
    chat: int | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to hand an update to the webhook.

    ``status`` is the bot's answer, 0 if there was none; ``error`` is then why. ``seconds`` is how
    long it took. ``chat`` is the lane: its chat, or the user who pressed.
    """

    at: float
    update_id: int
    kind: str
    chat: int | None
    url: str
    status: int
    error: str
    seconds: float


class Transcript:
    """All calls in the order of their arrival. ``recording``: else they are only counted."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.recording = True
        self._arrived: Counter[str] = Counter()
        self._answered: Counter[tuple[str, int]] = Counter()

    def begin(self, call: Call) -> int:
        """Note a call that has arrived; returns its place for ``end``."""
        self._arrived[call.method] += 1
        if self.recording:
            self.calls.append(call)
            return len(self.calls) - 1
        return -1

    def end(self, place: int, method: str, status: int, result: object) -> None:
        """Note how a call ended."""
        self._answered[method, status] += 1
        if place >= 0:
            self.calls[place] = replace(self.calls[place], status=status, result=result)

    def count(self, method: str, *, ok: bool = False) -> int:
        """Calls of a method; ``ok``: those that were answered with 200."""
        return self._answered[method, 200] if ok else self._arrived[method]

    def counts(self) -> dict[str, int]:
        """Calls of each method."""
        return dict(self._arrived)

    def select(self, method: str | None, *, ok: bool, chat: int | None) -> list[Call]:
        return [
            call
            for call in self.calls
            if (method is None or call.method == method)
            and (not ok or call.status == 200)
            and (chat is None or call.chat == chat)
        ]


@dataclass(frozen=True, slots=True)
class Sighting:
    """A text of the bot as long as people could read it; ``until`` is None while they can."""

    message_id: int
    text: str
    since: float
    until: float | None


class Sightings:
    """Every text of the bot that ever stood in a chat."""

    def __init__(self) -> None:
        self.recording = True
        self._of: dict[int, list[Sighting]] = defaultdict(list)
        self._now: dict[tuple[int, int], int] = {}

    def show(self, chat: int, message: int, text: str, at: float) -> None:
        """A message has this text from now on."""
        if not self.recording:
            return
        self.hide(chat, message, at)
        self._now[chat, message] = len(self._of[chat])
        self._of[chat].append(Sighting(message, text, at, None))

    def hide(self, chat: int, message: int, at: float) -> None:
        """What a message says can no longer be read."""
        place = self._now.pop((chat, message), None)
        if place is not None:
            self._of[chat][place] = replace(self._of[chat][place], until=at)

    def of(self, chat: int) -> list[Sighting]:
        return list(self._of.get(chat, ()))

    def twice(self, chat: int) -> list[str]:
        """Texts that stood in more than one message, whether or not at the same time."""
        seen: dict[str, set[int]] = defaultdict(set)
        for sighting in self._of.get(chat, ()):
            seen[sighting.text].add(sighting.message_id)
        return [text for text, messages in seen.items() if len(messages) > 1]


class Bell:
    """Wakes everybody who waits for something to happen."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def next(self) -> asyncio.Future[None]:
        """Done with the next ring, which may come at once."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter
