"""A loop that claims due work from the database."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Final

from goclaw_py.common.wakeup import WakeEvent
from goclaw_py.model.errors import Fenced, StoreUnavailable

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
_UNSURE_S = 60.0


class PollingLoop(ABC):
    """Sleeps until the next due time or a change, at most a second.

    Args:
        what: What it claims, for the log.
        wake: Called when something was changed, or when there is room for more.
    """

    def __init__(self, what: str, wake: WakeEvent) -> None:
        self._what = what
        self._wake = wake
        self._closing = False
        self._is_unsure = False
        self._unsure_until = 0.0
        self.look_s = LOOK_S
        """How often the table is looked at without any notice; these are hints (SPEC DB-3)."""

    async def run(self) -> None:
        """Claim what comes due. Runs until cancelled."""
        while not self._closing:
            self._wake.clear()
            try:
                await self._be_sure()
                sleep_s = await self.look()
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"part": self._what, "error": str(error)})
                if self._is_unsure:
                    # Nothing was given back yet: the time begins when the database is back.
                    self._answer_was_lost()
                sleep_s = self.look_s
            except Fenced:
                # Declared dead; the next look is that of another node.
                sleep_s = self.look_s
            await self._wake.wait(sleep_s)

    async def _be_sure(self) -> None:
        if self._is_unsure:
            await self._give_back_unknown()
            self._is_unsure = asyncio.get_running_loop().time() < self._unsure_until

    @abstractmethod
    async def look(self) -> float:
        """Claim what is due now; how long there is nothing to do, in seconds, at most ``look_s``.

        Raises ``StoreUnavailable`` and ``Fenced``.
        """

    @abstractmethod
    async def _give_back_unknown(self) -> None:
        """Give back what was claimed by a call whose answer was lost."""

    def _answer_was_lost(self) -> None:
        """Whatever was claimed by a call is unknown here.

        For a while: it may take effect long after nobody waits for it any more.
        """
        self._is_unsure = True
        self._unsure_until = asyncio.get_running_loop().time() + _UNSURE_S

    def close(self) -> None:
        """Claim nothing more."""
        self._closing = True
        self._wake.call()
