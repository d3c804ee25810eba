"""Why a run ended as it did, or has not ended: from the message to the delivery.

It needs approvals, deliveries and jobs as well, so it is in no folder of a noun.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.approvals import Approval, Decision
from goclaw_py.core.display_names import operator_in, short_id
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.core.text import count, usd
from goclaw_py.core.time.texts import duration
from goclaw_py.gateway.why import outcomes
from goclaw_py.gateway.why.sources import (
    Sources,
    Verdict,
    between,
    conclude,
    limit_of,
    quoted,
    who,
)
from goclaw_py.operations.approvals import why as approvals
from goclaw_py.operations.deliveries import why as deliveries
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
)
from goclaw_py.records import DeadLetter, OutboxRow, OutboxState, RunQuery, RunSpan, StoredRun
from goclaw_py.scheduler.models import DEFAULT_POLICY, Debounce, QueuePolicy
from goclaw_py.scheduler.operator_warnings import shell_command
from goclaw_py.scheduler.views import RunState

SLOW_WAIT: Final = timedelta(seconds=2)
"""A longer wait for a slot made an answer late."""

SLOW_RUN: Final = timedelta(seconds=30)
"""A longer run made an answer late."""

_QUEUED_WITHIN: Final = timedelta(seconds=1)
"""How soon after it was received a message is in the queue of its session."""

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class RunWait:
    """Why a run started later than it was requested.

    Args:
        collected_s: How long the sender's messages were debounced.
        waited_s: How long it waited after that.
        reason: ``session``, ``lane``, ``agent``, ``approval`` if the holder had asked a person,
            ``cut`` if it had the same messages and was interrupted, or "" if it is unknown.
        holder: The run that had the slot, or that this run continues.
        holder_name: Its name, with whose it is if that may be another session.
    """

    collected_s: float = 0.0
    waited_s: float = 0.0
    reason: str = ""
    holder: str = ""
    holder_name: str = ""

    @property
    def is_slow(self) -> bool:
        """Return whether it made the answer late."""
        return self.waited_s > SLOW_WAIT.total_seconds()


@dataclass(frozen=True, slots=True)
class RunHistory:
    """A run with everything that is stored about it.

    Args:
        dead_letters: The messages that it began with or took in, the oldest first. Another run
            has answered those that it did not finish.
        said: Its outgoing messages, the oldest first.
        asked: The questions that it ended to ask, also those of its child runs.
    """

    run: StoredRun
    dead_letters: tuple[DeadLetter, ...] = ()
    said: tuple[OutboxRow, ...] = ()
    asked: tuple[Approval, ...] = ()
    wait: RunWait = field(default_factory=RunWait)

    @property
    def is_queued_again(self) -> bool:
        """Return whether its messages were retried, or had waited for a gateway."""
        if not self.dead_letters or self.wait.reason in ("approval", "cut"):
            return False
        received_at = self.dead_letters[-1].row.received_at
        return self.run.submitted_at - received_at > _QUEUED_WITHIN


def subject(run: StoredRun) -> Subject:
    """Return the run as a subject."""
    return Subject(SubjectKind.RUN, run.id, f"run {short_id(run.id)}")


async def explain(src: Sources, run: StoredRun, about: Subject | None = None) -> Explanation:
    """Explain a run; ``about`` is the subject if that is another one."""
    story = await story_of(src, run)
    verdict = await judge(src, story)
    return verdict.explanation(about or subject(run), src.now(), await chain(src, story))


async def story_of(src: Sources, run: StoredRun) -> RunHistory:
    """Read everything that is stored about a run."""
    letters = tuple(await src.store.letters_of(run.id))
    record = await src.control.runs.record(run.id)
    asked: Sequence[Approval] = ()
    if run.reason is Reason.APPROVAL:
        asked = await approvals.questions(src, run.id, run.payer)
    return RunHistory(run, letters, record.said, tuple(asked), await _wait_of(src, run, letters))


# ---------------------------------------------------------------------------- waiting


async def _wait_of(src: Sources, run: StoredRun, letters: Sequence[DeadLetter]) -> RunWait:
    since, policy = run.submitted_at, _policy(src, letters)
    if letters:
        received_at = letters[-1].row.received_at
        if since > received_at and (before := await _continued(src, run, received_at)):
            return before
        since = max(since, received_at)
    total_s = max((run.started_at - since).total_seconds(), 0.0)
    # A single message does not wait; a further one makes the run wait.
    starts_at_once = policy.debounce is Debounce.SPECULATIVE and len(letters) == 1
    collected_s = 0.0 if starts_at_once else min(total_s, policy.debounce_s)
    waited_s = total_s - collected_s
    if waited_s < 0.05:
        return RunWait(collected_s)
    # The slot came from the run that ended last before this one began.
    ended = await _ended_before(src, run, since)
    if not ended:
        # With no run before it a single message has waited too: its sender often writes in bursts.
        collected_s = min(total_s, policy.debounce_s)
        return RunWait(collected_s, total_s - collected_s)
    holder = max(ended, key=_end_of_span)
    name = await src.run_name(holder.id, holder.session)
    return RunWait(collected_s, waited_s, ended[holder], holder.id, name)


async def _continued(src: Sources, run: StoredRun, since: datetime) -> RunWait | None:
    """Return the wait of a run that continues another one; None: its messages were retried."""
    if run.follows is None:
        return None
    # The earlier run may be deleted.
    before = next(iter(await src.store.find_run(run.follows)), None)
    if before is None or before.outcome not in (Outcome.LOST, Outcome.INTERRUPTED):
        return None
    if before.reason is Reason.APPROVAL:
        questions = await approvals.questions(src, before.id, run.payer)
        if any(one.decision is Decision.STOPPED for one in questions):
            return None
        asked_at = before.finished_at or before.started_at
        return RunWait(0.0, (run.started_at - asked_at).total_seconds(), "approval", before.id)
    return RunWait(0.0, (run.started_at - since).total_seconds(), "cut", before.id)


async def _ended_before(src: Sources, run: StoredRun, since: datetime) -> dict[RunSpan, str]:
    """Return the runs that ended after an instant, and which slot of each a run may have got."""
    spans = await src.control.runs.between(since, run.started_at + timedelta(seconds=0.001))
    limit = src.agent_limit(run.agent)
    of_agent = [] if limit is None else [one for one in spans if one.agent == run.agent]

    def shared_slot(other: RunSpan, end: datetime) -> str:
        if other.session == run.session:
            return "session"
        if limit is not None and other.agent == run.agent:
            # A run of the same agent, also in another lane, has kept it only from a full agent.
            ends = [one.finished_at or end for one in of_agent if one.started_at < end]
            if sum(each >= end for each in ends) >= limit:
                return "agent"
        return "lane" if other.lane == run.lane else ""

    return {
        one: slot
        for one in spans
        if one.id != run.id
        and one.started_at <= run.started_at
        and one.finished_at is not None
        and since <= one.finished_at <= run.started_at + timedelta(seconds=0.5)
        and (slot := shared_slot(one, one.finished_at))
    }


def _end_of_span(one: RunSpan) -> tuple[datetime, str]:
    return one.finished_at or one.started_at, one.id


def _policy(src: Sources, letters: Sequence[DeadLetter]) -> QueuePolicy:
    """Return how the session of these messages queues."""
    if not letters:
        return DEFAULT_POLICY
    message = letters[-1].row.message
    rules = src.rules_of(message.target)
    return DEFAULT_POLICY if rules is None else rules.policy(message.peer)


# ---------------------------------------------------------------------------- results


async def judge(src: Sources, story: RunHistory) -> Verdict:
    """Return the result of a run in a sentence, with remedies."""
    run = story.run
    if run.outcome is None:
        return await _working(src, run)
    if run.outcome is Outcome.COMPLETED:
        return await _completed(src, story)
    if not story.asked:
        return _ended(story)
    return await approvals.judge(src, list(story.asked), run.id)


async def _working(src: Sources, run: StoredRun) -> Verdict:
    name, lasts = f"Run {short_id(run.id)}", between(run.started_at, src.now())
    if not await src.is_reachable(run.node):
        answer = f"{name} was interrupted: its node {run.node} no longer renews its lease."
        start = Cure("A gateway that runs takes its messages over within 15 s", "goclaw status")
        return conclude("run.node_lost", answer, start)
    view = src.view(run.id)
    stop = Cure("Stop it", shell_command("stop", run.session))
    if view is not None and view.state is RunState.STOPPING:
        answer = f"{name} is being stopped, and its task has not ended for {duration(view.for_s)}."
        wait = Cure("After cancel_grace (10 s) it is abandoned and no longer uses a slot")
        return conclude("run.stopping", answer, wait)
    tool = next((call.name for call in reversed(run.tools) if call.ok is None), "")
    doing = f"; it is calling {tool}" if tool else ""
    follow = Cure("Follow the run live", shell_command("runs", "follow", run.session))
    return conclude("run.running", f"{name} has been running for {lasts}{doing}.", follow, stop)


async def _completed(src: Sources, story: RunHistory) -> Verdict:
    run = story.run
    ran = between(run.started_at, run.finished_at or run.started_at)
    undelivered = [row for row in story.said if row.state is not OutboxState.SENT]
    if undelivered:
        worst = min(undelivered, key=lambda row: (row.state is not OutboxState.FAILED, row.id))
        fate = await deliveries.fate_of(src, worst)
        answer = f"Run {short_id(run.id)} completed, and its message {worst.id} {fate.answer}."
        return conclude(fate.code, answer, *fate.cures)
    doubled = next((row for row in story.said if row.possible_duplicate), None)
    if doubled is not None:
        fate = await deliveries.fate_of(src, doubled)
        return conclude(fate.code, f"The answer {fate.answer}.", *fate.cures)
    if not story.said:
        return _silent(run, ran)
    return _answered(src, story, ran)


def _silent(run: StoredRun, ran: str) -> Verdict:
    show = Cure("Its prompt and its steps", f"goclaw runs show {run.id}")
    if run.trigger is not Trigger.CHAT:
        answer = f"Run {short_id(run.id)} completed in {ran} and sent no message."
        return conclude("run.completed", answer, show)
    answer = f"Run {short_id(run.id)} completed in {ran}, and the agent had nothing to say."
    return conclude("run.silent", answer, show)


def _answered(src: Sources, story: RunHistory, ran: str) -> Verdict:
    """Explain an answered run; if it was late, what took the time."""
    run, last = story.run, story.said[-1]
    finished = run.finished_at or run.started_at
    sent_at = last.sent_at or finished
    since, message = run.submitted_at, "The request"
    if story.dead_letters:
        message = f"The message {quoted(story.dead_letters[0].row.message.text)}"
        if not story.is_queued_again:
            since = story.dead_letters[0].row.received_at
    begin = f"{message} was answered after {between(since, sent_at)}: "
    sending = sent_at - last.created_at
    if story.wait.is_slow:
        code, what, cures = _slow_wait(src, story)
        return conclude(code, f"{begin}{what}; it then ran for {ran}.", *cures)
    if finished - run.started_at > SLOW_RUN:
        show = Cure("Its tools and their durations", f"goclaw runs show {run.id}")
        return conclude("late.run", f"{begin}the run itself took {ran}.", show)
    if sending > deliveries.LATE:
        fate = deliveries.sent(last)
        return conclude("late.delivery", f"{begin}its message {fate.answer}.", *fate.cures)
    return conclude("answered", f"{begin}it ran {ran} and was sent.")


def _slow_wait(src: Sources, story: RunHistory) -> tuple[str, str, tuple[Cure, ...]]:
    run, wait = story.run, story.wait
    waited = f"it waited {duration(wait.waited_s)}"
    holder = f"run {short_id(wait.holder)}"
    match wait.reason:
        case "session":
            what = f"{waited} for its own conversation, where {holder} was in progress"
            cures: tuple[Cure, ...] = (
                Cure("Add new messages to the run in progress: write /queue steer in the chat"),
                Cure("Or replace it by new messages: write /queue interrupt in the chat"),
                Cure("Why that run took so long", f"goclaw why run:{wait.holder}"),
            )
        case "approval":
            what = f"{waited} for the answer of a person to a question of {holder}"
            cures = (Cure("What was asked", f"goclaw why run:{wait.holder}"),)
        case "cut":
            what = (
                f"it was started twice, because {holder} was interrupted after "
                f"{duration(wait.waited_s)}"
            )
            done = f"goclaw runs show {wait.holder}"
            cures = (Cure("What the first run had done by then", done),)
        case "lane":
            what = f"{waited} for a slot of lane {run.lane}, which {wait.holder_name} had"
            long = Cure("Why that run took so long", f"goclaw why run:{wait.holder}")
            cures = (long, *src.wider(run.lane))
        case "agent":
            what = f"{waited} for agent {run.agent}, which had reached its limit of concurrent runs"
            cures = (limit_of(run.agent),)
        case _:
            what, cures = waited, (Cure("What the gateway did meanwhile", "goclaw runs list"),)
    return f"late.{wait.reason or 'wait'}", what, cures


def _ended(story: RunHistory) -> Verdict:
    run, end = story.run, _end_of(story)
    own = [one.row for one in story.dead_letters if one.row.run_id == run.id]
    retry = next((row.id for row in own if row.outcome is not None), None)
    answer = f"Run {short_id(run.id)} {outcomes.clause(end)}."
    later = next((one.row for one in story.dead_letters if one.row.run_id != run.id), None)
    cures = list(outcomes.cures(end, run=run.id, retry=retry))
    if later is not None and later.run_id is not None:
        ended = {None: "has its messages now", Outcome.COMPLETED: "answered its messages"}
        done = ended.get(later.outcome, "had its messages then, and ended without an answer")
        answer += f" Run {short_id(later.run_id)} {done}."
        cures.insert(0, Cure("What that run did", f"goclaw why run:{later.run_id}"))
    return conclude(outcomes.code(end), answer, *cures)


def _end_of(story: RunHistory) -> outcomes.FailedOutcome:
    """Return how a run ended. Only of the last run the attempts are over."""
    run = story.run
    is_last = any(one.row.run_id == run.id for one in story.dead_letters)
    crashed = "the gateway crashed" if run.reason is Reason.CRASHED and not is_last else ""
    return outcomes.FailedOutcome(
        run.outcome or Outcome.FAILED, run.reason, run.error or crashed, run.agent
    )


# ---------------------------------------------------------------------------- chain


async def chain(src: Sources, story: RunHistory) -> list[ExplanationStep]:
    """Return every decision, in order."""
    run = story.run
    steps = [*await _request(src, story), *_waited(src, story)]
    steps += await _interrupted_before(src, story)
    model = f", model {run.model}" if run.model else ""
    began = f"run {short_id(run.id)} started in lane {run.lane} on node {run.node}{model}"
    steps.append(ExplanationStep(run.started_at, "started", began))
    worked, asked = _worked(story), approvals.steps(list(story.asked))
    questions = [one for one in asked if one.code == approvals.ASKED]
    # A question ends the run, a moment before that is stored.
    place = len(worked) - bool(questions)
    steps += [*worked[:place], *questions, *worked[place:]]
    steps += [one for one in asked if one.code != approvals.ASKED]
    targets = {row.message.target for row in story.said[:_SHOWN]}
    names = {target: await src.place(target) for target in targets}
    for row in story.said[:_SHOWN]:
        steps += deliveries.steps(row, names[row.message.target])
    if len(story.said) > _SHOWN:
        rest = count(len(story.said) - _SHOWN, "more message")
        steps.append(ExplanationStep(None, "more", f"{rest}; see goclaw runs show {run.id}"))
    return steps


async def _request(src: Sources, story: RunHistory) -> list[ExplanationStep]:
    run, letters = story.run, story.dead_letters
    if not letters:
        return [ExplanationStep(run.submitted_at, "asked", await _by_whom(src, run))]
    steps = [received(letters[0])]
    first, last, window_s = letters[0].row, letters[-1].row, story.wait.collected_s
    if len(letters) > 1:
        after = between(first.received_at, last.received_at)
        more = f"collected with {len(letters) - 1} more, the last {after} after the first"
        steps.append(ExplanationStep(last.received_at, "collected", more))
    if story.is_queued_again:
        words = "put into the queue again: it was retried or held, or a gateway had started"
        steps.append(ExplanationStep(run.submitted_at, "queued_again", words))
    elif len(letters) == 1 and window_s > 0.05:
        words = f"waited {duration(window_s)} for more from its sender (debounce_ms)"
        steps.append(ExplanationStep(last.received_at, "collected", words))
    return steps


def received(letter: DeadLetter) -> ExplanationStep:
    """Return the first step of every message."""
    message = letter.row.message
    sender = operator_in(message.target) or who(message.sender)
    words = f"received from {sender}: {quoted(message.text)}"
    return ExplanationStep(letter.row.received_at, "received", words)


async def _by_whom(src: Sources, run: StoredRun) -> str:
    match run.trigger:
        case Trigger.CRON:
            row = await src.store.logged(run.occurrence) if run.occurrence else None
            return "requested by a job" if row is None else f"requested by job {row.slug}"
        case Trigger.HEARTBEAT:
            return f"requested by the heartbeat of agent {run.agent}"
        case Trigger.SUBAGENT | Trigger.DELEGATE:
            parent = f" by run {short_id(run.parent)}" if run.parent else ""
            return f"requested{parent} as a {run.trigger.value}"
        case Trigger.API:
            return "requested over the API"
        case Trigger.CHAT:
            return "requested by messages that are no longer stored"


def _waited(src: Sources, story: RunHistory) -> list[ExplanationStep]:
    run, wait = story.run, story.wait
    if not wait.waited_s or wait.reason == "cut":
        return []
    began = run.started_at - timedelta(seconds=wait.waited_s)
    _, what, _ = _slow_wait(src, story)
    return [ExplanationStep(began, f"waited_{wait.reason}" if wait.reason else "waited", what)]


async def _interrupted_before(src: Sources, story: RunHistory) -> list[ExplanationStep]:
    """Return the interrupted runs for the same messages."""
    if not any(one.attempts > 1 for one in story.dead_letters):
        return []
    since = story.dead_letters[0].row.received_at
    earlier = await src.store.runs(RunQuery(session=story.run.session, limit=_SHOWN))
    return [
        ExplanationStep(
            one.finished_at,
            "cut",
            f"run {short_id(one.id)}, which had started with it, was {one.outcome.value}",
        )
        for one in reversed(earlier)
        if one.outcome in (Outcome.LOST, Outcome.INTERRUPTED, Outcome.FAILED)
        and since <= one.started_at < story.run.started_at
    ]


def _worked(story: RunHistory) -> list[ExplanationStep]:
    run = story.run
    steps: list[ExplanationStep] = []
    if run.tools:
        names = Counter(call.name for call in run.tools)
        told = ", ".join(
            f"{name} ({n} times)" if n > 1 else name for name, n in names.most_common(_SHOWN)
        )
        failed = sum(call.ok is False and not call.is_denied for call in run.tools)
        denied = sum(call.is_denied for call in run.tools)
        bad = f", {failed} of them failed" if failed else ""
        bad += f", {denied} of them denied" if denied else ""
        words = f"called {count(len(run.tools), 'tool')}: {told}{bad}"
        steps.append(ExplanationStep(run.tools[0].started_at, "tools", words))
    if run.first_text_at is not None:
        steps.append(
            ExplanationStep(run.first_text_at, "first_word", "sent the first words of its answer")
        )
    if run.finished_at is not None and run.outcome is not None:
        steps.append(_end(story, run.outcome, run.finished_at))
    return sorted(steps, key=lambda step: step.at or run.started_at)


def _end(story: RunHistory, outcome: Outcome, finished_at: datetime) -> ExplanationStep:
    run = story.run
    after = between(run.started_at, finished_at)
    used = f"; used {_used(run.usage)}" if run.usage is not None and run.usage.requests else ""
    words = "completed" if outcome is Outcome.COMPLETED else outcomes.clause(_end_of(story))
    return ExplanationStep(finished_at, f"ended_{outcome.value}", f"after {after} it {words}{used}")


def _used(usage: Usage) -> str:
    cost = "at an unknown price" if usage.cost_usd is None else f"for {usd(usage.cost_usd)}"
    requests, tokens = count(usage.requests, "model request"), count(usage.tokens, "token")
    return f"{requests}, {tokens} {cost}"
