"""Faults that somebody could make in the scheduler, and a way to plant one.

A fault is a change of source text. The scheduler's modules are loaded again, under another name,
with the text changed; a text that is not there exactly once is an error, so that no fault gets lost
when the code changes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import goclaw_py.scheduler
from tests.property.histories import SETTINGS, Setting
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


def _read(text: str) -> Iterator[Fault]:
    """Blocks of a setting, a module and a name, the lines that are there, and those instead."""
    settings = {setting.name: setting for setting in SETTINGS}
    for block in re.split(r"\n(?=\w)", text.strip("\n")):
        head, *lines = block.split("\n")
        setting, module, name = re.split(" / |: ", head, maxsplit=2)
        old, new = ("\n".join(one[1:] for one in lines if one[0] == sign) for sign in "-+")
        yield Fault(name, settings[setting], module, old, new)


FAULTS = list(
    _read("""
chats / state_machine: a cancelled run's place in its session is free at once
-while waiting and len(active) < session.concurrency:
+while waiting and sum(r.state is not STOPPING for r in active.values()) < session.concurrency:
chats / models: a message that interrupts does not wait for the run it has cancelled
-return not self.active
+return True
chats / state_machine: capacity counts running ones
-full = len(waiting) >= policy.capacity
+full = bool(waiting) and len(waiting) + len(session.active) >= policy.capacity
chats / admission: a follow-up to a busy session is debounced again
-if window_s and _waits_for_more(session, request, now):
+if window_s:
typing / admission: who types on during a short run is not collected again
-return last_at is not None and now - last_at <= request.policy.debounce_s
+return False
speculative / admission: a message begins no run at once
-    if request.speculative:
-        return False
+    if request.speculative and session is not None:
+        return False
speculative / scheduler: a run that has had an effect begins again
-            request.speculative = False
+            pass
speculative / admission: a run begins again although the window is over
-return run if now - run.last_at <= request.policy.debounce_s else None
+return run
speculative / state_machine: the messages of a run that begins again do not count
-        self._add(run, into)
-        for run_id
+        self.alias(run.id, into)
+        for run_id
speculative / models: a run that begins again looks stopped
-        return self.stop_outcome not in (None, Outcome.INTERRUPTED)
+        return self.stop_outcome is not None
bursts / debounce: restarts are not limited
-        return missing <= (self._restarts - 1) * self._turns
+        return True
bursts / debounce: turns recover no restart
-            self._missing[key] = missing - 1
+            self._missing[key] = missing
bursts / debounce: people share their limit of restarts
-        key = request.session, request.sender
-        self._missing
+        key = request.session, ""
+        self._missing
typing / debounce: a steady typist is never served
-burst.ends_at = min(now + burst.window_s, burst.latest_at)
+burst.ends_at = now + burst.window_s
crowd / state_machine: the last of a session goes first
-waiting.append(request)
+waiting.appendleft(request)
crowd / lanes: the last of a lane goes first
-lane.line.append(request)
+lane.line.appendleft(request)
crowd / state_machine: who moves up overtakes those who wait for the lane
-        self.slots.free(request, now)
-        self.admit(session, now)
+        self.admit(session, now)
+        self.slots.free(request, now)
crowd / state_machine: the newest is dropped instead of the oldest
-self.end(waiting[0], Outcome.DROPPED
+self.end(waiting[-1], Outcome.DROPPED
crowd / state_machine: an agent's limit holds for each session
-        request.slots = self.agents.get(request.agent, self.unlimited)
+        request.slots = self.agents.get(request.agent, self.unlimited)
+        key = (request.agent, request.session)
+        request.slots = self.agents.setdefault(key, AgentSlots(request.slots.limit))
crowd / state_machine: a session keeps an agent as long as it has messages
-                agent.line[key] = None
+                agent.line = {key: None, **agent.line}
crowd / state_machine: a new limit of an agent is not applied
-        before, agent.limit = agent.limit, limit
+        before = agent.limit
crowd / state_machine: a higher limit of an agent starts nothing
-        if limit is not None:
-            self._serve(agent, now)
-            return
+        if limit is not None:
+            return
crowd / scheduler: shrinking a lane cancels runs
-        lane.resize(concurrency)
+        lane.resize(concurrency)
+        inside = [r for r in self._machine.requests.values() if r.works_in(lane)]
+        self._machine.end_all(inside[concurrency:], Outcome.CANCELLED, Reason.STOPPED, now)
chats / state_machine: an abandoned run keeps its slots
-Outcome.ABANDONED, request.reason))
-        self._free(request, now)
+Outcome.ABANDONED, request.reason))
chats / timeouts: a deadline does not end who waits
-states = (_S.COLLECTING, _S.QUEUED, _S.READY, _S.RUNNING)
+states = (_S.RUNNING,)
chats / state_machine: a run that was stopped ends as its task says
-outcome = request.stop_outcome or outcome
+outcome = outcome or request.stop_outcome
chats / state_machine: a message that joined has an outcome of its own
-self.effects.append(MergeIntoRun(request, into))
+self.effects += [MergeIntoRun(request, into), Ended(request, Outcome.COMPLETED)]
chats / scheduler: the id of a message that joined may be used again at once
-if request.id in machine.requests or request.id in machine.aliases:
+if request.id in machine.requests:
chats / state_machine: collect takes only one of those who wait
-self.absorb(other, request), others))
+self.absorb(other, request), others[:1]))
chats / models: a turn takes more messages than it may
-self.pieces + other.pieces <= limits.turn_messages
+self.pieces + other.pieces <= limits.turn_messages + 1
chats / state_machine: what joined a turn does not count for its size
-        into.chars += request.chars
chats / state_machine: a turn takes in messages that came after others which it may not
-list(takewhile(lambda r: r.policy
+list(filter(lambda r: r.policy
chats / state_machine: a message is offered to the run that started first
-run = max(runs,
+run = min(runs,
chats / scheduler: a run that was stopped takes messages in
-if request is None or run is None or run.state is not RUNNING:
+if request is None or run is None or run.state is QUEUED:
chats / scheduler: stopping all forgets the debounce buffer
-requests = [burst.leader for burst in machine.collector.of(session_key)]
+requests = list[Request]()
chats / models: only who wrote first may stop a turn
-return frozenset(self.senders or (self.sender,)).union
+return frozenset((self.sender,)).union
families / models: who asked for a run may not stop its children
-.union(*(one.people for one in ancestors))
+.union(*(one.people for one in ()))
crowd / lanes: who waits too long for a lane is told with every look
-if first.seq != lane.told:
+if True:
endings / scheduler: a closed lane takes more
-        lane.closed = True
+        lane.closed = False
endings / scheduler: a shutdown runs what waits
-waiting = [r for r in requests if r.waits and (among is None or r.id in among)]
+waiting = [r for r in requests if r.state is QUEUED and (among is None or r.id in among)]
families / child_runs: a guest takes a slot of its own
-            return ancestor
+            return None
families / lanes: a host's slot is free while its guest works
-            _family(guest).host = host
+            _family(guest).host = host
+            lane.active -= host is None
families / child_runs: an awaited child goes on when its parent is stopped
-        if child.awaited:
+        if not child.awaited:
families / admission: a child of the same agent needs an agent's slot of its own
-request.slots = machine.unlimited
+pass
patient parents / scheduler: a child that waits is not looked at again when others take its agent
-            self._intake.unblock(now)
+            pass
""")
)
