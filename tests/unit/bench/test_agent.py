"""The benchmark of the agent loop runs to its end; nothing here is timed."""

from __future__ import annotations

import pytest

from bench.agent import __main__ as agent
from bench.agent.measure import Case, measure, model_server

pytestmark = pytest.mark.real_time


def test_the_agent_loop_is_compared_with_bare_pydantic_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "in_child", lambda _, case, *more: float(len(case.contender)))
    report = agent.report(agent.QUICK)
    wanted = [f.wanted for line in report.lines for f in line.figures if f.wanted is not None]
    assert [str(one) for one in wanted] == ["≤ 1.3"] * 4
    assert all(len(f.values) == 1 for line in report.lines for f in line.figures)


@pytest.mark.parametrize("contender", [agent.OURS, agent.PEER])
@pytest.mark.parametrize("model", agent.MODELS)
def test_both_make_the_same_turns(contender: str, model: str) -> None:
    with model_server() as url:
        assert measure(Case(contender, model, 2), url, turns=3, warm_up=1) > 0


def test_an_unknown_number_of_rounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--rounds", "0"])
    with pytest.raises(SystemExit):
        agent.main()
