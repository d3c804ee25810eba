"""Faults that somebody could make in the scheduler, and a way to plant one.

A fault is a change of source text. The scheduler's modules are loaded again, under another name,
with the text changed; a text that is not there exactly once is an error, so that no fault gets lost
when the code changes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import goclaw_py.scheduler
from tests.property.histories import CHATS, CROWD, ENDINGS, FAMILIES, PATIENT, TYPING, Setting
from tests.property.pair import Core

PACKAGE = "planted"
SHARED = ("views",)
"""Values that the tests compare with their own are not loaded again."""

_IMPORT = re.compile(r"from goclaw_py\.scheduler\.(\w+) import")


@dataclass(frozen=True, slots=True)
class Fault:
    """In ``module`` of the scheduler ``old`` is replaced; histories of ``setting`` must show it."""

    name: str
    setting: Setting
    module: str
    old: str
    new: str


class Gardener(MetaPathFinder, Loader):
    """Imports the scheduler's modules as ``planted.…``, with a fault or without."""

    def __init__(self, fault: Fault | None) -> None:
        self.fault = fault
        self.planted = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PACKAGE and not fullname.startswith(f"{PACKAGE}."):
            return None
        return ModuleSpec(fullname, self, is_package=fullname == PACKAGE)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == PACKAGE:
            return
        name = module.__name__.removeprefix(f"{PACKAGE}.")
        source = Path(goclaw_py.scheduler.__path__[0], f"{name}.py").read_text()
        fault = self.fault
        if fault is not None and fault.module == name:
            count = source.count(fault.old)
            if count != 1:
                raise LookupError(f"{fault.name}: its text is {count} times in scheduler.{name}")
            source = source.replace(fault.old, fault.new)
            self.planted = True
        source = _IMPORT.sub(_planted_import, source)
        exec(compile(source, f"<planted {name}>", "exec"), vars(module))


def _planted_import(found: re.Match[str]) -> str:
    package = "goclaw_py.scheduler" if found[1] in SHARED else PACKAGE
    return f"from {package}.{found[1]} import"


def plant(fault: Fault | None) -> Core:
    """A core of its own, with this fault. Raises ``LookupError`` if the fault has no place."""
    gardener = Gardener(fault)
    sys.meta_path.insert(0, gardener)
    try:
        core = Core(import_module(f"{PACKAGE}.scheduler"), import_module(f"{PACKAGE}.models"))
    finally:
        sys.meta_path.remove(gardener)
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]
    if fault is not None and not gardener.planted:
        raise LookupError(f"{fault.name}: scheduler.{fault.module} is no part of the scheduler")
    return core


FAULTS = [
    Fault(
        "a cancelled run's place in its session is free at once",
        CHATS,
        "state_machine",
        "while waiting and len(active) < session.concurrency:",
        "while waiting and sum(r.state is not STOPPING for r in active.values())"
        " < session.concurrency:",
    ),
    Fault(
        "a message that interrupts does not wait for the run it has cancelled",
        CHATS,
        "models",
        "return not self.active",
        "return True",
    ),
    Fault(
        "capacity counts running ones",
        CHATS,
        "state_machine",
        "full = len(waiting) >= policy.capacity",
        "full = bool(waiting) and len(waiting) + len(session.active) >= policy.capacity",
    ),
    Fault(
        "a follow-up to a busy session is debounced again",
        CHATS,
        "admission",
        "if window_s and (session is None or _goes_on_typing(session, request, now)):",
        "if window_s:",
    ),
    Fault(
        "who types on during a short run is not collected again",
        TYPING,
        "admission",
        "return last_at is not None and now - last_at <= request.policy.debounce_s",
        "return False",
    ),
    Fault(
        "a steady typist is never served",
        TYPING,
        "debounce",
        "burst.ends_at = min(now + burst.window_s, burst.latest_at)",
        "burst.ends_at = now + burst.window_s",
    ),
    Fault(
        "the last of a session goes first",
        CROWD,
        "state_machine",
        "waiting.append(request)",
        "waiting.appendleft(request)",
    ),
    Fault(
        "the last of a lane goes first",
        CROWD,
        "lanes",
        "lane.line.append(request)",
        "lane.line.appendleft(request)",
    ),
    Fault(
        "who moves up overtakes those who wait for the lane",
        CROWD,
        "state_machine",
        "self.slots.free(request, now)\n        self.admit(session, now)",
        "self.admit(session, now)\n        self.slots.free(request, now)",
    ),
    Fault(
        "the newest is dropped instead of the oldest",
        CROWD,
        "state_machine",
        "self.end(waiting[0], Outcome.DROPPED",
        "self.end(waiting[-1], Outcome.DROPPED",
    ),
    Fault(
        "an agent's limit holds for each session",
        CROWD,
        "state_machine",
        "request.slots = self.agents.get(request.agent, self.unlimited)",
        "request.slots = self.agents.get(request.agent, self.unlimited)\n"
        "        request.slots = self.agents.setdefault("
        "(request.agent, request.session), AgentSlots(request.slots.limit))",
    ),
    Fault(
        "a session keeps an agent as long as it has messages",
        CROWD,
        "state_machine",
        "                agent.line[key] = None",
        "                agent.line = {key: None, **agent.line}",
    ),
    Fault(
        "shrinking a lane cancels runs",
        CROWD,
        "scheduler",
        "        lane.resize(concurrency)\n",
        "        lane.resize(concurrency)\n"
        "        inside = [r for r in self._machine.requests.values() if r.works_in(lane)]\n"
        "        self._machine.cut("
        "inside[concurrency:], Outcome.CANCELLED, Reason.STOPPED, now)\n",
    ),
    Fault(
        "an abandoned run keeps its slots",
        CHATS,
        "state_machine",
        "Outcome.ABANDONED, request.reason))\n        self._free(request, now)",
        "Outcome.ABANDONED, request.reason))",
    ),
    Fault(
        "a deadline does not end who waits",
        CHATS,
        "timeouts",
        "states = (_S.COLLECTING, _S.QUEUED, _S.READY, _S.RUNNING)",
        "states = (_S.RUNNING,)",
    ),
    Fault(
        "a run that was stopped ends as its task says",
        CHATS,
        "state_machine",
        "outcome = request.stop_outcome or outcome",
        "outcome = outcome or request.stop_outcome",
    ),
    Fault(
        "a message that joined has an outcome of its own",
        CHATS,
        "state_machine",
        "self.effects.append(MergeIntoRun(request, into))",
        "self.effects += [MergeIntoRun(request, into), Ended(request, Outcome.COMPLETED)]",
    ),
    Fault(
        "the id of a message that joined may be used again at once",
        CHATS,
        "scheduler",
        "if request.id in machine.requests or request.id in machine.aliases:",
        "if request.id in machine.requests:",
    ),
    Fault(
        "collect takes only one of those who wait",
        CHATS,
        "state_machine",
        "self.absorb(other, request), others))",
        "self.absorb(other, request), others[:1]))",
    ),
    Fault(
        "a turn takes more messages than it may",
        CHATS,
        "models",
        "self.pieces + other.pieces <= limits.turn_messages",
        "self.pieces + other.pieces <= limits.turn_messages + 1",
    ),
    Fault(
        "what joined a turn does not count for its size",
        CHATS,
        "state_machine",
        "        into.chars += request.chars\n",
        "",
    ),
    Fault(
        "a turn takes in messages that came after others which it may not",
        CHATS,
        "state_machine",
        "list(takewhile(lambda r: r.policy",
        "list(filter(lambda r: r.policy",
    ),
    Fault(
        "a message is offered to the run that started first",
        CHATS,
        "state_machine",
        "run = max(runs,",
        "run = min(runs,",
    ),
    Fault(
        "a run that was stopped takes messages in",
        CHATS,
        "scheduler",
        "if request is None or run is None or run.state is not RUNNING:",
        "if request is None or run is None or run.state is QUEUED:",
    ),
    Fault(
        "stopping all forgets the debounce buffer",
        CHATS,
        "scheduler",
        "requests = [burst.leader for burst in machine.collector.of(session_key)]",
        "requests = list[Request]()",
    ),
    Fault(
        "a stop of one sender takes what another one wrote",
        CHATS,
        "models",
        "mine = [r for r in self.active.values() if r.is_of(sender)]",
        "mine = list(self.active.values())",
    ),
    Fault(
        "a stop of one sender takes everything",
        CHATS,
        "scheduler",
        "mine = [request for request in requests if request.is_of(sender)]",
        "mine = requests",
    ),
    Fault(
        "who asked for a run may not stop its children",
        FAMILIES,
        "models",
        "return any(above.is_of(sender) for above in self.family.ancestors)",
        "return any(above.is_of(None) for above in ())",
    ),
    Fault(
        "who waits too long for a lane is told with every look",
        CROWD,
        "lanes",
        "if first.seq != lane.told:",
        "if True:",
    ),
    Fault(
        "a closed lane takes more",
        ENDINGS,
        "scheduler",
        "        lane.closed = True\n",
        "        lane.closed = False\n",
    ),
    Fault(
        "a shutdown runs what waits",
        ENDINGS,
        "scheduler",
        "waiting = [r for r in requests if r.waits and (among is None or r.id in among)]",
        "waiting = [r for r in requests if r.state is QUEUED and (among is None or r.id in among)]",
    ),
    Fault(
        "a guest takes a slot of its own",
        FAMILIES,
        "child_runs",
        "            return ancestor\n",
        "            return None\n",
    ),
    Fault(
        "a host's slot is free while its guest works",
        FAMILIES,
        "lanes",
        "            _family(guest).host = host\n",
        "            _family(guest).host = host\n            lane.active -= host is None\n",
    ),
    Fault(
        "an awaited child goes on when its parent is stopped",
        FAMILIES,
        "child_runs",
        "        if child.awaited:\n",
        "        if not child.awaited:\n",
    ),
    Fault(
        "a child of the same agent needs an agent's slot of its own",
        FAMILIES,
        "admission",
        "request.slots = machine.unlimited",
        "pass",
    ),
    Fault(
        "a child that waits is not looked at again when others take its agent",
        PATIENT,
        "scheduler",
        "            self._intake.unblock(now)\n",
        "            pass\n",
    ),
]
