"""The commands by name. A module is imported only when one of its commands is used or listed."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

PLACES: Final = {
    "init": "system.gateway:init",
    "run": "system.gateway:run",
    "chat": "chats.chat:chat",
    "status": "system.gateway:status",
    "send": "chats.sessions:send",
    "stop": "system.gateway:stop",
    "lanes": "runs.lanes:app",
    "nodes": "system.nodes:app",
    "queue": "messages.queue:queue",
    "why": "runs.why:why",
    "sessions": "chats.sessions:app",
    "runs": "runs.commands:app",
    "usage": "runs.usage:usage",
    "inbox": "messages.inbox:app",
    "outbox": "messages.outbox:app",
    "cron": "cron.commands:app",
    "heartbeat": "heartbeat.commands:app",
    "event": "heartbeat.commands:event",
    "pairing": "chats.pairing:app",
    "groups": "chats.groups:app",
    "config": "system.config:app",
    "simulate": "simulate.commands:simulate",
    "migrate": "system.gateway:migrate",
    "backup": "system.backup:backup",
    "restore": "system.backup:restore",
    "doctor": "doctor.command:doctor",
    "version": "system.gateway:version",
}
"""In the order of ``goclaw --help``: the module in this package, and its function or group."""

_IDS: Final = {"ignore_unknown_options": True}
"""Ids of groups begin with a minus, so they look like options."""


class CommandTree(TyperGroup):
    """All commands, loaded lazily: importing all takes longer than running most of them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Made(PLACES)

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return list(self.commands)


class _Made(UserDict[str, Any]):
    """Commands by name. A value is the import path until the command is first used."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            self.data[name] = found = _command(name, found)
        return found


def _command(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"goclaw_py.cli.{module}"), attribute)
    # As in ``entry``: avoid the import of rich.
    around = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name, context_settings=_IDS if name == "why" else None)(found)
    return typer.main.get_group(around).commands[name]
