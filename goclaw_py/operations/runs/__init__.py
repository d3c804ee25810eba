"""Runs of agents: those in progress, and those that are stored.

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it, with ``timeline`` for the picture; ``noun`` is for everyone else.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "List, show and follow runs of agents."
"""The help of the commands. It is here so that a list of commands need not import them."""
