"""The benchmark of the agent loop runs to its end; nothing here is timed."""

from __future__ import annotations

import pytest

from bench.agent import __main__ as agent
from bench.agent.measure import Case, measure, model_server
from tests.unit.bench.reports import assert_all_was_measured, wanted

pytestmark = pytest.mark.real_time


def test_the_agent_loop_is_compared_with_bare_pydantic_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "in_child", lambda _, case, *more: float(len(case.contender)))
    report = agent.report(agent.QUICK)
    assert [*wanted(report).values()] == ["≤ 1.3"] * 4
    assert_all_was_measured(report)


@pytest.mark.parametrize("contender", [agent.OURS, agent.PEER])
@pytest.mark.parametrize("model", agent.MODELS)
def test_both_make_the_same_turns(contender: str, model: str) -> None:
    with model_server() as url:
        assert measure(Case(contender, model, 2), url, turns=3, warm_up=1) > 0
