"""``goclaw sessions``: list, show and reset conversations."""

from __future__ import annotations

import typer

from goclaw_py.cli.context import AsJson, Limit, SessionName, cli
from goclaw_py.cli.output import clock, plain, show_facts, show_json, show_table
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import Session, StoredEntry

app = typer.Typer(help="List, show and reset conversations.", no_args_is_help=True)


@app.command("list")
def list_(ctx: typer.Context, limit: Limit = 50, *, as_json: AsJson = False) -> None:
    """List sessions, most recently active first."""

    async def ask(control: Control) -> list[Session]:
        return await control.sessions(limit=limit)

    found = cli(ctx).ask(ask)
    if as_json:
        show_json(list[Session], found)
        return
    rows = [
        (one.key, one.agent, clock(one.last_active_at), str(one.waiting), str(one.entries))
        for one in found
    ]
    columns = ("SESSION", "AGENT", "LAST ACTIVE", "WAITING", "ENTRIES")
    show_table(columns, rows, empty="no sessions yet")


@app.command()
def show(
    ctx: typer.Context, session: SessionName, limit: Limit = 20, *, as_json: AsJson = False
) -> None:
    """Show a session and the last entries of its history."""

    async def ask(control: Control) -> tuple[Session, list[StoredEntry]]:
        found = await control.session(session)
        return found, await control.history(found.key, limit=limit)

    found, history = cli(ctx).ask(ask)
    if as_json:
        show_json(tuple[Session, list[StoredEntry]], (found, history))
        return
    show_facts(
        [
            ("session", found.key),
            ("agent", found.agent),
            ("created", clock(found.created_at)),
            ("last active", clock(found.last_active_at)),
            ("node", found.owner or "none"),
            ("waiting", str(found.waiting)),
            ("entries", str(found.entries)),
        ]
    )
    for stored in history:
        who = stored.entry.role.value
        typer.echo(f"\n{clock(stored.at)}  {who}\n{plain(stored.entry.text)}")


@app.command()
def reset(ctx: typer.Context, session: SessionName, *, as_json: AsJson = False) -> None:
    """Stop all runs of a session and start a new history.

    Messages waiting in the session are dropped.
    """

    async def ask(control: Control) -> str:
        found = await control.session(session)
        await control.reset(found.key)
        return found.key

    key = cli(ctx).ask(ask)
    if as_json:
        show_json(dict[str, str], {"reset": key})
    else:
        typer.echo(f"reset {plain(key)}")
