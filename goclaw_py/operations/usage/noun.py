"""Usage, for layers that must know of it before they load its routes, page or command."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.usage.operations import UsageReports

USAGE: Final = Noun(
    "usage",
    UsageReports,
    pages={Least.VIEWER: ("GET /usage", "GET /live/usage")},
    plain={"UsageReport": "zone", "UsageRow": "group"},
    text={"UsageRow": "names"},
)
