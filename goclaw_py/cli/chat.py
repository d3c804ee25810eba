"""``goclaw chat``: talk to the agent through the running gateway."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Annotated

import typer

from goclaw_py.cli.context import cli
from goclaw_py.cli.exits import ExitCode


def _chat(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise typer.BadParameter("must be up to 64 of A-Z a-z 0-9 . _ -")
    return name


def chat(
    ctx: typer.Context,
    chat: Annotated[
        str, typer.Option(callback=_chat, help="Name of the chat; each has its own session.")
    ] = "local",
    wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds to wait for answers at the end of piped input."),
    ] = 60.0,
) -> None:
    """Chat here. Ctrl-C stops the run, again within 2 s or Ctrl-D leaves."""
    settings = cli(ctx).settings()
    from goclaw_py.web.sockets import is_answered, socket_path  # noqa: PLC0415

    path = socket_path(settings.state_folder)
    if not is_answered(path):
        from goclaw_py.ports.control import NoGateway  # noqa: PLC0415

        raise NoGateway("no gateway runs here; start one with: goclaw run")
    if not asyncio.run(_talk(path, chat, wait)):
        typer.echo(f"goclaw: not everything was answered within {wait:g} s", err=True)
        raise typer.Exit(ExitCode.FAILED)


async def _talk(path: Path, chat: str, wait_s: float) -> bool:
    from goclaw_py.cli.converse import Conversation, settled  # noqa: PLC0415
    from goclaw_py.cli.keyboard import standard_terminal  # noqa: PLC0415
    from goclaw_py.cli.remote import RemoteControl  # noqa: PLC0415

    async with RemoteControl(path) as remote:
        with standard_terminal() as terminal:
            conversation = Conversation(remote, terminal, chat)
            return await conversation.run(lambda: settled(remote, chat), wait_s)
