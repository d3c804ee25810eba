"""The four schedule tools (SPEC AGENT-6, CRON-1, CRON-2, CRON-15, SEC-3).

Time begins on Friday, 2 January 2026, 03:04:05 UTC, which is 08:34:05 in Kolkata.

SPEC CRON-0, CRON-8, CRON-11.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.agents.tools import SAFE, Permissions, Registry
from goclaw_py.core.errors import StoreUnavailable, ToolFailed
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.records import JobQuery
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceStatus
from goclaw_py.schedule.jobs.models import FixedMessage, JobState, Program, Prompt
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import Every
from tests.support.schedules import ANN, BOB, OPERATORS, Schedules, asker
from tests.support.store_jobs import claim_one, ended
from tests.support.stores import A, a_node
from tests.support.tools import SCHEDULING, SERVICE_TOOLS


@pytest.fixture
def world(tmp_path: Path) -> Schedules:
    return Schedules(tmp_path)


async def refused(world: Schedules, tool: str, /, **arguments: Any) -> str:
    """What the model reads of a call that fails; nothing is stored or changed by it."""
    before = await world.service.search(JobQuery(), OPERATORS)
    with pytest.raises(ToolFailed) as caught:
        await world.call(tool, **arguments)
    assert await world.service.search(JobQuery(), OPERATORS) == before
    assert len(str(caught.value)) < 500
    return str(caught.value)


async def not_created(world: Schedules, kind: str, value: str, **more: Any) -> str:
    return await refused(world, "create", goal="x", cadence_type=kind, cadence_value=value, **more)


# ---------------------------------------------------------------------------- what models see


def parameters(world: Schedules, name: str) -> dict[str, Any]:
    (spec,) = [spec for spec in world.tools().specs if spec.name == name]
    schema: dict[str, Any] = json.loads(json.dumps(spec.parameters))
    return schema


def text(description: str, *enum: str) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "string", "description": description}
    return kind | ({"enum": list(enum)} if enum else {})


def number(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description}


NOW = "is 2026-01-02T08:34:05+05:30 (Asia/Kolkata)"
DAILY = {"cadence_type": "cron", "cadence_value": "0 9 * * *"}
CADENCES = ("cron", "once", "interval")
NOTIFICATIONS = ("always", "conditional", "never")


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    made = {"type": "object", "additionalProperties": False, "properties": properties}
    return made | ({"required": list(required)} if required else {})


def test_they_take_exactly_these_arguments(world: Schedules) -> None:
    assert parameters(world, "schedule_create") == schema(
        *("goal", "cadence_type", "cadence_value"),
        name=text("Optional human-readable label for the schedule"),
        goal=text(
            "Complete, self-contained instruction to execute. Write as if briefing an agent "
            "with no prior context — it runs independently without conversational history."
        ),
        cadence_type=text(
            "Type of schedule: 'cron' (5-field expression), 'once' (ISO 8601 timestamp), or "
            "'interval' (seconds between runs, minimum 60)",
            *CADENCES,
        ),
        cadence_value=text(
            "The cadence specification. For cron: '0 8 * * *' (5-field). For once: "
            "'2026-03-01T09:00:00Z' (ISO 8601). For interval: '3600' (seconds)."
        ),
        timezone=text(
            "IANA timezone for cron schedules (e.g. 'Asia/Kolkata', 'US/Eastern'). Ignored "
            "for 'once' and 'interval'. Default: Asia/Kolkata."
        ),
        notification=text(
            "When to notify. 'always': send every result. 'conditional': only if result "
            "warrants attention. 'never': store silently. Default: 'always'.",
            *NOTIFICATIONS,
        ),
    )
    assert parameters(world, "schedule_search") == schema(
        name=text("Filter by name (partial, case-insensitive match)"),
        status=text("Filter by status", "active", "paused", "completed", "disabled"),
        cadence_type=text("Filter by cadence type", *CADENCES),
        notification=text("Filter by notification policy", *NOTIFICATIONS),
        created_after=text("Only schedules created after this time (ISO 8601 with offset)"),
        created_before=text("Only schedules created before this time (ISO 8601 with offset)"),
        next_run_before=text(
            "Only schedules that run next before this time (ISO 8601 with offset)"
        ),
        limit=number("Max results to return (default 20, max 50)"),
        offset=number("Pagination offset (default 0). Use to fetch subsequent pages."),
    )
    assert parameters(world, "schedule_edit") == schema(
        "schedule_id",
        schedule_id=text("ID of the schedule to edit"),
        name=text("New name (set to empty string to clear)"),
        goal=text("New goal/prompt. Write as a complete, self-contained instruction."),
        cadence_type=text("New cadence type (must also provide cadence_value)", *CADENCES),
        cadence_value=text("New cadence value (required if cadence_type is provided)"),
        timezone=text("New timezone for cron schedules"),
        notification=text("New notification policy", *NOTIFICATIONS),
        status=text("Set to 'paused' to pause, 'active' to resume", "active", "paused"),
    )
    assert parameters(world, "schedule_delete") == schema(
        "schedule_id", schedule_id=text("ID of the schedule to delete permanently")
    )


@pytest.mark.parametrize(
    ("profile", "zone", "minimum"),
    [("goclaw", "Default: UTC.", 60), ("oxydra", "Asia/Kolkata", 60), ("caco", "UTC", 3600)],
)
def test_descriptions_show_settings(tmp_path: Path, profile: str, zone: str, minimum: int) -> None:
    properties = parameters(Schedules(tmp_path, PROFILES[profile]), "schedule_create")["properties"]
    assert zone in properties["timezone"]["description"]
    assert f"minimum {minimum})" in properties["cadence_type"]["description"]


GUIDANCE = """\
You can create and manage scheduled tasks that run automatically.
- Use schedule_create to set up one-off or recurring tasks.
- Use schedule_search to find existing schedules (supports filtering and pagination).
- Use schedule_edit to modify, pause, or resume schedules.
- Use schedule_delete to permanently remove a schedule.

Each scheduled task executes as an independent agent turn with its own context.
Write goals as complete, self-contained instructions — scheduled tasks run
without conversational history from this session."""


async def test_only_runs_that_may_use_jobs_have_them(world: Schedules) -> None:
    """SPEC AGENT-6: scheduled runs have none unless allowed. CRON-4: nor has anybody if off."""
    place = world.place()
    specs = place.tools().specs
    assert {spec.name for spec in specs} == SAFE - SERVICE_TOOLS | SCHEDULING
    # SPEC CRON-7.
    harmless = [spec.name for spec in specs if not spec.side_effects and spec.name in SCHEDULING]
    assert harmless == ["schedule_search"]
    off = Schedules(world.workspace, enabled=False).place()
    for service in (replace(place, jobs=None), replace(place, asker=None), off):
        tools = service.tools()
        assert {spec.name for spec in tools.specs} == SAFE - SERVICE_TOOLS
        assert tools.guidance == ()
        with pytest.raises(ToolFailed, match="there is no tool 'schedule_search'"):
            await service.call("schedule_search")


def test_who_has_them_is_told_once_how_to_use_them(world: Schedules) -> None:
    assert world.tools().guidance == (GUIDANCE,)
    (told,) = world.tools(Permissions(deny=frozenset({"schedule_delete"}))).guidance
    assert "schedule_delete" not in told
    assert "schedule_edit" in told
    assert world.tools(Permissions(deny=SCHEDULING)).guidance == ()
    # What a run is offered is made once for all runs like it.
    place = world.place()
    here = place.here()
    registry = Registry({here.agent: Permissions()})
    assert registry.toolbox(here).specs is registry.toolbox(place.here()).specs
    apart = registry.toolbox(replace(here, jobs=None))
    assert not SCHEDULING & {spec.name for spec in apart.specs}
    assert {spec.name for spec in registry.toolbox(here).specs} >= SCHEDULING


# ---------------------------------------------------------------------------- making


async def test_a_cron_schedule_is_echoed_with_its_next_times(world: Schedules) -> None:
    goal = "Check the weather in Pune and say whether I need an umbrella."
    named = {"name": "Weather check", "goal": goal, "notification": "conditional"}
    made = await world.create(cadence_type="cron", cadence_value="0 8 * * *", **named)
    assert made == named | {
        "schedule_id": made["schedule_id"],
        "slug": "weather-check",
        "cadence": "cron: 0 8 * * * (Asia/Kolkata)",
        "status": "active",
        "next_run_at": "2026-01-03T02:30:00Z",
        "next_run_local": "2026-01-03 08:00:00 IST",
        "last_run_at": None,
        "last_run_status": None,
        "next_runs_local": [f"2026-01-0{day} 08:00:00 IST" for day in (3, 4, 5)],
    }
    job = await world.service.get(made["schedule_id"], asker())
    assert (job.spec.payload, job.maker, job.owner) == (Prompt(goal), Maker.MODEL, ANN)
    assert job.spec.target == asker().chat
    # SPEC CRON-8, CRON-9, CRON-15: kept when it is over, switched off when it fails.
    policy = job.policy(world.service.rules.profile.policy)
    assert (policy.delete_after_run, policy.auto_disable_after) == (False, 5)
    assert policy.min_interval == 60


async def test_a_zone_can_be_named_and_is_ignored_but_for_cron(world: Schedules) -> None:
    cron = {"cadence_type": "cron", "cadence_value": "0 9 * * 1-5"}
    made = await world.create(**cron, timezone=" US/Eastern ")
    assert made["cadence"] == "cron: 0 9 * * 1-5 (US/Eastern)"
    assert made["next_run_local"] == "2026-01-02 09:00:00 EST"
    ignored = await world.create(timezone="Nowhere/At_All")
    assert ignored["next_run_local"] == "2026-01-02 09:34:05 IST"
    # SPEC CRON-1: else it is the one that the user has chosen.
    await world.service.choose_zone("Europe/Berlin", asker())
    assert (await world.create(**cron))["next_run_local"] == "2026-01-02 09:00:00 CET"


@pytest.mark.parametrize(("given", "at"), [
    ("2026-03-01T09:00:00Z", "2026-03-01T09:00:00Z"),
    ("2026-03-01t09:00z", "2026-03-01T09:00:00Z"),
    (" 2026-03-01 14:30:00+05:30\n", "2026-03-01T09:00:00Z"),
    ("2026-03-01T09:00:00.250-00:00", "2026-03-01T09:00:00Z"),
])  # fmt: skip
async def test_a_one_off_time_is_told_in_local_time(world: Schedules, given: str, at: str) -> None:
    made = await world.create(cadence_type="once", cadence_value=given)
    assert made["cadence"] == f"once: {at}"
    assert made["next_run_at"] == at
    assert made["next_run_local"] == "2026-03-01 14:30:00 IST"
    assert made["next_runs_local"] == ["2026-03-01 14:30:00 IST"]


async def test_an_interval_is_in_seconds_and_a_goal_is_kept_whole(world: Schedules) -> None:
    made = await world.create(cadence_type="interval", cadence_value=" 0090 ")
    assert made["cadence"] == "interval: 90s"
    assert made["next_run_at"] == "2026-01-02T03:05:35Z"
    assert made["name"] is None
    goal = "sheep" * 100
    made = await world.create(goal=goal)
    assert len(made["goal"]) == 120
    assert made["goal"].endswith("…")
    assert goal.startswith(made["goal"][:-1])
    assert (await world.service.get(made["schedule_id"], asker())).spec.payload == Prompt(goal)
    exact = await world.create(goal="x" * 120)
    assert exact["goal"] == "x" * 120


# ---------------------------------------------------------------------------- not made


async def test_a_one_off_time_that_cannot_be_is_answered_with_now(world: Schedules) -> None:
    said = await not_created(world, "once", "2026-03-01T09:00:00")
    assert said.startswith("invalid schedule cadence: '2026-03-01T09:00:00' has no offset")
    assert said.endswith(NOW)
    said = await not_created(world, "once", "2026-01-02T01:04:05Z")
    assert said.startswith("invalid schedule cadence: one-off time must be in the future")
    assert "2026-01-02" in said.partition("future")[2]
    assert "2 h" in said


@pytest.mark.parametrize("given", [
    *("", "tomorrow 9:00", "18:00", "2026-03-01", "2026-02-30T09:00:00Z"),
    *("2026-03-01T25:00:00Z", "2026-03-01T09:00:00+99:00", "2026-03-01X09:00:00Z"),
    *("2026-03-01T09:00:00[Europe/Berlin]", "1767323045"),
    *("\u0662\u0660\u0662\u0666-03-01T09:00:00Z", "0001-01-01T00:00:00+14:00"),
    *("9999-12-31T23:59:59-14:00", "2026-03-01T" + "9" * 5000),
])  # fmt: skip
async def test_what_is_no_time_is_answered_with_now(world: Schedules, given: str) -> None:
    said = await not_created(world, "once", given)
    assert said.startswith("invalid schedule cadence: ")
    assert said.endswith(NOW)


WHOLE = "must be a whole number of seconds"


@pytest.mark.parametrize(("kind", "given", "said"), [
    ("interval", "0", "cadence: interval 0s is below minimum 60s"),
    ("interval", "59", "cadence: interval 59s is below minimum 60s"),
    ("interval", "-5", f"cadence: interval '-5' {WHOLE}, such as 3600"),
    ("interval", "1.5", WHOLE),
    ("interval", "10m", WHOLE),
    ("interval", "", WHOLE),
    ("interval", "\u0663\u0666\u0660\u0660", WHOLE),
    ("interval", "1" + "0" * 30, "is above maximum 316224000s"),
    ("interval", "9" * 9000, "is above maximum 316224000s"),
    ("interval", "316224001", "interval 316224001s is above maximum 316224000s"),
    ("cron", "61 * * * *", "invalid cron expression: 61 * * * *: "),
    ("cron", "every day", "invalid cron expression: every day: "),
    ("cron", "", "invalid cron expression: : "),
    ("cron", "* " * 3000, "invalid cron expression: * * * "),
    ("cron", "0 0 30 2 *", "cadence: schedule would never fire"),
    ("cron", "*/30 * * * * *", "cadence: cron fires every 30s, minimum is 60s"),
])  # fmt: skip
async def test_a_wrong_cadence_is_told(world: Schedules, kind: str, given: str, said: str) -> None:
    told = await not_created(world, kind, given)
    assert told.startswith(("invalid schedule cadence: ", "invalid cron expression: "))
    assert said in told


async def test_the_settings_limit_how_often_and_how_many(tmp_path: Path) -> None:
    world, prefix = Schedules(tmp_path, PROFILES["caco"]), "invalid schedule cadence: "
    said = await not_created(world, "interval", "3599")
    assert said == f"{prefix}interval 3599s is below minimum 3600s"
    said = await not_created(world, "cron", "*/30 * * * *")
    assert said == f"{prefix}cron fires every 1800s, minimum is 3600s"
    world = Schedules(tmp_path, most=2)
    for _ in range(2):
        await world.create()
    said = "user console:direct:me has reached the maximum number of schedules (2)"
    assert await not_created(world, "interval", "60") == said
    assert (await world.create(owner=BOB))["status"] == "active"


async def test_an_unknown_zone_is_refused_by_name(world: Schedules) -> None:
    said = await not_created(world, "cron", "0 9 * * *", timezone="Europe/Berlln")
    assert said.startswith("invalid schedule cadence: invalid timezone: Europe/Berlln")
    assert "Europe/Berlin" in said
    await not_created(world, "cron", "0 9 * * *", timezone="../../etc/localtime" * 100)


@pytest.mark.parametrize(("more", "said"), [
    ({"goal": " \n"}, "goal: must not be empty"),
    ({"goal": "x" * 100_001}, "goal: may have at most 100,000 characters"),
    ({"goal": "x" * 1_000_000}, "goal: may have at most 100,000 characters"),
    ({"name": "x" * 201}, "name: may have at most 200 characters"),
    ({"max_turns": 5}, "max_turns: unknown argument; known here: name, goal, cadence_type, "),
    ({"max_cost": 0.5}, "max_cost: unknown argument"),
    ({"cadence_type": "daily"}, "cadence_type: must be 'cron', 'once' or 'interval'"),
    ({"cadence_value": 3600}, "cadence_value: must be a valid string; given 3600"),
    ({"notification": "loud"}, "notification: must be 'always', 'conditional' or 'never'"),
])  # fmt: skip
async def test_arguments_are_checked(world: Schedules, more: dict[str, Any], said: str) -> None:
    usual = {"goal": "x", "cadence_type": "interval", "cadence_value": "60"}
    assert said in await refused(world, "create", **usual | more)


async def test_a_lost_database_is_told(world: Schedules, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*given: object, **more: object) -> None:
        raise StoreUnavailable("connection to 10.0.0.7 refused")

    monkeypatch.setattr(world.store, "add_job", away)
    said = "schedule store error: the database cannot be reached; try again later"
    assert await not_created(world, "interval", "60") == said


# ---------------------------------------------------------------------------- finding


async def test_a_search_finds_all_of_an_owner_soon_ones_first(world: Schedules) -> None:
    late = await world.create(name="late", cadence_value="7200")
    soon = await world.create(name="soon", cadence_value="60")
    await world.create(name="not mine", owner=BOB)
    found = await world.call("search")
    for made in (late, soon):
        del made["next_runs_local"]
    assert found == {
        "schedules": [soon, late],
        "total": 2,
        "offset": 0,
        "limit": 20,
        "remaining": 0,
        "hint": None,
        "now": "2026-01-02T08:34:05+05:30",
        "timezone": "Asia/Kolkata",
    }


ALL_THREE = {"Weather in Pune", "Bad weather", "Call Mum"}


@pytest.mark.parametrize(("filters", "names"), [
    ({"name": "WEATHER"}, {"Weather in Pune", "Bad weather"}),
    ({"name": "%"}, set()),
    ({"status": "paused"}, {"Bad weather"}),
    ({"status": "completed"}, set()),
    ({"cadence_type": "cron"}, {"Weather in Pune"}),
    ({"cadence_type": "once"}, {"Call Mum"}),
    ({"cadence_type": "interval"}, {"Bad weather"}),
    ({"notification": "never"}, {"Call Mum"}),
    ({"name": "weather", "status": "active"}, {"Weather in Pune"}),
    ({"name": "weather", "notification": "never"}, set()),
    ({"name": None, "limit": None}, ALL_THREE),
    ({"created_after": "2026-01-02T08:00:00+05:30"}, ALL_THREE),
    ({"created_after": "2026-01-02T08:34:05+05:30"}, set()),
    ({"created_before": "2026-01-02T03:04:06Z"}, ALL_THREE),
    ({"created_before": "2026-01-02T03:04:05Z"}, set()),
    ({"created_after": "2025-12-31T00:00:00Z", "created_before": "2026-01-01T00:00:00Z"}, set()),
    ({"next_run_before": "2026-01-04T00:00:00Z"}, {"Weather in Pune"}),
    ({"next_run_before": "2026-03-01T09:00:01Z"}, {"Weather in Pune", "Call Mum"}),
    ({"next_run_before": "2026-01-01T00:00:00Z", "created_after": None}, set()),
])  # fmt: skip
async def test_filters(world: Schedules, filters: dict[str, Any], names: set[str]) -> None:
    await world.create(name="Weather in Pune", cadence_type="cron", cadence_value="0 8 * * *")
    bad = await world.create(name="Bad weather")
    await world.call("edit", schedule_id=bad["schedule_id"], status="paused")
    once = {"cadence_type": "once", "cadence_value": "2026-03-01T09:00:00Z"}
    await world.create(name="Call Mum", notification="never", **once)
    found = await world.call("search", **filters)
    assert {each["name"] for each in found["schedules"]} == names
    assert found["total"] == len(names)


async def test_pages_tell_what_is_left_and_how_to_get_it(world: Schedules) -> None:
    for number in range(37):
        await world.create(name=f"job {number}", cadence_value=str(3600 + number))
    first = await world.call("search")
    assert [first[key] for key in ("total", "offset", "limit", "remaining")] == [37, 0, 20, 17]
    assert first["hint"] == "17 more results available. Use offset=20 to see the next page."
    second = await world.call("search", offset=20)
    assert (second["remaining"], second["hint"]) == (0, None)
    assert (await world.call("search", limit=10**30))["limit"] == 50
    names = [each["name"] for page in (first, second) for each in page["schedules"]]
    assert names == [f"job {number}" for number in range(37)]


@pytest.mark.parametrize(
    ("limit", "offset", "shown", "remaining", "next_offset"),
    [(1, 0, 1, 2, 1), (2, 0, 2, 1, 2), (3, 0, 3, 0, None), (2, 2, 1, 0, None), (5, 9, 0, 0, None)],
)
async def test_the_hint_is_right_wherever_a_page_begins(
    world: Schedules, limit: int, offset: int, shown: int, remaining: int, next_offset: int | None
) -> None:
    for _ in range(3):
        await world.create()
    found = await world.call("search", limit=limit, offset=offset)
    assert len(found["schedules"]) == shown
    assert found["remaining"] == remaining
    told = found["hint"]
    assert told is None if next_offset is None else f"offset={next_offset} " in told


@pytest.mark.parametrize(("arguments", "said"), [
    ({"limit": 0}, "limit: must be at least 1"),
    ({"limit": -1}, "limit: must be at least 1"),
    ({"offset": -1}, "offset: must be at least 0"),
    ({"offset": 10**30}, "offset: must be at most 1000000000"),
    ({"limit": "20"}, "limit: must be a valid integer"),
    ({"status": "failed"}, "status: must be 'active', 'paused', 'completed' or 'disabled'"),
    ({"created_from": "2026-01-01"}, "created_from: unknown argument"),
    ({"created_after": "2026-01-01"}, "created_after: '2026-01-01' is no time in ISO 8601"),
    ({"created_before": "2026-01-01T09:00:00"}, "created_before: '2026-01-01T09:00:00' has no"),
    ({"next_run_before": "soon"}, "next_run_before: 'soon' is no time in ISO 8601"),
    ({"created_after": "0001-01-01T00:00:00+14:00"}, "is no time in ISO 8601"),
])  # fmt: skip
async def test_wrong_pages(world: Schedules, arguments: dict[str, Any], said: str) -> None:
    assert said in await refused(world, "search", **arguments)


@pytest.mark.parametrize(("status", "shown"), [
    (OccurrenceStatus.OK, "success"),
    (OccurrenceStatus.FAILED, "failed"),
    (OccurrenceStatus.TIMED_OUT, "failed"),
    (OccurrenceStatus.LOST, "failed"),
    (OccurrenceStatus.CANCELLED, "cancelled"),
])  # fmt: skip
async def test_the_last_run(world: Schedules, status: OccurrenceStatus, shown: str) -> None:
    made = await world.create()
    assert (made["last_run_status"], made["last_run_at"]) == (None, None)
    await asyncio.sleep(3600)
    now = world.service.clock.now()
    await world.store.join(replace(a_node(A), lease_until=now + timedelta(hours=1)))
    claimed = await claim_one(world.store, now=now)
    end = ended(claimed, status, update=JobUpdate(None, JobState.FAILED, ran=True))
    await world.store.end_occurrence(end, node=A)
    (found,) = (await world.call("search"))["schedules"]
    assert found["last_run_status"] == shown
    assert found["last_run_at"] == "2026-01-02T04:04:05Z"
    assert (found["status"], found["next_run_at"]) == ("failed", None)


# ---------------------------------------------------------------------------- changing


async def test_only_what_is_given_changes(world: Schedules) -> None:
    cron = {"cadence_type": "cron", "cadence_value": "0 8 * * *"}
    expected = await world.create(name="Weather check", goal="Do it.", **cron)
    changes = (("name", "New"), ("goal", "Do more."), ("notification", "never"), ("name", None))
    for key, value in changes:
        expected |= {key: value}
        given: dict[str, Any] = {key: value or ""}
        assert await world.call("edit", schedule_id=expected["schedule_id"], **given) == expected
    # A slug or the beginning of an id names a schedule, too.
    for asked in (" weather-check ", expected["schedule_id"][:30]):
        edited = await world.call("edit", schedule_id=asked, name=asked)
        assert edited["schedule_id"] == expected["schedule_id"]


async def test_a_new_cadence_brings_new_times(world: Schedules) -> None:
    here: dict[str, Any] = {"schedule_id": (await world.create())["schedule_id"]}
    noon: dict[str, Any] = {"cadence_type": "cron", "cadence_value": "0 12 * * *"}
    edited = await world.call("edit", **here, **noon)
    assert edited["cadence"] == "cron: 0 12 * * * (Asia/Kolkata)"
    assert edited["next_run_local"] == "2026-01-02 12:00:00 IST"
    moved = await world.call("edit", **here, timezone="Europe/Berlin")
    assert moved["cadence"] == "cron: 0 12 * * * (Europe/Berlin)"
    assert moved["next_run_at"] == "2026-01-02T11:00:00Z"
    nine = noon | {"cadence_value": "0 9 * * *", "timezone": "US/Eastern"}
    both = await world.call("edit", **here, **nine)
    assert both["cadence"] == "cron: 0 9 * * * (US/Eastern)"


async def test_a_pause_clears_the_next_run_and_resuming_counts_from_now(world: Schedules) -> None:
    here: dict[str, Any] = {"schedule_id": (await world.create())["schedule_id"]}
    paused = await world.call("edit", **here, status="paused")
    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    assert (paused["next_run_local"], paused["next_runs_local"]) == (None, [])
    await asyncio.sleep(600)
    resumed = await world.call("edit", **here, status="active")
    assert (resumed["status"], resumed["next_run_at"]) == ("active", "2026-01-02T04:14:05Z")


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.DISABLED, JobState.FAILED])
async def test_what_is_over_needs_a_new_cadence(world: Schedules, state: JobState) -> None:
    made = await world.create(cadence_type="once", cadence_value="2026-01-02T04:00:00Z")
    job = await world.service.get(made["schedule_id"], asker())
    await _put(world, replace(job, state=state, next_run_at=None))
    here: dict[str, Any] = {"schedule_id": made["schedule_id"], "status": "active"}
    assert await refused(world, "edit", **here) == (
        f"invalid schedule cadence: to resume a {state.value} schedule, also give a new "
        "cadence_type and cadence_value"
    )
    past: dict[str, Any] = {"cadence_type": "once", "cadence_value": "2026-01-01T00:00:00Z"}
    assert "must be in the future" in await refused(world, "edit", **here, **past)
    ahead: dict[str, Any] = {"cadence_type": "once", "cadence_value": "2026-01-02T05:00:00Z"}
    again = await world.call("edit", **here, **ahead)
    assert (again["status"], again["next_run_at"]) == ("active", "2026-01-02T05:00:00Z")


@pytest.mark.parametrize(("change", "said"), [
    ({}, "nothing to change: give at least one field besides schedule_id"),
    ({"name": None, "goal": None}, "nothing to change"),
    ({"cadence_type": "cron"}, "cadence_type and cadence_value must be given together"),
    ({"cadence_value": "60"}, "cadence_type and cadence_value must be given together"),
    ({"timezone": "Europe/Berlin"}, "only a cron schedule has a timezone"),
    ({"status": "completed"}, "status: must be 'active' or 'paused'"),
    ({"goal": ""}, "goal: must not be empty"),
    ({"goal": "x" * 100_001}, "goal: may have at most 100,000 characters"),
    ({"name": "x" * 201}, "name: may have at most 200 characters"),
    ({"cadence_type": "interval", "cadence_value": "59"}, "interval 59s is below minimum 60s"),
    ({**DAILY, "timezone": "Mars"}, "invalid schedule cadence: invalid timezone: Mars"),
])  # fmt: skip
async def test_wrong_changes(world: Schedules, change: dict[str, Any], said: str) -> None:
    made = await world.create()
    assert said in await refused(world, "edit", schedule_id=made["schedule_id"], **change)


async def test_a_model_makes_no_job_more_frequent_than_its_own(world: Schedules) -> None:
    draft = JobDraft(Every(timedelta(seconds=1)), FixedMessage("Tick."))
    job = await world.service.create(draft, asker(maker=Maker.PERSON))
    for kind, value, said in (
        ("interval", "59", "interval 59s is below minimum 60s"),
        ("cron", "*/30 * * * * *", "cron fires every 30s, minimum is 60s"),
    ):
        change = {"cadence_type": kind, "cadence_value": value}
        assert said in await refused(world, "edit", schedule_id=job.id, **change)
    renamed = await world.call("edit", schedule_id=job.id, name="Clock")
    assert renamed["cadence"] == "interval: 1s"


async def test_a_new_goal_makes_the_job_that_of_a_model(world: Schedules) -> None:
    """SPEC CRON-8, CRON-15: what a model says to run is held to its limits, whoever began it."""
    every = Every(timedelta(hours=1))
    for kind in (Prompt, FixedMessage):
        job = await world.service.create(JobDraft(every, kind("old")), asker(maker=Maker.PERSON))
        await world.call("edit", schedule_id=job.id, name="Named")
        assert (await world.service.get(job.id, asker())).maker is Maker.PERSON
        await world.call("edit", schedule_id=job.id, goal="new")
        after = await world.service.get(job.id, asker())
        assert (after.spec.payload, after.maker) == (kind("new"), Maker.MODEL)


async def test_a_model_neither_changes_nor_sees_a_program(world: Schedules) -> None:
    program = Program(("/usr/bin/backup", "--password=hunter2"))
    by = Requester(ANN, Maker.OPERATOR)
    job = await world.service.create(JobDraft(Every(timedelta(hours=1)), program), by)
    said = await refused(world, "edit", schedule_id=job.id, goal="rm -rf /")
    assert "which only operators can change" in said
    (found,) = (await world.call("search"))["schedules"]
    assert found["goal"] == "[runs the program /usr/bin/backup]"


async def test_two_changes_at_once(world: Schedules, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await world.create()
    get, came_between = world.service.get, False

    async def changed_meanwhile(asked: str, by: Requester) -> Any:
        nonlocal came_between
        job = await get(asked, by)
        if not came_between:
            came_between = True
            await _put(world, replace(job, failures=1))
        return job

    monkeypatch.setattr(world.service, "get", changed_meanwhile)
    with pytest.raises(ToolFailed, match="read it again"):
        await world.call("edit", schedule_id=made["schedule_id"], name="Mine")
    (found,) = (await world.call("search"))["schedules"]
    assert found["name"] is None


# ---------------------------------------------------------------------------- deleting, owners


async def test_what_is_deleted_is_told_and_gone(world: Schedules) -> None:
    made = await world.create(name="Weather")
    deleted = await world.call("delete", schedule_id=made["schedule_id"])
    assert (deleted["schedule_id"], deleted["name"]) == (made["schedule_id"], "Weather")
    assert (deleted["status"], deleted["next_run_at"]) == ("deleted", None)
    assert (await world.call("search"))["total"] == 0
    said = await refused(world, "delete", schedule_id=made["schedule_id"])
    assert said == f"schedule not found: {made['schedule_id']}"
    # So is an id that nobody has, and one that several have.
    ids = [(await world.create())["schedule_id"] for _ in range(2)]
    for asked in ("", "no-such-one", "../jobs", "a b", "x" * 5000, "\x00", "%", "0199"):
        said = await refused(world, "delete", schedule_id=asked)
        assert said.startswith("schedule not found: ")
    both = ids[0][:8]
    assert ids[1].startswith(both)
    said = await refused(world, "delete", schedule_id=both)
    assert said.startswith(f"several schedules fit {both}: look (")
    assert said.endswith("; give the schedule_id")


@pytest.mark.parametrize("tool", ["edit", "delete"])
async def test_jobs_of_others_are_neither_changed_nor_shown(world: Schedules, tool: str) -> None:
    """SPEC SEC-3: the refusal names only the id asked for and the caller."""
    theirs = await world.create(owner=BOB, name="secret plan")
    change = {"status": "paused"} if tool == "edit" else {}
    said = await refused(world, tool, schedule_id=theirs["schedule_id"], **change)
    assert said == (f"unauthorized: schedule {theirs['schedule_id']} does not belong to user {ANN}")
    by_slug = await refused(world, tool, schedule_id="secret-plan", **change)
    assert by_slug == "schedule not found: secret-plan"


async def _put(world: Schedules, job: Any) -> None:
    """Store a job as it is, as if a run or somebody else had changed it."""
    assert await world.store.change_job(job)
