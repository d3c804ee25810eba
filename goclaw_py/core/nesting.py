"""Runs that wait for other runs (SPEC LANE-8).

A run that waits for a child keeps its slots meanwhile. So a child could wait, over several steps,
for the very run that waits for it. Whether it would is decided when it comes in: a child is the
last link of every such circle, because whoever gets a slot later waits for nobody yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.outcomes import Reason
from goclaw_py.core.requests import HOLDING, Family, Request, SessionQueue, check_count
from goclaw_py.core.status import RunState


@dataclass(frozen=True, slots=True)
class Nesting:
    """How far runs may ask for runs: ancestors above one, live children below one."""

    depth: int = 3
    children: int = 8

    def __post_init__(self) -> None:
        check_count("depth", self.depth)
        check_count("children", self.children)


DEFAULT_NESTING = Nesting()


def refusal(parent: Request | None, limits: Nesting) -> Reason | None:
    """Why a run may not have one more child, or None if it may.

    One that is being stopped may not: its children would outlive the stop.
    """
    if parent is None or parent.state is not RunState.RUNNING:
        return Reason.PARENT_ENDED
    family = parent.family
    if family is None:
        return None
    if len(family.ancestors) >= limits.depth:
        return Reason.TOO_DEEP
    return Reason.TOO_MANY_CHILDREN if len(family.children) >= limits.children else None


def bind(request: Request, parent: Request) -> Family:
    """Make a request the child of a run."""
    if parent.family is None:
        parent.family = Family()
    family = request.family = Family((parent, *parent.family.ancestors))
    parent.family.children[request.id] = request
    return family


def patient(request: Request) -> set[Request]:
    """Those above a request that cannot end before it has."""
    waiting: set[Request] = set()
    family = request.family
    child = request
    for ancestor in family.ancestors if family else ():
        if not child.awaited or ancestor.state not in HOLDING:
            break
        waiting.add(ancestor)
        child = ancestor
    return waiting


def host_of(request: Request) -> Request | None:
    """The nearest of those that wait for a request and work in the lane which it is for."""
    family = request.family
    waiting = patient(request)
    for ancestor in family.ancestors if family else ():
        if ancestor in waiting and ancestor.place is request.place:
            return ancestor
    return None


class Waits:
    """Follows who waits for whom, as things stand.

    Args:
        requests: All that are not done.
        sessions: The queue of a request's session, if there is one.
        family: Those who cannot end.
    """

    def __init__(
        self,
        requests: Iterable[Request],
        sessions: Mapping[SessionKey, SessionQueue],
        family: set[Request],
    ) -> None:
        self._holding = [r for r in requests if r.state in HOLDING or r.state is RunState.READY]
        self._sessions = sessions
        self._known: dict[Request, bool] = dict.fromkeys(family, True)

    def stuck(self, request: Request) -> bool:
        """Whether a request cannot end before one of the family has."""
        known = self._known.get(request)
        if known is None:
            # A circle that does not lead through the family cannot be: it was never let in.
            self._known[request] = False
            known = self._known[request] = self._look(request)
        return known

    def stuck_before_its_lane(self, request: Request) -> bool:
        """Whether session or agent can never have room for a request."""
        return any(all(map(self.stuck, group)) for group in self._before_lane(request))

    def stuck_in_its_lane(self, request: Request) -> bool:
        """Whether there can never be a slot for it, of its lane or of its host."""
        return any(all(map(self.stuck, group)) for group in self._for_slot(request))

    def _look(self, request: Request) -> bool:
        if request.state is RunState.RUNNING:
            children = request.family.children.values() if request.family else ()
            return any(child.awaited and self.stuck(child) for child in children)
        if not request.waits:
            return False  # it ends, or is given up
        return self.stuck_before_its_lane(request) or self.stuck_in_its_lane(request)

    def _before_lane(self, request: Request) -> Iterator[list[Request]]:
        """Groups of requests; out of each group one has to end before this one can go on."""
        if request.state is RunState.READY:
            return
        session = self._sessions.get(request.session)
        if session is not None:
            active = list(session.active.values())
            if request.alone:
                yield from ([other] for other in active)
            elif active and not session.may_start(request):
                yield active
            for other in session.waiting:
                if other is request:
                    break
                yield [other]
        if not request.slots.has_room:
            yield [other for other in self._holding if other.slots is request.slots]

    def _for_slot(self, request: Request) -> Iterator[list[Request]]:
        family = request.family
        host = family.host if family else None
        if host is None or host.family is None:
            if request.place.active >= request.place.concurrency:
                yield [r for r in self._holding if _has_slot(r) and r.place is request.place]
            return
        if host.family.guest is not None:
            yield [host.family.guest]
        for other in host.family.line:
            if other is request:
                break
            yield [other]


def _has_slot(request: Request) -> bool:
    """Whether a request has a lane slot of its own."""
    return request.state in HOLDING and (request.family is None or request.family.host is None)


def with_awaited(request: Request) -> Iterator[Request]:
    """A request and, over all steps, the children that are waited for."""
    yield request
    for child in request.family.children.values() if request.family else ():
        if child.awaited:
            yield from with_awaited(child)
