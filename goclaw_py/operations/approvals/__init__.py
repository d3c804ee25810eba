"""Questions of runs about their tool calls, and what the answers of people allow (SPEC AGENT-11).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it; ``why`` explains; ``noun`` is for everyone else.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage tool calls that need the approval of a person."
"""The help of the commands. It is here so that a list of commands need not import them."""
