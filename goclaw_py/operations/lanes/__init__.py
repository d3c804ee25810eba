"""Lanes of a running gateway, and its state as a whole (SPEC LANE-7, LANE-9, OPS-1).

``operations`` is what the gateway, its API and commands call; without a gateway they are refused.
``routes`` and ``command`` offer it; ``noun`` is for everyone else.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Show lanes with their runs, and change their sizes."
STATUS_HELP: Final = "Show the state of the gateway."
"""Helps of the commands. They are here so that a list of commands need not import them."""
