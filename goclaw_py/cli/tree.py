"""The commands by name. A module is imported only when one of its commands is used or listed."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

from goclaw_py.cli.command_text import command_actor
from goclaw_py.core.actors import acts
from goclaw_py.operations import (
    approvals,
    audit,
    deliveries,
    heartbeats,
    jobs,
    lanes,
    nodes,
    people,
    runs,
    sessions,
    settings,
    usage,
)

PLACES: Final = {
    "init": ("system.init:init", "Set up goclaw: ask a few questions, and write the settings."),
    "run": ("system.gateway:run", "Run the gateway until Ctrl-C or SIGTERM."),
    "service": ("system.service:app", "Manage the service that runs the gateway for this user."),
    "chat": ("chats.chat:chat", "Chat with the agent in this terminal."),
    "status": ("goclaw_py.operations.lanes.command:status", lanes.STATUS_HELP),
    "top": ("top:top", "Show lanes, runs, backlog and warnings live, until q or Ctrl-C."),
    "send": ("goclaw_py.operations.sessions.command:send", sessions.HELP_OF_SEND),
    "stop": ("goclaw_py.operations.sessions.command:stop", sessions.HELP_OF_STOP),
    "lanes": ("goclaw_py.operations.lanes.command:app", lanes.HELP),
    "nodes": ("goclaw_py.operations.nodes.command:app", nodes.HELP),
    "queue": ("goclaw_py.operations.sessions.command.queue:queue", sessions.HELP_OF_QUEUE),
    "why": ("runs.why:why", "Explain why something did or did not happen, and what to do."),
    "sessions": ("goclaw_py.operations.sessions.command:app", sessions.HELP),
    "agents": ("system.lists:agents", "List the agents of the settings."),
    "models": ("system.lists:models", "List the models of the settings."),
    "channels": ("system.lists:channels", "List the channels of the settings."),
    "runs": ("goclaw_py.operations.runs.command:app", runs.HELP),
    "approvals": ("goclaw_py.operations.approvals.command:app", approvals.HELP),
    "usage": ("goclaw_py.operations.usage.command:usage", usage.HELP),
    "inbox": ("goclaw_py.operations.deliveries.command.inbox:app", deliveries.INBOX_HELP),
    "outbox": ("goclaw_py.operations.deliveries.command.outbox:app", deliveries.OUTBOX_HELP),
    "cron": ("goclaw_py.operations.jobs.command.commands:app", jobs.HELP),
    "heartbeat": ("goclaw_py.operations.heartbeats.command.commands:app", heartbeats.HELP),
    "event": (
        "goclaw_py.operations.heartbeats.command.commands:event",
        "Send an event to an agent.",
    ),
    "pairing": ("goclaw_py.operations.people.command:app", people.HELP),
    "groups": ("goclaw_py.operations.people.command.groups:app", people.HELP_OF_GROUPS),
    "web": ("web:app", people.HELP_OF_WEB),
    "audit": ("goclaw_py.operations.audit.command:app", audit.HELP),
    "config": ("goclaw_py.operations.settings.command:app", settings.HELP),
    "simulate": (
        "simulate.commands:simulate",
        "Forecast runs of jobs and heartbeats, and their cost.",
    ),
    "migrate": ("system.gateway:migrate", "Apply pending database migrations."),
    "backup": ("system.backup:backup", "Back up database, workspaces and settings to a file."),
    "restore": ("system.backup:restore", "Restore a backup."),
    "doctor": ("doctor.command:doctor", "Check installation, settings, database and channels."),
    "logs": ("system.logs:logs", "Show the log of the gateway."),
    "open": ("system.dashboard:open_", "Open the dashboard in a browser, and print its address."),
    "version": ("system.gateway:version", "Print the version of goclaw_py."),
}
"""In the order of ``goclaw --help``: the module in this package, its function or group, its line.

The line is here so that ``--help`` need not import all commands; a test compares it.
"""

_IDS: Final = {"ignore_unknown_options": True}
"""Ids of groups begin with a minus, so they look like options."""


class CommandTree(TyperGroup):
    """All commands, loaded lazily: importing all takes longer than running most of them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Made({name: place for name, (place, _) in PLACES.items()})

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: object, formatter: Any) -> None:
        """Write the list of commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in PLACES.items()])


class _Made(UserDict[str, Any]):
    """Commands by name. A value is the import path until the command is first used."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            self.data[name] = found = _command(name, found)
            _prepare(found)
        return found


def _prepare(command: Any) -> None:
    """Let a command say who runs it, for the audit log, and refuse texts of another encoding.

    Nothing could send or store such texts; paths may contain such bytes.
    """
    for inner in getattr(command, "commands", {}).values():
        _prepare(inner)
    invoke = command.invoke

    def invoke_with_text(ctx: Any) -> Any:
        for param in command.params:
            given = ctx.params.get(param.name)
            words = given if isinstance(given, list | tuple) else [given]
            texts = (word for word in words if isinstance(word, str))
            if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
                refused = "is not text in the encoding of this terminal"
                raise typer.BadParameter(refused, ctx=ctx, param=param)
        with acts(command_actor(ctx)):
            return invoke(ctx)

    command.invoke = invoke_with_text


def _command(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    is_noun = module.startswith("goclaw_py.operations.")
    found = getattr(import_module(module if is_noun else f"goclaw_py.cli.{module}"), attribute)
    # As in ``entry``: avoid the import of rich.
    around = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name, context_settings=_IDS if name == "why" else None)(found)
    return typer.main.get_group(around).commands[name]
