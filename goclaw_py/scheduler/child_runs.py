"""Runs that wait for other runs (SPEC LANE-8).

A run keeps its slots while it waits for a child. So a child could wait, over several steps, for the
very run that waits for it. A child is the last link of every such cycle, so cycles are detected
when it is admitted. Later, other runs may take an agent slot that it needs and wait for the lane of
its family, and lanes and sessions may shrink: then the check is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.outcomes import Reason
from goclaw_py.scheduler.models import HOLDING, Family, Request, SessionQueue, check_count
from goclaw_py.scheduler.views import RunState


@dataclass(frozen=True, slots=True)
class NestingLimits:
    """Limits of child runs: the depth of ancestors, and the live children of a run."""

    depth: int = 3
    children: int = 8

    def __post_init__(self) -> None:
        check_count("depth", self.depth)
        check_count("children", self.children)


Kin = dict[SessionKey, dict[RunId, Request]]
"""For each session, the live requests that its runs, also ended ones, have created."""

DEFAULT_NESTING = NestingLimits()


def refusal(parent: Request | None, limits: NestingLimits) -> Reason | None:
    """Return why a run may not have another child; None if it may.

    A run that is being stopped may not: the child would outlive the stop.
    """
    if parent is None or parent.state is not RunState.RUNNING:
        return Reason.PARENT_ENDED
    family = parent.family
    if family is None:
        return None
    if len(family.ancestors) >= limits.depth:
        return Reason.TOO_DEEP
    return Reason.TOO_MANY_CHILDREN if len(family.children) >= limits.children else None


def bind(request: Request, parent: Request, kin: Kin) -> None:
    """Make a request the child of a run."""
    if parent.family is None:
        parent.family = Family()
    request.family = Family((parent, *parent.family.ancestors))
    parent.family.children[request.id] = request
    for ancestor in request.family.ancestors:
        kin.setdefault(ancestor.session, {})[request.id] = request


def unbind(request: Request, kin: Kin) -> None:
    """Remove a child that is done."""
    ancestors = request.family.ancestors if request.family else ()
    for ancestor in ancestors[:1]:
        if ancestor.family is not None:
            del ancestor.family.children[request.id]
    for key in {ancestor.session for ancestor in ancestors}:  # they may share one
        of_session = kin[key]
        del of_session[request.id]
        if not of_session:
            del kin[key]


def with_descendants(request: Request, kin: Kin) -> list[Request]:
    """Return the request and all its live descendants."""
    of_session = kin.get(request.session, {}).values()
    return [request, *(r for r in of_session if r.family and request in r.family.ancestors)]


def patient(request: Request) -> set[Request]:
    """Return the ancestors of a request that cannot end before it."""
    waiting: set[Request] = set()
    family = request.family
    child = request
    for ancestor in family.ancestors if family else ():
        if not child.awaited or ancestor.state is not RunState.RUNNING:
            break
        waiting.add(ancestor)
        child = ancestor
    return waiting


def host_of(request: Request) -> Request | None:
    """Return the nearest ancestor that waits for a request and runs in its lane."""
    family = request.family
    waiting = patient(request)
    for ancestor in family.ancestors if family else ():
        if ancestor in waiting and ancestor.place is request.place:
            return ancestor
    return None


def still_there(host: Request | None) -> Request | None:
    """Return a host, or its nearest ancestor that has not ended."""
    while host is not None and host.state not in HOLDING:
        host = host.family.host if host.family else None
    return host


Sessions = Mapping[SessionKey, SessionQueue]


def where_stuck(
    request: Request, requests: Iterable[Request], sessions: Sessions, ends: Iterable[Request] = ()
) -> RunState | None:
    """Return the state in which a request would wait forever: QUEUED or READY; None if none.

    ``requests`` are all unfinished ones; ``ends`` are known to end. A request that is not queued
    yet counts as the last of its session.
    """
    return Waits(request, requests, sessions).stays_in(ends)


def would_wait(
    request: Request, run: Request, requests: Iterable[Request], sessions: Sessions
) -> bool:
    """Return whether a request cannot end before a run that does not wait for it yet."""
    return Waits(request, requests, sessions, outstanding={run}).stays_in() is not None


class Waits:
    """Computes which run waits for which, now and if a request were admitted.

    A request ends unless another one holds what it needs and does not end. So a request never ends
    if it is part of a cycle, or needs all of a cycle; all others end, except those that are
    ``outstanding``.
    """

    def __init__(
        self,
        request: Request,
        requests: Iterable[Request],
        sessions: Sessions,
        outstanding: Collection[Request] = (),
    ) -> None:
        self._request = request
        self._outstanding = outstanding
        self._sessions = sessions
        self._active = [r for r in requests if r.state in HOLDING or r.state is RunState.READY]
        self._concerned = self._all_concerned()
        self._ready: set[Request] = set()
        self._ends: set[Request] = set()

    def stays_in(self, ends: Iterable[Request] = ()) -> RunState | None:
        """Return the state in which the request stays forever, or None.

        ``ends`` are known to end.
        """
        self._ready, self._ends = set(), set(ends)
        before = -1
        while before < (before := len(self._ready) + len(self._ends)):
            for request in self._concerned:
                if request not in self._ends and request not in self._outstanding:
                    self._update(request)
        if self._request in self._ends:
            return None
        return RunState.READY if self._request in self._ready else RunState.QUEUED

    def _update(self, request: Request) -> None:
        if request.waits and request not in self._ready:
            if not self._gets_ready(request):
                return
            self._ready.add(request)
        if self._gets_through(request):
            self._ends.add(request)

    def _gets_ready(self, request: Request) -> bool:
        """Return whether session and agent will have a slot for it."""
        if request.state is RunState.READY:
            return True
        active, ahead = self._before(request)
        room = 1 if request.alone else self._concurrency(request)
        if not self._ready.issuperset(ahead) or self._staying([*active, *ahead]) >= room:
            return False
        limit = request.slots.limit
        return limit is None or self._staying(self._of_agent(request)) < limit

    def _gets_through(self, request: Request) -> bool:
        """Return whether a ready request will start, or a run end."""
        needed = self._needed(request)
        if not request.waits or _host(request) is not None:
            return self._ends.issuperset(needed)
        return self._staying(needed) < request.place.concurrency

    def _staying(self, requests: list[Request]) -> int:
        return sum(request not in self._ends for request in requests)

    def _concurrency(self, request: Request) -> int:
        newest = self._request if request.session == self._request.session else request
        if newest.state is RunState.COLLECTING:
            return newest.policy.concurrency  # as it will be when that one is queued
        return self._sessions[request.session].concurrency

    def _before(self, request: Request) -> tuple[list[Request], list[Request]]:
        """Return the active requests of its session, and those before it in the queue."""
        session = self._sessions.get(request.session)
        if session is None:
            return [], []
        return list(session.active.values()), _until(request, session.waiting)

    def _of_agent(self, request: Request) -> list[Request]:
        return [other for other in self._active if other.slots is request.slots]

    def _needed(self, request: Request) -> list[Request]:
        """Return the requests that must end before a ready one starts, or a run ends."""
        family = request.family
        if request.state is RunState.RUNNING:
            return _awaited_by(family) if family else []
        if not request.waits:
            return []  # it ends, or is given up
        host = _host(request)
        if host is None or host.family is None:
            return [r for r in self._active if _has_slot(r) and r.place is request.place]
        guests = [] if host.family.guest is None else [host.family.guest]
        return guests + _until(request, host.family.line)

    def _all_concerned(self) -> list[Request]:
        concerned = {self._request: None}
        todo = [self._request]
        while todo:
            request = todo.pop()
            found = self._needed(request)
            if request.waits and request.state is not RunState.READY:
                active, ahead = self._before(request)
                found = [*found, *active, *ahead]
                if request.slots.limit is not None:
                    found += self._of_agent(request)
            todo += (other for other in found if other not in concerned)
            concerned.update(dict.fromkeys(found))
        return list(concerned)


def _until(request: Request, line: Iterable[Request]) -> list[Request]:
    return list(takewhile(lambda other: other is not request, line))


def _host(request: Request) -> Request | None:
    return still_there(request.family.host) if request.family else None


def _has_slot(request: Request) -> bool:
    """Whether a request has a lane slot of its own."""
    return request.state in HOLDING and (request.family is None or request.family.host is None)


def _awaited_by(family: Family) -> list[Request]:
    awaited = [child for child in family.children.values() if _delays(child)]
    return awaited if family.awaits is None else [*awaited, family.awaits]


def _delays(child: Request) -> bool:
    """Return whether its parent cannot end yet."""
    return child.awaited and (child.waits or child.state in (RunState.RUNNING, RunState.STOPPING))


def with_awaited(request: Request) -> Iterator[Request]:
    """Yield a request and, recursively, the children that are awaited.

    An ended run waits for nothing; a stopped run has stopped its children.
    """
    yield request
    if request.family is None or request.state is not RunState.RUNNING:
        return
    for child in request.family.children.values():
        if child.awaited:
            yield from with_awaited(child)
