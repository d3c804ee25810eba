"""``goclaw open``: open the dashboard in a browser (SPEC OPS-3)."""

from __future__ import annotations

import socket
import webbrowser
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from goclaw_py.cli.context import AsJson, Cli, cli
from goclaw_py.cli.output import show_json
from goclaw_py.core.errors import NoGateway

_PAGES: Final = (
    *("now", "health", "why", "runs", "timeline", "sessions", "deliveries", "logs", "audit"),
    *("jobs", "heartbeats", "approvals", "people", "usage", "settings", "chat"),
)
_PATIENCE_S: Final = 3.0


def _page(text: str) -> str:
    if text not in _PAGES:
        raise typer.BadParameter(f"must be one of {', '.join(_PAGES)}")
    return text


def open_(
    ctx: typer.Context,
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE",
            callback=_page,
            show_default=False,
            help=f"The page: {', '.join(_PAGES)} (default: now).",
        ),
    ] = "now",
    *,
    as_json: AsJson = False,
) -> None:
    """Open the dashboard in a browser, and print its address.

    If the settings have a token, the browser asks for it once.
    """
    host, port = _address(cli(ctx))
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    url = f"http://{place}/{'' if page == 'now' else page}"
    try:
        socket.create_connection((host, port), timeout=_PATIENCE_S).close()
    except (OSError, UnicodeError) as error:
        raise NoGateway(f"nothing answers at {url}; to start the gateway: goclaw run") from error
    opened = webbrowser.open(url)
    if as_json:
        show_json(dict[str, str | bool], {"url": url, "opened": opened})
        return
    typer.echo(url)
    if not opened:
        typer.echo("no browser found on this machine", err=True)


def _address(options: Cli) -> tuple[str, int]:
    """Return where this machine reaches the dashboard of the gateway that runs in this home.

    It may have another port than the settings have here, by a variable or since they were edited.
    """
    if not options.has_gateway():
        raise NoGateway("no gateway is running in this home")
    served = urlsplit(options.ask(lambda control: control.lanes.status()).address)
    if served.hostname is None or served.port is None:
        raise NoGateway("the gateway serves no dashboard; what keeps it from that: goclaw doctor")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(served.hostname, served.hostname)  # noqa: S104
    return host, served.port
