"""Operations as requests: what their declaration, arguments and records become."""

from __future__ import annotations

from decimal import Decimal

import pytest

from goclaw_py.cli.client.calls import Params, query, remote
from goclaw_py.core.actors import Least
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Target
from goclaw_py.core.values import value
from goclaw_py.operations.declare import operation
from goclaw_py.records import ApprovalQuery, RunFilter


@value(frozen=True, slots=True)
class RunsQuery:
    """Selects runs."""

    only: RunFilter
    limit: int = 50


class Things:
    """A service, of which only the declarations are used."""

    @operation("POST /api/things/retry", Least.OPERATOR, key="retried")
    async def retry(self, ids: list[int]) -> int:
        """Retry things; return their number."""
        raise NotImplementedError


async def test_the_result_is_the_declared_key_of_the_response() -> None:
    sent: list[tuple[object, ...]] = []

    async def send(
        method: str, path: str, body: object = None, params: Params | None = None
    ) -> bytes:
        sent.append((method, path, body, params))
        return b'{"retried": 2}'

    assert await remote(Things, send).retry([3, 4]) == 2
    assert sent == [("POST", "/api/things/retry", {"ids": [3, 4]}, {})]


def test_fields_of_the_filter_of_a_query_are_parameters() -> None:
    """Other records in a query are refused: no parameter has them."""
    wanted = RunsQuery(RunFilter(agent=AgentName("main")), 7)
    assert query(query=wanted) == {"limit": 7, "agent": "main"}
    assert query(least=Decimal("0.50"), most=2.5) == {"least": "0.50", "most": "2.5"}
    with pytest.raises(TypeError, match="asked_in"):
        query(query=ApprovalQuery(asked_in=Target("telegram", "default", "1")))
