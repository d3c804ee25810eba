"""A job service with real jobs in memory, at a time that stands still unless it is moved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from goclaw_py.core.ids import OccurrenceId, RunId
from goclaw_py.operations.jobs.models import RunNow, StartedNow
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.models import Job
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE, Profile
from tests.support.memory_store import MemoryStore

FRIDAY = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
STARTED = StartedNow(OccurrenceId("o-1"), RunId("run-1"), "agent:main:cron:x")


class StandingClock:
    """Implements ``Clock``."""

    def __init__(self) -> None:
        self.at = FRIDAY

    def now(self) -> datetime:
        return self.at


class FakeJobRunner:
    """Starts no runs: says what it is told to."""

    def __init__(self) -> None:
        self.answer: StartedNow | RunNow = STARTED
        self.asked: list[str] = []

    async def run_now(self, job: Job) -> StartedNow | RunNow:
        self.asked.append(job.spec.slug)
        return self.answer


class Jobs:
    """The job service, and what it is built of."""

    def __init__(self, profile: Profile = DEFAULT_PROFILE, *, most: int = 50) -> None:
        self.clock = StandingClock()
        self.store = MemoryStore()
        self.runner = FakeJobRunner()
        # As the settings do: a zone always has a name.
        profile = replace(profile, zone=profile.zone or "UTC")
        rules = JobCreationRules(profile, most=most, sources=("issues",))
        self.service = JobService(
            self.store, self.clock, rules, run_now=self.runner.run_now, gateway=self.store
        )
