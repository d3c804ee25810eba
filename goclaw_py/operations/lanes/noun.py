"""Lanes, for layers that must know of them before they load their routes or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.operations.declare import Noun
from goclaw_py.operations.lanes.operations import Lanes

LANES: Final = Noun(
    "lanes",
    Lanes,
    plain={
        "GatewayStatus": "release database address",
        "OperatorWarning": "code link",
        "PeerView": "machine release health receives",
        "ProviderView": "cause",
    },
    text={"OperatorWarning": "subject text command"},
)
