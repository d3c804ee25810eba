"""``/api/schedule`` as *caco* has it (SPEC CRON-19, docs/guide/api.md)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from goclaw_py.core.ids import Owner
from goclaw_py.core.messages import Target
from goclaw_py.operations.jobs.models import JobDraft, Requester, RunNow, StartedNow
from goclaw_py.schedule.jobs.models import (
    FixedMessage,
    Job,
    JobState,
    JobTarget,
    Payload,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from goclaw_py.web.caco.texts import least_interval
from goclaw_py.web.caco.wire import view_of
from tests.support.apps import lend_api
from tests.unit.web.fake_jobs import FRIDAY, STARTED, Jobs
from tests.unit.web.fakes import FakeControl

OPERATOR = Requester(None)
ANN = Requester(Owner("telegram:direct:5"))
DAILY: dict[str, Any] = {"type": "cron", "expression": "0 9 * * *"}
BODY: dict[str, Any] = {"prompt": "Summarise the commits", "schedule": DAILY}
JSON = {"content-type": "application/json"}
EACH = (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run"))


def often(**interval: object) -> dict[str, Any]:
    return {"schedule": {"type": "interval", **interval}}


def once(moment: str) -> dict[str, Any]:
    return {"schedule": {"type": "at", "at": moment}}


def daily(**more: object) -> dict[str, Any]:
    return {"schedule": DAILY | more}


class Api:
    """The routes over jobs in memory; the last one made is the one that is asked."""

    def __init__(self, profile: str = "caco", *, most: int = 50) -> None:
        control = FakeControl()
        self.jobs = control.made = Jobs(PROFILES[profile], most=most)
        transport = httpx.ASGITransport(lend_api(control), raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://x")

    async def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and body of the answer."""
        # Half of a surrogate pair can only be written as an escape, which httpx does not do.
        content = None if body is None else json.dumps(body)
        url = f"/api/schedule{path}"
        answer = await self.client.request(method, url, content=content, headers=JSON)
        assert answer.headers["content-type"] == "application/json"
        return answer.status_code, answer.json()

    async def error(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """The same, of an answer that refuses."""
        status, answer = await self(method, path, body)
        assert set(answer) <= {"error", "code", "detail"}
        return status, answer["error"]

    async def job(self, name: str = "x", by: Requester = OPERATOR) -> Job:
        return await self.jobs.service.get(name, by)

    async def create(self, payload: Payload, by: Requester = OPERATOR, slug: str = "") -> Job:
        """A job that was not made here."""
        return await self.jobs.service.create(JobDraft(Cron("0 9 * * *"), payload, slug=slug), by)


@pytest.fixture
async def api() -> Api:
    """One that has the schedule ``x``."""
    made = Api()
    await made("PUT", "/x", BODY)
    return made


# ---------------------------------------------------------------------------- making


async def test_a_schedule_is_made_shown_and_deleted() -> None:
    api = Api()
    assert await api("GET", "") == (200, [])
    made = await api("PUT", "/daily-standup", {"slug": "daily-standup", "enabled": True, **BODY})
    expected = {"slug": "daily-standup", "nextRun": "2026-01-03T09:00:00.000Z", "created": True}
    assert made == (200, expected)
    assert await api("GET", "/daily-standup") == (200, shown := (await api("GET", ""))[1][0])
    assert shown == {
        "slug": "daily-standup",
        "prompt": "Summarise the commits",
        "payload": "prompt",
        "enabled": True,
        "schedule": DAILY
        | {"intervalMinutes": None, "everyMs": None, "at": None, "timezone": "UTC"},
        "sessionConfig": {"model": None, "persistSession": True},
        "target": "none",
        "state": "active",
        **dict.fromkeys(("lastRun", "lastResult", "lastError", "deliveryError")),
        "sessionId": f"agent:main:cron:{(await api.job('daily-standup')).id}",
        "nextRun": "2026-01-03T09:00:00.000Z",
    }
    gone = {"slug": "daily-standup", "deleted": True}
    assert await api("DELETE", "/daily-standup") == (200, gone)
    assert await api("GET", "") == (200, [])
    unknown = (404, "Schedule not found: daily-standup")
    assert await api.error("DELETE", "/daily-standup") == unknown


GROUP = Target("telegram", "work", "-100", "7")


@pytest.mark.parametrize(("text", "target"), [
    ("none", TargetKind.NONE), ("last", TargetKind.LAST), ("telegram.work:-100:7", GROUP),
])  # fmt: skip
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_results_go_where_the_body_says(
    text: str, target: JobTarget, method: str, api: Api
) -> None:
    """SPEC CRON-19: without one they stay in the session; a missing one stays as it is."""
    assert (await api.job()).spec.target is TargetKind.NONE
    await api("PUT", "/y", BODY | {"target": text})
    assert (await api.job("y")).spec.target == target
    await api("PUT", "/y", BODY)
    assert (await api("GET", "/y"))[1]["target"] == text
    assert (await api(method, "/x", BODY | {"target": text}))[0] == 200
    assert (await api.job()).spec.target == target


async def test_a_target_that_is_none_is_refused(api: Api) -> None:
    said = "target: must be last, none, or channel[.account]:chat[:thread], such as telegram:12345"
    assert await api.error("PATCH", "/x", {"target": "Ann"}) == (400, said)


@pytest.mark.parametrize(("status", "result", "error", "undelivered"), [
    ("ok", "success", None, None),
    ("failed", "error", "why", None),
    ("timed_out", "timed_out", "why", None),
    # Whether a run went well does not depend on whether its result reached somebody.
    ("no_route", "success", None, "why"),
    ("undelivered", "success", None, "why"),
])  # fmt: skip
async def test_the_result_of_a_run_and_its_delivery_are_separate(
    status: str, result: str, error: str | None, undelivered: str | None, api: Api
) -> None:
    job = replace(await api.job(), last_status=status, last_error="" if status == "ok" else "why")
    shown = view_of(job, PROFILES["caco"])
    assert (shown.last_result, shown.last_error, shown.delivery_error) == (
        result,
        error,
        undelivered,
    )


@pytest.mark.parametrize(("schedule", "meant", "shown"), [
    (often(intervalMinutes=90), Every(timedelta(minutes=90)), "intervalMinutes"),
    (often(intervalMinutes=60.5), Every(timedelta(seconds=3630)), "everyMs"),
    (often(everyMs=3_600_001), Every(timedelta(seconds=3600.001)), "everyMs"),
    (daily(expression="@daily"), Cron("@daily"), "expression"),
    (once("2026-01-02T14:00:00+01:00"), At(FRIDAY + timedelta(hours=1)), "at"),
])  # fmt: skip
async def test_every_kind_of_schedule_is_understood(
    schedule: dict[str, Any], meant: object, shown: str, api: Api
) -> None:
    await api("PUT", "/x", BODY | schedule)
    assert (await api.job()).spec.schedule == meant
    _, view = await api("GET", "/x")
    given = {key for key, value in view["schedule"].items() if value is not None}
    assert given == {"type", "timezone", shown}
    assert view["schedule"]["at"] == ("2026-01-02T13:00:00.000Z" if shown == "at" else None)


async def test_what_get_has_given_can_be_put_back() -> None:
    api = Api()
    config = {"model": "openai:gpt-4o", "persistSession": False}
    zoned = DAILY | {"timezone": "Europe/Berlin"}
    await api("PUT", "/x", BODY | {"schedule": zoned, "sessionConfig": config, "enabled": False})
    _, view = await api("GET", "/x")
    assert (view["state"], view["nextRun"], view["sessionId"]) == ("paused", None, None)
    assert (view["sessionConfig"], view["schedule"]["timezone"]) == (config, "Europe/Berlin")
    answer = (200, {"slug": "x", "nextRun": None, "created": False})
    assert await api("PUT", "/x", view) == answer
    assert await api("GET", "/x") == (200, view)


async def test_a_put_changes_a_schedule_and_keeps_what_it_does_not_name(api: Api) -> None:
    config = {"model": "openai:gpt-4o", "persistSession": False}
    await api("PUT", "/x", BODY | {"enabled": False, "sessionConfig": config})
    before = await api.job()
    _, answer = await api("PUT", "/x", {"prompt": "other", "schedule": DAILY})
    after = await api.job()
    assert (answer["created"], after.id, after.state) == (False, before.id, JobState.PAUSED)
    assert after.spec.payload == Prompt("other", "openai:gpt-4o")
    assert after.spec.policy == {"session": "fresh"}


async def test_of_several_puts_at_once_one_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_each_part_can_be_patched_alone(api: Api) -> None:
    before = await api.job()

    async def patch(**change: Any) -> Any:
        return (await api("PATCH", "/x", change))[1]

    await patch(enabled=True)
    assert await api.job() == before
    paused = await patch(enabled=False)
    assert (paused["enabled"], paused["nextRun"]) == (False, None)
    again = await patch(enabled=True)
    assert (again["enabled"], again["nextRun"]) == (True, "2026-01-03T09:00:00.000Z")
    moved = await patch(**often(intervalMinutes=120))
    assert moved["nextRun"] == "2026-01-02T14:00:00.000Z"
    worded = await patch(prompt="else")
    assert (worded["prompt"], worded["nextRun"]) == ("else", moved["nextRun"])
    modelled = await patch(sessionConfig={"model": "m:n"})
    assert modelled["sessionConfig"] == {"model": "m:n", "persistSession": True}
    fresh = await patch(sessionConfig={"persistSession": False})
    assert fresh["sessionConfig"] == {"model": "m:n", "persistSession": False}
    plain = await patch(sessionConfig={"model": None})
    assert plain["sessionConfig"] == {"model": None, "persistSession": False}
    assert await patch() == plain


async def test_a_missing_prompt_is_that_of_the_profile() -> None:
    api = Api("herdctl")
    assert (await api("PUT", "/x", {"schedule": DAILY}))[0] == 200
    assert (await api("GET", "/x"))[1]["prompt"] == "Execute scheduled task"
    required = (400, "prompt is required")
    assert await api.error("PUT", "/y", {"prompt": "", "schedule": DAILY}) == required


async def test_a_schedule_that_is_too_frequent_is_made_longer_where_the_profile_says_so() -> None:
    api = Api("halo")
    assert (await api("PUT", "/x", BODY | often(everyMs=1000)))[0] == 200
    assert (await api("GET", "/x"))[1]["schedule"]["everyMs"] == 10_000


# ---------------------------------------------------------------------------- refusing


async def test_a_prompt_and_a_schedule_are_required(api: Api) -> None:
    required = (400, "prompt is required")
    assert await api.error("PUT", "/y", {"schedule": DAILY}) == required
    assert await api.error("PUT", "/x", BODY | {"prompt": None}) == required
    for prompt in ("", "  \n"):
        for method in ("PUT", "PATCH"):
            assert await api.error(method, "/x", BODY | {"prompt": prompt}) == required
    required = (400, "schedule with type and expression/intervalMinutes is required")
    assert await api.error("PUT", "/y", {"prompt": "a"}) == required
    wrong: tuple[object, ...] = (
        *(None, "0 9 * * *", 5, [], {}, {"type": "weekly"}, {"expression": "0 9 * * *"}),
        *({"type": None, "expression": "0 9 * * *"}, {"type": "cron"}, {"type": "at"}),
        *({"type": "cron", "expression": ""}, {"type": "cron", "expression": 9}),
        *({"type": "cron", "intervalMinutes": 60}, {"type": "interval"}),
        {"type": "interval", "intervalMinutes": None},
        {"type": "interval", "expression": "0 9 * * *"},
    )
    for schedule in wrong:
        assert await api.error("PUT", "/y", BODY | {"schedule": schedule}) == required, schedule


@pytest.mark.parametrize(("change", "text"), [
    ({"prompt": 5}, "prompt: must be a text"), ({"prompt": ["a"]}, "prompt: must be a text"),
    ({"prompt": True}, "prompt: must be a text"),
    ({"prompt": "a\ud800b"}, "prompt: must be a text that UTF-8 can hold: without half of"),
    ({"prompt": "x" * 100_001}, "prompt: String should have at most 100000 characters"),
    ({"enabled": "yes"}, "enabled: must be true or false"),
    ({"enabled": 1}, "enabled: must be true or false"),
    ({"enabeld": False}, "enabeld: unknown key"),
    ({"slug": "other"}, "slug: must be that of the path"),
    ({"sessionConfig": {"persistsession": 1}}, "sessionConfig.persistsession: unknown key"),
    ({"sessionConfig": {"persistSession": "no"}}, "sessionConfig.persistSession: must be true"),
    ({"sessionConfig": {"model": 5}}, "sessionConfig.model: must be a text"),
    ({"sessionConfig": []}, "sessionConfig: Input should be a valid dictionary"),
    (daily(timezone=5), "schedule.timezone: must be a text"),
    (daily(timezone="Mars/Olympus"), "schedule: unknown time zone 'Mars/Olympus'"),
    (daily(timzone="UTC"), "schedule.timzone: unknown key"),
    (daily(expression="\ud800"), "Invalid cron expression"),
    (daily(intervalMinutes=60), "schedule.intervalMinutes: is not for type cron"),
    (once("2026-01-01T00:00:00Z"), "schedule: that time is over"),
    (once("2026-02-02T09:00:00"), "schedule: '2026-02-02T09:00:00': must be a time in ISO"),
    (once("tomorrow"), "schedule: 'tomorrow': must be a time in ISO 8601 with its offset"),
    (often(intervalMinutes="5"), "schedule.intervalMinutes: must be a number"),
    (often(intervalMinutes=True), "schedule.intervalMinutes: must be a number"),
    (often(intervalMinutes=1e30), "schedule.intervalMinutes: may be at most 5270400"),
    (often(intervalMinutes=60.00000003), "schedule.intervalMinutes: must be a whole number of"),
    (often(everyMs="5"), "schedule.everyMs: must be a whole number"),
    (often(everyMs=3_600_000.5), "schedule.everyMs: must be a whole number"),
    (often(everyMs=10**30), "schedule: invalid interval 'every_ms': an interval is at most"),
    (often(everyMs=3_600_000, intervalMinutes=60), "schedule: give intervalMinutes or everyMs"),
])  # fmt: skip
async def test_what_makes_no_sense_is_not_stored(change: dict[str, Any], text: str) -> None:
    """SPEC CRON-2, SEC-3."""
    api = Api()
    for method in ("PUT", "PATCH"):
        before = await api("GET", "")
        status, told = await api.error(method, "/x", BODY | change)
        assert (status, told.startswith(text)) == (400, True), told
        assert await api("GET", "") == before
        await api("PUT", "/x", BODY)


@pytest.mark.parametrize("expression", [
    "every day", "61 * * * *", "* * * *", "0 0 30 2 *", "0 9 * * * *", "\u0000", "*", "9" * 2000,
    "0 9 * * " + "1" * 249,
])  # fmt: skip
async def test_an_expression_that_means_nothing_is_refused(expression: str) -> None:
    """``caco`` has five fields."""
    body = BODY | daily(expression=expression)
    assert await Api().error("PUT", "/x", body) == (400, "Invalid cron expression")


HOUR = "Minimum interval is 60 minutes (1 hour)"
TEN_S = "Minimum interval is 10 seconds"


@pytest.mark.parametrize(("profile", "schedule", "least"), [
    ("caco", often(intervalMinutes=59), HOUR), ("caco", often(intervalMinutes=0), HOUR),
    ("caco", often(intervalMinutes=-5), HOUR), ("caco", often(everyMs=3_599_999), HOUR),
    ("caco", often(everyMs=-1), HOUR),
    ("oxydra", often(everyMs=59_000), "Minimum interval is 1 minute"),
    ("goclaw", often(everyMs=999), "Minimum interval is 1 second"),
    ("goclaw", often(everyMs=0), "Minimum interval is 1 second"),
    ("caco", daily(expression="*/30 * * * *"), f"Cron expression runs every 30 minutes. {HOUR}"),
    ("caco", daily(expression="0,59 * * * *"), f"Cron expression runs every 1 minute. {HOUR}"),
    ("halo", daily(expression="*/5 * * * * *"), f"Cron expression runs every 5 seconds. {TEN_S}"),
])  # fmt: skip
async def test_each_profile_has_its_minimum(
    profile: str, schedule: dict[str, Any], least: str
) -> None:
    assert await Api(profile).error("PUT", "/x", BODY | schedule) == (400, least)


@pytest.mark.parametrize(("seconds", "text"), [
    (1, "1 second"), (0.5, "0.5 seconds"), (90, "90 seconds"),
    (60, "1 minute"), (3600, "60 minutes (1 hour)"), (5400, "90 minutes"),
    (7200, "120 minutes (2 hours)"), (366 * 86_400, "527040 minutes (8784 hours)"),
])  # fmt: skip
def test_a_minimum_is_told_as_people_say_it(seconds: float, text: str) -> None:
    assert least_interval(seconds) == f"Minimum interval is {text}"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"5", b"\xff", b'"x"'])
async def test_what_is_no_body_is_a_bad_request(body: bytes, api: Api) -> None:
    for method in ("PUT", "PATCH"):
        answer = await api.client.request(method, "/api/schedule/x", content=body, headers=JSON)
        assert (answer.status_code, list(answer.json())) == (400, ["error"])


@pytest.mark.parametrize("letter", ["x", "\x01", "\U0001f375"])
@pytest.mark.parametrize("ascii_only", [True, False])
async def test_the_longest_prompt_is_taken_as_written(letter: str, ascii_only: bool) -> None:
    api, answers = Api(), []
    for length in (100_000, 100_001):
        raw = json.dumps(BODY | {"prompt": letter * length}, ensure_ascii=ascii_only).encode()
        answers.append(await api.client.put("/api/schedule/x", content=raw, headers=JSON))
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
    await api("PUT", "/x", BODY | once("2026-01-02T14:00:00Z"))
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
        answer = await api.client.request(method, f"http://x/api/schedule/{slug}{path}")
        assert answer.status_code in {404, 405}
    status = (await api.client.put(f"http://x/api/schedule/{slug}", json=BODY)).status_code
    assert status in {400, 404, 405}
    assert await api("GET", "") == (200, [])


@pytest.mark.parametrize("path", ["/..%2Fx", "/../x", "/%2e%2e%2fetc%2fpasswd", "/a/b"])
async def test_no_path_leads_out_of_the_table(path: str, api: Api) -> None:
    """SPEC SEC-3."""
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        url = httpx.URL("http://x", raw_path=f"/api/schedule{path}".encode())
        answer = await api.client.request(method, url, json=BODY)
        assert answer.status_code in {404, 405}
    assert len((await api("GET", ""))[1]) == 1


async def test_an_unknown_schedule_is_named(api: Api) -> None:
    for method, path in EACH:
        unknown = (404, "Schedule not found: nobody")
        assert await api.error(method, f"/nobody{path}", {}) == unknown
    _, text = await api.error("GET", f"/{'x' * 500}")
    assert len(text) < 120
    beginning = (await api.job()).id[:8]
    assert (await api.error("GET", f"/{beginning}"))[0] == 404


async def test_jobs_of_others_are_neither_shown_nor_changed() -> None:
    """SPEC SEC-3: a slug is unique among the jobs of one owner only."""
    api = Api()
    theirs = await api.create(Prompt("hi"), ANN, "tea")
    assert await api("GET", "") == (200, [])
    for name in ("tea", theirs.id, theirs.id[:8]):
        for method, path in EACH:
            assert (await api.error(method, f"/{name}{path}", {}))[0] == 404
    # Also their id is a slug like any other.
    for slug in ("tea", theirs.id):
        assert (await api("PUT", f"/{slug}", BODY))[1]["created"] is True
        assert (await api("GET", f"/{slug}"))[1]["prompt"] == BODY["prompt"]
    assert await api.job(theirs.id, ANN) == theirs


async def test_other_kinds_of_jobs_are_shown_as_what_they_are() -> None:
    api = Api()
    await api.create(FixedMessage("tea"), slug="m")
    await api.create(Program(("echo", "a b")), slug="c")
    message, command = (await api("GET", "/m"))[1], (await api("GET", "/c"))[1]
    assert (message["payload"], message["prompt"]) == ("message", "tea")
    assert (command["payload"], command["prompt"]) == ("command", "echo 'a b'")
    status, text = await api.error("PATCH", "/m", {"sessionConfig": {"model": "x:y"}})
    assert (status, "prompt" in text) == (400, True)


@pytest.mark.parametrize("payload", [FixedMessage("tea"), Program(("echo", "a b"))])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_other_kinds_stay_what_they_are(payload: FixedMessage | Program, method: str) -> None:
    """Its text was not meant for a model."""
    api = Api()
    made = await api.create(payload, slug="x")
    _, view = await api("GET", "/x")
    assert (await api(method, "/x", view))[0] == 200
    assert await api.job() == made
    assert (await api(method, "/x", view | often(everyMs=3_600_000)))[0] == 200
    after = await api.job()
    assert (after.spec.payload, after.spec.schedule) == (payload, Every(timedelta(hours=1)))
    stays = f"prompt: this schedule runs a {view['payload']}, which stays as it is here"
    assert await api.error(method, "/x", view | {"prompt": "think"}) == (400, stays)
    model = {"sessionConfig": {"model": "m:n"}}
    assert (await api.error(method, "/x", view | model))[0] == 400
    assert (await api.error(method, "/x", view | {"prompt": " "})) == (400, "prompt is required")
    assert await api.job() == after


# ---------------------------------------------------------------------------- running


async def test_a_run_by_hand_names_run_and_session(api: Api) -> None:
    ran = {"slug": "x", "status": "executed", "runId": "run-1", "sessionId": STARTED.session}
    assert await api("POST", "/x/run") == (200, ran)
    assert api.jobs.runner.asked == ["x"]
    api.jobs.runner.answer = StartedNow(STARTED.occurrence, None)
    assert await api("POST", "/x/run") == (200, ran | {"runId": None, "sessionId": None})


async def test_a_run_that_does_not_begin_is_a_conflict(api: Api) -> None:
    """SPEC CRON-11."""
    for why in RunNow:
        api.jobs.runner.answer = why
        status, answer = await api("POST", "/x/run")
        assert (status, answer["code"]) == (409, why.name)


async def test_an_empty_page_is_behind_the_last_schedule() -> None:
    api = Api()
    for number in range(3):
        await api("PUT", f"/job-{number}", BODY)
    assert [len((await api("GET", f"?limit=2&offset={at}"))[1]) for at in (0, 2, 4)] == [2, 1, 0]
    assert (await api.error("GET", "?limit=0"))[0] == 400
