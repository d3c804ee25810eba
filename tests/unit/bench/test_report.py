"""What a benchmark prints."""

from __future__ import annotations

import json

import pytest

from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, ratios


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
