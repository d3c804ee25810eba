"""``goclaw people web``: personal links to the web chat (SPEC CHAN-13)."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from goclaw_py.cli.context import AsJson, Cli, answer, cli, with_wide
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Column, Printer, clock, show_table
from goclaw_py.cli.qr_code import show_qr_code
from goclaw_py.core.errors import NotFound
from goclaw_py.core.net.proxies import is_loopback
from goclaw_py.core.web_links import WEB_PLACE, guest_name
from goclaw_py.operations.control import Control
from goclaw_py.operations.people.operations import WebGuest

app = typer.Typer()

_COLUMNS: Final = (
    Column("NAME"),
    Column("LINK", least=12),
    Column("BROWSERS", drop=1),
    Column("INVITED", drop=2),
)
_NOBODY: Final = "nobody yet; to invite a person: goclaw people web invite NAME"


@dataclass(frozen=True, slots=True)
class InvitedGuest:
    """An invitation with its whole address."""

    name: str
    path: str
    expires_at: datetime
    url: str


def _name(text: str) -> str:
    try:
        return guest_name(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Name = Annotated[str, typer.Argument(callback=_name, help="Name of the person.")]


@app.command()
def invite(
    ctx: typer.Context,
    name: Name,
    *,
    again: Annotated[
        bool, typer.Option("--again", help="Make another link for a person who is invited already.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Invite a person to the web chat, and print a personal link.

    One browser can use the link, within 7 days. It then shows only the person's own chat.
    """
    base, notes = _address(cli(ctx))

    async def ask(control: Control) -> InvitedGuest:
        made = await control.people.invite(name, again=again)
        return InvitedGuest(made.name, made.path, made.expires_at, f"{base}{made.path}")

    def show(made: InvitedGuest) -> None:
        typer.echo(made.url)
        show_qr_code(made.url)
        typer.echo(f"One browser can use this link, until {clock(made.expires_at)}.")
        for note in notes:
            typer.echo(note)

    answer(ctx, ask, Printer(InvitedGuest, show, as_json), create=True)


@app.command("list")
@with_wide
def list_(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List the people who are invited to the web chat."""

    def show(found: list[WebGuest]) -> None:
        seen_at = display.now()
        rows = [
            (one.name, _link(one, seen_at), str(one.browsers), display.moment(one.invited_at))
            for one in found
        ]
        show_table(_COLUMNS, rows, empty=_NOBODY)

    answer(ctx, lambda control: control.people.guests(), Printer(list[WebGuest], show, as_json))


def _link(one: WebGuest, seen_at: datetime) -> str:
    if one.link_until is None:
        return "used" if one.browsers else "none"
    return f"{'unused until' if one.link_until > seen_at else 'expired'} {clock(one.link_until)}"


@app.command()
def revoke(ctx: typer.Context, name: Name, *, as_json: AsJson = False) -> None:
    """Remove a person from the web chat.

    Links stop working, and all browsers of the person are signed out at once.
    """

    async def ask(control: Control) -> str:
        try:
            await control.people.revoke(*WEB_PLACE, name)
        except NotFound:
            raise NotFound(
                f"nobody called {name} is invited; see: goclaw people web list"
            ) from None
        return name

    def show(name: str) -> None:
        typer.echo(f"{name} may no longer use the web chat")

    answer(ctx, ask, Printer(dict[str, str], show, as_json, lambda name: {"name": name}))


def _address(options: Cli) -> tuple[str, list[str]]:
    """Return the beginning of links, and what the operator must know of it.

    That of the gateway, if one runs: its settings may be others than those of this shell. Raises
    ``BadParameter`` if nothing serves the chat, or no address is known.
    """
    from goclaw_py.config import accounts, shown  # noqa: PLC0415  (not needed for --help)

    if options.has_gateway():
        address, values = options.ask(_of_gateway)
        served = urlsplit(address)
        serves, host, port = bool(address), served.hostname or "", served.port
    else:
        here = options.settings()
        has_hooks = any(account.options.get("webhook_url") for account in accounts(here))
        serves, host = here.web.serves_api(has_hooks=has_hooks), here.web.host.strip("[]")
        port, values = here.web.port, {one.path: one.value for one in shown(here)}
    if not serves:
        raise typer.BadParameter(
            "the gateway serves no web chat; set web.api = true and web.token_file"
        )
    notes = []
    if values.get("web.token") is None:
        notes.append(
            "There is no web.token: everybody who uses this machine can open the dashboard, too."
        )
    if public_url := values.get("web.public_url"):
        return str(public_url).rstrip("/"), notes
    if not port:
        raise typer.BadParameter(
            "with web.port = 0 links have no address before the gateway runs: goclaw run"
        )
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = _own_address()
    elif is_loopback(host):
        notes.insert(
            0,
            "Only this machine can open it. For other machines put a reverse proxy in front, and "
            "set web.public_url.",
        )
    return f"http://{f'[{host}]' if ':' in host else host}:{port}", notes


async def _of_gateway(control: Control) -> tuple[str, dict[str, object]]:
    """Return the address of the dashboard, and the values of settings by path."""
    status, view = await control.lanes.status(), await control.settings.view()
    return status.address, {one.path: one.value for one in view.settings}


def _own_address() -> str:
    """Return the address of this machine in its network; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
