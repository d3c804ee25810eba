"""``goclaw deliveries``: outgoing messages, and incoming ones that failed."""

from __future__ import annotations

import typer

from goclaw_py.operations.deliveries import HELP
from goclaw_py.operations.deliveries.command import inbox, outbox

app = typer.Typer(help=HELP, no_args_is_help=True)
app.add_typer(outbox.app)
app.add_typer(inbox.app, name="incoming")
