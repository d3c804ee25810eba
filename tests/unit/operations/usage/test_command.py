"""``goclaw usage``: what it prints, and what it refuses (SPEC OPS-1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from goclaw_py.runs.usage_report import Grouping, UsageQuery, UsageReport, UsageRow, Used
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fake_names, fake_usage
from tests.unit.web.fakes import FakeControl

JOB = Grouping.JOB
A_DAY = UsageReport((JOB,), date(2026, 1, 2), date(2026, 1, 2), "Europe/Berlin", (), Used())


def rows_of(out: str) -> list[list[str]]:
    """The lines of the table, its head included."""
    table = out.split("\n\n")[1]
    return [line.split() for line in table.splitlines()]


def test_groups_have_a_line_each_and_what_is_missing_is_told(
    goclaw: Shell, database: FakeControl
) -> None:
    got = goclaw("usage", "--by", "day,sender")
    assert got.code == 0
    assert got.out.startswith("2026-01-01 to 2026-01-02, days in UTC\n")
    head, ann, no_one, others, total = rows_of(got.out)
    titles = ["RECEIVED", "SENT", "MODEL", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "USD"]
    assert head == ["DAY", "SENDER", "RUNS", *titles]
    used = ["3", "-", "-", "9", "12,000", "4,000", "800", "0.0605"]
    assert ann[-9:] == ["(telegram/work/7)", *used]
    assert no_one == [
        "2026-01-02",
        "nobody",
        "2",
        "-",
        "-",
        "4",
        "3,000",
        "0",
        "200",
        "1.50",
        "+",
        "?",
    ]
    assert others == ["12", "more", "1", "-", "-", "2", "1,000", "0", "100", "?"]
    assert total == [
        *("total", "6", "40", "1,234", "15", "16,000", "4,000", "1,100", "1.56", "+", "?"),
    ]
    unknown = "2 of 6 runs used tokens of unknown price (?), so their cost is missing in the sums."
    out = goclaw("usage").out
    assert unknown in out
    assert "Only the most expensive groups are shown" in out
    database.usage.answer = replace(
        fake_usage.BY_DAY, total=fake_usage.PRICED, left_out=0, others=None
    )
    out = goclaw("usage").out
    assert "unknown price" not in out
    assert "are shown" not in out


def test_what_no_agent_has_done_is_explained(goclaw: Shell, database: FakeControl) -> None:
    agent = Grouping.AGENT
    rows = (UsageRow({agent: "main"}, Used(1), {}), UsageRow({agent: None}, Used(0), {}))
    database.usage.answer = replace(A_DAY, by=(agent,), rows=rows, total=Used(1))
    out = goclaw("usage", "--by", "agent").out
    assert "\nno agent " in out
    assert "Messages of no agent are from the gateway itself: pairing codes" in out


def test_names_cannot_take_over_the_terminal(goclaw: Shell, database: FakeControl) -> None:
    """SEC-1."""
    sender = Grouping.SENDER
    row = UsageRow({sender: "c/a/1\n2 \x1b[2J"}, Used(1), {sender: fake_names.FOOL})
    database.usage.answer = replace(A_DAY, by=(sender,), rows=(row,), total=Used(1))
    got = goclaw("usage", "--by", "sender")
    assert not set("\x1b\u202e") & set(got.out)
    assert len(rows_of(got.out)) == 3


def test_a_job_is_shown_by_its_slug_or_its_id(goclaw: Shell, database: FakeControl) -> None:
    rows = (
        UsageRow({JOB: "0190-aa"}, Used(1, cost_usd=Decimal(2)), {JOB: "tea"}),
        UsageRow({JOB: "0190-bb"}, Used(1, cost_usd=Decimal(1))),
        UsageRow({JOB: None}, Used(4)),
    )
    database.usage.answer = replace(A_DAY, rows=rows, total=Used(6, cost_usd=Decimal(3)))
    got = rows_of(goclaw("usage", "--by", "job").out)
    assert [line[0] for line in got] == ["JOB", "tea", "0190-bb", "no", "total"]
    assert [line[-1] for line in got] == ["USD", "2.00", "1.00", "-", "3.00"]


def test_the_sum_alone_is_one_line_and_nothing_says_what_to_do(
    goclaw: Shell, database: FakeControl
) -> None:
    row = UsageRow({}, fake_usage.PRICED)
    database.usage.answer = replace(A_DAY, by=(), rows=(row,), total=fake_usage.PRICED)
    head, total = rows_of(goclaw("usage", "--by", "").out)
    assert head[0] == "RUNS"
    assert total == ["total", "3", "-", "-", "9", "12,000", "4,000", "800", "0.0605"]
    database.usage.answer = A_DAY
    got = goclaw("usage")
    assert got.code == 0
    for words in ("2026-01-02 to 2026-01-02, days in Europe/Berlin", "--days 90", "goclaw chat"):
        assert words in got.out


def test_options_become_the_question(goclaw: Shell, gateway: ThreadGateway) -> None:
    found = goclaw.data("usage")
    assert found["rows"][0]["group"]["day"] == "2026-01-01"
    assert found["total"]["unpriced"] == 2
    goclaw("usage", "--by", "Agent, day", "--days", "90", "--tz", "Europe/Berlin")
    goclaw("usage", "--since", "2025-12-01", "--until", "2026-01-01")
    assert gateway.control.calls == [
        ("report", UsageQuery((Grouping.AGENT,))),
        ("report", UsageQuery((Grouping.AGENT, Grouping.DAY), days=90, zone="Europe/Berlin")),
        ("report", UsageQuery((Grouping.AGENT,), since=date(2025, 12, 1), until=date(2026, 1, 1))),
    ]


BAD = [
    (
        ["--by", "person"],
        "'--by': 'person' is not one of agent, job, sender, day",
    ),
    (["--by", "day,day"], "'--by': day is given twice"),
    (
        ["--since", "2026-02-01", "--until", "2026-01-31"],
        "'--since': 2026-02-01 is after the last day",
    ),
    (["--since", "2030-01-01"], "'--since': 2030-01-01 is after the last day"),
    (["--since", "2016-01-01", "--until", "2025-12-31"], "more than 366 days"),
    (["--since", "last week"], "'--since': must be a date such as 2026-01-31, not 'last week'"),
    (["--since", "\x1b[2J"], "'--since': must be a date such as 2026-01-31, not '\\x1b[2J'"),
    (["--since", "2026-01-01", "--days", "3"], "'--days': give days or since, not both"),
    (["--tz", "Berlin"], "did you mean Europe/Berlin?"),
    (["--days", "3650"], "'--days': must be from 1 to 366, not 3650"),
    (["--days", "0"], "'--days': must be from 1 to 366, not 0"),
    (["--days", "many"], "--days"),
]


@pytest.mark.parametrize("place", ["gateway", "database"])
@pytest.mark.parametrize(("options", "says"), BAD)
def test_options_that_make_no_sense_are_refused(
    goclaw: Shell, request: pytest.FixtureRequest, place: str, options: list[str], says: str
) -> None:
    request.getfixturevalue(place)
    got = goclaw("usage", *options)
    assert (got.code, got.out) == (2, "")
    assert says in got.err
