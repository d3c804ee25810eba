"""``goclaw web``: who may use the web chat and the dashboard. Two nouns share this group."""

from __future__ import annotations

import typer

from goclaw_py.operations.access import command as access
from goclaw_py.operations.people import HELP_OF_WEB
from goclaw_py.operations.people.command import web as guests

app = typer.Typer(help=HELP_OF_WEB, no_args_is_help=True)
app.add_typer(guests.app)
app.add_typer(access.app)
