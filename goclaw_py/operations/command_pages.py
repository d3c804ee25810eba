"""The page of the dashboard that shows, or does, what a command shows or does (SPEC OPS-3)."""

from __future__ import annotations

import shlex
from typing import Final
from urllib.parse import quote

_PAGES: Final = (
    ("config show {}", "/settings?q={}"),
    ("config reset {}", "/settings?q={}"),
    ("deliveries incoming retry {}", "/deliveries#in-{}"),
    ("deliveries retry {}", "/deliveries#out-{}"),
    ("deliveries drop {}", "/deliveries#out-{}"),
    ("doctor", "/health"),
    ("heartbeat add --agent {}", "/heartbeats/{}"),
    ("heartbeat mute off {}", "/heartbeats/{}"),
    ("heartbeat on {}", "/heartbeats/{}"),
    ("heartbeat run {}", "/heartbeats/{}/dry-run"),
    ("heartbeat why {}", "/heartbeats/{}"),
    ("jobs edit {}", "/jobs/{}/edit"),
    ("jobs next --job {}", "/jobs/{}"),
    ("jobs resume {}", "/jobs/{}"),
    ("jobs run {}", "/jobs/{}"),
    ("jobs show {}", "/jobs/{}"),
    ("lanes set", ""),
    ("lanes", "/#lanes"),
    ("nodes", "/health#nodes"),
    ("queue {}", "/sessions/view?key={}"),
    ("runs --active", "/#running"),
    ("runs follow {}", "/sessions/view?key={}"),
    ("runs list", "/runs"),
    ("runs show {}", "/runs/{}"),
    ("status", "/health"),
    ("stop {}", "/sessions/view?key={}"),
    ("why {}", "/why?about={}"),
    ("why", "/why"),
)
"""The first words of commands, each with its page; of two that fit the first one."""
_OF_SAME_NAME: Final = frozenset(
    ("approvals", "deliveries", "logs", "people", "sessions", "usage"),
)
"""Commands whose page is called as they are."""


def page_of(command: str) -> str:
    """Return the path of the page for a command, "" if no page shows or does the same."""
    name, *words = shlex.split(command)
    if name != "goclaw":
        return ""
    for first, page in _PAGES:
        wanted = first.split()
        pairs = list(zip(wanted, words, strict=False))
        if len(pairs) == len(wanted) and all(one in (word, "{}") for one, word in pairs):
            return page.format(*(quote(word, safe="") for one, word in pairs if one == "{}"))
    return f"/{words[0]}" if words[0] in _OF_SAME_NAME else ""


def setting_page(path: str) -> str:
    """Return the path of the page that shows, and edits, a setting or those of a section."""
    return f"/settings?q={quote(path, safe='')}"
