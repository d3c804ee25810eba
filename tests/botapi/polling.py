"""``getUpdates``: one poller at a time, and none beside a webhook."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.botapi.records import Bell
from tests.botapi.rules import Json, Parameters, Refusal
from tests.botapi.world import World

_LONGEST_S = 50
_MOST = 100
_OLDER_POLLER = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
    "running"
)
_SET_WEBHOOK = "Conflict: terminated by setWebhook request"
_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete "
    "the webhook first"
)


class Polls:
    """The long polls of one bot."""

    def __init__(self, world: World, bell: Bell) -> None:
        self._world = world
        self._bell = bell
        self._current: asyncio.Future[Refusal] | None = None

    async def get_updates(self, call: Parameters) -> list[Json]:
        """The next batch; what comes before its ``offset`` is confirmed. Raises ``Refusal``."""
        if self._world.hook.url:
            raise Refusal(409, _WEBHOOK)
        if call.json("allowed_updates") is not None:
            self._world.updates.allowed = frozenset(map(str, call.items("allowed_updates")))
        self.end(Refusal(409, _OLDER_POLLER))
        me = self._current = asyncio.get_running_loop().create_future()
        self._world.updates.confirm(call.number("offset"))
        self._bell.ring()
        try:
            await self._wait(me, min(max(call.number("timeout"), 0), _LONGEST_S))
        finally:
            if self._current is me:
                self._current = None
        limit = call.number("limit", _MOST)
        batch = self._world.updates.batch(limit if 1 <= limit <= _MOST else _MOST)
        return self._spoilt([update.body for update in batch])

    def webhook_set(self) -> None:
        self.end(Refusal(409, _SET_WEBHOOK))

    def end(self, refusal: Refusal) -> None:
        """End the poll that is under way; a 409 goes to the one that was there first."""
        if self._current is not None and not self._current.done():
            self._current.set_result(refusal)

    async def _wait(self, me: asyncio.Future[Refusal], seconds: int) -> None:
        """Wait for an update. Raises ``Refusal`` if the poll is ended."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not self._world.updates.waiting and loop.time() < end:
            waits: set[asyncio.Future[Any]] = {self._bell.next(), me}
            await asyncio.wait(
                waits, timeout=end - loop.time(), return_when=asyncio.FIRST_COMPLETED
            )
            if me.done():
                raise me.result()

    def _spoilt(self, batch: list[Json]) -> list[Json]:
        updates = self._world.updates
        if batch and updates.shuffled:
            updates.shuffled -= 1
            batch.reverse()
        if batch and updates.doubled:
            updates.doubled -= 1
            batch = [update for update in batch for _ in range(2)]
        return batch
