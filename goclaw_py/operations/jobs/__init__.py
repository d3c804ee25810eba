"""Jobs: what is to run when, and what came of it (SPEC CRON-2, CRON-11, CRON-15, SEC-3).

``operations`` is what the gateway, its API, chats, tools and commands without a gateway call.
``models`` are requests, ``answers`` responses.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage scheduled jobs."
"""The help of the commands. It is here so that a list of commands need not import them."""
