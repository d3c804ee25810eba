"""``goclaw people web``: browsers that are signed in, and tokens (SPEC SEC-6, SEC-8)."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Annotated, Final

import typer

from goclaw_py.cli.context import AsJson, answer, cli, with_wide
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Column, Printer, clock, show_json, show_table
from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotFound
from goclaw_py.core.text import count
from goclaw_py.operations.access.operations import NewToken
from goclaw_py.operations.control import Control
from goclaw_py.records import SignIn, Token
from goclaw_py.records.tokens import NAME_RULE, is_token_name

app = typer.Typer()
tokens_app = typer.Typer(invoke_without_command=True)
app.add_typer(tokens_app, name="tokens")

_SIGN_INS: Final = (
    Column("ID"),
    Column("WHO"),
    Column("ROLE", drop=4),
    Column("LAST USED"),
    Column("ADDRESS", drop=1),
    Column("SIGNED IN", drop=3),
    Column("BROWSER", drop=2),
)
_TOKENS: Final = (
    Column("NAME"),
    Column("ROLE"),
    Column("LAST USED", drop=1),
    Column("ENDS"),
    Column("CREATED", drop=2),
)
_MOST_DAYS: Final = 36_500


def _name(text: str) -> str:
    if not is_token_name(text):
        raise typer.BadParameter(NAME_RULE)
    return text


@app.command("sign-ins")
@with_wide
def sign_ins(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List the browsers that are signed in to the dashboard."""

    def show(found: list[SignIn]) -> None:
        rows = [
            (
                one.id,
                one.name,
                str(one.role),
                display.moment(one.last_used_at),
                one.address,
                display.moment(one.created_at),
                one.user_agent,
            )
            for one in found
        ]
        show_table(_SIGN_INS, rows, empty="no browser is signed in")

    answer(ctx, lambda control: control.access.sign_ins(), Printer(list[SignIn], show, as_json))


@app.command("sign-out")
def sign_out(
    ctx: typer.Context,
    sign_in: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the sign-in: goclaw people web sign-ins.")
    ] = "",
    *,
    everywhere: Annotated[bool, typer.Option("--all", help="Sign all browsers out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Sign a browser out of the dashboard, or all of them.

    It takes effect within 5 seconds, on all nodes.
    """
    if bool(sign_in) is everywhere:
        raise typer.BadParameter("give the id of a sign-in, or --all")

    async def ask(control: Control) -> int:
        if everywhere:
            return await control.access.end_sign_ins()
        await control.access.end_sign_in(sign_in)
        return 1

    def show(ended: int) -> None:
        typer.echo(f"{count(ended, 'browser')} signed out")

    answer(ctx, ask, Printer(dict[str, int], show, as_json, lambda ended: {"ended": ended}))


@tokens_app.callback()
@with_wide
def tokens(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List tokens of programs and people. See: goclaw people web tokens create.

    A viewer reads, an operator acts, an admin decides about people, settings, tokens and nodes.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise typer.BadParameter("put options after the subcommand: tokens create … --json")
        return

    def show(found: list[Token]) -> None:
        now = display.now()
        rows = [
            (
                one.name,
                role_words(one),
                "never" if one.last_used_at is None else display.moment(one.last_used_at),
                _end(one) if one.is_valid(now) else f"expired {_end(one)}",
                display.moment(one.created_at),
            )
            for one in found
        ]
        show_table(
            _TOKENS, rows, empty="no tokens; to make one: goclaw people web tokens create NAME"
        )

    answer(ctx, lambda control: control.access.tokens(), Printer(list[Token], show, as_json))


@tokens_app.command("show")
def show_token(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Print the token of the settings, which opens the dashboard.

    It is that of web.token, web.token_file or web.token_env.
    """
    from goclaw_py.config.resolve import web_token  # noqa: PLC0415  (not needed for --help)

    token = web_token(cli(ctx).settings(), os.environ)
    if token is None:
        raise NotFound(
            "no token is set, and the dashboard asks for none; to set one: web.token_file"
        )
    secret = token.get_secret_value()
    if as_json:
        show_json(dict[str, str], {"token": secret})
        return
    typer.echo(secret)


@tokens_app.command()
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(callback=_name, help="Name of the token.")],
    *,
    role: Annotated[AccessRole, typer.Option(help="What it may do.")] = AccessRole.VIEWER,
    text: Annotated[
        bool, typer.Option("--text", help="Let a viewer read the text of messages.")
    ] = False,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST_DAYS, help="Days until it ends (default: it does not)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token, and print it. It is shown only once."""
    has_door = True

    async def ask(control: Control) -> NewToken:
        nonlocal has_door
        # Those of the gateway, which may have its token from a variable.
        listed = (await control.settings.view()).settings
        has_door = any(one.path == "web.token" and one.value is not None for one in listed)
        end = None if days is None else display.now() + timedelta(days=days)
        return await control.access.create_token(name, role, reads_text=text, expires_at=end)

    def show(made: NewToken) -> None:
        typer.echo(made.secret)
        end = "" if made.token.expires_at is None else f", until {_end(made.token)}"
        typer.echo(
            f"{role_words(made.token)}{end}. Keep it: it is not shown again. "
            "Send it as: Authorization: Bearer TOKEN",
            err=True,
        )
        if not has_door:
            typer.echo(
                "There is no web.token: everybody who uses this machine may do everything, also "
                "without a token. Set web.token_file.",
                err=True,
            )

    answer(ctx, ask, Printer(NewToken, show, as_json), create=True)


@tokens_app.command()
def revoke(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the token: goclaw people web tokens.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Revoke a token. Browsers that used it are signed out."""

    async def ask(control: Control) -> str:
        await control.access.revoke_token(name)
        return name

    def show(name: str) -> None:
        typer.echo(f"{name} is revoked")

    answer(ctx, ask, Printer(dict[str, str], show, as_json, lambda name: {"name": name}))


def role_words(token: Token) -> str:
    """Return the role in words."""
    is_reading = token.role is AccessRole.VIEWER and token.reads_text
    return f"{token.role}, reads text" if is_reading else str(token.role)


def _end(token: Token) -> str:
    return "never" if token.expires_at is None else clock(token.expires_at)
