"""Messages of jobs to chats: results, failures and their targets (SPEC CRON-13, AGENT-7).

The rules of SPEC CRON-13:

What a job tells, and whom.

- `notify = always` (default) | `conditional` (the reply starts with `[NOTIFY]`, blanks before it
  allowed, the marker is removed; explained in the system prompt) | `never`. A reply that is only
  `NO_REPLY`, also with markup or punctuation, is silent. Target: where the job was made, `last`
  (for a chat's job: that chat), `none`, or an explicit one. Deliveries carry the job's id and
  name.
- A run that finally failed is told. For `always` and every `at` its target gets one line (job,
  time, reason, and what the job does then: its next run, paused, disabled, or no more); a manual
  run is no failure in a row; for others the third failure in a row goes to the owner: the chat
  that owns the job, for an operator's job the last one.
- A result without a target ends as `no_route`, one that its chat refuses permanently as
  `undelivered`. It is sent, with a line about that, as soon as possible to the chat that it waited
  for or the owner's next one, else to the owners of the bot (what a chat's job says without its
  text, SEC-3). Until then `status` warns; of each job only the newest counts. Creating such a job
  warns at once.
- Reminders have buttons (done, snooze, run again): they act once and go away then; a press is
  answered with a toast.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.albums import in_albums
from goclaw_py.chat.outbound.ok_token import without_token
from goclaw_py.chat.outbound.places import where_read
from goclaw_py.chat.outbound.texts import done_before
from goclaw_py.core.chat_commands import job_buttons
from goclaw_py.core.concurrency import in_thread_if_long
from goclaw_py.core.errors import StoreError
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, OutboundMessage, Role, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.targets import Route, chat_of
from goclaw_py.core.text import sentence
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.texts import ChatZone
from goclaw_py.records import Place, Store, ToolCall
from goclaw_py.runs.replies.replies import Replies
from goclaw_py.runs.tool_services import sessions_of
from goclaw_py.schedule.jobs import texts
from goclaw_py.schedule.jobs.decisions import Finish, Recipients, failures_with, tells_failure
from goclaw_py.schedule.jobs.execution import EndReport, JobExecution
from goclaw_py.schedule.jobs.execution_models import (
    ENDED_BADLY,
    JobUpdate,
    OccurrenceClaim,
    OccurrenceStatus,
    UnreportedOccurrence,
    Why,
)
from goclaw_py.schedule.jobs.models import OPERATOR, Job, JobState, TargetKind
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.schedule.jobs.targets import JobTargets
from goclaw_py.schedule.models import Attempt

log = logging.getLogger(__name__)


class JobNotifications:
    """Builds the messages of jobs in the form that their channels accept.

    Args:
        owners: Finds the chats of the bot's owners.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[Place, Channel],
        places: JobTargets,
        replies: Replies,
        owners: Callable[[], Awaitable[Sequence[Target]]],
    ) -> None:
        self._owners = owners
        self._replies = replies
        self._store = store
        self._clock = clock
        self._channels = channels
        self._places = places

    def system(self, execution: JobExecution) -> str:
        """Return the system text of a scheduled run, beside the prompt of its job."""
        claimed = execution.claimed
        spec = claimed.job.spec
        # It is prepared before it is due.
        now = max(self._clock.now(), claimed.due_at)
        return texts.scheduled_run(spec.title, claimed.due_at, now, spec.zone, spec.notify)

    async def build(
        self, execution: JobExecution, end: Finish, update: JobUpdate | None, attempt: Attempt
    ) -> EndReport:
        """Build the messages about the end of an occurrence. Raises ``StoreUnavailable``."""
        job = execution.claimed.job
        if end.status is OccurrenceStatus.OK:
            return await self._result(execution, attempt)
        if end.status not in ENDED_BADLY:
            return EndReport()
        # A manual run is none of the failures in a row.
        told = tells_failure(
            job, 0 if execution.claimed.manual else failures_with(execution.claimed)
        )
        has_effects = end.why is Why.EFFECTS
        if end.status is OccurrenceStatus.LOST and not has_effects:
            calls = await self._interrupted_calls(execution)
            has_effects = bool(attempt.friendly) or any(call.side_effects for call in calls)
            said = filter(None, [sentence(attempt.error), done_before(calls)])
            attempt = replace(attempt, friendly=attempt.friendly or " ".join(said))
        if has_effects and told is None:
            told = Recipients.OWNER
        disabled = update is not None and update.state is JobState.DISABLED
        if told is None and not disabled:
            return EndReport()
        return EndReport(await self._failure(execution, end, update, attempt, told))

    async def _interrupted_calls(self, execution: JobExecution) -> list[ToolCall]:
        """Return the tool calls of its interrupted runs. Raises ``StoreUnavailable``."""
        row = await self._store.logged(execution.id)
        runs = [await self._store.find_run(run) for run in (() if row is None else row.runs)]
        return [
            call
            for found in runs
            for run in found
            if run.outcome in (Outcome.LOST, Outcome.INTERRUPTED)
            for call in run.tools
        ]

    async def _result(self, execution: JobExecution, attempt: Attempt) -> EndReport:
        job = execution.claimed.job
        notify = partial(texts.notify_text, attempt.text, job.spec.notify)
        shown, silent = await in_thread_if_long(len(attempt.text), notify)
        route = await self._places.route_of(job) if shown else Route(None)
        target = route.target
        if route.problem:
            facts = {**execution.facts, "reason": route.problem}
            log.warning("job_result_undeliverable", extra=facts)
            return EndReport(no_route=route.problem)
        if target is None:
            return EndReport(silent=silent)
        files, troubles = self._replies.sendable(attempt.files, job.spec.agent, execution.run)
        # An error text contains a file name, which the agent has chosen.
        shown = "\n\n".join([shown, *troubles])
        shown = await in_thread_if_long(len(shown), partial(without_token, shown))
        due = texts.DueTimeText(
            execution.claimed.due_at,
            self._clock.now(),
            ChatZone(job.spec.zone, is_chosen=False),
        )
        if due.is_late:
            due = await self._due(job, due.at, [target])
        whole = texts.delivery(job.spec, shown, due)
        messages = await self._messages(target, whole, execution.run)
        if messages and isinstance(job.spec.schedule, At):
            buttons = job_buttons(execution.id)
            messages[-1] = replace(messages[-1], buttons=buttons)
        channel = self._channels.get((target.channel, target.account))
        attached = [OutboundMessage(target, "", run_id=execution.run, file=file) for file in files]
        messages += in_albums(attached, channel)
        return EndReport(tuple(messages))

    async def _failure(
        self,
        execution: JobExecution,
        end: Finish,
        update: JobUpdate | None,
        attempt: Attempt,
        recipients: Recipients | None,
    ) -> tuple[OutboundMessage, ...]:
        job = execution.claimed.job
        chat = job.spec.target
        target = chat if isinstance(chat, Target) else await self._places.of_owner(job)
        if target is None:
            log.warning("job_failure_not_reported", extra={"job": job.id})
            return ()
        title = job.spec.title
        why = without_token(attempt.friendly or attempt.error)
        if update is not None and update.state is JobState.DISABLED:
            text = texts.job_disabled(title, failures_with(execution.claimed), why)
        else:
            once = recipients is Recipients.TARGET or end.status is OccurrenceStatus.LOST
            write = texts.job_failed if once else texts.job_failed_thrice
            state, again = await self._ahead(execution.claimed, update)
            due = await self._due(job, execution.claimed.due_at, [target])
            text = write(title, due, why, again, state)
        return tuple(await self._messages(target, text, execution.run))

    async def _ahead(
        self, claimed: OccurrenceClaim, update: JobUpdate | None
    ) -> tuple[JobState, datetime | None]:
        """Return the state and next run of a job after an occurrence: a manual one keeps them.

        A change during the run takes precedence (CRON-11). Raises ``StoreUnavailable``.
        """
        job = await self._store.job(claimed.job.id)
        if job is None:
            return JobState.COMPLETED, None
        is_changed = job.revision != claimed.job.revision
        if update is None or (is_changed and job.next_run_at != claimed.due_at):
            return job.state, job.next_run_at
        return job.state if is_changed else update.state, update.next_run_at

    async def _due(self, job: Job, at: datetime, notified: Sequence[Target]) -> texts.DueTimeText:
        """Return when a job was due, in the zone of its own chat if only that chat is notified.

        Raises ``StoreUnavailable``.
        """
        own = chat_of(job.owner)
        is_own = own is not None and all(one.whole_chat == own[0] for one in notified)
        here = await self._store.zone_of(job.owner) if is_own else None
        zone = ChatZone(here or job.spec.zone, is_chosen=here is not None)
        return texts.DueTimeText(at, self._clock.now(), zone)

    async def _messages(
        self, target: Target, text: str, run: RunId | None = None
    ) -> list[OutboundMessage]:
        channel = self._channels.get((target.channel, target.account))
        rich, parts = channel is not None, [text]
        if channel is not None:
            parts = await in_thread_if_long(len(text), partial(channel.parts, text))
        return [OutboundMessage(target, part, run_id=run, rich=rich) for part in parts]

    async def remember(
        self, job: Job, say: Sequence[OutboundMessage], *, besides: SessionKey | None = None
    ) -> None:
        """Add what was sent to each chat to its history, for the agent to see."""
        try:
            for target in dict.fromkeys(message.target for message in say):
                text = "\n".join(message.text for message in say if message.target == target)
                entry = HistoryEntry(Role.ASSISTANT, texts.delivered_from(job.spec.title, text))
                read_in = await where_read(self._store, target)
                for session in sessions_of(job.spec.agent, read_in):
                    if session != besides:
                        await self._store.note(session, entry, rows=(), now=self._clock.now())
        except StoreError as error:
            log.warning("history_not_updated", extra={"error": str(error), "job": job.id})

    # ------------------------------------------------------------------ undelivered results

    async def send_unreported(self) -> list[UnreportedOccurrence]:
        """Send undelivered results to another chat if there is one; return the other results.

        A job that is deleted after its delivery is deleted then. Raises ``StoreUnavailable``.
        """
        unreported = await self._store.settle_results(now=self._clock.now())
        return [one for one in unreported if not await self._notify_elsewhere(one)]

    async def _notify_elsewhere(self, lost: UnreportedOccurrence) -> bool:
        """Return False if no chat can receive it."""
        job, spec = lost.job, lost.job.spec
        targets, with_text = await self._other_chats(lost)
        text, _ = texts.notify_text(lost.output, spec.notify)
        place = "" if lost.refused_by is None else await self._places.name_of(lost.refused_by)
        due = await self._due(job, lost.due_at, targets)
        text = texts.undelivered(spec.title, place, lost.error, text if with_text else "", due)
        say = [one for target in targets for one in await self._messages(target, text)]
        if not say:
            return False
        if await self._store.notify_result(lost.id, say, now=self._clock.now()):
            log.info("job_result_redirected", extra={"job": job.id, "error": lost.error})
            if with_text:
                await self.remember(job, say)
        return True

    async def _other_chats(self, lost: UnreportedOccurrence) -> tuple[list[Target], bool]:
        """Return the chats for an undelivered result, and whether they may read its text.

        A result that waited for a chat goes there; one for the last chat of its owner goes to the
        next chat of that owner. Otherwise the owners of the bot get a notice, without the text if
        the job belongs to a chat: its results are private (SPEC SEC-3).
        """
        job = lost.job
        if lost.refused_by is None:
            route = await self._places.route_of(job)
            found = None if route.problem else route.target
        elif job.spec.target is TargetKind.LAST:
            found = await self._places.of_owner(job, lost.refused_by)
        else:
            found = None
        if found is not None:
            return [found], True
        gone = None if lost.refused_by is None else lost.refused_by.whole_chat
        owners = await self._owners()
        chats = [chat for chat in owners if chat.whole_chat != gone]
        return chats, job.owner == OPERATOR
