"""Messages, for layers that must know of them before they load their routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.deliveries import changes
from goclaw_py.operations.deliveries.operations import Deliveries

DELIVERIES: Final = Noun(
    "deliveries",
    Deliveries,
    pages={
        Least.VIEWER: ("GET /deliveries", "GET /live/deliveries"),
        Least.OPERATOR: (
            "POST /deliveries/all",
            "POST /deliveries/selected",
            "POST /deliveries/outgoing/retry",
            "POST /deliveries/outgoing/drop",
            "POST /deliveries/incoming/retry",
            "POST /deliveries/incoming/drop",
        ),
    },
    plain={"OutboxRow": "external_id"},
    text={"OutboxRow": "error"},
    chat_changes={"retry_dead_letters": changes.RETRY_IN_CHAT},
    notices={"retried": "Retrying {}.", "dropped": "Dropped {}."},
)
