"""Outages: logged at their beginning and end, shown to operators in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from goclaw_py.core.time.texts import rough
from goclaw_py.scheduler.views import HEALTHY, ChannelHealth, ChannelState

_log = logging.getLogger("channels.telegram")

STARTING = ChannelHealth(ChannelState.STARTING)

_DOUBLINGS = 5
_TELL_EVERY_S = 300.0
"""The shortest time between two log lines about an outage, in seconds."""


class Outage:
    """An outage of one kind.

    Args:
        what: The problem in a few words.
        longest_pause_s: The delay doubles up to this.
        state: The state of the channel during it.
    """

    def __init__(
        self,
        what: str,
        account: str,
        longest_pause_s: float,
        state: ChannelState = ChannelState.RECONNECTING,
    ) -> None:
        self.state = state
        self._what = what
        self._account = account
        self._longest_pause_s = longest_pause_s
        self._since: float | None = None
        self._is_told = False
        self._told_at: float | None = None
        self._reason = ""
        self._tries = 0

    @property
    def sentence(self) -> str:
        """Return the problem and its latest reason; "" without one."""
        if self._since is None:
            return ""
        lasted = asyncio.get_running_loop().time() - self._since
        return f"{self._what}, for {rough(lasted)} now: {self._reason}"

    def again(self, reason: str) -> float:
        """Record a failure; return how many seconds to wait."""
        self._reason = reason
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
        if not self._is_told and (self._told_at is None or now - self._told_at >= _TELL_EVERY_S):
            self._is_told, self._told_at = True, now
            _log.warning("channel_outage_started", extra={**self._facts(), "error": reason})
        pause = self._longest_pause_s / 2.0 ** (_DOUBLINGS - self._tries)
        self._tries = min(self._tries + 1, _DOUBLINGS)
        return pause

    def over(self) -> None:
        """Record a success."""
        if self._since is not None and self._is_told:
            lasted = asyncio.get_running_loop().time() - self._since
            _log.info("channel_outage_ended", extra={**self._facts(), "duration_s": round(lasted)})
        self._since = None
        self._is_told = False
        self._tries = 0

    def _facts(self) -> dict[str, object]:
        return {"channel": "telegram", "account": self._account, "warning": self._what}


def health_of(outages: Iterable[Outage]) -> ChannelHealth:
    """Return the state and sentence of the first present outage."""
    for outage in outages:
        if sentence := outage.sentence:
            return ChannelHealth(outage.state, sentence)
    return HEALTHY
