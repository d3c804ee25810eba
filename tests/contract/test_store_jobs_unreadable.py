"""What every store promises about jobs that this release cannot read, as after a rollback."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.jobs.execution_models import OccurrenceStatus
from goclaw_py.jobs.models import Job, JobState
from goclaw_py.model.errors import BadJob
from goclaw_py.model.ids import Owner
from goclaw_py.ports.store import JobQuery
from tests.support.store_jobs import OWNER, a_job, a_spec, added, claim, claim_manual, kept, renamed
from tests.support.stores import ANN, BOB, T0, World, at

pytestmark = pytest.mark.real_time

CAUSE = "from_the_future"
OTHER = Owner("telegram:direct:200")
SPEC = replace(a_spec("strange"), policy={CAUSE: 1, "retries": 1}, target=ANN)


async def a_strange_job(world: World) -> Job:
    (job,) = await added(world.a, a_job("strange", spec=SPEC, due_at=at(-5)))
    return job


async def test_a_job_that_cannot_be_read_is_switched_off_for_all_to_see(world: World) -> None:
    """It keeps no other from its claim."""
    strange = await a_strange_job(world)
    await added(world.a, a_job("tea"), a_job("late", due_at=at(-9)))
    claimed = await claim(world.a, now=at(1))
    assert [one.job.spec.slug for one in claimed] == ["late", "tea"]
    assert await claim(world.b, now=at(99)) == []
    assert await world.a.next_job_due() is None
    job = await kept(world.b, strange)
    assert (job.state, job.next_run_at, job.running) == (JobState.DISABLED, None, None)
    assert CAUSE in job.last_error
    assert (job.failures, job.runs, job.last_status) == (1, 0, "failed")
    (row,) = await world.b.log_of(status=OccurrenceStatus.FAILED)
    assert (row.job, row.scheduled_at, row.finished_at) == (job.id, at(-5), at(1))
    assert (row.node, row.attempts) == (None, 0)
    assert CAUSE in row.error
    assert CAUSE in str(row.definition)


async def test_a_job_that_cannot_be_read_is_shown_as_far_as_it_can(world: World) -> None:
    strange = await a_strange_job(world)
    (tea,) = await added(world.a, a_job("tea"))
    readable = replace(SPEC, policy={"retries": 1})
    page = await world.b.jobs(JobQuery())
    assert [job.spec for job in page.jobs] == [readable, tea.spec]
    (found,) = await world.b.find_jobs("strange", owner=OWNER)
    assert found == page.jobs[0] == await kept(world.b, strange)
    assert CAUSE in found.last_error
    assert replace(found, spec=SPEC, last_error="") == strange


async def test_nobody_overwrites_or_runs_by_hand_what_cannot_be_read(world: World) -> None:
    """The release that wrote it will want it back."""
    strange = await a_strange_job(world)
    shown = await kept(world.a, strange)
    with pytest.raises(BadJob, match=CAUSE):
        await world.b.change_job(renamed(shown, "coffee"))
    with pytest.raises(BadJob, match=CAUSE):
        await claim_manual(world.a, strange)
    assert await kept(world.a, strange) == shown
    assert await world.a.log_of() == []
    assert await world.a.delete_job(strange.id, forget=False)
    assert await world.a.job(strange.id) is None


async def test_a_job_that_cannot_be_read_moves_with_its_chat(world: World) -> None:
    strange = await a_strange_job(world)
    await added(world.a, replace(a_job("tea", owner=OTHER), spec=a_spec("strange")))
    assert await world.a.move_chat("telegram", "default", old="100", new="200", now=T0)
    job = await kept(world.b, strange)
    assert (job.owner, job.spec.slug) == (OTHER, "strange-2")
    assert (job.spec.target, job.revision) == (BOB, strange.revision + 1)
    assert CAUSE in job.last_error
