"""``goclaw config``: the settings, and what they define."""

from __future__ import annotations

import typer

from goclaw_py.cli.system import lists
from goclaw_py.operations.settings import HELP, command

defined = typer.Typer()
defined.command("agents")(lists.agents)
defined.command("models")(lists.models)
defined.command("channels")(lists.channels)

app = typer.Typer(help=HELP, no_args_is_help=True)
app.add_typer(command.app)
app.add_typer(defined)
