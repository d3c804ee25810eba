"""``goclaw send``: send a message to the agent in a session (SPEC OPS-1, CRON-19)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, SessionName, cli
from goclaw_py.cli.output import show_json
from goclaw_py.ports.control import Control, Submitted


def send(
    ctx: typer.Context,
    session: SessionName,
    text: Annotated[
        str, typer.Argument(help="Text of the message. - reads it from standard input.")
    ],
    *,
    queue: Annotated[
        bool, typer.Option("--queue", help="Wait for current runs and messages of the session.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send a message to the agent in a session.

    The agent handles it as if it arrived in the chat of the session, and replies there.
    Example: goclaw send telegram:direct:1001 "what is new?"
    """
    words = sys.stdin.read() if text == "-" else text
    if not words.strip():
        raise typer.BadParameter("the message is empty")

    async def ask(control: Control) -> Submitted:
        found = await control.session(session)
        return await control.send_message(found.key, words, queue=queue)

    done = cli(ctx).ask(ask)
    if as_json:
        show_json(Submitted, done)
        return
    typer.echo(
        f"run {done.run}" if done.run else "stored; another node owns this session and will run it"
    )
