"""How often an address may show a wrong token (SPEC SEC-6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MOST_OF_ADDRESS: Final = 10
"""Wrong tokens of one address at once."""

OF_ADDRESS_EVERY_S: Final = 30.0
"""Seconds after which it may try once more."""

MOST_OF_ALL: Final = 100
"""Wrong tokens of all addresses at once: somebody may have many addresses."""

OF_ALL_EVERY_S: Final = 3.0

TRUSTED_S: Final = 86_400.0
"""Seconds for which an address from which the right token came is not kept out."""

_MOST_ADDRESSES: Final = 4_096


@dataclass(slots=True)
class _Bucket:
    """Tries that are left, of at most ``most``; one comes back after each ``every_s``."""

    most: int
    every_s: float
    at: float
    left: float = field(init=False)
    is_said: bool = False

    def __post_init__(self) -> None:
        self.left = self.most

    def refill(self, now: float) -> None:
        self.left = min(self.most, self.left + max(now - self.at, 0) / self.every_s)
        self.at = now


class Attempts:
    """Counts what was refused, by address and together. Times are those of a clock in seconds."""

    def __init__(self) -> None:
        self._all = _Bucket(MOST_OF_ALL, OF_ALL_EVERY_S, 0.0)
        self._of: dict[str, _Bucket] = {}
        self._trusted: dict[str, float] = {}

    def blocked(self, peer: str, now: float) -> str:
        """Return why an address has to wait; "" if it has not."""
        self._all.refill(now)
        own = self._of.get(peer)
        if own is not None:
            own.refill(now)
            if own.left < 1:
                return "too many wrong tokens from this address"
        return "" if self._all.left >= 1 else "too many wrong tokens"

    def is_first_refusal(self, peer: str) -> bool:
        """Return whether an address has to wait for the first time since one was counted."""
        own = self._of.get(peer, self._all)
        before, own.is_said = own.is_said, True
        return not before

    def is_trusted(self, peer: str, now: float) -> bool:
        """Return whether the right token came from an address within the last day."""
        return now - self._trusted.get(peer, -TRUSTED_S) < TRUSTED_S

    def note_wrong(self, peer: str, now: float) -> None:
        """Count a wrong token."""
        self.blocked(peer, now)
        own = self._of.get(peer)
        if own is None:
            if len(self._of) >= _MOST_ADDRESSES:
                self._forget(now)
            own = self._of[peer] = _Bucket(MOST_OF_ADDRESS, OF_ADDRESS_EVERY_S, now)
        for one in (own, self._all):
            one.left -= 1
            one.is_said = False

    def note_right(self, peer: str, now: float) -> None:
        """Note that the right token came from an address."""
        self._trusted.pop(peer, None)
        if len(self._trusted) >= _MOST_ADDRESSES:
            del self._trusted[next(iter(self._trusted))]
        self._trusted[peer] = now

    def _forget(self, now: float) -> None:
        """Forget addresses that are as new, else the one that was counted first."""
        for bucket in self._of.values():
            bucket.refill(now)
        for peer in [peer for peer, one in self._of.items() if one.left >= one.most]:
            del self._of[peer]
        if len(self._of) >= _MOST_ADDRESSES:
            del self._of[next(iter(self._of))]
