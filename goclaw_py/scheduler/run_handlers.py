"""Routes the calls of the dispatcher to the owner of each run: chat, job, heartbeat or parent."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Protocol

from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import Ending
from goclaw_py.scheduler.dispatcher import RunHandler


class RunOwner(RunHandler, Protocol):
    """A run handler that knows which runs are its own."""

    def owns(self, run_id: RunId) -> bool:
        """Return whether this request belongs to it and has no stored end."""


class RunHandlers:
    """Forwards each call of the dispatcher to the owner of the run.

    The owners need the dispatcher, so they are registered once they exist.
    """

    def __init__(self) -> None:
        self._owners: tuple[RunOwner, ...] = ()

    def register(self, *owners: RunOwner) -> None:
        """Set the owners. They are asked in this order; the last one gets what none owns."""
        self._owners = owners

    async def work(self, run_id: RunId) -> None:
        """Execute the run."""
        await self._of(run_id).work(run_id)

    def record(self, ended: Ending, error: BaseException | None) -> Coroutine[None, None, None]:
        """Store how a request ended."""
        return self._of(ended.run_id).record(ended, error)

    def joined(self, request_id: RunId, into: RunId) -> None:
        """Only chat messages join others."""
        self._of(into).joined(request_id, into)

    def restarted(self, run_id: RunId, into: RunId) -> None:
        """Only runs of chats begin again."""
        self._of(into).restarted(run_id, into)

    def offered(self, request_id: RunId, run_id: RunId) -> None:
        """Only chat messages are offered."""
        self._of(run_id).offered(request_id, run_id)

    def _of(self, run_id: RunId) -> RunOwner:
        for owner in self._owners:
            if owner.owns(run_id):
                return owner
        return self._owners[-1]
