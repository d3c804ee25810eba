"""``/api/schedule`` as *caco* has it (SPEC CRON-19, docs/guide/profiles.md)."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from goclaw_py.jobs.models import FixedMessage, Job, JobState, Program, Prompt
from goclaw_py.jobs.policy import PROFILES
from goclaw_py.jobs.schedule import At, Cron, Every
from goclaw_py.model.ids import Owner
from goclaw_py.ports.jobs import JobDraft, Requester, RunNow, StartedNow
from goclaw_py.web.api.routes import make_api
from goclaw_py.web.caco.texts import least_interval
from tests.unit.web.fake_jobs import FRIDAY, STARTED, Jobs
from tests.unit.web.fakes import FakeControl

OPERATOR = Requester(None)
ANN = Requester(Owner("telegram:direct:5"))
DAILY: dict[str, Any] = {"type": "cron", "expression": "0 9 * * *"}
BODY: dict[str, Any] = {"prompt": "Summarise the commits", "schedule": DAILY}


CONTROL = FakeControl()
APP = make_api(CONTROL)
"""One for all tests: to make it costs more than to ask it."""


class Api:
    """The routes over jobs in memory; the last one made is the one that is asked."""

    def __init__(self, profile: str = "caco", *, most: int = 50) -> None:
        self.jobs = CONTROL.made = Jobs(PROFILES[profile], most=most)
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(APP), base_url="http://x")

    async def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and body of the answer."""
        # Half of a surrogate pair can only be written as an escape, which httpx does not do.
        answer = await self._client.request(
            method,
            f"/api/schedule{path}",
            content=None if body is None else json.dumps(body),
            headers={"content-type": "application/json"},
        )
        assert answer.headers["content-type"] == "application/json"
        return answer.status_code, answer.json()

    async def error(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """The same, of an answer that refuses."""
        status, answer = await self(method, path, body)
        assert set(answer) <= {"error", "code", "detail"}
        return status, answer["error"]


# ---------------------------------------------------------------------------- making


async def test_a_schedule_is_made_shown_and_deleted() -> None:
    api = Api()
    assert await api("GET", "") == (200, [])
    made = await api("PUT", "/daily-standup", {"slug": "daily-standup", "enabled": True, **BODY})
    expected = {"slug": "daily-standup", "nextRun": "2026-01-03T09:00:00.000Z", "created": True}
    assert made == (200, expected)
    status, shown = await api("GET", "/daily-standup")
    job = await api.jobs.service.get("daily-standup", OPERATOR)
    assert status == 200
    assert shown == {
        "slug": "daily-standup",
        "prompt": "Summarise the commits",
        "payload": "prompt",
        "enabled": True,
        "schedule": {
            "type": "cron",
            "expression": "0 9 * * *",
            "intervalMinutes": None,
            "everyMs": None,
            "at": None,
            "timezone": "UTC",
        },
        "sessionConfig": {"model": None, "persistSession": True},
        "state": "active",
        "lastRun": None,
        "lastResult": None,
        "lastError": None,
        "sessionId": f"agent:main:cron:{job.id}",
        "nextRun": "2026-01-03T09:00:00.000Z",
    }
    assert await api("GET", "") == (200, [shown])
    assert await api("DELETE", "/daily-standup") == (
        200,
        {"slug": "daily-standup", "deleted": True},
    )
    assert await api("GET", "") == (200, [])
    assert await api.error("DELETE", "/daily-standup") == (
        404,
        "Schedule not found: daily-standup",
    )


@pytest.mark.parametrize(
    ("schedule", "meant", "shown"),
    [
        ({"type": "interval", "intervalMinutes": 90}, Every(timedelta(minutes=90)), None),
        ({"type": "interval", "intervalMinutes": 60.5}, Every(timedelta(seconds=3630)), "everyMs"),
        ({"type": "interval", "everyMs": 3_600_001}, Every(timedelta(seconds=3600.001)), "everyMs"),
        ({"type": "cron", "expression": "@daily"}, Cron("@daily"), "expression"),
        (
            {"type": "at", "at": "2026-01-02T14:00:00+01:00"},
            At(FRIDAY + timedelta(hours=1)),
            "at",
        ),
    ],
)
async def test_every_kind_of_schedule_is_understood(
    schedule: dict[str, Any], meant: object, shown: str | None
) -> None:
    api = Api()
    await api("PUT", "/x", BODY | {"schedule": schedule})
    assert (await api.jobs.service.get("x", OPERATOR)).spec.schedule == meant
    _, view = await api("GET", "/x")
    given = {key for key, value in view["schedule"].items() if value is not None}
    assert given == {"type", "timezone", shown or "intervalMinutes"}
    if shown == "at":
        assert view["schedule"]["at"] == "2026-01-02T13:00:00.000Z"


async def test_what_get_has_given_can_be_put_back() -> None:
    api = Api()
    config = {"model": "openai:gpt-4o", "persistSession": False}
    zoned = DAILY | {"timezone": "Europe/Berlin"}
    await api("PUT", "/x", BODY | {"schedule": zoned, "sessionConfig": config, "enabled": False})
    _, view = await api("GET", "/x")
    assert (view["state"], view["nextRun"], view["sessionId"]) == ("paused", None, None)
    assert (view["sessionConfig"], view["schedule"]["timezone"]) == (config, "Europe/Berlin")
    status, answer = await api("PUT", "/x", view)
    assert (status, answer) == (200, {"slug": "x", "nextRun": None, "created": False})
    assert await api("GET", "/x") == (200, view)


async def test_a_put_changes_a_schedule_and_keeps_what_it_does_not_name() -> None:
    api = Api()
    config = {"model": "openai:gpt-4o", "persistSession": False}
    await api("PUT", "/x", BODY | {"enabled": False, "sessionConfig": config})
    before = await api.jobs.service.get("x", OPERATOR)
    _, answer = await api("PUT", "/x", {"prompt": "other", "schedule": DAILY})
    after = await api.jobs.service.get("x", OPERATOR)
    assert (answer["created"], after.id, after.state) == (False, before.id, JobState.PAUSED)
    assert after.spec.payload == Prompt("other", "openai:gpt-4o")
    assert after.spec.policy == {"session": "fresh"}


async def test_of_several_puts_at_once_one_makes_the_schedule_and_the_others_change_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api()
    create, waiting = api.jobs.service.create, asyncio.Barrier(5)

    async def together(draft: JobDraft, by: Requester) -> Job:
        # All of them have looked in vain by now.
        await waiting.wait()
        return await create(draft, by)

    monkeypatch.setattr(api.jobs.service, "create", together)
    puts = [api("PUT", "/x", BODY | {"prompt": f"number {n}"}) for n in range(5)]
    answers = await asyncio.gather(*puts)
    assert [status for status, _ in answers] == [200] * 5
    assert sorted(answer["created"] for _, answer in answers) == [False] * 4 + [True]
    assert len((await api("GET", ""))[1]) == 1


async def test_each_part_can_be_patched_alone() -> None:
    api = Api()
    await api("PUT", "/x", BODY)
    _, paused = await api("PATCH", "/x", {"enabled": False})
    assert (paused["enabled"], paused["nextRun"]) == (False, None)
    _, again = await api("PATCH", "/x", {"enabled": True})
    assert (again["enabled"], again["nextRun"]) == (True, "2026-01-03T09:00:00.000Z")
    _, moved = await api("PATCH", "/x", {"schedule": {"type": "interval", "intervalMinutes": 120}})
    assert moved["nextRun"] == "2026-01-02T14:00:00.000Z"
    _, worded = await api("PATCH", "/x", {"prompt": "else"})
    assert (worded["prompt"], worded["nextRun"]) == ("else", moved["nextRun"])
    _, modelled = await api("PATCH", "/x", {"sessionConfig": {"model": "m:n"}})
    assert modelled["sessionConfig"] == {"model": "m:n", "persistSession": True}
    _, fresh = await api("PATCH", "/x", {"sessionConfig": {"persistSession": False}})
    assert fresh["sessionConfig"] == {"model": "m:n", "persistSession": False}
    _, plain = await api("PATCH", "/x", {"sessionConfig": {"model": None}})
    assert plain["sessionConfig"] == {"model": None, "persistSession": False}
    assert await api("PATCH", "/x", {}) == (200, plain)


async def test_enabling_what_is_enabled_changes_nothing() -> None:
    api = Api()
    await api("PUT", "/x", BODY)
    before = await api.jobs.service.get("x", OPERATOR)
    await api("PATCH", "/x", {"enabled": True})
    assert await api.jobs.service.get("x", OPERATOR) == before


async def test_a_missing_prompt_is_that_of_the_profile() -> None:
    api = Api("herdctl")
    assert (await api("PUT", "/x", {"schedule": DAILY}))[0] == 200
    assert (await api("GET", "/x"))[1]["prompt"] == "Execute scheduled task"
    assert await api.error("PUT", "/y", {"prompt": "", "schedule": DAILY}) == (
        400,
        "prompt is required",
    )


async def test_a_schedule_that_is_too_frequent_is_made_longer_where_the_profile_says_so() -> None:
    api = Api("halo")
    body = BODY | {"schedule": {"type": "interval", "everyMs": 1000}}
    assert (await api("PUT", "/x", body))[0] == 200
    assert (await api("GET", "/x"))[1]["schedule"]["everyMs"] == 10_000


# ---------------------------------------------------------------------------- refusing


@pytest.mark.parametrize("prompt", [None, "", "  \n"])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_prompt_is_required(prompt: object, method: str) -> None:
    api = Api()
    await api("PUT", "/x", BODY)
    if prompt is None and method == "PATCH":
        return
    status, text = await api.error(method, "/x", BODY | {"prompt": prompt})
    assert (status, text) == (400, "prompt is required")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"prompt": 5}, "prompt: must be a text"),
        ({"prompt": ["a"]}, "prompt: must be a text"),
        ({"prompt": True}, "prompt: must be a text"),
        (
            {"prompt": "a\ud800b"},
            "prompt: must be a text that UTF-8 can hold: without half of a surrogate pair",
        ),
        (
            {"schedule": {"type": "interval", "intervalMinutes": "5"}},
            "schedule.intervalMinutes: must be a number",
        ),
        (
            {"schedule": {"type": "interval", "everyMs": "5"}},
            "schedule.everyMs: must be a whole number",
        ),
        ({"schedule": DAILY | {"timezone": 5}}, "schedule.timezone: must be a text"),
        ({"schedule": DAILY | {"expression": "\ud800"}}, "Invalid cron expression"),
        ({"enabled": "yes"}, "enabled: must be true or false"),
    ],
)
async def test_a_value_of_another_kind_is_told_what_it_must_be(
    change: dict[str, Any], text: str, method: str
) -> None:
    api = Api()
    await api("PUT", "/x", BODY)
    assert await api.error(method, "/x", BODY | change) == (400, text)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"enabeld": False}, "enabeld: unknown key"),
        ({"schedule": DAILY | {"timzone": "UTC"}}, "schedule.timzone: unknown key"),
        ({"sessionConfig": {"persistsession": 1}}, "sessionConfig.persistsession: unknown key"),
        (
            {"schedule": DAILY | {"intervalMinutes": 60}},
            "schedule.intervalMinutes: is not for type cron",
        ),
    ],
)
async def test_a_key_that_is_not_known_is_refused(
    change: dict[str, Any], text: str, method: str
) -> None:
    api = Api()
    await api("PUT", "/x", BODY)
    before = await api("GET", "/x")
    assert await api.error(method, "/x", BODY | change) == (400, text)
    assert await api("GET", "/x") == before


async def test_a_body_without_prompt_has_none() -> None:
    assert await Api().error("PUT", "/x", {"schedule": DAILY}) == (400, "prompt is required")


@pytest.mark.parametrize(
    "schedule",
    [
        None,
        "0 9 * * *",
        5,
        [],
        {},
        {"type": "weekly"},
        {"type": None, "expression": "0 9 * * *"},
        {"expression": "0 9 * * *"},
        {"type": "cron"},
        {"type": "cron", "expression": ""},
        {"type": "cron", "expression": 9},
        {"type": "cron", "intervalMinutes": 60},
        {"type": "interval"},
        {"type": "interval", "intervalMinutes": None},
        {"type": "interval", "expression": "0 9 * * *"},
        {"type": "at"},
    ],
)
async def test_a_schedule_without_its_type_or_value_is_none(schedule: object) -> None:
    text = "schedule with type and expression/intervalMinutes is required"
    assert await Api().error("PUT", "/x", BODY | {"schedule": schedule}) == (400, text)


async def test_a_body_without_schedule_has_none() -> None:
    text = "schedule with type and expression/intervalMinutes is required"
    assert await Api().error("PUT", "/x", {"prompt": "a"}) == (400, text)


@pytest.mark.parametrize(
    "expression",
    [
        "every day",
        "61 * * * *",
        "* * * *",
        "0 0 30 2 *",
        "0 9 * * * *",
        "9" * 2000,
        "0 9 * * " + "1" * 249,
        "\u0000",
        "*",
    ],
)
async def test_an_expression_that_means_nothing_is_refused(expression: str) -> None:
    """``caco`` has five fields."""
    body = BODY | {"schedule": {"type": "cron", "expression": expression}}
    assert await Api().error("PUT", "/x", body) == (400, "Invalid cron expression")


@pytest.mark.parametrize(
    ("profile", "schedule", "text"),
    [
        ("caco", {"intervalMinutes": 59}, "Minimum interval is 60 minutes (1 hour)"),
        ("caco", {"intervalMinutes": 0}, "Minimum interval is 60 minutes (1 hour)"),
        ("caco", {"intervalMinutes": -5}, "Minimum interval is 60 minutes (1 hour)"),
        ("caco", {"everyMs": 3_599_999}, "Minimum interval is 60 minutes (1 hour)"),
        ("caco", {"everyMs": -1}, "Minimum interval is 60 minutes (1 hour)"),
        ("oxydra", {"everyMs": 59_000}, "Minimum interval is 1 minute"),
        ("goclaw", {"everyMs": 999}, "Minimum interval is 1 second"),
        ("goclaw", {"everyMs": 0}, "Minimum interval is 1 second"),
    ],
)
async def test_the_minimum_is_that_of_the_profile(
    profile: str, schedule: dict[str, Any], text: str
) -> None:
    body = BODY | {"schedule": {"type": "interval", **schedule}}
    assert await Api(profile).error("PUT", "/x", body) == (400, text)


@pytest.mark.parametrize(
    ("profile", "expression", "text"),
    [
        (
            "caco",
            "*/30 * * * *",
            "Cron expression runs every 30 minutes. Minimum interval is 60 minutes (1 hour)",
        ),
        (
            "caco",
            "0,59 * * * *",
            "Cron expression runs every 1 minute. Minimum interval is 60 minutes (1 hour)",
        ),
        (
            "halo",
            "*/5 * * * * *",
            "Cron expression runs every 5 seconds. Minimum interval is 10 seconds",
        ),
    ],
)
async def test_a_cron_expression_that_is_too_frequent_says_how_frequent(
    profile: str, expression: str, text: str
) -> None:
    body = BODY | {"schedule": {"type": "cron", "expression": expression}}
    assert await Api(profile).error("PUT", "/x", body) == (400, text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "1 second"),
        (0.5, "0.5 seconds"),
        (90, "90 seconds"),
        (60, "1 minute"),
        (3600, "60 minutes (1 hour)"),
        (5400, "90 minutes"),
        (7200, "120 minutes (2 hours)"),
        (366 * 86_400, "527040 minutes (8784 hours)"),
    ],
)
def test_a_minimum_is_told_as_people_say_it(seconds: float, text: str) -> None:
    assert least_interval(seconds) == f"Minimum interval is {text}"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"schedule": DAILY | {"timezone": "Mars/Olympus"}}, "Mars/Olympus"),
        ({"schedule": DAILY | {"timezone": 5}}, "schedule.timezone"),
        ({"schedule": {"type": "at", "at": "2026-01-01T00:00:00Z"}}, "schedule"),
        ({"schedule": {"type": "at", "at": "2026-02-02T09:00:00"}}, "offset"),
        ({"schedule": {"type": "at", "at": "tomorrow"}}, "tomorrow"),
        ({"schedule": {"type": "interval", "intervalMinutes": 1e30}}, "intervalMinutes"),
        ({"schedule": {"type": "interval", "intervalMinutes": "90"}}, "intervalMinutes"),
        ({"schedule": {"type": "interval", "intervalMinutes": True}}, "intervalMinutes"),
        ({"schedule": {"type": "interval", "intervalMinutes": 60.00000003}}, "milliseconds"),
        ({"schedule": {"type": "interval", "everyMs": 10**30}}, "at most"),
        ({"schedule": {"type": "interval", "everyMs": 3_600_000.5}}, "everyMs"),
        (
            {"schedule": {"type": "interval", "everyMs": 3_600_000, "intervalMinutes": 60}},
            "not both",
        ),
        ({"enabled": "yes"}, "enabled"),
        ({"enabled": 1}, "enabled"),
        ({"sessionConfig": {"persistSession": "no"}}, "persistSession"),
        ({"sessionConfig": {"model": 5}}, "model"),
        ({"sessionConfig": []}, "sessionConfig"),
        ({"slug": "other"}, "slug"),
        ({"prompt": "x" * 100_001}, "prompt"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_what_makes_no_sense_is_refused_and_nothing_is_stored(
    method: str, change: dict[str, Any], part: str
) -> None:
    """SPEC CRON-2, SEC-3."""
    api = Api()
    if method == "PATCH":
        await api("PUT", "/x", BODY)
    before = await api("GET", "")
    status, text = await api.error(method, "/x", BODY | change)
    assert (status, part in text) == (400, True), text
    assert await api("GET", "") == before


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"5", b"\xff", b'"x"'])
async def test_what_is_no_body_is_a_bad_request(body: bytes) -> None:
    transport = httpx.ASGITransport(APP, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        headers = {"content-type": "application/json"}
        for method in ("PUT", "PATCH"):
            answer = await client.request(method, "/api/schedule/x", content=body, headers=headers)
            assert (answer.status_code, list(answer.json())) == (400, ["error"])


@pytest.mark.parametrize("letter", ["x", "\x01", "\U0001f375"])
@pytest.mark.parametrize("ascii_only", [True, False])
async def test_the_longest_prompt_is_taken_however_it_is_written(
    letter: str, ascii_only: bool
) -> None:
    api = Api()
    headers = {"content-type": "application/json"}
    answers: list[httpx.Response] = []
    for length in (100_000, 100_001):
        raw = json.dumps(BODY | {"prompt": letter * length}, ensure_ascii=ascii_only).encode()
        answers.append(await api._client.put("/api/schedule/x", content=raw, headers=headers))
    taken, refused = answers
    assert (taken.status_code, refused.status_code) == (200, 400)
    assert refused.json() == {"error": "prompt: String should have at most 100000 characters"}
    assert (await api("GET", "/x"))[1]["prompt"] == letter * 100_000


async def test_operators_make_as_many_as_they_want() -> None:
    """SPEC CRON-15: the limit is for chats and models."""
    api = Api(most=1)
    for slug in ("x", "y"):
        assert (await api("PUT", f"/{slug}", BODY))[0] == 200


async def test_to_enable_what_is_over_needs_a_new_schedule() -> None:
    api = Api()
    await api("PUT", "/x", BODY | {"schedule": {"type": "at", "at": "2026-01-02T14:00:00Z"}})
    await api("PATCH", "/x", {"enabled": False})
    api.jobs.clock.at += timedelta(days=1)
    assert (await api.error("PATCH", "/x", {"enabled": True}))[0] == 400
    again = {"enabled": True, "schedule": DAILY}
    assert (await api("PATCH", "/x", again))[1]["nextRun"] == "2026-01-04T09:00:00.000Z"


# ---------------------------------------------------------------------------- whose


@pytest.mark.parametrize(
    "slug", ["%2e%2e", "%2e", "Daily", "-x", "x" * 65, "a%00b", "a%0A", "a b", "%F0%9F%92%A9"]
)
async def test_what_no_schedule_can_be_called_is_not_found_and_not_made(slug: str) -> None:
    """SPEC SEC-3."""
    api = Api()
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/run")):
        answer = await api._client.request(method, f"http://x/api/schedule/{slug}{path}")
        assert answer.status_code in {404, 405}
    status = (await api._client.put(f"http://x/api/schedule/{slug}", json=BODY)).status_code
    assert status in {400, 404, 405}
    assert await api("GET", "") == (200, [])


@pytest.mark.parametrize("path", ["/..%2Fx", "/../x", "/%2e%2e%2fetc%2fpasswd", "/a/b"])
async def test_no_path_leads_out_of_the_table(path: str) -> None:
    """SPEC SEC-3."""
    api = Api()
    await api("PUT", "/x", BODY)
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(APP)) as client:
            url = httpx.URL("http://x", raw_path=f"/api/schedule{path}".encode())
            answer = await client.request(method, url, json=BODY)
        assert answer.status_code in {404, 405}
    assert len((await api("GET", ""))[1]) == 1


async def test_an_unknown_schedule_is_named() -> None:
    api = Api()
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run")):
        assert await api.error(method, f"/nobody{path}", {}) == (
            404,
            "Schedule not found: nobody",
        )
    _, text = await api.error("GET", f"/{'x' * 500}")
    assert len(text) < 120


async def test_jobs_of_others_are_neither_shown_nor_changed() -> None:
    """SPEC SEC-3: a slug is unique among the jobs of one owner only."""
    api = Api()
    theirs = await api.jobs.service.create(
        JobDraft(Cron("0 9 * * *"), Prompt("hi"), slug="tea"), ANN
    )
    assert await api("GET", "") == (200, [])
    for name in ("tea", theirs.id, theirs.id[:8]):
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run")):
            assert (await api.error(method, f"/{name}{path}", {}))[0] == 404
    assert (await api("PUT", "/tea", BODY))[1]["created"] is True
    assert await api.jobs.service.get(theirs.id, ANN) == theirs


async def test_the_id_of_a_job_of_somebody_else_is_a_slug_like_any_other() -> None:
    api = Api()
    theirs = await api.jobs.service.create(JobDraft(Cron("0 9 * * *"), Prompt("hi")), ANN)
    status, answer = await api("PUT", f"/{theirs.id}", BODY)
    assert (status, answer["created"]) == (200, True)
    assert (await api("GET", f"/{theirs.id}"))[1]["prompt"] == BODY["prompt"]
    assert await api.jobs.service.get(theirs.id, ANN) == theirs


async def test_the_beginning_of_an_id_is_no_slug() -> None:
    api = Api()
    await api("PUT", "/x", BODY)
    job = await api.jobs.service.get("x", OPERATOR)
    assert (await api.error("GET", f"/{job.id[:8]}"))[0] == 404


async def test_other_kinds_of_jobs_are_shown_as_what_they_are() -> None:
    api = Api()
    every = Every(timedelta(hours=2))
    for slug, payload in (("m", FixedMessage("tea")), ("c", Program(("echo", "a b")))):
        await api.jobs.service.create(JobDraft(every, payload, slug=slug), OPERATOR)
    message, command = (await api("GET", "/m"))[1], (await api("GET", "/c"))[1]
    assert (message["payload"], message["prompt"]) == ("message", "tea")
    assert (command["payload"], command["prompt"]) == ("command", "echo 'a b'")
    status, text = await api.error("PATCH", "/m", {"sessionConfig": {"model": "x:y"}})
    assert (status, "prompt" in text) == (400, True)


@pytest.mark.parametrize("payload", [FixedMessage("tea"), Program(("echo", "a b"))])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_what_is_no_prompt_never_becomes_one(
    payload: FixedMessage | Program, method: str
) -> None:
    """Its text was not meant for a model."""
    api = Api()
    made = await api.jobs.service.create(
        JobDraft(Every(timedelta(hours=2)), payload, slug="x"), OPERATOR
    )
    _, view = await api("GET", "/x")
    assert (await api(method, "/x", view))[0] == 200
    assert await api.jobs.service.get("x", OPERATOR) == made
    moved = await api(method, "/x", view | {"schedule": {"type": "interval", "everyMs": 3_600_000}})
    assert moved[0] == 200
    after = await api.jobs.service.get("x", OPERATOR)
    assert (after.spec.payload, after.spec.schedule) == (payload, Every(timedelta(hours=1)))
    kind = view["payload"]
    assert await api.error(method, "/x", view | {"prompt": "think"}) == (
        400,
        f"prompt: this schedule runs a {kind}, which stays as it is here",
    )
    model = {"sessionConfig": {"model": "m:n"}}
    assert (await api.error(method, "/x", view | model))[0] == 400
    assert (await api.error(method, "/x", view | {"prompt": " "})) == (400, "prompt is required")
    assert await api.jobs.service.get("x", OPERATOR) == after


# ---------------------------------------------------------------------------- running


async def test_a_run_by_hand_names_run_and_session() -> None:
    api = Api()
    await api("PUT", "/x", BODY)
    assert await api("POST", "/x/run") == (
        200,
        {"slug": "x", "status": "executed", "runId": "run-1", "sessionId": STARTED.session},
    )
    assert api.jobs.hand.asked == ["x"]
    api.jobs.hand.answer = StartedNow(STARTED.occurrence, None)
    status, answer = await api("POST", "/x/run")
    assert (status, answer["runId"], answer["sessionId"]) == (200, None, None)


@pytest.mark.parametrize("why", list(RunNow))
async def test_a_run_that_does_not_begin_is_a_conflict(why: RunNow) -> None:
    """SPEC CRON-11."""
    api = Api()
    await api("PUT", "/x", BODY)
    api.jobs.hand.answer = why
    status, answer = await api("POST", "/x/run")
    assert (status, answer["code"]) == (409, why.name)


async def test_an_empty_page_is_behind_the_last_schedule() -> None:
    api = Api()
    for number in range(3):
        await api("PUT", f"/job-{number}", BODY)
    assert [len((await api("GET", f"?limit=2&offset={at}"))[1]) for at in (0, 2, 4)] == [2, 1, 0]
    assert (await api.error("GET", "?limit=0"))[0] == 400
