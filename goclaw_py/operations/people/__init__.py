"""Who may talk to the agent: people, groups, and guests of the web chat (SPEC CHAN-5, CHAN-13).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it; ``noun`` is for everyone else.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage people, groups, and guests of the web chat."
HELP_OF_GROUPS: Final = "Manage in which groups the agent listens."
HELP_OF_WEB: Final = "Manage who may use the web chat and the dashboard."
"""The help of the commands. It is here so that a list of commands need not import them."""
