"""``/api/nodes``: the gateways that share a database (SPEC NODE-1)."""

from __future__ import annotations

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import NotFound
from goclaw_py.operations.nodes.operations import NodesView
from tests.unit.web.fake_nodes import AT, DEAD, DRAINING, HERE
from tests.unit.web.harness import Gateway

pytestmark = pytest.mark.real_time


async def test_everything_comes_back_as_it_was(made: Gateway, remote: RemoteControl) -> None:
    assert await remote.nodes.list() == NodesView(AT, HERE.id, (HERE, DRAINING, DEAD))
    assert await remote.nodes.drain("drains") == DRAINING
    assert made.control.calls[-1] == ("ask", DRAINING.id, '{"what": "drain"}')
    with pytest.raises(NotFound, match="no live node 'dead'"):
        await remote.nodes.drain("dead")
