"""Outgoing messages and their delivery, and incoming ones that failed (SPEC IO-2, IO-3).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it; ``why`` explains; ``noun`` is for everyone else.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage outgoing messages, and incoming ones that failed."
HELP_OF_INCOMING: Final = "Manage incoming messages that failed."
HELP_OF_OUTGOING: Final = "Manage outgoing messages."
"""The help of the commands. It is here so that a list of commands need not import them."""
