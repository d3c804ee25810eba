"""The updates that wait for the bot."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count, islice

from tests.botapi.rules import Json, is_object

NOT_BY_DEFAULT = frozenset(["chat_member", "message_reaction", "message_reaction_count"])
"""Kinds that a bot gets only if it asks for them."""
_REMEMBERED = 1000


@dataclass(slots=True)
class Pending:
    """An update until it is confirmed.

    ``lane``: those of one lane reach a webhook one after the other. As at the real server, the
    messages of a chat are a lane, and the presses of a user another one. ``again``: it was
    confirmed before and is told once more.
    """

    serial: int
    id: int
    body: Json
    kind: str
    lane: tuple[str, object]
    again: bool = False


@dataclass(slots=True)
class Updates:
    """The queue of one bot. ``on_new`` is called with each update that comes into it."""

    on_new: Callable[[Pending], None] = lambda _update: None
    allowed: frozenset[str] = frozenset()
    waiting: dict[int, Pending] = field(default_factory=dict)
    """By ``Pending.serial``, in the order in which they are told."""
    doubled: int = 0
    """Batches, or deliveries to the webhook, that are still to hold each update twice."""
    shuffled: int = 0
    """Batches that are still to come in reverse order."""
    _last: int = 731_000_000
    _serials: count[int] = field(default_factory=count)
    _done: deque[Pending] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def wants(self, kind: str) -> bool:
        return kind in self.allowed if self.allowed else kind not in NOT_BY_DEFAULT

    def tell(self, kind: str, content: object) -> None:
        """Queue an update for the bot, unless it does not want this kind."""
        if self.wants(kind):
            self.tell_raw({kind: content})

    def tell_raw(self, update: Json) -> int:
        """Queue an update as it is, with the next id, and return that id."""
        self._last += 1
        kind = next((key for key in update if key != "update_id"), "")
        body = {"update_id": self._last, **update}
        lane = _lane(kind, update.get(kind))
        new = Pending(next(self._serials), self._last, body, kind, lane)
        self.waiting[new.serial] = new
        self.on_new(new)
        return self._last

    def confirm(self, offset: int) -> None:
        """Forget the updates before ``offset``; negative: all but the last ``-offset``."""
        if offset < 0:
            for update in list(self.waiting.values())[:offset]:
                self.done(update)
            return
        told = []
        for update in self.waiting.values():
            if update.id < offset and not update.again:
                told.append(update)
            elif not update.again:
                # What comes after the first that stays, stays.
                break
        for update in told:
            self.done(update)

    def done(self, update: Pending) -> None:
        """Forget one update."""
        if self.waiting.pop(update.serial, None):
            self._done.append(update)

    def batch(self, limit: int) -> list[Pending]:
        """The next updates; those told again are not told a third time."""
        batch = list(islice(self.waiting.values(), limit))
        for update in batch:
            if update.again:
                del self.waiting[update.serial]
        return batch

    def repeat(self, count: int) -> int:
        """Tell the last ``count`` confirmed updates again, before the others; returns how many."""
        known = [update for update in self._done if not update.again][-count:]
        again = [replace(update, serial=next(self._serials), again=True) for update in known]
        self.waiting = {update.serial: update for update in again} | self.waiting
        for update in again:
            self.on_new(update)
        return len(again)

    def drop(self) -> None:
        """Forget all."""
        self.waiting.clear()


_MESSAGES = frozenset(["message", "edited_message", "channel_post", "edited_channel_post"])


def _lane(kind: str, content: object) -> tuple[str, object]:
    if not is_object(content):
        return kind, None
    if kind in _MESSAGES:
        return "message", _id(content.get("chat"))
    return kind, _id(content.get("from") or content.get("chat"))


def _id(place: object) -> object:
    number = place.get("id") if is_object(place) else None
    return number if isinstance(number, int) else None
