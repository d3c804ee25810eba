"""The offline agent schedules through the tools that models call (SPEC AGENT-2, AGENT-6).

Time begins on Friday, 2 January 2026, 03:04:05 UTC, which is 08:34:05 in Kolkata.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.agents.offline import PHRASES, OfflineAgent
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import ToolStarted
from goclaw_py.records import JobQuery
from goclaw_py.schedule.jobs.models import Job, JobState, Prompt
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from tests.support.schedules import BOB, OPERATORS, Schedules, asker
from tests.unit.agents.builders import Events, request


@pytest.fixture
def world(tmp_path: Path) -> Schedules:
    return Schedules(tmp_path)


async def said(world: Schedules, text: str, *, events: Events | None = None) -> str:
    """What it replies. What was streamed is the same."""
    heard = Events() if events is None else events
    result = await OfflineAgent().run(replace(request(text), tools=world.tools()), heard)
    assert heard.text == result.text
    return result.text


async def jobs(world: Schedules) -> list[Job]:
    return list((await world.service.search(JobQuery(), OPERATORS)).jobs)


async def only_job(world: Schedules) -> Job:
    (job,) = await jobs(world)
    return job


def goal(job: Job) -> str:
    assert isinstance(job.spec.payload, Prompt)
    return job.spec.payload.text


async def run_of(job: Job) -> str:
    """What a scheduled run of it says: no tools, as scheduled runs have none for schedules."""
    asked = replace(request(goal(job)), trigger=Trigger.CRON)
    return (await OfflineAgent().run(asked, Events())).text


@pytest.mark.parametrize(
    ("phrase", "at"),
    [
        ("remind me in 2 minutes to buy milk", "2026-01-02T03:06:05+00:00"),
        ("Remind me  in 90s buy milk", "2026-01-02T03:05:35+00:00"),
        ("remind me in 3 hours to buy milk", "2026-01-02T06:04:05+00:00"),
        ("remind me in 1 day to buy milk", "2026-01-03T03:04:05+00:00"),
        ("remind me in an hour to buy milk", "2026-01-02T04:04:05+00:00"),
        ("remind me tomorrow at 9 to buy milk", "2026-01-03T03:30:00+00:00"),
        ("remind me at 18 to buy milk", "2026-01-02T12:30:00+00:00"),
        ("remind me at 18:00 to buy milk", "2026-01-02T12:30:00+00:00"),
        ("remind me at 08:00 to buy milk", "2026-01-03T02:30:00+00:00"),
        ("remind me tomorrow 9:00 to buy milk", "2026-01-03T03:30:00+00:00"),
        ("remind me tomorrow at 9:00 to buy milk", "2026-01-03T03:30:00+00:00"),
        ("remind me at 2026-02-01T10:00:00Z to buy milk", "2026-02-01T10:00:00+00:00"),
    ],
)
async def test_a_reminder_is_a_one_off_that_says_its_text(
    world: Schedules, phrase: str, at: str
) -> None:
    reply = await said(world, phrase)
    job = await only_job(world)
    assert isinstance(job.spec.schedule, At)
    assert job.spec.schedule.at.isoformat() == at
    assert re.fullmatch(
        r"I will remind you \w{3,8}(?: \d+ \w{3})?(?: \d{4})? \d\d:\d\d\. "
        r"To end that, say `delete job buy-milk`\.",
        reply,
    )
    assert await run_of(job) == "Reminder: buy milk"
    assert job.spec.target == asker().chat


async def test_the_zone_is_the_one_that_the_user_has_chosen(world: Schedules) -> None:
    await world.service.choose_zone("Europe/Berlin", asker())
    assert "I will remind you today 18:00." in await said(world, "remind me at 18:00 to rest")


async def test_what_runs_again_and_again_is_a_phrase_or_is_just_said(world: Schedules) -> None:
    reply = await said(world, "every 10 minutes count to 3")
    job = await only_job(world)
    assert isinstance(job.spec.schedule, Every)
    assert job.spec.schedule.interval.total_seconds() == 600
    assert reply.startswith("I will do `count to 3`, next today 08:44. ")
    assert await run_of(job) == "1 2 3"
    await said(world, "every hour drink\nsome water")
    (job,) = [job for job in await jobs(world) if job.spec.name.startswith("drink")]
    assert goal(job) == "echo drink\nsome water"
    assert await run_of(job) == "drink\nsome water"


@pytest.mark.parametrize(
    ("phrase", "expression", "text"),
    [
        ("cron 0 9 * * 1-5 stand up", "0 9 * * 1-5", "stand up"),
        ("cron 0 9 * * 1 echo 7 up", "0 9 * * 1", "7 up"),
        ("cron 0 9 * * * e-mail Ann", "0 9 * * *", "e-mail Ann"),
        ("cron 0 9 * * * go", "0 9 * * *", "go"),
        ("cron @daily 1-5 are weekdays", "@daily", "1-5 are weekdays"),
        ("cron 0 */30 * * * * breathe\nand rest", "0 */30 * * * *", "breathe\nand rest"),
        ("cron 30 0 9 * * 1-5 echo up", "30 0 9 * * 1-5", "up"),
        ("CRON  0 9 * * MON-FRI  7 up", "0 9 * * MON-FRI", "7 up"),
        ("cron @daily look around", "@daily", "look around"),
    ],
)
async def test_times_by_the_clock_are_a_cron_expression(
    world: Schedules, phrase: str, expression: str, text: str
) -> None:
    await said(world, phrase)
    job = await only_job(world)
    assert job.spec.schedule == Cron(expression)
    assert job.spec.zone == "Asia/Kolkata"
    assert await run_of(job) == text


@pytest.mark.parametrize(
    "phrase",
    [
        "cron */30 * * * * *",
        "cron 0 9 * * 1 7 up",
        "cron 0 0 9 * * 1 stand up",
        "cron 0 9 * * 1 sun is up",
        "cron 0 9 * * mon * echo x",
        "cron 0 9 * * mon-fri */2 echo x",
    ],
)
async def test_a_field_is_never_taken_for_the_text(world: Schedules, phrase: str) -> None:
    reply = await said(world, phrase)
    assert "may be a sixth field or the beginning of the text" in reply
    assert await world.stored() == 0


async def test_schedules_are_listed_with_their_next_times(world: Schedules) -> None:
    assert await said(world, "schedules") == "This chat has no jobs."
    await said(world, "cron 0 9 * * 1-5 stand up")
    await said(world, "every 10 minutes breathe")
    await world.create(owner=BOB)
    await said(world, "pause job breathe")
    assert await said(world, "schedules") == (
        "- `stand-up`: stand up; next today 09:00\n- `breathe`: breathe; paused"
    )


async def test_many_schedules_are_listed_in_part(tmp_path: Path) -> None:
    world = Schedules(tmp_path, most=60)
    for number in range(52):
        await world.create(name=f"job {number}")
    lines = (await said(world, "schedules")).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "… and 2 more"


@pytest.mark.parametrize("by", ["slug", "name", "id"])
async def test_a_schedule_is_paused_resumed_and_deleted_by_any_of_its_names(
    world: Schedules, by: str
) -> None:
    await said(world, "every 10 minutes drink water")
    await said(world, "every 10 minutes drink water now and then")
    (job,) = [job for job in await jobs(world) if job.spec.slug == "drink-water"]
    called = {"slug": "drink-water", "name": "Drink Water", "id": job.id}[by]
    assert await said(world, f"pause schedule {called}") == "`drink-water` is paused."
    assert (await world.service.get(job.id, asker())).state is JobState.PAUSED
    await asyncio.sleep(60)
    resumed = await said(world, f"resume schedule {called}")
    assert resumed == "`drink-water` runs again, next today 08:45."
    assert await said(world, f"delete schedule {called}") == "`drink-water` is deleted."
    assert [left.spec.name for left in await jobs(world)] == ["drink water now and then"]


async def test_a_name_of_several_schedules_is_a_question(world: Schedules) -> None:
    await said(world, "every 10 minutes drink water")
    await said(world, "every 20 minutes drink water")
    reply = await said(world, "delete job drink water")
    assert reply.startswith("That did not work: several schedules fit drink water: drink-water")
    assert await world.stored() == 2


async def test_what_is_not_there_cannot_be_deleted(world: Schedules) -> None:
    theirs = await world.create(owner=BOB, name="secret")
    reply = await said(world, "delete schedule secret")
    assert reply == "That did not work: schedule not found: secret"
    reply = await said(world, f"delete schedule {theirs['schedule_id']}")
    assert "does not belong to user console:direct:me" in reply
    assert await world.stored() == 1


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("every 10 seconds breathe", "interval 10s is below minimum 60s"),
        ("every 999999999 days breathe", "is above maximum"),
        ("cron 61 9 * * 1-5 stand up", "invalid cron expression: 61 9 * * 1-5: "),
        ("cron 0 0 30 2 * never", "schedule would never fire"),
        ("remind me in 999999999 days to rest", "too far ahead"),
        ("remind me in 9000 hours to " + "x" * 200_000, "goal: may have at most 100,000"),
        ("remind me in 0 minutes to rest", "that is now"),
        ("every 0 minutes breathe", "that is no interval"),
        ("remind me at 25:99 to rest", "25:99"),
        ("remind me at noonish to rest", "noonish"),
        ("remind me at 2020-01-01T00:00:00Z to rest", "2020-01-01T00:00:00Z"),
        ("remind me AT Noonish to rest", "'Noonish'"),
        ("cron */30 * * * * * echo x", "cron fires every 30s, minimum is 60s"),
    ],
)
async def test_what_cannot_be_is_told_politely_and_nothing_is_stored(
    world: Schedules, phrase: str, reason: str
) -> None:
    reply = await said(world, phrase)
    assert reply.startswith("That did not work: ")
    assert reason in reply
    assert len(reply) < 500
    assert await world.stored() == 0


@pytest.mark.parametrize(
    "text", ["remind me to rest", "every now and then", "cron 0 9 *", "delete schedule", "remind"]
)
async def test_what_is_no_phrase_is_answered_with_the_introduction(
    world: Schedules, text: str
) -> None:
    assert "I am the offline agent" in await said(world, text)
    assert await world.stored() == 0


async def test_where_nothing_may_be_scheduled_it_says_so() -> None:
    for phrase in ("schedules", "every 10 minutes breathe", "remind me in 2 minutes to rest"):
        reply = (await OfflineAgent().run(request(phrase), Events())).text
        assert reply.startswith("That did not work: there is no tool 'schedule_")


async def test_the_calls_are_reported_with_what_they_change(world: Schedules) -> None:
    """SPEC CRON-7."""
    events = Events()
    await said(world, "remind me in 2 minutes to rest", events=events)
    calls = [event for event in events if isinstance(event, ToolStarted)]
    assert [(call.name, call.side_effects) for call in calls] == [
        ("schedule_search", False),
        ("schedule_create", True),
    ]


async def test_help_lists_the_phrases(world: Schedules) -> None:
    reply = await said(world, "help")
    for usage in ("remind me in N minutes to TEXT", "every N minutes PHRASE", "jobs"):
        assert usage in [phrase.usage for phrase in PHRASES]
        assert usage in reply


async def test_a_day_without_a_number_is_one_day(tmp_path: Path) -> None:
    world = Schedules(tmp_path, PROFILES["goclaw"])
    assert "next tomorrow 03:04" in await said(world, "every day look around")
