r"""Scripts in virtual time, and the table of what happened in them.

::

    line = Timeline({"report": [Fail(OSError("down"), 60), Say("done", 60)]})
    async with line.service(PROFILES["caco"]) as jobs:
        await jobs.add("report", Cron("0 9 * * *"))
        await line.until("Mon 09:02")
    assert line.told(
        "Mon 09:00:00 report runs\n"
        "Mon 09:01:00 report failed; next Mon 09:30:00, 1 failed"
    )

A table has a line for each start of a run, for each end of an occurrence with what that makes of
its job, and for each message that arrives in a chat. Jobs that are due at the same instant come in
any order: let them be a second apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.runs.agent_loop import RunRequest
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.embedded.job_scheduler import Due, JobScheduler
from goclaw_py.schedule.jobs.execution_models import (
    LoggedOccurrence,
    OccurrenceEnd,
    OccurrenceStatus,
)
from goclaw_py.schedule.jobs.models import JobState
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.schedule.jobs.policy import Profile
from goclaw_py.schedule.jobs.work_items import WorkSource
from goclaw_py.testing.agents import Fail, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START, LoopClock
from tests.support.harness import GatewayProcess, Ways, a_process
from tests.support.memory_store import MemoryDatabase, MemoryStore
from tests.support.memory_store.jobs.tables import JobTables

OTHER = AgentName("other")
DONE = Say("done", 60)
"""What a run does that the script says nothing about: it takes a minute."""


class _Tables(JobTables):
    """Notes what becomes of jobs."""

    def __init__(self, line: Timeline) -> None:
        super().__init__()
        self._seen_by = line

    def end(self, row: LoggedOccurrence, end: OccurrenceEnd) -> None:
        super().end(row, end)
        ended = f"{end.status}" if end.why is None else f"{end.status} ({end.why})"
        self._seen_by.note(row.slug, f"{ended}; {self._then(row)}")

    def let_go(
        self, row: LoggedOccurrence, status: OccurrenceStatus, now: datetime, began: datetime | None
    ) -> None:
        super().let_go(row, status, now, began)
        self._seen_by.note(row.slug, f"{status}; {self._then(row)}")

    def _then(self, row: LoggedOccurrence) -> str:
        job = self.jobs.get(row.job)
        if job is None:
            return "deleted"
        then = job.state.value
        if job.state is JobState.ACTIVE and job.next_run_at is not None:
            then = f"next {self._seen_by.shown(job.next_run_at)}"
        failed = f", {job.failures} failed" if job.failures else ""
        left_out = f", {job.coalesced} coalesced" if job.coalesced else ""
        return then + failed + left_out


@dataclass(slots=True)
class _Channel(RecordingChannel):
    """Notes what arrives."""

    line: Timeline | None = None

    async def send(self, message: OutboundMessage) -> str:
        number = await RecordingChannel.send(self, message)
        assert self.line is not None
        text = " ".join(message.text.split())
        self.line.note(message.target.chat, f"reads: {text if len(text) < 32 else text[:31] + '…'}")
        return number


@dataclass(slots=True)
class Timeline:
    """What happens while a script is played.

    Args:
        script: By slug, or by the prompt of a chat: what its runs do, one after the other.
        start: The instant at which the test begins.
    """

    script: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    start: datetime = START
    table: list[str] = field(default_factory=list)
    database: MemoryDatabase = field(default_factory=MemoryDatabase)
    clock: LoopClock = field(init=False)
    _played: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = LoopClock(self.start)
        self.database.cron = _Tables(self)

    def shown(self, instant: datetime) -> str:
        """A time with its day, to the second; parts of a second are shown if there are any."""
        parts = f".{instant.microsecond // 1000:03}" if instant.microsecond else ""
        return f"{instant:%a %H:%M:%S}{parts}"

    def note(self, who: str, what: str) -> None:
        """Add a line."""
        self.table.append(f"{self.shown(self.clock.now())} {who} {what}")

    def told(self, expected: str) -> bool:
        """Whether this is what happened since the last call; blank lines and indents are free."""
        lines = [line.strip() for line in expected.splitlines() if line.strip()]
        happened, self.table = self.table, []
        assert happened == lines, "\n".join(["this is what happened:", *happened])
        return True

    async def until(self, when: str) -> None:
        """Let time pass until it is, say, ``Tue 09:00`` for the next time."""
        day, _, clock = when.rpartition(" ")
        now = self.clock.now()
        then = datetime.combine(now.date(), time.fromisoformat(clock), now.tzinfo)
        while then <= now or (day and f"{then:%a}" != day):
            then += timedelta(days=1)
        await asyncio.sleep((then - now).total_seconds())

    # ------------------------------------------------------------------ playing

    def step(self, who: str) -> Step:
        """What the next run of somebody does."""
        number = self._played.get(who, 0)
        self._played[who] = number + 1
        steps = self.script.get(who, ())
        return steps[number] if number < len(steps) else DONE

    async def handle(self, due: Due) -> str:
        """A handler for ``JobScheduler``."""
        slug = due.job.spec.slug
        again = "" if due.attempt == 1 else f", attempt {due.attempt}"
        self.note(slug, f"runs{' by hand' if due.manual else ''}{again}")
        match self.step(slug):
            case Say(text, after_s):
                await asyncio.sleep(after_s)
                return text
            case Fail(error, after_s):
                await asyncio.sleep(after_s)
                raise error
            case other:
                raise AssertionError(f"a handler cannot do this: {other}")

    def agent_step(self, request: RunRequest) -> Step:
        """For ``ScriptedAgent``; the prompt of a job begins with its slug, in a line of its own."""
        who = request.prompt.partition("\n")[0]
        self.note(who, "runs")
        return self.step(who)

    @asynccontextmanager
    async def service(self, profile: Profile) -> AsyncIterator[JobScheduler]:
        """A started service; it ends as programs with this profile do."""
        jobs = JobScheduler(
            MemoryStore(self.database), profile=profile, concurrency=profile.lane, clock=self.clock
        )
        jobs.on_due(self.handle)
        await jobs.start()
        try:
            yield jobs
        finally:
            await jobs.stop(profile.shutdown_wait_s)

    @asynccontextmanager
    async def gateway(
        self, profile: Profile, sources: Mapping[str, WorkSource] | None = None
    ) -> AsyncIterator[GatewayProcess]:
        """A started gateway with a chat and two agents; in the end it is killed, if it still is."""
        sources = sources or {}
        rules = JobCreationRules(profile, enabled=profile.enabled, sources=sources)
        ways = Ways(jobs=JobSetup(rules, sources), cron_lane=profile.lane)
        agent = ScriptedAgent(otherwise=self.agent_step)
        async with a_process(
            agent,
            ways,
            database=self.database,
            channels=(_Channel(line=self),),
            others={OTHER: agent},
        ) as process:
            yield process
