"""``/api/lanes`` and ``/api/status`` (SPEC LANE-7, LANE-9, OPS-2)."""

from __future__ import annotations

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import NoGateway, NotFound
from goclaw_py.core.ids import LaneName
from tests.unit.web import fakes
from tests.unit.web.harness import Gateway

pytestmark = pytest.mark.real_time


async def test_everything_comes_back_as_it_was(made: Gateway, remote: RemoteControl) -> None:
    assert await remote.lanes.status() == fakes.STATUS
    assert await remote.lanes.list() == fakes.LANES
    done = await remote.lanes.resize(LaneName("main"), 4)
    assert (done.before, done.lane.concurrency) == (1, 4)
    assert made.control.calls == [("status",), ("lanes",), ("resize_lane", "main", 4)]


async def test_a_name_of_any_characters_arrives_whole(made: Gateway, remote: RemoteControl) -> None:
    for name in ("a/b c", "%2F?#", "{name}"):
        with pytest.raises(NotFound, match="there are: main, cron"):
            await remote.lanes.resize(LaneName(name), 4)
        assert made.control.calls[-1] == ("resize_lane", name, 4)


async def test_without_a_gateway_there_are_no_lanes(made: Gateway, remote: RemoteControl) -> None:
    made.control.gateway = False
    for question in (remote.lanes.status(), remote.lanes.list()):
        with pytest.raises(NoGateway, match="no gateway is running here"):
            await question
