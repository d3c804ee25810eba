"""The benchmark of the API's lists runs to its end; nothing here is timed."""

from __future__ import annotations

import pytest

from bench.api import __main__ as api
from bench.api import measure
from bench.api.measure import Cost
from tests.support.postgres import Server
from tests.unit.bench.reports import no_server, wanted

pytestmark = pytest.mark.real_time


def test_every_list_is_asked_for_and_has_rows(postgres_server: Server) -> None:
    found = measure.measure(postgres_server.address, 2_000, 2)
    assert set(found) == set(measure.lists(2_000))
    for name, cost in found.items():
        assert cost.rows > 0, name
        assert 0 < cost.first_p50_ms <= cost.first_p99_ms
        assert 0 < cost.deep_p50_ms <= cost.deep_p99_ms
    assert found["runs"].rows == found["sessions"].rows == measure.PAGE
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
    assert measure.quantile([3.0, 1.0, 2.0], 50) == 2
    assert measure.quantile([float(n) for n in range(100)], 99) == 99
