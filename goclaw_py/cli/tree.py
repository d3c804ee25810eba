"""The commands by name; a module is imported when one of its commands is called or listed."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

PLACES: Final = {
    "init": "setup:init",
    "run": "gateway:run",
    "chat": "chat:chat",
    "status": "gateway:status",
    "send": "send:send",
    "stop": "gateway:stop",
    "lanes": "lanes:app",
    "nodes": "nodes:app",
    "queue": "queue:queue",
    "why": "why:why",
    "sessions": "sessions:app",
    "runs": "runs:app",
    "usage": "usage:usage",
    "inbox": "inbox:app",
    "outbox": "outbox:app",
    "cron": "cron:app",
    "heartbeat": "heartbeat:app",
    "event": "heartbeat:event",
    "pairing": "pairing:app",
    "groups": "groups:app",
    "config": "config:app",
    "simulate": "simulate:simulate",
    "migrate": "database:migrate",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "doctor": "doctor.command:doctor",
    "version": "setup:version",
}
"""In the order of ``goclaw --help``: the module below this package, and its function or group."""

_IDS: Final = {"ignore_unknown_options": True}
"""Ids of groups begin with a minus."""


class Commands(TyperGroup):
    """All commands. To make every one of them takes longer than most of them work."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Made(PLACES)

    def list_commands(self, ctx: object) -> list[str]:
        """Their names, in the order of the help."""
        del ctx
        return list(self.commands)


class _Made(UserDict[str, Any]):
    """Commands by name. Where one has not been asked for yet, its place stands."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            self.data[name] = found = _command(name, found)
        return found


def _command(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"goclaw_py.cli.{module}"), attribute)
    # As in ``entry``: rich would be imported.
    around = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name, context_settings=_IDS if name == "why" else None)(found)
    return typer.main.get_group(around).commands[name]
