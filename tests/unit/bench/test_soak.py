"""The soak: what counts as growth, what is counted, what is told. No process is started here."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
import xml.etree.ElementTree as ET
from collections import deque
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.soak import gateway, virtual
from bench.soak.measured import descriptors, figures
from bench.soak.plots import WIDTH, number, plot, span
from bench.soak.report import PAGE, SAMPLES, Soaked, html, judged, write
from bench.soak.retention import shortened
from bench.soak.series import FEWEST, Fold, Point, Series, Trend, Verdict, trend, verdict
from bench.soak.structures import sizes
from bench.soak.townsfolk import Day, Town
from goclaw_py.chat.outbound.rate_limit import RateLimit, TokenWindow
from goclaw_py.core.containers import LruCache
from goclaw_py.core.ids import RunId
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.schedule import retention
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.store import upkeep_rules
from goclaw_py.testing.clock import LoopClock
from tests.support.memory_store import upkeep as memory_upkeep


@pytest.fixture(autouse=True)
def nothing_of_other_tests() -> None:
    """Each sample visits all objects, which would be a million of other tests."""
    gc.freeze()


def points(*values: float) -> list[Point]:
    return [(60.0 * number, value) for number, value in enumerate(values)]


PLAIN = Series("rows", "tables")
SLOW = [1000 + number for number in range(20)]


def judge(series: Series, *values: float) -> Verdict:
    return verdict(series, trend(points(*values)))


# ------------------------------------------------------------------ growth


@pytest.mark.parametrize(
    ("series", "values", "expected"),
    [
        pytest.param(PLAIN, [*range(100, 140, 2)], Verdict.GROWING, id="rises"),
        pytest.param(PLAIN, [*range(0, 100, 20), *[100] * 8], Verdict.FLAT, id="first half only"),
        pytest.param(PLAIN, [*range(140, 100, -2)], Verdict.FLAT, id="falls"),
        pytest.param(PLAIN, SLOW, Verdict.FLAT, id="within its bound"),
        pytest.param(replace(PLAIN, bound=0.001), SLOW, Verdict.GROWING, id="above its bound"),
        pytest.param(replace(PLAIN, slack=2), [1] * 6 + [2] * 4, Verdict.FLAT, id="nobody cares"),
        pytest.param(PLAIN, [*[50, 150] * 9, 60, 160], Verdict.FLAT, id="scatter"),
        pytest.param(PLAIN, [*[0] * 10, *range(10)], Verdict.GROWING, id="from nothing"),
        pytest.param(replace(PLAIN, kept="for ever"), [*range(20)], Verdict.KEPT, id="kept"),
    ],
)
def test_what_counts_as_growth(series: Series, values: list[float], expected: Verdict) -> None:
    assert judge(series, *values) is expected


@pytest.mark.parametrize("count", range(2 * FEWEST - 1))
def test_nothing_is_said_of_too_few_samples(count: int) -> None:
    assert judge(PLAIN, *range(count)) is Verdict.SHORT


@given(st.lists(st.integers(0, 10_000), min_size=2 * FEWEST, max_size=40), st.integers(1, 10_000))
def test_the_unit_does_not_matter(values: list[int], factor: int) -> None:
    assert judge(PLAIN, *values) is judge(PLAIN, *(value * factor for value in values))


@given(st.floats(0.001, 1e9), st.integers(2 * FEWEST, 100))
def test_what_never_changes_is_flat(value: float, count: int) -> None:
    assert judge(replace(PLAIN, bound=0.0), *[value] * count) is Verdict.FLAT


@given(st.floats(-100, 100), st.floats(-1e4, 1e4), st.integers(2 * FEWEST, 60))
def test_the_line_through_a_line_is_that_line(slope: float, start: float, count: int) -> None:
    found = trend([(float(x), start + slope * x) for x in range(count)])
    assert found is not None
    assert found.end[1] == pytest.approx(start + slope * (count - 1), abs=1e-3)
    assert found.error == pytest.approx(0, abs=1e-3)


def test_of_each_stretch_the_least_or_the_median_is_left() -> None:
    samples = [(0.0, 5.0), (10.0, 1.0), (20.0, 9.0), (60.0, 7.0)]
    assert Fold(60.0, least=True)(samples) == [(30.0, 1.0), (90.0, 7.0)]
    assert Fold(60.0)(samples) == [(30.0, 5.0), (90.0, 7.0)]


# ------------------------------------------------------------------ plots and report

NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=30)


@given(NAMES, NAMES, st.lists(st.floats(0, 1e12), max_size=30))
def test_a_plot_is_well_formed_whatever_its_name_is(
    name: str, unit: str, values: list[float]
) -> None:
    series = Series(name, "a & b", unit, points=points(*values))
    found = ET.fromstring(plot(series, series.points, trend(series.points), Verdict.FLAT, 1800.0))
    texts = [one.text or "" for one in found.iter() if one.tag.endswith("text")]
    assert texts[0] == name


def test_a_plot_keeps_within_its_picture() -> None:
    assert [number(value) for value in (0.1234, 99.94, 12345.6)] == ["0.123", "99.9", "12,346"]
    assert [span(value) for value in (90, 1800, 86400)] == ["1.5 min", "30 min", "24 h"]
    series = Series("rows", "tables", points=points(1, 999, 3, 12, 1000, 1001))
    far = Trend((0.0, -500.0), (300.0, 5000.0), 1.0, 0.0)
    found = ET.fromstring(plot(series, series.points, far, Verdict.GROWING, 300.0))
    for line in (one for one in found.iter() if one.tag.endswith("polyline")):
        for pair in line.attrib["points"].split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert 42 <= y <= 148


def a_soak(*series: Series, problems: tuple[str, ...] = ()) -> Soaked:
    return Soaked("soak test", "some <minutes>", Fold(60.0), series, {"messages": 3}, problems)


def growing(name: str = "rows") -> Series:
    return Series(name, "tables", points=points(*range(20)))


def test_one_series_that_grows_or_one_lost_message_is_enough_to_fail() -> None:
    flat = Series("flat", "tables", points=points(*[1] * 20))
    assert judged(a_soak(flat)).passed
    report = judged(a_soak(flat, growing()))
    assert not report.passed
    assert [line.series.name for line in report.growing] == ["rows"]
    assert not judged(a_soak(problems=("a message has no answer",))).passed


def test_connections_to_a_port_are_told_from_other_descriptors() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        before = descriptors(os.getpid(), port)
        with socket.create_connection(("127.0.0.1", port)), socket.socket():
            during = descriptors(os.getpid(), port)
    assert (before.to_port, during.to_port) == (0, 1)
    assert during.others == before.others + 1


def test_the_page_holds_no_markup_of_what_was_measured() -> None:
    page = html(judged(a_soak(growing("<script>"), problems=("<b>lost</b>",))))
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;lost" in page
    assert "<script>" not in page
    assert "http://www.w3.org" in page
    assert page.count("http") == page.count("http://www.w3.org/2000/svg")


def test_page_and_samples_are_written(tmp_path: Path) -> None:
    page = write(judged(a_soak(growing())), tmp_path / "new" / "folder")
    assert page == tmp_path / "new" / "folder" / PAGE
    rows = (page.parent / SAMPLES).read_text().splitlines()
    assert rows[:3] == [
        "group,series,unit,seconds,value",
        "tables,rows,,0.0,0",
        "tables,rows,,60.0,1",
    ]
    assert len(rows) == 21


# ------------------------------------------------------------------ what is counted


class Outer(TokenWindow):
    """Somebody else's class over one of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.nested: dict[str, list[int]] = {"a": [1, 2], "b": [3]}
        self.recent: LruCache[int, int] = LruCache(2)
        self.newest: deque[int] = deque([1, 2, 3], maxlen=5)
        self.call = partial(lambda one: one, TokenWindow())


def test_every_container_is_found_and_counted() -> None:
    outer = Outer()
    for chat in range(3):
        outer.add(f"chat-{chat}", RateLimit(gap_s=1.0, per_minute=5), 0.0)
        outer.recent[chat] = chat
    held = sizes(outer)
    assert held.items["Outer._gaps"] == 3
    assert held.items["Outer.nested"] == 2
    assert held.items["Outer.nested[]"] == 3
    assert held.items["_Window.all"] == 3
    assert held.limits == {"Outer.recent": 2, "Outer.newest": 5}
    # Behind a call, too: another one, which holds nothing.
    assert held.items["TokenWindow._gaps"] == 0
    # What many hold counts once; what is apart is not looked into.
    assert sizes(outer, outer, [outer]).items == held.items
    assert not sizes(outer, apart=("goclaw_py.chat.outbound.",)).items


def test_things_are_kept_for_minutes_only_within_the_block() -> None:
    def constants() -> list[object]:
        copies = vars(upkeep_rules), vars(memory_upkeep)
        return [*(one["FINISHED_KEPT"] for one in copies), job_rules.KEPT, retention.TIDY_S]

    before = constants()
    with shortened(timedelta(minutes=3), 7.0):
        assert constants() == [timedelta(minutes=3)] * 3 + [7.0]
    assert constants() == before


def test_figures_of_all_labels_count_together() -> None:
    text = (
        "# HELP goclaw_x Words.\n# TYPE goclaw_x counter\n"
        'goclaw_x{a="1"} 2.0\ngoclaw_x{a="2 }"} 3.5\ngoclaw_y 1e3\npython_z 4.0\nnonsense\n'
    )
    assert figures(text) == {"goclaw_x": 5.5, "goclaw_y": 1000.0}


@pytest.mark.real_time
async def test_a_gateway_notes_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "EVERY_S", 0.001)
    monkeypatch.setattr(gateway, "_TICK_S", 0.001)
    file, pacer = tmp_path / "notes", TokenWindow()
    assert list(gateway.read(file)) == []
    pacer.add("chat", RateLimit(gap_s=1.0), 0.0)
    noting = asyncio.create_task(gateway.note_all(pacer, file))
    while len(notes := list(gateway.read(file))) < 2:
        await asyncio.sleep(0.01)
    noting.cancel()
    await asyncio.gather(noting, return_exceptions=True)
    counted, other = notes[:2]
    assert counted.held["TokenWindow._gaps"] == 1
    assert not other.held
    assert counted.tasks == 2


# ------------------------------------------------------------------ the virtual day


@pytest.mark.parametrize("night", [0.2, 0.35])
def test_a_day_has_its_mean_and_a_quiet_night(night: float) -> None:
    day = Day(7200.0, 2.0, night)
    rates = [day.per_s(float(at_s)) for at_s in range(7200)]
    assert sum(rates) / 7200 == pytest.approx(2.0, rel=0.01)
    assert max(rates[int(7200 * (1 - night)) + 1 :]) == pytest.approx(0.04)
    assert day.per_s(9_000.0) == pytest.approx(day.per_s(1_800.0))


def test_an_answer_that_comes_twice_is_found_out() -> None:
    town = Town(random.Random(1), LoopClock())
    town.waiting = {"#1#", "#2#"}
    town.hear(["About #1#: yes", "nothing"])
    town.hear(["About #1#: yes"])
    assert (town.answered, town.doubled, town.waiting) == (1, ["#1#"], {"#2#"})


def test_a_short_time_is_played_and_every_message_is_answered() -> None:
    tiny = virtual.Plans(hours=0.1, day_s=180.0, per_s=0.3, kept_s=60.0, tidy_s=20.0, sample_s=60.0)
    report = judged(virtual.soak(tiny))
    facts = report.soaked.facts
    assert facts["messages"] == facts["answered once"] > 20
    assert not report.soaked.problems
    known = {line.series.name for line in report.lines}
    assert {"resident memory", "Mailboxes._rows", "MemoryDatabase.inbox"} <= known


def test_a_leak_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget_to_close(self: BudgetTracker, run_id: RunId) -> None:
        """The account stays."""

    monkeypatch.setattr(BudgetTracker, "close", forget_to_close)
    plans = virtual.Plans(
        hours=0.15, day_s=60.0, per_s=0.2, kept_s=60.0, tidy_s=20.0, sample_s=60.0
    )
    growing = judged(virtual.soak(plans)).growing
    assert "BudgetTracker._accounts" in [line.series.name for line in growing]
