"""``goclaw people web``: personal links to the web chat (SPEC CHAN-13)."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from goclaw_py.cli.context import AsJson, answer, cli, with_wide
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Column, Printer, clock, show_table
from goclaw_py.cli.qr_code import show_qr_code
from goclaw_py.core.errors import NotFound
from goclaw_py.core.web_links import WEB_PLACE, guest_name
from goclaw_py.operations.control import Control
from goclaw_py.operations.people.operations import WebGuest

if TYPE_CHECKING:
    from goclaw_py.config import Settings

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
    settings = cli(ctx).settings()
    base, notes = _address(settings)

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
            (one.name, _link(one, seen_at), str(one.browsers), clock(one.invited_at))
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


def _address(settings: Settings) -> tuple[str, list[str]]:
    """Return the beginning of links, and what the operator must know of it.

    Raises ``BadParameter`` if the settings have no address, or nothing serves the chat there.
    """
    from goclaw_py.config import accounts  # noqa: PLC0415  (not needed for --help)

    web, notes = settings.web, []
    has_hooks = any(account.options.get("webhook_url") for account in accounts(settings))
    if not web.serves_api(has_hooks=has_hooks):
        raise typer.BadParameter(
            "the gateway serves no web chat; set web.api = true and web.token_file"
        )
    if not web.has_token:
        notes.append(
            "There is no web.token: everybody who uses this machine can open the dashboard, too."
        )
    if web.public_url:
        return web.public_url.rstrip("/"), notes
    if not web.port:
        raise typer.BadParameter("with web.port = 0 links have no address; set web.public_url")
    host = web.host.strip("[]")
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = _own_address()
    if web.is_loopback:
        notes.insert(
            0,
            "Only this machine can open it. For other machines put a reverse proxy in front, and "
            "set web.public_url.",
        )
    return f"http://{f'[{host}]' if ':' in host else host}:{web.port}", notes


def _own_address() -> str:
    """Return the address of this machine in its network; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
