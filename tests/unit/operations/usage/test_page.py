"""The page of usage over time (SPEC OPS-3)."""

from __future__ import annotations

import asyncio
import html
import re
from dataclasses import replace

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.messages import Target
from goclaw_py.core.time.texts import duration
from goclaw_py.runs.usage_report import DayTimes, Grouping, UsageQuery, UsageReport
from goclaw_py.web.pages.charts import BOTTOM, LEFT, TOP, WIDTH, Series, bar_chart
from goclaw_py.web.pages.services import CACHED_FACTOR
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser


def test_bars_stand_in_front_of_each_other_in_the_order_of_time() -> None:
    series = [Series("runs", "told", [4, None, 2]), Series("failed", "bad", [1, 0, 0])]
    chart = bar_chart("Runs", "6", ["a", "b", "c"], series, lambda value: f"{value:g}")
    assert (chart.value, chart.first, chart.last) == ("6", "a", "c")
    high = BOTTOM - TOP
    assert [(bar.words, bar.height) for bar in chart.bars] == [
        ("a: 4 runs", high), ("c: 2 runs", high / 2), ("a: 1 failed", high / 4),
    ]  # fmt: skip
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in chart.bars)
    assert all(bar.y + bar.height == BOTTOM for bar in chart.bars)
    assert [words for _, words in chart.ticks] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("largest", "levels"),
    [
        (4, ["1", "2", "3", "4"]), (7, ["2", "4", "6", "8"]), (61, ["20", "40", "60", "80"]),
        (0.0123, ["0.005", "0.01", "0.015"]), (1_000_000, ["500000", "1e+06"]), (1, ["0.5", "1"]),
    ],
)  # fmt: skip
def test_a_chart_has_two_to_four_lines_at_round_values(largest: float, levels: list[str]) -> None:
    series = [Series("", "told", [largest])]
    chart = bar_chart("Runs", "", ["a"], series, lambda value: f"{value:g}")
    assert [words for _, words in chart.levels] == levels
    assert chart.bars[0].y >= TOP


@pytest.mark.parametrize("largest_s", [0.04, 0.7, 3, 9, 44, 61, 100, 235, 361, 3500, 3601, 86_000])
def test_the_labels_of_times_are_round_and_fit(largest_s: float) -> None:
    """Found by use: lines at 1 min 40 s and 3 min 20 s, of which "min 40 s" was to be seen."""
    chart = bar_chart("", "", ["a"], [Series("", "told", [largest_s])], duration, is_time=True)
    labels = [words for _, words in chart.levels]
    assert 1 <= len(labels) <= 4
    assert all(len(words.split()) == 2 and len(words) * 6 <= LEFT - 6 for words in labels), labels


@pytest.mark.parametrize("values", [[None], [0.0]])
def test_a_chart_without_values_has_no_bars(values: list[float | None]) -> None:
    chart = bar_chart("Runs", "", ["a"], [Series("", "told", values)], str)
    assert (chart.bars, chart.levels) == ((), ())


@pytest.mark.parametrize(
    ("query", "by", "days", "zone"),
    [
        ("", Grouping.AGENT, 7, "UTC"),
        ("range=90d&by=sender&tz=Europe/Berlin", Grouping.SENDER, 90, "Europe/Berlin"),
        ("range=3d", Grouping.AGENT, 3, "UTC"),
        ("range=1000y&by=lane", Grouping.AGENT, 7, "UTC"),
    ],
)
async def test_the_address_selects_days_and_groups(
    browser: Browser, control: FakeControl, query: str, by: Grouping, days: int, zone: str
) -> None:
    assert (await browser.get(f"/usage?{query}")).status_code == 200
    asked = {call[1:] for call in control.calls if call[0] in ("report", "times")}
    assert asked == {(UsageQuery((by,), days=days, zone=zone, hours=days <= 3),)}


async def test_people_are_named_and_each_chart_has_its_values_in_a_table(
    browser: Browser, control: FakeControl
) -> None:
    control.named = KnownNames({Target("telegram", "work", "7"): "Ann <i>"})
    text = (await browser.get("/usage?by=sender")).text
    assert "<bdi>Ann &lt;i&gt;</bdi>" in text
    assert "nobody" in text
    assert "1 failed" in text
    assert "1 min 1 s or less for 95 %" in text
    for count in ("40", "1,234"):
        assert re.search(f'data-value="[0-9]+">{count}<', text)
    assert "Messages, from" in text


@pytest.mark.parametrize(
    ("by", "value", "address"),
    [
        ("sender", "telegram/work/7", "/runs?from={}&sender=telegram%2Fwork%2F7"),
        ("agent", "main", "/runs?from={}&agent=main"),
        ("trigger", "cron", "/runs?from={}&trigger=cron"),
        ("job", "job-1", "/jobs/job-1"),
        ("model", "m", ""),
        ("agent", None, ""),
    ],
)
async def test_a_row_leads_to_what_it_counts(
    *, browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch,
    by: str, value: str | None, address: str,
) -> None:  # fmt: skip
    """Of the days of the page, in its time zone."""
    report = await control.usage.report(UsageQuery((Grouping(by),)))
    row = replace(report.rows[0], group={Grouping(by): value})

    async def reported(query: UsageQuery) -> UsageReport:
        return replace(report, rows=(row,))

    monkeypatch.setattr(type(control.usage), "report", staticmethod(reported))
    said = await browser.says(f"/usage?by={by}&range=7d&tz=Europe/Berlin")
    table = said[said.index('data-sorts="by"') :]
    total = re.search(r'<a href="/runs\?from=([^"&]*)">total', table)
    assert total is not None
    assert total[1].endswith("23%3A00%3A00"), "midnight in Berlin, in UTC"
    body = table[table.index("<tbody>") :].partition("</tbody>")[0]
    assert re.findall('href="([^"]*)"', body) == [address.format(total[1])] * bool(address)


async def test_on_a_phone_rows_are_cards_with_labels(browser: Browser) -> None:
    """Found by use: tables of 1,054 px, where other lists become cards."""
    text = (await browser.get("/usage?by=sender&range=90d")).text
    tables = re.findall("<table.*?</table>", text, re.DOTALL)
    assert len(tables) == 2
    for table in tables:
        assert table.startswith('<table class="stack"')
        # An amount of money needs no word.
        cells = [one for one in re.findall("<td[^>]*>", table) if "wide" not in one]
        unlabelled = [one for one in cells if "data-label" not in one]
        assert len(unlabelled) == table.count("<tr>") - 1


async def test_the_operator_is_called_so(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by use: "console browser", where Sessions says what was asked."""
    control.named = KnownNames({Target("console", "default", "browser"): "Open invoices"})
    report = await control.usage.report(UsageQuery((Grouping.SENDER,)))
    row = replace(report.rows[0], group={Grouping.SENDER: "console/default/browser"})

    async def reported(query: UsageQuery) -> UsageReport:
        return replace(report, rows=(row,))

    monkeypatch.setattr(type(control.usage), "report", staticmethod(reported))
    words = "the operator <small><bdi>in Open invoices</bdi></small>"
    await browser.says("/usage?by=sender", words)


async def test_a_page_that_takes_long_says_so_at_once_and_is_added_up_once(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = control.usage.times

    async def slow(query: UsageQuery) -> list[DayTimes]:
        await asyncio.sleep(3)
        return await times(query)

    monkeypatch.setattr(control.usage, "times", slow)
    first = (await browser.get("/usage?by=sender&tz=Asia/Tokyo")).text
    assert "Adding up." in first
    whole = "/usage?by=sender&amp;tz=Asia%2FTokyo&amp;wait=1"
    assert f'<meta http-equiv="refresh" content="0; url={whole}">' in first
    assert "1 failed" in (await browser.get(html.unescape(whole))).text
    await asyncio.sleep(CACHED_FACTOR * 3 - 3)
    # It is kept: this one needs no patience.
    assert "1 failed" in (await browser.get("/usage?by=sender&tz=Asia/Tokyo")).text
    assert sum(call[0] == "times" for call in control.calls) == 1
    await asyncio.sleep(CACHED_FACTOR)
    assert "Adding up." in (await browser.get("/usage?by=sender&tz=Asia/Tokyo")).text


async def test_a_page_that_fails_slowly_says_why(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(query: UsageQuery) -> list[DayTimes]:
        await asyncio.sleep(1)
        raise StoreUnavailable("the database is away")

    monkeypatch.setattr(control.usage, "times", fail)
    assert "Adding up." in (await browser.get("/usage")).text
    answer = await browser.get("/usage?wait=1")
    assert (answer.status_code, "the database is away" in answer.text) == (503, True)


async def test_all_amounts_of_the_page_have_the_same_digits(browser: Browser) -> None:
    amounts = re.findall(r"\$\d+\.(\d+)", (await browser.get("/usage")).text)
    assert len(amounts) > 2
    assert len({len(digits) for digits in amounts}) == 1


async def test_the_median_of_a_day_is_called_so(browser: Browser) -> None:
    """Beside totals of the whole time it would be read as theirs."""
    said = await browser.says("/usage")
    assert re.search(r"Time to first text <strong>\d+ \w{3}: median ", said)
