"""The gateways that share a database (SPEC NODE-1).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes`` and
``command`` offer it; ``why`` explains; ``noun`` is for everyone else. The health page shows them.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage the gateways (nodes) that share the database."
"""The help of the commands. It is here so that a list of commands need not import them."""
