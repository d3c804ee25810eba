"""``goclaw pairing``: who may talk to the agent (SPEC CHAN-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import AsJson, Name, cli
from goclaw_py.cli.output import clock, plain, show_json, show_table

if TYPE_CHECKING:
    from goclaw_py.core.messages import Sender
    from goclaw_py.ports.control import Control
    from goclaw_py.ports.store import PairingRequest, Person

app = typer.Typer(help="Who may talk to the agent.", no_args_is_help=True)


@app.command("list")
def list_(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List who may talk and who asked to."""

    async def ask(control: Control) -> tuple[list[Person], list[PairingRequest]]:
        return await control.people(), await control.pairing_requests()

    people, requests = cli(ctx).ask(ask)
    if as_json:
        from goclaw_py.ports.store import PairingRequest, Person  # noqa: PLC0415

        show_json(tuple[list[Person], list[PairingRequest]], (people, requests))
        return
    rows = [
        (_who(one.sender), f"{one.channel}:{one.account}", one.standing.value, "") for one in people
    ] + [
        (_who(one.sender), f"{one.channel}:{one.account}", "asks", clock(one.expires_at))
        for one in requests
    ]
    empty = "nobody yet; whoever writes to the bot gets a code for: goclaw pairing approve CODE"
    show_table(("WHO", "CHANNEL", "STANDING", "CODE VALID UNTIL"), rows, empty=empty)


def _who(sender: Sender) -> str:
    names = [sender.name] if sender.name else []
    if sender.username:
        names.append(f"@{sender.username}")
    return f"{sender.id} ({', '.join(names)})" if names else sender.id


@app.command()
def approve(
    ctx: typer.Context,
    code: Name,
    *,
    guest: Annotated[bool, typer.Option("--guest", help="May talk, is no owner.")] = False,
) -> None:
    """Let the person with this code talk."""

    async def ask(control: Control) -> Person:
        return await control.approve(code, guest=guest)

    person = cli(ctx).ask(ask)
    typer.echo(f"{plain(_who(person.sender))} is {person.standing.value} on {person.channel}")


@app.command()
def revoke(
    ctx: typer.Context,
    who: Name,
    channel: Annotated[str | None, typer.Option(help="Only on this channel.")] = None,
    account: Annotated[str | None, typer.Option(help="Only on this account.")] = None,
) -> None:
    """Forget a person, by id or @username."""

    async def ask(control: Control) -> Person:
        from goclaw_py.ports.control import NotFound  # noqa: PLC0415

        found = [
            person
            for person in await control.people()
            if who in (person.sender.id, f"@{person.sender.username}")
            and channel in (None, person.channel)
            and account in (None, person.account)
        ]
        if not found:
            raise NotFound(f"nobody who may talk is {who}")
        if len(found) > 1:
            raise NotFound(f"{who} is on several channels: add --channel or --account")
        (person,) = found
        await control.revoke(person.channel, person.account, person.sender.id)
        return person

    person = cli(ctx).ask(ask)
    typer.echo(f"{plain(_who(person.sender))} may not talk any more on {person.channel}")
