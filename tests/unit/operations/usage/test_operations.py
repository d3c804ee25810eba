"""What runs have used, as a gateway and the database alone tell it (SPEC OPS-1, AGENT-5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.errors import BadUsageQuery
from goclaw_py.core.run_events import Usage
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.runs.agent_loop import AgentResult
from goclaw_py.runs.usage_report import Grouping, UsageQuery, Used
from goclaw_py.testing.agents import Return, ScriptedAgent
from goclaw_py.testing.clock import START
from tests.support.harness import a_process

SPENT = Usage(2, 100, 10, 40, Decimal("0.01"))


def spending() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Return(AgentResult("spent", usage=SPENT)))


async def test_what_a_chat_has_used_is_told_by_who_asked_and_when() -> None:
    async with a_process(spending()) as gateway:
        await gateway.ask("one")
        await gateway.ask("two")
        query = UsageQuery((Grouping.DAY, Grouping.SENDER, Grouping.TRIGGER), days=1)
        report = await gateway.control.usage.report(query)
        (row,) = report.rows
        today = START.date()
        assert (report.since, report.until, report.zone) == (today, today, "UTC")
        used = Used(2, 4, 200, 20, 80, Decimal("0.02"))
        assert (row.used, report.total) == (used, replace(used, received=2, sent=2))
        assert (row.group[Grouping.DAY], row.group[Grouping.TRIGGER]) == (today.isoformat(), "chat")
        assert row.group[Grouping.SENDER] is not None
        alone = StoreControl(gateway.store, gateway.clock)
        assert await alone.usage.report(query) == report


async def test_other_days_have_no_rows_or_have_not_begun() -> None:
    async with a_process(spending()) as gateway:
        await gateway.ask("one")
        before, after = (START.date() + timedelta(days=days) for days in (-1, 1))
        report = await gateway.control.usage.report(UsageQuery(since=before, until=before))
        assert (report.rows, report.total) == ((), Used(received=0, sent=0))
        with pytest.raises(BadUsageQuery, match="after the last day"):
            await gateway.control.usage.report(UsageQuery(since=after))


async def test_times_of_up_to_three_days_are_given_by_hour() -> None:
    async with a_process(spending()) as gateway:
        await gateway.ask("one")
        times = await gateway.control.usage.times(UsageQuery(days=2, hours=True))
        busy = [one for one in times if one.runs]
        assert [(one.runs, one.day, one.used.received) for one in busy] == [(1, START.date(), 1)]
        assert busy[0].hour is not None
        assert busy[0].hour <= START < busy[0].hour + timedelta(hours=1)
        assert times[-1].hour == busy[0].hour
        assert len(times) == 24 + START.hour + 1
        with pytest.raises(BadUsageQuery, match="hours: at most 3 days, not 4"):
            await gateway.control.usage.times(UsageQuery(days=4, hours=True))
