"""The settings of all nodes, and edits of them while the gateways run (SPEC OPS-11).

``live`` has the settings in effect; ``operations`` shows and edits them.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Show, change and check the settings."
"""The help of the commands. It is here so that a list of commands need not import them."""
