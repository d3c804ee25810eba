"""The desk over the socket: what goes in comes out, errors included (SPEC CRON-2, CRON-11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.cli.client.calls import asker_params
from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core import errors
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.operations.jobs.answers import change_json, draft_json
from goclaw_py.operations.jobs.models import UNCHANGED, JobChange, JobDraft, Requester, RunNow
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.operations.jobs.routes.bodies import ChangeBody, DraftBody, change_of, draft_of
from goclaw_py.operations.jobs.routes.routes import asker_of
from goclaw_py.records import JobQuery
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    JobState,
    Notify,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule
from goclaw_py.web.api.wire import dump, read
from tests.unit.web.fake_jobs import FRIDAY, STARTED, Jobs
from tests.unit.web.harness import Api, connected
from tests.unit.web.pages.past import ran

OPERATOR = Requester(None)
CHAT = Target("telegram", "work", "-1005", "7")
ANN_OWNER = owner_of(CHAT, PeerKind.GROUP)
ANN = Requester(ANN_OWNER, Maker.MODEL, AgentName("helper"), CHAT, PeerKind.GROUP)
DAILY = Cron("0 9 * * *")
IN_AN_HOUR = At(FRIDAY + timedelta(hours=1))
FULL = JobDraft(
    schedule=Every(timedelta(minutes=90, milliseconds=1), FRIDAY),
    payload=Prompt("Grüße\n\u2028", "m:n"), slug="full", name="All of it", zone="Europe/Berlin",
    agent=AgentName("main"), target=CHAT, peer=PeerKind.GROUP, notify=Notify.CONDITIONAL,
    session="agent:main:api:x",
    policy={"session": "key", "anchor": "grid", "usd": Decimal("0.10"), "turns": None}
    | {"backoff": (30.0, 60.0)},
    max_runs=3, not_after=FRIDAY + timedelta(days=30, microseconds=1), wake_heartbeat=True,
    source="issues", paused=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Both:
    """The desk of a gateway, and the same from outside."""

    jobs: Jobs
    remote: JobService
    control: RemoteControl


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with connected(tmp_path) as (made, remote):
        yield Both(made.control.made, remote.jobs, remote)


# ---------------------------------------------------------------------------- what is done


@pytest.mark.real_time
async def test_a_job_is_made_seen_changed_run_and_deleted(both: Both) -> None:
    service, remote = both.jobs.service, both.remote
    made = await remote.create(FULL, OPERATOR)
    assert made == await service.get("full", OPERATOR) == await remote.get("full", OPERATOR)
    assert (made.spec.payload, made.state) == (FULL.payload, JobState.PAUSED)
    change = JobChange(name="", schedule=DAILY, max_runs=None, policy={"turns": 5})
    change = replace(change, state=JobState.ACTIVE)
    changed = await remote.edit(made.id[:12], change, OPERATOR)
    assert changed == await service.get("full", OPERATOR)
    assert (changed.spec.schedule, changed.spec.max_runs, changed.revision) == (DAILY, None, 2)
    assert changed.spec.not_after == FULL.not_after
    assert await remote.run_now("full", OPERATOR) == STARTED
    both.jobs.runner.answer = RunNow.AT_CAPACITY
    assert await remote.run_now("full", OPERATOR) is RunNow.AT_CAPACITY
    assert await remote.delete("full", OPERATOR) == changed
    with pytest.raises(errors.UnknownJob):
        await remote.get("full", OPERATOR)


@pytest.mark.real_time
async def test_the_settings_of_all_jobs_come_with_the_time_of_the_gateway(both: Both) -> None:
    assert await both.remote.scheduler() == await both.jobs.service.scheduler()
    assert (await both.remote.scheduler()).now == both.jobs.clock.now()
    assert await both.remote.zone(OPERATOR) == "UTC"


@pytest.mark.real_time
async def test_coming_times_are_those_of_the_gateway(both: Both) -> None:
    schedules: list[Schedule] = [Cron("*/20 9-17 * * 1-5"), Every(timedelta(minutes=7)), IN_AN_HOUR]
    for slug, schedule in zip(("cron", "every", "at"), schedules, strict=True):
        draft = JobDraft(schedule, FixedMessage("tea"), slug=slug)
        times = await both.remote.preview(draft, OPERATOR, 5)
        assert times == await both.jobs.service.preview(draft, OPERATOR, 5)
        job = await both.remote.create(draft, OPERATOR)
        base = (await both.remote.scheduler()).profile.policy
        assert job.upcoming(base, 5) == times
        assert job.upcoming(base, 0) == []
        over = await both.remote.edit(slug, JobChange(state=JobState.PAUSED), OPERATOR)
        assert over.upcoming(base) == []


@pytest.mark.real_time
async def test_jobs_are_counted_and_their_routes_are_checked(both: Both) -> None:
    service, remote = both.jobs.service, both.remote
    query = JobQuery(states=(JobState.PAUSED,), kinds=("at",), target=CHAT)
    for slug, paused in (("one", False), ("two", True), ("three", True)):
        draft = JobDraft(IN_AN_HOUR, FixedMessage("tea"), slug, target=CHAT, paused=paused)
        await service.create(draft, OPERATOR)
    assert await remote.counts(query, OPERATOR) == {JobState.ACTIVE: 1, JobState.PAUSED: 2}
    assert await remote.counts(JobQuery(name="four"), OPERATOR) == {}
    problem = await remote.no_route("one", OPERATOR)
    assert problem == await service.no_route("one", OPERATOR) != ""


@pytest.mark.real_time
async def test_jobs_are_searched_by_everything(both: Both) -> None:
    service = both.jobs.service
    for number in range(5):
        at = At(FRIDAY + timedelta(hours=number + 1))
        await service.create(JobDraft(at, FixedMessage("tea"), slug=f"tea-{number}"), OPERATOR)
    await service.create(JobDraft(DAILY, Prompt("x"), slug="mine", target=CHAT), ANN)
    for query in (
        JobQuery(),
        JobQuery(limit=2, offset=1),
        JobQuery(owner=ANN.owner),
        JobQuery(name="EA-3"),
        JobQuery(states=(JobState.ACTIVE, JobState.PAUSED), kinds=("at", "cron")),
        JobQuery(kinds=("every",)),
        JobQuery(notify=Notify.ALWAYS, agent=AgentName("helper"), target=CHAT),
    ):
        assert await both.remote.search(query, OPERATOR) == await service.search(query, OPERATOR)
        assert await both.remote.search(query, ANN) == await service.search(query, ANN)


@pytest.mark.real_time
async def test_a_zone_is_chosen_for_whoever_asks(both: Both) -> None:
    """SPEC CMD-5."""
    assert await both.remote.choose_zone("Asia/Kolkata", ANN) == "Asia/Kolkata"
    assert await both.jobs.service.zone(ANN) == await both.remote.zone(ANN) == "Asia/Kolkata"
    assert await both.remote.zone(OPERATOR) == "UTC"
    assert await both.remote.choose_zone(None, ANN) == "UTC"
    with pytest.raises(errors.UnknownZone) as caught:
        await both.remote.choose_zone("Berlin", ANN)
    assert caught.value.zone == "Berlin"


@pytest.mark.real_time
async def test_what_became_of_jobs_comes_back_as_it_was(both: Both) -> None:
    """SPEC CRON-12."""
    jobs, remote = both.jobs, both.remote
    job = await jobs.service.create(JobDraft(DAILY, Prompt("x"), slug="x"), OPERATOR)
    why, output = Why.BUDGET, "out \x00\u2028"
    which = await ran(jobs, job, OccurrenceStatus.FAILED, why=why, output=output, error="too dear")
    rows = await jobs.service.log("x", OPERATOR)
    [row] = rows
    assert await remote.log("x", OPERATOR) == await remote.log(None, OPERATOR) == rows
    assert await remote.log(job.id, OPERATOR, status=OccurrenceStatus.OK) == []
    assert await remote.log(None, OPERATOR, limit=1, status=OccurrenceStatus.FAILED) == rows
    assert await remote.logged(which, OPERATOR) == row
    since = FRIDAY - timedelta(days=1)
    stats = await jobs.service.stats("x", OPERATOR, since=since)
    assert stats.failed == 1
    assert await remote.stats("x", OPERATOR, since=since) == stats
    assert await remote.stats(None, OPERATOR, since=since) == stats
    for asked in (remote.stats(None, ANN, since=since), remote.log(None, ANN)):
        with pytest.raises(errors.NotYours):
            await asked
    with pytest.raises(errors.UnknownJob):
        await remote.logged(which, ANN)


# ---------------------------------------------------------------------------- errors


@pytest.mark.real_time
async def test_an_error_keeps_its_class_and_what_it_carries(both: Both) -> None:
    remote = both.remote
    job = await remote.create(JobDraft(DAILY, Prompt("x"), slug="x"), OPERATOR)
    with pytest.raises(errors.BadCron) as cron:
        await remote.create(JobDraft(Cron("61 * * * *"), Prompt("x")), OPERATOR)
    assert cron.value.expression == "61 * * * *"
    with pytest.raises(errors.SlugTaken) as taken:
        await remote.create(JobDraft(DAILY, Prompt("x"), slug="x"), OPERATOR)
    assert taken.value.slug == "x"
    change = JobChange(schedule=Cron("0 8 * * *"), policy={"min_interval": 1e6})
    with pytest.raises(errors.TooFrequent) as often:
        await remote.edit("x", change, OPERATOR)
    assert (often.value.minimum_s, often.value.cron) == (1e6, True)
    with pytest.raises(errors.JobChanged):
        await remote.edit("x", JobChange(name="y", revision=7), OPERATOR)
    with pytest.raises(errors.NotYours) as foreign:
        await remote.delete(job.id, ANN)
    assert (foreign.value.asked, foreign.value.owner) == (job.id, ANN.owner)
    with pytest.raises(errors.UnknownJob):
        await remote.get("x", ANN)
    with pytest.raises(errors.BadMoment):
        await remote.preview(JobDraft(At(FRIDAY - timedelta(days=1)), Prompt("x")), OPERATOR)
    with pytest.raises(errors.BadJob) as bad:
        await remote.create(JobDraft(DAILY), OPERATOR)
    assert (bad.value.key, bad.value.allowed) == ("prompt", "is required")


# ---------------------------------------------------------------------------- the wire


def test_a_draft_keeps_everything() -> None:
    program = JobDraft(At(FRIDAY), Program(("a", "")), next_run_at=FRIDAY)
    for draft in (FULL, JobDraft(DAILY), program):
        back = draft_of(read(DraftBody, dump(dict, draft_json(draft))))
        # Money is a text on its way: it has no exact number in JSON.
        wanted = {**draft.policy, "usd": "0.10"} if draft is FULL else draft.policy
        assert back == replace(draft, policy=wanted)


NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("slug", "name", "zone", "session", "source"), NAMES),
        "schedule": st.sampled_from([DAILY, Every(timedelta(seconds=5)), At(FRIDAY)]),
        "payload": st.builds(Prompt, NAMES, NAMES)
        | st.builds(FixedMessage, NAMES)
        | st.builds(Program, st.tuples(NAMES, NAMES)),
        "agent": NAMES.map(AgentName),
        "target": st.sampled_from([CHAT, TargetKind.LAST, TargetKind.NONE]),
        "peer": st.sampled_from(PeerKind),
        "notify": st.sampled_from(Notify),
        "policy": st.dictionaries(NAMES, st.none() | st.booleans() | NAMES | st.integers(0, 9)),
        "max_runs": st.none() | st.integers(-5, 5),
        "not_after": st.none() | st.just(FRIDAY),
        "wake_heartbeat": st.booleans(),
        "state": st.sampled_from(JobState),
        "revision": st.none() | st.integers(1, 9),
    },
)


@given(CHANGES)
def test_a_change_keeps_what_it_changes_and_what_it_leaves(parts: dict[str, Any]) -> None:
    change = JobChange(**parts)
    back = change_of(read(ChangeBody, dump(dict, change_json(change))))
    assert back == change
    for field in fields(JobChange):
        kept = field.name not in {"revision", *parts}
        assert (getattr(back, field.name) is UNCHANGED) == kept


@pytest.mark.parametrize("by", [OPERATOR, ANN, Requester(Owner("x"), Maker.PERSON)])
async def test_whoever_asks_arrives_as_they_are(by: Requester) -> None:
    given = asker_params(by)
    maker, peer = Maker(given["maker"]), PeerKind(given["peer"])
    who = given.get("asker"), given.get("asker_agent")
    assert await asker_of(*who, maker, given.get("chat"), peer) == by


@pytest.mark.parametrize(("given", "maker"), [
    ("", Maker.OPERATOR), ("?asker=ann", Maker.PERSON),
    ("?asker=operator", Maker.PERSON), ("?asker=ann&maker=model", Maker.MODEL),
    ("?maker=person", Maker.PERSON),
])  # fmt: skip
async def test_whoever_asks_as_somebody_is_a_person_unless_they_say_otherwise(
    given: str, maker: Maker, api: Api
) -> None:
    status, made = await api("POST", f"/jobs{given}", TEA)
    assert (status, made["maker"]) == (201, maker)


# ---------------------------------------------------------------------------- bad input

GOOD = {"schedule": {"kind": "cron", "expression": "0 9 * * *"}}
TEA = GOOD | {"payload": {"kind": "message", "text": "tea"}}


@pytest.mark.parametrize(("body", "part"), [
    ({}, "schedule"), ({"schedule": {"kind": "weekly"}}, "schedule"),
    ({"schedule": {"kind": "every", "every_ms": 0}}, "interval"),
    ({"schedule": {"kind": "every", "every_ms": 10**30}}, "at most"),
    ({"schedule": {"kind": "every", "every_ms": "60000"}}, "every_ms"),
    ({"schedule": {"kind": "at", "at": "2026-02-02T09:00:00"}}, "offset"),
    (GOOD, "prompt"),
    (GOOD | {"payload": {"kind": "prompt", "text": ""}}, "prompt"),
    (GOOD | {"payload": {"kind": "prompt", "text": "x" * 100_001}}, "payload"),
    (GOOD | {"payload": {"kind": "command", "argv": []}}, "command"),
    (TEA | {"schedule": {"kind": "cron", "expression": "1" * 257}}, "256 characters"),
    (GOOD | {"payload": {"kind": "shell", "text": "x"}}, "payload"),
    (TEA | {"slug": "../x"}, "slug"), (TEA | {"slog": "x"}, "slog"),
    (TEA | {"zone": "Mars"}, "Mars"), (TEA | {"source": "nowhere"}, "source"),
    (TEA | {"policy": {"min_interval": -1}}, "min_interval"),
    (TEA | {"policy": {"colour": "red"}}, "colour"),
    (TEA | {"policy": {"turns": {"a": 1}}}, "policy"),
    (TEA | {"max_runs": 0}, "max_runs"), (TEA | {"max_runs": "3"}, "max_runs"),
    (TEA | {"not_after": "2026-02-02T09:00:00"}, "not_after"),
    (TEA | {"next_run_at": "0001-01-01T00:00:00+14:00"}, "UTC"),
    (TEA | {"target": "nowhere"}, "target"), (TEA | {"target": {"channel": "a"}}, "target"),
    (TEA | {"session": "agent:main:x"}, "session"),
])  # fmt: skip
async def test_a_job_without_sense_is_refused(body: object, part: str, api: Api) -> None:
    """SPEC CRON-2, SEC-3."""
    status, answer = await api("POST", "/jobs", body)
    assert (status, part in answer["error"]) == (422, True), answer
    assert (await api("GET", "/jobs"))[1] == {"jobs": [], "total": 0}


@pytest.mark.parametrize("path", [
    "/jobs/%2e%2e", "/jobs/a%00", "/jobs/a%0A", "/jobs/X", "/jobs?limit=0", "/jobs?limit=1001",
    "/jobs?offset=-1", "/jobs?kind=weekly", "/jobs?state=lost", "/jobs?name=%00",
    "/jobs?target=here", "/jobs?chat=here", "/jobs?asker=%0A", "/jobs/x/upcoming?count=101",
    "/jobs/nobody/stats", "/jobs/nobody/stats?since=yesterday",
    "/jobs/nobody/stats?since=2026-01-01T00:00:00",
    "/scheduler/stats?since=0001-01-01T00:00:00%2B14:00",
])  # fmt: skip
async def test_a_bad_question_is_refused(path: str, api: Api) -> None:
    status, answer = await api("GET", path)
    assert (status, "error" in answer) == (422, True)


async def test_statistics_are_for_operators_and_from_any_time_on(api: Api) -> None:
    since = "since=0001-01-01T00:00:00Z"
    assert (await api("GET", f"/scheduler/stats?{since}"))[0] == 200
    assert (await api("GET", f"/scheduler/stats?asker=ann&{since}"))[0] == 403


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.real_time
async def test_the_profile_arrives_whole(tmp_path: Path, profile: str) -> None:
    async with connected(tmp_path) as (made, remote):
        made.control.made = Jobs(PROFILES[profile])
        assert await remote.jobs.scheduler() == await made.control.jobs.scheduler()
