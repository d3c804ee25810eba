"""Why a run or its messages wait for the answer of a person (SPEC AGENT-11)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from goclaw_py.chat.outbound import approval_texts
from goclaw_py.core.approvals import Approval, Decision
from goclaw_py.core.display_names import short_id
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.time.texts import age, rough
from goclaw_py.gateway.why.sources import Sources, Verdict, conclude
from goclaw_py.operations.explanation import Cure, ExplanationStep
from goclaw_py.records import ApprovalQuery, RunQuery, StoredRun

ASKED: Final = "asked_approval"
"""The code of the step with a question."""

_SEARCHED: Final = 20
"""The number of later runs of a session among which the continued one is searched."""


async def questions(src: Sources, run: RunId, session: SessionKey) -> list[Approval]:
    """Return the questions of a run and of its child runs, the oldest first.

    ``session`` is that of the run whose messages wait.
    """
    found = await src.store.approvals(ApprovalQuery(session, waiting=False))
    return [one for one in reversed(found) if await _is_below(src, one.run_id, run)]


async def _is_below(src: Sources, child: RunId | None, run: RunId) -> bool:
    """Return whether a run is another one or one of its child runs."""
    while child is not None and child != run:
        found = await src.store.find_run(child)
        child = found[0].parent if found else None
    return child == run


async def judge(src: Sources, approvals: list[Approval], asking: RunId) -> Verdict:
    """Explain whether the questions of a run were answered; there is at least one."""
    waiting = [one for one in approvals if one.decision is None]
    if waiting:
        return _waits(src, waiting[0])
    last = max(approvals, key=lambda one: one.decided_at or one.asked_at)
    answer = f"Run {short_id(last.run_id)} {_ask(last)}, and "
    run = await _continued_by(src, asking, last.decided_at or last.asked_at)
    if any(one.decision is Decision.STOPPED for one in approvals):
        if run is not None:
            show = Cure("The run that has its messages now", f"goclaw runs show {run.id}")
            return conclude("ended.stopped", f"{answer}was stopped. It was retried.", show)
        ended = [letter.row for letter in await src.store.letters_of(asking)]
        retry = (
            Cure("Retry the message", f"goclaw deliveries incoming retry {row.id}")
            for row in ended
            if row.outcome is Outcome.CANCELLED
        )
        return conclude("ended.stopped", f"{answer}was stopped; nothing continues.", *retry)
    if run is None:
        words = f"{answer}continues after the answer, which is there."
        return conclude("run.asked", words, Cure("All runs", "goclaw runs list"))
    show = Cure("The run that continued it", f"goclaw runs show {run.id}")
    return conclude("run.asked", f"{answer}was continued after the answer.", show)


async def _continued_by(src: Sources, asking: RunId, answered_at: datetime) -> StoredRun | None:
    """Return the run that has gone on after the questions of another one."""
    (run,) = await src.store.find_run(asking)
    messages = {letter.row.id for letter in await src.store.letters_of(asking)}
    later = await src.store.runs(RunQuery(session=run.session, since=answered_at, limit=_SEARCHED))
    for one in reversed(later):
        taken = {letter.row.id for letter in await src.store.letters_of(one.id)}
        if one.id != asking and (not messages or messages & taken):
            return one
    return None


def _waits(src: Sources, approval: Approval) -> Verdict:
    place = "" if approval.target is not None else "; the owners were asked in their own chats"
    since = age(approval.asked_at, src.now())
    left = rough((approval.expires_at - src.now()).total_seconds())
    answer = (
        f"Run {short_id(approval.run_id)} {_ask(approval)} {since} and waits "
        f"for an answer, for {left} more{place}."
    )
    show = Cure("The call with its arguments", f"goclaw approvals show {approval.id}")
    if approval.request.uncertain:
        check = "Check whether the call took effect, then answer: happened, again or skip"
        command = f"goclaw approvals answer {approval.id} happened"
        return conclude("waits.approval", answer, Cure(check, command), show)
    cures = (
        Cure("Allow it: a button or /approve in the chat", f"goclaw approvals allow {approval.id}"),
        Cure("Or deny it: a button or /deny in the chat", f"goclaw approvals deny {approval.id}"),
    )
    return conclude("waits.approval", answer, *cures, show)


def _ask(approval: Approval) -> str:
    if approval.request.uncertain:
        return f"has asked whether its interrupted call of {approval.request.tool} took effect"
    return f"has asked for approval to call {approval.request.tool}"


def steps(approvals: list[Approval]) -> list[ExplanationStep]:
    """Return the questions and their answers."""
    found = []
    for one in approvals:
        words = f"run {short_id(one.run_id)} {_ask(one)}"
        found.append(ExplanationStep(one.asked_at, ASKED, words))
        if one.decision is not None:
            said = approval_texts.answer(one.decision, one.decided_by).rstrip(".")
            words = f"{one.request.tool}: {said}"
            found.append(ExplanationStep(one.decided_at, "answered_approval", words))
    return found
