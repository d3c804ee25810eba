"""People, for layers that must know of them before they load their routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.people import changes
from goclaw_py.operations.people.operations import People

PEOPLE: Final = Noun(
    "people",
    People,
    pages={
        Least.VIEWER: ("GET /people", "GET /live/people"),
        Least.ADMIN: (
            "POST /people/invite",
            "POST /people/approve",
            "POST /people/revoke",
            "POST /people/groups",
        ),
    },
    plain={
        "Chat": "channel account chat",
        "DirectAccess": "channel account",
        "LastActivity": "sender_id",
        "PairingApplicant": "channel account chat",
        "Person": "channel account",
        "WebGuest": "name",
        "WebInvitation": "name",
    },
    text={"Chat": "name gone", "WebInvitation": "path"},
    chat_changes={"decide": changes.DECIDE_IN_CHAT},
    notices={"approved": "Approved {}."},
)
