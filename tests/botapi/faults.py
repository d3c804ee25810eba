"""Ways in which a call can go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What happens to a call."""

    RESET = "reset"
    """The connection is reset; the call had no effect."""
    PAGE = "page"
    """A proxy answers with an HTML page and ``status``; the call had no effect."""
    FLOOD = "flood"
    """429 with ``retry_after`` = ``seconds``; the call had no effect."""
    DELAY = "delay"
    """The call is handled ``seconds`` later."""
    HANG = "hang"
    """No answer until the caller goes away; the call had no effect."""
    RESET_AFTER = "reset_after"
    """The call had its effect, then the connection is reset."""
    HANG_AFTER = "hang_after"
    """The call had its effect; its answer never comes."""
    GARBAGE_AFTER = "garbage_after"
    """The call had its effect; the answer is 200 with something that is no JSON."""
    BROKEN_AFTER = "broken_after"
    """The call had its effect; what comes back is no HTTP, and repeats the address called."""

    @property
    def after(self) -> bool:
        """Whether the call has its effect before it goes wrong."""
        return self in (
            FaultKind.RESET_AFTER,
            FaultKind.HANG_AFTER,
            FaultKind.GARBAGE_AFTER,
            FaultKind.BROKEN_AFTER,
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """What to do to the next ``count`` calls of ``method`` (``*``: of any method)."""

    method: str
    kind: FaultKind
    count: int = 1
    seconds: float = 1.0
    status: int = 502


class Faults:
    """The faults that are still to happen, first come, first served."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, int]] = []

    def add(self, fault: Fault) -> None:
        self._left.append((fault, fault.count))

    def clear(self) -> None:
        self._left.clear()

    def take(self, method: str) -> Fault | None:
        for place, (fault, left) in enumerate(self._left):
            if fault.method in ("*", method):
                if left > 1:
                    self._left[place] = (fault, left - 1)
                else:
                    del self._left[place]
                return fault
        return None
