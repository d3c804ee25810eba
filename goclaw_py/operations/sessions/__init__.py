"""Sessions: the conversations of chats and jobs, with their queue and history (SPEC OPS-4, OPS-8).

``operations`` is what the gateway, its API and commands without a gateway call; ``live`` is what
only a running gateway can do. ``routes``, ``command`` and ``page`` offer it; ``noun`` is for
everyone else.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage sessions (conversations)."
HELP_OF_SEND: Final = "Send a message to the agent in a session."
HELP_OF_STOP: Final = "Stop the oldest run of a session."
HELP_OF_QUEUE: Final = "Show the queue of a session."
"""The help of the commands. It is here so that a list of commands need not import them."""
