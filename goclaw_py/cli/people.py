"""``goclaw people``: who may talk to the agent, in which groups, and who may use the web chat.

Two nouns share this group. Their former groups, of one level, are hidden until 1.0.
"""

from __future__ import annotations

import typer

from goclaw_py.operations.access import command as access
from goclaw_py.operations.people import HELP, HELP_OF_WEB
from goclaw_py.operations.people.command import app as pairing
from goclaw_py.operations.people.command import groups
from goclaw_py.operations.people.command import web as guests

web = typer.Typer(help=HELP_OF_WEB, no_args_is_help=True)
web.add_typer(guests.app)
web.add_typer(access.app)

app = typer.Typer(help=HELP, no_args_is_help=True)
app.add_typer(pairing)
app.add_typer(groups.app, name="groups")
app.add_typer(web, name="web")
