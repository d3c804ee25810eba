"""The stores in memory do with jobs what PostgreSQL does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import cast

import pytest

from goclaw_py.core.approvals import ApprovalRequest, Decision
from goclaw_py.core.errors import StoreError
from goclaw_py.core.ids import ApprovalId, JobId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import Usage
from goclaw_py.core.targets import Maker
from goclaw_py.records import ApprovalQuery, JobOrder, JobQuery, NewApproval, OutboxQuery, RunQuery
from goclaw_py.schedule.jobs.execution_models import (
    JobUpdate,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    Why,
)
from goclaw_py.schedule.jobs.models import Job, JobState
from tests.property.players import Player, both_do_the_same, seeds
from tests.support.postgres import Database
from tests.support.store_jobs import a_spec, run_end, run_for
from tests.support.stores import A, B, World, at, job_world, key_of, new_run, say

pytestmark = pytest.mark.real_time

CHATS = [Target("telegram", "default", chat) for chat in ("100", "200")]
OWNERS = [Owner(f"telegram:direct:{chat.chat}") for chat in CHATS]
SLUGS = ["tea", "coffee", "milk", "water"]
ENDS = [OccurrenceStatus(name) for name in ("ok", "failed", "cancelled", "skipped")]


@dataclass(slots=True)
class Jobs(Player):
    claims: list[OccurrenceClaim] = field(default_factory=list)
    """All that was ever claimed."""
    held: list[tuple[RunId, Target]] = field(default_factory=list)
    """Those of the other node, which hold the sessions of chats."""

    moves = (
        "add add add change delete claim claim claim claim_manual begin begin finish "
        "finish end end give_back hold hold wait wait claim_waiting end_waiting answer crash "
        "leave move zone send look"
    )
    steps = 80

    async def add(self) -> None:
        """Of one owner after the other: who comes first is chance where they come at once."""
        target = self.chance.choice([*CHATS, None])
        spec = a_spec(self.chance.choice(SLUGS))
        job = Job(
            JobId(f"job {self.number():04}"),
            self.chance.choice(OWNERS),
            self.chance.choice([*Maker]),
            spec if target is None else replace(spec, target=target, max_runs=self.second),
            self.now,
            self.now,
            next_run_at=at(self.second + self.chance.randint(-3, 9)),
        )
        await self.store.add_job(job, most=3)

    async def change(self) -> object:
        job = await self.some_job()
        if job is None:
            return None
        slug = self.chance.choice([job.spec.slug, job.spec.slug, *SLUGS])
        job = replace(job, spec=replace(job.spec, slug=slug), updated_at=self.now)
        if self.chance.random() < 0.2:
            job = replace(job, revision=job.revision - 1)
        match self.chance.randint(0, 2):
            case 0:
                job = replace(job, state=JobState.PAUSED, next_run_at=None)
            case 1:
                due_at = at(self.second + self.chance.randint(-3, 9))
                job = replace(job, state=JobState.ACTIVE, next_run_at=due_at, failures=0)
        return await self.store.change_job(job)

    async def delete(self) -> object:
        job = await self.some_job()
        if job is None or self.chance.random() < 0.5:
            return None
        return await self.store.delete_job(job.id, forget=self.chance.random() < 0.5)

    async def claim(self) -> object:
        limit = self.chance.randint(0, 3)
        ids = [OccurrenceId(f"occurrence {self.number():04}") for _ in range(limit)]
        claimed = await self.store.claim_due(A, now=self.now, ids=ids)
        self.claims.extend(claimed)
        return claimed, await self.store.next_job_due()

    async def claim_manual(self) -> object:
        job = await self.some_job()
        if job is None:
            return None
        occurrence = OccurrenceId(f"occurrence {self.number():04}")
        now = self.now
        claimed = await self.store.claim_now(A, job.id, now=now, occurrence=occurrence)
        self.claims.extend([claimed] if claimed else [])
        return claimed

    async def begin(self) -> object:
        """Several at once, also for what has ended by then."""
        calls = []
        # Never two of one occurrence: in one statement neither would see that it follows the other.
        latest = {claimed.id: claimed for claimed in self.claims[-6:]}
        for claimed in self.some(latest.values()):
            name = f"run {self.number():04}"
            self.runs[RunId(name)] = claimed
            run = run_for(name, claimed, started_at=self.now)
            calls.append(self.store.begin_run(run, node=A))
        return await _all([_quiet(call) for call in calls])

    async def finish(self) -> object:
        calls = []
        for run_id in self.some(list(self.runs)):
            claimed = self.runs.pop(run_id)
            last = self.an_end(claimed) if self.chance.random() < 0.7 else None
            outcome = self.chance.choice([Outcome.COMPLETED, Outcome.FAILED, Outcome.INTERRUPTED])
            words = (say(f"of {run_id}"),) if outcome is Outcome.COMPLETED else ()
            end = replace(run_end(run_id, last, outcome), finished_at=self.now, say=words)
            if (outcome, last) == (Outcome.INTERRUPTED, None) and self.chance.random() < 0.9:
                end = replace(end, reason=Reason.APPROVAL, approvals=self.some_questions())
            calls.append(self.store.finish_run(end, node=A))
            if self.chance.random() < 0.7:
                # What ends in one transaction may end in any order.
                await _all([_quiet(calls.pop())])
        return await _all([_quiet(call) for call in calls])

    def some_questions(self) -> tuple[NewApproval, ...]:
        request = ApprovalRequest("call", "pay", "{}", timeout_s=5.0)
        return tuple(
            NewApproval(ApprovalId(f"question {self.number():04}"), request, at(self.second + 5))
            for _ in range(self.chance.randint(0, 2))
        )

    async def answer(self) -> object:
        """Some questions, or all whose time is over."""
        if self.chance.random() < 0.2:
            return await self.store.expire_approvals(now=self.now)
        open_ = self.some(await self.store.approvals())
        decided = [
            await self.store.decide_approval(one.id, Decision.DENY, by="Ann", now=self.now)
            for one in open_
        ]
        return decided, await self.store.waiting_occurrences()

    async def end(self) -> None:
        """Also what has ended before."""
        for claimed in self.some(self.claims[-5:]):
            words = (say(f"of {claimed.id}, {self.second}"),)
            await self.store.end_occurrence(self.an_end(claimed), words, node=A)

    def an_end(self, claimed: OccurrenceClaim) -> OccurrenceEnd:
        update = JobUpdate(
            at(self.second + self.chance.randint(1, 9)),
            self.chance.choice([*JobState]),
            failed=self.chance.choice([None, False, True]),
            coalesced=self.chance.randint(0, 2),
            ran=self.chance.random() < 0.7,
        )
        if self.chance.random() < 0.2:
            update = replace(update, next_run_at=None)
        elif self.chance.random() < 0.2:
            update = replace(update, delete=True, forget=self.chance.random() < 0.5)
        cost = self.chance.choice([None, Decimal(self.chance.randint(0, 40)) / 8])
        return OccurrenceEnd(
            claimed.id,
            claimed.job.id,
            claimed.job.revision,
            self.chance.choice(ENDS),
            self.now,
            None if claimed.manual else update,
            why=self.chance.choice([None, Why.BUSY]),
            output=f"output {self.second}",
            error=self.chance.choice(["", "broken"]),
            attempts=self.chance.randint(0, 3),
            started_at=self.chance.choice([None, claimed.claimed_at]),
            usage=self.chance.choice([None, Usage(1, 2, 3, 0, cost)]),
            keep=self.chance.randint(1, 4),
        )

    async def give_back(self) -> None:
        ids = [claimed.id for claimed in self.some(self.claims[-5:])]
        status = self.chance.choice([OccurrenceStatus.INTERRUPTED, OccurrenceStatus.SKIPPED])
        await self.store.give_back(ids, node=A, status=status)

    async def hold(self) -> object:
        """The other node takes the session of a chat, or ends its run there, or releases it."""
        if not self.held or self.chance.random() < 0.4:
            target, name = self.chance.choice(CHATS), f"held {self.number():04}"
            self.held.append((RunId(name), target))
            run = new_run(name, target=target, started_at=self.now)
            return await self.world.b.begin_run(replace(run, target=None), node=B)
        run_id, target = self.chance.choice(self.held)
        if self.chance.random() < 0.6:
            end = replace(run_end(run_id), finished_at=self.now)
            await self.world.b.finish_run(end, node=B)
        else:
            await self.world.b.release_sessions(B, [key_of(target)])
        return None

    async def wait(self) -> object:
        asked = {
            claimed.id: self.chance.choice([*map(key_of, CHATS), SessionKey("agent:default:none")])
            for claimed in self.some(self.claims[-6:])
        }
        return await self.store.wait_for_sessions(asked, node=A, now=self.now)

    async def claim_waiting(self) -> object:
        """By either node; what the other one claims it gives back, or it waits again."""
        node, unheld = self.chance.choice([A, A, B]), self.chance.random() < 0.7
        store = self.world.a if node == A else self.world.b
        claimed = await store.claim_waiting(node, now=self.now, unheld=unheld)
        if node == A:
            self.claims.extend(claimed)
        else:
            kept = [one.id for one in self.some(claimed)]
            await store.release_unclaimed(kept, node=B)
            await store.give_back(kept, node=B, status=OccurrenceStatus.INTERRUPTED)
        return claimed

    async def end_waiting(self) -> object:
        """Also one that has been claimed meanwhile."""
        waiting = await self.store.waiting_occurrences()
        for one in self.some([*waiting, *self.claims[-1:]]):
            await self.store.end_occurrence(self.an_end(one), node=None)
        return waiting

    async def zone(self) -> object:
        owner = self.chance.choice(OWNERS)
        await self.store.choose_zone(owner, self.chance.choice([None, "Asia/Tokyo", "UTC"]))
        return [await self.store.zone_of(one) for one in OWNERS]

    async def send(self) -> None:
        """What was said reaches its chat, or does not."""
        for chat in CHATS:
            row = await self.store.claim_next(chat, node=A, now=self.now)
            if row is not None and self.chance.random() < 0.7:
                await self.store.mark_sent(row, f"m{self.number()}", now=self.now)
            elif row is not None:
                await self.store.mark_dead(row, "blocked", now=self.now)

    async def look(self) -> object:
        store = self.world.a
        query = JobQuery(
            owner=self.chance.choice([None, *OWNERS]),
            name=self.chance.choice(["", "", "EA"]),
            states=self.chance.choice([(), (JobState.ACTIVE,)]),
            target=self.chance.choice([None, *CHATS]),
            limit=self.chance.randint(1, 4),
            offset=self.chance.randint(0, 2),
            order=self.chance.choice([None, *JobOrder]),
        )
        return (
            await store.jobs(query),
            await store.find_jobs(self.chance.choice([*SLUGS, "job 000"])),
            await store.slugs(self.chance.choice(OWNERS), self.chance.choice(["", "te"])),
            await store.log_of(status=self.chance.choice([None, *ENDS]), limit=3),
        )

    async def left(self) -> dict[str, object]:
        """All that is stored, without the ids that each database gives."""
        store = self.world.a
        page = await store.jobs(JobQuery(limit=1000))
        stats = await store.job_stats(None, since=at(self.second // 3))
        return {
            "jobs": page,
            "log": await store.log_of(limit=1000),
            "logs": [await store.log_of(job.id) for job in page.jobs],
            "stats": [
                replace(stats, mean_s=None),
                None if stats.mean_s is None else round(stats.mean_s, 6),
            ],
            "runs": await store.runs(RunQuery(limit=1000)),
            "approvals": await store.approvals(ApprovalQuery(waiting=False, limit=1000)),
            # What ends at once may be said in any order.
            "outbox": sorted(
                (
                    (row.message, row.created_at, row.state)
                    for row in await store.outbox(OutboxQuery(limit=999))
                ),
                key=repr,
            ),
        }

    async def some_job(self) -> Job | None:
        found = (await self.store.jobs(JobQuery(limit=1000))).jobs
        return self.chance.choice(found) if found else None


@dataclass(slots=True)
class LibraryJobs(Jobs):
    """What ``JobScheduler`` does: without runs, sessions and messages."""

    moves = (
        "add add add change delete claim claim claim claim_early claim_manual end end give_back "
        "withdraw forget replan crash leave zone look"
    )

    async def claim(self) -> object:
        return await self._claimed(self.second)

    async def claim_early(self) -> object:
        return await self._claimed(self.second + 5)

    async def _claimed(self, until: int) -> object:
        limit, messages_only = self.chance.randint(0, 3), self.chance.random() < 0.1
        ids = [OccurrenceId(f"occurrence {self.number():04}") for _ in range(limit)]
        claimed = await self.store.claim_due(
            A,
            now=self.now,
            ids=ids,
            until=at(until),
            messages_only=messages_only,
            without_runs=True,
        )
        self.claims.extend(claimed)
        crowd = await self.store.crowd(until=at(until), most=2)
        return claimed, crowd, await self.store.next_job_due()

    async def end(self) -> None:
        """Also what has ended before."""
        for claimed in self.some(self.claims[-5:]):
            await self.store.end_occurrence(self.an_end(claimed), node=A)

    async def withdraw(self) -> object:
        return await self.store.withdrawn([claimed.id for claimed in self.claims[-9:]])

    async def forget(self) -> None:
        """What the node does not know that it has."""
        known = [claimed.id for claimed in self.some(self.claims[-5:])]
        await self.store.release_unclaimed(known, node=A)

    async def replan(self) -> object:
        now = at(self.second - self.chance.randint(0, 9))
        ahead = await self.store.jobs_ahead(now=now)
        done = [await self.store.replan_job(job, self.now) for job in self.some(ahead)]
        return ahead, done

    async def left(self) -> dict[str, object]:
        """All that is stored."""
        store = self.world.a
        page = await store.jobs(JobQuery(limit=1000))
        stats = await store.job_stats(None, since=at(self.second // 3))
        return {
            "jobs": page,
            "counts": await store.job_counts(JobQuery()),
            "log": await store.log_of(limit=1000),
            "logs": [await store.log_of(job.id) for job in page.jobs],
            "stats": replace(stats, mean_s=stats.mean_s and round(stats.mean_s, 6)),
        }


@asynccontextmanager
async def of_the_library() -> AsyncIterator[World]:
    """Whoever plays on it must want no more of it than it has."""
    yield cast("World", await job_world())


async def _quiet(call: Awaitable[object]) -> object:
    try:
        return await call
    except StoreError as error:
        return type(error).__name__


async def _all(calls: Sequence[Awaitable[object]]) -> object:
    return await asyncio.gather(*calls)


@pytest.mark.parametrize("seed", seeds(40))
async def test_both_stores_do_the_same_with_jobs(postgres_database: Database, seed: int) -> None:
    await both_do_the_same(Jobs, postgres_database, seed)


@pytest.mark.parametrize("seed", seeds(20))
async def test_the_store_of_the_library_does_the_same_with_jobs(
    postgres_database: Database, seed: int
) -> None:
    """SPEC CRON-21."""
    await both_do_the_same(LibraryJobs, postgres_database, seed, of_the_library)
