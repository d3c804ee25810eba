"""Sessions, for layers that must know of them before they load their routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.sessions import changes
from goclaw_py.operations.sessions.operations import Sessions

SESSIONS: Final = Noun(
    "sessions",
    Sessions,
    pages={
        Least.VIEWER: ("GET /sessions", "GET /live/sessions"),
        Least.TEXT: ("GET /sessions/view", "GET /live/session"),
        Least.OPERATOR: ("POST /sessions/fork", "POST /sessions/reset"),
    },
    plain={"Aside": "id replaces", "HistoryEntry": "format", "SessionFork": "chat"},
    text={"Aside": "text", "HistoryEntry": "text native", "Session": "pinned"},
    notices={"reset": "Started a new conversation."},
    chat_changes={
        "reset_session": changes.RESET_IN_CHAT,
        "undo_turn": changes.UNDO_IN_CHAT,
        "choose_mode": changes.MODE_IN_CHAT,
    },
)
