"""How long a ``/stop`` takes that comes to another node than the one that works.

The run is at one node and the stop at another: a chat's, because only one node receives for the
bot, and an operator's, who asks whichever gateway is at hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final

from bench.cluster.agent import HOLD
from bench.cluster.nodes import Stage, session_of, stage

_FIRST: Final = 20_001
_POLLER: Final = 0
_OTHER: Final = 1
_RELEASED_S: Final = 6.0
_STEADY_S: Final = 0.2
"""What goes with the beginning of a run, such as a draft or a mark, is over by then."""

_users = count(_FIRST)


@dataclass(slots=True)
class Reactions:
    """Seconds from the stop until the agent's task had ended.

    Args:
        chat: From when a person wrote it, to the server of the channel.
        operator: From when another gateway was asked, on its socket.
        here: The same at the gateway that works, to compare.
    """

    chat: list[float] = field(default_factory=list)
    operator: list[float] = field(default_factory=list)
    here: list[float] = field(default_factory=list)


def measure(times: int) -> Reactions:
    """Stop so many runs in each of the ways."""
    found = Reactions()
    with stage(2) as here:
        poller, other = here.start(_POLLER), here.start(_OTHER)
        known = _greet(here, times)
        for user in known:
            prompt = f"{HOLD} {user}"
            path = f"/api/sessions/{session_of(user)}/messages"
            here.post(_OTHER, path, {"message": prompt})
            found.chat.append(_stop(here, other.pid, user, _say_stop))
            for place, reactions in ((_OTHER, found.operator), (_POLLER, found.here)):
                somebody = next(_users)
                here.api.say(somebody, f"{HOLD} {somebody}")
                reactions.append(_stop(here, poller.pid, somebody, partial(_ask_stop, place)))
    return found


def _greet(here: Stage, people: int) -> list[int]:
    """Let people be known to both nodes, and their sessions be nobody's."""
    users = [next(_users) for _ in range(people)]
    for user in users:
        here.api.say(user, f"hello {user}")
    here.began([f"hello {user}" for user in users])
    time.sleep(_RELEASED_S)
    return users


def _stop(here: Stage, container: int, user: int, stop: Callable[[Stage, int], None]) -> float:
    prompt = f"{HOLD} {user}"
    here.began([prompt], by=container)
    time.sleep(_STEADY_S)
    stopped_at = time.monotonic()
    stop(here, user)
    return here.ended(prompt) - stopped_at


def _say_stop(here: Stage, user: int) -> None:
    here.api.say(user, "/stop")


def _ask_stop(place: int, here: Stage, user: int) -> None:
    here.post(place, f"/api/sessions/{session_of(user)}/stop", {})
