"""Jobs for tests: drafts in a line, and what became of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobTarget, Notify, Payload, Prompt
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE, Profile, policy_with
from goclaw_py.schedule.jobs.schedule import At, Every, Schedule
from goclaw_py.testing.agents import ScriptedAgent
from goclaw_py.testing.clock import START
from tests.support.harness import GatewayProcess, a_process, until
from tests.support.memory_store import MemoryDatabase

ANN = Target("telegram", "default", "ann")
OPERATOR = Requester(owner=None)
IN_CHAT = Requester(owner_of(ANN, PeerKind.DIRECT), Maker.MODEL, chat=ANN)


def at(seconds: float) -> At:
    """So many seconds after the clock of the tests began."""
    return At(START + timedelta(seconds=seconds))


def every(seconds: float) -> Every:
    return Every(timedelta(seconds=seconds))


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A job in short."""

    schedule: Schedule
    text: str = "report"
    slug: str = "job"
    message: bool = False
    target: JobTarget | None = ANN
    notify: Notify = Notify.ALWAYS
    policy: tuple[tuple[str, object], ...] = ()

    def draft(self) -> JobDraft:
        payload: Payload = FixedMessage(self.text) if self.message else Prompt(self.text)
        return JobDraft(
            self.schedule,
            payload,
            slug=self.slug,
            target=self.target,
            notify=self.notify,
            policy=dict(self.policy),
        )


def setup(profile: Profile = DEFAULT_PROFILE, **policy: object) -> JobSetup:
    """A gateway's jobs with a profile of which some keys are changed."""

    changed = replace(profile, policy=policy_with(profile.policy, policy))
    return JobSetup(JobCreationRules(changed))


async def make(gateway: GatewayProcess, wanted: Wanted, by: Requester = OPERATOR) -> Job:
    """Create a job of the gateway."""
    return await service(gateway).create(wanted.draft(), by)


def service(gateway: GatewayProcess) -> JobService:
    return gateway.container.job_module.service


async def log_of(gateway: GatewayProcess, job: Job) -> list[LoggedOccurrence]:
    """What became of a job, the oldest first."""
    return list(reversed(await gateway.store.log_of(job.id)))


async def ends(gateway: GatewayProcess, job: Job) -> list[str]:
    """Status and reason of each occurrence, the oldest first."""
    return [
        f"{row.status.value}{':' + row.why.value if row.why else ''}"
        for row in await log_of(gateway, job)
    ]


async def stored(gateway: GatewayProcess, job: Job) -> Job:
    """The job as the store has it now."""
    found = await gateway.store.job(job.id)
    assert found is not None
    return found


async def until_idle(gateway: GatewayProcess) -> None:
    """Until no occurrence is at work."""
    await until(lambda: not gateway.container.job_module.occurrences.load)


@asynccontextmanager
async def at_work(
    agent: ScriptedAgent, wanted: Wanted, database: MemoryDatabase | None = None
) -> AsyncIterator[tuple[GatewayProcess, Job]]:
    """A gateway, and a job of the operator's whose run has begun and blocks."""
    async with a_process(agent, database=database) as gateway:
        job = await make(gateway, wanted)
        await until(lambda: bool(agent.active), within_s=700)
        yield gateway, job
