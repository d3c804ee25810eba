"""Requests token and cost reports from a gateway."""

from __future__ import annotations

from goclaw_py.cli.client.ask import RequestSender
from goclaw_py.cli.client.refusals import NotAccepted
from goclaw_py.model.errors import BadUsageQuery
from goclaw_py.runs.usage_report import UsageQuery, UsageReport
from goclaw_py.web.api import wire


async def ask_usage(ask: RequestSender, query: UsageQuery) -> UsageReport:
    """Request a report. Raises ``BadUsageQuery`` also for days the gateway's clock rules out."""
    given = {"since": query.since, "until": query.until, "days": query.days}
    params = {name: str(value) for name, value in given.items() if value is not None}
    params |= {"by": ",".join(query.by), "tz": query.zone}
    try:
        return wire.read(UsageReport, await ask("GET", "/api/usage", params=params))
    except NotAccepted as error:
        key, _, problem = str(error).partition(": ")
        raise BadUsageQuery(key, problem) from error
