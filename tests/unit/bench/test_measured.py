"""Each of these benchmarks runs to its end; nothing here is timed."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from importlib.util import find_spec
from zoneinfo import ZoneInfo

import pytest

from bench.agent import __main__ as agent
from bench.agent.measure import Case, model_server
from bench.agent.measure import measure as measure_agent
from bench.api import __main__ as api
from bench.api import measure as lists
from bench.api.measure import Cost
from bench.cron import __main__ as cron
from bench.cron.contenders import CONTENDERS as CRON_CONTENDERS
from bench.inbox import __main__ as inbox
from bench.inbox.contenders import CONTENDERS as INBOX_CONTENDERS
from bench.inbox.measure import cpu_s
from bench.scheduler import debounce, dispatch, idle, stop
from bench.scheduler.child import in_child, loops
from bench.scheduler.contenders import CONTENDERS, nothing
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, ratios
from bench.scheduler.sizes import TINY
from tests.support.postgres import Server, run_sql
from tests.unit.bench.reports import assert_all_was_measured, no_server, wanted

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Each measurement collects garbage first: not that of thousands of tests again and again."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_dispatch_compares_all_contenders_on_all_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    # Starting a Python for each of many tiny measurements would take a minute.
    monkeypatch.setattr(dispatch, "in_child", lambda measure, *a: measure(*a))
    report = dispatch.report(replace(TINY, rounds=2))
    assert_all_was_measured(report)
    labels = [line.label for line in report.lines]
    for loop in loops():
        for name in CONTENDERS:
            assert f"{loop}, lane 2, {name}" in labels
            assert f"{loop}, lane 30, {name}, delays" in labels
        assert f"{loop}, lane 2, goclaw_py / aiojobs" in labels
    assert wanted(report) == {
        (f"{loop}, lane 2, goclaw_py / {peer}", "by CPU"): bound
        for loop in loops()
        for peer, bound in (("floor", "≥ 0.65"), ("semaphore", "≥ 1.5"))
    }


def test_a_contender_that_loses_messages_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lazy(lane: int, batches: object, work: object) -> object:
        return await CONTENDERS["floor"](lane, dispatch.at_once([("ann", 0)]), nothing)

    monkeypatch.setitem(CONTENDERS, "lazy", lazy)
    with pytest.raises(RuntimeError, match="lazy was given 20 messages"):
        dispatch.measure_rate(dispatch.Case("lazy", 2, "asyncio"), TINY)


def test_stop_measures_every_session() -> None:
    report = stop.report(TINY)
    assert_all_was_measured(report)
    assert wanted(report) == {("one after the other", "p99"): "< 5"}
    found = stop.measure(TINY)
    for reaction in (found.apart, found.at_once):
        assert 0 < reaction.p50_ms <= reaction.p99_ms <= reaction.max_ms


def test_debounce_measures_speed_and_weight() -> None:
    report = debounce.report(TINY)
    assert_all_was_measured(report)
    assert wanted(report) == {
        ("debouncing itself", "per CPU second"): "≥ 1,000,000",
        ("debouncing itself", "per armed session"): "≤ 400",
    }
    weight = debounce.measure_weight(TINY)
    assert 0 < weight.collector < weight.submit


def test_idle_measures_what_remains() -> None:
    report = idle.report(TINY)
    assert_all_was_measured(report)
    assert wanted(report) == {
        ("idle session", ""): "≤ 1,536",
        ("one-shot sessions", "growth"): "< 20",
    }


def test_each_measurement_has_a_process_of_its_own() -> None:
    mine, first, second = os.getpid(), in_child(os.getpid), in_child(os.getpid)
    assert len({mine, first, second}) == 3


ZONE = ZoneInfo("Europe/Berlin")


def test_each_expression_is_measured_against_what_is_wanted() -> None:
    report = cron.report(cron.QUICK)
    bounds = [*wanted(report).values()]
    assert bounds == ["≤ 50"] * len(cron.ORDINARY) + ["≤ 5,000"] * len(cron.WORST)
    assert_all_was_measured(report)


@pytest.mark.parametrize("name", CRON_CONTENDERS)
def test_all_find_the_same_ordinary_occurrence(name: str) -> None:
    following = CRON_CONTENDERS[name]("30 9 * * *", ZONE)
    assert following(datetime(2026, 1, 5, 9, tzinfo=ZONE)) == datetime(
        2026, 1, 5, 9, 30, tzinfo=ZONE
    )


def test_the_agent_loop_is_compared_with_bare_pydantic_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "in_child", lambda _, case, *more: float(len(case.contender)))
    report = agent.report(agent.QUICK)
    assert [*wanted(report).values()] == ["≤ 1.3"] * 4
    assert_all_was_measured(report)


@pytest.mark.parametrize("contender", [agent.OURS, agent.PEER])
@pytest.mark.parametrize("model", agent.MODELS)
def test_both_make_the_same_turns(contender: str, model: str) -> None:
    with model_server() as url:
        assert measure_agent(Case(contender, model, 2), url, turns=3, warm_up=1) > 0


def test_storing_steps_is_compared_with_not_storing_them(
    monkeypatch: pytest.MonkeyPatch, postgres_server: Server
) -> None:
    asyncio.run(run_sql(postgres_server.address, "create database bench_journal"))
    monkeypatch.setattr(agent, "in_child", lambda measure, *more: measure(*more))
    monkeypatch.setattr(agent, "server", lambda: nullcontext(postgres_server.at("bench_journal")))
    report = agent.journal_report(agent.QUICK)
    assert [*wanted(report).values()] == ["≤ 2", "≤ 0.4"]
    assert_all_was_measured(report)


def test_every_list_is_asked_for_and_has_rows(postgres_server: Server) -> None:
    found = lists.measure(postgres_server.address, 2_000, 2)
    assert set(found) == set(lists.lists(2_000))
    for name, cost in found.items():
        assert cost.rows > 0, name
        assert 0 < cost.first_p50_ms <= cost.first_p99_ms
        assert 0 < cost.deep_p50_ms <= cost.deep_p99_ms
    assert found["runs"].rows == found["sessions"].rows == lists.PAGE
    assert found["runs?agent, few"].rows == 2
    assert found["outbox?run"].rows == 1


def test_the_report_says_what_was_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = Cost(1, 2, 3, 4, 50)
    monkeypatch.setattr(api, "server", no_server)
    monkeypatch.setattr(api, "in_child", lambda *_: {"runs": cost, "runs/timeline": cost})
    report = api.lists(api.QUICK)
    _, timeline = report.lines
    assert [*wanted(report).values()] == ["< 20", "< 20"]
    assert not any(figure.wanted for figure in timeline.figures)


def test_quantiles_are_values_that_were_measured() -> None:
    assert lists.quantile([3.0, 1.0, 2.0], 50) == 2
    assert lists.quantile([float(n) for n in range(100)], 99) == 99


HERE = tuple(name for name in INBOX_CONTENDERS if find_spec(name) is not None)
"""Peers are installed for benchmarks only."""


def test_everybody_stores_messages_and_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "in_child", lambda measure, *a: measure(*a))
    report = inbox.report(inbox.Sizes(rounds=1, seconds=0.05, callers=(1, 3), contenders=HERE))
    labels = [line.label for line in report.lines]
    for callers in (1, 3):
        assert {f"{callers:3} callers, {name}" for name in HERE} <= set(labels)
    assert sum("/" in label for label in labels) == 2 * (len(HERE) - 1)
    assert_all_was_measured(report)
    for line in report.lines:
        for figure in line.figures:
            assert figure.unit.startswith("ms") or min(figure.values) > 0


def test_our_figures_of_a_hundred_callers_have_bounds() -> None:
    assert (str(inbox.RATE[100]), str(inbox.P99_MS[100])) == ("≥ 15,000", "< 10")


def test_the_cpu_of_a_process_and_its_children_is_counted() -> None:
    begin = cpu_s(os.getpid())
    while cpu_s(os.getpid()) - begin < 0.02:
        sum(range(100_000))
    assert cpu_s(2**30) == 0


@pytest.mark.parametrize(
    ("sign", "met", "missed"),
    [(Sign.AT_LEAST, 2.0, 1.9), (Sign.AT_MOST, 2.0, 2.1), (Sign.BELOW, 1.9, 2.0)],
)
def test_a_bound_is_met_or_missed(sign: Sign, met: float, missed: float) -> None:
    assert Wanted(sign, 2.0).is_met(met)
    assert not Wanted(sign, 2.0).is_met(missed)


def test_the_median_over_the_rounds_is_judged_and_a_miss_is_told_loudly() -> None:
    figure = Figure("x", [1.0, 9.0, 2.0], "ms", Wanted(Sign.BELOW, 5.0))
    assert figure.reached
    assert figure.text() == "x 2 ms (1 to 9; wanted < 5: reached)"
    figure = Figure("x", [0.5], wanted=Wanted(Sign.AT_LEAST, 0.65))
    assert figure.text() == "x 0.5 (0.5 to 0.5; wanted ≥ 0.65: MISSED)"
    assert ratios([1.0, 8.0], [2.0, 4.0]) == [0.5, 2.0]


def test_lines_for_people_come_before_one_line_for_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rate = Figure("rate", [123456.789], "runs")
    Report("dispatch", "what was done", 1, [Line("ours", (rate,))]).show()
    *people, program = capsys.readouterr().out.splitlines()
    assert people == ["", "dispatch: what was done", "  ours  rate 123,457 runs"]
    told = json.loads(program)
    assert (told["bench"], told["rounds"]) == ("dispatch", 1)
    spread = {"median": 123457, "min": 123457, "max": 123457}
    figure = {"name": "rate", "unit": "runs", **spread, "wanted": None, "reached": None}
    assert told["lines"] == [{"label": "ours", "figures": [figure]}]
