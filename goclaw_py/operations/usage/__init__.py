"""What runs have used, and how many messages there were, on some days (SPEC OPS-1).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it; ``noun`` is for everyone else.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Show runs, messages, tokens and cost."
"""The help of the command. It is here so that a list of commands need not import it."""
