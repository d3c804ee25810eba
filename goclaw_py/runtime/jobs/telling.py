"""What people are told of jobs, and where (SPEC CRON-13, AGENT-7)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from goclaw_py.core import wording_jobs
from goclaw_py.core.commands import job_buttons
from goclaw_py.core.due import End, Told, failures_with, tells_failure
from goclaw_py.core.errors import StoreError
from goclaw_py.core.heartbeat_reply import without_token
from goclaw_py.core.jobs import JobState
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.occurrence import ENDED_BADLY, Attempt, JobUpdate, Status
from goclaw_py.core.schedule import At
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Place, Store
from goclaw_py.runtime.jobs.ends import Said
from goclaw_py.runtime.jobs.held import Held
from goclaw_py.runtime.jobs.places import Places
from goclaw_py.runtime.post import sessions_of
from goclaw_py.runtime.replies import Replies

log = logging.getLogger(__name__)


class Telling:
    """Writes what jobs say as their channels take it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[Place, Channel],
        places: Places,
        replies: Replies,
    ) -> None:
        self._replies = replies
        self._store = store
        self._clock = clock
        self._channels = channels
        self._places = places

    def system(self, held: Held) -> str:
        """What a scheduled run is told beside the prompt of its job."""
        claimed = held.claimed
        spec = claimed.job.spec
        return wording_jobs.scheduled_run(
            spec.title, claimed.due_at, self._clock.now(), spec.zone, spec.notify
        )

    async def tell(
        self, held: Held, end: End, update: JobUpdate | None, attempt: Attempt, said: Said
    ) -> tuple[OutboundMessage, ...]:
        """What is said of the end of an occurrence. Raises ``StoreUnavailable``."""
        job = held.claimed.job
        if end.status is Status.OK:
            return await self._result(held, said)
        if end.status not in ENDED_BADLY:
            return ()
        told = tells_failure(job, failures_with(held.claimed))
        disabled = update is not None and update.state is JobState.DISABLED
        if told is None and not disabled:
            return ()
        return await self._failure(held, update, attempt, told)

    async def _result(self, held: Held, said: Said) -> tuple[OutboundMessage, ...]:
        job = held.claimed.job
        shown = wording_jobs.notify_text(said.text, job.spec.notify)
        target = None if shown is None else await self._places.target_of(job)
        if shown is None or target is None:
            return ()
        files, troubles = self._replies.sendable(said.files, job.spec.agent, held.run)
        # A trouble names a file, and agents name files as they like.
        shown = without_token("\n\n".join([shown, *troubles]))
        due, now = held.claimed.due_at, self._clock.now()
        whole = wording_jobs.delivery(job.spec, shown, due=due, now=now)
        messages = self._messages(held, target, whole)
        if messages and isinstance(job.spec.schedule, At):
            buttons = job_buttons(held.id)
            messages[-1] = replace(messages[-1], buttons=buttons)
        messages += [OutboundMessage(target, "", run_id=held.run, file=file) for file in files]
        return tuple(messages)

    async def _failure(
        self, held: Held, update: JobUpdate | None, attempt: Attempt, told: Told | None
    ) -> tuple[OutboundMessage, ...]:
        job = held.claimed.job
        chat = job.spec.target
        target = chat if isinstance(chat, Target) else await self._places.of_owner(job)
        if target is None:
            log.warning("nobody could be told that a job failed", extra={"job": job.id})
            return ()
        title, zone = job.spec.title, job.spec.zone
        why = without_token(attempt.friendly or attempt.error)
        if update is not None and update.state is JobState.DISABLED:
            text = wording_jobs.job_disabled(title, failures_with(held.claimed), why)
        else:
            write = (
                wording_jobs.job_failed if told is Told.TARGET else wording_jobs.job_failed_thrice
            )
            again = None if update is None else update.next_run_at
            text = write(title, held.claimed.due_at, why, again, zone)
        return tuple(self._messages(held, target, text))

    def _messages(self, held: Held, target: Target, text: str) -> list[OutboundMessage]:
        channel = self._channels.get((target.channel, target.account))
        parts = [text] if channel is None else channel.parts(text)
        rich = channel is not None
        return [OutboundMessage(target, part, run_id=held.run, rich=rich) for part in parts]

    async def remember(self, held: Held, say: Sequence[OutboundMessage]) -> None:
        """Write what was delivered into the history of its chat, so that answers are understood."""
        if not say:
            return
        job, target = held.claimed.job, say[0].target
        text = "\n".join(message.text for message in say)
        entry = HistoryEntry(Role.ASSISTANT, wording_jobs.delivered_from(job.spec.title, text))
        for session in sessions_of(job.spec.agent, target):
            if session == held.session:
                continue
            try:
                await self._store.note(session, entry, rows=(), now=self._clock.now())
            except StoreError as error:
                log.warning("a job's result is not in its chat's history: %s", error)
