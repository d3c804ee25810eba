"""Faults that somebody could make in the product, and a way to plant one.

A fault is a change of the source text of one function. A text that is not there exactly once is an
error, so that no fault gets lost when the code changes.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from goclaw_py.chat.inbound.ingestion import MessageIngestor
from goclaw_py.chat.inbound.provider_outage import ProviderOutageBuffer
from goclaw_py.chat.outbound.outbox_sender import OutboxSender
from goclaw_py.cluster.membership import Membership
from goclaw_py.schedule.jobs.executions import JobExecutions
from goclaw_py.scheduler.models import SessionQueue
from tests.chaos.invariants import Rule
from tests.simulation import scenes
from tests.simulation.plan import Plan
from tests.support.memory_store import MemoryDatabase, MemoryStore
from tests.support.memory_store.inbox import MemoryInbox
from tests.support.memory_store.jobs.tables import JobTables
from tests.support.memory_store.runs import MemoryRuns


@dataclass(frozen=True, slots=True)
class Fault:
    """In ``method`` of ``owner`` each old text becomes a new one; then a rule is broken.

    ``scene``: a scenario that shows it.
    """

    owner: type
    method: str
    changes: tuple[tuple[str, str], ...]
    breaks: Rule
    scene: Plan


FAULTS = {
    "a session is taken from a node that lives": Fault(
        MemoryDatabase,
        "claim",
        (
            (" or self.is_live(session.owner, now)", ""),
            ("session.pending and session.owner in self.nodes", "False"),
            ("any(self.runs[run].node != node for run in session.active)", "False"),
        ),
        Rule.RUNS_OVERLAP,
        scenes.NOTHING,
    ),
    "nobody looks at the fence of a run": Fault(
        MemoryRuns,
        "_run_to_end",
        (
            ("run.end.outcome is Outcome.LOST is not end.outcome:", "False:"),
            ("!= (node, node, run.fence):", "is None:"),
        ),
        Rule.ANSWERED_ONCE,
        scenes.STANDS_STILL,
    ),
    "the next run of a session does not wait for one that is being stopped": Fault(
        SessionQueue,
        "may_start",
        (
            (
                "len(self.active) < self.concurrency",
                "sum(one.stop_outcome is None for one in self.active.values()) < self.concurrency",
            ),
        ),
        Rule.WORK_OVERLAPS,
        scenes.STOPPED,
    ),
    "a node that is cut off works on": Fault(
        Membership,
        "guard",
        (("if was_late and is_late and self._has_company", "if False"),),
        Rule.WORK_OVERLAPS,
        scenes.CUT_OFF,
    ),
    "a message that may have arrived counts as not sent": Fault(
        OutboxSender,
        "_failed",
        (("unsure = isinstance(error, MaybeSent)", "unsure = False"),),
        Rule.SEEN_TWICE,
        scenes.SENT_UNHEARD,
    ),
    "a message that is sent again does not say so": Fault(
        OutboxSender,
        "_with_draft",
        (("with_copy_note(channel, message)", "message"),),
        Rule.SEEN_TWICE,
        scenes.SENT_UNHEARD,
    ),
    "what a dead node was sending may be sent again without a record": Fault(
        MemoryDatabase,
        "free",
        (("row.possible_duplicate = True", "pass"),),
        Rule.SEEN_TWICE,
        scenes.KILLED_WHILE_IT_SENDS,
    ),
    "two nodes send the same row": Fault(
        MemoryStore,
        "claim_next",
        (("if not due and head.owner != node:", "if False:"),),
        Rule.SEEN_TWICE,
        scenes.BOTH_WOULD_SEND,
    ),
    "a message that is delivered again is accepted again": Fault(
        MemoryInbox,
        "accept",
        (("if _key(row) not in self._db.known]", "]"),),
        Rule.ACCEPTED_ONCE,
        scenes.ACCEPTED_UNHEARD,
    ),
    "a new message goes before an older one that another node has accepted": Fault(
        MessageIngestor,
        "_process_committed",
        (("if is_older or any(box.stale for box in boxes.values())", "if False"),),
        Rule.ORDER,
        scenes.ACCEPTED_UNHEARD,
    ),
    "a dead node keeps its places in a lane": Fault(
        MemoryDatabase,
        "free",
        (("self.lane_permits.remove(nodes)", "pass"),),
        Rule.LEFT_BEHIND,
        scenes.KILLED_AT_WORK,
    ),
    "what a dead node left of a job is forgotten and begun anew": Fault(
        JobTables,
        "claim",
        (("left = self._open.get((job.id, job.next_run_at))", "left = None"),),
        Rule.OCCURRENCE_ONCE,
        scenes.KILLED_IN_A_JOB,
    ),
    "a job whose session another node holds is skipped": Fault(
        JobExecutions,
        "refused",
        (
            (
                "elif await self.wait_elsewhere(execution):",
                "elif await self.end(execution, Finish(OccurrenceStatus.SKIPPED, Why.BUSY)):",
            ),
        ),
        Rule.OCCURRENCE_SKIPPED,
        scenes.SESSION_IS_ELSEWHERE,
    ),
    "the next held message is never tried": Fault(
        ProviderOutageBuffer,
        "_try_at",
        (("outage.alarm.set(due)", "pass"),),
        Rule.ONE_OUTCOME,
        scenes.HELD,
    ),
    "the end of an outage releases no held message": Fault(
        ProviderOutageBuffer,
        "_end",
        (("self._submit(turn)", "pass"),),
        Rule.ONE_OUTCOME,
        scenes.HELD,
    ),
}


@contextmanager
def planted(fault: Fault | None) -> Iterator[None]:
    """Let the product have a fault. Raises ``LookupError`` if it has no place."""
    if fault is None:
        yield
        return
    owner = next(one for one in fault.owner.__mro__ if fault.method in vars(one))
    known = vars(owner)[fault.method]
    setattr(owner, fault.method, _changed(fault, known))
    try:
        yield
    finally:
        setattr(owner, fault.method, known)


def _changed(fault: Fault, known: Any) -> Any:
    source = textwrap.dedent(inspect.getsource(known))
    for old, new in fault.changes:
        if source.count(old) != 1:
            raise LookupError(f"{old!r} is {source.count(old)} times in {fault.method}")
        source = source.replace(old, new)
    names = dict(vars(sys.modules[known.__module__]))
    code = compile(f"from __future__ import annotations\n{source}", f"<{fault.method}>", "exec")
    exec(code, names)
    return names[fault.method]
