"""The answer to ``/help``."""

from __future__ import annotations

from goclaw_py.core.chat_commands import MENU

_HELP = (
    ("Running tasks", ("stop", "stopall", "status", "queue", "approve", "deny")),
    ("This conversation", ("new", "undo", "usage", "whoami", "help")),
    ("Jobs and reminders", ("jobs", "timezone")),
    ("Background checklist (heartbeat)", ("heartbeat", "mute")),
)
_EXAMPLES = (
    "Examples:",
    "/jobs pause 2 - pause the second job of /jobs",
    "/timezone Europe/Paris - set your time zone",
    "/heartbeat add every 2h: is the build green?",
    "/mute until 18:00",
    "Reply /stop to one of your messages to stop only that one.",
)


def help_text() -> str:
    """Return the answer to ``/help``."""
    menu = dict(MENU)
    lines = ["Write to me in plain words, for example: remind me in 20 minutes to call Ann."]
    for group, names in _HELP:
        lines += ["", f"{group}:", *(f"/{name} - {menu[name]}" for name in names)]
    return "\n".join([*lines, "", *_EXAMPLES])
