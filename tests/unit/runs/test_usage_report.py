"""Questions about usage: what may be asked, and which days are meant."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.errors import BadUsageQuery
from goclaw_py.core.ids import AgentName
from goclaw_py.core.run_events import Usage
from goclaw_py.runs.usage_report import (
    MAX_DAYS,
    NOTHING_USED,
    DaySpan,
    DayTimes,
    Grouping,
    UsageQuery,
    UsageRow,
    UsageTable,
    Used,
    costliest,
    groupings,
    read_day,
    report,
    span_of,
    used_by,
    with_messages,
)

NOW = datetime(2026, 3, 29, 22, 30, tzinfo=UTC)
BERLIN = "Europe/Berlin"
DAY = Grouping.DAY


def span(**question: object) -> DaySpan:
    return span_of(UsageQuery(**question), NOW)  # type: ignore[arg-type]  # as a test gives them


def refused(**question: object) -> str:
    with pytest.raises(BadUsageQuery) as error:
        span(**question)
    assert str(error.value).startswith(f"{error.value.key}: ")
    return str(error.value)


def test_groupings_are_named_with_commas_between_them_in_any_case() -> None:
    assert groupings("agent,day") == (Grouping.AGENT, DAY)
    assert groupings(" Day , JOB ") == (DAY, Grouping.JOB)
    assert groupings("") == groupings("  ") == ()
    assert groupings(",".join(Grouping)) == tuple(Grouping)


def test_a_grouping_that_is_not_known_or_named_twice_is_refused() -> None:
    for text in ("person", "agent,", ",", "agent;day", "agent day", "\x00", "día"):
        with pytest.raises(BadUsageQuery, match=r"by: .* is not one of agent, job, sender, day, m"):
            groupings(text)
    assert refused(by=(DAY, Grouping.JOB, DAY)) == "by: day is given twice"


def test_without_a_word_the_last_seven_days_are_meant_today_included() -> None:
    """Today is that of the zone."""
    found = span()
    assert (found.days[0], found.days[-1]) == (date(2026, 3, 23), date(2026, 3, 29))
    assert len(found.days) == 7
    assert span(zone=BERLIN).days[-1] == date(2026, 3, 30)
    assert span(zone="America/New_York").days[-1] == date(2026, 3, 29)


def test_both_ends_are_meant_and_until_can_be_left_out() -> None:
    assert span(since=date(2026, 3, 28)).days == (date(2026, 3, 28), date(2026, 3, 29))
    one = date(2026, 1, 31)
    assert span(since=one, until=one).days == (one,)
    assert span(until=one, days=2).days == (date(2026, 1, 30), one)


MOMENT = timedelta(microseconds=1)


def test_days_begin_at_midnight_in_their_zone_also_where_clocks_change() -> None:
    found = span(since=date(2026, 3, 28), until=date(2026, 3, 30), zone=BERLIN)
    starts = [start.strftime("%m-%dT%H:%M%z") for start in found.starts]
    nights = ["03-27T23:00", "03-28T23:00", "03-29T22:00", "03-30T22:00"]
    assert starts == [f"{night}+0000" for night in nights]


def test_a_day_without_a_midnight_begins_with_the_change() -> None:
    found = span(since=date(2018, 11, 4), until=date(2018, 11, 4), zone="America/Sao_Paulo")
    assert found.starts[0] == datetime(2018, 11, 4, 3, tzinfo=UTC)
    assert found.day_of(found.starts[0] - MOMENT) is None


def test_a_day_that_clocks_skip_is_empty_and_no_run_is_lost() -> None:
    found = span(since=date(2011, 12, 29), until=date(2011, 12, 31), zone="Pacific/Apia")
    change = datetime(2011, 12, 30, 10, tzinfo=UTC)
    assert found.starts[1] == found.starts[2] == change
    days = [found.day_of(change), found.day_of(change - MOMENT)]
    assert days == [date(2011, 12, 31), date(2011, 12, 29)]


def test_what_was_before_or_after_is_of_no_day() -> None:
    found = span(since=date(2026, 1, 1), until=date(2026, 1, 2))
    first, *_, after = found.starts
    days = [found.day_of(instant) for instant in (first - MOMENT, first, after)]
    assert days == [None, date(2026, 1, 1), None]


def test_days_and_zones_that_make_no_sense_are_refused() -> None:
    assert "is after the last day" in refused(since=date(2026, 2, 1), until=date(2026, 1, 31))
    assert "is after the last day" in refused(since=date(2026, 4, 1))
    assert "more than 366 days" in refused(since=date(2016, 1, 1), until=date(2025, 12, 31))
    assert "more than 366 days" in refused(since=date(2016, 1, 1))
    assert "more than 366 days" in refused(until=date(2026, 1, 1), since=date(2024, 12, 30))
    assert "not both" in refused(since=date(2026, 1, 1), days=3)
    for days in (0, -1, MAX_DAYS + 1, 10**30):
        assert "from 1 to 366" in refused(days=days)
    for zone in ("", "Nowhere/City", "CET", "+02:00", "../etc/passwd", "\x00"):
        assert refused(zone=zone).startswith("tz: ")
    for day in (date.min, date(1969, 12, 31), date.max):
        assert "a day from 1970-01-01" in refused(since=day, until=day)
        assert "a day from 1970-01-01" in refused(until=day, zone="Pacific/Kiritimati")


def test_as_many_days_as_are_allowed_are_taken() -> None:
    assert len(span(days=MAX_DAYS).days) == MAX_DAYS
    assert len(span(since=date(2024, 1, 1), until=date(2024, 12, 31)).days) == MAX_DAYS


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_the_first_and_the_last_day_have_begins_in_every_zone(zone: str) -> None:
    assert span(until=date(1970, 1, 1), zone=zone).days == (date(1970, 1, 1),)
    assert len(span(until=date(9998, 12, 31), zone=zone).starts) == 8


def test_a_date_is_read_in_one_form_only() -> None:
    assert read_day("since", "2026-02-28") == date(2026, 2, 28)
    for text in ("2026-02-29", "20260228", "2026-W01-1", "2026-2-8", " 2026-02-28", "", "today"):
        with pytest.raises(BadUsageQuery, match="since: must be a date such as 2026-01-31"):
            read_day("since", text)
    with pytest.raises(BadUsageQuery):
        read_day("since", "２０２６-02-28")  # noqa: RUF001  # digits of another script


def test_a_run_without_a_price_is_counted_as_such_only_if_it_used_tokens() -> None:
    assert used_by(Usage(1, 10, 2)).unpriced == 1
    assert used_by(Usage(1)).unpriced == 0
    assert used_by(Usage(1, 10, 2, cost_usd=Decimal(0))).unpriced == 0
    assert used_by(None) == Used(runs=1)


def test_money_of_unknown_amount_counts_as_nothing_beside_money_that_is_known() -> None:
    known, unknown = Used(1, cost_usd=Decimal("0.5")), Used(1, input_tokens=9, unpriced=1)
    assert known.plus(unknown) == Used(2, input_tokens=9, cost_usd=Decimal("0.5"), unpriced=1)
    assert unknown.plus(NOTHING_USED) == unknown


def row(agent: str | None, *, day: str = "2026-01-01", **used: object) -> UsageRow:
    return UsageRow({Grouping.AGENT: agent, DAY: day}, Used(**used))  # type: ignore[arg-type]


def test_the_groups_that_cost_most_come_first_then_those_with_most_tokens() -> None:
    rows = [
        row("no price", runs=9),
        row("free", cost_usd=Decimal(0)),
        row("no price, tokens", input_tokens=5, unpriced=1),
        row("dear", cost_usd=Decimal("0.20")),
        row(None, cost_usd=Decimal("0.2")),
    ]
    names = [one.group[Grouping.AGENT] for one in costliest(rows, 9)]
    assert names == [None, "dear", "free", "no price, tokens", "no price"]
    assert costliest(rows, 2) == [rows[4], rows[3]]


def test_days_are_shown_in_their_order_and_what_is_left_out_is_told_together() -> None:
    dear = row("a", day="2026-01-02", runs=1, cost_usd=Decimal(2))
    cheap = row("a", day="2026-01-01", runs=1, cost_usd=Decimal(1))
    whole = Used(5, 1, 7, cost_usd=Decimal("3.5"), unpriced=1)
    query = UsageQuery((DAY, Grouping.AGENT))
    found = report(query, span_of(query, NOW), UsageTable((dear, cheap), whole, left_out=3), {})
    days = [(one.group[DAY], one.used.cost_usd) for one in found.rows]
    assert days == [("2026-01-01", Decimal(1)), ("2026-01-02", Decimal(2))]
    others = Used(3, 1, 7, cost_usd=Decimal("0.5"), unpriced=1, received=0, sent=0)
    assert found.others == others
    assert (found.since, found.until) == (date(2026, 3, 23), date(2026, 3, 29))


COUNTS = {
    (date(2026, 3, 28), AgentName("main")): (3, 2),
    (date(2026, 3, 29), AgentName("main")): (4, 4),
    (date(2026, 3, 29), AgentName("quiet")): (1, 0),
    (date(2026, 3, 29), None): (0, 5),
}


@pytest.mark.parametrize(
    ("by", "left_out", "expected"),
    [
        ((), 0, {(): (8, 11)}),
        (
            (Grouping.AGENT,), 0,
            {("main",): (7, 6), ("idle",): (0, 0), ("quiet",): (1, 0), (None,): (0, 5)},
        ),
        ((Grouping.AGENT,), 2, {("main",): (7, 6), ("idle",): (0, 0)}),
        ((Grouping.MODEL,), 0, {("main",): (None, None), ("idle",): (None, None)}),
    ],
    ids=["all", "by agent, also of those without runs", "of some groups", "not by model"],
)  # fmt: skip
def test_messages_are_counted_by_agent_and_day(
    by: tuple[Grouping, ...],
    left_out: int,
    expected: dict[tuple[str | None, ...], tuple[int | None, int | None]],
) -> None:
    groups = [dict.fromkeys(by, name) for name in ("main", "idle")] if by else [{}]
    table = UsageTable(tuple(UsageRow({**one}, Used(1)) for one in groups), Used(4), left_out)
    query = UsageQuery(by)
    found = report(query, span_of(query, NOW), table, COUNTS)
    counts = {tuple(row.group.values()): (row.used.received, row.used.sent) for row in found.rows}
    assert counts == expected
    assert (found.total.received, found.total.sent) == (8, 11)
    if found.others is not None:
        assert (found.others.received, found.others.sent) == (1, 5)


def test_days_have_their_messages() -> None:
    days = [DayTimes(date(2026, 3, 27)), DayTimes(date(2026, 3, 29), 2, used=Used(2))]
    used = [day.used for day in with_messages(days, COUNTS)]
    assert used == [Used(received=0, sent=0), Used(2, received=5, sent=9)]
