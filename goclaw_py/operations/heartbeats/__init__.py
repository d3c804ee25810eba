"""Heartbeats of agents, with their checklists and events (SPEC HB-9, HB-11, HB-13).

``operations`` is what the gateway, its API, chats, tools and commands without a gateway call.
``answers`` are its responses.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage heartbeats (regular checks of HEARTBEAT.md)."
"""The help of the commands. It is here so that a list of commands need not import them."""
