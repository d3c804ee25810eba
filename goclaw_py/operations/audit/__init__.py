"""The audit log: who has changed what (SPEC SEC-9).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it; ``noun`` is for everyone else. ``gateway.audit`` writes it.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Show who has changed what."
"""The help of the commands. It is here so that a list of commands need not import them."""
