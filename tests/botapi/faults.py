"""Ways in which a call can go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DOWNLOAD = "download"
"""What a file's download is called in faults and in the transcript."""
DELIVERY = "webhook"
"""What the delivery of an update to a webhook is called in faults."""


class FaultKind(StrEnum):
    """What happens to a call.

    A delivery to a webhook knows only ``RESET_AFTER``: the bot's answer is lost, so that the update
    comes again.
    """

    RESET = "reset"
    """The connection is reset; the call had no effect."""
    PAGE = "page"
    """A proxy answers with an HTML page and ``status``; the call had no effect."""
    ERROR = "error"
    """The Bot API itself refuses with ``status`` and ``words``; the call had no effect."""
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
    DELAY_AFTER = "delay_after"
    """The call had its effect; its answer comes ``seconds`` later."""
    GARBAGE_AFTER = "garbage_after"
    """The call had its effect; the answer is 200 with something that is no JSON."""
    BROKEN_AFTER = "broken_after"
    """The call had its effect; what comes back is no HTTP, and repeats the address called."""
    DRIP = "drip"
    """The call had its effect; its answer comes byte by byte, ``seconds`` apart."""
    CUT = "cut"
    """The call had its effect; the connection ends after half of its answer."""

    @property
    def before(self) -> bool:
        """Whether the call goes wrong before it has its effect."""
        return self in _BEFORE

    @property
    def after(self) -> bool:
        """Whether the call has its effect before it goes wrong."""
        return not (self.before or self is FaultKind.DELAY)


_BEFORE = frozenset(map(FaultKind, ("reset", "page", "error", "flood", "hang")))


@dataclass(frozen=True, slots=True)
class Fault:
    """What to do to the next ``count`` calls of ``method`` (``*``: of any method).

    ``chat``: only to calls with this ``chat_id``. ``words`` is the description of an ``ERROR``.
    """

    method: str
    kind: FaultKind
    count: int = 1
    seconds: float = 1.0
    status: int = 502
    chat: int | None = None
    words: str = "Bad Gateway"


class Faults:
    """The faults that are still to happen, first come, first served."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, int]] = []

    def add(self, fault: Fault) -> None:
        self._left.append((fault, fault.count))

    def clear(self) -> None:
        self._left.clear()

    def take(self, method: str, chat: int | None = None) -> Fault | None:
        """The fault for a call, if one is due; it counts as happened."""
        for place, (fault, left) in enumerate(self._left):
            if fault.method in ("*", method) and fault.chat in (None, chat):
                if left > 1:
                    self._left[place] = (fault, left - 1)
                else:
                    del self._left[place]
                return fault
        return None
