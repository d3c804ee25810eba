"""The commands by name. A module is imported only when one of its commands is used or listed."""

from __future__ import annotations

from collections import UserDict
from functools import cache
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

_OPERATIONS: Final = "goclaw_py.operations"

SECTIONS: Final = {
    "Talk": {
        "chat": ("chats.chat:chat", "Chat with the agent in this terminal."),
        "send": (f"{_OPERATIONS}.sessions.command:send", sessions.HELP_OF_SEND),
        "stop": (f"{_OPERATIONS}.sessions.command:stop", sessions.HELP_OF_STOP),
        "event": (
            f"{_OPERATIONS}.heartbeats.command.commands:event",
            "Send an agent a text for its next heartbeat run.",
        ),
    },
    "Look": {
        "status": (f"{_OPERATIONS}.lanes.command:status", lanes.STATUS_HELP),
        "top": ("top.app:top", "Show lanes, runs and the log live; open and stop runs."),
        "why": ("runs.why:why", "Explain why something did or did not happen, and what to do."),
        "runs": (f"{_OPERATIONS}.runs.command:app", runs.HELP),
        "queue": (f"{_OPERATIONS}.sessions.command.queue:queue", sessions.HELP_OF_QUEUE),
        "usage": (f"{_OPERATIONS}.usage.command:usage", usage.HELP),
        "audit": (f"{_OPERATIONS}.audit.command:app", audit.HELP),
        "logs": ("system.logs:logs", "Show the log of the gateway."),
        "open": (
            "system.dashboard:open_",
            "Open the dashboard in a browser, and print its address.",
        ),
        "simulate": (
            "simulate.commands:simulate",
            "Forecast runs of jobs and heartbeats, and their cost.",
        ),
    },
    "Change": {
        "people": ("people:app", people.HELP),
        "sessions": (f"{_OPERATIONS}.sessions.command:app", sessions.HELP),
        "approvals": (f"{_OPERATIONS}.approvals.command:app", approvals.HELP),
        "deliveries": (f"{_OPERATIONS}.deliveries.command:app", deliveries.HELP),
        "jobs": (f"{_OPERATIONS}.jobs.command.commands:app", jobs.HELP),
        "heartbeat": (f"{_OPERATIONS}.heartbeats.command.commands:app", heartbeats.HELP),
        "lanes": (f"{_OPERATIONS}.lanes.command:app", lanes.HELP),
        "nodes": (f"{_OPERATIONS}.nodes.command:app", nodes.HELP),
    },
    "Set up": {
        "init": ("system.init:init", "Set up goclaw: ask a few questions, and write the settings."),
        "run": ("system.gateway:run", "Run the gateway until Ctrl-C or SIGTERM."),
        "service": (
            "system.service:app",
            "Manage the service that runs the gateway for this user.",
        ),
        "config": ("system.config:app", settings.HELP),
        "doctor": (
            "doctor.command:doctor",
            "Check installation, settings, database and channels.",
        ),
        "backup": (
            "system.backup:backup",
            "Back up database, workspaces and settings to a file.",
        ),
        "restore": ("system.backup:restore", "Restore a backup."),
        "migrate": ("system.gateway:migrate", "Apply pending database migrations."),
    },
}
"""In the order of ``goclaw --help``: the module in this package, its function or group, its line.

The line is here so that ``--help`` need not import all commands; a test compares it.
"""

OLD_NAMES: Final = {
    "cron": ("jobs", f"{_OPERATIONS}.jobs.command.commands:app"),
    "pairing": ("people", f"{_OPERATIONS}.people.command:app"),
    "groups": ("people groups", f"{_OPERATIONS}.people.command.groups:app"),
    "web": ("people web", "people:web"),
    "inbox": ("deliveries incoming", f"{_OPERATIONS}.deliveries.command.inbox:app"),
    "outbox": ("deliveries", f"{_OPERATIONS}.deliveries.command.outbox:app"),
    "agents": ("config agents", "system.lists:old_agents"),
    "models": ("config models", "system.lists:old_models"),
    "channels": ("config channels", "system.lists:old_channels"),
}
"""Names that work until 1.0 and are in no list, with the names that replace them."""

_HIDDEN: Final = {
    "version": ("system.gateway:version", "Print the version of goclaw_py."),
}
"""``goclaw --version`` prints it, too; this command has ``--json``."""

_VALUES: Final = {
    **dict.fromkeys(("at", "since", "until"), "TIME"),
    **dict.fromkeys(("limit", "lines", "max_runs", "number", "revision"), "N"),
    **dict.fromkeys(("message", "search", "subject"), "TEXT"),
    **dict.fromkeys(("html", "key_file", "token_file"), "FILE"),
    **dict.fromkeys(("timezone", "tz"), "ZONE"),
    "base_url": "URL",
    "cron": "EXPRESSION",
    "every": "INTERVAL",
    "notify": "WHEN",
    "path": "SETTING",
    "to": "TARGET",
    "wait": "SECONDS",
    "who": "PERSON",
}
"""What the help calls the values of options and arguments; others by their own names."""

_DEFAULTS: Final = ("list", "status", "show")
"""What a noun alone does: ``goclaw jobs`` is ``goclaw jobs list``."""

_IDS: Final = {"ignore_unknown_options": True}
"""Ids of groups begin with a minus, so they look like options."""


class CommandTree(TyperGroup):
    """All commands, loaded lazily: importing all takes longer than running most of them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        sections = [*SECTIONS.values(), _HIDDEN]
        self.commands = _Made(
            {name: place for section in sections for name, (place, _) in section.items()}
        )
        # Apart from the others, so that nothing lists or suggests them.
        self.old_commands = _Made({name: place for name, (_, place) in OLD_NAMES.items()})

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name or its old name, None if there is none."""
        return super().get_command(ctx, cmd_name) or self.old_commands.get(cmd_name)

    def format_commands(self, ctx: object, formatter: Any) -> None:
        """Write the list of commands without importing them."""
        del ctx
        width = max(len(name) for section in SECTIONS.values() for name in section)
        for title, section in SECTIONS.items():
            with formatter.section(title):
                # Padded, so that the texts of all sections begin in one column.
                rows = [(name.ljust(width), line) for name, (_, line) in section.items()]
                formatter.write_dl(rows)


class _Made(UserDict[str, Any]):
    """Commands by name, made from their import paths when they are first used."""

    def __getitem__(self, name: str) -> Any:
        return _command(name, super().__getitem__(name))


def _mark_as_old(command: Any, new_name: str) -> None:
    """Add the new name to the help of a command, and of those below it."""
    command.help = f"{command.help}\n\nOld name of {new_name}; it works until 1.0."
    below = getattr(command, "commands", {})
    for name, inner in below.items():
        # A former group of one command has become this command.
        _mark_as_old(inner, new_name if len(below) == 1 else f"{new_name} {name}")


def _prepare(command: Any) -> None:
    """Let a command say who runs it, for the audit log, and refuse texts of another encoding.

    Nothing could send or store such texts; paths may contain such bytes.
    """
    for inner in getattr(command, "commands", {}).values():
        _prepare(inner)
    _show_by_default(command)
    _name_values(command)
    invoke = command.invoke

    def invoke_with_text(ctx: Any) -> Any:
        for param in command.params:
            given = ctx.params.get(param.name)
            words = given if isinstance(given, list | tuple) else [given]
            texts = (word for word in words if isinstance(word, str))
            if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
                refused = "is not text in the encoding of this terminal"
                raise typer.BadParameter(refused, ctx=ctx, param=param)
        try:
            with acts(command_actor(ctx)):
                return invoke(ctx)
        except typer.BadParameter as error:
            # So that the error names the help of this command.
            error.ctx = error.ctx or ctx
            raise

    command.invoke = invoke_with_text


def _show_by_default(group: Any) -> None:
    """Let a noun alone do what its first command in ``_DEFAULTS`` does."""
    commands = getattr(group, "commands", {})
    default = next((name for name in _DEFAULTS if name in commands), None)
    if default is None or (group.invoke_without_command and default != "list"):
        return  # it does something alone
    parse = group.parse_args

    def parse_or_show(ctx: Any, args: list[str]) -> Any:
        own = {*ctx.help_option_names, *(name for one in group.params for name in one.opts)}
        is_alone = not args or (args[0].startswith("-") and args[0] not in own)
        # A completion wants the names of the commands.
        return parse(ctx, [default, *args] if is_alone and not ctx.resilient_parsing else args)

    group.parse_args = parse_or_show


def _name_values(command: Any) -> None:
    """Let the help name values in the terms of their field instead of by their Python types."""
    for param in command.params:
        is_argument = param.param_type_name == "argument"
        has_value = is_argument or not (param.is_flag or param.type_descriptor.is_choice)
        if param.metavar is None and has_value:
            param.metavar = _VALUES.get(param.name, param.name.upper().replace("_", "-"))
        if is_argument:
            param.display_type_rich = _no_type


def _no_type(ctx: object) -> str:
    """Return nothing in place of the Python type of an argument, which follows its name."""
    del ctx
    return ""


@cache
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
    made = typer.main.get_group(around).commands[name]
    _prepare(made)
    if name in OLD_NAMES:
        made.hidden = True
        _mark_as_old(made, f"goclaw {OLD_NAMES[name][0]}")
    return made
