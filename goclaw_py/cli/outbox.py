"""``goclaw outbox``: messages on their way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import AsJson, Limit, cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import clock, one_line, show_json, show_table

if TYPE_CHECKING:
    from goclaw_py.ports.control import Control
    from goclaw_py.ports.store import OutboxRow

app = typer.Typer(help="Messages on their way out.", no_args_is_help=True)

_ALL_AT_ONCE = 1000
_STATES = ("pending", "sending", "sent", "dead")


def _state(text: str | None) -> str | None:
    if text is not None and text not in _STATES:
        raise typer.BadParameter(f"must be {', '.join(_STATES)}")
    return text


@app.command("list")
def list_(
    ctx: typer.Context,
    state: Annotated[
        str | None, typer.Option(callback=_state, help="Only pending, sending, sent or dead ones.")
    ] = None,
    limit: Limit = 50,
    *,
    as_json: AsJson = False,
) -> None:
    """List messages, the newest first."""
    from goclaw_py.ports.store import OutboxRow, OutboxState  # noqa: PLC0415

    async def ask(control: Control) -> list[OutboxRow]:
        wanted = None if state is None else OutboxState(state)
        return await control.outbox(limit=limit, state=wanted)

    found = cli(ctx).ask(ask)
    if as_json:
        show_json(list[OutboxRow], found)
        return
    columns = ("ID", "STATE", "TO", "CREATED", "TRIES", "TEXT", "PROBLEM")
    show_table(columns, [_row(one) for one in found], empty="no messages")


def _row(row: OutboxRow) -> tuple[str, ...]:
    target = row.message.target
    problem = one_line(row.error or "")
    if row.possible_duplicate:
        problem = f"{problem} (may appear twice)".strip()
    return (
        str(row.id),
        row.state.value,
        f"{target.channel}:{target.chat}",
        clock(row.created_at),
        str(row.attempts),
        one_line(row.message.text, 40),
        problem,
    )


@app.command()
def retry(
    ctx: typer.Context,
    ids: Annotated[list[int] | None, typer.Argument(min=0, help="Ids of dead messages.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All dead messages.")] = False,
) -> None:
    """Try dead messages again."""
    if bool(ids) == everything:
        raise typer.BadParameter("give ids, or --all")

    async def ask(control: Control) -> int:
        from goclaw_py.ports.store import OutboxState  # noqa: PLC0415

        chosen = list(ids or [])
        if everything:
            dead = await control.outbox(limit=_ALL_AT_ONCE, state=OutboxState.DEAD)
            chosen = [row.id for row in dead]
        return await control.retry_outbox(chosen) if chosen else 0

    count = cli(ctx).ask(ask)
    typer.echo(f"{count} tried again" if count else "no dead message among them")
    if not count and not everything:
        raise typer.Exit(ExitCode.FAILED)
