"""The state of a node, and why it does not work."""

from __future__ import annotations

from goclaw_py.cluster.membership import differences
from goclaw_py.core.time.texts import age, duration
from goclaw_py.gateway.why.sources import Sources, Verdict, between, conclude
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
)
from goclaw_py.operations.nodes.operations import NodesView
from goclaw_py.records import Node


def subject(node: Node) -> Subject:
    """Return the node as a subject."""
    return Subject(SubjectKind.NODE, node.id, f"process {node.pid} on {node.machine}")


async def explain(src: Sources, node: Node) -> Explanation:
    """Explain the state of a node."""
    view = await src.control.nodes.list()
    verdict = _judge(view, node)
    told = node.state
    places = ", ".join(told.places) or "nothing"
    steps = [
        ExplanationStep(
            node.started_at, "started", f"started on {node.machine}, release {node.release}"
        ),
        ExplanationStep(
            None,
            "work",
            f"{told.running} running, {told.waiting} waiting, receives {places}",
        ),
        ExplanationStep(
            node.lease_until, "lease", f"its lease {'ends' if node.is_live(view.at) else 'ended'}"
        ),
    ]
    return verdict.explanation(subject(node), view.at, steps)


def _judge(view: NodesView, node: Node) -> Verdict:
    begin = f"Node {node.id} (process {node.pid} on {node.machine})"
    if not node.is_live(view.at):
        answer = (
            f"{begin} does not respond: its lease ended {age(node.lease_until, view.at)}, and "
            "other nodes take over its work."
        )
        again = Cure("To bring it back, start it on its machine", "goclaw run")
        return conclude("node.expired", answer, again, Cure("The nodes", "goclaw nodes list"))
    if node.state.draining:
        answer = (
            f"{begin} is shutting down: it accepts no new work and ends when its runs "
            "have finished."
        )
        watch = Cure("Watch it end", "goclaw nodes list --watch")
        return conclude("node.draining", answer, watch)
    here = next((one for one in view.nodes if one.id == view.here), None)
    line = differences(here, node) if here is not None and here.id != node.id else ""
    if line:
        show = Cure("What differs", f"goclaw nodes show {node.id}")
        return conclude("node.differs", f"{begin} {line}.", show)
    if abs(node.state.skew_s) >= _SKEW_S:
        answer = (
            f"{begin} has a clock that is {duration(abs(node.state.skew_s))} off the database's."
        )
        sync = Cure("Synchronize its clock with a time server", "timedatectl set-ntp true")
        return conclude("node.clock", answer, sync)
    up = between(node.started_at, view.at)
    return conclude("node.live", f"{begin} has been running without problems for {up}.")


_SKEW_S = 2.0
"""A larger clock error, in seconds, is a warning (SPEC NODE-1)."""
