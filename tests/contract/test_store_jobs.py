"""What every store promises about jobs, as people make, find and change them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from goclaw_py.core.errors import BadJob, SlugTaken, TooManyJobs
from goclaw_py.core.ids import AgentName, JobId, Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.pagination import FOUND
from goclaw_py.core.targets import Maker
from goclaw_py.records import JobOrder, JobQuery, Notice
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.schedule.jobs.embedded.job_scheduler import JobStorage
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.models import (
    OPERATOR,
    FixedMessage,
    Job,
    JobSpec,
    JobState,
    Notify,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from goclaw_py.store.postgres.jobs import jobs as postgres_jobs
from tests.support.store_jobs import (
    OWNER,
    a_job,
    a_spec,
    added,
    by_hand,
    claim,
    claim_manual,
    claim_one,
    claimed_job,
    ended,
    renamed,
    run_end,
    run_for,
    stored_job,
    with_id,
)
from tests.support.stores import ANN, BOB, T0, JobWorld, World, at, listen, ran, until

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

OTHER = Owner("telegram:direct:200")
FULL = JobSpec(
    slug="full",
    schedule=Every(timedelta(milliseconds=90_500), origin=at(3)),
    zone="Asia/Kolkata",
    payload=Prompt("Look \u2603 at \\u0000 it.", model="small"),
    name="Full of everything",
    agent=AgentName("other"),
    target=replace(ANN, thread="9"),
    peer=PeerKind.GROUP,
    notify=Notify.CONDITIONAL,
    session="agent:other:api:x",
    policy={"retries": 1, "usd": None, "backoff": (1.5, 60.0), "session": "key", "stagger": True},
    max_runs=7,
    not_after=at(99.25),
    wake_heartbeat=True,
    source="issues",
)


async def slugs_of(store: JobStorage, **query: object) -> list[str]:
    """Those that a query finds; it counts as many, and whatever the state it counts them all."""
    asked = replace(JobQuery(), **query)  # type: ignore[arg-type]
    page = await store.jobs(asked)
    assert page.total == len(page.jobs)
    counts = await store.job_counts(asked)
    assert sum(counts.get(state, 0) for state in asked.states or JobState) == page.total
    return [job.spec.slug for job in page.jobs]


# ---------------------------------------------------------------------------- adding


@pytest.mark.parametrize(
    "spec",
    [
        FULL,
        a_spec("plain"),
        replace(a_spec("once"), schedule=At(at(5)), payload=FixedMessage("Tea!"), target=ANN),
        replace(
            a_spec("program"),
            schedule=Cron("*/5 * * * *"),
            payload=Program(("ls", "-l", "")),
            target=TargetKind.NONE,
            notify=Notify.NEVER,
        ),
    ],
    ids=lambda spec: spec.slug,
)
async def test_a_job_is_read_as_it_was_stored(world: JobWorld, spec: JobSpec) -> None:
    """CRON-0."""
    job = replace(
        a_job(spec.slug, spec=spec),
        maker=Maker.MODEL,
        creator="telegram/default/7",
        state=JobState.PAUSED,
        next_run_at=None,
        failures=2,
        updated_at=at(0.5),
        chained=3,
    )
    await added(world.a, job)
    assert await with_id(world.b, job.id) == job


async def test_a_job_is_read_by_its_whole_id(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    assert await world.b.job(job.id) == job
    assert await world.b.job(JobId("job-te")) is None


async def test_text_that_no_database_holds_is_replaced_and_money_is_exact(world: JobWorld) -> None:
    policy = {"usd": Decimal("0.10")}
    spec = replace(a_spec("x"), payload=Prompt("a\0b"), name="\ud800", policy=policy)
    await added(world.a, a_job("x", spec=spec))
    job = await stored_job(world.a, a_job("x"))
    assert (job.spec.payload, job.spec.name) == (Prompt("a\ufffdb"), "\ufffd")
    assert Decimal(str(job.spec.policy["usd"])) == Decimal("0.10")


async def test_a_slug_is_unique_among_the_jobs_of_its_owner(world: JobWorld) -> None:
    """CRON-0: adding the same job again is harmless."""
    for _ in range(2):
        await world.a.add_job(a_job("tea"), most=1)
    assert (await world.a.jobs(JobQuery())).total == 1
    with pytest.raises(SlugTaken):
        await world.b.add_job(replace(a_job("tea"), id=JobId("another")), most=50)
    await added(world.b, replace(a_job("tea", owner=OTHER), id=JobId("theirs")))
    assert await with_id(world.a, JobId("another")) is None
    jobs = [replace(a_job("coffee"), id=JobId(f"id {n}")) for n in range(6)]
    got = await at_once(world, lambda store, n: store.add_job(jobs[n], most=50), len(jobs))
    assert sum(isinstance(one, SlugTaken) for one in got) == 5


async def at_once(
    world: JobWorld, call: Callable[[JobStorage, int], Coroutine[Any, Any, object]], times: int
) -> list[object]:
    """What became of so many calls, of both processes in turn."""
    calls = [call((world.a, world.b)[n % 2], n) for n in range(times)]
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_an_owner_has_no_more_jobs_than_are_allowed(world: JobWorld) -> None:
    """CRON-15: those count that run or may be resumed."""
    await added(
        world.a,
        a_job("one"),
        replace(a_job("two", due_at=None), state=JobState.PAUSED),
        replace(a_job("done", due_at=None), state=JobState.COMPLETED),
        replace(a_job("off", due_at=None), state=JobState.DISABLED),
    )
    with pytest.raises(TooManyJobs):
        await world.a.add_job(a_job("three"), most=2)
    await world.a.add_job(a_job("three"), most=3)
    await world.a.add_job(a_job("theirs", owner=OTHER), most=1)
    await world.a.add_job(a_job("without a limit"), most=None)


async def test_the_limit_holds_for_those_who_add_or_bring_back_jobs_at_once(
    world: JobWorld,
) -> None:
    """CRON-15."""
    got = await at_once(world, lambda store, n: store.add_job(a_job(f"j{n}"), most=5), 12)
    assert sum(isinstance(one, TooManyJobs) for one in got) == 7
    assert (await world.a.jobs(JobQuery(owner=OWNER))).total == 5
    failed = [replace(a_job(f"f{n}", due_at=None), state=JobState.FAILED) for n in range(8)]
    await added(world.a, *failed)
    back = [replace(job, state=JobState.ACTIVE) for job in failed]
    got = await at_once(world, lambda store, n: store.change_job(back[n], most=8), len(back))
    assert sum(isinstance(one, TooManyJobs) for one in got) == 5
    assert len(await slugs_of(world.a, states=(JobState.ACTIVE,))) == 8


async def test_everybody_hears_of_a_change(world: JobWorld) -> None:
    """DB-3, CRON-4."""
    heard, job = listen(world.b), a_job("tea")
    for change in (
        world.a.add_job(job, most=1),
        world.a.change_job(job),
        world.a.delete_job(job.id, forget=False),
    ):
        heard.clear()
        await change
        await until(heard.expect(Notice.CRON))


# ---------------------------------------------------------------------------- changing


async def test_a_change_stores_what_people_decide_and_counts_the_revision(world: JobWorld) -> None:
    """CRON-11, CRON-15: what a model changes is a model's."""
    await added(world.a, a_job("tea"))
    spec = replace(FULL, slug="coffee")
    wanted = replace(a_job("tea", due_at=at(60)), spec=spec, failures=4, updated_at=at(1))
    wanted = replace(wanted, maker=Maker.MODEL, chained=2)
    assert await world.a.change_job(wanted)
    assert await with_id(world.b, wanted.id) == replace(wanted, revision=2)
    assert await slugs_of(world.a, name="full of") == ["coffee"]
    assert await world.a.slugs(OWNER, "") == {"coffee"}


async def test_a_change_brings_an_owner_no_more_jobs_than_are_allowed(world: JobWorld) -> None:
    """CRON-15."""
    over = replace(a_job("over", due_at=None), state=JobState.COMPLETED)
    await added(world.a, over, a_job("tea"), a_job("theirs", owner=OTHER))
    revived = replace(a_job("over"), state=JobState.ACTIVE)
    for state in (JobState.ACTIVE, JobState.PAUSED):
        with pytest.raises(TooManyJobs):
            await world.a.change_job(replace(revived, state=state), most=1)
    assert await stored_job(world.a, over) == over
    stale = replace(revived, revision=9)
    assert not await world.a.change_job(stale, most=1)
    assert await world.a.change_job(a_job("tea", due_at=at(9)), most=1)
    assert await world.a.change_job(replace(over, failures=1), most=1)
    assert await world.a.change_job(replace(revived, revision=2), most=2)
    paused = replace(a_job("tea"), state=JobState.PAUSED, revision=2)
    assert await world.a.change_job(paused, most=1), "it counts as before"


async def test_of_two_edits_at_once_one_holds(world: JobWorld) -> None:
    await added(world.a, a_job("tea"))
    edits = [renamed(a_job("tea"), f"tea-{n}") for n in range(4)]
    done = await at_once(world, lambda store, n: store.change_job(edits[n]), len(edits))
    assert sorted(map(bool, done)) == [False, False, False, True]
    job = await stored_job(world.a, a_job("tea"))
    assert (job.revision, job.spec.slug) == (2, edits[done.index(True)].spec.slug)


async def test_a_change_cannot_take_the_slug_of_another_job(world: JobWorld) -> None:
    assert not await world.a.change_job(a_job("tea"))
    assert (await world.a.jobs(JobQuery())).total == 0
    await added(world.a, a_job("tea"), a_job("coffee"))
    with pytest.raises(SlugTaken):
        await world.a.change_job(renamed(a_job("tea"), "coffee"))
    stale = replace(renamed(a_job("tea"), "coffee"), revision=9)
    assert not await world.a.change_job(stale)
    assert await stored_job(world.a, a_job("tea")) == a_job("tea")


async def test_a_change_leaves_alone_what_runs_and_what_has_run(world: JobWorld) -> None:
    claimed = await claimed_job(world.a)
    assert await world.a.change_job(a_job("tea", due_at=at(60)))
    job = await stored_job(world.a, a_job("tea"))
    assert (job.running, job.next_run_at, job.revision) == (claimed.id, at(60), 2)


async def test_slugs_are_told_by_their_beginning(world: JobWorld) -> None:
    await added(world.a, *map(a_job, ("tea", "tea-2", "te_x", "teal", "coffee")))
    assert await world.a.slugs(OWNER, "tea") == {"tea", "tea-2", "teal"}
    assert await world.a.slugs(OTHER, "tea") == frozenset()


@pytest.mark.parametrize("forget", [True, False])
async def test_a_deleted_job_is_gone_and_its_slug_is_free(world: World, *, forget: bool) -> None:
    """CRON-9: its log is kept or not."""
    (job,) = await added(world.a, a_job("tea"))
    claimed = await by_hand(world.a, job)
    await ran(world, run_for("r", claimed), run_end("r", ended(claimed)))
    assert await world.a.delete_job(job.id, forget=forget)
    assert not await world.b.delete_job(job.id, forget=forget)
    assert await with_id(world.b, job.id) is None
    assert len(await world.a.log_of(job.id)) == (0 if forget else 1)
    await added(world.b, replace(a_job("tea"), id=JobId("new")))


# ---------------------------------------------------------------------------- finding


async def test_a_job_is_found_by_its_slug_before_any_id(world: JobWorld) -> None:
    """Some where there are more; among those of its owner."""
    one = replace(a_job("abcd"), id=JobId("0001"))
    two = replace(a_job("other"), id=JobId("abcd-5"))
    theirs = replace(a_job("abcd", owner=OTHER), id=JobId("theirs"))
    many = [replace(a_job(f"s{n}"), id=JobId(f"0190-{n}")) for n in range(5)]
    await added(world.a, one, two, theirs, *many)
    assert await world.a.find_jobs("abcd", owner=OWNER) == [one]
    assert await world.a.find_jobs("abcd", owner=OTHER) == [theirs]
    assert len(await world.a.find_jobs("abcd")) == 2
    assert await world.a.find_jobs("abcd-") == [two]
    assert await world.a.find_jobs("abcd-5", owner=OTHER) == []
    assert await world.a.find_jobs("abc") == []
    assert await world.a.find_jobs("0190") == many[:FOUND]


async def test_a_whole_id_of_a_job_wins_over_longer_ids(world: JobWorld) -> None:
    """Of the requester's own jobs only."""
    one = replace(a_job("one"), id=JobId("job-1"))
    short = replace(a_job("short"), id=JobId("job"))
    more = [replace(a_job(f"s{n}"), id=JobId(f"job-1{n}")) for n in range(3)]
    theirs = replace(a_job("theirs", owner=OTHER), id=JobId("job-1x"))
    await added(world.a, one, short, *more, theirs)
    assert await world.a.find_jobs("job-1") == [one]
    assert await world.a.find_jobs("job") == [short]
    assert await world.a.find_jobs("job-1", owner=OWNER) == [one]
    assert await world.a.find_jobs("job-1", owner=OTHER) == [theirs]


async def test_nothing_in_a_text_is_a_pattern(world: JobWorld) -> None:
    await added(world.a, a_job("tea"))
    for text in ("", "%%%%", "job_tea", "JOB-TEA", "job-tea%", "a\0bcd", "\ud800"):
        assert await world.a.find_jobs(text) == [], text


async def test_jobs_come_in_the_order_of_their_next_runs(world: JobWorld) -> None:
    """A page tells how many there are."""
    await added(
        world.a,
        replace(a_job("young", due_at=None), created_at=at(5)),
        replace(a_job("old", due_at=None), created_at=at(-5)),
        a_job("later", due_at=at(20)),
        a_job("soon", due_at=at(10)),
        a_job("theirs", due_at=at(1), owner=OTHER),
    )
    assert await slugs_of(world.a) == ["theirs", "soon", "later", "old", "young"]
    assert await slugs_of(world.a, owner=OWNER) == ["soon", "later", "old", "young"]
    for query, slugs, total in (
        (JobQuery(limit=2, offset=2), ["later", "old"], 5),
        (JobQuery(offset=9), [], 5),
        (JobQuery(owner=OWNER, limit=1, offset=1), ["later"], 4),
    ):
        page = await world.a.jobs(query)
        assert ([job.spec.slug for job in page.jobs], page.total) == (slugs, total)


@pytest.mark.parametrize("owner", [None, OWNER])
async def test_jobs_come_by_name_or_last_run(world: JobWorld, owner: Owner | None) -> None:
    """Of equal ones the next to run is first."""
    jobs = [
        a_job("zero", spec=replace(a_spec("zero"), name="äpfel"), due_at=at(9)),
        a_job("two", spec=replace(a_spec("two"), name="Banana"), due_at=at(8)),
        replace(a_job("three", due_at=at(30)), last_run_at=at(2)),
        replace(a_job("four", spec=replace(a_spec("four"), name="apple")), last_run_at=at(3)),
        a_job("five", spec=replace(a_spec("five"), name="banana"), due_at=at(7)),
    ]
    await added(world.a, *jobs)
    for order, slugs in (
        (JobOrder.NAME, ["four", "five", "two", "three", "zero"]),
        (JobOrder.LAST_RUN, ["four", "three", "five", "two", "zero"]),
    ):
        assert await slugs_of(world.a, owner=owner, order=order) == slugs
        page = await world.a.jobs(JobQuery(owner=owner, order=order, limit=2, offset=1))
        assert ([job.spec.slug for job in page.jobs], page.total) == (slugs[1:3], 5)


@pytest.mark.parametrize(("times", "found"), [
    ({"created_after": at(0)}, {"second", "third"}),
    ({"created_before": at(2)}, {"first", "second"}),
    ({"created_after": at(0), "created_before": at(2)}, {"second"}),
    ({"next_run_before": at(20)}, {"first"}),
    ({"next_run_before": at(21)}, {"first", "third"}),
])  # fmt: skip
@pytest.mark.parametrize("owner", [None, OWNER])
async def test_jobs_are_selected_by_times_which_do_not_count_themselves(
    world: JobWorld, owner: Owner | None, times: dict[str, datetime], found: set[str]
) -> None:
    """SPEC AGENT-6: a job without a next run is never before anything."""
    await added(
        world.a,
        replace(a_job("first", due_at=at(10)), created_at=at(0)),
        replace(a_job("second", due_at=None), created_at=at(1)),
        replace(a_job("third", due_at=at(20)), created_at=at(2)),
    )
    query = JobQuery(owner=owner, **times)  # type: ignore[arg-type]
    page = await world.a.jobs(query)
    assert {job.spec.slug for job in page.jobs} == found
    assert page.total == sum((await world.a.job_counts(query)).values()) == len(found)


@pytest.mark.parametrize(
    "asked", [{}, {"owner": OWNER}, {"name": "J"}, {"states": (JobState.PAUSED,)}]
)
async def test_no_more_are_counted_than_need_be_but_those_that_follow_are_seen(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    for jobs in (job_rules, postgres_jobs):
        monkeypatch.setattr(jobs, "MOST_COUNTED", 3)
    state = asked.get("states", (JobState.ACTIVE,))[0]
    await added(world.a, *(replace(a_job(f"j{n}", due_at=at(n)), state=state) for n in range(6)))
    for offset, found in ((0, (2, 3)), (2, (2, 5)), (3, (2, 6)), (4, (2, 6)), (6, (0, 3))):
        page = await world.a.jobs(JobQuery(limit=2, offset=offset, **asked))
        assert (len(page.jobs), page.total) == found


async def test_jobs_are_found_by_what_is_asked_of_them(world: JobWorld) -> None:
    once = replace(a_spec("at"), schedule=At(at(5)), target=BOB, notify=Notify.NEVER)
    off = replace(a_job("off", due_at=None, owner=OPERATOR), state=JobState.PAUSED)
    await added(world.a, a_job("full", spec=FULL), a_job("plain"), a_job("at", spec=once), off)
    cases: list[tuple[dict[str, object], list[str]]] = [
        ({"owner": OPERATOR}, ["off"]),
        ({"agent": AgentName("other")}, ["full"]),
        ({"states": (JobState.PAUSED, JobState.FAILED)}, ["off"]),
        ({"kinds": ("at", "cron")}, ["at"]),
        ({"notify": Notify.CONDITIONAL}, ["full"]),
        ({"target": BOB}, ["at"]),
        ({"target": replace(ANN, thread="7")}, ["full"]),
        ({"target": Target("telegram", "other", "100")}, []),
        ({"owner": OWNER, "target": BOB, "kinds": ("every",)}, []),
    ]
    for asked, slugs in cases:
        assert await slugs_of(world.a, **asked) == slugs, asked


async def test_a_name_is_found_by_a_part_of_it_in_any_case(world: JobWorld) -> None:
    names = {"full": "Full of everything", "u": "Über die Straße", "p": "100% and_more"}
    specs = [replace(a_spec(slug), name=name) for slug, name in names.items()]
    await added(world.a, *(a_job(spec.slug, spec=spec) for spec in specs))
    parts = {"full": ("FULL", "of every"), "u": ("ÜBER", "straße"), "p": ("%", "_"), "": ("e\n",)}
    for slug, written in parts.items():
        for part in written:
            assert await slugs_of(world.a, name=part) == ([slug] if slug else [])


# ---------------------------------------------------------------------------- zones and moves


async def test_the_zone_of_an_owner_is_kept_until_it_is_forgotten(world: JobWorld) -> None:
    """CMD-5."""
    assert await world.a.zone_of(OWNER) is None
    await world.a.choose_zone(OWNER, "Europe/Berlin")
    await world.a.choose_zone(OWNER, "Asia/Tokyo")
    assert await world.b.zone_of(OWNER) == "Asia/Tokyo"
    assert await world.b.zone_of(OTHER) is None
    await world.b.choose_zone(OWNER, None)
    assert await world.a.zone_of(OWNER) is None


async def move(world: World, old: str = "100", new: str = "300") -> bool:
    return await world.a.move_chat("telegram", "default", old=old, new=new, now=at(50))


async def test_a_chat_takes_its_jobs_along(world: World) -> None:
    """CHAN-7."""
    spec = replace(a_spec("tea"), target=replace(ANN, thread="4"))
    elsewhere = a_job("far", owner=OPERATOR, spec=replace(a_spec("far"), target=ANN))
    await added(world.a, a_job("tea", spec=spec), elsewhere, a_job("bobs", owner=OTHER))
    claimed = await claim_manual(world.a, a_job("tea"))
    await world.a.choose_zone(OWNER, "Asia/Tokyo")
    assert await move(world)
    job = await stored_job(world.b, a_job("tea"))
    new = Owner("telegram:direct:300")
    assert (job.owner, job.spec.target) == (new, Target("telegram", "default", "300", "4"))
    assert (job.revision, job.updated_at) == (2, at(50))
    assert job.running == (claimed and claimed.id)
    assert (await stored_job(world.b, elsewhere)).spec.target == replace(ANN, chat="300")
    assert (await stored_job(world.b, elsewhere)).owner == OPERATOR
    assert await slugs_of(world.b, target=replace(ANN, chat="300")) == ["far", "tea"]
    assert await stored_job(world.b, a_job("bobs")) == a_job("bobs", owner=OTHER)
    assert (await world.b.zone_of(new), await world.b.zone_of(OWNER)) == ("Asia/Tokyo", None)
    assert [row.owner for row in await world.b.log_of(job.id)] == [new]
    assert await world.b.slugs(OWNER, "") == frozenset()


async def test_a_moved_job_whose_slug_is_taken_gets_another_one(world: World) -> None:
    """CHAN-7: the move itself never fails."""
    old, new = Owner("telegram:group:100"), Owner("telegram:group:300")
    long = "x" * 64
    theirs = [replace(a_job(s, owner=new), id=JobId(f"new-{s}")) for s in ("tea", "tea-3", long)]
    await added(world.a, *(a_job(slug, owner=old) for slug in ("tea", "tea-2", long)), *theirs)
    await world.a.choose_zone(old, "Asia/Tokyo")
    await world.a.choose_zone(new, "Europe/Rome")
    assert await move(world)
    expected = {"tea", "tea-2", "tea-3", "tea-2-2", long, "x" * 62 + "-2"}
    assert await world.a.slugs(new, "") == expected
    assert await world.a.zone_of(new) == "Europe/Rome"


async def test_the_end_of_a_run_reschedules_a_job_that_moved_meanwhile(world: World) -> None:
    await added(world.a, a_job("tea"))
    assert not await move(world, old="555", new="556")
    assert await stored_job(world.a, a_job("tea")) == a_job("tea")
    claimed = await claim_one(world.a)
    await move(world)
    await ran(world, run_for("r", claimed), run_end("r", ended(claimed)))
    job = await stored_job(world.a, a_job("tea"))
    assert (job.next_run_at, job.running) == (T0 + timedelta(hours=1), None)
    assert job.last_status == OccurrenceStatus.OK


async def test_a_spec_with_everything_differs_from_the_defaults_everywhere() -> None:
    plain = JobSpec("full", FULL.schedule, FULL.zone, FULL.payload)
    same = [name for name in JobSpec.__slots__ if getattr(FULL, name) == getattr(plain, name)]
    assert same == ["slug", "schedule", "zone", "payload"]


# ---------------------------------------------------- jobs that cannot be read, as after a rollback


CAUSE = "from_the_future"
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
    job = await stored_job(world.b, strange)
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
    assert found == page.jobs[0] == await stored_job(world.b, strange)
    assert CAUSE in found.last_error
    assert replace(found, spec=SPEC, last_error="") == strange


async def test_nobody_overwrites_or_runs_by_hand_what_cannot_be_read(world: World) -> None:
    """The release that wrote it will want it back."""
    strange = await a_strange_job(world)
    shown = await stored_job(world.a, strange)
    with pytest.raises(BadJob, match=CAUSE):
        await world.b.change_job(renamed(shown, "coffee"))
    with pytest.raises(BadJob, match=CAUSE):
        await claim_manual(world.a, strange)
    assert await stored_job(world.a, strange) == shown
    assert await world.a.log_of() == []
    assert await world.a.delete_job(strange.id, forget=False)
    assert await with_id(world.a, strange.id) is None


async def test_a_job_that_cannot_be_read_moves_with_its_chat(world: World) -> None:
    strange = await a_strange_job(world)
    await added(world.a, replace(a_job("tea", owner=OTHER), spec=a_spec("strange")))
    assert await world.a.move_chat("telegram", "default", old="100", new="200", now=T0)
    job = await stored_job(world.b, strange)
    assert (job.owner, job.spec.slug) == (OTHER, "strange-2")
    assert (job.spec.target, job.revision) == (BOB, strange.revision + 1)
    assert CAUSE in job.last_error
