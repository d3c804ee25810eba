"""``/api/usage`` and its client: what goes in comes out, and what makes no sense is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import BadUsageQuery
from goclaw_py.runs.usage_report import MAX_DAYS, Grouping, UsageQuery, UsageReport, UsageRow, Used
from goclaw_py.web.api import wire
from tests.unit.web import fake_usage
from tests.unit.web.harness import Api, Gateway

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("query", [
    UsageQuery(), UsageQuery(tuple(Grouping), days=MAX_DAYS, zone="Europe/Berlin"),
    UsageQuery((Grouping.DAY,), since=date(2026, 1, 1)),
    UsageQuery((Grouping.JOB,), until=date(2026, 1, 1), days=3),
    UsageQuery((Grouping.JOB,), since=date(2025, 12, 31), until=date(2026, 1, 1)),
])  # fmt: skip
async def test_questions_and_answers_arrive_as_they_were(
    made: Gateway, remote: RemoteControl, query: UsageQuery
) -> None:
    assert await remote.usage.report(query) == fake_usage.BY_DAY
    assert made.control.calls == [("report", query)]


async def test_the_times_of_days_arrive_as_they_were(made: Gateway, remote: RemoteControl) -> None:
    query = UsageQuery(until=date(2026, 1, 1), days=3, zone="Europe/Berlin", hours=True)
    *_, last = found = await remote.usage.times(query)
    assert [one.day.day for one in found] == [30, 31, 1]
    assert (last.runs, last.wait_s, last.used.sent) == (4, (0.5, 2.0), 1_234)
    assert made.control.calls == [("times", query)]


async def test_an_answer_without_rows_or_money_comes_back_too(
    made: Gateway, remote: RemoteControl
) -> None:
    empty = UsageReport((), date(2026, 1, 1), date(2026, 1, 1), "UTC", (), Used())
    sum_alone = replace(empty, rows=(UsageRow({}, Used(1)),), total=Used(1))
    for report in (empty, sum_alone):
        made.control.usage.answer = report
        assert await remote.usage.report(UsageQuery()) == report


async def test_what_the_gateways_clock_tells_is_the_same_error(remote: RemoteControl) -> None:
    with pytest.raises(BadUsageQuery) as error:
        await remote.usage.report(UsageQuery(since=date(2030, 1, 1)))
    assert error.value.key == "since"
    assert str(error.value) == "since: 2030-01-01 is after the last day, 2026-01-02"


async def test_without_a_word_the_agents_of_the_last_days_are_told(api: Api) -> None:
    got = await api.client.get("/api/usage")
    assert (got.status_code, got.headers["content-type"]) == (200, "application/json")
    assert (await api("GET", "/usage?by="))[0] == 200
    asked = UsageQuery((Grouping.AGENT,)), UsageQuery()
    assert api.control.calls == [("report", query) for query in asked]


async def test_the_json_is_made_for_programs(api: Api) -> None:
    _, found = await api("GET", "/usage?by=day,sender")
    assert found["by"] == ["day", "sender"]
    assert (found["since"], found["until"], found["zone"]) == ("2026-01-01", "2026-01-02", "UTC")
    first, second = found["rows"]
    assert first["group"] == {"day": "2026-01-01", "sender": "telegram/work/7"}
    assert first["used"]["cost_usd"] == "0.0605"
    assert second["group"]["sender"] is None
    assert found["total"]["runs"] == 6
    assert (found["left_out"], found["others"]["cost_usd"]) == (12, None)


@pytest.mark.parametrize(("params", "says"), [
    ({"by": "person"}, "by: 'person' is not one of agent, job, sender, day, model"),
    ({"by": "agent,,day"}, "by: '' is not one of"),
    ({"by": "day,agent,day"}, "by: day is given twice"),
    ({"by": "x" * 101}, "by: "),
    ({"since": "2026-02-01", "until": "2026-01-31"}, "since: 2026-02-01 is after"),
    ({"since": "2030-01-01"}, "since: 2030-01-01 is after the last day"),
    ({"since": "2016-01-01", "until": "2025-12-31"}, "more than 366 days"),
    ({"since": "2016-01-01"}, "more than 366 days"),
    ({"since": "0001-01-01", "until": "0001-01-02"}, "since: must be a day from 1970-01-01"),
    ({"until": "9999-12-31"}, "until: must be a day from 1970-01-01"),
    ({"since": "2026-02-30"}, "since: must be a date such as 2026-01-31"),
    ({"since": "yesterday"}, "since: "), ({"since": "1767225600"}, "since: "),
    ({"since": "2026-01-01", "days": "3"}, "days: give days or since, not both"),
    *(({"days": days}, "days: ") for days in ("0", "3650", "many", "9" * 5000)),
    *(({"tz": tz}, "tz: ") for tz in ("Nowhere", "CET", "", "../../etc/passwd", "\x00")),
    ({"tz": "x" * 65}, "tz: "),
])  # fmt: skip
async def test_a_senseless_question_is_refused(params: dict[str, str], says: str, api: Api) -> None:
    got = await api.client.get("/api/usage", params=params)
    assert got.status_code == 422
    assert says in wire.read(wire.ApiError, got.content).error
